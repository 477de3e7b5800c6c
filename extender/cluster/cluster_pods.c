#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/cluster/cluster_parts.h"
#include "extender/pods/pending_demands.h"
#include "lib/base/hash.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/kube/collection.h"

enum {
    PENDING_MAX = 32768, /* demands of pods that are kept */
    LISTENERS_MAX = 12,
    SHOWN_MAX = 100, /* pods without allocation that are listed */
};

enum state {
    STATE_NEW, /* nothing was made of it yet */
    STATE_PENDING,
    STATE_BOUND,
    STATE_UNACCOUNTED, /* bound without an allocation that can be read */
    STATE_FINISHED,
    STATES
};

struct pod_entry {
    struct collected in;
    char *uid, *namespace, *name;
    enum state state;
    uint64_t hash;         /* of what was adopted, and of the pod's node */
    bool there;            /* it was bound with that */
    bool opened;           /* it is open, whatever it says that it has */
    struct demand *demand; /* pending, and in order; else NULL */
    char *node, *why;      /* unaccounted; else NULL */
    char *unknown_key;     /* a key that is none of the contract's; or NULL */
    /* as the writer was told: where room is made for it (NULL: nowhere), and
     * whether it is about to leave its node */
    char *nominated;
    bool leaving;
};

struct cluster_pods {
    struct cluster_pods_config config;
    struct pod_listener listeners[LISTENERS_MAX];
    size_t n_listeners;
    /* the newest version when the last call ended: what is bound since may be
     * missing from a list that was asked for after it */
    uint64_t version;
    uint64_t number; /* that of the present list */

    pthread_mutex_t lock;  /* guards what follows */
    struct strmap entries; /* by uid; changed by the reflector alone */
    size_t n[STATES];
    size_t n_demands;
};

struct cluster_pods *
cluster_pods_create(const struct cluster_pods_config *config)
{
    struct cluster_pods *c = xcalloc(1, sizeof *c);
    c->config = *config;
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail on Linux */
    return c;
}

static void entry_free(void *object)
{
    struct pod_entry *e = object;
    free(e->uid);
    free(e->namespace);
    free(e->name);
    free(e->demand);
    free(e->node);
    free(e->why);
    free(e->unknown_key);
    free(e->nominated);
    free(e);
}

void cluster_pods_destroy(struct cluster_pods *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->entries, entry_free);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

void cluster_pods_listen(struct cluster_pods *c,
                         const struct pod_listener *listener)
{
    if (c->n_listeners == LISTENERS_MAX)
        abort(); /* the limit is that of the source */
    c->listeners[c->n_listeners++] = *listener;
}

/* --- telling the writer ------------------------------------------------- */

static void adopt_done(struct feed_op *o)
{
    const struct cluster_pods *c = o->op.ctx;
    const struct demand *d = &o->op.allocation->demand;
    metrics_count(c->config.metrics, APP_ADOPTIONS,
                  o->op.result < 0 ? "refused"
                  : o->op.healed   ? "healed"
                  : o->op.created  ? "adopted"
                                   : "known");
    if (o->op.result < 0)
        log_event(LOG_ERROR, "allocation-refused", "namespace", d->namespace,
                  "pod", d->name, "error", o->op.error.text, NULL);
}

static void post_adopt(struct cluster_pods *c, struct allocation *a)
{
    struct feed_op *o = feed_new(c->config.feed, WRITER_ADOPT, 0);
    o->op.allocation = a;
    o->op.ctx = c;
    o->then = adopt_done;
    feed_post(o);
}

static void post_free(struct cluster_pods *c, const struct pod_entry *e)
{
    size_t room = strlen(e->namespace) + strlen(e->name) + strlen(e->uid) + 3;
    struct feed_op *o = feed_new(c->config.feed, WRITER_FREE, room);
    o->op.namespace = feed_text(o, e->namespace, strlen(e->namespace));
    o->op.pod = feed_text(o, e->name, strlen(e->name));
    o->op.uid = feed_text(o, e->uid, strlen(e->uid));
    feed_post(o); /* it may well have had none */
}

