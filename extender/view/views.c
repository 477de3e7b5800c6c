#include "extender/view/views.h"

#include <inttypes.h>
#include <string.h>

#include "extender/judge/alignment.h"
#include "extender/state/overcommit.h"
#include "extender/view/policy_view.h"

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
    if (s->drained & bit)
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

static void add_text(struct str *out, const char *key, const char *text)
{
    str_addf(out, ",\"%s\":", key);
    str_add_json(out, text);
}

/* Left out when it is not known. */
static void add_known_text(struct str *out, const char *key, const char *text)
{
    if (*text)
        add_text(out, key, text);
}

static void add_known(struct str *out, const char *key, uint64_t number)
{
    if (number)
        str_addf(out, ",\"%s\":%" PRIu64, key, number);
}

static void add_index(struct str *out, const char *key, int index)
{
    if (index >= 0)
        str_addf(out, ",\"%s\":%d", key, index);
    else
        str_addf(out, ",\"%s\":null", key);
}

static void add_address(struct str *out, const char *key,
                        const struct pci_addr *addr)
{
    char text[PCI_ADDR_TEXT_MAX];
    pci_addr_format(addr, text);
    add_text(out, key, text);
}

static void add_addresses(struct str *out, const char *key,
                          const struct pci_addr *addrs, size_t n)
{
    str_addf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        char text[PCI_ADDR_TEXT_MAX];
        pci_addr_format(&addrs[i], text);
        str_addf(out, "%s\"%s\"", i ? "," : "", text);
    }
    str_add_c(out, ']');
}

static void add_device(struct str *out, const struct device *d)
{
    str_add(out, "\"id\":");
    str_add_json(out, d->id);
    add_text(out, "kind", device_kind_name(d->kind));
    if (d->has_pci)
        add_address(out, "pci", &d->pci);
    else
        str_add(out, ",\"pci\":null");
    add_index(out, "numa", d->numa);
    add_index(out, "package", d->package);
    add_known_text(out, "vendor", d->vendor);
    add_known_text(out, "model", d->model);
    add_known_text(out, "serial", d->serial);
    if (d->has_pci) {
        str_addf(out, ",\"pciId\":\"%04x:%04x\"", d->vendor_id, d->device_id);
        str_addf(out, ",\"root\":\"pci%04x:%02x\"", (unsigned)d->root_domain,
                 d->root_bus);
        add_addresses(out, "path", d->path, d->n_path);
    }
    add_known_text(out, "interface", d->interface);
    add_known_text(out, "rdma", d->rdma);
    add_known_text(out, "guid", d->guid);
    if (d->kind == DEVICE_CARD) {
        add_addresses(out, "functions", d->functions, d->n_functions);
        str_addf(out, ",\"healthy\":%s", d->unhealthy ? "false" : "true");
        add_known_text(out, "health", d->health);
    }
    add_known_text(out, "arch", d->arch);
    add_known_text(out, "fabricPort", d->fabric_port);
    add_known_text(out, "endpoint", d->endpoint);
    add_known(out, "cores", d->cores);
    add_known(out, "cpus", d->cpus);
    add_known_text(out, "cpuList", d->cpu_list);
    add_known(out, "memoryMiB",
              d->kind == DEVICE_NUMA ? d->numa_memory_mib : d->memory_mib);
}

void view_card(const struct node *node, const struct policy *policy,
               size_t card, struct str *out)
{
    const struct device *d = card_device(node, card);
    const char *comma = "";
    str_add(out, "{\"node\":");
    str_add_json(out, node->name);
    str_add_c(out, ',');
    add_device(out, d);
    add_text(out, "state", card_state_name(card_state(node, card)));
    if (d->cores)
        str_addf(out, ",\"freeCores\":%" PRIu32, node->state.free_cores[card]);
    if (d->memory_mib)
        str_addf(out, ",\"freeMemoryMiB\":%" PRIu32,
                 node->state.free_memory_mib[card]);
    str_add(out, ",\"reserved\":");
    policy_view_card(node, policy, card, out);
    str_add(out, ",\"pods\":[");
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        if (!is_on_card(a, d->id))
            continue;
        str_add(out, comma);
        str_add(out, "{\"namespace\":");
        str_add_json(out, a->demand.namespace);
        add_text(out, "name", a->demand.name);
        add_text(out, "role", pod_role_name(a->demand.role));
        str_add_c(out, '}');
        comma = ",";
    }
    str_add(out, "]}");
}

/* --- nodes ---------------------------------------------------------------- */

struct counts {
    size_t cards, gpus, free_gpus, nics, numas;
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
    return c;
}

