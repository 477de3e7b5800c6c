#include "extender/pods/node_reports.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/strmap.h"

/* A pod that is unknown here. */
struct stranger {
    uint64_t named; /* n_wholes when it was named last */
    char uid[DEMAND_UID_MAX + 1];
};

struct told_node {
    char *name;
    int64_t asked_ms;        /* -1 never */
    uint64_t n_wholes;       /* how often it has told of all its pods */
    bool too_many;           /* strangers, once */
    struct strmap strangers; /* by uid */
    struct place_told *places;
    size_t n_places;
};

struct pod_entry {
    char uid[DEMAND_UID_MAX + 1];
    char *node;
    struct node_reports_pod pod;
    struct pod_status *status;
};

struct node_reports {
    pthread_mutex_t lock;
    struct strmap nodes; /* by name */
    struct strmap pods;  /* by uid */
    uint64_t version;
};

struct node_reports *node_reports_create(void)
{
    struct node_reports *t = xcalloc(1, sizeof *t);
    (void)pthread_mutex_init(&t->lock, NULL); /* never fails on Linux */
    return t;
}

static void entry_destroy(void *entry)
{
    struct pod_entry *e = entry;
    if (!e)
        return;
    pod_status_unref(e->status);
    free(e->node);
    free(e);
}

static void node_destroy(void *node)
{
    struct told_node *n = node;
    strmap_fini_with(&n->strangers, free);
    free(n->name);
    free(n->places);
    free(n);
}

