#include "tests/lib/sim/simstate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "tests/lib/sim/simhost.h"

/* --- what a writer is given -------------------------------------------- */

static struct writer *start(const struct writer_config *config)
{
    struct writer *w = NULL;
    struct error err = {0};
    if (writer_start(config, &w, &err) < 0) {
        (void)fprintf(stderr, "writer_start: %s\n", err.text);
        abort();
    }
    return w;
}

struct writer *sim_writer(const char *dir)
{
    return sim_writer_with(dir, NULL);
}

struct writer *sim_writer_with(const char *dir, struct applied *pods)
{
    return start(&(struct writer_config){
        .state_dir = dir, .fresh_ms = 15000, .pods = pods});
}

struct writer *sim_writer_piece(const char *dir, size_t piece)
{
    return start(&(struct writer_config){
        .state_dir = dir, .fresh_ms = 15000, .piece = piece});
}

char *sim_slice(const char *node, unsigned n_cards, const char *boot_id,
                int64_t generation, size_t index)
{
    cleanup_with(topo) struct topo *topo = simhost_topo(node, n_cards);
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    struct slice_epoch epoch = {.generation = generation};
    (void)snprintf(epoch.boot_id, sizeof epoch.boot_id, "%s", boot_id);
    slice_encode(topo, &epoch, index, &json);
    return str_steal(&json);
}

int sim_publish(struct writer *w, const char *node, unsigned n_cards,
                const char *boot_id, int64_t generation)
{
    cleanup_with(topo) struct topo *topo = simhost_topo(node, n_cards);
    int result = 0;
    for (size_t i = 0; i < slice_count(topo) && result == 0; i++) {
        cleanup_free char *json = sim_slice(node, n_cards, boot_id, generation,
                                            i);
        char name[SLICE_NAME_MAX + 1];
        slice_name(node, i, name);
        struct writer_op op = {.kind = WRITER_PUT_SLICE,
                               .name = name,
                               .body = json,
                               .body_size = strlen(json)};
        result = writer_run(w, &op);
    }
    return result;
}

int sim_publish_topo(struct writer *w, const struct topo *topo)
{
    const struct slice_epoch epoch = {.boot_id = "boot", .generation = 1};
    int result = 0;
    for (size_t i = 0; i < slice_count(topo) && result == 0; i++) {
        cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
        char name[SLICE_NAME_MAX + 1];
        slice_encode(topo, &epoch, i, &json);
        slice_name(topo_node(topo), i, name);
        struct writer_op op = {.kind = WRITER_PUT_SLICE,
                               .name = name,
                               .body = json.data,
                               .body_size = json.size};
        result = writer_run(w, &op);
    }
    return result;
}

int sim_publish_one(struct writer *w, const char *node, const char *boot_id,
                    int64_t generation, size_t index)
{
    cleanup_with(topo) struct topo *topo =
        simhost_nics(node, SLICE_DEVICES_MAX * SIM_SLICES, NULL);
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    struct slice_epoch epoch = {.generation = generation};
    char name[SLICE_NAME_MAX + 1];
    (void)snprintf(epoch.boot_id, sizeof epoch.boot_id, "%s", boot_id);
    slice_encode(topo, &epoch, index, &json);
    slice_name(node, index, name);
    struct writer_op op = {.kind = WRITER_PUT_SLICE,
                           .name = name,
                           .body = json.data,
                           .body_size = json.size};
    return slice_count(topo) == SIM_SLICES ? writer_run(w, &op) : -ERANGE;
}

int sim_withdraw(struct writer *w, const char *node)
{
    char name[SLICE_NAME_MAX + 1];
    slice_name(node, 0, name);
    struct writer_op op = {.kind = WRITER_DELETE_SLICE, .name = name};
    return writer_run(w, &op);
}

bool sim_heartbeat(struct writer *w, const char *node, unsigned n_cards,
                   const char *boot_id, int64_t generation)
{
    char name[SLICE_NAME_MAX + 1];
    uint64_t version;
    slice_name(node, 0, name);
    cleanup_free char *json = sim_slice(node, n_cards, boot_id, generation, 0);
    return writer_heartbeat(
        w, &(struct slice_cache_body){name, NULL, json, strlen(json)},
        &version);
}

struct demand sim_pod(const char *name, enum pod_role role, const char *job,
                      int pair)
{
    struct demand d = {.role = role,
                       .pair = pair,
                       .size = 1,
                       .cards = 1,
                       .pair_cards = 1,
                       .align = RELATION_SYS,
                       .within = DEMAND_ANYWHERE,
                       .prefer_within = DEMAND_ANYWHERE};
    (void)snprintf(d.namespace, sizeof d.namespace, "ns");
    (void)snprintf(d.name, sizeof d.name, "%s", name);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%.40s", name);
    (void)snprintf(d.job, sizeof d.job, "%s", job);
    return d;
}

struct demand sim_member(const char *name, enum pod_role role, const char *job,
                         int pair, int size)
{
    struct demand d = sim_pod(name, role, job, pair);
    d.size = size;
    d.prefer_align = RELATION_PIX;
    d.within = d.prefer_within = DEMAND_ANYWHERE;
    return d;
}

