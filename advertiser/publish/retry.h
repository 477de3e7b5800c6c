/* retry - failures of one machine: how long to wait after each, and what is
 * said about them: an outage is one event in the log, not one at each try. */
#ifndef BIGA_ADVERTISER_PUBLISH_RETRY_H
#define BIGA_ADVERTISER_PUBLISH_RETRY_H

#include <stdint.h>

#include "lib/base/backoff.h"

struct retry {
    struct backoff backoff;
    uint64_t last_error; /* hash of what was logged last */
};

void retry_init(struct retry *r, int64_t min_ms, int64_t max_ms, uint64_t seed);
/* For the log. */
struct retry_event {
    const char *node, *state;
    const char *hint;  /* what would help; NULL: nothing that is known */
    long status;       /* of HTTP; 0: there was no answer */
    const char *error; /* NULL: the status says it all */
};
/* One more failure: how many milliseconds to wait. */
int64_t retry_fail(struct retry *r, const struct retry_event *event);
void retry_succeed(struct retry *r, const char *node);
/* A number in [0, below), below > 0. */
int64_t retry_random(struct retry *r, int64_t below);
/* Between half of `ms` and all of it. */
int64_t retry_jitter(struct retry *r, int64_t ms);

#endif
