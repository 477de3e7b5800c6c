#include "extender/pods/applied.h"

#include <string.h>
#include <sys/random.h>

#include "extender/pods/applied_private.h"
#include "lib/base/refs.h"
#include "lib/io/clock.h"

/* --- the registry ----------------------------------------------------------- */

struct applied *applied_create(const struct demand_config *config)
{
    struct applied *p = xcalloc(1, sizeof *p);
    uint32_t first = 0;
    p->demand = *config;
    (void)pthread_mutex_init(&p->lock, NULL); /* cannot fail on Linux */
    p->set = xcalloc(1, sizeof *p->set);
    atomic_init(&p->set->refs, 1);
    (void)!getrandom(&first, sizeof first, 0); /* 0 will do, too */
    p->set->version = (uint64_t)first + 1;
    return p;
}

void applied_destroy(struct applied *p)
{
    if (!p)
        return;
    pod_set_unref(p->set);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

struct pod_set *applied_get(struct applied *p)
{
    hold_lock(&p->lock);
    return pod_set_ref(p->set);
}

uint64_t applied_version(struct applied *p)
{
    hold_lock(&p->lock);
    return p->set->version;
}

void applied_watch(struct applied *p, void (*changed)(void *ctx), void *ctx)
{
    if (p->n_watchers == APPLIED_WATCHERS_MAX)
        abort(); /* a mistake of ours */
    p->watchers[p->n_watchers].changed = changed;
    p->watchers[p->n_watchers++].ctx = ctx;
}

void applied_watch_gone(struct applied *p,
                        void (*gone)(void *ctx, const struct applied_pod *pod),
                        void *ctx)
{
    p->gone = gone;
    p->gone_ctx = ctx;
}

void applied_tell(const struct applied *p)
{
    for (size_t i = 0; i < p->n_watchers; i++)
        p->watchers[i].changed(p->watchers[i].ctx);
}

/* --- statuses ------------------------------------------------------------------ */

struct pod_status *pod_status_create(size_t n_containers)
{
    struct pod_status *s = xcalloc(1, sizeof *s);
    if (n_containers > APPLIED_CONTAINERS_MAX)
        n_containers = APPLIED_CONTAINERS_MAX;
    atomic_init(&s->refs, 1);
    s->n_containers = n_containers;
    s->containers = xcalloc(n_containers + 1, sizeof *s->containers);
    return s;
}

DEFINE_REF(pod_status_ref, struct pod_status)

void pod_status_unref(struct pod_status *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    free(s->containers);
    free(s);
}

static bool same_container(const struct pod_container *a,
                           const struct pod_container *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->state, b->state) == 0 &&
           a->exit_code == b->exit_code && a->restarts == b->restarts &&
           strcmp(a->reason, b->reason) == 0;
}

bool pod_status_equal(const struct pod_status *a, const struct pod_status *b)
{
    bool same = a->state == b->state && a->ready == b->ready &&
                a->ran == b->ran && a->attempt == b->attempt &&
                strcmp(a->reason, b->reason) == 0 &&
                strcmp(a->message, b->message) == 0 &&
                strcmp(a->address, b->address) == 0 &&
                a->n_containers == b->n_containers;
    for (size_t i = 0; same && i < a->n_containers; i++)
        same = same_container(&a->containers[i], &b->containers[i]);
    return same;
}

uint32_t pod_status_restarts(const struct pod_status *s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->n_containers; i++)
        n += s->containers[i].restarts;
    return n;
}

bool pod_status_has_exited(const struct pod_status *s, bool all_well)
{
    for (size_t i = 0; i < s->n_containers; i++) {
        const struct pod_container *c = &s->containers[i];
        bool exited = strcmp(c->state, "exited") == 0;
        if (all_well ? !exited || c->exit_code != 0 : exited)
            return !all_well;
    }
    return all_well && s->n_containers > 0;
}

