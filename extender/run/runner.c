#include "extender/run/runner.h"

#include <stdlib.h>
#include <string.h>

#include "extender/pods/pending_demands.h"
#include "extender/run/runner_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum {
    LOOKS_MAX = 1000, /* in a row, before others are let in */
    REST = 4,         /* times as long as it was busy, so that a fifth of one
                       * CPU is what it takes at most */
    REST_MAX_MS = 1000,
    FREED_MAX = 512, /* pods that give back their places in one transaction */
};

/* --- members ------------------------------------------------------------ */

bool member_is_over(const struct member *m)
{
    return m->pod->deleting || m->pod->ended != POD_STATE_PENDING;
}

bool member_has_job(const struct member *m)
{
    return m->pod->demand.job[0] && m->pod->demand.role != ROLE_SERVICE;
}

static int compare_groups(const struct member *a, const struct member *b)
{
    const struct demand *x = &a->pod->demand, *y = &b->pod->demand;
    int order = strcmp(x->namespace, y->namespace);
    bool job = member_has_job(a);
    if (order == 0)
        order = (int)job - (int)member_has_job(b);
    if (order == 0)
        order = job ? strcmp(x->job, y->job) : strcmp(x->name, y->name);
    return order;
}

static int compare_members(const void *p, const void *q)
{
    const struct member *a = p, *b = q;
    const struct demand *x = &a->pod->demand, *y = &b->pod->demand;
    int order = compare_groups(a, b);
    if (order == 0)
        order = (x->pair > y->pair) - (x->pair < y->pair);
    if (order == 0)
        order = (x->role != ROLE_HOST) - (y->role != ROLE_HOST);
    if (order == 0)
        order = (a->pod->number > b->pod->number) -
                (a->pod->number < b->pod->number);
    return order;
}

/* --- a look ------------------------------------------------------------- */

/* What is so now. */
struct now {
    const struct pod_store *store;
    struct pod_set *set;
    struct snapshot *snapshot;
};

static bool has_place(void *ctx, const char *uid, const char *node)
{
    struct now *now = ctx;
    if (!now->set) { /* newer than all that was said: see node_reports_prune() */
        now->set = applied_get(now->store->applied);
        now->snapshot = writer_snapshot(now->store->writer);
    }
    const struct allocation *a =
        alloc_index_find_uid(now->snapshot->allocations, uid);
    return a && strcmp(a->node, node) == 0 && pod_set_find_uid(now->set, uid);
}

/* A node may report on a pod after its place was given back.  Such a report
 * must not count when the pod is placed again, nor be kept for ever. */
static void prune_reports(struct look *l)
{
    struct now now = {.store = l->r->store};
    size_t n = 0;
    for (size_t i = 0; i < l->n_members; i++)
        n += l->members[i].told.state != POD_STATE_PENDING;
    if (node_reports_n_pods(now.store->reports) > n)
        node_reports_prune(now.store->reports, has_place, &now);
    snapshot_unref(now.snapshot);
    pod_set_unref(now.set);
}

static void look_init(struct look *l, struct runner *r)
{
    memset(l, 0, sizeof *l);
    l->r = r;
    l->due_ms = INT64_MAX;
    l->set = applied_get(r->store->applied);
    l->snapshot = writer_snapshot(r->store->writer);
    l->members = xcalloc(l->set->n_pods + 1, sizeof *l->members);
    for (size_t i = 0; i < l->set->n_pods; i++) {
        struct member *m = &l->members[l->n_members++];
        m->pod = l->set->pods[i];
        m->place = alloc_index_find_uid(l->snapshot->allocations, m->pod->uid);
        if (m->place)
            node_reports_get(r->store->reports, m->pod->uid, m->place->node,
                             &m->told);
    }
    prune_reports(l);
    qsort(l->members, l->n_members, sizeof *l->members, compare_members);
}

static void look_fini(struct look *l)
{
    look_flush(l);
    free(l->members);
    free(l->units);
    free(l->reports);
    free(l->changes);
    snapshot_unref(l->snapshot);
    pod_set_unref(l->set);
}

