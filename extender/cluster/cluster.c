#include "extender/cluster/cluster.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "extender/app/app_metrics.h"
#include "extender/app/fabric_files.h"
#include "extender/cluster/cluster_private.h"
#include "extender/leader/drain_entry.h"
#include "lib/kube/lease.h"

static bool may_bind(void *ctx, int64_t call_ms)
{
    struct cluster *c = ctx;
    return atomic_load(&c->electing) && elect_holds(c->elect, call_ms);
}

static bool has_binds(void *ctx)
{
    struct cluster *c = ctx;
    return binder_n_busy(c->binder) > 0;
}

static bool is_busy(void *ctx, const char *uid)
{
    struct cluster *c = ctx;
    return binder_is_busy(c->binder, uid);
}

static void on_bound(void *ctx, const struct demand *pod)
{
    const struct cluster *c = ctx;
    app_metrics_waited(c->config.metrics, pod_role_name(pod->role),
                       pending_demands_waited_ms(c->config.demands, pod->uid));
}

static void on_unsure(void *ctx)
{
    struct cluster *c = ctx;
    elect_keep(c->elect);
}

/* Events were started before the pods are listed.  Only the leader writes
 * them. */
static void on_unaccounted(void *ctx, const struct kube_pod *pod,
                           const char *why)
{
    struct cluster *c = ctx;
    cleanup_str struct str text = STR_INIT(EVENTS_TEXT_MAX);
    str_addf(&text, "on %s: %s", pod->node, why);
    if (c->events && may_bind(c, 0))
        events_post(c->events, &pod->demand, EVENTS_UNALIGNED, str_text(&text));
}

static void on_overfull(void *ctx, const struct allocation *a, const char *text)
{
    struct cluster *c = ctx;
    if (c->events && may_bind(c, 0))
        events_post(c->events, &a->demand, EVENTS_OVERFULL, text);
}

/* Of pods without a role, too: it may be the role's key that is misspelt. */
static void on_pod(void *ctx, const struct kube_pod *pod)
{
    struct cluster *c = ctx;
    if (pod->odd.code)
        events_post(c->events, &pod->demand, EVENTS_UNKNOWN_KEY, pod->odd.text);
}

static void on_gone(void *ctx, const char *uid)
{
    (void)ctx;
    (void)uid;
}

/* A new one for each process: a replica that was killed may be started again
 * while the others still wait for its Lease to expire. */
static char *make_identity(const char *name)
{
    uint64_t random = 0;
    char host[64] = "extender";
    (void)!getrandom(&random, sizeof random, 0); /* cannot fail once booted */
    if (!name || !*name) {
        (void)gethostname(host, sizeof host - 1); /* else as above */
        name = host;
    }
    return xasprintf("%.200s_%016llx", name, (unsigned long long)random);
}

static char *path_of(const char *group, const char *namespace,
                     const char *resource)
{
    cleanup_str struct str path = STR_INIT(4096);
    kube_path_object(&path, group, namespace, resource, NULL);
    return str_steal(&path);
}

static void node_appeared(void *ctx, const char *node)
{
    struct cluster *c = ctx;
    cluster_nodes_check(c->nodes, node);
}

static void slices_listed(void *ctx)
{
    struct cluster *c = ctx;
    cluster_heartbeats_silence(c->heartbeats);
}

static void each_node(void *ctx, void (*visit)(void *ctx, const char *node),
                      void *visit_ctx)
{
    struct cluster *c = ctx;
    cluster_slices_each(c->slices, visit, visit_ctx);
}

/* What a claim has, to the writer. */
static void on_claim_used(void *ctx, struct claim_use *use, bool gone)
{
    struct cluster *c = ctx;
    struct feed_op *o = feed_new(c->feed, WRITER_CLAIM, 0);
    o->op.claim = claim_use_ref(use);
    o->op.gone = gone;
    feed_post(o);
}

/* Slices of ours are for both: the topology, and what of it claims may have. */
static void own_slices_list(void *ctx)
{
    struct cluster *c = ctx;
    cluster_slices_handler.list(c->slices);
    if (c->claims)
        claim_book_handler.list(
            claim_book_ctx(c->claims, CLAIM_BOOK_OWN_SLICES));
}

