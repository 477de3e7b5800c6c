/* Pins: which device of an allocation goes to which request. */
#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book_private.h"
#include "lib/base/mem.h"
#include "model/claim/claim_match.h"
#include "model/claim/claim_pin.h"

enum {
    SLOTS_MAX = TOPO_CARDS_MAX + TOPO_GPUS_MAX,
    STEPS_MAX = 20000, /* tries, beyond which nothing is found */
};

/* A device that the allocation has, as its driver publishes it. */
struct candidate {
    bool card;
    const struct claim_device *device; /* NULL: nobody publishes it */
    const char *driver;
    struct pci_addr pci;
};

/* One device that a request is to get. */
struct slot {
    size_t request;
    const struct candidate *given;
};

struct giving {
    struct claim_book *book;
    const struct claim_needs *needs;
    struct candidate candidates[SLOTS_MAX];
    bool used[SLOTS_MAX];
    size_t n_candidates;
    struct slot slots[SLOTS_MAX];
    size_t n_slots, deepest;
    unsigned steps;
};

/* --- what there is to give ------------------------------------------------ */

static const struct claim_device *find_card(struct claim_book *b,
                                            const char *node, const char *id)
{
    cleanup_free char *key = xasprintf("%s/%s", CLAIM_BOOK_DRIVER, node);
    const struct book_pool *p = strmap_get(&b->pools, key);
    const struct claim_slice *ignored = NULL;
    return p ? book_find_device(p, id, &ignored) : NULL;
}

/* By address; else by the root complex, each only once.  Of several drivers
 * that which a request allows. */
static const struct claim_device *
find_gpu(const struct giving *g, const struct book_node *at,
         const struct pci_addr *pci, const char *root, const char **ret_driver)
{
    for (size_t i = 0; at && i < at->n; i++) {
        const struct claim_slice *s = at->slices[i]->slice;
        if (!book_slice_counts(at->slices[i]) ||
            strcmp(s->driver, CLAIM_BOOK_DRIVER) == 0)
            continue;
        for (size_t k = 0; k < s->n_devices; k++) {
            const struct claim_device *d = &s->devices[k];
            bool taken = false, allowed = false;
            if (strcmp(book_device_node(s, d), at->name) != 0)
                continue; /* of a slice with devices of several nodes */
            if (d->has_pci ? pci_addr_compare(&d->pci, pci) != 0
                           : !*root || strcmp(d->pcie_root, root) != 0)
                continue;
            for (size_t c = 0; c < g->n_candidates && !taken; c++)
                taken = g->candidates[c].device == d;
            for (size_t q = 0; q < g->needs->n_requests && !allowed; q++)
                allowed = g->needs->requests[q].kind == NEED_GPU &&
                          book_rule_allows(g->book, g->needs->requests[q].rule,
                                           d, s->driver, NULL);
            if (taken || !allowed)
                continue;
            *ret_driver = s->driver;
            return d;
        }
    }
    return NULL;
}

static struct candidate *add(struct giving *g, bool card, const char *text,
                             struct error *err)
{
    struct candidate *c = &g->candidates[g->n_candidates];
    *c = (struct candidate){.card = card, .driver = CLAIM_BOOK_DRIVER};
    if (pci_addr_parse(text, &c->pci, err) < 0)
        return NULL;
    return c;
}

static int list_candidates(struct giving *g, const struct allocation *a,
                           const struct topo *topo, struct error *err)
{
    const struct book_node *at = strmap_get(&g->book->nodes, a->node);
    for (size_t i = 0; i < a->n_cards && i < TOPO_CARDS_MAX; i++) {
        struct candidate *c = add(g, true, a->card_pci ? a->card_pci[i] : "",
                                  err);
        if (!c)
            return error_set(err, EDOM, "the PCI address of %s is not known",
                             a->cards[i]);
        c->device = find_card(g->book, a->node, a->cards[i]);
        g->n_candidates++;
    }
    for (size_t i = 0; i < a->n_gpus && i < TOPO_GPUS_MAX; i++) {
        struct candidate *c = add(g, false, a->gpu_pci ? a->gpu_pci[i] : "",
                                  err);
        const struct device *d = topo ? topo_find(topo, a->gpus[i]) : NULL;
        char root[32] = "";
        if (!c)
            return error_set(err, EDOM, "the PCI address of %s is not known",
                             a->gpus[i]);
        if (d && d->root_domain != TOPO_ROOT_NONE)
            (void)snprintf(root, sizeof root, "pci%04x:%02x",
                           (unsigned)d->root_domain, d->root_bus);
        c->device = find_gpu(g, at, &c->pci, root, &c->driver);
        g->n_candidates++;
    }
    return 0;
}

/* --- giving ---------------------------------------------------------------- */

static const struct need_request *request_of(const struct giving *g, size_t i)
{
    return &g->needs->requests[g->slots[i].request];
}

static bool agree(const struct claim_constraint *c,
                  const struct claim_device *a, const struct claim_device *b)
{
    const char *name = *c->match ? c->match : c->distinct;
    const struct claim_attribute *x = claim_match_attribute(a, name);
    const struct claim_attribute *y = claim_match_attribute(b, name);
    return x && y && claim_attribute_equal(x, y) == (*c->match != '\0');
}

