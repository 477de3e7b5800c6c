#include "extender/view/views.h"

#include <inttypes.h>
#include <string.h>

#include "extender/achieved/achieved.h"
#include "extender/judge/alignment.h"
#include "extender/state/overcommit.h"
#include "extender/view/policy_view.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

/* --- cards ---------------------------------------------------------------- */

const char *card_state_name(enum card_state state)
{
    static const char *const names[CARD_STATES] = {
        "idle", "used", "held", "unhealthy", "drained", "unavailable"};
    return state < CARD_STATES ? names[state] : "";
}

size_t view_count(const struct node *node, enum device_kind kind,
                  size_t *ret_first)
{
    *ret_first = 0;
    return node->topo ? topo_count(node->topo, kind, ret_first) : 0;
}

static const struct device *card_device(const struct node *node, size_t card)
{
    size_t first;
    (void)view_count(node, DEVICE_CARD, &first);
    return topo_device(node->topo, first + card);
}

static bool is_on_card(const struct allocation *a, const char *id)
{
    for (size_t i = 0; i < a->n_cards; i++)
        if (strcmp(a->cards[i], id) == 0)
            return true;
    return false;
}

enum card_state card_state(const struct node *node, size_t card)
{
    const struct node_state *s = &node->state;
    unsigned bit = 1U << card;
    if ((s->drained & bit) ||
        card_bars_drain(node->bars, card_device(node, card)->id))
        return CARD_DRAINED;
    if (card_device(node, card)->unhealthy)
        return CARD_UNHEALTHY;
    if (node->status != NODE_READY || !(s->usable & bit))
        return CARD_UNAVAILABLE;
    if (s->closed & bit)
        return CARD_HELD;
    if (s->occupied & bit)
        return CARD_USED;
    /* a share that is only kept free makes nobody be there */
    const char *id = card_device(node, card)->id;
    for (size_t i = 0; s->shared & bit && i < node->n_allocations; i++)
        if (is_on_card(node->allocations[i], id))
            return CARD_USED;
    return CARD_IDLE;
}

/* --- members -------------------------------------------------------------- */

static void add_addresses(struct str *out, const char *key,
                          const struct pci_addr *addrs, size_t n)
{
    jwrite_array(out, key);
    for (size_t i = 0; i < n; i++) {
        char text[PCI_ADDR_TEXT_MAX];
        pci_addr_format(&addrs[i], text);
        jwrite_text(out, NULL, text);
    }
    jwrite_end_array(out);
}

static void add_device(struct str *out, const struct topo *topo,
                       const struct device *d)
{
    const struct identity own = topo_identity(topo, d);
    char pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(&d->pci, pci);
    jwrite_text(out, "id", d->id);
    jwrite_text(out, "kind", device_kind_name(d->kind));
    jwrite_text_or_null(out, "pci", d->has_pci ? pci : NULL);
    jwrite_int_or_null(out, "numa", d->numa);
    jwrite_int_or_null(out, "package", d->package);
    jwrite_known_text(out, "vendor", d->vendor);
    jwrite_known_text(out, "model", d->model);
    jwrite_known_text(out, "serial", own.serial);
    if (d->has_pci) {
        str_addf(out, ",\"pciId\":\"%04x:%04x\"", d->vendor_id, d->device_id);
        str_addf(out, ",\"root\":\"pci%04x:%02x\"", (unsigned)d->root_domain,
                 d->root_bus);
        add_addresses(out, "path", d->path, d->n_path);
    }
    jwrite_known_text(out, "interface", d->interface);
    jwrite_known_text(out, "rdma", d->rdma);
    jwrite_known_text(out, "guid", own.guid);
    if (d->kind == DEVICE_CARD) {
        add_addresses(out, "functions", d->functions, d->n_functions);
        jwrite_bool(out, "healthy", !d->unhealthy);
        jwrite_known_text(out, "health", d->health);
        jwrite_known_text(out, "barred", d->barred);
        if (d->by_claims)
            jwrite_bool(out, "claims", true);
    }
    jwrite_known_text(out, "arch", d->arch);
    jwrite_known_text(out, "fabricPort", own.fabric_port);
    jwrite_known_text(out, "endpoint", own.endpoint);
    jwrite_known_text(out, "devices", d->devices);
    jwrite_known_text(out, "rights", d->rights);
    jwrite_known(out, "cores", d->cores);
    jwrite_known(out, "cpus", d->cpus);
    jwrite_known_text(out, "cpuList", d->cpu_list);
    jwrite_known(out, "memoryMiB",
                 d->kind == DEVICE_NUMA ? d->numa_memory_mib : d->memory_mib);
}

