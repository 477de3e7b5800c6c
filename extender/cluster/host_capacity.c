#include "extender/cluster/host_capacity.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/host_requests.h"
#include "lib/base/jrow.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "model/pod/quantity.h"

struct host_capacity {
    struct feed *feed;
    const struct demand_config *demand;
    struct host_capacity_listener listeners[HOST_CAPACITY_LISTENERS_MAX];
    size_t n_listeners;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* something has changed */
    struct host_requests *sums;
    int64_t sent_ms; /* monotonic clock; when they were told last */
    bool stopping;
};

/* --- telling the writer ------------------------------------------------- */

/* The operation and the rooms that it points to are freed together. */
static void free_rooms(struct feed_op *o)
{
    free((void *)o->op.rooms);
}

/* All that changed, in one operation; called with the lock. */
static void tell(struct host_capacity *r)
{
    size_t n = host_requests_n_changed(r->sums), room = 0;
    r->sent_ms = clock_ms();
    if (n == 0)
        return;
    struct writer_room *rooms = xcalloc(n, sizeof *rooms);
    for (size_t i = 0; i < n; i++) {
        host_requests_changed(r->sums, i, &rooms[i].node, &rooms[i].room);
        room += strlen(rooms[i].node) + 1;
    }
    struct feed_op *o = feed_new(r->feed, WRITER_ROOMS, room);
    for (size_t i = 0; i < n; i++)
        rooms[i].node = feed_text(o, rooms[i].node, strlen(rooms[i].node));
    o->op.rooms = rooms;
    o->op.n_rooms = n;
    o->then = free_rooms;
    host_requests_settle(r->sums);
    feed_post(o);
}

static void *rooms_thread(void *ctx)
{
    struct host_capacity *r = ctx;
    thread_name("host capacity", NULL);
    hold_lock(&r->lock);
    while (!r->stopping) {
        int64_t due_ms = r->sent_ms + ROOMS_MS;
        if (host_requests_n_changed(r->sums) == 0)
            (void)pthread_cond_wait(&r->wake, &r->lock); /* never fails */
        else if (clock_ms() < due_ms)
            (void)clock_wait(&r->wake, &r->lock, due_ms);
        else
            tell(r);
    }
    return NULL;
}

/* --- Nodes -------------------------------------------------------------- */

struct nodeobj {
    char name[DEMAND_NAME_MAX + 1];
    struct host_requests_host host;
};

/* A quantity, in units of `unit` thousandths; what is none is left out. */
static void read_amount(struct jscan *s, int64_t unit, int64_t *amount)
{
    int64_t milli;
    if (quantity_scan(s, &milli) && milli >= 0)
        *amount = milli / unit; /* what is available is rounded down */
}

static void read_milli(struct jscan *s, void *to)
{
    read_amount(s, 1, to);
}

static void read_kib(struct jscan *s, void *to)
{
    read_amount(s, 1000 * 1024, to);
}

static void read_whole(struct jscan *s, void *to)
{
    read_amount(s, 1000, to);
}

#define AMOUNT(key, read, field) \
    JROW_CALL_TO(key, JROW_LAX, JKIND_NONE, read, struct nodeobj, host.field)
static const struct jrow allocatable_rows[] = {
    AMOUNT("cpu", read_milli, cpu_milli),
    AMOUNT("memory", read_kib, memory_kib),
    AMOUNT("pods", read_whole, pods),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    JROW("name", JROW_LAX, jrow_copy, struct nodeobj, name),
    JROW_END,
};
static const struct jrow status_rows[] = {
    JROW_OBJECT("allocatable", JROW_LAX, allocatable_rows),
    JROW_END,
};
static const struct jrow node_rows[] = {
    JROW_OBJECT("metadata", JROW_LAX, metadata_rows),
    JROW_OBJECT("status", JROW_LAX, status_rows),
    JROW_END,
};

/* False when it is no Node. */
static bool read_node(const char *json, size_t size, struct nodeobj *ret_node)
{
    struct jscan s;
    memset(ret_node, 0, sizeof *ret_node);
    ret_node->host = (struct host_requests_host){INT64_MAX, INT64_MAX,
                                                 INT64_MAX};
    jscan_init_kube(&s, json, size);
    return jrow_read(&s, JROW_LAX, node_rows, ret_node) && jscan_end(&s) &&
           ret_node->name[0];
}

/* --- events ------------------------------------------------------------- */

static void begin(struct host_capacity *r)
{
    pthread_mutex_lock(&r->lock);
}

