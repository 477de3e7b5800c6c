/* pod_logs - what a container wrote, read where it runs: on the host from its
 * log file, on a card by the helper. */
#ifndef BIGA_ADVERTISER_ACT_CARD_POD_LOGS_H
#define BIGA_ADVERTISER_ACT_CARD_POD_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/card/pod_dir.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

/* Each time that a container is begun it has a log of its own. */
struct pod_log {
    const char *container;
    uint32_t attempt;
    uint64_t offset; /* where to begin; not of a tail */
    size_t max;      /* bytes */
    bool lines;      /* as they stand in the file, with their heads: as
                      * lib/io/lines.h; of these alone: */
    bool tail;       /* the last `max` bytes */
    bool ended;      /* the container has exited: waits, not for long, until
                      * its runtime has written all of it */
};

/* Adds what was written from that offset on to `ret_text`; `*ret_next` is where
 * to go on.  A log that is not there (yet) is empty.  -EAGAIN: it is on a card
 * where the helper does not run; -ENOTSUP: where it does not know `lines` yet. */
int pod_logs_read(const struct pod_access *pod, const struct pod_log *log,
                  struct str *ret_text, uint64_t *ret_next, struct error *err);
/* The same of the last `max` bytes of one that has ended; -ENOENT when it is
 * not there, -ESRCH when the helper does not run. */
int pod_logs_tail(const struct pod_access *pod, const struct pod_log *log,
                  struct str *ret_text, uint64_t *ret_next, struct error *err);

#endif