static void own_slices_put(void *ctx, const char *json, size_t size)
{
    struct cluster *c = ctx;
    cluster_slices_handler.put(c->slices, json, size);
    if (c->claims)
        claim_book_handler.put(claim_book_ctx(c->claims, CLAIM_BOOK_OWN_SLICES),
                               json, size);
}

static void own_slices_gone(void *ctx, const char *json, size_t size)
{
    struct cluster *c = ctx;
    cluster_slices_handler.gone(c->slices, json, size);
    if (c->claims)
        claim_book_handler.gone(
            claim_book_ctx(c->claims, CLAIM_BOOK_OWN_SLICES), json, size);
}

static void own_slices_listed(void *ctx)
{
    struct cluster *c = ctx;
    cluster_slices_handler.listed(c->slices);
    if (c->claims)
        claim_book_handler.listed(
            claim_book_ctx(c->claims, CLAIM_BOOK_OWN_SLICES));
}

static void on_classes(void *ctx, const char *const *resources, size_t n)
{
    struct cluster *c = ctx;
    fit_nodes_set_by_class(c->fit, resources, n);
}

static void create_parts(struct cluster *c)
{
    const struct cluster_config *own = &c->config;
    (void)pthread_mutex_init(&c->lead.lock, NULL); /* cannot fail on Linux */
    c->identity = make_identity(c->config.identity);
    c->heartbeats_path = path_of(KUBE_LEASE_GROUP, own->heartbeats, "leases");
    c->achieved_path = path_of("/api/v1", own->heartbeats, "configmaps");
    c->drains_path = path_of("/api/v1", own->namespace, "configmaps");
    c->achieved = cluster_achieved_create(own->achieved);
    c->feed = feed_create(own->writer);
    c->drains = cluster_drains_create(c->feed);
    c->slices = cluster_slices_create(
        &(struct cluster_slices_config){.feed = c->feed,
                                        .metrics = own->metrics,
                                        .appeared = node_appeared,
                                        .listed = slices_listed,
                                        .ctx = c});
    c->heartbeats = cluster_heartbeats_create(c->feed, c->config.fresh_ms);
    c->nodes = cluster_nodes_create(c->feed, fabric_files_labels(own->fabric));
    c->pods = cluster_pods_create(
        &(struct cluster_pods_config){.feed = c->feed,
                                      .writer = own->writer,
                                      .metrics = own->metrics,
                                      .demands = own->demands,
                                      .demand = &own->demand,
                                      .is_busy = is_busy,
                                      .unaccounted = on_unaccounted,
                                      .ctx = c});
    if (own->claims)
        c->claims = claim_book_create(&(struct claim_book_config){
            .used = on_claim_used, .classes = on_classes, .ctx = c});
    if (own->dpus)
        c->dpus = cluster_dpus_create(c->feed);
    c->host_capacity = host_capacity_create(c->feed, &own->demand);
    c->ps = cluster_ps_create();
    cluster_nodes_each(c->nodes, each_node, c);
    cluster_nodes_next(c->nodes, &host_capacity_nodes, c->host_capacity);
    cluster_pods_listen(
        c->pods, &(struct pod_listener){.put = host_capacity_put_pod,
                                        .gone = host_capacity_gone_pod,
                                        .listed = host_capacity_listed_pods,
                                        .ctx = c->host_capacity});
    const struct pod_listener ps = cluster_ps_listener(c->ps);
    cluster_pods_listen(c->pods, &ps);
    c->history = history_cluster_create(c->config.history);
    const struct pod_listener history = history_cluster_listener(c->history);
    if (own->history) /* else nobody is told */
        cluster_pods_listen(c->pods, &history);
    c->fit = fit_nodes_create();
    cluster_fit_follow(c->fit, c->nodes, c->pods, c->host_capacity);
    fabric_files_join(own->fabric,
                      &(struct fabric_nodes){cluster_nodes_changed,
                                             cluster_nodes_write, c->nodes});
}

static void create_binds(struct cluster *c)
{
    c->binds = binds_create(&(struct binds_config){.writer = c->config.writer,
                                                   .binder = c->binder,
                                                   .tell = cluster_tell,
                                                   .bound = on_bound,
                                                   .unsure = on_unsure,
                                                   .ctx = c});
}