/* Without the end of the object. */
static void add_pod(struct str *out, const struct allocation *a)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", a->demand.namespace);
    jwrite_text(out, "name", a->demand.name);
}

/* "ns/name" as two members; without the end of the object. */
static void add_claim(struct str *out, const struct claim_use *c)
{
    const char *slash = strchr(c->key, '/');
    cleanup_free char *namespace = xstrndup(c->key, (size_t)(slash - c->key));
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", namespace);
    jwrite_text(out, "name", slash + 1);
}

/* Foreign claims that have some of the card; nothing when there are none. */
static void add_card_claims(struct str *out, const struct node *node,
                            size_t card)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_rests; i++) {
        if (!(node->rests[i].cards >> card & 1))
            continue;
        if (n++ == 0)
            jwrite_array(out, "claims");
        add_claim(out, node->rests[i].claim);
        jwrite_end_object(out);
    }
    if (n)
        jwrite_end_array(out);
}

/* The member "drain" of a card, or ("") of a node; nothing when it is none. */
static void add_drain(struct str *out, const struct node *node,
                      const char *card)
{
    const struct card_bar *drain = card_bars_drain(node->bars, card);
    if (!drain)
        return;
    jwrite_object(out, "drain");
    jwrite_text(out, "reason", drain->reason);
    jwrite_text(out, "since", drain->since);
    jwrite_known_text(out, "by", drain->by);
    jwrite_bool(out, "evict", drain->evict);
    jwrite_bool(out, "wholeNode", !drain->card[0]);
    jwrite_end_object(out);
}

void view_card(const struct node *node, const struct policy *policy,
               size_t card, struct str *out)
{
    const struct device *d = card_device(node, card);
    jwrite_object(out, NULL);
    jwrite_text(out, "node", node->name);
    add_device(out, node->topo, d);
    jwrite_text(out, "state", card_state_name(card_state(node, card)));
    add_drain(out, node, d->id);
    if (d->cores)
        jwrite_uint(out, "freeCores", node->state.free_cores[card]);
    if (d->memory_mib)
        jwrite_uint(out, "freeMemoryMiB", node->state.free_memory_mib[card]);
    jwrite_key(out, "reserved");
    policy_view_card(node, policy, card, out);
    jwrite_array(out, "pods");
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        if (!is_on_card(a, d->id))
            continue;
        add_pod(out, a);
        jwrite_text(out, "role", pod_role_name(a->demand.role));
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    add_card_claims(out, node, card);
    jwrite_end_object(out);
}

/* --- nodes ---------------------------------------------------------------- */

struct counts {
    size_t cards, gpus, free_gpus, nics, compute_nics, free_nics, numas;
    size_t states[CARD_STATES];
};

static struct counts count_devices(const struct node *node)
{
    struct counts c = {0};
    size_t first;
    c.cards = view_count(node, DEVICE_CARD, &first);
    c.gpus = view_count(node, DEVICE_GPU, &first);
    c.nics = view_count(node, DEVICE_NIC, &first);
    c.numas = view_count(node, DEVICE_NUMA, &first);
    for (size_t i = 0; i < c.cards; i++)
        c.states[card_state(node, i)]++;
    for (size_t i = 0; i < c.gpus; i++)
        c.free_gpus += !(node->state.gpus_used >> i & 1);
    c.compute_nics = node->shape ? node->shape->n_nics : 0;
    for (size_t i = 0; i < c.compute_nics; i++)
        c.free_nics += !(node->state.nics_used >> i & 1);
    return c;
}

/* Without the end of the object. */
static void add_node(struct str *out, const struct node *node)
{
    struct counts c = count_devices(node);
    jwrite_object(out, NULL);
    jwrite_text(out, "name", node->name);
    jwrite_text(out, "status", node_status_name(node->status));
    add_drain(out, node, "");
    jwrite_object(out, "cards");
    jwrite_uint(out, "total", c.cards);
    for (size_t i = 0; i < CARD_STATES; i++)
        jwrite_uint(out, card_state_name((enum card_state)i), c.states[i]);
    jwrite_end_object(out);
    jwrite_object(out, "gpus");
    jwrite_uint(out, "total", c.gpus);
    jwrite_uint(out, "free", c.free_gpus);
    jwrite_end_object(out);
    jwrite_uint(out, "nics", c.nics);
    jwrite_object(out, "computeNics");
    jwrite_uint(out, "total", c.compute_nics);
    jwrite_uint(out, "free", c.free_nics);
    jwrite_end_object(out);
    jwrite_uint(out, "numas", c.numas);
    jwrite_uint(out, "allocations", node->n_allocations);
    jwrite_int(out, "generation", node->epoch.generation);
    jwrite_text(out, "bootId", node->epoch.boot_id);
    jwrite_text(out, "contentHash", node->hash);
    jwrite_object(out, "slices");
    jwrite_uint(out, "present", node->n_slices);
    jwrite_uint(out, "expected", node->pool_count);
    jwrite_end_object(out);
}

