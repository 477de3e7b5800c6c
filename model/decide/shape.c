#include "model/decide/shape.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "model/topo/card_rights.h"

enum {
    PAIRS_MAX = TOPO_CARDS_MAX * (TOPO_CARDS_MAX - 1) / 2,
    SPREAD_MAX = PAIRS_MAX * RELATION_SYS,
};

/* Everything before `hash` is content, without pointers. */
static const size_t content_size = offsetof(struct shape, hash);

/* --- groups ------------------------------------------------------------- */

static void add_group(struct shape *s, unsigned cards)
{
    if (__builtin_popcount(cards) < 2 || s->n_groups == SHAPE_GROUPS_MAX)
        return;
    for (unsigned i = 0; i < s->n_groups; i++)
        if (s->groups[i] == cards)
            return;
    s->groups[s->n_groups++] = (uint16_t)cards;
}

/* PIX is not transitive: each group takes, in order, the cards that are PIX
 * to all that it has. */
static void add_switch_groups(struct shape *s)
{
    unsigned left = (1u << s->n_cards) - 1;
    while (left) {
        unsigned group = 0;
        for (unsigned c = 0; c < s->n_cards; c++) {
            bool near = left & 1u << c;
            for (unsigned d = 0; near && d < c; d++)
                near = !(group & 1u << d) || s->card_card[c][d] == RELATION_PIX;
            if (near)
                group |= 1u << c;
        }
        add_group(s, group);
        left &= ~group;
    }
}

/* Cards with the same NUMA node, or package; a group for each. */
static void add_place_groups(struct shape *s, const struct topo *topo,
                             size_t first, bool package)
{
    for (unsigned c = 0; c < s->n_cards; c++) {
        const struct device *a = topo_device(topo, first + c);
        int place = package ? a->package : a->numa;
        unsigned group = 0;
        if (place < 0)
            continue;
        for (unsigned d = 0; d < s->n_cards; d++) {
            const struct device *b = topo_device(topo, first + d);
            if ((package ? b->package : b->numa) == place)
                group |= 1u << d;
        }
        add_group(s, group);
    }
}

/* --- subsets ------------------------------------------------------------ */

/* spread[m] of each set m of cards, from the same set without its lowest. */
static void add_spreads(const struct shape *s, uint16_t *spread)
{
    spread[0] = 0;
    for (unsigned m = 1; m < 1u << s->n_cards; m++) {
        unsigned low = (unsigned)__builtin_ctz(m), rest = m & (m - 1);
        unsigned sum = spread[rest];
        for (unsigned r = rest; r; r &= r - 1)
            sum += s->card_card[low][__builtin_ctz(r)];
        spread[m] = (uint16_t)sum;
    }
}

/* All sets of cards by (size, spread, bits): a counting sort. */
static void derive_subsets(struct shape *s)
{
    enum { SIZES = TOPO_CARDS_MAX + 1, KEYS = SPREAD_MAX + 1 };
    uint32_t n = UINT32_C(1) << s->n_cards, at = 0;
    cleanup_free uint16_t *spread = xcalloc(n, sizeof *spread);
    cleanup_free uint32_t *start = xcalloc(SIZES * KEYS, sizeof *start);
    s->subsets = xcalloc(n, sizeof *s->subsets);
    add_spreads(s, spread);
    for (uint32_t m = 0; m < n; m++)
        start[(uint32_t)__builtin_popcount(m) * KEYS + spread[m]]++;
    for (uint32_t k = 0; k < SIZES; k++) {
        s->first[k] = at;
        for (uint32_t i = k * KEYS; i < (k + 1) * KEYS; i++) {
            uint32_t count = start[i];
            start[i] = at;
            at += count;
        }
    }
    s->first[SIZES] = at;
    for (uint32_t m = 0; m < n; m++) {
        uint32_t key = (uint32_t)__builtin_popcount(m) * KEYS + spread[m];
        s->subsets[start[key]++] = (struct shape_subset){(uint16_t)m,
                                                         spread[m]};
    }
}

/* --- shapes ------------------------------------------------------------- */

