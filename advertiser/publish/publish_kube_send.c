#include <inttypes.h>
#include <string.h>

#include "advertiser/publish/publish_kube.h"
#include "lib/base/jwrite.h"

/* Node names and namespaces are DNS names: nothing in them needs escaping. */
static void request_node(struct kube_machine *k, struct publish_request *rq)
{
    (void)snprintf(rq->path, sizeof rq->path, "/api/v1/nodes/%s",
                   topo_node(k->topo));
}

static void set_lease_path(const struct kube_machine *k, bool whole,
                           struct publish_request *rq)
{
    (void)snprintf(rq->path, sizeof rq->path,
                   KUBE_LEASE_GROUP "/namespaces/%s/leases%s%s",
                   k->config->namespace, whole ? "/" : "",
                   whole ? topo_node(k->topo) : "");
}

static void set_slice_path(const char *name, struct publish_request *rq)
{
    (void)snprintf(rq->path, sizeof rq->path, PUBLISH_COLLECTION "/%s", name);
}

static void write_delete(const char *version, struct publish_request *rq)
{
    struct str *out = &rq->body;
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "v1");
    jwrite_text(out, "kind", "DeleteOptions");
    if (*version) {
        jwrite_object(out, "preconditions");
        jwrite_text(out, "resourceVersion", version);
        jwrite_end_object(out);
    }
    jwrite_end_object(out);
}

static void request_read_lease(struct kube_machine *k,
                               struct publish_request *rq)
{
    set_lease_path(k, true, rq);
}

/* Keeps what is written, so that only its version has to be read from the
 * answer. */
static void request_lease(struct kube_machine *k, struct publish_request *rq)
{
    struct kube_lease *l = &k->lease;
    bool exists = *l->resource_version != '\0';
    char now[40];
    rq->method = exists ? "PUT" : "POST";
    set_lease_path(k, exists, rq);
    kube_lease_time(k->config->unix_us(), now);
    memcpy(l->renewed, now, sizeof l->renewed);
    (void)snprintf(l->namespace, sizeof l->namespace, "%s",
                   k->config->namespace);
    (void)snprintf(l->name, sizeof l->name, "%s", topo_node(k->topo));
    l->duration_s =
        (int32_t)((KUBE_MISSES * k->config->heartbeat_ms + 999) / 1000);
    if (k->state == KUBE_TAKE) {
        if (exists && strcmp(l->holder, k->holder) != 0)
            l->transitions += l->transitions < INT32_MAX;
        memcpy(l->acquired, now, sizeof l->acquired);
        (void)snprintf(l->holder, sizeof l->holder, "%s", k->holder);
    }
    if (k->state == KUBE_TAKE || k->state == KUBE_CLAIM) {
        int64_t most = k->highest > k->claimed ? k->highest : k->claimed;
        l->generation = most + 1;
    }
    kube_lease_write(l, topo_node(k->topo), k->node_uid, &rq->body);
}

static void request_slice(struct kube_machine *k, struct publish_request *rq)
{
    const struct kube_slot *slot = &k->slots[k->index];
    const struct slice_meta meta = {
        .owner_uid = k->node_uid,
        .resource_version = slot->exists ? slot->version : NULL};
    char name[SLICE_NAME_MAX + 1];
    slice_name(topo_node(k->topo), k->index, name);
    rq->method = slot->exists ? "PUT" : "POST";
    if (slot->exists)
        set_slice_path(name, rq);
    else
        (void)snprintf(rq->path, sizeof rq->path, "%s", PUBLISH_COLLECTION);
    slice_encode_object(k->topo, &k->epoch, k->index, &meta, &rq->body);
}

/* The uid makes it a conflict when the Node is another one by now. */
static void request_tell(struct kube_machine *k, struct publish_request *rq)
{
    char now[40];
    struct str *out = &rq->body;
    cleanup_str struct str what = STR_INIT(512);
    request_node(k, rq);
    rq->merge_patch = true;
    kube_lease_time(k->config->unix_us(), now);
    str_addf(&what, "%" PRId64 " %s %s", k->epoch.generation, k->holder, now);
    jwrite_object(out, NULL);
    jwrite_object(out, "metadata");
    jwrite_text(out, "uid", k->node_uid);
    jwrite_object(out, "annotations");
    jwrite_text(out, KUBE_OBJECTS_TOPOLOGY, k->hash);
    jwrite_text(out, KUBE_OBJECTS_PUBLISHED, str_text(&what));
    str_add(out, "}}}");
}