/* A reason counts more: what could not be started has no exit code either. */
bool pod_status_has_succeeded(const struct pod_status *s)
{
    return *s->reason ? strcmp(s->reason, "Completed") == 0
                      : pod_status_has_exited(s, true);
}

static const char *const state_names[POD_STATES] = {
    [POD_STATE_PENDING] = "pending",     [POD_STATE_WANTED] = "wanted",
    [POD_STATE_PREPARING] = "preparing", [POD_STATE_PULLING] = "pulling",
    [POD_STATE_CREATING] = "creating",   [POD_STATE_RUNNING] = "running",
    [POD_STATE_STOPPING] = "stopping",   [POD_STATE_GONE] = "gone",
    [POD_STATE_FAILED] = "failed",
};

const char *pod_state_name(enum pod_state state)
{
    return (unsigned)state < POD_STATES ? state_names[state] : "";
}

const char *pod_result_name(enum pod_result result)
{
    static const char *const names[] = {
        [APPLIED_UNCHANGED] = "unchanged", [APPLIED_CREATED] = "created",
        [APPLIED_REPLACED] = "replaced",   [APPLIED_DELETED] = "deleted",
        [APPLIED_ENDED] = "ended",
    };
    return (unsigned)result < ARRAY_LEN(names) ? names[result] : "";
}

/* Why a pod is over is not forgotten for how it was then stopped. */
static struct pod_status *keep_end(const struct applied_pod *pod,
                                   struct pod_status *status)
{
    if (!pod->end ||
        (status->state != POD_STATE_FAILED && status->state != POD_STATE_GONE))
        return pod_status_ref(status);
    struct pod_status *s = pod_status_create(status->n_containers);
    s->state = status->state;
    s->ready = status->ready;
    s->ran = status->ran;
    s->attempt = status->attempt;
    memcpy(s->reason, pod->end->reason, sizeof s->reason);
    memcpy(s->message, pod->end->message, sizeof s->message);
    memcpy(s->address, status->address, sizeof s->address);
    memcpy(s->containers, status->containers,
           s->n_containers * sizeof *s->containers);
    return s;
}

/* When it began.  Of a pod that was stored, and runs as far as is told first,
 * nobody knows. */
static void note_start(struct applied_pod *p)
{
    enum pod_state state = p->status->state;
    p->watched |= state == POD_STATE_PENDING ||
                  (state > POD_STATE_WANTED && state < POD_STATE_RUNNING);
    if (state == POD_STATE_RUNNING && p->watched && !p->started_s)
        p->started_s = clock_wall_s();
}

/* With the lock held: 0 changed, 1 no news, -ENOENT. */
static int set_status(struct applied *p, const char *uid,
                      struct pod_status *told)
{
    const struct applied_pod *old = pod_set_find_uid(p->set, uid);
    if (!old)
        return -ENOENT;
    cleanup_with(pod_status) struct pod_status *status = keep_end(old, told);
    if (pod_status_equal(old->status, status))
        return 1;
    cleanup_with(applied_pod) struct applied_pod *fresh = applied_pod_copy(old);
    struct pod_set *set = applied_writable(p);
    pod_status_unref(fresh->status);
    fresh->status = steal(&status);
    note_start(fresh);
    fresh->version = set->version;
    pod_set_put(set, fresh);
    return 0;
}

int applied_set_status(struct applied *p, const char *uid,
                       struct pod_status *status)
{
    pthread_mutex_lock(&p->lock);
    int r = set_status(p, uid, status);
    pthread_mutex_unlock(&p->lock);
    if (r == 0)
        applied_tell(p);
    return r < 0 ? r : 0;
}

void applied_set_statuses(struct applied *p, const struct pod_report *list,
                          size_t n)
{
    bool news = false;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++)
        news |= set_status(p, list[i].uid, list[i].status) == 0;
    pthread_mutex_unlock(&p->lock);
    if (news)
        applied_tell(p);
}