static void move_done(struct feed_op *o)
{
    free((void *)o->op.demand);
}

/* A pod of a pair is nominated to a node ("": to none), or about to leave its
 * own. */
static void move(struct cluster_pods *c, struct pod_entry *e,
                 const struct demand *pod, const char *node, bool leaving)
{
    if (strcmp(e->nominated ? e->nominated : "", node) == 0 &&
        e->leaving == leaving)
        return;
    free(e->nominated);
    e->nominated = *node ? xstrdup(node) : NULL;
    e->leaving = leaving;
    struct feed_op *o = feed_new(c->config.feed, WRITER_MOVE, strlen(node) + 1);
    o->op.demand = xmemdup(pod, sizeof *pod);
    o->op.node = *node ? feed_text(o, node, strlen(node)) : NULL;
    o->op.gone = leaving;
    o->then = move_done;
    feed_post(o);
}

/* Not any more: by its uid alone. */
static void move_no_more(struct cluster_pods *c, struct pod_entry *e)
{
    struct demand d = {0};
    memcpy(d.uid, e->uid, strlen(e->uid) + 1);
    move(c, e, &d, "", false);
}

static bool is_of_pair(const struct kube_pod *pod)
{
    return !pod->broken &&
           (pod->demand.role == ROLE_HOST || pod->demand.role == ROLE_XPU);
}

/* kube-scheduler nominates pods that it is about to bind, too, and those of a
 * group all at once: that is no news to who planned them. */
static bool is_room_made_for(const struct kube_pod *pod)
{
    return is_of_pair(pod) && pod->unschedulable && !pod->demand.grouped &&
           !pod->deleting;
}

static int compare_uid(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool keep_busy(void *ctx, const char *uid)
{
    const struct cluster_pods *c = ctx;
    return c->config.is_busy && c->config.is_busy(c->config.ctx, uid);
}

static void keep_done(struct feed_op *o)
{
    const struct cluster_pods *c = o->op.ctx;
    metrics_add(c->config.metrics, APP_ORPHANS, NULL, o->op.n_out);
    free((void *)o->op.uids);
}

/* The list is whole: who is not in it has nothing.  A pod that was listed as
 * not bound may have been bound since, or fail to be, which its binder tells:
 * it keeps what it has, too. */
static void post_keep(struct cluster_pods *c)
{
    size_t n = 0, pos = 0, room = 0;
    struct pod_entry *e;
    const char **uids = xcalloc(c->entries.n + 1, sizeof *uids);
    while ((e = strmap_next(&c->entries, &pos)))
        room += strlen(e->uid) + 1;
    struct feed_op *o = feed_new(c->config.feed, WRITER_KEEP, room);
    for (pos = 0; (e = strmap_next(&c->entries, &pos));)
        if (e->state != STATE_FINISHED)
            uids[n++] = feed_text(o, e->uid, strlen(e->uid));
    qsort(uids, n, sizeof *uids, compare_uid);
    o->op.uids = uids;
    o->op.n_uids = n;
    o->op.number = c->number;
    o->op.keep = keep_busy;
    o->op.ctx = c;
    o->then = keep_done;
    feed_post(o);
}

/* --- one pod ------------------------------------------------------------ */

static void set_state(struct cluster_pods *c, struct pod_entry *e,
                      enum state state)
{
    hold_lock(&c->lock);
    c->n[e->state]--;
    c->n[state]++;
    e->state = state;
    if (e->demand && state != STATE_PENDING) {
        free(e->demand);
        e->demand = NULL;
        c->n_demands--;
    }
    if (state != STATE_UNACCOUNTED) {
        free(e->node);
        free(e->why);
        e->node = e->why = NULL;
    }
}

static struct pod_entry *entry_get(struct cluster_pods *c,
                                   const struct kube_pod *pod)
{
    const struct demand *d = &pod->demand;
    struct pod_entry *e = strmap_get(&c->entries, d->uid);
    if (e)
        return e;
    e = xcalloc(1, sizeof *e);
    e->uid = xstrdup(d->uid);
    e->namespace = xstrdup(d->namespace);
    e->name = xstrdup(d->name);
    hold_lock(&c->lock);
    c->n[STATE_NEW]++;
    (void)strmap_put(&c->entries, e->uid, e);
    return e;
}

static void note_unknown_key(struct cluster_pods *c, struct pod_entry *e,
                             const struct kube_pod *pod)
{
    if (!e->unknown_key && !pod->odd.code)
        return;
    hold_lock(&c->lock);
    free(e->unknown_key);
    e->unknown_key = pod->odd.code ? xstrdup(pod->odd.text) : NULL;
}

static void put_pending(struct cluster_pods *c, struct pod_entry *e,
                        const struct kube_pod *pod)
{
    if (e->state == STATE_BOUND) /* opened, and its annotation is lost */
        post_free(c, e);
    set_state(c, e, STATE_PENDING);
    move(c, e, &pod->demand, is_room_made_for(pod) ? pod->nominated : "",
         false);
    pending_demands_offer(c->config.demands, &pod->demand,
                          pod->broken ? pod->why.text : NULL);
    hold_lock(&c->lock);
    if (!e->demand && !pod->broken && c->n_demands < PENDING_MAX) {
        e->demand = xmalloc(sizeof *e->demand);
        c->n_demands++;
    }
    if (e->demand && pod->broken) {
        free(e->demand);
        e->demand = NULL;
        c->n_demands--;
    } else if (e->demand) {
        *e->demand = pod->demand;
    }
}

/* A pod whose gate was opened is to be bound to the node that it names. */
static int check_names(const struct allocation *a, const struct kube_pod *pod,
                       struct error *err)
{
    const struct {
        const char *path, *is, *must;
    } texts[] = {
        {"pod.namespace", a->demand.namespace, pod->demand.namespace},
        {"pod.name", a->demand.name, pod->demand.name},
        {"pod.uid", a->demand.uid, pod->demand.uid},
        {"node", a->node, pod->node[0] ? pod->node : a->node},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].is, texts[i].must) != 0)
            return error_set(err, EINVAL,
                             "biga.dev/allocation: %s: is \"%.64s\", but the "
                             "pod's is \"%.64s\"",
                             texts[i].path, texts[i].is, texts[i].must);
    if (a->held)
        return error_set(err, EINVAL,
                         "biga.dev/allocation: held: a bound pod's is not");
    return 0;
}

