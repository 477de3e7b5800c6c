#include "extender/cluster/cluster_ps.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/job_states.h"
#include "extender/pods/pod_labels.h"
#include "lib/base/lower_bound.h"
#include "lib/base/refs.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"

enum {
    WORD_MAX = 63, /* bytes of a reason */
    TEXT_MAX = 1024,
};

/* Some of the pods, in an order of theirs. */
struct order {
    struct cluster_ps_pod **list;
    size_t n, cap;
};
enum order_kind {
    BY_NAME,   /* all */
    BY_JOB,    /* those of jobs, no services */
    UNSETTLED, /* those that neither run nor are over, by name */
    ORDERS
};

struct cluster_ps {
    pthread_mutex_t lock;
    struct strmap pods; /* by uid */
    struct order orders[ORDERS];
    uint8_t *job_states; /* of BY_JOB (job_states.h) */
    size_t job_states_cap;
    uint64_t version;
    struct ended_jobs *ended;
};

void cluster_ps_pod_unref(struct cluster_ps_pod *p)
{
    if (!p || !refs_drop(&p->refs))
        return;
    char *const texts[] = {p->namespace, p->name,    p->uid,
                           p->job,       p->node,    p->reason,
                           p->message,   p->address, p->labels};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    free(p);
}

/* --- what is said of it --------------------------------------------------- */

static char *take_text(const struct jtext *text, size_t max)
{
    if (!text->data)
        return xstrdup("");
    cleanup_free char *plain = xmalloc(text->size + 1);
    size_t size = jtext_decode(text, plain);
    return xstrndup(plain, size < max ? size : max);
}

/* The word that biga-cri begins an error with, which the kubelet tells behind
 * its own words: "… desc = ImageArch: image … is for …".  Its size; 0: none. */
static size_t word_at(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]))
        n++;
    bool is_word = n > 0 && n <= WORD_MAX && isupper((unsigned char)text[0]) &&
                   strncmp(text + n, ": ", 2) == 0;
    return is_word ? n : 0;
}

static void find_word(struct cluster_ps_pod *p)
{
    static const char before[] = "desc = ";
    const char *at = p->message;
    while ((at = strstr(at, before))) {
        at += sizeof before - 1;
        size_t n = word_at(at);
        if (n == 0)
            continue;
        char *reason = xstrndup(at, n), *message = xstrdup(at + n + 2);
        free(p->reason);
        free(p->message);
        p->reason = reason;
        p->message = message;
        return;
    }
}

static enum pod_state state_of(const struct kube_pod *pod)
{
    if (pod->phase == POD_SUCCEEDED)
        return POD_STATE_GONE;
    if (pod->phase == POD_FAILED)
        return POD_STATE_FAILED;
    if (pod->deleting)
        return POD_STATE_STOPPING;
    if (!pod->node[0])
        return POD_STATE_PENDING;
    return pod->phase == POD_RUNNING ? POD_STATE_RUNNING : POD_STATE_CREATING;
}

static void take_reason(struct cluster_ps_pod *p, const struct kube_pod *pod)
{
    bool lost = pod->card_lost == 1 && !kube_pod_is_finished(pod);
    p->message = take_text(lost ? &pod->card_text : &pod->message, TEXT_MAX);
    if (lost) {
        p->reason = xstrdup("CardLost");
        return;
    }
    p->reason = take_text(&pod->reason, WORD_MAX);
    find_word(p);
    if (p->reason[0])
        return;
    free(p->reason);
    p->reason = xstrdup(pod->unschedulable && !pod->node[0] ? "NoPlace"
                        : pod->deleting                     ? "Deleting"
                                                            : "");
}

static int64_t time_of(const char *text)
{
    int64_t s = *text ? clock_parse_utc(text) : 0;
    return s > 0 ? s : 0;
}