static void add_node(struct str *out, const struct node *node)
{
    struct counts c = count_devices(node);
    str_add(out, "{\"name\":");
    str_add_json(out, node->name);
    add_text(out, "status", node_status_name(node->status));
    str_addf(out, ",\"cards\":{\"total\":%zu", c.cards);
    for (size_t i = 0; i < CARD_STATES; i++)
        str_addf(out, ",\"%s\":%zu", card_state_name((enum card_state)i),
                 c.states[i]);
    str_addf(out,
             "},\"gpus\":{\"total\":%zu,\"free\":%zu},\"nics\":%zu,"
             "\"numas\":%zu,\"allocations\":%zu,\"generation\":%" PRId64,
             c.gpus, c.free_gpus, c.nics, c.numas, node->n_allocations,
             node->epoch.generation);
    add_text(out, "bootId", node->epoch.boot_id);
    add_text(out, "contentHash", node->hash);
    str_addf(out, ",\"slices\":{\"present\":%zu,\"expected\":%zu}",
             node->n_slices, node->pool_count);
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
    const char *begin = ",\"room\":{";
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].amount == INT64_MAX)
            continue;
        str_addf(out, "%s\"%s\":%" PRId64, begin, parts[i].key,
                 parts[i].amount);
        begin = ",";
    }
    if (*begin == ',' && !begin[1])
        str_add_c(out, '}');
}

static void add_overfull(struct str *out, const struct node *node,
                         const struct policy *policy)
{
    const char *comma = "";
    str_add(out, ",\"overfull\":[");
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
        if (a->held ||
            overcommit_find(node, policy, a, &text) == OVERCOMMIT_NOT)
            continue;
        str_addf(out, "%s{\"namespace\":", comma);
        str_add_json(out, a->demand.namespace);
        add_text(out, "name", a->demand.name);
        add_text(out, "text", str_text(&text));
        str_add_c(out, '}');
        comma = ",";
    }
    str_add_c(out, ']');
}

void view_node_whole(const struct snapshot *s, size_t index, int64_t now_ms,
                     struct str *out)
{
    const struct node *node = snapshot_node(s, index);
    const struct host_room room = snapshot_room_left(s, index);
    size_t first, n_cards = view_count(node, DEVICE_CARD, &first);
    add_node(out, node);
    str_addf(out, ",\"heardMs\":%" PRId64,
             now_ms - atomic_load(&node->liveness->heard_ms));
    add_room(out, &room);
    str_add(out, ",\"cardList\":[");
    for (size_t i = 0; i < n_cards; i++) {
        str_add(out, i ? "," : "");
        view_card(node, s->policy, i, out);
    }
    str_add(out, "],\"allocationList\":[");
    for (size_t i = 0; i < node->n_allocations; i++) {
        str_add(out, i ? "," : "");
        alignment_encode(s, node->allocations[i], out);
    }
    str_add_c(out, ']');
    add_overfull(out, node, s->policy);
    str_add_c(out, '}');
}

/* --- topology ------------------------------------------------------------- */

void view_topology(const struct node *node, struct str *out)
{
    size_t n = node->topo ? topo_n_devices(node->topo) : 0;
    str_add(out, "{\"node\":");
    str_add_json(out, node->name);
    add_text(out, "status", node_status_name(node->status));
    str_add(out, ",\"devices\":[");
    for (size_t i = 0; i < n; i++) {
        str_add(out, i ? ",{" : "{");
        add_device(out, topo_device(node->topo, i));
        str_add_c(out, '}');
    }
    str_add(out, "],\"relations\":{");
    for (size_t i = 0; i < n; i++) {
        const char *comma = "";
        str_add(out, i ? "," : "");
        str_add_json(out, topo_device(node->topo, i)->id);
        str_add(out, ":{");
        for (size_t j = 0; j < n; j++) {
            if (i == j)
                continue;
            str_add(out, comma);
            str_add_json(out, topo_device(node->topo, j)->id);
            str_add(out, ":\"");
            str_add(out, relation_name(topo_relation(node->topo, i, j)));
            str_add_c(out, '"');
            comma = ",";
        }
        str_add_c(out, '}');
    }
    str_add(out, "}}");
}

/* --- tables --------------------------------------------------------------- */

const char *const view_node_heads[] = {
    "NODE", "STATUS", "CARDS",      "IDLE",    "GPUS",
    "FREE", "PODS",   "GENERATION", "DRAINED", NULL};
const char *const view_card_heads[] = {"NODE",  "CARD",   "PCI",   "NUMA",
                                       "MODEL", "ARCH",   "CORES", "MEMORY-MIB",
                                       "STATE", "HEALTH", "PODS",  NULL};
const char *const view_allocation_heads[] = {
    "POD",   "ROLE", "JOB",  "PAIR",     "NODE",
    "CARDS", "GPUS", "NUMA", "RELATION", NULL};

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

static void add_ids(struct table *t, char (*ids)[TOPO_ID_MAX + 1], size_t n)
{
    cleanup_str struct str text = STR_INIT(4096);
    for (size_t i = 0; i < n; i++)
        str_addf(&text, "%s%s", i ? "," : "", ids[i]);
    table_add(t, n ? str_text(&text) : "-");
}

void view_allocation_row(const struct snapshot *s, const struct allocation *a,
                         struct table *t)
{
    const struct demand *d = &a->demand;
    table_addf(t, "%s/%s", d->namespace, d->name);
    table_add(t, pod_role_name(d->role));
    table_add(t, *d->job ? d->job : "-");
    table_add_known(t, *d->job ? d->pair : -1);
    table_add(t, a->node);
    add_ids(t, a->cards, a->n_cards);
    add_ids(t, a->gpus, a->n_gpus);
    table_add_known(t, a->numa);
    table_add(t, alignment_word(s, a));
}
