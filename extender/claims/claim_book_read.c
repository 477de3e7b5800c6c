/* What a pod's claims ask, joined into its demand. */
#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book_private.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "model/claim/pod_claims.h"

DEFINE_REF(claim_needs_ref, struct claim_needs)

void claim_needs_unref(struct claim_needs *needs)
{
    if (!needs || !refs_drop(&needs->refs))
        return;
    for (size_t i = 0; i < needs->n_claims; i++) {
        free(needs->claims[i].name);
        free(needs->claims[i].made);
        free(needs->claims[i].labels);
        free(needs->claims[i].annotations);
        book_spec_unref(needs->claims[i].spec);
    }
    for (size_t i = 0; i < needs->n_requests; i++)
        book_rule_unref(needs->requests[i].rule);
    free(needs->claims);
    free(needs->requests);
    free(needs);
}

unsigned claim_needs_cards(const struct claim_needs *needs)
{
    return needs ? needs->cards : 0;
}

unsigned claim_needs_gpus(const struct claim_needs *needs)
{
    return needs ? needs->gpus : 0;
}

int claim_needs_check_pair(const struct claim_needs *host,
                           const struct claim_needs *xpu, struct error *err)
{
    if (!claim_needs_cards(host) || !claim_needs_cards(xpu))
        return 0;
    return error_set(err, EDOM,
                     "host pod and xPU pod of the pair both claim cards: let "
                     "one of them claim what the pair needs");
}

/* What is read of one pod. */
struct reading {
    struct claim_book *book;
    const struct snapshot *snapshot;
    const char *namespace;
    bool at_gate;
    struct claim_needs *needs;
    size_t cap;
    struct demand demand;
    bool has_cards, stated; /* a request for cards was read; with amounts */
    uint32_t cores, memory_mib;
};

/* --- which spec ----------------------------------------------------------- */

static int spec_of_claim(struct reading *r, const char *name,
                         struct book_spec **ret, struct error *err)
{
    struct claim_fate fate;
    struct claim_spec *spec = NULL;
    cleanup_free char *json = book_claim_spec(r->book, r->namespace, name,
                                              &fate);
    if (!fate.uid[0])
        return error_set(err, EDOM, "ResourceClaim \"%s\" is not there", name);
    if (!json || claim_spec_read(json, strlen(json), &spec, err) < 0)
        return error_set(err, EDOM, "ResourceClaim \"%s\" cannot be read: %s",
                         name, json ? err->text : "see its template");
    *ret = book_spec_create(spec);
    return 0;
}

static int spec_of_template(struct reading *r, const struct pod_claim *c,
                            struct need_claim *to, struct error *err)
{
    struct claim_fate fate = {0};
    cleanup_free char *key = xasprintf("%s/%s", r->namespace, c->template);
    const struct book_template *t =
        strmap_get(&r->book->kinds[CLAIM_BOOK_TEMPLATES].objects, key);
    if (t && !t->spec)
        return error_set(err, EDOM, "ResourceClaimTemplate \"%s\": %s",
                         c->template, t->bad.text);
    if (t) {
        to->spec = book_spec_ref(t->spec);
        to->labels = xstrdup(t->labels);
        to->annotations = xstrdup(t->annotations);
        return 0;
    }
    /* one that is made, and not by Biga, is what the template said */
    if (*c->made)
        free(book_claim_spec(r->book, r->namespace, c->made, &fate));
    if (!fate.uid[0] || fate.is_pinned)
        return error_set(err, EDOM,
                         "ResourceClaimTemplate \"%s\" is not there: create it",
                         c->template);
    to->labels = xstrdup("");
    to->annotations = xstrdup("");
    return spec_of_claim(r, c->made, &to->spec, err);
}

/* --- requests ------------------------------------------------------------- */

static int add_count(unsigned *sum, int64_t count, unsigned max,
                     const char *what, struct error *err)
{
    if (count > max || *sum + count > max)
        return error_set(err, EDOM,
                         "the pod claims more than %u %s: no node can have "
                         "more",
                         max, what);
    *sum += (unsigned)count;
    return 0;
}