static void request_prune(struct kube_machine *k, struct publish_request *rq)
{
    const struct kube_surplus *s = &k->surplus[k->n_surplus - 1];
    set_slice_path(s->name, rq);
    write_delete(s->version, rq);
}

/* The slices, the first one last: while it is there the pool can be found.
 * Then the Lease. */
static void request_withdraw(struct kube_machine *k, struct publish_request *rq)
{
    char name[SLICE_NAME_MAX + 1];
    if (k->n_surplus > 0) {
        request_prune(k, rq);
        return;
    }
    if (k->index == 0) {
        set_lease_path(k, true, rq);
        write_delete(k->lease.resource_version, rq);
        return;
    }
    const struct kube_slot *slot = &k->slots[k->index - 1];
    slice_name(topo_node(k->topo), k->index - 1, name);
    set_slice_path(name, rq);
    write_delete(slot->exists ? slot->version : "", rq);
}

static void request_list(struct kube_machine *k, struct publish_request *rq)
{
    (void)snprintf(rq->path, sizeof rq->path,
                   PUBLISH_COLLECTION "?" PUBLISH_NODE_SLICES,
                   topo_node(k->topo));
}

void kube_request(struct kube_machine *k, struct publish_request *rq)
{
    static const struct {
        const char *method; /* NULL: as the object is there or not */
        void (*fill)(struct kube_machine *k, struct publish_request *rq);
    } by_state[KUBE_STATES] = {
        [KUBE_NODE] = {"GET", request_node},
        [KUBE_LEASE] = {"GET", request_read_lease},
        [KUBE_TAKE] = {NULL, request_lease},
        [KUBE_LIST] = {"GET", request_list},
        [KUBE_CLAIM] = {NULL, request_lease},
        [KUBE_WRITE] = {NULL, request_slice},
        [KUBE_PRUNE] = {"DELETE", request_prune},
        [KUBE_TELL] = {"PATCH", request_tell},
        [KUBE_BEAT] = {NULL, request_lease},
        [KUBE_RELEASE] = {NULL, request_lease},
        [KUBE_WITHDRAW] = {"DELETE", request_withdraw},
    };
    rq->merge_patch = false;
    str_reset(&rq->body);
    rq->method = by_state[k->state].method;
    by_state[k->state].fill(k, rq);
}

/* --- what would help ---------------------------------------------------- */

static const char *verb_of(const struct kube_machine *k)
{
    static const char *const verbs[KUBE_STATES] = {
        [KUBE_NODE] = "get nodes",
        [KUBE_LEASE] = "get leases",
        [KUBE_TAKE] = "create and update leases",
        [KUBE_LIST] = "list resourceslices",
        [KUBE_CLAIM] = "update leases",
        [KUBE_WRITE] = "create and update resourceslices",
        [KUBE_PRUNE] = "delete resourceslices",
        [KUBE_TELL] = "patch nodes",
        [KUBE_BEAT] = "update leases",
        [KUBE_RELEASE] = "update leases",
        [KUBE_WITHDRAW] = "delete resourceslices and leases",
    };
    return verbs[k->state];
}

/* Not by a role, but by what deploy/ has to hold advertisers to their nodes. */
static bool is_by_policy(const struct publish_answer *answer)
{
    return answer->status == 403 && answer->error &&
           strstr(answer->error, "ValidatingAdmissionPolicy");
}

const char *kube_hint(const struct kube_machine *k,
                      const struct publish_answer *answer, struct str *text)
{
    long status = answer->status;
    str_reset(text);
    if (status == 401)
        str_add(text, "the API server does not accept our credentials: see "
                      "the user of the kubeconfig, or the service account");
    else if (is_by_policy(answer))
        str_addf(text,
                 "use credentials of node %s (a token that is bound to its "
                 "pod or Node, or a certificate of CN system:node:%s), or "
                 "name with --node whose these are",
                 topo_node(k->topo), topo_node(k->topo));
    else if (status == 403)
        str_addf(text,
                 "allow us to %s (leases: in namespace %s), as the role "
                 "biga-advertiser of deploy/ does",
                 verb_of(k), k->config->namespace);
    else if (status == 404 && k->state == KUBE_NODE)
        str_add(text, "no such Node: create it, or name this host's with "
                      "--node");
    else if (status == 404 && k->state == KUBE_TAKE)
        str_addf(text, "create the namespace %s, as deploy/ does",
                 k->config->namespace);
    else if (status == 404 && (k->state == KUBE_LIST || k->state == KUBE_WRITE))
        str_add(text, "the API server does not serve " SLICE_API_VERSION
                      ": Kubernetes 1.34 or later does");
    return text->size ? str_text(text) : NULL;
}