void node_reports_destroy(struct node_reports *t)
{
    if (!t)
        return;
    strmap_fini_with(&t->nodes, node_destroy);
    strmap_fini_with(&t->pods, entry_destroy);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

/* --- nodes -------------------------------------------------------------- */

/* NULL when there are too many. */
static struct told_node *node_open(struct node_reports *t, const char *name)
{
    struct told_node *n = strmap_get(&t->nodes, name);
    if (n || t->nodes.n >= NODE_REPORTS_NODES_MAX)
        return n;
    n = xcalloc(1, sizeof *n);
    n->name = xstrdup(name);
    n->asked_ms = -1;
    (void)strmap_put(&t->nodes, n->name, n);
    return n;
}

void node_reports_places(struct node_reports *t, const char *node,
                         const struct node_report *s)
{
    hold_lock(&t->lock);
    struct told_node *n = node_open(t, node);
    bool same =
        n && n->n_places == s->n_places &&
        (s->n_places == 0 ||
         memcmp(n->places, s->places, s->n_places * sizeof *s->places) == 0);
    if (n && !same) {
        t->version++;
        free(n->places);
        n->n_places = s->n_places;
        n->places = s->n_places
                        ? xmemdup(s->places, s->n_places * sizeof *s->places)
                        : NULL;
    }
}

void node_reports_asked(struct node_reports *t, const char *node,
                        int64_t now_ms)
{
    hold_lock(&t->lock);
    struct told_node *n = node_open(t, node);
    if (n)
        n->asked_ms = now_ms;
}

int64_t node_reports_asked_ago(struct node_reports *t, const char *node,
                               int64_t now_ms)
{
    hold_lock(&t->lock);
    const struct told_node *n = strmap_get(&t->nodes, node);
    return n && n->asked_ms >= 0 ? now_ms - n->asked_ms : -1;
}

/* NULL when there are too many. */
static struct stranger *stranger_open(struct told_node *n, const char *uid)
{
    struct stranger *x = strmap_get(&n->strangers, uid);
    if (x)
        return x;
    if (n->strangers.n >= NODE_REPORT_PODS_MAX) {
        n->too_many = true;
        return NULL;
    }
    x = xcalloc(1, sizeof *x);
    (void)snprintf(x->uid, sizeof x->uid, "%s", uid);
    (void)strmap_put(&n->strangers, x->uid, x);
    return x;
}

void node_reports_stranger(struct node_reports *t, const char *node,
                           const char *uid, bool there)
{
    hold_lock(&t->lock);
    struct told_node *n = node_open(t, node);
    struct stranger *x = n && there ? stranger_open(n, uid) : NULL;
    if (x)
        x->named = n->n_wholes;
    else if (n && !there)
        free(strmap_remove(&n->strangers, uid));
}

/* Those that were named before the last two tellings began. */
static void drop_unnamed(struct told_node *n)
{
    size_t n_over = 0, pos = 0;
    cleanup_free struct stranger **over = xcalloc(n->strangers.n + 1,
                                                  sizeof *over);
    for (struct stranger *x; (x = strmap_next(&n->strangers, &pos));)
        if (n->n_wholes - x->named > 2)
            over[n_over++] = x;
    for (size_t i = 0; i < n_over; i++) {
        (void)strmap_remove(&n->strangers, over[i]->uid);
        free(over[i]);
    }
}

void node_reports_whole(struct node_reports *t, const char *node)
{
    hold_lock(&t->lock);
    struct told_node *n = strmap_get(&t->nodes, node);
    if (n && n->asked_ms >= 0) {
        n->n_wholes++;
        drop_unnamed(n);
    }
}

bool node_reports_all(struct node_reports *t, const char *node)
{
    hold_lock(&t->lock);
    const struct told_node *n = strmap_get(&t->nodes, node);
    return n && n->n_wholes > 0 && !n->too_many && n->strangers.n == 0;
}

bool node_reports_place(struct node_reports *t, const char *node,
                        const char *place, struct place_told *ret_place)
{
    bool found = false;
    hold_lock(&t->lock);
    const struct told_node *n = strmap_get(&t->nodes, node);
    for (size_t i = 0; n && i < n->n_places && !found; i++) {
        found = strcmp(n->places[i].name, place) == 0;
        if (found)
            *ret_place = n->places[i];
    }
    return found;
}

uint64_t node_reports_version(struct node_reports *t)
{
    hold_lock(&t->lock);
    return t->version;
}

void node_reports_count_places(struct node_reports *t,
                               size_t ret_counts[PLACE_HEALTHS])
{
    size_t pos = 0;
    memset(ret_counts, 0, PLACE_HEALTHS * sizeof *ret_counts);
    hold_lock(&t->lock);
    for (struct told_node *n; (n = strmap_next(&t->nodes, &pos));)
        for (size_t i = 0; i < n->n_places; i++)
            ret_counts[n->places[i].health]++;
}

/* --- pods --------------------------------------------------------------- */

static struct pod_entry *entry_open(struct node_reports *t, const char *uid,
                                    const char *node)
{
    struct pod_entry *e = strmap_get(&t->pods, uid);
    if (e && strcmp(e->node, node) == 0)
        return e;
    if (e)
        (void)strmap_remove(&t->pods, uid);
    entry_destroy(e);
    e = xcalloc(1, sizeof *e);
    (void)snprintf(e->uid, sizeof e->uid, "%s", uid);
    e->node = xstrdup(node);
    (void)strmap_put(&t->pods, e->uid, e);
    return e;
}

void node_reports_put(struct node_reports *t, const char *uid, const char *node,
                      struct pod_status *status)
{
    hold_lock(&t->lock);
    struct pod_entry *e = entry_open(t, uid, node);
    struct node_reports_pod *p = &e->pod;
    pod_status_unref(e->status);
    e->status = pod_status_ref(status);
    p->state = status->state;
    p->was_ready |= status->ready;
    p->was_other |= status->state != POD_STATE_FAILED &&
                    status->state != POD_STATE_GONE;
}

void node_reports_get(struct node_reports *t, const char *uid, const char *node,
                      struct node_reports_pod *ret_pod)
{
    hold_lock(&t->lock);
    const struct pod_entry *e = strmap_get(&t->pods, uid);
    *ret_pod = e && strcmp(e->node, node) == 0
                   ? e->pod
                   : (struct node_reports_pod){.state = POD_STATE_PENDING};
}

struct pod_status *node_reports_status(struct node_reports *t, const char *uid,
                                       const char *node)
{
    hold_lock(&t->lock);
    const struct pod_entry *e = strmap_get(&t->pods, uid);
    return e && e->status && strcmp(e->node, node) == 0
               ? pod_status_ref(e->status)
               : NULL;
}

void node_reports_forget(struct node_reports *t, const char *uid)
{
    hold_lock(&t->lock);
    struct pod_entry *e = strmap_remove(&t->pods, uid);
    entry_destroy(e);
}

size_t node_reports_n_pods(struct node_reports *t)
{
    hold_lock(&t->lock);
    return t->pods.n;
}

void node_reports_prune(struct node_reports *t,
                        bool (*has_place)(void *ctx, const char *uid,
                                          const char *node),
                        void *ctx)
{
    size_t n = 0, pos = 0;
    pthread_mutex_lock(&t->lock);
    cleanup_free struct pod_entry **over = xcalloc(t->pods.n + 1, sizeof *over);
    for (struct pod_entry *e; (e = strmap_next(&t->pods, &pos));)
        if (!has_place(ctx, e->uid, e->node))
            over[n++] = e;
    for (size_t i = 0; i < n; i++) {
        (void)strmap_remove(&t->pods, over[i]->uid);
        entry_destroy(over[i]);
    }
    pthread_mutex_unlock(&t->lock);
}
