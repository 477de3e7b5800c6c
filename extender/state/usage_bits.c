#include "extender/state/usage_bits.h"

#include <string.h>

static uint16_t device_bits(const struct topo *topo, enum device_kind kind,
                            char (*ids)[TOPO_ID_MAX + 1], size_t n_ids)
{
    size_t considered[TOPO_KIND_MAX];
    size_t n = n_ids ? topo_considered(topo, kind, considered) : 0;
    uint16_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        const char *id = topo_device(topo, considered[i])->id;
        for (size_t k = 0; k < n_ids; k++)
            if (strcmp(ids[k], id) == 0)
                bits |= (uint16_t)(1u << i);
    }
    return bits;
}

uint16_t usage_cards(const struct topo *topo, const struct allocation *a)
{
    return device_bits(topo, DEVICE_CARD, a->cards, a->n_cards);
}

uint16_t usage_gpus(const struct topo *topo, const struct allocation *a)
{
    return device_bits(topo, DEVICE_GPU, a->gpus, a->n_gpus);
}

uint16_t usage_nics(const struct topo *topo, const struct allocation *a)
{
    return device_bits(topo, DEVICE_NIC, a->nics, a->n_nics);
}