/* Do the constraints allow the device in slot `at` beside those before it? */
static bool constraints_allow(const struct giving *g, size_t at,
                              const struct claim_device *device)
{
    const struct need_request *n = request_of(g, at);
    const struct claim_spec *spec = g->needs->claims[n->claim].spec->spec;
    for (size_t i = 0; i < spec->n_constraints; i++) {
        const struct claim_constraint *c = &spec->constraints[i];
        if (!claim_constraint_binds(c, n->request->name))
            continue;
        for (size_t k = 0; k < at; k++) {
            const struct need_request *other = request_of(g, k);
            if (other->claim == n->claim &&
                claim_constraint_binds(c, other->request->name) &&
                !agree(c, g->slots[k].given->device, device))
                return false;
        }
    }
    return true;
}

static bool give(struct giving *g, size_t at)
{
    if (at == g->n_slots)
        return true;
    if (at > g->deepest)
        g->deepest = at;
    const struct need_request *n = request_of(g, at);
    for (size_t i = 0; i < g->n_candidates; i++) {
        const struct candidate *c = &g->candidates[i];
        if (g->used[i] || !c->device || c->card != (n->kind == NEED_CARD) ||
            ++g->steps > STEPS_MAX ||
            !book_rule_allows(g->book, n->rule, c->device, c->driver, NULL) ||
            !constraints_allow(g, at, c->device))
            continue;
        g->used[i] = true;
        g->slots[at].given = c;
        if (give(g, at + 1))
            return true;
        g->used[i] = false;
    }
    return false;
}

static int give_all(struct giving *g, const struct allocation *a,
                    struct error *err)
{
    for (size_t i = 0; i < g->needs->n_requests; i++)
        for (size_t k = 0;
             k < g->needs->requests[i].count && g->n_slots < SLOTS_MAX; k++)
            g->slots[g->n_slots++].request = i;
    if (give(g, 0))
        return 0;
    const struct need_request *n = request_of(g, g->deepest);
    return error_set(err, EDOM,
                     "spec.resourceClaims[\"%.63s\"]: request \"%.63s\": no "
                     "device of its place on %.63s keeps to its selectors and "
                     "the constraints",
                     g->needs->claims[n->claim].name, n->request->name,
                     a->node);
}

/* --- writing --------------------------------------------------------------- */

static bool is_among(const char *const *texts, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

static void write_cel(const struct giving *g, const char *node, size_t request,
                      struct str *out)
{
    struct pci_addr addrs[SLOTS_MAX];
    const char *roots[SLOTS_MAX];
    const struct candidate *first = NULL;
    size_t n = 0, n_roots = 0;
    for (size_t i = 0; i < g->n_slots; i++) {
        const struct candidate *given = g->slots[i].given;
        if (g->slots[i].request != request)
            continue;
        first = first ? first : given;
        addrs[n++] = given->pci;
        roots[n_roots] = given->device->pcie_root;
        n_roots += !is_among(roots, n_roots, roots[n_roots]);
    }
    if (first && first->card)
        claim_pin_cards(node, addrs, n, out);
    else if (first && first->device->has_pci)
        claim_pin_pci(first->driver, addrs, n, out);
    else if (first)
        claim_pin_roots(first->driver, roots, n_roots, out);
}

static int write_claim(const struct giving *g, const struct allocation *a,
                       size_t claim, struct claim_book_pin *to,
                       struct error *err)
{
    const struct need_claim *from = &g->needs->claims[claim];
    struct claim_pin pins[CLAIM_REQUESTS_MAX];
    struct str cels[CLAIM_REQUESTS_MAX];
    size_t n = 0;
    (void)snprintf(to->name, sizeof to->name, "%s", from->name);
    (void)snprintf(to->made, sizeof to->made, "%s", from->made);
    str_init(&to->spec, CLAIM_SPEC_MAX + CLAIM_REQUESTS_MAX * CLAIM_CEL_MAX);
    str_init(&to->labels, CLAIM_SPEC_MAX);
    str_init(&to->annotations, CLAIM_SPEC_MAX);
    str_add(&to->labels, from->labels ? from->labels : "");
    str_add(&to->annotations, from->annotations ? from->annotations : "");
    for (size_t i = 0; i < g->needs->n_requests; i++) {
        const struct need_request *q = &g->needs->requests[i];
        if (q->claim != claim || !q->count || n == CLAIM_REQUESTS_MAX)
            continue;
        str_init(&cels[n], CLAIM_CEL_MAX);
        write_cel(g, a->node, i, &cels[n]);
        pins[n] = (struct claim_pin){q->request->name, str_text(&cels[n])};
        n++;
    }
    to->pinned = n > 0;
    int e = claim_pin(from->spec->spec, pins, n, &to->spec, err);
    for (size_t i = 0; i < n; i++)
        str_fini(&cels[i]);
    return e;
}

void claim_book_pins_fini(struct claim_book_pins *pins)
{
    for (size_t i = 0; i < pins->n; i++) {
        str_fini(&pins->items[i].spec);
        str_fini(&pins->items[i].labels);
        str_fini(&pins->items[i].annotations);
    }
    pins->n = 0;
}

int claim_book_pin(struct claim_book *b, const struct claim_needs *needs,
                   const struct node *node, const struct allocation *a,
                   struct claim_book_pins *ret_pins, struct error *err)
{
    struct giving g = {.book = b, .needs = needs};
    ret_pins->n = 0;
    hold_lock(&b->lock);
    int e = list_candidates(&g, a, node->topo, err);
    if (e == 0)
        e = give_all(&g, a, err);
    for (size_t i = 0; i < needs->n_claims && e == 0; i++)
        e = write_claim(&g, a, i, &ret_pins->items[ret_pins->n++], err);
    return e;
}
