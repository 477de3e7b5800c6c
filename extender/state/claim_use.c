#include "extender/state/claim_use.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/refs.h"
#include "lib/base/strmap.h"

struct claim_use *claim_use_create(const char *namespace, const char *name,
                                   const char *node)
{
    struct claim_use *c = xcalloc(1, sizeof *c);
    atomic_init(&c->refs, 1);
    c->key = xasprintf("%s/%s", namespace, name);
    c->node = xstrdup(node);
    return c;
}

DEFINE_REF(claim_use_ref, struct claim_use)

void claim_use_unref(struct claim_use *c)
{
    if (!c || !refs_drop(&c->refs))
        return;
    free(c->key);
    free(c->node);
    free(c->pods);
    free(c);
}

void claim_use_add_card(struct claim_use *c, const struct claim_card *card)
{
    if (c->n_cards < CLAIM_USE_DEVICES_MAX)
        c->cards[c->n_cards++] = *card;
}

void claim_use_add_pci(struct claim_use *c, const struct claim_pci *pci)
{
    if (c->n_gpus < CLAIM_USE_DEVICES_MAX)
        c->gpus[c->n_gpus++] = *pci;
}

void claim_use_add_pod(struct claim_use *c, const char *uid)
{
    size_t size = strlen(uid);
    if (!size || size > DEMAND_UID_MAX || c->n_pods >= CLAIM_USE_PODS_MAX ||
        claim_use_is_of(c, uid))
        return;
    c->pods = xrealloc(c->pods, c->n_pods + 1U, sizeof *c->pods);
    memcpy(c->pods[c->n_pods++], uid, size + 1);
}

bool claim_use_is_of(const struct claim_use *c, const char *uid)
{
    for (size_t i = 0; *uid && i < c->n_pods; i++)
        if (strcmp(c->pods[i], uid) == 0)
            return true;
    return false;
}

static bool same_card(const struct claim_card *a, const struct claim_card *b)
{
    return strcmp(a->id, b->id) == 0 && a->whole == b->whole &&
           a->cores == b->cores && a->memory_mib == b->memory_mib;
}

static bool same_pci(const struct claim_pci *a, const struct claim_pci *b)
{
    return a->by_root == b->by_root && a->root_domain == b->root_domain &&
           a->root_bus == b->root_bus &&
           pci_addr_compare(&a->pci, &b->pci) == 0;
}

bool claim_use_is_same(const struct claim_use *a, const struct claim_use *b)
{
    bool same = strcmp(a->key, b->key) == 0 && strcmp(a->node, b->node) == 0 &&
                a->n_cards == b->n_cards && a->n_gpus == b->n_gpus &&
                a->n_pods == b->n_pods;
    for (size_t i = 0; same && i < a->n_cards; i++)
        same = same_card(&a->cards[i], &b->cards[i]);
    for (size_t i = 0; same && i < a->n_gpus; i++)
        same = same_pci(&a->gpus[i], &b->gpus[i]);
    for (size_t i = 0; same && i < a->n_pods; i++)
        same = strcmp(a->pods[i], b->pods[i]) == 0;
    return same;
}

/* --- lists --------------------------------------------------------------- */

DEFINE_REF(claim_list_ref, struct claim_list)

void claim_list_unref(struct claim_list *l)
{
    if (!l || !refs_drop(&l->refs))
        return;
    for (size_t i = 0; i < l->n; i++)
        claim_use_unref(l->items[i]);
    free(l);
}

static struct claim_list *list_create(size_t room)
{
    struct claim_list *l = xcalloc(1, sizeof *l + room * sizeof l->items[0]);
    atomic_init(&l->refs, 1);
    return l;
}

struct claim_list *claim_list_with(const struct claim_list *l,
                                   struct claim_use *c)
{
    size_t n = l ? l->n : 0, at = 0;
    struct claim_list *with = list_create(n + 1);
    for (; at < n && strcmp(l->items[at]->key, c->key) < 0; at++)
        with->items[with->n++] = claim_use_ref(l->items[at]);
    with->items[with->n++] = claim_use_ref(c);
    if (at < n && strcmp(l->items[at]->key, c->key) == 0)
        at++;
    for (; at < n; at++)
        with->items[with->n++] = claim_use_ref(l->items[at]);
    return with;
}

struct claim_list *claim_list_without(const struct claim_list *l,
                                      const char *key)
{
    if (!l)
        return NULL;
    struct claim_list *without = list_create(l->n);
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i]->key, key) != 0)
            without->items[without->n++] = claim_use_ref(l->items[i]);
    if (without->n)
        return without;
    claim_list_unref(without);
    return NULL;
}

/* --- nodes that are not known ------------------------------------------- */

struct claim_table {
    atomic_uint refs;
    struct strmap map; /* struct named_claims, by node */
};

struct named_claims {
    struct claim_list *list;
    char node[];
};

static void named_free(void *value)
{
    struct named_claims *x = value;
    if (x)
        claim_list_unref(x->list);
    free(x);
}

