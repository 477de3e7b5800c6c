/* When a remote is asked next, what, and what its health is then. */
#include <errno.h>
#include <stdio.h>

#include "lib/io/clock.h"
#include "router/remote/remote_private.h"

/* --- when, and what -------------------------------------------------------- */

static int64_t list_due(const struct remote *r)
{
    int64_t soon = r->begun_ms + REMOTE_GAP_MS;
    bool wanted = r->n_wanted > r->n_begun;
    return wanted && soon < r->list_ms ? soon : r->list_ms;
}

/* Nothing was done there, and all was listed a short time ago: then what its
 * containers are now says whether to look at the rest. */
static bool peek_will_do(const struct remote *r, int64_t now)
{
    return r->n_done > 0 && r->n_wanted <= r->n_begun && !r->stirred &&
           !r->lacking && !r->events && r->n_touched == 0 &&
           now - r->whole_ms < REMOTE_WHOLE_MS;
}

static int64_t stats_due(const struct remote *r, int64_t now)
{
    return now - r->stats_asked_ms < REMOTE_ASKED_MS ? r->stats_ms : INT64_MAX;
}

static int64_t next_due(const struct remote *r, int64_t now,
                        enum remote_verb *ret_verb)
{
    int64_t due = r->health.due_ms;
    *ret_verb = REMOTE_PROBE;
    if (r->health.now != ACT_READY)
        return due;
    if (stats_due(r, now) <= due) {
        *ret_verb = REMOTE_STATS;
        due = stats_due(r, now);
    }
    if (list_due(r) <= due || list_due(r) <= now) {
        due = list_due(r);
        *ret_verb = peek_will_do(r, due > now ? due : now) ? REMOTE_PEEK
                                                           : REMOTE_LIST;
    }
    return due;
}

int64_t remote_next_beat(int64_t begun_ms)
{
    return begun_ms - begun_ms % REMOTE_LIST_MS + REMOTE_LIST_MS;
}

/* --- and by whom ------------------------------------------------------------ */

static bool is_beat(const struct remote *r, enum remote_verb verb)
{
    return r->member && !r->own && r->health.now == ACT_READY &&
           (verb == REMOTE_PROBE || verb == REMOTE_PEEK);
}

int64_t remote_beat_due(const struct remote *r, int64_t now,
                        enum remote_verb *ret_verb)
{
    int64_t due = next_due(r, now, ret_verb);
    return is_beat(r, *ret_verb) && !r->asking && !r->stopping ? due
                                                               : INT64_MAX;
}

/* When a list is due that no peek can stand for. */
static int64_t whole_due(const struct remote *r)
{
    int64_t due = list_due(r);
    int64_t whole = remote_next_beat(r->whole_ms + REMOTE_WHOLE_MS - 1);
    return peek_will_do(r, due) && whole > due ? whole : due;
}

int64_t remote_own_due(const struct remote *r, int64_t now,
                       enum remote_verb *ret_verb)
{
    int64_t due = next_due(r, now, ret_verb);
    if (due <= now || !is_beat(r, *ret_verb))
        return due;
    const int64_t others[] = {stats_due(r, now), whole_due(r)};
    due += REMOTE_LATE_MS;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        due = others[i] < due ? others[i] : due;
    return due;
}

void remote_rouse(struct remote *r, bool now)
{
    enum remote_verb ignored;
    bool sooner = remote_own_due(r, clock_ms(), &ignored) < r->sleeps_ms;
    if (r->asking || (!now && !sooner))
        return;
    r->sleeps_ms = INT64_MIN;
    (void)pthread_cond_signal(&r->wake);
}

/* --- what it came to -------------------------------------------------------- */

void remote_begin(struct remote *r, struct remote_asked *ret_asked,
                  enum remote_verb verb, int64_t now)
{
    *ret_asked = (struct remote_asked){
        .verb = verb,
        .ms = (unsigned)health_deadline_ms(&r->health),
        .sent_ms = now,
    };
    r->asking = true;
    if (verb == REMOTE_PEEK || verb == REMOTE_LIST)
        r->begun_ms = now;
}

static void take_bad(struct remote *r, const struct remote_asked *a,
                     int64_t now)
{
    bool was_ready = r->health.now == ACT_READY;
    (void)snprintf(r->reason, sizeof r->reason, "%s", a->err.text);
    (void)health_bad(&r->health, a->sent_ms, now);
    if (was_ready)
        r->since_ms = now;
    if (r->health.now == ACT_LOST)
        remote_cut_calls(r);
}

static void take_peek(struct remote *r, const struct remote_asked *a,
                      int64_t now)
{
    bool same = a->sum == r->view->sum;
    r->list_ms = same ? remote_next_beat(r->begun_ms) : now;
    if (!same)
        r->n_wanted = r->n_begun + 1;
}

static void take_good(struct remote *r, const struct remote_asked *a,
                      int64_t now)
{
    bool was_ready = r->health.now == ACT_READY;
    (void)health_good(&r->health, now);
    if (a->verb == REMOTE_PEEK)
        take_peek(r, a, now);
    if (was_ready || r->health.now != ACT_READY)
        return;
    r->reason[0] = '\0';
    r->since_ms = now;
    r->list_ms = now;
    r->stats_ms = now;
    r->events = r->deaf = false;
}

void remote_judge(struct remote *r, const struct remote_asked *a, int64_t now)
{
    if (a->e < 0)
        take_bad(r, a, now);
    else
        take_good(r, a, now);
    r->judged = true;
    (void)pthread_cond_broadcast(&r->news);
}

/* VersionRequest: version "v1" */
struct proto_bytes remote_probe_request(void)
{
    return (struct proto_bytes){"\x0a\x02v1", 4};
}

/* An error that it tells is an answer, but for the one of a server that is no
 * runtime. */
int remote_probe_judge(int e, const struct grpc_end *end)
{
    return e == -EREMOTEIO && end->code != GRPC_UNIMPLEMENTED ? 0 : e;
}
