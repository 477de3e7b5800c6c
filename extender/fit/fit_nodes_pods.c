#include <string.h>

#include "extender/fit/fit_nodes_private.h"

/* One pod: the data of a slot. */
struct record {
    struct fit_take *take;
    uint32_t node;
    bool source : 1, lap : 1; /* lap of its source when it was put */
    bool assumed : 1;
    bool lifted : 1; /* while one judges without it */
};

_Static_assert(sizeof(struct record) == sizeof(((struct idmap_slot *)0)->data),
               "a record is the data of a slot");

static struct record record_of(const struct idmap_slot *slot)
{
    struct record record;
    memcpy(&record, slot->data, sizeof record);
    return record;
}

/* --- what they take ------------------------------------------------------- */

static void add_ports(struct fit_node *n, struct fit_take *take)
{
    n->ports = xgrow(n->ports, n->n_ports, &n->ports_cap, sizeof(*n->ports));
    n->ports[n->n_ports++] = take;
}

static void remove_ports(struct fit_node *n, const struct fit_take *take)
{
    size_t i = 0;
    while (n->ports[i] != take)
        i++;
    n->ports[i] = n->ports[--n->n_ports];
}

static void lay_on(struct fit_node *n, struct fit_take *take)
{
    n->pods++;
    for (size_t i = 0; i < take->takes.n_amounts; i++)
        if (take->resources[i] != FIT_RESOURCE_NONE)
            fit_nodes_need_room(n, take->resources[i])->taken +=
                (uint64_t)take->takes.amounts[i].amount;
    if (take->takes.n_ports)
        add_ports(n, take);
}

static void take_off(struct fit_node *n, const struct fit_take *take)
{
    n->pods--;
    for (size_t i = 0; i < take->takes.n_amounts; i++)
        if (take->resources[i] != FIT_RESOURCE_NONE)
            fit_nodes_need_room(n, take->resources[i])->taken -=
                (uint64_t)take->takes.amounts[i].amount;
    if (take->takes.n_ports)
        remove_ports(n, take);
}

static void uncharge(struct fit_nodes *r, uint32_t number,
                     struct fit_take *take)
{
    take_off(&r->nodes[number], take);
    fit_takes_drop(&r->takes, take);
    fit_nodes_drop(r, number);
    r->version++;
}

static void put_record(struct fit_nodes *r, const uint64_t id[2],
                       const char *node, struct record next)
{
    struct idmap_slot *slot = idmap_put(&r->pods, id);
    struct record old = record_of(slot);
    next.node = fit_nodes_need(r, node);
    memcpy(slot->data, &next, sizeof next);
    r->n_assumed += next.assumed;
    r->n_assumed -= old.take && old.assumed;
    if (old.take == next.take && old.node == next.node) {
        fit_takes_drop(&r->takes, old.take); /* most often: it takes no more */
        return;
    }
    lay_on(&r->nodes[next.node], next.take);
    if (old.take)
        uncharge(r, old.node, old.take);
}

static void remove_record(struct fit_nodes *r, struct idmap_slot *slot)
{
    struct record old = record_of(slot);
    idmap_remove(&r->pods, slot);
    r->n_assumed -= old.assumed;
    uncharge(r, old.node, old.take);
}

/* --- what is told -------------------------------------------------------- */

/* One that is put and is on no node. */
static void put_unbound(struct fit_nodes *r, enum fit_source source,
                        const struct fit_pod *pod, struct idmap_slot *slot)
{
    if (!slot)
        return;
    struct record record = record_of(slot);
    if (record.source != (source == FIT_ROLES))
        return;
    if (!record.assumed || pod->finished) {
        remove_record(r, slot);
        return;
    }
    record.lap = r->lap[source];
    memcpy(slot->data, &record, sizeof record);
}

int fit_nodes_put_pod(struct fit_nodes *r, enum fit_source source,
                      const struct fit_pod *pod, struct error *err)
{
    uint64_t id[2];
    struct pod_takes takes = {0};
    bool bound = pod->node[0] && !pod->finished;
    int rc = bound ? pod_takes_read(pod->json, pod->size, &takes, err) : 0;
    idmap_id(pod->uid, id);
    pthread_mutex_lock(&r->lock);
    if (bound)
        put_record(r, id, pod->node,
                   (struct record){.take = fit_takes_take(&r->takes, &takes),
                                   .source = source == FIT_ROLES,
                                   .lap = r->lap[source]});
    else
        put_unbound(r, source, pod, idmap_get(&r->pods, id));
    pthread_mutex_unlock(&r->lock);
    pod_takes_fini(&takes);
    return rc;
}