void look_tell(struct look *l, const struct member *m, enum pod_state state,
               const char *reason, const char *message)
{
    struct pod_status *s = pod_status_create(0);
    s->state = state;
    (void)snprintf(s->reason, sizeof s->reason, "%s", reason);
    (void)snprintf(s->message, sizeof s->message, "%s", message);
    if (pod_status_equal(s, m->pod->status)) {
        pod_status_unref(s);
        return;
    }
    l->reports = xgrow(l->reports, l->n_reports, &l->reports_cap,
                       sizeof *l->reports);
    l->reports[l->n_reports++] = (struct pod_report){m->pod->uid, s};
}

void look_flush(struct look *l)
{
    if (l->n_reports > 0)
        applied_set_statuses(l->r->store->applied, l->reports, l->n_reports);
    for (size_t i = 0; i < l->n_reports; i++)
        pod_status_unref(l->reports[i].status);
    l->n_reports = 0;
}

/* --- giving back -------------------------------------------------------- */

bool member_never_began(const struct look *l, const struct member *m)
{
    return m->place && m->told.state == POD_STATE_PENDING &&
           m->place->number > writer_fed(l->r->store->writer, m->place->node);
}

/* Nothing of it is left where it was, or ever was there. */
static bool is_to_free(const struct look *l, const struct member *m)
{
    return m->place && member_is_over(m) &&
           (m->told.state == POD_STATE_GONE || member_never_began(l, m));
}

static struct writer_op free_op(const struct member *m)
{
    return (struct writer_op){.kind = WRITER_FREE,
                              .namespace = m->pod->namespace,
                              .pod = m->pod->name,
                              .uid = m->pod->uid,
                              .unfed = m->told.state != POD_STATE_GONE,
                              .out = STR_INIT(STR_MAX_DEFAULT)};
}

/* Its place was asked back. */
static void look_freed(struct look *l, const struct member *m, int r)
{
    const struct pod_store *store = l->r->store;
    if (r == -EBUSY) /* its node was told meanwhile, and will say */
        return;
    if (r < 0 && r != -ENOENT) {
        l->failed = true;
        return;
    }
    l->acted = true;
    node_reports_forget(store->reports, m->pod->uid);
    if (store->demands)
        pending_demands_forget(store->demands, m->pod->namespace, m->pod->name);
    metrics_count(store->metrics, APP_RELEASES, r < 0 ? "unknown" : "released");
    log_event(LOG_INFO, "pod-gone", "namespace", m->pod->namespace, "pod",
              m->pod->name, "node", m->place->node, NULL);
}

static void look_free_some(struct look *l, const struct member *const *list,
                           size_t n)
{
    cleanup_free struct writer_op *ops = xcalloc(n + 1, sizeof *ops);
    for (size_t i = 0; i < n; i++)
        ops[i] = free_op(list[i]);
    writer_run_all(l->r->store->writer, ops, n);
    for (size_t i = 0; i < n; i++) {
        str_fini(&ops[i].out);
        look_freed(l, list[i], ops[i].result);
    }
}

/* All of a job in a few transactions. */
static void look_free(struct look *l)
{
    const struct member *list[FREED_MAX];
    size_t n = 0;
    for (size_t i = 0; i < l->n_members; i++) {
        if (!is_to_free(l, &l->members[i]))
            continue;
        list[n++] = &l->members[i];
        if (n == FREED_MAX) {
            look_free_some(l, list, n);
            n = 0;
        }
    }
    if (n > 0)
        look_free_some(l, list, n);
}

/* --- everything --------------------------------------------------------- */

static void each_group(struct look *l,
                       void (*visit)(struct look *l, const struct group *g))
{
    size_t end;
    for (size_t i = 0; i < l->n_members; i = end) {
        struct group g = {.members = l->members + i};
        for (end = i; end < l->n_members &&
                      compare_groups(&l->members[i], &l->members[end]) == 0;
             end++)
            if (l->members[end].pod->demand.size > g.size)
                g.size = l->members[end].pod->demand.size;
        g.n = end - i;
        visit(l, &g);
    }
}

/* Lives that are over first, so that those who wait find the room. */
static void look(struct look *l)
{
    look_free(l);
    if (!l->acted)
        each_group(l, look_end);
    if (!l->acted)
        look_roll(l);
    if (l->acted)
        return;
    if (!l->r->resumes)
        l->r->round++;
    each_group(l, look_pending);
    look_place(l);
}

