#include "advertiser/act/card/health.h"

#include <string.h>

#include "lib/base/backoff.h"
#include "lib/base/mem.h"

static const char *const names[] = {
    [ACT_READY] = "ready",
    [ACT_SUSPECT] = "suspect",
    [ACT_LOST] = "lost",
    [ACT_DRAINED] = "drained",
};

const char *act_health_name(enum act_health health)
{
    return (size_t)health < ARRAY_LEN(names) ? names[health] : "unknown";
}

void health_init(struct health *h, int64_t probe_ms, int64_t lost_ms,
                 int64_t now_ms)
{
    *h = (struct health){
        .probe_ms = probe_ms > 0 ? probe_ms : HEALTH_PROBE_MS,
        .lost_ms = lost_ms > 0 ? lost_ms : HEALTH_LOST_MS,
        .now = ACT_SUSPECT,
        .since_ms = now_ms,
        .good_ms = now_ms,
        .due_ms = now_ms,
    };
    for (size_t i = 0; i < HEALTH_FLAPS; i++)
        h->flaps_ms[i] = now_ms - HEALTH_FLAP_MS;
}

int64_t health_deadline_ms(const struct health *h)
{
    return h->lost_ms / 4;
}

static bool become(struct health *h, enum act_health health, int64_t now)
{
    h->now = health;
    h->since_ms = now;
    h->n_good = h->n_bad = h->n_retries = 0;
    return true;
}

bool health_good(struct health *h, int64_t now_ms)
{
    h->good_ms = now_ms;
    h->n_good++;
    h->n_retries = 0;
    h->due_ms = now_ms + h->probe_ms;
    switch (h->now) {
    case ACT_SUSPECT:
        /* one that was never asked before has no past to be suspect of */
        if (h->n_good >= HEALTH_GOOD_SUSPECT || h->n_bad == 0)
            return become(h, ACT_READY, now_ms);
        h->due_ms = now_ms + h->probe_ms / 2;
        return false;
    case ACT_LOST:
        h->due_ms = now_ms + h->probe_ms / 2;
        return h->n_good >= HEALTH_GOOD_LOST && become(h, ACT_READY, now_ms);
    case ACT_READY:
    case ACT_DRAINED:
        break;
    }
    return false;
}

/* Silent for so long, or neither well nor ill for so long. */
static bool is_lost(const struct health *h, int64_t now)
{
    if (now - h->flaps_ms[HEALTH_FLAPS - 1] < HEALTH_FLAP_MS)
        return true;
    return h->n_bad >= 2 &&
           (now - h->good_ms >= h->lost_ms || now - h->since_ms >= h->lost_ms);
}

bool health_bad(struct health *h, int64_t sent_ms, int64_t now_ms)
{
    bool changed = false;
    h->n_good = 0;
    if (h->now == ACT_READY) {
        changed = become(h, ACT_SUSPECT, sent_ms);
        memmove(&h->flaps_ms[1], &h->flaps_ms[0],
                (HEALTH_FLAPS - 1) * sizeof h->flaps_ms[0]);
        h->flaps_ms[0] = now_ms;
    }
    h->n_bad++;
    if (h->now == ACT_SUSPECT && is_lost(h, now_ms))
        changed = become(h, ACT_LOST, now_ms);
    if (h->now == ACT_LOST) {
        h->n_retries += h->n_retries < 32;
        h->due_ms = now_ms + backoff_grown(h->probe_ms, HEALTH_RETRY_MAX_MS,
                                           h->n_retries);
        return changed;
    }
    /* an answer that is refused comes at once: not more than a few a second,
     * and one when it would be lost */
    int64_t lost = h->good_ms + h->lost_ms;
    h->due_ms = sent_ms + h->probe_ms / 2;
    if (h->due_ms < now_ms)
        h->due_ms = now_ms;
    if (now_ms < lost && h->due_ms > lost)
        h->due_ms = lost;
    return changed;
}

enum act_health health_shown(const struct health *h, bool drained)
{
    return drained && h->now != ACT_LOST ? ACT_DRAINED : h->now;
}