static uint32_t units(int64_t milli, int64_t unit)
{
    int64_t n = milli / unit + (milli % unit != 0);
    return n < 1 ? 1 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* A card's cores and memory; who leaves one open takes all of it. */
static int take_card(struct reading *r, const struct claim_request *q,
                     struct error *err)
{
    const struct claim_capacity *cores =
        claim_capacity_find(q->needs, q->n_needs, "biga.dev/cores");
    const struct claim_capacity *memory =
        claim_capacity_find(q->needs, q->n_needs, "biga.dev/memory");
    bool stated = cores && memory;
    uint32_t n = stated ? units(cores->milli, 1000) : 0;
    uint32_t mib = stated ? units(memory->milli, INT64_C(1000) << 20) : 0;
    if (r->has_cards &&
        (stated != r->stated || n != r->cores || mib != r->memory_mib))
        return error_set(err, EDOM,
                         "asks another amount of a card than an earlier "
                         "request: ask the same biga.dev/cores and "
                         "biga.dev/memory of each card, or none");
    r->has_cards = true;
    r->stated = stated;
    r->cores = n;
    r->memory_mib = mib;
    return add_count(&r->needs->cards, q->count, TOPO_CARDS_MAX, "cards", err);
}

static int take_gpu(struct reading *r, const struct claim_request *q,
                    struct error *err)
{
    if (r->demand.role != ROLE_HOST)
        return error_set(err, EDOM,
                         "asks for GPUs: they go to the host pod of a pair, "
                         "which has to claim them");
    return add_count(&r->needs->gpus, q->count, TOPO_GPUS_MAX, "GPUs", err);
}

static int check_mode(const struct claim_request *q, bool named,
                      struct error *err)
{
    if (q->all)
        return error_set(err, EDOM,
                         "has allocationMode All: state a count of devices");
    if (q->admin)
        return error_set(err, EDOM,
                         "has adminAccess, which takes no device: Biga cannot "
                         "place a pod by it");
    if (named)
        return error_set(err, EDOM,
                         "is of a claim that stands by itself "
                         "(resourceClaimName), which Biga cannot pin: use a "
                         "resourceClaimTemplateName");
    return 0;
}

static struct need_request *add_request(struct claim_needs *needs, size_t *cap)
{
    needs->requests = xgrow(needs->requests, needs->n_requests, cap,
                            sizeof *needs->requests);
    struct need_request *n = &needs->requests[needs->n_requests++];
    *n = (struct need_request){0};
    return n;
}

/* Of another driver, which kube-scheduler filters nodes by. */
static bool is_left(const struct reading *r, const struct claim_request *q)
{
    return !r->at_gate && strcmp(q->class, CLAIM_BOOK_DRIVER) != 0;
}

static int read_request(struct reading *r, size_t claim, bool named,
                        const struct claim_request *q, struct error *err)
{
    struct need_request *n = add_request(r->needs, &r->cap);
    n->claim = (uint8_t)claim;
    n->request = q;
    n->rule = book_rule_get(r->book, r->needs->claims[claim].spec, q);
    int e = book_rule_classify(r->book, n->rule, r->snapshot, err);
    if (e < 0 && is_left(r, q))
        return 0;
    if (e < 0)
        return e;
    n->kind = n->rule->kind;
    if (n->kind == NEED_NIC)
        return 0;
    e = check_mode(q, named, err);
    if (e == 0)
        e = n->kind == NEED_CARD ? take_card(r, q, err) : take_gpu(r, q, err);
    if (e == 0)
        n->count = (uint8_t)q->count; /* at most 16 */
    return e;
}

static int read_claim(struct reading *r, const struct pod_claim *c,
                      struct error *err)
{
    size_t at = r->needs->n_claims++;
    struct need_claim *to = &r->needs->claims[at];
    bool named = *c->claim;
    to->name = xstrdup(c->name);
    to->made = xstrdup(named ? c->claim : c->made);
    int e = named ? spec_of_claim(r, c->claim, &to->spec, err)
                  : spec_of_template(r, c, to, err);
    if (e < 0)
        return e;
    const struct claim_spec *spec = to->spec->spec;
    for (size_t i = 0; i < spec->n_requests; i++) {
        struct error why = {0};
        if (read_request(r, at, named, &spec->requests[i], &why) < 0)
            return error_set(err, EDOM, "request \"%.63s\": %s",
                             spec->requests[i].name, why.text);
    }
    return 0;
}

/* --- constraints ---------------------------------------------------------- */

static int relation_of(const char *attribute)
{
    static const struct {
        const char *name;
        enum relation relation;
    } known[] = {
        {"resource.kubernetes.io/pcieRoot", RELATION_PHB},
        {"biga.dev/switch", RELATION_PIX},
        {"resource.kubernetes.io/numaNode", RELATION_NODE},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].name, attribute) == 0)
            return (int)known[i].relation;
    return RELATION_COUNT;
}