/* startTime is when the kubelet took it, so of one that is up or was. */
static void take_times(struct cluster_ps_pod *p, const struct kube_pod *pod)
{
    bool over = kube_pod_is_finished(pod);
    p->created_s = time_of(pod->created);
    if (pod->phase == POD_RUNNING || over)
        p->started_s = time_of(pod->started);
    if (over)
        p->finished_s = time_of(pod->finished);
}

static struct cluster_ps_pod *pod_create(const struct kube_pod *pod)
{
    const struct demand *d = &pod->demand;
    const struct jtext labels = pod_labels_find(pod->json.data, pod->json.size);
    struct cluster_ps_pod *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    p->namespace = xstrdup(d->namespace);
    p->name = xstrdup(d->name);
    p->uid = xstrdup(d->uid);
    p->job = xstrdup(d->job);
    p->node = xstrdup(pod->node);
    p->address = take_text(&pod->address, WORD_MAX);
    p->labels = xstrndup(labels.data, labels.size);
    p->role = d->role;
    p->pair = d->pair;
    p->size = d->size;
    p->state = state_of(pod);
    p->restarts = pod->restarts;
    p->ready = pod->ready;
    p->deleting = pod->deleting;
    p->gated = pod->place_gate;
    take_reason(p, pod);
    take_times(p, pod);
    p->waits = p->state == POD_STATE_PENDING &&
               (pod->place_gate || pod->unschedulable || !p->reason[0]);
    if (pod->broken && p->waits) {
        p->waits = false;
        free(p->reason);
        free(p->message);
        p->reason = xstrdup("Refused");
        p->message = xstrdup(pod->why.text);
    }
    return p;
}

static struct job_pod job_pod_of(const struct cluster_ps_pod *p)
{
    return (struct job_pod){
        .namespace = p->namespace,
        .name = p->name,
        .uid = p->uid,
        .job = p->job,
        .role = p->role,
        .pair = p->pair,
        .size = p->size,
        .state = p->state,
        .ready = p->ready,
        .deleting = p->deleting,
        .gated = p->gated,
        .told = !p->waits,
        .reason = p->reason,
        .message = p->message,
        .submitted_s = p->created_s,
        .started_s = p->started_s,
        .ended_s = p->finished_s,
    };
}

/* --- in order ------------------------------------------------------------- */

static int compare(const char *namespace, const char *name,
                   const char *to_namespace, const char *to_name)
{
    int order = strcmp(namespace, to_namespace);
    return order ? order : strcmp(name, to_name);
}

/* By namespace and name, or job. */
static int compare_key(enum order_kind kind, const struct cluster_ps_pod *p,
                       const char *namespace, const char *key)
{
    return compare(p->namespace, kind == BY_JOB ? p->job : p->name, namespace,
                   key);
}

static int compare_pods(enum order_kind kind, const struct cluster_ps_pod *a,
                        const struct cluster_ps_pod *b)
{
    int order = compare_key(kind, a, b->namespace,
                            kind == BY_JOB ? b->job : b->name);
    if (order == 0)
        order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->uid, b->uid);
}

static bool has(enum order_kind kind, const struct cluster_ps_pod *p)
{
    if (!p)
        return false;
    if (kind == BY_JOB)
        return p->job[0] && p->role != ROLE_SERVICE;
    return kind == BY_NAME || pod_state_is_unsettled(p->state);
}

static size_t place_of(const struct order *o, enum order_kind kind,
                       const struct cluster_ps_pod *p)
{
    return lower_bound(o->n, i, compare_pods(kind, o->list[i], p) < 0);
}

/* The first that is not below; `past`: that is above. */
static size_t first_of(const struct order *o, enum order_kind kind,
                       const char *namespace, const char *key, bool past)
{
    return lower_bound(o->n, i,
                       compare_key(kind, o->list[i], namespace, key) < past);
}

static void put_state(struct cluster_ps *c, size_t at,
                      const struct cluster_ps_pod *p)
{
    const struct order *o = &c->orders[BY_JOB]; /* without it */
    size_t first = first_of(o, BY_JOB, p->namespace, p->job, false);
    bool others = first < o->n && compare_key(BY_JOB, o->list[first],
                                              p->namespace, p->job) == 0;
    c->job_states = xgrow(c->job_states, o->n, &c->job_states_cap, 1);
    job_states_insert(c->job_states, o->n, at, (uint8_t)p->state,
                      job_place_of(at, first, others));
}