struct demand sim_need(struct demand d, uint32_t cores, uint32_t memory_mib)
{
    d.has_card_need = true;
    d.card_cores = cores;
    d.card_memory_mib = memory_mib;
    return d;
}

int sim_bind(struct writer *w, const struct demand *d, const char *node,
             bool *ret_created, struct error *err)
{
    struct writer_op op = {.kind = WRITER_BIND,
                           .node = node,
                           .demand = d,
                           .out = STR_INIT(1 << 20)};
    int result = writer_run(w, &op);
    if (ret_created)
        *ret_created = op.created;
    if (err)
        *err = op.error;
    str_fini(&op.out);
    return result;
}

int sim_release(struct writer *w, const char *pod)
{
    struct writer_op op = {
        .kind = WRITER_RELEASE, .namespace = "ns", .pod = pod};
    return writer_run(w, &op);
}

/* --- the check --------------------------------------------------------- */

static bool has_device(char (*ids)[TOPO_ID_MAX + 1], size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ids[i], id) == 0)
            return true;
    return false;
}

/* What one pair takes of one card, in cores or memory. */
static uint64_t pair_takes(const struct node *n, const char *pair,
                           const char *card, bool memory)
{
    uint64_t host = 0, xpu = 0, service = 0;
    for (size_t i = 0; i < n->n_allocations; i++) {
        const struct allocation *a = n->allocations[i];
        const struct demand *d = &a->demand;
        uint64_t need = memory ? d->card_memory_mib : d->card_cores;
        if (strcmp(a->pair_key, pair) != 0 ||
            !has_device(a->cards, a->n_cards, card))
            continue;
        if (d->role == ROLE_XPU)
            xpu += need;
        else if (d->role == ROLE_SERVICE)
            service += need;
        else if (host < need)
            host = need;
    }
    return service + (host > xpu ? host : xpu);
}

static bool first_of_pair(const struct node *n, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(n->allocations[i]->pair_key, n->allocations[at]->pair_key) ==
            0)
            return false;
    return true;
}

static bool check_card(const struct node *n, const struct device *card,
                       struct str *why)
{
    uint64_t cores = 0, memory = 0;
    size_t n_pairs = 0;
    bool exclusive = false;
    for (size_t i = 0; i < n->n_allocations; i++) {
        const struct allocation *a = n->allocations[i];
        bool has = false;
        for (size_t k = 0; k < n->n_allocations; k++) {
            const struct allocation *b = n->allocations[k];
            has |= strcmp(a->pair_key, b->pair_key) == 0 &&
                   has_device(b->cards, b->n_cards, card->id);
        }
        exclusive |= a->demand.exclusive &&
                     has_device(a->cards, a->n_cards, card->id);
        if (!has || !first_of_pair(n, i))
            continue;
        n_pairs++;
        cores += pair_takes(n, a->pair_key, card->id, false);
        memory += pair_takes(n, a->pair_key, card->id, true);
    }
    if (exclusive && n_pairs > 1)
        str_addf(why, "%s of %s: exclusive, and %zu pairs have it", card->id,
                 n->name, n_pairs);
    else if (cores > card->cores || memory > card->memory_mib)
        str_addf(why, "%s of %s: gives %llu cores and %llu MiB", card->id,
                 n->name, (unsigned long long)cores,
                 (unsigned long long)memory);
    else
        return true;
    return false;
}

static bool check_lone(const struct node *n, const struct device *d,
                       struct str *why)
{
    size_t n_pods = 0;
    for (size_t i = 0; i < n->n_allocations; i++)
        n_pods += has_device(n->allocations[i]->gpus, n->allocations[i]->n_gpus,
                             d->id) ||
                  has_device(n->allocations[i]->nics, n->allocations[i]->n_nics,
                             d->id);
    if (n_pods > 1)
        str_addf(why, "%s of %s: given to %zu pods", d->id, n->name, n_pods);
    return n_pods <= 1;
}

static bool check_node(const struct snapshot *s, const struct node *n,
                       struct str *why)
{
    size_t n_list = 0;
    cleanup_free const struct allocation **list =
        alloc_index_on_node(s->allocations, n->name, &n_list);
    bool same = n_list == n->n_allocations;
    for (size_t i = 0; i < n_list && same; i++)
        same = list[i] == n->allocations[i];
    if (!same) {
        str_addf(why, "%s: its list of allocations is not the index's",
                 n->name);
        return false;
    }
    for (size_t i = 0; n->topo && i < topo_n_devices(n->topo); i++) {
        const struct device *d = topo_device(n->topo, i);
        if (d->kind == DEVICE_CARD && !check_card(n, d, why))
            return false;
        if ((d->kind == DEVICE_GPU || d->kind == DEVICE_NIC) &&
            !check_lone(n, d, why))
            return false;
    }
    return true;
}

bool sim_check(const struct snapshot *s, struct str *why)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        if (!check_node(s, snapshot_node(s, i), why))
            return false;
    return true;
}

uint32_t sim_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)hash_mix(*state, UINT64_C(0xd6e8feb86659fd93));
}
