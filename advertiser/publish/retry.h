/* retry - failures of one machine: how long to wait after each, and what is
 * said about them: an outage is one event in the log, not one at each try. */
#ifndef BIGA_ADVERTISER_PUBLISH_RETRY_H
#define BIGA_ADVERTISER_PUBLISH_RETRY_H

#include <stdint.h>

#include "advertiser/publish/publish.h"
#include "lib/base/backoff.h"

struct retry {
    struct backoff backoff;
    uint64_t last_error; /* hash of what was logged last */
};

void retry_init(struct retry *r, const struct publish_config *config,
                uint64_t seed);
/* One more failure of `node` in `state` (for the log; `hint`: what would
 * help, or NULL): how many milliseconds to wait. */
struct retry_event {
    const char *node, *state, *hint;
};
int64_t retry_fail(struct retry *r, const struct retry_event *event,
                   const struct publish_answer *answer);
void retry_succeed(struct retry *r, const char *node);
/* A number in [0, below), below > 0. */
int64_t retry_random(struct retry *r, int64_t below);
/* Between half of `ms` and all of it. */
int64_t retry_jitter(struct retry *r, int64_t ms);

#endif
