/* Rules: which devices a request may be given, remembered for each node as
 * long as its slices and the classes stay the same. */
#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book_private.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "model/claim/claim_match.h"

enum { RULES_MAX = 256 }; /* beyond that all are made anew */

/* --- specs ---------------------------------------------------------------- */

struct book_spec *book_spec_create(struct claim_spec *spec)
{
    struct book_spec *s = xcalloc(1, sizeof *s);
    atomic_init(&s->refs, 1);
    s->spec = spec;
    return s;
}

DEFINE_REF(book_spec_ref, struct book_spec)

void book_spec_unref(struct book_spec *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    claim_spec_destroy(s->spec);
    free(s);
}

/* --- rules ---------------------------------------------------------------- */

DEFINE_REF(book_rule_ref, struct book_rule)

void book_rule_unref(struct book_rule *r)
{
    if (!r || !refs_drop(&r->refs))
        return;
    book_spec_unref(r->spec);
    free(r->verdicts);
    free(r->key);
    free(r);
}

/* All that a verdict depends on, beside class and devices. */
static char *make_key(const struct claim_spec *spec,
                      const struct claim_request *q)
{
    cleanup_str struct str key = STR_INIT(4 << 20);
    str_add_json(&key, q->class);
    for (size_t i = 0; i < q->n_selectors; i++) {
        str_add_c(&key, 's');
        str_add_json(&key, claim_cel_text(q->selectors[i]));
    }
    for (size_t i = 0; i < q->n_tolerations; i++) {
        const struct claim_toleration *t = &q->tolerations[i];
        str_add_c(&key, t->exists ? 'e' : 't');
        str_add_json(&key, t->key);
        str_add_json(&key, t->value);
        str_add_json(&key, t->effect);
    }
    for (size_t i = 0; i < q->n_needs; i++) {
        str_add_c(&key, 'n');
        str_add_json(&key, q->needs[i].key);
        str_add_i64(&key, q->needs[i].milli);
    }
    for (size_t i = 0; i < spec->n_constraints; i++) {
        const struct claim_constraint *c = &spec->constraints[i];
        if (!claim_constraint_binds(c, q->name))
            continue;
        str_add_c(&key, 'c');
        str_add_json(&key, *c->match ? c->match : c->distinct);
    }
    return str_steal(&key);
}

static void drop_rule(void *rule)
{
    book_rule_unref(rule);
}

struct book_rule *book_rule_get(struct claim_book *b, struct book_spec *spec,
                                const struct claim_request *request)
{
    cleanup_free char *key = make_key(spec->spec, request);
    struct book_rule *r = strmap_get(&b->rules, key);
    if (r)
        return book_rule_ref(r);
    if (b->rules.n >= RULES_MAX) {
        strmap_fini_with(&b->rules, drop_rule);
        b->rules = (struct strmap){0};
    }
    r = xcalloc(1, sizeof *r);
    atomic_init(&r->refs, 1);
    r->key = steal(&key);
    r->spec = book_spec_ref(spec);
    r->request = request;
    (void)strmap_put(&b->rules, r->key, book_rule_ref(r));
    return r;
}

/* What is remembered is of the classes as they are now. */
static void rule_renew(struct claim_book *b, struct book_rule *r)
{
    if (r->classes_epoch == b->classes_epoch)
        return;
    r->classes_epoch = b->classes_epoch;
    r->kind = NEED_UNKNOWN;
    free(r->verdicts);
    r->verdicts = NULL;
    r->n_verdicts = 0;
}

/* --- devices -------------------------------------------------------------- */

bool book_root_parse(const char *text, uint32_t *ret_domain, uint8_t *ret_bus)
{
    unsigned long domain, bus;
    char *end;
    if (strncmp(text, "pci", 3) != 0 || text[3] < '0')
        return false;
    domain = strtoul(text + 3, &end, 16);
    if (*end != ':' || domain >= TOPO_ROOT_NONE || !end[1])
        return false;
    bus = strtoul(end + 1, &end, 16);
    if (*end || bus > UINT8_MAX)
        return false;
    *ret_domain = (uint32_t)domain;
    *ret_bus = (uint8_t)bus;
    return true;
}

bool book_device_is(const struct claim_device *device, const struct device *d)
{
    uint32_t domain;
    uint8_t bus;
    if (!d->has_pci)
        return false;
    if (device->has_pci)
        return pci_addr_compare(&device->pci, &d->pci) == 0;
    return book_root_parse(device->pcie_root, &domain, &bus) &&
           d->root_domain == domain && d->root_bus == bus;
}

static bool is_ours(const struct claim_slice *slice)
{
    return strcmp(slice->driver, CLAIM_BOOK_DRIVER) == 0;
}