static void order_remove(struct cluster_ps *c, enum order_kind kind,
                         const struct cluster_ps_pod *p)
{
    struct order *o = &c->orders[kind];
    size_t at = place_of(o, kind, p);
    if (kind == BY_JOB)
        job_states_remove(c->job_states, o->n, at);
    ordered_remove(o->list, o->n--, sizeof(*o->list), at);
}

static void order_insert(struct cluster_ps *c, enum order_kind kind,
                         struct cluster_ps_pod *p)
{
    struct order *o = &c->orders[kind];
    size_t at = place_of(o, kind, p);
    if (kind == BY_JOB)
        put_state(c, at, p);
    o->list = xgrow(o->list, o->n, &o->cap, sizeof(*o->list));
    ordered_insert(o->list, o->n++, sizeof(*o->list), at, &p);
}

/* One pod in place of another; NULL: of none, or by none. */
static void order_swap(struct cluster_ps *c, enum order_kind kind,
                       struct cluster_ps_pod *old, struct cluster_ps_pod *p)
{
    struct order *o = &c->orders[kind];
    bool had = has(kind, old), enters = has(kind, p);
    if (had && enters && compare_pods(kind, old, p) == 0) {
        size_t at = place_of(o, kind, old);
        o->list[at] = p;
        if (kind == BY_JOB)
            job_states_set(c->job_states, at, (uint8_t)p->state);
        return;
    }
    if (had)
        order_remove(c, kind, old);
    if (enters)
        order_insert(c, kind, p);
}

/* --- what is heard -------------------------------------------------------- */

static void replace(struct cluster_ps *c, const char *uid,
                    struct cluster_ps_pod *p)
{
    hold_lock(&c->lock);
    c->version++;
    struct cluster_ps_pod *old = strmap_remove(&c->pods, uid);
    if (p)
        (void)strmap_put(&c->pods, p->uid, p);
    for (enum order_kind kind = 0; kind < ORDERS; kind++)
        order_swap(c, kind, old, p);
    if (old && !p) {
        const struct job_pod last = job_pod_of(old);
        ended_jobs_add(c->ended, &last, clock_wall_s());
    }
    cluster_ps_pod_unref(old);
}

static void on_put(void *ctx, const struct kube_pod *pod)
{
    replace(ctx, pod->demand.uid, pod_create(pod));
}

static void on_gone(void *ctx, const char *uid)
{
    replace(ctx, uid, NULL);
}

struct pod_listener cluster_ps_listener(struct cluster_ps *c)
{
    return (struct pod_listener){.put = on_put, .gone = on_gone, .ctx = c};
}

/* --- what is asked -------------------------------------------------------- */

static DEFINE_REF(take_ref, struct cluster_ps_pod)

    static bool passes(const struct cluster_ps_filter *f,
                       const struct cluster_ps_pod *p)
{
    return scope_sees(f->scope, p->namespace) &&
           (!f->node || strcmp(p->node, f->node) == 0) &&
           (!f->job || strcmp(p->job, f->job) == 0) &&
           (f->state == POD_STATES || f->state == p->state);
}

/* Where that begins, whatever else it asks for. */
static size_t filter_from(const struct order *o,
                          const struct cluster_ps_filter *f)
{
    size_t from = f->namespace ? first_of(o, BY_NAME, f->namespace, "", false)
                               : 0;
    size_t after = f->after_namespace ? first_of(o, BY_NAME, f->after_namespace,
                                                 f->after_name, true)
                                      : 0;
    return from > after ? from : after;
}