static void fill_relations(struct shape *s, const struct topo *topo,
                           size_t cards, size_t gpus, size_t numas)
{
    for (unsigned c = 0; c < s->n_cards; c++) {
        for (unsigned d = 0; d < s->n_cards; d++)
            if (c != d)
                s->card_card[c][d] = (uint8_t)topo_relation(topo, cards + c,
                                                            cards + d);
        for (unsigned g = 0; g < s->n_gpus; g++)
            s->card_gpu[c][g] = (uint8_t)topo_relation(topo, cards + c,
                                                       gpus + g);
        for (unsigned n = 0; n < s->n_numas; n++)
            s->card_numa[c][n] = (uint8_t)topo_relation(topo, cards + c,
                                                        numas + n);
    }
}

/* NICs that are not for computing may stand between those that are. */
static void fill_nics(struct shape *s, const struct topo *topo, size_t cards,
                      size_t gpus)
{
    size_t nics[TOPO_KIND_MAX];
    s->n_nics = (uint8_t)topo_considered(topo, DEVICE_NIC, nics);
    for (unsigned n = 0; n < s->n_nics; n++) {
        for (unsigned c = 0; c < s->n_cards; c++)
            s->card_nic[c][n] = (uint8_t)topo_relation(topo, cards + c,
                                                       nics[n]);
        for (unsigned g = 0; g < s->n_gpus; g++)
            s->gpu_nic[g][n] = (uint8_t)topo_relation(topo, gpus + g, nics[n]);
    }
}

/* A name too long to ask for stays unknown, rather than cut to another's. */
static void fill_arch(struct shape *s, const struct topo *topo, size_t cards)
{
    for (unsigned c = 0; c < s->n_cards; c++) {
        const char *arch = topo_device(topo, cards + c)->arch;
        size_t len = strlen(arch);
        if (len < SHAPE_ARCH_MAX)
            memcpy(s->arch[c], arch, len);
    }
}

static void fill_devices(struct shape *s, const struct topo *topo, size_t cards)
{
    for (unsigned c = 0; c < s->n_cards; c++) {
        const char *text = topo_device(topo, cards + c)->devices;
        memcpy(s->devices[c].text, text, strlen(text));
    }
}

static void fill_rights(struct shape *s, const struct topo *topo, size_t cards)
{
    for (unsigned c = 0; c < s->n_cards; c++)
        if (card_rights_parse(topo_device(topo, cards + c)->rights,
                              &s->rights[c]))
            s->told |= (uint16_t)(1u << c);
}

static size_t at_most(size_t n, size_t max)
{
    return n < max ? n : max;
}

void shape_outline(const struct topo *topo, struct shape *ret_outline)
{
    size_t cards = 0, gpus = 0, numas = 0;
    struct shape *s = ret_outline;
    memset(s, 0, sizeof *s);
    s->n_cards = (uint8_t)at_most(topo_count(topo, DEVICE_CARD, &cards),
                                  TOPO_CARDS_MAX);
    s->n_gpus = (uint8_t)at_most(topo_count(topo, DEVICE_GPU, &gpus),
                                 TOPO_GPUS_MAX);
    s->n_numas = (uint8_t)at_most(topo_count(topo, DEVICE_NUMA, &numas),
                                  TOPO_NUMAS_MAX);
    fill_relations(s, topo, cards, gpus, numas);
    fill_nics(s, topo, cards, gpus);
    fill_arch(s, topo, cards);
    fill_devices(s, topo, cards);
    fill_rights(s, topo, cards);
    for (unsigned n = 0; n < s->n_numas; n++) {
        s->numa_id[n] = (int16_t)topo_device(topo, numas + n)->numa;
        s->numa_cpus[n] = topo_device(topo, numas + n)->cpus;
    }
    add_switch_groups(s);
    add_place_groups(s, topo, cards, false);
    add_place_groups(s, topo, cards, true);
    add_group(s, (1u << s->n_cards) - 1);
    s->hash = hash_bytes(s, content_size);
}

struct shape *shape_create(const struct topo *topo)
{
    struct shape outline;
    shape_outline(topo, &outline);
    return shape_create_from(&outline);
}

struct shape *shape_create_from(const struct shape *content)
{
    struct shape *s = xcalloc(1, sizeof *s);
    memcpy(s, content, content_size);
    s->hash = hash_bytes(s, content_size);
    derive_subsets(s);
    return s;
}

void shape_destroy(struct shape *shape)
{
    if (!shape)
        return;
    free(shape->subsets);
    free(shape);
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    return a->hash == b->hash && memcmp(a, b, content_size) == 0;
}