/* The devices of the topology that it stands for. */
static uint16_t device_bits(const struct topo *topo, enum device_kind kind,
                            const struct claim_slice *slice,
                            const struct claim_device *device)
{
    size_t first = 0, n = topo_count(topo, kind, &first);
    uint16_t bits = 0;
    for (size_t i = 0; i < n && i < 16; i++) {
        const struct device *d = topo_device(topo, first + i);
        if (is_ours(slice)
                ? kind == DEVICE_CARD && strcmp(d->id, device->name) == 0
                : kind != DEVICE_CARD && book_device_is(device, d))
            bits |= (uint16_t)(1U << i);
    }
    return bits;
}

static bool has_nic(const struct topo *topo, const struct claim_slice *slice,
                    const struct claim_device *device)
{
    size_t first = 0, n = topo_count(topo, DEVICE_NIC, &first);
    for (size_t i = 0; i < n && !is_ours(slice); i++)
        if (book_device_is(device, topo_device(topo, first + i)))
            return true;
    return false;
}

/* --- what a request selects ----------------------------------------------- */

static bool selects_all(struct claim_cel *const *cels, size_t n,
                        const struct claim_device *device, const char *driver,
                        struct error *err)
{
    bool match = true;
    for (size_t i = 0; i < n && match; i++)
        if (claim_cel_eval(cels[i], device, driver, &match, err) < 0)
            match = false;
    return match;
}

/* Whatever its taints are. */
static bool selects(const struct claim_class *class,
                    const struct claim_request *q,
                    const struct claim_device *device, const char *driver,
                    struct error *err)
{
    return selects_all(class->selectors, class->n_selectors, device, driver,
                       err) &&
           selects_all(q->selectors, q->n_selectors, device, driver, err);
}

static enum need_kind kind_on(const struct topo *topo,
                              const struct claim_slice *slice,
                              const struct claim_device *device)
{
    if (device_bits(topo, DEVICE_CARD, slice, device))
        return NEED_CARD;
    if (device_bits(topo, DEVICE_GPU, slice, device))
        return NEED_GPU;
    return has_nic(topo, slice, device) ? NEED_NIC : NEED_UNKNOWN;
}

/* The first of the kinds that it selects on the node. */
static enum need_kind classify_on(const struct claim_class *class,
                                  const struct book_rule *r,
                                  const struct book_node *at,
                                  const struct topo *topo, struct error *err)
{
    enum need_kind best = NEED_UNKNOWN;
    for (size_t i = 0; i < at->n; i++) {
        const struct claim_slice *slice = at->slices[i]->slice;
        for (size_t k = 0; k < slice->n_devices; k++) {
            const struct claim_device *device = &slice->devices[k];
            enum need_kind kind = kind_on(topo, slice, device);
            if (kind == NEED_UNKNOWN || (best && kind >= best) ||
                strcmp(book_device_node(slice, device), at->name) != 0)
                continue;
            if (selects(class, r->request, device, slice->driver, err))
                best = kind;
        }
    }
    return best;
}

static int fail_class(const struct book_rule *r, const struct claim_class *c,
                      struct error *err)
{
    const char *class = r->request->class;
    if (!c)
        return error_set(err, EDOM,
                         "DeviceClass \"%s\" is not there: create it, or name "
                         "another",
                         class);
    return error_set(err, EDOM, "DeviceClass \"%s\" cannot be read: %s", class,
                     c->bad.text);
}

static int fail_nothing(const struct book_rule *r, const struct error *eval,
                        struct error *err)
{
    const char *class = r->request->class;
    if (strcmp(class, CLAIM_BOOK_DRIVER) == 0)
        return error_set(err, EDOM,
                         "selects no card of any node%s%s: cards are given by "
                         "claims where biga-advertiser runs with --claims",
                         eval->code ? ": " : "", eval->text);
    return error_set(err, EDOM,
                     "DeviceClass \"%s\" and its selectors select no card, and "
                     "no device at the PCI address of a GPU or NIC of any "
                     "node%s%s: its driver has to publish "
                     "resource.kubernetes.io/pciBusID or pcieRoot",
                     class, eval->code ? ": " : "", eval->text);
}

int book_rule_classify(struct claim_book *b, struct book_rule *r,
                       const struct snapshot *s, struct error *err)
{
    const struct claim_class *class = book_class(b, r->request->class);
    struct error eval = {0};
    rule_renew(b, r);
    if (!class || class->bad.code)
        return fail_class(r, class, err);
    /* in the order of names: equal clusters give equal answers */
    for (size_t i = 0; i < s->n_nodes && r->kind != NEED_CARD; i++) {
        const struct node *n = snapshot_node(s, i);
        const struct book_node *at = strmap_get(&b->nodes, n->name);
        enum need_kind kind = at && n->topo
                                  ? classify_on(class, r, at, n->topo, &eval)
                                  : NEED_UNKNOWN;
        if (kind && (!r->kind || kind < r->kind))
            r->kind = kind;
        if (r->kind == NEED_GPU)
            break; /* a class of both is not looked for in all nodes */
    }
    return r->kind ? 0 : fail_nothing(r, &eval, err);
}