DEFINE_REF(claim_table_ref, struct claim_table)

void claim_table_unref(struct claim_table *t)
{
    if (!t || !refs_drop(&t->refs))
        return;
    strmap_fini_with(&t->map, named_free);
    free(t);
}

struct claim_list *claim_table_get(const struct claim_table *t,
                                   const char *node)
{
    const struct named_claims *x = t ? strmap_get(&t->map, node) : NULL;
    return x ? x->list : NULL;
}

static void table_put(struct claim_table *t, const char *node,
                      struct claim_list *list)
{
    size_t size = strlen(node) + 1;
    struct named_claims *x = xmalloc(sizeof *x + size);
    x->list = claim_list_ref(list);
    memcpy(x->node, node, size);
    named_free(strmap_put(&t->map, x->node, x));
}

/* The table as the caller's own: nobody can take a reference to one that only
 * he refers to. */
static struct claim_table *own_table(struct claim_table **table)
{
    struct claim_table *old = *table;
    size_t pos = 0;
    const struct named_claims *x;
    if (old && atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return old;
    struct claim_table *t = xcalloc(1, sizeof *t);
    atomic_init(&t->refs, 1);
    while (old && (x = strmap_next(&old->map, &pos)))
        table_put(t, x->node, x->list);
    claim_table_unref(old);
    *table = t;
    return t;
}

void claim_table_set(struct claim_table **table, const char *node,
                     struct claim_list *list)
{
    if (claim_table_get(*table, node) == list)
        return;
    struct claim_table *t = own_table(table);
    if (list) {
        table_put(t, node, list);
        return;
    }
    named_free(strmap_remove(&t->map, node));
    if (t->map.n == 0) {
        claim_table_unref(t);
        *table = NULL;
    }
}

/* --- what is foreign ----------------------------------------------------- */

static bool is_pci(const struct claim_pci *pci, const struct device *d)
{
    if (!d->has_pci)
        return false;
    if (pci->by_root)
        return d->root_domain == pci->root_domain &&
               d->root_bus == pci->root_bus;
    return pci_addr_compare(&pci->pci, &d->pci) == 0;
}

static uint16_t card_bits(const struct topo *topo, const char *id)
{
    size_t first = 0, n = topo_count(topo, DEVICE_CARD, &first);
    for (size_t i = 0; i < n && i < TOPO_CARDS_MAX; i++)
        if (strcmp(topo_device(topo, first + i)->id, id) == 0)
            return (uint16_t)(1U << i);
    return 0;
}

static uint16_t pci_bits(const struct topo *topo, enum device_kind kind,
                         const struct claim_pci *pci)
{
    size_t considered[TOPO_KIND_MAX];
    size_t n = topo_considered(topo, kind, considered);
    uint16_t bits = 0;
    for (size_t i = 0; i < n; i++)
        if (is_pci(pci, topo_device(topo, considered[i])))
            bits |= (uint16_t)(1U << i);
    return bits;
}

/* What allocations name. */
struct given {
    uint16_t cards, gpus, nics;
};

static bool rest_read(const struct claim_use *c, const struct topo *topo,
                      const struct given *given, struct claim_rest *ret)
{
    *ret = (struct claim_rest){.claim = c};
    for (size_t i = 0; i < c->n_cards; i++) {
        uint16_t bit = card_bits(topo, c->cards[i].id);
        bit &= (uint16_t)~given->cards;
        ret->cards |= bit;
        ret->whole |= c->cards[i].whole ? bit : 0;
    }
    for (size_t i = 0; i < c->n_gpus; i++) {
        uint16_t gpus = pci_bits(topo, DEVICE_GPU, &c->gpus[i]);
        uint16_t nics = gpus ? 0 : pci_bits(topo, DEVICE_NIC, &c->gpus[i]);
        /* one of that root is the allocation's: it is this */
        ret->gpus |= gpus & given->gpus ? 0 : gpus;
        ret->nics |= nics & (uint16_t)~given->nics;
    }
    return ret->cards || ret->gpus || ret->nics;
}

struct claim_rest *claim_rests(const struct claim_list *l,
                               const struct topo *topo,
                               const struct allocation *const *allocations,
                               size_t n, size_t *ret_n)
{
    *ret_n = 0;
    if (!l || !topo)
        return NULL;
    struct claim_rest *rests = xcalloc(l->n, sizeof *rests);
    for (size_t i = 0; i < l->n; i++) {
        struct given given = {0, 0, 0};
        for (size_t k = 0; k < n; k++) {
            const struct allocation *a = allocations[k];
            if (!claim_use_is_of(l->items[i], a->demand.uid))
                continue;
            given.cards |= allocation_cards(topo, a);
            given.gpus |= allocation_gpus(topo, a);
            given.nics |= allocation_nics(topo, a);
        }
        *ret_n += rest_read(l->items[i], topo, &given, &rests[*ret_n]);
    }
    return rests;
}