void fit_nodes_gone_pod(struct fit_nodes *r, enum fit_source source,
                        const char *uid)
{
    uint64_t id[2];
    idmap_id(uid, id);
    hold_lock(&r->lock);
    struct idmap_slot *slot = idmap_get(&r->pods, id);
    if (!slot || record_of(slot).source != (source == FIT_ROLES))
        return;
    remove_record(r, slot);
    idmap_shrink(&r->pods);
}

/* A list that was begun and not ended may have left some behind. */
void fit_nodes_list_pods(struct fit_nodes *r, enum fit_source source)
{
    hold_lock(&r->lock);
    r->lap[source] = !r->lap[source];
    for (size_t i = 0; i < r->pods.cap; i++) {
        struct record record = record_of(&r->pods.slots[i]);
        if (!record.take || record.source != (source == FIT_ROLES))
            continue;
        record.lap = !r->lap[source];
        memcpy(r->pods.slots[i].data, &record, sizeof record);
    }
}

void fit_nodes_listed_pods(struct fit_nodes *r, enum fit_source source)
{
    hold_lock(&r->lock);
    for (size_t i = 0; i < r->pods.cap;) {
        struct record record = record_of(&r->pods.slots[i]);
        if (record.take && record.source == (source == FIT_ROLES) &&
            record.lap != r->lap[source])
            remove_record(r, &r->pods.slots[i]); /* another may move up */
        else
            i++;
    }
    idmap_shrink(&r->pods);
}

/* --- what is assumed ------------------------------------------------------ */

void fit_nodes_assume(struct fit_nodes *r, const char *uid, const char *node,
                      const struct pod_needs *needs)
{
    uint64_t id[2];
    idmap_id(uid, id);
    hold_lock(&r->lock);
    struct idmap_slot *slot = idmap_get(&r->pods, id);
    if (slot && !record_of(slot).assumed)
        return; /* it is bound */
    put_record(r, id, node,
               (struct record){.take = fit_takes_take(&r->takes, &needs->takes),
                               .source = true,
                               .lap = r->lap[FIT_ROLES],
                               .assumed = true});
}

void fit_nodes_forget(struct fit_nodes *r, const char *uid)
{
    uint64_t id[2];
    idmap_id(uid, id);
    hold_lock(&r->lock);
    struct idmap_slot *slot = idmap_get(&r->pods, id);
    if (slot && record_of(slot).assumed)
        remove_record(r, slot);
}

size_t fit_nodes_n_assumed(struct fit_nodes *r)
{
    hold_lock(&r->lock);
    return r->n_assumed;
}

/* --- as if it were gone --------------------------------------------------- */

/* Off its node, or on it again; what is so already stays. */
static void set_lifted(struct fit_nodes *r, struct fit_node *n, const char *uid,
                       bool lifted)
{
    uint64_t id[2];
    idmap_id(uid, id);
    struct idmap_slot *slot = idmap_get(&r->pods, id);
    if (!slot)
        return;
    struct record record = record_of(slot);
    if (&r->nodes[record.node] != n || record.lifted == lifted)
        return;
    record.lifted = lifted;
    memcpy(slot->data, &record, sizeof record);
    if (lifted)
        take_off(n, record.take);
    else
        lay_on(n, record.take);
}

void fit_nodes_lift(struct fit_nodes *r, struct fit_node *n, const char *uid)
{
    set_lifted(r, n, uid, true);
}

void fit_nodes_lay_back(struct fit_nodes *r, struct fit_node *n,
                        const char *uid)
{
    set_lifted(r, n, uid, false);
}

void fit_nodes_drop_pods(struct fit_nodes *r)
{
    for (size_t i = 0; i < r->pods.cap; i++) {
        struct record record = record_of(&r->pods.slots[i]);
        if (record.take)
            fit_takes_drop(&r->takes, record.take);
    }
    idmap_fini(&r->pods);
}