static int read_allocation(const struct kube_pod *pod,
                           struct allocation **ret_allocation,
                           struct error *err)
{
    cleanup_with(allocation) struct allocation *a = NULL;
    if (!pod->allocation.data)
        return error_set(err, ENOENT,
                         "bound without biga.dev/allocation: kube-scheduler "
                         "did not ask (it asks for pods that request "
                         "biga.dev/card), or another bound it or took the "
                         "annotation off");
    int r = kube_pod_allocation(pod, &a, err);
    if (r == 0)
        r = check_names(a, pod, err);
    if (r == 0)
        *ret_allocation = steal(&a);
    return r;
}

static void put_unaccounted(struct cluster_pods *c, struct pod_entry *e,
                            const struct kube_pod *pod, const struct error *why)
{
    bool known = e->state == STATE_UNACCOUNTED;
    bool kept = e->state == STATE_BOUND && e->there;
    pthread_mutex_lock(&c->lock);
    free(e->node);
    free(e->why);
    e->node = xstrdup(pod->node);
    e->why = xstrdup(why->text);
    pthread_mutex_unlock(&c->lock);
    set_state(c, e, STATE_UNACCOUNTED); /* whoever finds it reads both */
    if (known)
        return;
    log_event(LOG_WARN, "pod-unaccounted", "namespace", e->namespace, "pod",
              e->name, "node", pod->node, "error", why->text, NULL);
    /* who takes the annotation off a pod that runs does not take the pod off
     * its cards */
    if (kept)
        return;
    post_free(c, e);
    if (c->config.unaccounted)
        c->config.unaccounted(c->config.ctx, pod, why->text);
}

