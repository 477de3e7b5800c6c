/* ResourceClaims: what each has now, and how it fares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book_private.h"
#include "lib/base/mem.h"

/* A device that a claim was given.  What is once known of it stays known: a
 * driver that starts again withdraws its slices, and its devices are in use
 * all the same. */
struct result {
    char *device;
    struct book_pool *pool;
    bool ours;              /* a card */
    struct claim_card card; /* then */
    struct claim_pci pci;   /* else, if it is */
    bool settled;
    char *node; /* "" not known */
};

struct book_claim {
    struct book_object object;
    struct claim_fate fate;
    char (*pods)[DEMAND_UID_MAX + 1]; /* owner and consumers */
    size_t n_pods;
    struct result *results;
    size_t n_results;
    char *spec;             /* JSON; NULL: it cannot be read */
    struct claim_use *told; /* NULL: it has nothing */
};

static void copy(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text); /* cut, when it is too long */
}

/* --- telling -------------------------------------------------------------- */

static struct book_note *note_add(struct claim_book *b)
{
    b->notes = xgrow(b->notes, b->n_notes, &b->notes_cap, sizeof *b->notes);
    b->notes[b->n_notes] = (struct book_note){0};
    return &b->notes[b->n_notes++];
}

static void tell_use(struct claim_book *b, struct claim_use *use, bool gone)
{
    struct book_note *n = note_add(b);
    n->use = claim_use_ref(use);
    n->gone = gone;
}

static void tell_changed(struct claim_book *b, const struct book_claim *c)
{
    const char *slash = strchr(c->object.key, '/');
    if (!b->config.changed)
        return;
    struct book_note *n = note_add(b);
    n->namespace = xstrndup(c->object.key, (size_t)(slash - c->object.key));
    n->name = xstrdup(slash + 1);
    n->owner = xstrdup(c->fate.owner);
}

/* --- what it has ---------------------------------------------------------- */

static void settle_result(struct result *r)
{
    const struct claim_slice *slice = NULL;
    const struct claim_device *d = book_find_device(r->pool, r->device, &slice);
    if (r->ours || !d)
        return;
    const char *node = book_device_node(slice, d);
    if (!*node)
        return; /* several nodes get at it: it is in none */
    if (d->has_pci)
        r->pci = (struct claim_pci){.pci = d->pci};
    else if (book_root_parse(d->pcie_root, &r->pci.root_domain,
                             &r->pci.root_bus))
        r->pci.by_root = true;
    else
        return;
    r->settled = true;
    free(r->node);
    r->node = xstrdup(node);
}

/* All devices of a claim are on one node: that of a card, else the first that
 * is known. */
static const char *node_of(const struct book_claim *c)
{
    const char *node = c->fate.node;
    for (size_t i = 0; i < c->n_results; i++) {
        const struct result *r = &c->results[i];
        if (r->ours)
            return r->node;
        if (!*node && r->settled)
            node = r->node;
    }
    return node;
}

static struct claim_use *use_of(const struct book_claim *c)
{
    const char *node = node_of(c), *slash = strchr(c->object.key, '/');
    if (!*node || !c->fate.allocated)
        return NULL;
    cleanup_free char *namespace = xstrndup(c->object.key,
                                            (size_t)(slash - c->object.key));
    struct claim_use *use = claim_use_create(namespace, slash + 1, node);
    for (size_t i = 0; i < c->n_results; i++) {
        const struct result *r = &c->results[i];
        if (*r->node && strcmp(r->node, node) != 0)
            continue;
        if (r->ours)
            claim_use_add_card(use, &r->card);
        else if (r->settled)
            claim_use_add_pci(use, &r->pci);
    }
    for (size_t i = 0; i < c->n_pods; i++)
        claim_use_add_pod(use, c->pods[i]);
    if (use->n_cards || use->n_gpus)
        return use;
    claim_use_unref(use);
    return NULL;
}

static void settle(struct claim_book *b, struct book_claim *c)
{
    for (size_t i = 0; i < c->n_results; i++)
        settle_result(&c->results[i]);
    struct claim_use *use = use_of(c), *old = c->told;
    c->told = use;
    if (use && !(old && claim_use_is_same(use, old)))
        tell_use(b, use, false);
    else if (!use && old)
        tell_use(b, old, true);
    claim_use_unref(old);
}

