#include "extender/leader/waiting_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/kube/client.h"

struct entry {
    char uid[DEMAND_UID_MAX + 1];
    int64_t priority;
    uint64_t turn;   /* counts up in the order of arrival */
    bool aside;      /* kube-scheduler has put it aside */
    bool refused;    /* by the last filter, which named `named` */
    bool fresh;      /* filter was asked, and it was not judged since */
    uint64_t asked;  /* the snapshot of that filter */
    uint64_t judged; /* the snapshot of the last judgement */
    bool ripe;       /* it is to be woken, for: */
    bool fits_named; /* it fits one of `named` */
    size_t fitting;  /* nodes it fitted when it was not ripe */
    struct candidates *named;
    unsigned unheard; /* wakes since the last filter */
    bool told;        /* the API server took the last of them */
    int64_t woken_ms;
    unsigned wakes;
    int64_t not_before_ms;
};

struct waiting_pods {
    struct strmap pods; /* by uid */
    size_t n_ripe;
    uint64_t turn;
};

struct waiting_pods *waiting_pods_create(void)
{
    return xcalloc(1, sizeof(struct waiting_pods));
}

static void entry_free(void *entry)
{
    struct entry *e = entry;
    candidates_unref(e->named);
    free(e);
}

void waiting_pods_destroy(struct waiting_pods *w)
{
    if (!w)
        return;
    strmap_fini_with(&w->pods, entry_free);
    free(w);
}

static void set_ripe(struct waiting_pods *w, struct entry *e, bool ripe)
{
    w->n_ripe += (size_t)ripe - (size_t)e->ripe;
    e->ripe = ripe;
}

/* Forget the last judgement. */
static void judge_anew(struct waiting_pods *w, struct entry *e)
{
    set_ripe(w, e, false);
    e->judged = 0;
}

/* --- what is heard ------------------------------------------------------- */

void waiting_pods_gone(struct waiting_pods *w, const char *uid)
{
    struct entry *e = strmap_remove(&w->pods, uid);
    if (!e)
        return;
    set_ripe(w, e, false);
    entry_free(e);
}

void waiting_pods_put(struct waiting_pods *w, const struct kube_pod *pod)
{
    const struct demand *d = &pod->demand;
    struct entry *e = strmap_get(&w->pods, d->uid);
    if (pod->broken || pod->node[0] || pod->deleting || pod->gated ||
        kube_pod_is_finished(pod) || d->role == ROLE_NONE) {
        waiting_pods_gone(w, d->uid);
        return;
    }
    if (!e && w->pods.n >= WAITING_PODS_MAX)
        return;
    if (!e) {
        e = xcalloc(1, sizeof *e);
        memcpy(e->uid, d->uid, sizeof e->uid);
        e->turn = w->turn++;
        (void)strmap_put(&w->pods, e->uid, e);
    }
    e->priority = d->priority;
    e->aside = pod->unschedulable;
    if (!e->aside)
        judge_anew(w, e);
}

void waiting_pods_asked(struct waiting_pods *w, const char *uid,
                        uint64_t number, bool refused, struct candidates *named)
{
    struct entry *e = strmap_get(&w->pods, uid);
    if (!e) /* the watch is behind and will show the pod later */
        return;
    candidates_unref(e->named);
    e->named = refused ? candidates_ref(named) : NULL;
    e->refused = refused;
    e->fresh = true;
    e->asked = number;
    e->unheard = 0;
    judge_anew(w, e);
}

void waiting_pods_again(struct waiting_pods *w)
{
    size_t pos = 0;
    for (struct entry *e; (e = strmap_next(&w->pods, &pos));) {
        candidates_unref(e->named);
        e->named = NULL;
        e->refused = e->fresh = false;
        e->unheard = 0;
        e->asked = e->fitting = 0;
        judge_anew(w, e);
    }
}

/* --- judging -------------------------------------------------------------- */

static int compare_rank(const void *a, const void *b)
{
    const struct waiting_pods_pod *x = a, *y = b;
    if (x->refused != y->refused)
        return x->refused ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->turn < y->turn ? -1 : x->turn > y->turn;
}

static struct waiting_pods_pod rank_of(const struct entry *e, bool refused)
{
    struct waiting_pods_pod pod = {
        .refused = refused, .priority = e->priority, .turn = e->turn};
    memcpy(pod.uid, e->uid, sizeof pod.uid);
    return pod;
}

