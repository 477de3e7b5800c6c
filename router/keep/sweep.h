/* sweep - ends what is on a remote with our labels and is of nobody: after the
 * grace of embedded orphans, one at a time, sandboxes first.  Pure; of one
 * remote, use from one thread. */
#ifndef BIGA_ROUTER_KEEP_SWEEP_H
#define BIGA_ROUTER_KEEP_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/act/pod/orphans.h"
#include "router/keep/seen.h"

enum {
    SWEEP_GRACE_MS = 30000,
    SWEEP_PACE_MS = 1000, /* between two that are removed */
};

struct sweep {
    struct orphans orphans;
    int64_t next_ms; /* not before that */
};
void sweep_fini(struct sweep *s);
/* After keep_seen().  Those whose pod's uid begins with
 * `spared` are none, NULL: all. */
void sweep_update(struct sweep *s, const struct seen *seen, const char *spared,
                  int64_t now_ms);
/* One to be stopped and removed; false: none is due. */
bool sweep_take(struct sweep *s, int64_t now_ms, struct orphan *ret_orphan);
void sweep_removed(struct sweep *s, const char *id);
int64_t sweep_due(const struct sweep *s); /* INT64_MAX never */

#endif
