/* backoff - how long to wait after failures in a row: doubled each time, up
 * to a limit, and varied, so that many who failed together do not come back
 * together.  Pure. */
#ifndef BIGA_LIB_BASE_BACKOFF_H
#define BIGA_LIB_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t min_ms, max_ms; /* after the first failure; the limit */
    uint64_t random;        /* any seed, different for everybody */
    unsigned failures;      /* in a row */
};

/* `min_ms` after the first of `failures` in a row, doubled for each of the
 * others, up to `max_ms`: not varied. */
int64_t backoff_grown(int64_t min_ms, int64_t max_ms, unsigned failures);

/* How long to wait after one more failure: between half of the doubled time
 * and all of it. */
int64_t backoff_fail(struct backoff *b);
void backoff_succeed(struct backoff *b);

#endif
