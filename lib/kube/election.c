#include "lib/kube/election.h"

#include <stdio.h>
#include <string.h>

enum {
    RELEASED_S = 1,     /* the duration of a lease that was given back */
    DURATION_TIMES = 6, /* another's duration counts up to so many of ours */
};

void election_init(struct election *e, const struct election_config *config)
{
    memset(e, 0, sizeof *e);
    e->config = config;
    e->made = true;
}

static bool is_ours(const struct election *e)
{
    return e->exists && strcmp(e->seen.holder, e->config->identity) == 0;
}

/* resourceVersion changes with every write; the rest is compared so that
 * nothing rests on that alone. */
static bool is_same(const struct kube_lease *a, const struct kube_lease *b)
{
    return strcmp(a->resource_version, b->resource_version) == 0 &&
           strcmp(a->uid, b->uid) == 0 && strcmp(a->holder, b->holder) == 0 &&
           strcmp(a->renewed, b->renewed) == 0 &&
           strcmp(a->acquired, b->acquired) == 0 &&
           a->transitions == b->transitions && a->duration_s == b->duration_s;
}

void election_observe(struct election *e, const struct kube_lease *lease,
                      int64_t now_ms)
{
    if (!lease) {
        e->exists = e->leading = e->gives = false;
        e->made = true;
        e->seen_ms = now_ms;
        return;
    }
    bool other = e->exists && strcmp(e->seen.uid, lease->uid) != 0;
    if (!e->exists || !is_same(&e->seen, lease))
        e->seen_ms = now_ms;
    e->seen = *lease;
    e->exists = true;
    if (other || !is_ours(e))
        e->leading = e->gives = false;
    e->made = is_ours(e) && (e->made || other);
}

/* When the lease of another is free, by our clock. */
static int64_t free_ms(const struct election *e)
{
    int64_t most = e->config->duration_ms * DURATION_TIMES;
    int64_t theirs = (int64_t)e->seen.duration_s * 1000;
    if (!e->seen.holder[0] && e->seen.duration_s == RELEASED_S)
        return e->seen_ms;
    if (theirs > most)
        theirs = most;
    return e->seen_ms +
           (theirs > e->config->duration_ms ? theirs : e->config->duration_ms);
}

enum election_move election_next(const struct election *e, int64_t now_ms)
{
    if (e->resigned)
        return e->gives ? ELECTION_RELEASE : ELECTION_WAIT;
    if (!e->exists)
        return ELECTION_CREATE;
    if (!is_ours(e))
        return now_ms >= free_ms(e) ? ELECTION_TAKE : ELECTION_WAIT;
    bool fresh = e->leading && now_ms < e->renewed_ms + e->config->renew_ms;
    return fresh ? ELECTION_WAIT : ELECTION_RENEW;
}

bool election_looks(const struct election *e, int64_t now_ms)
{
    enum election_move move = election_next(e, now_ms);
    return move != ELECTION_RENEW && move != ELECTION_TAKE;
}

int64_t election_wait_ms(const struct election *e, int64_t now_ms)
{
    int64_t again = e->config->renew_ms / 4, wait = again;
    if (is_ours(e) && e->leading) {
        wait = e->renewed_ms + e->config->renew_ms - now_ms;
        if (now_ms < e->from_ms && e->from_ms - now_ms < wait)
            wait = e->from_ms - now_ms;
    } else if (e->exists && !is_ours(e)) {
        int64_t look = e->config->renew_ms / 2;
        wait = free_ms(e) - now_ms;
        wait = wait > look ? look : wait;
    }
    if (wait <= 0) /* due, and it failed just now */
        wait = again;
    return wait > 0 ? wait : 1;
}

void election_lease(const struct election *e, enum election_move move,
                    const char *time, struct kube_lease *ret_lease)
{
    struct kube_lease lease = {0};
    if (e->exists)
        lease = e->seen;
    bool takes = move == ELECTION_CREATE || move == ELECTION_TAKE;
    if (takes)
        (void)snprintf(lease.acquired, sizeof lease.acquired, "%s", time);
    if (move == ELECTION_TAKE && lease.transitions < INT32_MAX)
        lease.transitions++;
    if (move != ELECTION_WAIT) {
        bool gives = move == ELECTION_RELEASE;
        (void)snprintf(lease.renewed, sizeof lease.renewed, "%s", time);
        (void)snprintf(lease.holder, sizeof lease.holder, "%s",
                       gives ? "" : e->config->identity);
        lease.duration_s =
            gives ? RELEASED_S
                  : (int32_t)((e->config->duration_ms + 999) / 1000);
    }
    *ret_lease = lease;
}

/* Of a lease that was made, the wait begins with the first renewal, which was
 * begun when it was surely there. */
void election_written(struct election *e, const struct kube_lease *written,
                      int64_t begun_ms)
{
    bool created = !e->exists || strcmp(e->seen.uid, written->uid) != 0;
    e->seen = *written;
    e->seen_ms = begun_ms;
    e->exists = true;
    if (!is_ours(e) || e->resigned) {
        e->leading = false;
        e->gives = e->gives && is_ours(e);
        return;
    }
    e->renewed_ms = begun_ms;
    if (created) {
        e->made = true;
        e->leading = false;
    } else if (!e->leading) {
        e->leading = true;
        e->from_ms = begun_ms + (e->made ? e->config->duration_ms : 0);
    } else if (begun_ms >= e->from_ms) {
        e->made = false;
    }
}

bool election_holds(const struct election *e, int64_t now_ms, int64_t call_ms)
{
    return e->leading && now_ms >= e->from_ms && call_ms >= 0 &&
           now_ms < e->renewed_ms + e->config->deadline_ms - call_ms;
}

/* One that is not held yet must not be given back: its taker would not wait
 * for the holder of the one before. */
void election_resign(struct election *e, int64_t now_ms)
{
    e->gives = is_ours(e) && e->leading && now_ms >= e->from_ms;
    e->leading = false;
    e->resigned = true;
}
