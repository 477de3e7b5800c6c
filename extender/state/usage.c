#include "extender/state/usage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* What the members of one pair take of each card. */
struct pair_usage {
    uint64_t host_cores[TOPO_CARDS_MAX], host_memory[TOPO_CARDS_MAX];
    uint64_t xpu_cores[TOPO_CARDS_MAX], xpu_memory[TOPO_CARDS_MAX];
    uint64_t service_cores[TOPO_CARDS_MAX], service_memory[TOPO_CARDS_MAX];
    uint16_t pods;      /* cards that host or xPU pods have */
    uint16_t all;       /* cards that anyone has */
    uint16_t stated;    /* cards for which a need was stated */
    uint16_t exclusive; /* cards that a member wants alone */
    uint16_t gpus, nics;
};

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

static const struct device *card_device(const struct topo *topo, unsigned card)
{
    size_t first = 0;
    size_t n = topo_count(topo, DEVICE_CARD, &first);
    return card < n ? topo_device(topo, first + card) : NULL;
}

/* Those of `cards` on which the policy tells what a service needs. */
static uint16_t declared_cards(const struct usage *at,
                               const struct demand *service, uint16_t cards)
{
    unsigned declared = 0;
    if (service->role != ROLE_SERVICE || !at->policy)
        return 0;
    for (unsigned c = cards; c; c &= c - 1) {
        unsigned i = (unsigned)__builtin_ctz(c);
        const struct device *card = card_device(at->topo, i);
        const struct policy_service *share =
            policy_find_share(at->policy, service, at->node, card);
        if (share && share->cores <= card->cores &&
            share->memory_mib <= card->memory_mib)
            declared |= 1u << i;
    }
    return (uint16_t)declared;
}

