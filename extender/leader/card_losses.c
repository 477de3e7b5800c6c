#include "extender/leader/card_losses.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "model/pod/patience.h"

struct member {
    char uid[DEMAND_UID_MAX + 1];
    char *namespace, *name, *node;
    int64_t patience_s;
    bool lost;       /* its condition says so */
    int64_t since_s; /* then: since when */
    /* Until then what we wrote is the truth, and not what the watch shows,
     * unless that agrees. */
    int64_t shown_ms;
    enum card_losses_kind tried;
    int64_t retry_ms; /* it is not tried again before */
    unsigned failures;
};

struct card_losses {
    struct strmap pods; /* by uid */
    int64_t patience_s;
    size_t at; /* of the round */
    int64_t due_ms;
    bool going, changed;
};

struct card_losses *card_losses_create(int64_t patience_s)
{
    struct card_losses *c = xcalloc(1, sizeof *c);
    c->patience_s = patience_s;
    return c;
}

static void member_destroy(void *member)
{
    struct member *m = member;
    free(m->namespace);
    free(m->name);
    free(m->node);
    free(m);
}

void card_losses_destroy(struct card_losses *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->pods, member_destroy);
    free(c);
}

/* --- the pods ------------------------------------------------------------- */

/* One that is ending, or has ended, is where it was wanted. */
static bool is_ours(const struct kube_pod *pod)
{
    bool on_card = pod->demand.role == ROLE_XPU ||
                   pod->demand.role == ROLE_SERVICE;
    return !pod->broken && on_card && pod->node[0] && !pod->deleting &&
           !kube_pod_is_finished(pod);
}

static struct member *member_get(struct card_losses *c,
                                 const struct kube_pod *pod)
{
    const struct demand *d = &pod->demand;
    struct member *m = strmap_get(&c->pods, d->uid);
    if (m)
        return m;
    m = xcalloc(1, sizeof *m);
    memcpy(m->uid, d->uid, sizeof m->uid);
    m->namespace = xstrdup(d->namespace);
    m->name = xstrdup(d->name);
    m->node = xstrdup(pod->node);
    (void)strmap_put(&c->pods, m->uid, m);
    return m;
}

void card_losses_put(struct card_losses *c, const struct kube_pod *pod,
                     int64_t now_ms)
{
    if (!is_ours(pod)) {
        card_losses_gone(c, pod->demand.uid);
        return;
    }
    struct member *m = member_get(c, pod);
    bool lost = pod->card_lost == 1;
    c->changed = true;
    m->patience_s = pod->patience_s >= 0 ? pod->patience_s : c->patience_s;
    if (lost != m->lost && now_ms < m->shown_ms)
        return;
    m->lost = lost;
    m->since_s = lost ? clock_parse_utc(pod->card_since) : 0;
    m->shown_ms = 0;
}

void card_losses_gone(struct card_losses *c, const char *uid)
{
    struct member *m = strmap_remove(&c->pods, uid);
    if (!m)
        return;
    c->changed = true;
    member_destroy(m);
}

size_t card_losses_n_pods(const struct card_losses *c)
{
    return c->pods.n;
}

size_t card_losses_n_lost(const struct card_losses *c)
{
    size_t pos = 0, n = 0;
    for (const struct member *m; (m = strmap_next(&c->pods, &pos));)
        n += m->lost;
    return n;
}

/* --- what is to be done --------------------------------------------------- */

static void soon(struct card_losses *c, int64_t due_ms)
{
    if (due_ms < c->due_ms)
        c->due_ms = due_ms;
}

static void fill(const struct member *m, enum card_losses_kind kind,
                 struct card_losses_action *a)
{
    memset(a, 0, sizeof *a);
    a->kind = kind;
    memcpy(a->namespace, m->namespace, strlen(m->namespace) + 1);
    memcpy(a->name, m->name, strlen(m->name) + 1);
    memcpy(a->uid, m->uid, sizeof a->uid);
}

static const char *describe(enum card_sight sight)
{
    return sight == CARD_SIGHT_GONE ? "is not in the node any more"
                                    : "does not answer";
}