void view_node(const struct node *node, struct str *out)
{
    add_node(out, node);
    str_add_c(out, '}');
}

static void add_room(struct str *out, const struct host_room *room)
{
    const struct {
        const char *key;
        int64_t amount;
    } parts[] = {{"cpuMilli", room->cpu_milli},
                 {"memoryMiB", room->memory_mib},
                 {"pods", room->pods}};
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].amount == INT64_MAX)
            continue;
        if (!any)
            jwrite_object(out, "room");
        jwrite_int(out, parts[i].key, parts[i].amount);
        any = true;
    }
    if (any)
        jwrite_end_object(out);
}

/* Whoever is not seen counts, too, and by its own name. */
static void add_overfull(struct str *out, const struct node *node,
                         const struct policy *policy)
{
    const struct node *whole = node_whole(node);
    jwrite_array(out, "overfull");
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = whole->allocations[i];
        cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
        if (a->held ||
            overcommit_find(whole, policy, a, &text) == OVERCOMMIT_NOT)
            continue;
        add_pod(out, node->allocations[i]);
        jwrite_text(out, "text", str_text(&text));
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

static void add_bits(struct str *out, const char *key, const struct node *node,
                     enum device_kind kind, unsigned bits)
{
    size_t considered[TOPO_KIND_MAX];
    (void)topo_considered(node->topo, kind, considered);
    jwrite_array(out, key);
    for (; bits; bits &= bits - 1)
        jwrite_text(
            out, NULL,
            topo_device(node->topo, considered[__builtin_ctz(bits)])->id);
    jwrite_end_array(out);
}

static void add_claims(struct str *out, const struct node *node)
{
    if (node->n_rests == 0)
        return;
    jwrite_array(out, "claimList");
    for (size_t i = 0; i < node->n_rests; i++) {
        add_claim(out, node->rests[i].claim);
        add_bits(out, "cards", node, DEVICE_CARD, node->rests[i].cards);
        add_bits(out, "gpus", node, DEVICE_GPU, node->rests[i].gpus);
        if (node->rests[i].nics)
            add_bits(out, "nics", node, DEVICE_NIC, node->rests[i].nics);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

void view_node_whole(const struct snapshot *s, size_t index, int64_t now_ms,
                     struct str *out)
{
    const struct node *node = snapshot_node(s, index);
    const struct host_room room = snapshot_room_left(s, index);
    size_t first, n_cards = view_count(node, DEVICE_CARD, &first);
    add_node(out, node);
    jwrite_int(out, "heardMs", now_ms - atomic_load(&node->liveness->heard_ms));
    add_room(out, &room);
    jwrite_array(out, "cardList");
    for (size_t i = 0; i < n_cards; i++)
        view_card(node, s->policy, i, out);
    jwrite_end_array(out);
    jwrite_array(out, "allocationList");
    for (size_t i = 0; i < node->n_allocations; i++) {
        jwrite_key(out, NULL);
        alignment_encode(s, node->allocations[i], out);
    }
    jwrite_end_array(out);
    add_claims(out, node);
    add_overfull(out, node, s->policy);
    jwrite_end_object(out);
}

/* --- topology ------------------------------------------------------------- */

void view_topology(const struct node *node, struct str *out)
{
    size_t n = node->topo ? topo_n_devices(node->topo) : 0;
    jwrite_object(out, NULL);
    jwrite_text(out, "node", node->name);
    jwrite_text(out, "status", node_status_name(node->status));
    jwrite_array(out, "devices");
    for (size_t i = 0; i < n; i++) {
        jwrite_object(out, NULL);
        add_device(out, node->topo, topo_device(node->topo, i));
        if (topo_device(node->topo, i)->kind == DEVICE_CARD)
            add_drain(out, node, topo_device(node->topo, i)->id);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_object(out, "relations");
    for (size_t i = 0; i < n; i++) {
        jwrite_object(out, topo_device(node->topo, i)->id);
        for (size_t j = 0; j < n; j++)
            if (i != j)
                jwrite_text(out, topo_device(node->topo, j)->id,
                            relation_name(topo_relation(node->topo, i, j)));
        jwrite_end_object(out);
    }
    jwrite_end_object(out);
    jwrite_end_object(out);
}

/* --- tables --------------------------------------------------------------- */

const char *const view_node_heads[] = {
    "NODE", "STATUS", "CARDS",      "IDLE",    "GPUS",
    "FREE", "PODS",   "GENERATION", "DRAINED", NULL};
const char *const view_card_heads[] = {"NODE",  "CARD",   "PCI",   "NUMA",
                                       "MODEL", "ARCH",   "CORES", "MEMORY-MIB",
                                       "STATE", "HEALTH", "PODS",  NULL};
const char *const view_allocation_heads[] = {
    "POD",  "ROLE", "JOB",  "PAIR",     "NODE",     "CARDS",
    "GPUS", "NICS", "NUMA", "RELATION", "ACHIEVED", NULL};

void view_node_row(const struct node *node, struct table *t)
{
    struct counts c = count_devices(node);
    table_add(t, node->name);
    table_add(t, node_status_name(node->status));
    table_addf(t, "%zu", c.cards);
    table_addf(t, "%zu", c.states[CARD_IDLE]);
    table_addf(t, "%zu", c.gpus);
    table_addf(t, "%zu", c.free_gpus);
    table_addf(t, "%zu", node->n_allocations);
    table_addf(t, "%" PRId64, node->epoch.generation);
    table_addf(t, "%zu", c.states[CARD_DRAINED]);
}

void view_card_row(const struct node *node, size_t card, struct table *t)
{
    const struct device *d = card_device(node, card);
    char pci[PCI_ADDR_TEXT_MAX] = "-";
    size_t n_pods = 0;
    if (d->has_pci)
        pci_addr_format(&d->pci, pci);
    for (size_t i = 0; i < node->n_allocations; i++)
        n_pods += is_on_card(node->allocations[i], d->id);
    table_add(t, node->name);
    table_add(t, d->id);
    table_add(t, pci);
    table_add_known(t, d->numa);
    table_add(t, *d->model ? d->model : "-");
    table_add(t, *d->arch ? d->arch : "-");
    if (d->cores)
        table_addf(t, "%" PRIu32 "/%" PRIu32, node->state.free_cores[card],
                   d->cores);
    else
        table_add(t, "-");
    if (d->memory_mib)
        table_addf(t, "%" PRIu32 "/%" PRIu64, node->state.free_memory_mib[card],
                   d->memory_mib);
    else
        table_add(t, "-");
    table_add(t, card_state_name(card_state(node, card)));
    table_add(t, *d->health ? d->health : "-");
    table_addf(t, "%zu", n_pods);
}

void view_ids(char (*ids)[TOPO_ID_MAX + 1], size_t n, struct table *t)
{
    cleanup_str struct str text = STR_INIT(4096);
    for (size_t i = 0; i < n; i++)
        str_addf(&text, "%s%s", i ? "," : "", ids[i]);
    table_add(t, n ? str_text(&text) : "-");
}

void view_allocation(const struct snapshot *s, struct achieved_book *book,
                     const struct allocation *a, struct str *out)
{
    cleanup_with(achieved_report) struct achieved_report *report =
        achieved_book_get(book, a->node);
    alignment_encode(s, a, out);
    if (a->held || out->overflow || out->size == 0)
        return;
    out->data[--out->size] = '\0'; /* its last brace */
    achieved_write(s, a, report, out);
    str_add_c(out, '}');
}

void view_achieved_cell(const struct snapshot *s, struct achieved_book *book,
                        const struct allocation *a, struct table *t)
{
    cleanup_with(achieved_report) struct achieved_report *report =
        achieved_book_get(book, a->node);
    struct achieved x;
    if (a->held) {
        table_add(t, "-");
        return;
    }
    achieved_judge(s, a, report, &x, NULL);
    if (x.state == ACHIEVED_LOST)
        table_addf(t, "%s lost", achieved_word(&x));
    else if (x.state == ACHIEVED_KEPT && !achieved_counts(a))
        table_add(t, "kept");
    else
        table_add(t, achieved_word(&x));
}

void view_allocation_row(const struct snapshot *s, struct achieved_book *book,
                         const struct allocation *a, struct table *t)
{
    const struct demand *d = &a->demand;
    table_addf(t, "%s/%s", d->namespace, d->name);
    table_add(t, pod_role_name(d->role));
    table_add(t, *d->job ? d->job : "-");
    table_add_known(t, *d->job ? d->pair : -1);
    table_add(t, a->node);
    view_ids(a->cards, a->n_cards, t);
    view_ids(a->gpus, a->n_gpus, t);
    view_ids(a->nics, a->n_nics, t);
    table_add_known(t, a->numa);
    table_add(t, alignment_word(s, a));
    view_achieved_cell(s, book, a, t);
}
