#include "extender/judge/alignment.h"

#include <string.h>

#include "extender/state/usage.h"
#include "model/decide/decide.h"

bool alignment_is_good(const struct node *node, const struct allocation *a,
                       int32_t rank)
{
    struct demand pair;
    if (!node || !node->topo || !node->shape)
        return false;
    struct choice choice = {
        .cards = allocation_cards(node->topo, a),
        .gpus = allocation_gpus(node->topo, a),
        .relation = (uint8_t)a->relation,
        .numa = (int16_t)a->numa,
    };
    demand_pair_nameless(&a->demand, rank, &pair);
    return decide_is_aligned(node->shape, &pair, &choice);
}

enum alignment alignment_judge(const struct node *node,
                               const struct allocation *a)
{
    if (alignment_is_good(node, a, a->demand.pair))
        return ALIGNMENT_GOOD;
    return a->relation <= RELATION_NODE ? ALIGNMENT_DEGRADED : ALIGNMENT_NONE;
}

/* --- of one pod ----------------------------------------------------------- */

/* Is its relation that to the GPUs of its pair's host pod, of which it has
 * none itself? */
static bool is_of_pair(const struct allocation *a)
{
    return a->n_gpus == 0 && a->relation < RELATION_NODE;
}

static const struct topo *topo_of(const struct snapshot *s,
                                  const struct allocation *a)
{
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    return index == NODE_NONE ? NULL : snapshot_node(s, (size_t)index)->topo;
}

/* The index of a NUMA node; false when there is none of that number. */
static bool find_numa(const struct topo *topo, int numa, size_t *ret_index)
{
    size_t first, n = topo_count(topo, DEVICE_NUMA, &first);
    size_t i = 0;
    while (i < n && topo_device(topo, first + i)->numa != numa)
        i++;
    *ret_index = first + i;
    return i < n;
}

/* How close its cards are to its own GPUs, or else to the NUMA node of its
 * (host) pod. */
static enum relation own_relation(const struct snapshot *s,
                                  const struct allocation *a)
{
    enum relation worst = RELATION_NODE;
    size_t numa, first;
    if (!is_of_pair(a))
        return a->relation;
    const struct topo *topo = topo_of(s, a);
    if (!topo || !find_numa(topo, a->numa, &numa))
        return RELATION_SYS;
    (void)topo_count(topo, DEVICE_CARD, &first);
    for (unsigned c = allocation_cards(topo, a); c; c &= c - 1) {
        enum relation r = topo_relation(topo, first + (size_t)__builtin_ctz(c),
                                        numa);
        worst = r > worst ? r : worst;
    }
    return worst;
}

int alignment_relation(const struct snapshot *s, const struct allocation *a)
{
    return a->n_gpus == 0 && a->numa < 0 ? -1 : (int)own_relation(s, a);
}

const char *alignment_word(const struct snapshot *s, const struct allocation *a)
{
    int relation = alignment_relation(s, a);
    return relation < 0 ? "-" : relation_name((enum relation)relation);
}

void alignment_write(const struct snapshot *s, const struct allocation *a,
                     struct str *out)
{
    const char *word = alignment_word(s, a);
    if (*word == '-')
        str_add(out, ",\"alignment\":null");
    else
        str_addf(out, ",\"alignment\":{\"relation\":\"%s\",\"to\":\"%s\"}",
                 word, a->n_gpus ? "gpus" : "numa");
}

/* Nobody can be told before which GPUs a device plugin gives it. */
static bool by_plugin(const struct allocation *a)
{
    return a->n_gpus && !a->held && a->demand.gpus_by_plugin;
}

void alignment_encode(const struct snapshot *s, const struct allocation *a,
                      struct str *out)
{
    allocation_encode(a, out);
    if (out->overflow || out->size == 0)
        return;
    out->data[--out->size] = '\0'; /* its last brace */
    alignment_write(s, a, out);
    if (by_plugin(a))
        str_add(out, ",\"gpusChosenBy\":\"device-plugin\"");
    str_add_c(out, '}');
}

/* --- in words ---------------------------------------------------------- */

/* The host pod that an xPU pod belongs to, or its place; false: none. */
static bool host_pod(const struct snapshot *snapshot,
                     const struct allocation *a, struct str *text)
{
    enum { MEMBERS_MAX = 64 };
    const struct allocation *pair[MEMBERS_MAX];
    size_t n = alloc_index_find_pair(snapshot->allocations, a->pair_key, pair,
                                     MEMBERS_MAX);
    for (size_t i = 0; i < n && i < MEMBERS_MAX; i++)
        if (a->demand.role == ROLE_XPU && pair[i]->demand.role == ROLE_HOST) {
            if (pair[i]->held)
                str_add(text, "the place held for its host pod");
            else
                str_addf(text, "its host pod %s", pair[i]->demand.name);
            return true;
        }
    return false;
}

static void add_chooser(const struct allocation *a, struct str *text)
{
    if (by_plugin(a))
        str_add(text, "; gpus: chosen by the device plugin, and perhaps "
                      "others: claim GPUs to pin them");
}

void alignment_explain(const struct snapshot *snapshot,
                       const struct allocation *a, struct str *text)
{
    cleanup_str struct str host = STR_INIT(1024);
    bool has_host = host_pod(snapshot, a, &host);
    const char *word = alignment_word(snapshot, a);
    if (*word == '-')
        return;
    str_addf(text, ": %s to", word);
    for (unsigned i = 0; i < a->n_gpus; i++)
        str_addf(text, " %s", a->gpus[i]);
    if (!a->n_gpus)
        str_addf(text, " NUMA node %d", (int)a->numa);
    if (has_host && is_of_pair(a))
        str_addf(text, ", %s to the GPU", relation_name(a->relation));
    if (has_host)
        str_addf(text, " of %s", str_text(&host));
    add_chooser(a, text);
}

static void add_devices(struct str *out, const char *kind,
                        char (*ids)[TOPO_ID_MAX + 1],
                        char (*pci)[PCI_ADDR_TEXT_MAX], size_t n)
{
    if (n)
        str_addf(out, "%s%s", kind, n > 1 ? "s" : "");
    for (size_t i = 0; i < n; i++)
        str_addf(out, " %s", pci && pci[i][0] ? pci[i] : ids[i]);
    if (n)
        str_add(out, ", ");
}

void alignment_tell(const struct allocation *a, struct str *out)
{
    str_addf(out, "on %s: ", a->node);
    add_devices(out, "card", a->cards, a->card_pci, a->n_cards);
    add_devices(out, "GPU", a->gpus, a->gpu_pci, a->n_gpus);
    str_add(out, relation_name(a->relation));
    if (is_of_pair(a))
        str_add(out, " to the GPU of its host pod");
    add_chooser(a, out);
    if (a->n_nics) {
        str_add(out, "; ");
        add_devices(out, "NIC", a->nics, a->nic_pci, a->n_nics);
        str_add(out, relation_name(a->nic_relation));
    }
}