static void join_constraint(struct reading *r, size_t claim,
                            const struct claim_constraint *c)
{
    unsigned cards = 0, gpus = 0;
    int relation = relation_of(c->match);
    for (size_t i = 0; i < r->needs->n_requests; i++) {
        const struct need_request *n = &r->needs->requests[i];
        if (n->claim != claim || !claim_constraint_binds(c, n->request->name))
            continue;
        cards += n->kind == NEED_CARD ? n->count : 0;
        gpus += n->kind == NEED_GPU ? n->count : 0;
    }
    if (cards && cards + gpus >= 2 && relation < r->demand.align)
        r->demand.align = (uint8_t)relation;
}

static void join_cards(struct reading *r)
{
    struct demand *d = &r->demand;
    uint8_t cards = (uint8_t)r->needs->cards;
    if (!cards)
        return;
    if (d->role != ROLE_XPU || d->pair_cards == d->cards ||
        d->pair_cards < cards)
        d->pair_cards = cards;
    d->cards = cards;
    d->by_claim = true;
    d->exclusive = d->exclusive || !r->stated;
    d->has_card_need = r->stated;
    d->card_cores = r->cores;
    d->card_memory_mib = r->memory_mib;
}

static int join(struct reading *r, struct error *err)
{
    struct demand *d = &r->demand;
    join_cards(r);
    if (r->needs->gpus) {
        if (d->gpus && d->gpus != r->needs->gpus)
            return error_set(err, EDOM,
                             "claims %u GPUs, but its resources or "
                             "annotations say %u: leave these out, or let "
                             "both say the same",
                             r->needs->gpus, d->gpus);
        d->gpus = d->pair_gpus = (uint8_t)r->needs->gpus;
        d->gpus_by_plugin = d->every_gpu = false; /* they are pinned */
    }
    for (size_t i = 0; i < r->needs->n_claims; i++) {
        const struct claim_spec *spec = r->needs->claims[i].spec->spec;
        for (size_t k = 0; k < spec->n_constraints; k++)
            join_constraint(r, i, &spec->constraints[k]);
    }
    return 0;
}

int claim_book_read(struct claim_book *b, const struct snapshot *s,
                    const char *json, size_t size, bool at_gate,
                    struct demand *demand, struct claim_needs **ret_needs,
                    struct error *err)
{
    cleanup_pod_claims struct pod_claims claims = {0};
    int e = pod_claims_read(json, size, &claims, err);
    if (e < 0)
        return e;
    *ret_needs = NULL;
    if (claims.n == 0)
        return 0;
    cleanup_with(claim_needs) struct claim_needs *needs =
        xcalloc(1, sizeof *needs);
    atomic_init(&needs->refs, 1);
    needs->claims = xcalloc(claims.n, sizeof *needs->claims);
    struct reading r = {.book = b,
                        .snapshot = s,
                        .namespace = demand->namespace,
                        .at_gate = at_gate,
                        .needs = needs,
                        .demand = *demand};
    hold_lock(&b->lock);
    for (size_t i = 0; i < claims.n; i++) {
        struct error why = {0};
        if (read_claim(&r, &claims.items[i], &why) < 0)
            return error_set(err, EDOM, "spec.resourceClaims[\"%.63s\"]: %s",
                             claims.items[i].name, why.text);
    }
    e = join(&r, err);
    if (e < 0)
        return e;
    *demand = r.demand;
    *ret_needs = steal(&needs);
    return 0;
}

/* --- which devices -------------------------------------------------------- */

bool claim_book_allows(struct claim_book *b, struct claim_needs *needs,
                       const struct node *node,
                       struct claim_allowed *ret_allowed, struct error *why)
{
    struct claim_allowed all = {UINT16_MAX, UINT16_MAX};
    hold_lock(&b->lock);
    for (size_t i = 0; i < needs->n_requests; i++) {
        const struct need_request *n = &needs->requests[i];
        struct error reason = {0};
        if (n->kind != NEED_CARD && n->kind != NEED_GPU)
            continue;
        struct claim_allowed by_rule = book_rule_bits(b, n->rule, node,
                                                      why ? &reason : NULL);
        if (n->kind == NEED_CARD)
            all.cards &= by_rule.cards;
        else
            all.gpus &= by_rule.gpus;
        if (why && !why->code && !(n->kind == NEED_CARD ? all.cards : all.gpus))
            (void)error_set(why, ENOENT, "request \"%.63s\": %s",
                            n->request->name,
                            reason.code ? reason.text
                                        : "its driver has published nothing "
                                          "for this node");
    }
    *ret_allowed = all;
    return all.cards && all.gpus;
}