/* --- what it is allowed --------------------------------------------------- */

static bool has_attributes(const struct book_rule *r,
                           const struct claim_device *device, struct error *why)
{
    const struct claim_spec *spec = r->spec->spec;
    for (size_t i = 0; i < spec->n_constraints; i++) {
        const struct claim_constraint *c = &spec->constraints[i];
        const char *name = *c->match ? c->match : c->distinct;
        if (!claim_constraint_binds(c, r->request->name) ||
            claim_match_attribute(device, name))
            continue;
        (void)error_set(why, ENOENT,
                        "has no attribute \"%s\", which a constraint compares",
                        name);
        return false;
    }
    return true;
}

bool book_rule_allows(struct claim_book *b, const struct book_rule *r,
                      const struct claim_device *device, const char *driver,
                      struct error *why)
{
    const struct claim_class *class = book_class(b, r->request->class);
    if (!class)
        return false;
    return claim_match(class, r->request, device, driver, why) == 1 &&
           has_attributes(r, device, why);
}

/* Why not: of all devices that which tells the most. */
struct refusal {
    struct error *why; /* NULL: nobody asks */
    unsigned rank;
};

static void note_refusal(struct refusal *r, unsigned rank,
                         const struct claim_device *device, const char *text)
{
    if (!r->why || rank <= r->rank)
        return;
    r->rank = rank;
    (void)error_set(r->why, ENOENT, "%s: %s", device->name, text);
}

/* 1: it is allowed; 0; -EDOM when a selector raises an error for the device, or
 * there is no class: nothing is allocated on its node then. */
static int judge_device(struct claim_book *b, const struct book_rule *r,
                        const struct claim_slice *slice,
                        const struct claim_device *device,
                        struct refusal *refusal)
{
    const struct claim_class *class = book_class(b, r->request->class);
    struct error error = {0}, ignored = {0};
    if (!class)
        return -EDOM;
    int m = claim_match(class, r->request, device, slice->driver, &error);
    bool allowed = m == 1 && has_attributes(r, device, &error);
    if (!allowed && refusal->why) {
        unsigned rank = m == -EDOM ? 3 : 1;
        if (m == 1 ||
            selects(class, r->request, device, slice->driver, &ignored))
            rank = 2; /* it is one of those that are meant */
        note_refusal(refusal, rank, device, error.text);
    }
    return m == -EDOM ? m : allowed;
}

static struct claim_allowed judge_node(struct claim_book *b,
                                       const struct book_rule *r,
                                       const struct book_node *at,
                                       const struct topo *topo,
                                       struct error *why)
{
    struct refusal refusal = {.why = why};
    struct claim_allowed all = {0};
    for (size_t i = 0; i < at->n; i++) {
        const struct claim_slice *slice = at->slices[i]->slice;
        if (!book_slice_counts(at->slices[i]))
            continue;
        for (size_t k = 0; k < slice->n_devices; k++) {
            const struct claim_device *device = &slice->devices[k];
            if (strcmp(book_device_node(slice, device), at->name) != 0)
                continue;
            int m = judge_device(b, r, slice, device, &refusal);
            if (m < 0)
                return (struct claim_allowed){0};
            if (m == 0)
                continue;
            all.cards |= device_bits(topo, DEVICE_CARD, slice, device);
            all.gpus |= device_bits(topo, DEVICE_GPU, slice, device);
        }
    }
    return all;
}

struct claim_allowed book_rule_bits(struct claim_book *b, struct book_rule *r,
                                    const struct node *node, struct error *why)
{
    const struct book_node *at = strmap_get(&b->nodes, node->name);
    uint64_t topo = hash_bytes(node->hash, sizeof node->hash);
    if (!at || !node->topo)
        return (struct claim_allowed){0};
    rule_renew(b, r);
    if (at->slot >= r->n_verdicts) {
        size_t n = b->n_slots + b->n_slots / 8 + 1;
        r->verdicts = xrealloc(r->verdicts, n, sizeof *r->verdicts);
        memset(r->verdicts + r->n_verdicts, 0,
               (n - r->n_verdicts) * sizeof *r->verdicts);
        r->n_verdicts = n;
    }
    struct verdict *v = &r->verdicts[at->slot];
    if (v->epoch != at->epoch || v->topo != topo) {
        v->allowed = judge_node(b, r, at, node->topo, why);
        v->epoch = at->epoch;
        v->topo = topo;
    } else if (why && !v->allowed.cards && !v->allowed.gpus) {
        (void)judge_node(b, r, at, node->topo, why); /* to be told why */
    }
    return v->allowed;
}