void book_settle_pool(struct claim_book *b, struct book_pool *p)
{
    for (size_t i = 0; i < p->n_claims; i++)
        settle(b, p->claims[i]);
}

/* --- reading -------------------------------------------------------------- */

static void pool_forget(struct claim_book *b, struct book_pool *p,
                        const struct book_claim *c)
{
    for (size_t i = 0; i < p->n_claims; i++)
        if (p->claims[i] == c)
            p->claims[i--] = p->claims[--p->n_claims];
    book_pool_put(b, p);
}

static void results_free(struct claim_book *b, struct book_claim *c)
{
    for (size_t i = 0; i < c->n_results; i++) {
        free(c->results[i].device);
        free(c->results[i].node);
        bool again = false; /* the pool is forgotten, and may be gone, once */
        for (size_t k = 0; k < i && !again; k++)
            again = c->results[k].pool == c->results[i].pool;
        if (!again)
            pool_forget(b, c->results[i].pool, c);
    }
    free(c->results);
    c->results = NULL;
    c->n_results = 0;
}

static uint32_t whole_units(int64_t milli, int64_t unit_milli)
{
    int64_t n = milli / unit_milli + (milli % unit_milli != 0);
    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Without an amount of each the card is taken whole. */
static void card_read(const struct claim_result *r, struct claim_card *ret)
{
    const struct claim_capacity *cores =
        claim_capacity_find(r->consumed, r->n_consumed, "biga.dev/cores");
    const struct claim_capacity *memory =
        claim_capacity_find(r->consumed, r->n_consumed, "biga.dev/memory");
    *ret = (struct claim_card){.whole = !cores || !memory};
    copy(ret->id, sizeof ret->id, r->device);
    if (ret->whole)
        return;
    ret->cores = whole_units(cores->milli, 1000);
    ret->memory_mib = whole_units(memory->milli, INT64_C(1000) << 20);
}

static void result_read(struct claim_book *b, const struct claim_result *from,
                        struct book_claim *c)
{
    struct result *r = &c->results[c->n_results++];
    r->device = xstrdup(from->device);
    r->pool = book_pool_get(b, from->driver, from->pool);
    r->ours = strcmp(from->driver, CLAIM_BOOK_DRIVER) == 0;
    r->node = xstrdup(r->ours ? from->pool : "");
    if (r->ours)
        card_read(from, &r->card);
    struct book_pool *p = r->pool;
    for (size_t i = 0; i < p->n_claims; i++)
        if (p->claims[i] == c)
            return;
    p->claims = xgrow(p->claims, p->n_claims, &p->claims_cap,
                      sizeof(*p->claims));
    p->claims[p->n_claims++] = c;
}

static void take_over(struct result *r, struct result *from, size_t n)
{
    for (size_t i = 0; i < n && !r->ours; i++) {
        if (!from[i].settled || r->pool != from[i].pool ||
            strcmp(from[i].device, r->device) != 0)
            continue;
        r->settled = true;
        r->pci = from[i].pci;
        free(r->node);
        r->node = xstrdup(from[i].node);
    }
}

static void results_read(struct claim_book *b, struct book_claim *c,
                         const struct claim_status *s)
{
    struct book_claim old = {.results = c->results, .n_results = c->n_results};
    c->results = xcalloc(s->n_results + 1, sizeof *c->results);
    c->n_results = 0;
    for (size_t i = 0; s->allocated && i < s->n_results; i++)
        if (!s->results[i].admin) /* it takes nothing from others */
            result_read(b, &s->results[i], c);
    for (size_t i = 0; i < c->n_results; i++)
        take_over(&c->results[i], old.results, old.n_results);
    /* a pool that both have is still to know the claim */
    for (size_t i = 0; i < old.n_results; i++) {
        bool kept = false;
        for (size_t k = 0; k < c->n_results && !kept; k++)
            kept = c->results[k].pool == old.results[i].pool;
        for (size_t k = 0; k < i && !kept; k++)
            kept = old.results[k].pool == old.results[i].pool;
        free(old.results[i].device);
        free(old.results[i].node);
        if (!kept)
            pool_forget(b, old.results[i].pool, c);
    }
    free(old.results);
}

static void pods_read(struct book_claim *c, const struct claim_status *s)
{
    size_t n = s->n_reserved + 1;
    free(c->pods);
    c->n_pods = 0;
    c->pods = xcalloc(n, sizeof *c->pods);
    if (*s->owner.uid)
        copy(c->pods[c->n_pods++], sizeof *c->pods, s->owner.uid);
    for (size_t i = 0; i < s->n_reserved; i++)
        copy(c->pods[c->n_pods++], sizeof *c->pods, s->reserved[i].uid);
}

static void fate_read(const struct claim_status *s, struct claim_fate *fate)
{
    *fate =
        (struct claim_fate){.allocated = s->allocated,
                            .deleting = s->deleting,
                            .is_pinned = s->is_pinned,
                            .n_reserved = s->n_reserved + s->n_other_reserved};
    copy(fate->pinned, sizeof fate->pinned, s->pinned);
    copy(fate->uid, sizeof fate->uid, s->uid);
    copy(fate->owner, sizeof fate->owner, s->owner.uid);
    copy(fate->pod_claim, sizeof fate->pod_claim, s->pod_claim);
    copy(fate->node, sizeof fate->node, s->node);
    copy(fate->version, sizeof fate->version, s->version);
}

int book_put_claim(struct book_kind *k, const char *key, const char *json,
                   size_t size, struct error *err)
{
    struct book_claim *c = strmap_get(&k->objects, key);
    cleanup_with(claim_status) struct claim_status *s = NULL;
    int r = claim_status_read(json, size, &s, err);
    if (r < 0)
        return r;
    if (c && *s->version && strcmp(c->fate.version, s->version) == 0)
        return 0; /* told again */
    if (!c && k->objects.n >= CLAIM_BOOK_CLAIMS_MAX)
        return error_set(err, ENOSPC, "there are more than %d claims",
                         CLAIM_BOOK_CLAIMS_MAX);
    if (!c) {
        c = xcalloc(1, sizeof *c);
        c->object.key = xstrdup(key);
        (void)strmap_put(&k->objects, c->object.key, c);
    }
    fate_read(s, &c->fate);
    pods_read(c, s);
    results_read(k->book, c, s);
    free(c->spec);
    c->spec = s->spec ? xstrndup(s->spec->json, s->spec->json_size) : NULL;
    settle(k->book, c);
    tell_changed(k->book, c);
    return 0;
}

void book_drop_claim(struct claim_book *b, struct book_object *object)
{
    struct book_claim *c = (struct book_claim *)object; /* its first member */
    if (c->told)
        tell_use(b, c->told, true);
    tell_changed(b, c);
    claim_use_unref(c->told);
    results_free(b, c);
    free(c->pods);
    free(c->spec);
    free(c->object.key);
    free(c);
}

/* --- how it fares --------------------------------------------------------- */

static struct book_claim *find(struct claim_book *b, const char *namespace,
                               const char *name)
{
    cleanup_free char *key = xasprintf("%s/%s", namespace, name);
    return strmap_get(&b->kinds[CLAIM_BOOK_CLAIMS].objects, key);
}

char *book_claim_spec(struct claim_book *b, const char *namespace,
                      const char *name, struct claim_fate *ret_fate)
{
    const struct book_claim *c = find(b, namespace, name);
    *ret_fate = c ? c->fate : (struct claim_fate){0};
    return c && c->spec ? xstrdup(c->spec) : NULL;
}

bool claim_book_find(struct claim_book *b, const char *namespace,
                     const char *name, struct claim_fate *ret_fate)
{
    hold_lock(&b->lock);
    const struct book_claim *c = find(b, namespace, name);
    if (!c)
        return false;
    *ret_fate = c->fate;
    copy(ret_fate->node, sizeof ret_fate->node, node_of(c));
    return true;
}

size_t claim_book_owned(struct claim_book *b, const char *owner,
                        char (*ret_names)[DEMAND_NAME_MAX + 1], size_t max)
{
    size_t n = 0, pos = 0;
    const struct book_claim *c;
    hold_lock(&b->lock);
    while ((c = strmap_next(&b->kinds[CLAIM_BOOK_CLAIMS].objects, &pos))) {
        if (strcmp(c->fate.owner, owner) != 0)
            continue;
        if (n < max)
            copy(ret_names[n], sizeof *ret_names,
                 strchr(c->object.key, '/') + 1);
        n++;
    }
    return n;
}