/* What the leader does about pairs, and what it tells of pods. */
static int start_pairing(struct cluster *c, struct error *err)
{
    struct events_config events = {.kube = c->config.kube,
                                   .reporter = c->identity,
                                   .may_write = may_bind,
                                   .is_busy = has_binds,
                                   .ctx = c,
                                   .told = history_cluster_told,
                                   .told_ctx = c->history};
    int r = c->config.events ? events_start(&events, &c->events, err) : 0;
    if (r < 0)
        return r;
    struct pair_controller_config pairing = {.kube = c->config.kube,
                                             .demand = c->config.demand,
                                             .events = c->events,
                                             .may_write = may_bind,
                                             .ctx = c};
    r = pair_controller_start(&pairing, &c->pair_controller, err);
    if (r < 0)
        return r;
    writer_on_overfull(c->config.writer, on_overfull, c);
    struct pod_listener listener = pair_controller_listener(c->pair_controller);
    cluster_pods_listen(c->pods, &listener);
    cluster_pods_listen(c->pods, &(struct pod_listener){
                                     .put = on_pod, .gone = on_gone, .ctx = c});
    host_capacity_listen(c->host_capacity, &(struct host_capacity_listener){
                                               .put = on_pod, .ctx = c});
    return 0;
}

static bool find_pending(void *ctx, const char *uid, struct demand *ret_demand)
{
    struct cluster *c = ctx;
    return cluster_pods_find(c->pods, uid, ret_demand);
}

static int start_waker(struct cluster *c, struct error *err)
{
    struct waker_config waker = {.kube = c->config.kube,
                                 .writer = c->config.writer,
                                 .plans = c->config.plans,
                                 .find = find_pending,
                                 .may_write = may_bind,
                                 .ctx = c};
    int r = waker_start(&waker, &c->waker, err);
    if (r < 0)
        return r;
    struct pod_listener listener = waker_listener(c->waker);
    cluster_pods_listen(c->pods, &listener);
    return 0;
}

static int start_card_losses(struct cluster *c, struct error *err)
{
    const struct card_loss_config config = {.kube = c->config.kube,
                                            .writer = c->config.writer,
                                            .events = c->events,
                                            .patience_s = c->config.card_lost_s,
                                            .may_write = may_bind,
                                            .ctx = c};
    int r = card_loss_controller_start(&config, &c->card_losses, err);
    if (r < 0)
        return r;
    struct pod_listener listener =
        card_loss_controller_listener(c->card_losses);
    cluster_pods_listen(c->pods, &listener);
    return 0;
}

static void relist_pods(void *ctx)
{
    struct cluster *c = ctx;
    reflector_relist(c->reflector, CLUSTER_PODS);
}

static int start_gate(struct cluster *c, struct error *err)
{
    const struct gate_config config = {.kube = c->config.kube,
                                       .writer = c->config.writer,
                                       .plans = c->config.plans,
                                       .fit = c->fit,
                                       .claims = c->claims,
                                       .demands = c->config.demands,
                                       .binds = c->binds,
                                       .tell = cluster_tell,
                                       .relist = relist_pods,
                                       .may_write = may_bind,
                                       .ctx = c};
    int r = gate_controller_start(&config, &c->gate, err);
    if (r < 0)
        return r;
    struct pod_listener listener = gate_controller_listener(c->gate);
    cluster_pods_listen(c->pods, &listener);
    return 0;
}

static struct reflector_kind claims_kind(struct cluster *c,
                                         enum claim_book_kind kind,
                                         const char *name, const char *path)
{
    return (struct reflector_kind){
        .name = name,
        .path = path,
        .handler = claim_book_handler,
        .ctx = c->claims ? claim_book_ctx(c->claims, kind) : NULL};
}

static struct reflector_kind dpus_kind(struct cluster *c, enum dpu_kind kind,
                                       const char *name, const char *path)
{
    return (struct reflector_kind){
        .name = name,
        .path = path,
        .handler = cluster_dpus_handler,
        .ctx = c->dpus ? cluster_dpus_of(c->dpus, kind) : NULL,
        .without = "cards are judged without it"};
}

static struct reflector_kind achieved_kind(const struct cluster *c)
{
    return (struct reflector_kind){
        .name = "configmaps",
        .path = c->achieved_path,
        .query = "labelSelector=biga.dev%2Freport%3Dachieved",
        .handler = cluster_achieved_handler,
        .ctx = c->achieved,
        .without = "what pods have in fact is not known: let it list and "
                   "watch the configmaps of the heartbeats' namespace",
    };
}