struct waiting_pods_pod *waiting_pods_list(const struct waiting_pods *w,
                                           uint64_t number, size_t *ret_n)
{
    struct waiting_pods_pod *list = xcalloc(w->pods.n + 1, sizeof *list);
    size_t n = 0, pos = 0;
    for (const struct entry *e; (e = strmap_next(&w->pods, &pos));) {
        if (e->aside && e->judged < number)
            list[n++] = rank_of(e, e->refused);
    }
    qsort(list, n, sizeof *list, compare_rank);
    *ret_n = n;
    return list;
}

struct candidates *waiting_pods_named(const struct waiting_pods *w,
                                      const char *uid)
{
    const struct entry *e = strmap_get(&w->pods, uid);
    return e ? candidates_ref(e->named) : NULL;
}

/* Is there room now that there was not?  Not if filter has already answered
 * with this snapshot or a newer one. */
static bool is_news(const struct entry *e, const struct waiting_pods_verdict *v,
                    int64_t now_ms)
{
    if (e->asked >= v->number)
        return false;
    if (e->refused && !e->unheard && v->fits_named)
        return true;
    bool rests = e->unheard &&
                 now_ms - e->woken_ms <
                     backoff_grown(WAITING_PODS_UNHEARD_MS,
                                   WAITING_PODS_UNHEARD_MAX_MS, e->unheard);
    return !e->fresh && !rests && v->fitting > e->fitting;
}

static void settle(struct waiting_pods *w, struct entry *e,
                   const struct waiting_pods_verdict *v)
{
    e->fitting = v->fitting;
    e->fresh = false;
    set_ripe(w, e, false);
}

int64_t waiting_pods_judge(struct waiting_pods *w, const char *uid,
                           const struct waiting_pods_verdict *verdict,
                           int64_t now_ms)
{
    struct entry *e = strmap_get(&w->pods, uid);
    if (!e || !e->aside)
        return INT64_MAX;
    e->judged = verdict->number;
    e->fits_named = e->refused && verdict->fits_named;
    if (!is_news(e, verdict, now_ms)) {
        settle(w, e, verdict);
        return INT64_MAX;
    }
    set_ripe(w, e, true);
    return e->not_before_ms;
}

bool waiting_pods_next(const struct waiting_pods *w, int64_t now_ms,
                       struct waiting_pods_pod *ret_pod, int64_t *ret_due_ms)
{
    bool any = false;
    int64_t due_ms = INT64_MAX;
    size_t pos = 0, left = w->n_ripe;
    for (const struct entry *e; left && (e = strmap_next(&w->pods, &pos));) {
        if (!e->ripe)
            continue;
        left--;
        if (e->not_before_ms > now_ms) {
            due_ms = e->not_before_ms < due_ms ? e->not_before_ms : due_ms;
            continue;
        }
        struct waiting_pods_pod pod = rank_of(e, e->fits_named);
        if (!any || compare_rank(&pod, ret_pod) < 0)
            *ret_pod = pod;
        any = true;
    }
    if (!any)
        *ret_due_ms = due_ms;
    return any;
}

/* May the same call succeed later?  One refused for good counts as a wake that
 * had no effect. */
static bool is_for_later(int result)
{
    return kube_error_passes(result) || result == -EBUSY || result == -EPERM;
}

void waiting_pods_woken(struct waiting_pods *w, const char *uid,
                        const struct waiting_pods_verdict *verdict, int result,
                        int64_t now_ms)
{
    struct entry *e = strmap_get(&w->pods, uid);
    if (!e)
        return;
    e->wakes++;
    e->not_before_ms = now_ms + backoff_grown(WAITING_PODS_PAUSE_MIN_MS,
                                              WAITING_PODS_PAUSE_MAX_MS,
                                              e->wakes);
    /* kube-scheduler may have asked again before our call was answered */
    if (is_for_later(result) || e->asked >= verdict->number)
        return;
    settle(w, e, verdict);
    e->unheard++;
    e->told = result == 0;
    e->woken_ms = now_ms;
}

void waiting_pods_state(const struct waiting_pods *w, const char *uid,
                        struct waiting_pods_state *ret_state)
{
    const struct entry *e = strmap_get(&w->pods, uid);
    ret_state->aside = e && e->aside;
    ret_state->refused = e && e->refused;
    ret_state->woken_ms = e && e->unheard && e->told ? e->woken_ms : -1;
}