bool runner_is_stopping(struct runner *r)
{
    hold_lock(&r->lock);
    return r->stopping;
}

int64_t runner_look(struct runner *r, bool *ret_acted)
{
    struct look l;
    look_init(&l, r);
    look(&l);
    bool acted = l.acted, failed = l.failed;
    int64_t due_ms = l.due_ms;
    r->tries += l.tries;
    look_fini(&l);
    *ret_acted = acted && !failed;
    return failed ? clock_ms() + RUNNER_RETRY_MS : due_ms;
}

/* Until nothing changes any more; when to look again whatever happens. */
static int64_t look_around(struct runner *r)
{
    for (unsigned i = 0; i < LOOKS_MAX && !runner_is_stopping(r); i++) {
        bool acted;
        int64_t due_ms = runner_look(r, &acted);
        if (!acted)
            return due_ms;
    }
    return clock_ms();
}

/* --- the thread --------------------------------------------------------- */

/* With the lock held.  However often nodes speak, looks do not take all the
 * time there is. */
static void rest(struct runner *r, int64_t busy_ns)
{
    int64_t ms = busy_ns * REST / 1000000;
    int64_t end_ms = clock_ms() + (ms < REST_MAX_MS ? ms : REST_MAX_MS);
    bool woken = true; /* which is for after the rest */
    while (woken && !r->stopping && clock_ms() < end_ms &&
           end_ms - clock_ms() <= REST_MAX_MS)
        woken = clock_wait(&r->wake, &r->lock, end_ms);
}

static void *runner_thread(void *ctx)
{
    struct runner *r = ctx;
    int64_t due_ms = INT64_MAX;
    pthread_mutex_lock(&r->lock);
    thread_name("runner", NULL);
    while (!r->stopping) {
        if (!r->dirty && clock_wait(&r->wake, &r->lock, due_ms))
            continue;
        if (r->stopping)
            break;
        r->dirty = false;
        r->looking = true;
        pthread_mutex_unlock(&r->lock);
        int64_t began_ns = clock_ns();
        due_ms = look_around(r);
        int64_t busy_ns = clock_ns() - began_ns;
        pthread_mutex_lock(&r->lock);
        r->looking = false;
        r->dirty |= due_ms <= 0; /* it is not through */
        pthread_cond_broadcast(&r->idle);
        rest(r, busy_ns);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

void runner_wake(struct runner *r)
{
    if (!r)
        return;
    hold_lock(&r->lock);
    r->dirty = true;
    pthread_cond_signal(&r->wake);
}

static void runner_changed(void *ctx)
{
    runner_wake(ctx);
}

void runner_settle(struct runner *r)
{
    runner_wake(r);
    hold_lock(&r->lock);
    while ((r->dirty || r->looking) && !r->stopping)
        (void)pthread_cond_wait(&r->idle, &r->lock); /* never fails */
}

int runner_start(const struct pod_store *store, struct runner **ret_runner,
                 struct error *err)
{
    struct runner *r = xcalloc(1, sizeof *r);
    r->store = store;
    r->dirty = true;
    /* none of these can fail on Linux */
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->idle, NULL);
    clock_wait_init(&r->wake);
    pthread_mutex_lock(&r->lock); /* the thread waits until all is set up */
    int rc = pthread_create(&r->thread, NULL, runner_thread, r);
    r->started = rc == 0;
    if (r->started) {
        applied_watch(store->applied, runner_changed, r);
        writer_watch(store->writer, runner_changed, r);
    }
    pthread_mutex_unlock(&r->lock);
    if (rc) {
        runner_destroy(r);
        return error_errno(err, rc, "starting the runner's thread");
    }
    *ret_runner = r;
    return 0;
}

void runner_stop(struct runner *r)
{
    if (!r || !r->started)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->wake);
    pthread_cond_broadcast(&r->idle);
    pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL); /* it was started, once */
    r->started = false;
}

void runner_destroy(struct runner *r)
{
    if (!r)
        return;
    runner_stop(r);
    strmap_fini_with(&r->stuck, free);
    strmap_fini_with(&r->waits, free);
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_cond_destroy(&r->idle);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