static struct reflector_kind drains_kind(const struct cluster *c)
{
    return (struct reflector_kind){
        .name = "drains",
        .path = c->drains_path,
        .query = "fieldSelector=metadata.name%3D" DRAIN_CONFIGMAP,
        .handler = cluster_drains_handler,
        .ctx = c->drains,
        .without = "nothing that biga drain has drained is known: let it list "
                   "and watch ConfigMap " DRAIN_CONFIGMAP,
    };
}

static int start_drainer(struct cluster *c, struct error *err)
{
    const struct drainer_config config = {.kube = c->config.kube,
                                          .namespace = c->config.namespace,
                                          .writer = c->config.writer,
                                          .events = c->events,
                                          .may_write = may_bind,
                                          .ctx = c};
    return drainer_start(&config, &c->drainer, err);
}

static int start_reflector(struct cluster *c, struct error *err)
{
    struct reflector_kind kinds[CLUSTER_KINDS] = {
        [CLUSTER_SLICES] = {.name = "resourceslices",
                            .path = "/apis/resource.k8s.io/v1/resourceslices",
                            .query = "fieldSelector=spec.driver%3Dxpu.biga.dev",
                            .handler = {.list = own_slices_list,
                                        .put = own_slices_put,
                                        .gone = own_slices_gone,
                                        .listed = own_slices_listed},
                            .ctx = c},
        [CLUSTER_HEARTBEATS] = {.name = "leases",
                                .path = c->heartbeats_path,
                                .handler = cluster_heartbeats_handler,
                                .ctx = c->heartbeats},
        [CLUSTER_NODES] = {.name = "nodes",
                           .path = "/api/v1/nodes",
                           .handler = cluster_nodes_handler,
                           .ctx = c->nodes},
        [CLUSTER_PODS] = {.name = "pods",
                          .path = "/api/v1/pods",
                          .query = "labelSelector=biga.dev%2Frole",
                          .handler = cluster_pods_handler,
                          .ctx = c->pods},
        [CLUSTER_OTHER_PODS] = {.name = "other-pods",
                                .path = "/api/v1/pods",
                                .query = "labelSelector=%21biga.dev%2Frole&"
                                         "fieldSelector=spec.nodeName%21%3D%2C"
                                         "status.phase%21%3DSucceeded%2C"
                                         "status.phase%21%3DFailed",
                                .handler = host_capacity_pods,
                                .ctx = c->host_capacity},
        [CLUSTER_ACHIEVED] = achieved_kind(c),
        [CLUSTER_DRAINS] = drains_kind(c),
        [CLUSTER_OTHER_SLICES] =
            claims_kind(c, CLAIM_BOOK_SLICES, "other-slices",
                        "/apis/resource.k8s.io/v1/resourceslices"),
        [CLUSTER_CLAIMS] =
            claims_kind(c, CLAIM_BOOK_CLAIMS, "resourceclaims",
                        "/apis/resource.k8s.io/v1/resourceclaims"),
        [CLUSTER_CLASSES] =
            claims_kind(c, CLAIM_BOOK_CLASSES, "deviceclasses",
                        "/apis/resource.k8s.io/v1/deviceclasses"),
        [CLUSTER_TEMPLATES] =
            claims_kind(c, CLAIM_BOOK_TEMPLATES, "resourceclaimtemplates",
                        "/apis/resource.k8s.io/v1/resourceclaimtemplates"),
        [CLUSTER_DPF] =
            dpus_kind(c, DPU_OF_DPF, "dpus",
                      "/apis/provisioning.dpu.nvidia.com/v1alpha1/dpus"),
        [CLUSTER_OPENSHIFT] =
            dpus_kind(c, DPU_OF_OPENSHIFT, "dataprocessingunits",
                      "/apis/config.openshift.io/v1/dataprocessingunits"),
    };
    kinds[CLUSTER_OTHER_SLICES].query =
        "fieldSelector=spec.driver%21%3Dxpu.biga.dev";
    size_t n = CLUSTER_BASE; /* what is not followed has no ctx */
    for (size_t i = CLUSTER_BASE; i < CLUSTER_KINDS; i++)
        if (kinds[i].ctx)
            kinds[n++] = kinds[i];
    return reflector_start(c->config.kube, kinds, n, &c->reflector, err);
}