static void put_bound(struct cluster_pods *c, struct pod_entry *e,
                      const struct kube_pod *pod, bool listing)
{
    struct allocation *a = NULL;
    struct error err = {0};
    uint64_t hash =
        hash_mix(hash_bytes(pod->allocation.data, pod->allocation.size),
                 hash_bytes(pod->node, strlen(pod->node)));
    move(c, e, &pod->demand, "", is_of_pair(pod) && pod->deleting);
    if (!listing && e->state == STATE_BOUND && e->hash == hash)
        return; /* something else of it has changed */
    if (read_allocation(pod, &a, &err) < 0) {
        if (pod->node[0])
            put_unaccounted(c, e, pod, &err);
        else
            put_pending(c, e, pod);
        return;
    }
    e->hash = hash;
    e->there = pod->node[0];
    post_adopt(c, a);
    set_state(c, e, STATE_BOUND); /* a new leader takes it for told */
}

static void put_finished(struct cluster_pods *c, struct pod_entry *e)
{
    if (e->state == STATE_FINISHED)
        return;
    move_no_more(c, e);
    set_state(c, e, STATE_FINISHED);
}

static void forget(void *ctx, void *object)
{
    struct cluster_pods *c = ctx;
    struct pod_entry *e = object;
    struct demand d;
    struct pending_demands *seen = c->config.demands;
    for (size_t i = 0; i < c->n_listeners; i++)
        c->listeners[i].gone(c->listeners[i].ctx, e->uid);
    move_no_more(c, e);
    if (e->state != STATE_FINISHED)
        post_free(c, e);
    if (pending_demands_find_uid(seen, e->uid, &d))
        pending_demands_forget(seen, e->namespace, e->name);
    set_state(c, e, STATE_NEW);
    pthread_mutex_lock(&c->lock);
    c->n[STATE_NEW]--;
    (void)strmap_remove(&c->entries, e->uid);
    pthread_mutex_unlock(&c->lock);
    entry_free(e);
}

/* --- handlers ----------------------------------------------------------- */

static void on_list(void *ctx)
{
    struct cluster_pods *c = ctx;
    c->number = c->version; /* the list may be older than this call */
    collection_list(&c->entries);
}

static bool read_pod(struct cluster_pods *c, const char *json, size_t size,
                     struct kube_pod *ret_pod)
{
    struct error err = {0};
    int r = kube_pod_read(json, size, c->config.demand, ret_pod, &err);
    if (r < 0)
        log_event(LOG_WARN, "pod-unreadable", "error", err.text, NULL);
    return r == 0;
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct cluster_pods *c = ctx;
    struct kube_pod pod;
    if (!read_pod(c, json, size, &pod))
        return;
    struct pod_entry *e = entry_get(c, &pod);
    bool first = !e->in.listed; /* of this list */
    bool finished = kube_pod_is_finished(&pod);
    bool ends = finished && e->state != STATE_FINISHED;
    e->in.listed = true;
    note_unknown_key(c, e, &pod);
    if (finished)
        put_finished(c, e);
    else if (pod.node[0] || kube_pod_is_opened(&pod))
        put_bound(c, e, &pod, first);
    else
        put_pending(c, e, &pod);
    pthread_mutex_lock(&c->lock);
    e->opened = kube_pod_is_opened(&pod); /* and what it has is told */
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->n_listeners; i++)
        c->listeners[i].put(c->listeners[i].ctx, &pod);
    if (ends) /* they hear of the end before of its place */
        post_free(c, e);
    c->version = writer_version(c->config.writer);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    struct cluster_pods *c = ctx;
    struct kube_pod pod;
    if (!read_pod(c, json, size, &pod))
        return;
    struct pod_entry *e = strmap_get(&c->entries, pod.demand.uid);
    if (e)
        forget(c, e);
}

static void on_listed(void *ctx)
{
    struct cluster_pods *c = ctx;
    collection_listed(&c->entries, forget, c);
    post_keep(c);
    for (size_t i = 0; i < c->n_listeners; i++)
        if (c->listeners[i].listed)
            c->listeners[i].listed(c->listeners[i].ctx);
    c->version = writer_version(c->config.writer);
}

