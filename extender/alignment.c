#include "extender/alignment.h"

#include "extender/usage.h"
#include "model/decide.h"

bool alignment_is_good(const struct node *node, const struct allocation *a,
                       int32_t rank)
{
    struct demand pair;
    if (!node || !node->topo || !node->shape)
        return false;
    struct choice choice = {
        .cards = usage_cards(node->topo, a),
        .gpus = usage_gpus(node->topo, a),
        .relation = (uint8_t)a->relation,
        .numa = (int16_t)a->numa,
    };
    demand_pair(&a->demand, rank, &pair);
    return decide_is_aligned(node->shape, &pair, &choice);
}

enum alignment alignment_judge(const struct node *node,
                               const struct allocation *a)
{
    if (alignment_is_good(node, a, a->demand.pair))
        return ALIGNMENT_GOOD;
    return a->relation <= RELATION_NODE ? ALIGNMENT_DEGRADED : ALIGNMENT_NONE;
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
}
