#include "extender/usage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

/* What the members of one pair take of each card. */
struct pair_usage {
    uint64_t host_cores[TOPO_CARDS_MAX], host_memory[TOPO_CARDS_MAX];
    uint64_t xpu_cores[TOPO_CARDS_MAX], xpu_memory[TOPO_CARDS_MAX];
    uint64_t service_cores[TOPO_CARDS_MAX], service_memory[TOPO_CARDS_MAX];
    uint16_t pods;      /* cards that host or xPU pods have */
    uint16_t all;       /* cards that anyone has */
    uint16_t stated;    /* cards for which a need was stated */
    uint16_t exclusive; /* cards that a member wants alone */
    uint16_t gpus;
};

static uint16_t device_bits(const struct topo *topo, enum device_kind kind,
                            char (*ids)[TOPO_ID_MAX + 1], size_t n_ids)
{
    size_t first = 0;
    size_t n = topo_count(topo, kind, &first);
    uint16_t bits = 0;
    for (size_t i = 0; i < n && i < 16; i++) {
        const char *id = topo_device(topo, first + i)->id;
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

static void add_need(uint64_t *cores, uint64_t *memory, uint16_t cards,
                     const struct demand *need)
{
    for (unsigned i = 0; i < TOPO_CARDS_MAX; i++) {
        if (!(cards >> i & 1))
            continue;
        cores[i] += need->card_cores;
        memory[i] += need->card_memory_mib;
    }
}

static void raise_need(uint64_t *cores, uint64_t *memory, uint16_t cards,
                       const struct demand *need)
{
    for (unsigned i = 0; i < TOPO_CARDS_MAX; i++) {
        if (!(cards >> i & 1))
            continue;
        if (cores[i] < need->card_cores)
            cores[i] = need->card_cores;
        if (memory[i] < need->card_memory_mib)
            memory[i] = need->card_memory_mib;
    }
}

static void pair_add(struct pair_usage *u, const struct topo *topo,
                     const struct allocation *a)
{
    const struct demand *need = &a->demand;
    uint16_t cards = usage_cards(topo, a);
    switch (need->role) {
    case ROLE_HOST:
        raise_need(u->host_cores, u->host_memory, cards, need);
        break;
    case ROLE_XPU:
        add_need(u->xpu_cores, u->xpu_memory, cards, need);
        break;
    default:
        add_need(u->service_cores, u->service_memory, cards, need);
        break;
    }
    if (need->role == ROLE_HOST || need->role == ROLE_XPU)
        u->pods |= cards;
    if (need->has_card_need)
        u->stated |= cards;
    u->all |= cards;
    if (need->exclusive)
        u->exclusive |= cards;
    u->gpus |= device_bits(topo, DEVICE_GPU, a->gpus, a->n_gpus);
}

static uint32_t take(uint32_t from, uint64_t amount)
{
    return amount < from ? from - (uint32_t)amount : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* `own`: the state is for a further member of this very pair. */
static void pair_charge(const struct pair_usage *u, bool own,
                        struct node_state *state)
{
    for (unsigned i = 0; i < TOPO_CARDS_MAX; i++) {
        uint64_t cores = u->xpu_cores[i];
        uint64_t memory = u->xpu_memory[i];
        if (!own) {
            cores = larger(cores, u->host_cores[i]);
            memory = larger(memory, u->host_memory[i]);
        }
        state->free_cores[i] = take(state->free_cores[i],
                                    cores + u->service_cores[i]);
        state->free_memory_mib[i] = take(state->free_memory_mib[i],
                                         memory + u->service_memory[i]);
    }
    state->gpus_used |= u->gpus;
    if (own)
        return;
    state->closed |= (uint16_t)(u->exclusive | (u->all & ~u->stated));
    state->occupied |= u->pods;
    state->shared |= u->all;
}

uint16_t usage_unsized(const struct topo *topo)
{
    size_t first = 0;
    size_t n = topo_count(topo, DEVICE_CARD, &first);
    uint16_t unsized = 0;
    for (size_t i = 0; i < n && i < TOPO_CARDS_MAX; i++) {
        const struct device *card = topo_device(topo, first + i);
        if (card->cores == 0 || card->memory_mib == 0)
            unsized |= (uint16_t)(1u << i);
    }
    return unsized;
}

static int compare_pair(const void *a, const void *b)
{
    const struct allocation *x = *(const struct allocation *const *)a;
    const struct allocation *y = *(const struct allocation *const *)b;
    return strcmp(x->pair_key, y->pair_key);
}

void usage_state(const struct topo *topo, const struct shape *shape,
                 const struct allocation *const *allocations, size_t n,
                 const char *except_pair, struct node_state *ret_state)
{
    memset(ret_state, 0, sizeof *ret_state);
    node_state_init(ret_state, topo, shape);
    if (n == 0)
        return;

    cleanup_free const struct allocation **by_pair =
        xmemdup(allocations, n * sizeof(*allocations));
    qsort(by_pair, n, sizeof *by_pair, compare_pair);
    for (size_t i = 0; i < n;) {
        struct pair_usage u = {0};
        const char *pair = by_pair[i]->pair_key;
        while (i < n && strcmp(by_pair[i]->pair_key, pair) == 0)
            pair_add(&u, topo, by_pair[i++]);
        pair_charge(&u, except_pair && strcmp(pair, except_pair) == 0,
                    ret_state);
    }
    /* nobody can tell what is left of a card of unknown size */
    ret_state->closed |= ret_state->shared & usage_unsized(topo);
}