static void pair_add(struct pair_usage *u, const struct usage *at,
                     const struct allocation *a)
{
    const struct topo *topo = at->topo;
    const struct demand *need = &a->demand;
    uint16_t cards = allocation_cards(topo, a);
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
    u->stated |= need->has_card_need ? cards : declared_cards(at, need, cards);
    u->all |= cards;
    if (need->exclusive)
        u->exclusive |= cards;
    u->gpus |= allocation_gpus(topo, a);
    u->nics |= allocation_nics(topo, a);
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
static void pair_charge(const struct pair_usage *u, const struct demand *own,
                        struct node_state *state)
{
    /* to a host pod its xPU pods are no others */
    bool xpus = !own || own->role != ROLE_HOST;
    for (unsigned i = 0; i < TOPO_CARDS_MAX; i++) {
        uint64_t cores = xpus ? u->xpu_cores[i] : 0;
        uint64_t memory = xpus ? u->xpu_memory[i] : 0;
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
    state->nics_used |= u->nics;
    if (own)
        return;
    state->closed |= (uint16_t)(u->exclusive | (u->all & ~u->stated));
    state->occupied |= u->pods;
    state->shared |= u->all;
}

/* A host pod's CPUs are on the NUMA node it was given; one that was given
 * none has them anywhere. */
static void charge_cpus(const struct allocation *a, struct node_state *state)
{
    if (a->demand.role == ROLE_HOST && a->numa >= 0)
        node_state_take_cpus(state, a->numa, a->demand.cpu_milli);
}

/* Nobody of ours: it is in no pair. */
static void charge_claim(const struct claim_rest *rest, const struct topo *topo,
                         struct node_state *state)
{
    const struct claim_use *c = rest->claim;
    size_t first = 0;
    (void)topo_count(topo, DEVICE_CARD, &first);
    for (unsigned bits = rest->cards; bits; bits &= bits - 1) {
        unsigned i = (unsigned)__builtin_ctz(bits);
        const char *id = topo_device(topo, first + i)->id;
        for (size_t k = 0; k < c->n_cards; k++) {
            if (strcmp(c->cards[k].id, id) != 0)
                continue;
            state->free_cores[i] = take(state->free_cores[i],
                                        c->cards[k].cores);
            state->free_memory_mib[i] = take(state->free_memory_mib[i],
                                             c->cards[k].memory_mib);
        }
    }
    state->closed |= rest->whole;
    state->occupied |= rest->cards;
    state->shared |= rest->cards;
    state->gpus_used |= rest->gpus;
    state->nics_used |= rest->nics;
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

/* The key of the pair that asks; a service is in none. */
static const char *asking_pair(const struct demand *asking,
                               char ret_key[DEMAND_PAIR_KEY_MAX])
{
    if (!asking || asking->role == ROLE_SERVICE)
        return NULL;
    demand_pair_key(asking, ret_key);
    return ret_key;
}

/* Without regard to shares. */
static void count_pairs(const struct usage *at, const struct demand *asking,
                        struct node_state *ret_state)
{
    char key[DEMAND_PAIR_KEY_MAX];
    const char *own = asking_pair(asking, key);
    memset(ret_state, 0, sizeof *ret_state);
    node_state_init(ret_state, at->topo, at->shape);
    for (size_t i = 0; i < at->n_claims; i++)
        if (!asking || !claim_use_is_of(at->claims[i].claim, asking->uid))
            charge_claim(&at->claims[i], at->topo, ret_state);
    if (at->n == 0) {
        ret_state->closed |= ret_state->shared & usage_unsized(at->topo);
        return;
    }

    cleanup_free const struct allocation **by_pair =
        xmemdup(at->allocations, at->n * sizeof(*by_pair));
    qsort(by_pair, at->n, sizeof *by_pair, compare_pair);
    for (size_t i = 0; i < at->n;) {
        struct pair_usage u = {0};
        const char *pair = by_pair[i]->pair_key;
        bool is_own = own && strcmp(pair, own) == 0;
        for (; i < at->n && strcmp(by_pair[i]->pair_key, pair) == 0; i++) {
            pair_add(&u, at, by_pair[i]);
            if (!is_own)
                charge_cpus(by_pair[i], ret_state);
        }
        pair_charge(&u, is_own ? asking : NULL, ret_state);
    }
    /* nobody can tell what is left of a card of unknown size */
    ret_state->closed |= ret_state->shared & usage_unsized(at->topo);
}

/* --- services' shares --------------------------------------------------- */

const char *share_state_name(enum share_state state)
{
    static const char *const names[SHARE_STATES] = {"held", "short", "never"};
    return state < SHARE_STATES ? names[state] : "";
}

static bool is_service(const struct policy_service *share,
                       const struct demand *pod)
{
    return pod && pod->role == ROLE_SERVICE &&
           strcmp(share->name, pod->job) == 0 &&
           strcmp(share->namespace, pod->namespace) == 0;
}

static bool same_service(const struct policy_service *a,
                         const struct policy_service *b)
{
    return strcmp(a->name, b->name) == 0 &&
           strcmp(a->namespace, b->namespace) == 0;
}

/* Cards that a claim has whole. */
static uint16_t claimed_cards(const struct usage *at)
{
    uint16_t cards = 0;
    for (size_t i = 0; i < at->n_claims; i++)
        cards |= at->claims[i].whole;
    return cards;
}

/* What a service's pods have of one card.  True when somebody else has the
 * card alone. */
static bool add_used(const struct usage *at, unsigned card,
                     struct usage_share *share)
{
    uint64_t cores = 0, memory = 0;
    bool blocked = claimed_cards(at) >> card & 1;
    for (size_t i = 0; i < at->n; i++) {
        const struct allocation *a = at->allocations[i];
        bool own = is_service(share->service, &a->demand);
        if ((!own && !a->demand.exclusive) ||
            !(allocation_cards(at->topo, a) >> card & 1))
            continue;
        blocked |= !own;
        if (!own)
            continue;
        cores += a->demand.card_cores;
        memory += a->demand.card_memory_mib;
    }
    share->used_cores = cores < UINT32_MAX ? (uint32_t)cores : UINT32_MAX;
    share->used_memory_mib = memory < UINT32_MAX ? (uint32_t)memory
                                                 : UINT32_MAX;
    return blocked;
}

/* What a card has to give to shares. */
struct giving {
    uint32_t cores, memory_mib;           /* of the whole card, promised off */
    uint32_t free_cores, free_memory_mib; /* now */
    bool sized;
};

static uint32_t keep(uint32_t share, uint32_t used, uint32_t *has)
{
    uint32_t lack = take(share, used);
    uint32_t kept = lack < *has ? lack : *has;
    *has -= kept;
    return kept;
}

static void settle_share(struct usage_share *share, bool blocked,
                         struct giving *card)
{
    const struct policy_service *s = share->service;
    if (!card->sized || s->cores > card->cores ||
        s->memory_mib > card->memory_mib) {
        share->state = SHARE_NEVER;
        return;
    }
    card->cores -= s->cores;
    card->memory_mib -= s->memory_mib;
    share->kept_cores = keep(s->cores, share->used_cores, &card->free_cores);
    share->kept_memory_mib = keep(s->memory_mib, share->used_memory_mib,
                                  &card->free_memory_mib);
    uint32_t cores = take(s->cores, share->used_cores);
    uint32_t memory = take(s->memory_mib, share->used_memory_mib);
    bool lacking = share->kept_cores < cores ||
                   share->kept_memory_mib < memory ||
                   (blocked && (cores || memory));
    share->state = lacking ? SHARE_SHORT : SHARE_HELD;
}

/* Cards that somebody has alone. */
static uint16_t exclusive_cards(const struct usage *at)
{
    uint16_t cards = claimed_cards(at);
    for (size_t i = 0; i < at->n; i++)
        if (at->allocations[i]->demand.exclusive)
            cards |= allocation_cards(at->topo, at->allocations[i]);
    return cards;
}

/* `all`: what count_pairs() has for anyone. */
static size_t card_shares(const struct usage *at, const struct node_state *all,
                          unsigned card, struct usage_share *ret_shares)
{
    const struct device *device = card_device(at->topo, card);
    struct giving giving = {
        .cores = all->cores[card],
        .memory_mib = all->memory_mib[card],
        .free_cores = all->free_cores[card],
        .free_memory_mib = all->free_memory_mib[card],
        .sized = device && device->cores && device->memory_mib,
    };
    size_t n = 0;
    for (size_t i = 0; device && i < at->policy->n_services; i++) {
        const struct policy_service *service = &at->policy->services[i];
        bool again = false;
        for (size_t k = 0; k < n && !again; k++)
            again = same_service(ret_shares[k].service, service);
        if (again || !policy_selects(service, at->node, device))
            continue;
        ret_shares[n] = (struct usage_share){.service = service,
                                             .card = (uint8_t)card};
        bool blocked = add_used(at, card, &ret_shares[n]);
        settle_share(&ret_shares[n++], blocked, &giving);
    }
    return n;
}

size_t usage_shares(const struct usage *at, unsigned card,
                    struct usage_share *ret_shares)
{
    struct node_state all;
    if (!at->policy || at->policy->n_services == 0)
        return 0;
    count_pairs(at, NULL, &all);
    return card_shares(at, &all, card, ret_shares);
}

void usage_each_share(const struct usage *at,
                      void (*visit)(void *ctx, const struct usage_share *share),
                      void *ctx)
{
    struct usage_share shares[POLICY_SERVICES_MAX];
    struct node_state all;
    if (!at->policy || at->policy->n_services == 0)
        return;
    count_pairs(at, NULL, &all);
    for (unsigned c = 0; c < at->shape->n_cards; c++) {
        size_t n = card_shares(at, &all, c, shares);
        for (size_t i = 0; i < n; i++)
            visit(ctx, &shares[i]);
    }
}

/* A service's own pod on a card that is closed only because somebody's need
 * is not known: what is kept for it was never that one's. */
static void open_own(const struct usage_share *share, unsigned card,
                     struct node_state *state)
{
    if (share->state == SHARE_NEVER ||
        (share->kept_cores == 0 && share->kept_memory_mib == 0))
        return;
    state->closed &= (uint16_t) ~(1u << card);
    state->free_cores[card] = share->kept_cores;
    state->free_memory_mib[card] = share->kept_memory_mib;
}

/* Cards that the pair of the pod that asks has. */
static uint16_t own_cards(const struct usage *at, const struct demand *asking)
{
    char key[DEMAND_PAIR_KEY_MAX];
    const char *own = asking_pair(asking, key);
    uint16_t cards = 0;
    for (size_t i = 0; own && i < at->n; i++)
        if (strcmp(at->allocations[i]->pair_key, own) == 0)
            cards |= allocation_cards(at->topo, at->allocations[i]);
    return cards;
}

static void hold_shares(const struct usage *at, const struct demand *asking,
                        const struct node_state *all, struct node_state *state)
{
    struct usage_share shares[POLICY_SERVICES_MAX];
    uint16_t exclusive = exclusive_cards(at);
    /* what the pair had alone before there was a share, it keeps */
    uint16_t own = own_cards(at, asking) & exclusive;
    for (unsigned c = 0; c < at->shape->n_cards; c++) {
        size_t n = card_shares(at, all, c, shares);
        unsigned bit = 1u << c;
        for (size_t i = 0; i < n; i++) {
            const struct usage_share *s = &shares[i];
            if (s->state == SHARE_NEVER || is_service(s->service, asking))
                continue;
            state->cores[c] = take(state->cores[c], s->service->cores);
            state->memory_mib[c] = take(state->memory_mib[c],
                                        s->service->memory_mib);
            state->free_cores[c] = take(state->free_cores[c], s->kept_cores);
            state->free_memory_mib[c] = take(state->free_memory_mib[c],
                                             s->kept_memory_mib);
            if (own & bit)
                continue;
            state->shared |= (uint16_t)bit;
            state->reserved |= (uint16_t)bit;
        }
        for (size_t i = 0; i < n && state->closed & bit & ~exclusive; i++)
            if (is_service(shares[i].service, asking))
                open_own(&shares[i], c, state);
    }
}

void usage_state(const struct usage *at, const struct demand *asking,
                 struct node_state *ret_state)
{
    struct node_state all;
    count_pairs(at, asking, ret_state);
    if (!at->policy || at->policy->n_services == 0)
        return;
    if (asking)
        count_pairs(at, NULL, &all);
    else
        all = *ret_state;
    hold_shares(at, asking, &all, ret_state);
}