static bool tell_lost(const struct member *m, enum card_sight sight,
                      const char *card, struct card_losses_action *a)
{
    char until[64];
    fill(m, CARD_LOSSES_LOST, a);
    a->reason = sight == CARD_SIGHT_GONE ? "NoSuchCard" : "CardLost";
    if (m->patience_s == PATIENCE_NEVER)
        (void)snprintf(until, sizeof until, "stays however long that lasts");
    else
        (void)snprintf(until, sizeof until,
                       "is evicted when that has lasted %" PRId64 " s",
                       m->patience_s);
    (void)snprintf(a->text, sizeof a->text,
                   "%s on %s %s: the pod is shown as last known, may still "
                   "run, and %s (annotation " PATIENCE_KEY ")",
                   card, m->node, describe(sight), until);
    return true;
}

static bool tell_back(const struct member *m, struct card_losses_action *a)
{
    fill(m, CARD_LOSSES_BACK, a);
    a->reason = "CardAnswers";
    (void)snprintf(a->text, sizeof a->text, "its card on %s answers again",
                   m->node);
    return true;
}

/* A time that cannot be read begins anew with the next telling. */
static bool evict(struct card_losses *c, struct member *m,
                  enum card_sight sight, const char *card,
                  const struct card_losses_view *v,
                  struct card_losses_action *a)
{
    if (m->since_s < 0)
        return tell_lost(m, sight, card, a);
    if (m->patience_s == PATIENCE_NEVER)
        return false;
    int64_t lasted_s = v->now_s - m->since_s;
    if (lasted_s < m->patience_s) {
        soon(c, v->now_ms + (m->patience_s - lasted_s) * 1000);
        return false;
    }
    fill(m, CARD_LOSSES_EVICT, a);
    a->reason = "CardLostEvicted";
    (void)snprintf(a->text, sizeof a->text,
                   "%s on %s %s, since %" PRId64 " s; the pod tolerates "
                   "%" PRId64 " s (annotation " PATIENCE_KEY ")",
                   card, m->node, describe(sight), lasted_s, m->patience_s);
    return true;
}

static bool is_due(struct card_losses *c, struct member *m,
                   const struct card_losses_view *v,
                   struct card_losses_action *a)
{
    char card[TOPO_ID_MAX + 1];
    enum card_sight sight = v->look(v->ctx, m->uid, card);
    if (sight == CARD_SIGHT_NONE)
        return false;
    if (sight == CARD_SIGHT_THERE)
        return m->lost && tell_back(m, a);
    return m->lost ? evict(c, m, sight, card, v, a)
                   : tell_lost(m, sight, card, a);
}

static bool judge(struct card_losses *c, struct member *m,
                  const struct card_losses_view *v,
                  struct card_losses_action *a)
{
    if (!is_due(c, m, v, a))
        return false;
    a->at_s = v->now_s;
    if (a->kind != m->tried || v->now_ms >= m->retry_ms)
        return true;
    soon(c, m->retry_ms);
    return false;
}

bool card_losses_next(struct card_losses *c, const struct card_losses_view *v,
                      struct card_losses_action *ret_action,
                      int64_t *ret_due_ms)
{
    if (!c->going) {
        c->at = 0;
        c->due_ms = INT64_MAX;
        c->changed = false;
        c->going = true;
    }
    for (struct member *m; (m = strmap_next(&c->pods, &c->at));)
        if (judge(c, m, v, ret_action))
            return true;
    c->going = false;
    /* one that came during the round may have been passed over */
    *ret_due_ms = c->changed ? v->now_ms : c->due_ms;
    return false;
}

void card_losses_report(struct card_losses *c,
                        const struct card_losses_action *a, int result,
                        int64_t now_ms)
{
    struct member *m = strmap_get(&c->pods, a->uid);
    if (!m)
        return;
    c->changed = true;
    m->failures = a->kind == m->tried ? m->failures : 0;
    m->tried = a->kind;
    if (result < 0 && result != -ENOENT) {
        m->failures++;
        m->retry_ms = now_ms + backoff_grown(CARD_LOSSES_RETRY_MS,
                                             CARD_LOSSES_RETRY_MAX_MS,
                                             m->failures);
        return;
    }
    m->failures = 0;
    if (result == -ENOENT || a->kind == CARD_LOSSES_EVICT) {
        m->retry_ms = now_ms + CARD_LOSSES_SHOWN_MS;
        return;
    }
    m->retry_ms = 0;
    m->lost = a->kind == CARD_LOSSES_LOST;
    m->since_s = m->lost ? a->at_s : 0;
    m->shown_ms = now_ms + CARD_LOSSES_SHOWN_MS;
}