const struct reflector_handler cluster_pods_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};

/* --- asking ------------------------------------------------------------- */

bool cluster_pods_find(struct cluster_pods *c, const char *uid,
                       struct demand *ret_demand)
{
    hold_lock(&c->lock);
    const struct pod_entry *e = strmap_get(&c->entries, uid);
    bool found = e && e->demand;
    if (found)
        *ret_demand = *e->demand;
    return found;
}

bool cluster_pods_is_bound(struct cluster_pods *c, const char *uid)
{
    hold_lock(&c->lock);
    const struct pod_entry *e = strmap_get(&c->entries, uid);
    return e && (e->state > STATE_PENDING || e->opened);
}

static int compare_pod(const void *a, const void *b)
{
    const struct pod_entry *x = *(struct pod_entry *const *)a;
    const struct pod_entry *y = *(struct pod_entry *const *)b;
    int order = strcmp(x->namespace, y->namespace);
    return order ? order : strcmp(x->name, y->name);
}

/* Those without an allocation, in order. */
static void write_unaccounted(const struct cluster_pods *c, struct str *out)
{
    size_t n = 0, pos = 0;
    struct pod_entry *e;
    cleanup_free struct pod_entry **list = xcalloc(c->n[STATE_UNACCOUNTED] + 1,
                                                   sizeof *list);
    while ((e = strmap_next(&c->entries, &pos)))
        if (e->state == STATE_UNACCOUNTED && n < c->n[STATE_UNACCOUNTED])
            list[n++] = e;
    qsort(list, n, sizeof *list, compare_pod);
    jwrite_array(out, "unaccountedPods");
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        jwrite_object(out, NULL);
        jwrite_text(out, "namespace", list[i]->namespace);
        jwrite_text(out, "pod", list[i]->name);
        jwrite_text(out, "node", list[i]->node);
        jwrite_text(out, "reason", list[i]->why);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

/* The lock is held. */
static const struct pod_entry *
find_name(const struct cluster_pods *c, const char *namespace, const char *name)
{
    size_t pos = 0;
    const struct pod_entry *e;
    while ((e = strmap_next(&c->entries, &pos)))
        if (strcmp(e->name, name) == 0 && strcmp(e->namespace, namespace) == 0)
            break;
    return e;
}

bool cluster_pods_find_unknown_key(struct cluster_pods *c,
                                   const char *namespace, const char *name,
                                   struct str *text)
{
    hold_lock(&c->lock);
    const struct pod_entry *e = find_name(c, namespace, name);
    bool found = e && e->unknown_key;
    if (found)
        str_add(text, e->unknown_key);
    return found;
}

bool cluster_pods_find_unaccounted(struct cluster_pods *c,
                                   const char *namespace, const char *name,
                                   struct str *text)
{
    size_t pos = 0;
    struct pod_entry *e = NULL;
    pthread_mutex_lock(&c->lock);
    if (c->n[STATE_UNACCOUNTED])
        while ((e = strmap_next(&c->entries, &pos)))
            if (e->state == STATE_UNACCOUNTED && strcmp(e->name, name) == 0 &&
                strcmp(e->namespace, namespace) == 0)
                break;
    if (e)
        str_addf(text, "on node %s, %s", e->node, e->why);
    pthread_mutex_unlock(&c->lock);
    return e != NULL;
}

void cluster_pods_write(struct cluster_pods *c, struct str *out)
{
    hold_lock(&c->lock);
    str_addf(out,
             "\"pods\":{\"pending\":%zu,\"bound\":%zu,\"unaccounted\":%zu,"
             "\"finished\":%zu}",
             c->n[STATE_PENDING], c->n[STATE_BOUND], c->n[STATE_UNACCOUNTED],
             c->n[STATE_FINISHED]);
    write_unaccounted(c, out);
}

size_t cluster_pods_n_unaccounted(struct cluster_pods *c)
{
    hold_lock(&c->lock);
    return c->n[STATE_UNACCOUNTED];
}
