#include "advertiser/publish/retry.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/io/log.h"

void retry_init(struct retry *r, int64_t min_ms, int64_t max_ms, uint64_t seed)
{
    *r = (struct retry){
        .backoff = {.min_ms = min_ms, .max_ms = max_ms, .random = seed}};
}

int64_t retry_fail(struct retry *r, const struct retry_event *event)
{
    int64_t ms = backoff_fail(&r->backoff);
    const char *text = event->error ? event->error : "";
    uint64_t error = hash_bytes(text, strlen(text)) ^ (uint64_t)event->status;
    if (r->backoff.failures > 1 && error == r->last_error)
        return ms;
    r->last_error = error;
    char status[24], wait[24];
    (void)snprintf(status, sizeof status, "%ld", event->status);
    (void)snprintf(wait, sizeof wait, "%" PRId64, ms);
    if (event->hint)
        log_event(LOG_WARN, "publish-failed", "node", event->node, "state",
                  event->state, "status", status, "error", text, "hint",
                  event->hint, "retry_ms", wait, NULL);
    else
        log_event(LOG_WARN, "publish-failed", "node", event->node, "state",
                  event->state, "status", status, "error", text, "retry_ms",
                  wait, NULL);
    return ms;
}

void retry_succeed(struct retry *r, const char *node)
{
    if (r->backoff.failures > 0) {
        char n[24];
        (void)snprintf(n, sizeof n, "%u", r->backoff.failures);
        log_event(LOG_INFO, "publish-recovered", "node", node, "failures", n,
                  NULL);
    }
    backoff_succeed(&r->backoff);
}

int64_t retry_random(struct retry *r, int64_t below)
{
    r->backoff.random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t random = hash_mix(r->backoff.random, UINT64_C(0xd6e8feb86659fd93));
    return (int64_t)(random % (uint64_t)below);
}

int64_t retry_jitter(struct retry *r, int64_t ms)
{
    return ms - retry_random(r, ms / 2 + 1);
}