static void end(struct host_capacity *r)
{
    if (host_requests_n_changed(r->sums))
        pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

static void list_nodes(void *ctx)
{
    struct host_capacity *r = ctx;
    begin(r);
    host_requests_list_hosts(r->sums);
    end(r);
}

static void put_node(void *ctx, const char *json, size_t size)
{
    struct host_capacity *r = ctx;
    struct nodeobj node;
    if (!read_node(json, size, &node)) {
        log_event(LOG_WARN, "node-not-read", "text",
                  "an object in the list of Nodes is none", NULL);
        return;
    }
    begin(r);
    host_requests_put_host(r->sums, node.name, &node.host);
    end(r);
}

static void gone_node(void *ctx, const char *json, size_t size)
{
    struct host_capacity *r = ctx;
    struct nodeobj node;
    if (!read_node(json, size, &node))
        return;
    begin(r);
    host_requests_remove_host(r->sums, node.name);
    end(r);
}

/* What is complete is told before anything that comes after it. */
static void listed_nodes(void *ctx)
{
    struct host_capacity *r = ctx;
    begin(r);
    host_requests_listed_hosts(r->sums);
    tell(r);
    end(r);
}

const struct reflector_handler host_capacity_nodes = {list_nodes, put_node,
                                                      gone_node, listed_nodes};

/* Has cluster_pods adopted an allocation of a host pod for it?  That takes the
 * place of its requests in what is left. */
static bool is_charged_elsewhere(const struct kube_pod *pod)
{
    cleanup_with(allocation) struct allocation *a = NULL;
    struct error ignored; /* cluster_pods tells what is wrong with it */
    return kube_pod_allocation(pod, &a, &ignored) == 0 && !a->held &&
           a->demand.role == ROLE_HOST &&
           strcmp(a->demand.uid, pod->demand.uid) == 0 &&
           strcmp(a->node, pod->node) == 0;
}

static void put_pod(struct host_capacity *r, enum host_requests_source source,
                    const struct kube_pod *pod)
{
    bool counts = pod->node[0] && !kube_pod_is_finished(pod) &&
                  !(source == HOST_REQUESTS_ROLES && is_charged_elsewhere(pod));
    begin(r);
    if (counts)
        host_requests_put(r->sums, source,
                          &(struct host_requests_pod){pod->demand.uid,
                                                      pod->node, pod->cpu_milli,
                                                      pod->memory_kib});
    else
        host_requests_remove(r->sums, source, pod->demand.uid);
    end(r);
}

static void list_pods(void *ctx)
{
    struct host_capacity *r = ctx;
    begin(r);
    host_requests_list(r->sums, HOST_REQUESTS_OTHERS);
    end(r);
    for (size_t i = 0; i < r->n_listeners; i++)
        if (r->listeners[i].list)
            r->listeners[i].list(r->listeners[i].ctx);
}

static bool read_pod(struct host_capacity *r, const char *json, size_t size,
                     struct kube_pod *ret_pod)
{
    struct error err;
    if (kube_pod_read(json, size, r->demand, ret_pod, &err) == 0)
        return true;
    log_event(LOG_WARN, "pod-not-read", "error", err.text, NULL);
    return false;
}

static void put_other(void *ctx, const char *json, size_t size)
{
    struct host_capacity *r = ctx;
    struct kube_pod pod;
    if (!read_pod(r, json, size, &pod))
        return;
    put_pod(r, HOST_REQUESTS_OTHERS, &pod);
    for (size_t i = 0; i < r->n_listeners; i++)
        if (r->listeners[i].put)
            r->listeners[i].put(r->listeners[i].ctx, &pod);
}

static void gone_other(void *ctx, const char *json, size_t size)
{
    struct host_capacity *r = ctx;
    struct kube_pod pod;
    if (!read_pod(r, json, size, &pod))
        return;
    begin(r);
    host_requests_remove(r->sums, HOST_REQUESTS_OTHERS, pod.demand.uid);
    end(r);
    for (size_t i = 0; i < r->n_listeners; i++)
        if (r->listeners[i].gone)
            r->listeners[i].gone(r->listeners[i].ctx, pod.demand.uid);
}

static void listed_pods(void *ctx)
{
    struct host_capacity *r = ctx;
    begin(r);
    host_requests_listed(r->sums, HOST_REQUESTS_OTHERS);
    tell(r);
    end(r);
    for (size_t i = 0; i < r->n_listeners; i++)
        if (r->listeners[i].listed)
            r->listeners[i].listed(r->listeners[i].ctx);
}

void host_capacity_listen(struct host_capacity *r,
                          const struct host_capacity_listener *listener)
{
    if (r->n_listeners == HOST_CAPACITY_LISTENERS_MAX)
        abort(); /* the caller's list is constant */
    r->listeners[r->n_listeners++] = *listener;
}

const struct reflector_handler host_capacity_pods = {list_pods, put_other,
                                                     gone_other, listed_pods};

void host_capacity_put_pod(void *ctx, const struct kube_pod *pod)
{
    put_pod(ctx, HOST_REQUESTS_ROLES, pod);
}

void host_capacity_gone_pod(void *ctx, const char *uid)
{
    struct host_capacity *r = ctx;
    begin(r);
    host_requests_remove(r->sums, HOST_REQUESTS_ROLES, uid);
    end(r);
}

void host_capacity_listed_pods(void *ctx)
{
    struct host_capacity *r = ctx;
    begin(r);
    tell(r);
    end(r);
}

/* --- begin and end ------------------------------------------------------ */

struct host_capacity *host_capacity_create(struct feed *feed,
                                           const struct demand_config *demand)
{
    struct host_capacity *r = xcalloc(1, sizeof *r);
    r->feed = feed;
    r->demand = demand;
    r->sums = host_requests_create();
    (void)pthread_mutex_init(&r->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&r->wake);
    if (pthread_create(&r->thread, NULL, rooms_thread, r) != 0)
        abort(); /* as for want of memory */
    return r;
}

void host_capacity_destroy(struct host_capacity *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL); /* it was started, once */
    host_requests_destroy(r->sums);
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
