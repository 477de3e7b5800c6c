/* What the pods of a unit ask, with what their claims do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_place_private.h"
#include "lib/base/mem.h"

enum { PAIR_PODS_MAX = 32 }; /* of one pair that are looked at */

void askings_fini(struct askings *a)
{
    for (size_t i = 0; i < a->n; i++)
        claim_needs_unref(a->list[i].needs);
    free(a->list);
}

static int read_claims(const struct gate_place_config *config,
                       const struct snapshot *s, struct asking *a,
                       struct error *err)
{
    if (!a->pod->has_claims)
        return 0;
    if (!config->claims)
        return error_set(err, EDOM, "its claims are not read (--claims=false)");
    return claim_book_read(config->claims, s, a->pod->json, a->pod->json_size,
                           true, &a->demand, &a->needs, err);
}

/* Is another pod of the pair on cards by claims already? */
static bool is_pair_by_claim(const struct snapshot *s, const struct demand *d)
{
    const struct allocation *found[1];
    char key[DEMAND_PAIR_KEY_MAX];
    demand_pair_key(d, key);
    return alloc_index_find_pair(s->allocations, key, found, 1) > 0 &&
           found[0]->demand.by_claim;
}

/* A host pod's claim holds the card for its xPU pods, too. */
static int check_share(const struct demand *host, const struct demand *xpu,
                       struct error *err)
{
    if (host->exclusive || (xpu->card_cores <= host->card_cores &&
                            xpu->card_memory_mib <= host->card_memory_mib))
        return 0;
    return error_set(err, EDOM,
                     "it takes %u cores and %u MiB of a card of which its host "
                     "pod claims %u and %u: raise capacity.requests of that "
                     "claim",
                     xpu->card_cores, xpu->card_memory_mib, host->card_cores,
                     host->card_memory_mib);
}

/* The same where pods of the pair have their places already: an xPU pod that
 * claims nothing shares with the others what its host pod claims. */
static int check_placed(const struct snapshot *s, const struct asking *a,
                        struct error *err)
{
    const struct allocation *found[PAIR_PODS_MAX];
    const struct allocation *host = NULL;
    struct demand sum = a->demand;
    char key[DEMAND_PAIR_KEY_MAX];
    if (a->demand.role != ROLE_XPU || claim_needs_cards(a->needs))
        return 0;
    demand_pair_key(&a->demand, key);
    size_t n = alloc_index_find_pair(s->allocations, key, found, PAIR_PODS_MAX);
    for (size_t i = 0; i < n && i < PAIR_PODS_MAX; i++) {
        const struct demand *d = &found[i]->demand;
        if (d->role == ROLE_HOST && d->by_claim)
            host = found[i];
        if (d->role != ROLE_XPU || d->pair_cards > 1 ||
            strcmp(d->uid, a->demand.uid) == 0)
            continue;
        sum.card_cores += d->card_cores;
        sum.card_memory_mib += d->card_memory_mib;
    }
    return host ? check_share(&host->demand, &sum, err) : 0;
}

/* The cards of a pair are claimed by one of its pods, for all of them. */
static int join_pair(const struct askings *askings, struct asking *a,
                     struct error *err)
{
    for (size_t i = 0; i < askings->n; i++) {
        struct asking *other = &askings->list[i];
        if (other == a || other->demand.pair != a->demand.pair ||
            a->demand.role != ROLE_XPU || other->demand.role != ROLE_HOST)
            continue;
        int r = claim_needs_check_pair(other->needs, a->needs, err);
        if (r == 0 && claim_needs_cards(other->needs))
            r = check_share(&other->demand, &a->demand, err);
        if (r < 0)
            return r;
        bool by_claim = a->demand.by_claim || other->demand.by_claim;
        a->demand.by_claim = other->demand.by_claim = by_claim;
    }
    return 0;
}

int askings_read(const struct gate_place_config *config,
                 const struct snapshot *s, const struct gate_unit *unit,
                 struct askings *ret, struct gate_no_place *no_place)
{
    ret->list = xcalloc(unit->n + 1, sizeof *ret->list);
    int r = 0;
    struct error err = {0};
    const struct gate_pod *at = NULL;
    for (size_t i = 0; i < unit->n && r == 0; i++) {
        struct asking *a = &ret->list[ret->n++];
        a->pod = unit->pods[i];
        a->demand = a->pod->demand;
        at = a->pod;
        r = read_claims(config, s, a, &err);
        a->demand.by_claim = a->demand.by_claim ||
                             is_pair_by_claim(s, &a->demand);
        r = r < 0 ? r : check_placed(s, a, &err);
    }
    for (size_t i = 0; i < ret->n && r == 0; i++) {
        at = ret->list[i].pod;
        r = join_pair(ret, &ret->list[i], &err);
    }
    if (r == 0)
        return 0;
    no_place->demand = at->demand;
    str_addf(&no_place->text, "pod %s cannot be planned: %s", at->demand.name,
             err.text);
    return r;
}
