/* volume_quiet - changes that come together are told once: when nothing more
 * has come for a while, or after a longer one, whatever comes.  Pure. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_QUIET_H
#define BIGA_ROUTER_VOLUME_VOLUME_QUIET_H

#include <stddef.h>
#include <stdint.h>

enum {
    VOLUME_QUIET_MS = 50, /* without another change, then it is told */
    VOLUME_LATE_MS = 500, /* or after so long */
};

struct volume_change {
    uint64_t id;
    int64_t first_ms, last_ms;
};
struct volume_quiet {
    struct volume_change *list;
    size_t n, cap;
};
void volume_quiet_fini(struct volume_quiet *q);
/* It has changed now. */
void volume_quiet_note(struct volume_quiet *q, uint64_t id, int64_t now_ms);
/* Nobody wants to know of it any more. */
void volume_quiet_drop(struct volume_quiet *q, uint64_t id);
/* When the first of them is to be told; INT64_MAX: there is none. */
int64_t volume_quiet_due(const struct volume_quiet *q);
/* Those that are to be told now, at most `max`; they are forgotten. */
size_t volume_quiet_take(struct volume_quiet *q, int64_t now_ms,
                         uint64_t *ret_ids, size_t max);

#endif
