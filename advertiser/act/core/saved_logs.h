/* saved_logs - the last lines of containers whose pod is gone from its place:
 * somebody may want to know why it failed. */
#ifndef BIGA_ADVERTISER_ACT_CORE_SAVED_LOGS_H
#define BIGA_ADVERTISER_ACT_CORE_SAVED_LOGS_H

#include "advertiser/act/card/connection.h"
#include "advertiser/act/core/state.h"
#include "lib/base/str.h"

/* Saves those of a pod that has ended, as far as possible, before its files are
 * removed. */
void saved_logs_take(struct place *at, const struct connection *c,
                     struct pod_entry *e) EXCLUDES(act_state);
/* As actuator_logs(); -ENOENT when none is saved. */
int saved_logs_read(struct actuator *a, const struct intent_log *names,
                    uint64_t offset, size_t max, struct str *ret_text,
                    uint64_t *ret_next, struct error *err);

#endif