static int start_threads(struct cluster *c, struct error *err)
{
    struct binder_config binder = {
        .kube = c->config.kube, .may_bind = may_bind, .ctx = c};
    struct elect_config elect = {
        .kube = c->config.kube,
        .namespace = c->config.namespace,
        .name = "biga-extender",
        .identity = c->identity,
        .alone = !c->config.elect,
        .lead = cluster_lead,
        .follow = cluster_follow,
        .ctx = c,
    };
    int r = kube_client_create(c->config.kube, KUBE_TIMEOUT_MS, &c->lead.client,
                               err);
    if (r == 0)
        r = binder_start(&binder, &c->binder, err);
    create_binds(c);
    if (r == 0)
        r = start_pairing(c, err);
    if (r == 0)
        r = start_waker(c, err);
    if (r == 0)
        r = start_card_losses(c, err);
    if (r == 0)
        r = start_gate(c, err);
    if (r == 0)
        r = start_drainer(c, err);
    if (r == 0)
        r = start_reflector(c, err);
    if (r == 0)
        r = elect_start(&elect, &c->elect, err);
    atomic_store(&c->electing, r == 0);
    return r;
}

int cluster_start(const struct cluster_config *config,
                  struct cluster **ret_cluster, struct error *err)
{
    cleanup_with(cluster) struct cluster *c = xcalloc(1, sizeof *c);
    c->config = *config;
    create_parts(c);
    int r = start_threads(c, err);
    if (r == 0)
        *ret_cluster = steal(&c);
    return r;
}

void cluster_stop(struct cluster *c)
{
    if (!c)
        return;
    cluster_lead_end(c); /* first: elect may still ask to lead, which uses what
 * is stopped next */
    reflector_stop(c->reflector);
    pair_controller_stop(c->pair_controller);
    waker_stop(c->waker);
    card_loss_controller_stop(c->card_losses);
    drainer_stop(c->drainer);
    gate_controller_quiesce(c->gate); /* decides nothing any more */
    binder_stop(c->binder); /* before the Lease is given back: no bind of ours
 * may be on its way when another replica leads */
    writer_on_overfull(c->config.writer, NULL, NULL);
    gate_controller_destroy(c->gate);
    events_stop(c->events); /* of which the binder tells */
    elect_stop(c->elect);
    fabric_files_join(c->config.fabric, &(struct fabric_nodes){0});
    binds_destroy(c->binds);
    feed_destroy(c->feed); /* what it calls back is still there */
    kube_client_destroy(c->lead.client);
    (void)pthread_mutex_destroy(&c->lead.lock);
    cluster_slices_destroy(c->slices);
    cluster_heartbeats_destroy(c->heartbeats);
    cluster_nodes_destroy(c->nodes);
    cluster_achieved_destroy(c->achieved);
    cluster_drains_destroy(c->drains);
    cluster_pods_destroy(c->pods);
    claim_book_destroy(c->claims);
    cluster_dpus_destroy(c->dpus);
    host_capacity_destroy(c->host_capacity);
    cluster_ps_destroy(c->ps);
    history_cluster_destroy(c->history);
    fit_nodes_destroy(c->fit);
    free(c->identity);
    free(c->heartbeats_path);
    free(c->achieved_path);
    free(c->drains_path);
    free(c);
}

void cluster_quiesce(struct cluster *c)
{
    if (c)
        drainer_quiesce(c->drainer);
}

struct cluster_ps *cluster_ps_of(struct cluster *c)
{
    return c->ps;
}

struct claim_book *cluster_claims_of(struct cluster *c)
{
    return c->claims;
}

bool cluster_is_synced(const struct cluster *c)
{
    return reflector_is_synced(c->reflector);
}

bool cluster_leads(struct cluster *c, char ret_leader[254])
{
    elect_leader(c->elect, ret_leader);
    return elect_holds(c->elect, 0);
}

void cluster_tell(void *ctx, const struct demand *pod,
                  enum events_reason reason, const char *text)
{
    struct cluster *c = ctx;
    if (c->events && elect_holds(c->elect, 0))
        events_post(c->events, pod, reason, text);
}

void cluster_tell_lost(struct cluster *c, const struct allocation *a,
                       const char *text)
{
    events_post(c->events, &a->demand, EVENTS_ALIGNMENT_LOST, text);
}
