#include "tests/lib/randnode.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/topo/card_rights.h"

/* --- chance ------------------------------------------------------------- */

static uint64_t chance = 1;

uint32_t roll(uint32_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)((chance * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

bool odds(uint32_t percent)
{
    return roll(100) < percent;
}

uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

uint64_t chance_init(void)
{
    uint64_t seed = setting("BIGA_TEST_SEED", 20260117);
    chance = seed * 2 + 1; /* never 0 */
    return seed;
}

/* --- nodes and demands -------------------------------------------------- */

static const char *const archs[] = {"", "arm64", "amd64"};

/* Any relations at all, as long as they are symmetric. */
static void fill_any(struct shape *s)
{
    unsigned least = roll(RELATION_COUNT);
    unsigned span = RELATION_COUNT - least;
    for (unsigned c = 0; c < s->n_cards; c++) {
        for (unsigned d = 0; d < c; d++)
            s->card_card[c][d] = s->card_card[d][c] =
                (uint8_t)(least + roll(span));
        for (unsigned g = 0; g < s->n_gpus; g++)
            s->card_gpu[c][g] = (uint8_t)(least + roll(span));
        for (unsigned n = 0; n < s->n_numas; n++)
            s->card_numa[c][n] = (uint8_t)(RELATION_NODE + roll(3));
        for (unsigned n = 0; n < s->n_nics; n++)
            s->card_nic[c][n] = (uint8_t)(least + roll(span));
    }
    for (unsigned g = 0; g < s->n_gpus; g++)
        for (unsigned n = 0; n < s->n_nics; n++)
            s->gpu_nic[g][n] = (uint8_t)(least + roll(span));
    s->n_groups = (uint8_t)roll(7);
    for (unsigned i = 0; i < s->n_groups; i++)
        s->groups[i] = (uint16_t)roll(1u << s->n_cards);
}

/* Where a device of a real machine hangs; -1 unknown. */
struct spot {
    int package, numa, root, bridge, leaf;
};

static struct spot any_spot(unsigned n_numas)
{
    struct spot p = {-1, -1, (int)roll(3), (int)roll(2), (int)roll(2)};
    if (n_numas && odds(90)) {
        p.numa = (int)roll(n_numas);
        p.package = p.numa / 2;
        p.root += 3 * p.numa;
    } else {
        p.root += 1000;
    }
    return p;
}

static uint8_t spot_relation(const struct spot *a, const struct spot *b)
{
    if (a->root == b->root && a->bridge == b->bridge && a->leaf == b->leaf)
        return RELATION_PIX;
    if (a->root == b->root && a->bridge == b->bridge)
        return RELATION_PXB;
    if (a->root == b->root)
        return RELATION_PHB;
    if (a->numa >= 0 && a->numa == b->numa)
        return RELATION_NODE;
    return a->package >= 0 && a->package == b->package ? RELATION_SOCKET
                                                       : RELATION_SYS;
}

/* Relations of a tree: packages of two NUMA nodes, roots, two levels of
 * switches; and the aligned groups of it. */
static void fill_tree(struct shape *s)
{
    struct spot card[TOPO_CARDS_MAX], gpu[TOPO_GPUS_MAX], nic[TOPO_NICS_MAX];
    for (unsigned n = 0; n < s->n_nics; n++)
        nic[n] = any_spot(s->n_numas);
    for (unsigned g = 0; g < s->n_gpus; g++) {
        gpu[g] = any_spot(s->n_numas);
        for (unsigned n = 0; n < s->n_nics; n++)
            s->gpu_nic[g][n] = spot_relation(&gpu[g], &nic[n]);
    }
    for (unsigned c = 0; c < s->n_cards; c++) {
        card[c] = any_spot(s->n_numas);
        for (unsigned d = 0; d < c; d++)
            s->card_card[c][d] = s->card_card[d][c] = spot_relation(&card[c],
                                                                    &card[d]);
        for (unsigned g = 0; g < s->n_gpus; g++)
            s->card_gpu[c][g] = spot_relation(&card[c], &gpu[g]);
        for (unsigned n = 0; n < s->n_nics; n++)
            s->card_nic[c][n] = spot_relation(&card[c], &nic[n]);
        for (unsigned n = 0; n < s->n_numas; n++) {
            struct spot place = {(int)n / 2, (int)n, -1, -1, -1};
            s->card_numa[c][n] = spot_relation(&card[c], &place);
        }
    }
    for (unsigned c = 0; c < s->n_cards; c++)
        for (unsigned level = RELATION_PIX; level <= RELATION_SYS; level++) {
            unsigned group = 1u << c;
            for (unsigned d = 0; d < s->n_cards; d++)
                if (d != c && s->card_card[c][d] <= level)
                    group |= 1u << d;
            if (__builtin_popcount(group) > 1 && s->n_groups < SHAPE_GROUPS_MAX)
                s->groups[s->n_groups++] = (uint16_t)group;
        }
}

static struct shape *random_shape(struct randnode_limits max)
{
    cleanup_free struct shape *s = xcalloc(1, sizeof *s);
    s->n_cards = (uint8_t)(odds(2) ? 0 : 1 + roll(max.cards));
    s->n_gpus = (uint8_t)roll(max.gpus + 1);
    s->n_nics = (uint8_t)roll(max.nics + 1);
    s->n_numas = (uint8_t)roll(max.numas + 1);
    for (unsigned n = 0; n < s->n_numas; n++) {
        s->numa_id[n] = (int16_t)(2 * n);
        s->numa_cpus[n] = odds(15) ? 0 : 1 + roll(16);
    }
    for (unsigned c = 0; c < s->n_cards; c++) {
        const char *arch = archs[odds(70) ? 1 : roll(ARRAY_LEN(archs))];
        memcpy(s->arch[c], arch, strlen(arch));
        const char *sets = odds(70) ? "rdma snap" : odds(50) ? "rdma" : "";
        memcpy(s->devices[c].text, sets, strlen(sets));
        if (odds(30))
            continue;
        s->told |= (uint16_t)(1u << c);
        s->rights[c] = (odds(50) ? CARD_RIGHTS_IPC_LOCK : 0) |
                       (odds(50) ? CARD_RIGHTS_PRIVILEGED : 0) |
                       (odds(50) ? CARD_RIGHTS_SET_LOCKS(0) : 0) |
                       (odds(50) ? CARD_RIGHTS_SET_LOCKS(1) : 0);
    }
    if (odds(50))
        fill_tree(s);
    else
        fill_any(s);
    return shape_create_from(s);
}

static void random_cpus(struct node_state *state, bool idle)
{
    for (unsigned n = 0; n < state->shape->n_numas; n++) {
        uint32_t milli = 1000 * state->shape->numa_cpus[n];
        if (milli == 0)
            state->free_cpu_milli[n] = UINT32_MAX;
        else
            state->free_cpu_milli[n] = idle || odds(40) ? milli
                                                        : roll(milli + 1);
    }
}

static void random_state(const struct shape *shape, struct node_state *state)
{
    unsigned all = (1u << shape->n_cards) - 1;
    bool idle = odds(30);
    memset(state, 0, sizeof *state);
    state->shape = shape;
    state->usable = (uint16_t)(odds(85) ? all : all & roll(65536));
    for (unsigned c = 0; c < shape->n_cards; c++) {
        state->cores[c] = odds(70) ? 8 : 1 + roll(16);
        state->memory_mib[c] = odds(70) ? 16384 : 1 + roll(32768);
        state->free_cores[c] = idle || odds(50) ? state->cores[c]
                                                : roll(state->cores[c] + 1);
        state->free_memory_mib[c] = idle || odds(50)
                                        ? state->memory_mib[c]
                                        : roll(state->memory_mib[c] + 1);
    }
    random_cpus(state, idle);
    state->passive = odds(5);
    state->claimed = (uint16_t)(odds(80) ? 0 : all & roll(65536));
    state->inert = (uint16_t)(odds(70) ? 0 : all & roll(65536));
    if (idle)
        return;
    state->closed = (uint16_t)(all & roll(65536) & roll(65536) & roll(65536));
    state->occupied = (uint16_t)(all & roll(65536) & roll(65536));
    state->shared = (uint16_t)(state->occupied |
                               (all & roll(65536) & roll(65536)));
    state->gpus_used = (uint16_t)(((1u << shape->n_gpus) - 1) & roll(65536) &
                                  roll(65536));
    state->nics_used = (uint16_t)(((1u << shape->n_nics) - 1) & roll(65536) &
                                  roll(65536));
}

/* Its cards have the sets "rdma" and "snap", or the first alone. */
bool randnode_lets(const struct shape *shape, unsigned card,
                   const struct demand *d)
{
    bool snap = strcmp(d->devices.text, "snap") == 0;
    uint64_t has = shape->rights[card];
    if (!d->runs || d->rights == 0 || !(shape->told & 1u << card))
        return true;
    if (d->rights == CARD_RIGHTS_PRIVILEGED)
        return has & CARD_RIGHTS_PRIVILEGED;
    return has & CARD_RIGHTS_IPC_LOCK ||
           (d->devices.text[0] && has & CARD_RIGHTS_SET_LOCKS(snap));
}

void demand_roll(struct demand *d, struct randnode_limits max)
{
    memset(d, 0, sizeof *d);
    d->role = (enum pod_role)(ROLE_HOST + roll(3));
    d->cards = (uint8_t)(1 + (odds(70) ? roll(3) : roll(max.cards + 1)));
    d->pair_cards = d->cards;
    if (d->role == ROLE_HOST && odds(70))
        d->gpus = (uint8_t)roll(odds(80) ? 4 : max.gpus + 2);
    if (max.nics && d->role == ROLE_HOST && odds(60))
        d->nics = (uint8_t)roll(odds(80) ? 4 : max.nics + 2);
    if (odds(50)) /* asked of others too, where it decides nothing */
        d->cpu_milli = odds(20) ? 1 : roll(18000);
    d->within = d->prefer_within = DEMAND_ANYWHERE;
    d->align = (uint8_t)(odds(60) ? RELATION_SYS : roll(RELATION_COUNT));
    d->exclusive = odds(15);
    d->has_card_need = odds(60);
    if (d->has_card_need) {
        d->card_cores = roll(8);
        d->card_memory_mib = d->card_cores && odds(50) ? 0 : 1 + roll(16000);
    }
    if (odds(10))
        memcpy(d->arch, archs[1 + roll(2)], 6);
    if (odds(10))
        memcpy(d->devices.text, odds(50) ? "rdma" : "snap", 4);
    d->runs = (uint8_t)(odds(70) ? 0 : roll(4));
    if (odds(15))
        d->rights = odds(60) ? CARD_RIGHTS_IPC_LOCK : CARD_RIGHTS_PRIVILEGED;
    d->by_claim = odds(6);
}

static void random_bounds(const struct shape *shape, uint16_t *must,
                          uint16_t *within)
{
    unsigned all = (1u << shape->n_cards) - 1;
    *must = 0;
    *within = UINT16_MAX;
    if (odds(20))
        *must = (uint16_t)(all & roll(65536) & roll(65536));
    if (odds(20))
        *within = (uint16_t)(odds(80) ? *must | roll(65536) : roll(65536));
}

void question_roll(struct question *q, struct randnode_limits max)
{
    q->shape = random_shape(max);
    random_state(q->shape, &q->state);
    demand_roll(&q->demand, max);
    random_bounds(q->shape, &q->must, &q->within);
}

void question_fini(struct question *q)
{
    shape_destroy(q->shape);
}

/* --- the same under other names ----------------------------------------- */

static void shuffle(unsigned *order, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n; i > 1; i--) {
        unsigned j = roll(i), held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
}

static uint16_t renamed(unsigned set, const unsigned *order, unsigned n)
{
    unsigned out = 0;
    for (unsigned i = 0; i < n; i++)
        if (set >> i & 1)
            out |= 1u << order[i];
    return (uint16_t)out;
}

/* The new places of the devices of each kind. */
struct names {
    unsigned card[TOPO_CARDS_MAX], gpu[TOPO_GPUS_MAX], nic[TOPO_NICS_MAX];
};

static struct shape *rename_shape(const struct shape *s, const struct names *to)
{
    const unsigned *card = to->card, *gpu = to->gpu, *nic = to->nic;
    cleanup_free struct shape *t = xcalloc(1, sizeof *t);
    memcpy(t, s, offsetof(struct shape, hash));
    for (unsigned c = 0; c < s->n_cards; c++) {
        for (unsigned d = 0; d < s->n_cards; d++)
            t->card_card[card[c]][card[d]] = s->card_card[c][d];
        for (unsigned g = 0; g < s->n_gpus; g++)
            t->card_gpu[card[c]][gpu[g]] = s->card_gpu[c][g];
        for (unsigned i = 0; i < s->n_nics; i++)
            t->card_nic[card[c]][nic[i]] = s->card_nic[c][i];
        memcpy(t->card_numa[card[c]], s->card_numa[c], sizeof s->card_numa[c]);
        memcpy(t->arch[card[c]], s->arch[c], sizeof s->arch[c]);
        t->devices[card[c]] = s->devices[c];
        t->rights[card[c]] = s->rights[c];
    }
    t->told = renamed(s->told, card, s->n_cards);
    for (unsigned g = 0; g < s->n_gpus; g++)
        for (unsigned i = 0; i < s->n_nics; i++)
            t->gpu_nic[gpu[g]][nic[i]] = s->gpu_nic[g][i];
    for (unsigned i = 0; i < s->n_groups; i++)
        t->groups[i] = renamed(s->groups[i], card, s->n_cards);
    return shape_create_from(t);
}

static void rename_state(const struct node_state *state, const struct names *to,
                         struct node_state *out)
{
    const unsigned *card = to->card;
    unsigned n = state->shape->n_cards;
    memset(out, 0, sizeof *out);
    for (unsigned c = 0; c < n; c++) {
        out->free_cores[card[c]] = state->free_cores[c];
        out->free_memory_mib[card[c]] = state->free_memory_mib[c];
        out->cores[card[c]] = state->cores[c];
        out->memory_mib[card[c]] = state->memory_mib[c];
    }
    out->usable = renamed(state->usable, card, n);
    out->passive = state->passive;
    out->inert = renamed(state->inert, card, n);
    out->claimed = renamed(state->claimed, card, n);
    out->closed = renamed(state->closed, card, n);
    out->occupied = renamed(state->occupied, card, n);
    out->shared = renamed(state->shared, card, n);
    out->gpus_used = renamed(state->gpus_used, to->gpu, state->shape->n_gpus);
    out->nics_used = renamed(state->nics_used, to->nic, state->shape->n_nics);
    memcpy(out->free_cpu_milli, state->free_cpu_milli,
           sizeof out->free_cpu_milli);
}

void question_rename(const struct question *q, struct question *ret_other)
{
    struct names to;
    shuffle(to.card, q->shape->n_cards);
    shuffle(to.gpu, q->shape->n_gpus);
    shuffle(to.nic, q->shape->n_nics);
    rename_state(&q->state, &to, &ret_other->state);
    ret_other->shape = rename_shape(q->shape, &to);
    ret_other->state.shape = ret_other->shape;
    ret_other->demand = q->demand;
    ret_other->must = renamed(q->must, to.card, q->shape->n_cards);
    ret_other->within = q->within == UINT16_MAX
                            ? UINT16_MAX
                            : renamed(q->within, to.card, q->shape->n_cards);
}
