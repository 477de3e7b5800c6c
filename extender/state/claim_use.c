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