struct cluster_ps_pod **cluster_ps_list(struct cluster_ps *c,
                                        const struct cluster_ps_filter *f,
                                        size_t *ret_n)
{
    const struct order *o = &c->orders[BY_NAME];
    size_t n = 0, cap = 0;
    struct cluster_ps_pod **list = NULL;
    hold_lock(&c->lock);
    for (size_t i = filter_from(o, f); i < o->n && n < f->most; i++) {
        if (f->namespace && strcmp(o->list[i]->namespace, f->namespace) != 0)
            break;
        if (!passes(f, o->list[i]))
            continue;
        list = xgrow(list, n, &cap, sizeof *list);
        list[n++] = take_ref(o->list[i]);
    }
    *ret_n = n;
    return list;
}

/* Those from an index on that are asked for, a reference to each. */
static struct cluster_ps_pod **
list_asked(struct cluster_ps *c, const struct pods_asked *asked, size_t *ret_n)
{
    enum order_kind kind = asked->job         ? BY_JOB
                           : asked->unsettled ? UNSETTLED
                                              : BY_NAME;
    hold_lock(&c->lock);
    const struct order *o = &c->orders[kind];
    size_t from = 0, end = o->n;
    if (asked->namespace)
        from = first_of(o, kind, asked->namespace, asked->job ? asked->job : "",
                        false);
    if (asked->job)
        end = first_of(o, kind, asked->namespace, asked->job, true);
    struct cluster_ps_pod **list = xcalloc(end - from + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = from; i < end; i++) {
        if (asked->namespace &&
            strcmp(o->list[i]->namespace, asked->namespace) != 0)
            break;
        list[n++] = take_ref(o->list[i]);
    }
    *ret_n = n;
    return list;
}

void cluster_ps_each(struct cluster_ps *c, const struct pods_asked *asked,
                     job_pod_f *visit, void *arg)
{
    size_t n;
    struct cluster_ps_pod **list = list_asked(c, asked, &n);
    for (size_t i = 0; i < n; i++) {
        const struct job_pod told = job_pod_of(list[i]);
        visit(arg, &told);
        cluster_ps_pod_unref(list[i]);
    }
    free(list);
}

void cluster_ps_each_job(struct cluster_ps *c, const struct job_name *behind,
                         size_t most, job_name_f *visit, void *arg)
{
    hold_lock(&c->lock);
    const struct order *o = &c->orders[BY_JOB];
    size_t at = first_of(o, BY_JOB, behind->namespace, behind->name, true);
    for (size_t n = 0; n < most && at < o->n; n++) {
        const struct cluster_ps_pod *p = o->list[at];
        size_t end = job_states_end(c->job_states, o->n, at);
        visit(arg, &(struct job_name){p->namespace, p->job},
              job_states_of(c->job_states, at, end));
        at = end;
    }
}

uint64_t cluster_ps_version(struct cluster_ps *c)
{
    hold_lock(&c->lock);
    return c->version;
}

struct ended_jobs *cluster_ps_ended(struct cluster_ps *c)
{
    return c->ended;
}

struct cluster_ps_pod *cluster_ps_find(struct cluster_ps *c,
                                       const char *namespace, const char *name)
{
    hold_lock(&c->lock);
    const struct order *o = &c->orders[BY_NAME];
    size_t i = first_of(o, BY_NAME, namespace, name, false);
    bool found = i < o->n &&
                 compare_key(BY_NAME, o->list[i], namespace, name) == 0;
    return found ? take_ref(o->list[i]) : NULL;
}

/* --- from start to end ---------------------------------------------------- */

struct cluster_ps *cluster_ps_create(void)
{
    struct cluster_ps *c = xcalloc(1, sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail on Linux */
    c->ended = ended_jobs_create();
    return c;
}

static void destroy_pod(void *pod)
{
    cluster_ps_pod_unref(pod);
}

void cluster_ps_destroy(struct cluster_ps *c)
{
    if (!c)
        return;
    for (enum order_kind kind = 0; kind < ORDERS; kind++)
        free(c->orders[kind].list);
    free(c->job_states);
    strmap_fini_with(&c->pods, destroy_pod);
    ended_jobs_destroy(c->ended);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}
