/* deliver - directories and files of a pod, before its sandbox, and their end. */
#ifndef BIGA_ADVERTISER_ACT_CORE_DELIVER_H
#define BIGA_ADVERTISER_ACT_CORE_DELIVER_H

#include "advertiser/act/card/connection.h"
#include "advertiser/act/core/state.h"

/* A reason in `r` says that who was asked refused; without one nobody
 * answered. */
void deliver_files(struct place *at, const struct connection *c,
                   struct pod_entry *e, struct machine_result *r,
                   struct error *err) EXCLUDES(act_state);
void deliver_end(struct place *at, const struct connection *c,
                 struct pod_entry *e, struct machine_result *r,
                 struct error *err) EXCLUDES(act_state);

#endif
