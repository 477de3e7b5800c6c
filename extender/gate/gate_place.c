#include "extender/gate/gate_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_place_private.h"
#include "extender/judge/job.h"
#include "extender/judge/schedule.h"
#include "extender/judge/why.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"

enum {
    TEXT_MAX = 8192,
    RETRIES_MAX = 64, /* when nodes come and go */
};

void gate_placed_fini(struct gate_placed *p)
{
    gate_pod_unref(p->pod);
    claim_needs_unref(p->needs);
    free(p->allocation);
}

void gate_placing_fini(struct gate_placing *p)
{
    for (size_t i = 0; i < p->n; i++)
        gate_placed_fini(&p->pods[i]);
    free(p->pods);
    memset(p, 0, sizeof *p);
}

void gate_no_place_fini(struct gate_no_place *w)
{
    str_fini(&w->text);
    snapshot_unref(w->snapshot);
    free(w->nodes);
    memset(w, 0, sizeof *w);
}

/* --- the nodes that kube-scheduler would take --------------------------------- */

struct nodes {
    struct snapshot *snapshot;
    const char **names; /* of all, by index */
    bool *ok;
    bool *full; /* of those, by others of the unit: no room for `full_for` */
    const struct pod_needs *full_for;
    int32_t *indexes; /* of those that are left, ascending */
    size_t n, n_all;
    size_t n_fit;                  /* before claims were looked at */
    struct candidates *candidates; /* the same */
    const struct pod_needs *needs; /* with which the first was refused */
    struct error claims_why;       /* the last was refused by claims */
    uint16_t *cards, *gpus;        /* of each, that claims allow; NULL: all */
    /* what they do not allow, as one claim for each node that has such */
    struct claim_use **withheld;
    size_t n_withheld;
};

static void nodes_fini(struct nodes *n)
{
    snapshot_unref(n->snapshot);
    free(n->names);
    free(n->ok);
    free(n->full);
    free(n->indexes);
    candidates_unref(n->candidates);
    free(n->cards);
    free(n->gpus);
    for (size_t i = 0; i < n->n_withheld; i++)
        claim_use_unref(n->withheld[i]);
    free(n->withheld);
}
static void cleanup_nodes_p(struct nodes *n)
{
    nodes_fini(n);
}
#define cleanup_nodes __attribute__((__cleanup__(cleanup_nodes_p)))

static void nodes_init(struct nodes *n, struct writer *w,
                       const struct strmap *avoid)
{
    memset(n, 0, sizeof *n);
    n->snapshot = writer_snapshot(w);
    n->n_all = n->snapshot->n_nodes;
    n->names = xcalloc(n->n_all + 1, sizeof *n->names);
    n->ok = xcalloc(n->n_all + 1, sizeof *n->ok);
    n->full = xcalloc(n->n_all + 1, sizeof *n->full);
    n->indexes = xcalloc(n->n_all + 1, sizeof *n->indexes);
    for (size_t i = 0; i < n->n_all; i++) {
        n->names[i] = snapshot_node(n->snapshot, i)->name;
        n->ok[i] = !avoid || !strmap_get(avoid, n->names[i]);
    }
}

static void nodes_judge(struct nodes *n, struct fit_nodes *fit,
                        const struct pod_needs *needs)
{
    cleanup_free enum fit_reason *reasons = xcalloc(n->n_all + 1,
                                                    sizeof *reasons);
    size_t fits = fit_nodes_judge_all(fit, needs, n->names, n->n_all, reasons);
    if (fits < n->n_all && !n->needs)
        n->needs = needs;
    for (size_t i = 0; i < n->n_all; i++)
        n->ok[i] = n->ok[i] && reasons[i] == FIT_OK;
}

static void nodes_count(struct nodes *n)
{
    struct candidates *former = n->candidates;
    n->n = 0;
    for (size_t i = 0; i < n->n_all; i++)
        if (n->ok[i] && !n->full[i])
            n->indexes[n->n++] = (int32_t)i;
    n->candidates = candidates_create(n->snapshot, n->indexes, n->n, former);
    candidates_unref(former);
}

/* It has no room for a pod with these needs beside others of the unit. */
static void nodes_fill(struct nodes *n, int32_t node,
                       const struct pod_needs *needs)
{
    n->full[node] = true;
    n->full_for = needs;
    if (!n->needs)
        n->needs = needs;
    nodes_count(n);
}

/* Who needs something else may have room where others had none. */
static void nodes_recount(struct nodes *n, const struct pod_needs *needs)
{
    if (!n->full_for || pod_needs_equal(n->full_for, needs))
        return;
    n->full_for = NULL;
    memset(n->full, 0, n->n_all * sizeof *n->full);
    nodes_count(n);
}

/* Of those that ask alike, the first. */
static bool is_first(const struct askings *a, size_t at)
{
    const struct asking *x = &a->list[at];
    for (size_t i = 0; i < at; i++)
        if (pod_needs_equal(a->list[i].pod->needs, x->pod->needs))
            return false;
    return true;
}

/* Passes over nodes of which a pod's claims allow nothing. */
static void nodes_allow(struct nodes *n, const struct gate_place_config *config,
                        const struct asking *asking)
{
    for (size_t i = 0; i < n->n_all; i++) {
        struct claim_allowed allowed;
        if (!n->ok[i])
            continue;
        n->ok[i] = claim_book_allows(config->claims, asking->needs,
                                     snapshot_node(n->snapshot, i), &allowed,
                                     &n->claims_why);
        n->cards[i] &= allowed.cards;
        n->gpus[i] &= allowed.gpus;
    }
}

/* Devices of the node, from the `first` of their kind on, that the mask does
 * not have. */
static void withhold(struct claim_use **use, const struct node *node,
                     enum device_kind kind, uint16_t mask)
{
    size_t first, count = topo_count(node->topo, kind, &first);
    for (size_t i = 0; i < count && i < 16; i++) {
        const struct device *d = topo_device(node->topo, first + i);
        if (mask >> i & 1 || (kind == DEVICE_CARD && !d->by_claims))
            continue;
        if (!*use)
            *use = claim_use_create("", "withheld", node->name);
        if (kind == DEVICE_CARD) {
            struct claim_card card = {.whole = true};
            (void)snprintf(card.id, sizeof card.id, "%s", d->id);
            claim_use_add_card(*use, &card);
        } else {
            claim_use_add_pci(*use, &(struct claim_pci){.pci = d->pci});
        }
    }
}

/* Of nodes of which they allow some. */
static void nodes_withhold(struct nodes *n)
{
    n->withheld = xcalloc(n->n_all + 1, sizeof *n->withheld);
    for (size_t i = 0; i < n->n_all; i++) {
        const struct node *node = snapshot_node(n->snapshot, i);
        struct claim_use *use = NULL;
        if (!n->ok[i] || !node->topo)
            continue;
        withhold(&use, node, DEVICE_CARD, n->cards[i]);
        withhold(&use, node, DEVICE_GPU, n->gpus[i]);
        if (use)
            n->withheld[n->n_withheld++] = use;
    }
}

static void nodes_claims(struct nodes *n,
                         const struct gate_place_config *config,
                         const struct askings *askings)
{
    bool any = false;
    for (size_t i = 0; i < askings->n && !any; i++)
        any = askings->list[i].needs;
    if (!any)
        return;
    n->cards = xcalloc(n->n_all + 1, sizeof *n->cards);
    n->gpus = xcalloc(n->n_all + 1, sizeof *n->gpus);
    memset(n->cards, 0xff, n->n_all * sizeof *n->cards);
    memset(n->gpus, 0xff, n->n_all * sizeof *n->gpus);
    for (size_t i = 0; i < askings->n; i++)
        if (askings->list[i].needs)
            nodes_allow(n, config, &askings->list[i]);
    nodes_withhold(n);
}

/* As the snapshot would be if what is withheld were given. */
static struct snapshot *nodes_see(const struct nodes *n, struct snapshot *s)
{
    if (n->n_withheld == 0)
        return snapshot_ref(s);
    cleanup_with(draft) struct draft *draft = draft_create(s);
    for (size_t i = 0; i < n->n_withheld; i++)
        draft_put_claim(draft, n->withheld[i]);
    return draft_peek(draft);
}

/* Those on which every pod of the unit may be. */
static void nodes_of_unit(struct nodes *n,
                          const struct gate_place_config *config,
                          const struct askings *askings)
{
    for (size_t i = 0; i < askings->n; i++)
        if (is_first(askings, i))
            nodes_judge(n, config->fit, askings->list[i].pod->needs);
    nodes_count(n);
    n->n_fit = n->n;
    nodes_claims(n, config, askings);
    nodes_count(n);
}

/* --- one pod -------------------------------------------------------------------- */

/* The node that is best for it among those, or NODE_NONE. */
static int32_t choose(const struct gate_place_config *config,
                      const struct snapshot *s, const struct demand *d,
                      const struct nodes *nodes)
{
    struct schedule schedule;
    schedule_init(&schedule, s, d);
    if (demand_is_planned(d) && schedule.quota.kind == QUOTA_OK &&
        !job_is_placed(&schedule, nodes->indexes, nodes->n)) {
        struct plan_refusal ignored;
        cleanup_with(plan) struct plan *plan = NULL;
        /* what is withheld is in no snapshot that is remembered */
        struct plans *memory = nodes->n_withheld ? NULL : config->plans;
        if (job_plan(memory, s, d, nodes->indexes, nodes->n, NODE_NONE, &plan,
                     &ignored) < 0)
            return NODE_NONE;
        return plan->places[job_rank(d)].node;
    }
    uint32_t best;
    size_t fitting;
    size_t n = schedule_best(&schedule, nodes->indexes, nodes->n, 1, &best,
                             &fitting);
    return n ? nodes->indexes[best] : NODE_NONE;
}

/* How kube-scheduler narrows it, then why none of the rest will do. */
static void explain(const struct gate_place_config *config,
                    const struct nodes *nodes, struct snapshot *s,
                    const struct demand *d, struct gate_no_place *ret)
{
    if (nodes->needs) {
        str_addf(&ret->text,
                 "of %zu nodes kube-scheduler would take %zu: ", nodes->n_all,
                 nodes->n);
        fit_nodes_explain(config->fit, nodes->needs, nodes->names, nodes->n_all,
                          &ret->text);
    }
    if (nodes->n < nodes->n_fit)
        str_addf(&ret->text, "%sof %zu nodes its claims allow %zu: %s",
                 ret->text.size ? "; " : "", nodes->n_fit, nodes->n,
                 nodes->claims_why.text);
    ret->demand = *d;
    ret->snapshot = snapshot_ref(s);
    ret->nodes = xmemdup(nodes->indexes, nodes->n * sizeof *nodes->indexes);
    ret->n_nodes = nodes->n;
    if (nodes->n == 0)
        return;
    const struct why_names names = {nodes->indexes, nodes->n};
    cleanup_why struct why why;
    why_init(&why, nodes->snapshot, d, config->plans, &names);
    str_add(&ret->text, ret->text.size ? "; of these: " : "");
    if (why.n_fitting > 0)
        str_add(&ret->text, "none has a card for it");
    else
        why_summary(&why, &ret->text);
    ret->no_room = true;
}

/* Charge a node with all pods of a pair, so that none of them finds it full;
 * false when one does, and then with none. */
static bool assume_pair(struct fit_nodes *fit, const struct askings *askings,
                        const struct demand *pair, const char *node)
{
    bool fits = true;
    for (size_t i = 0; i < askings->n && fits; i++) {
        const struct gate_pod *p = askings->list[i].pod;
        if (p->demand.pair != pair->pair)
            continue;
        fits = fit_nodes_judge(fit, p->needs, node, NULL) == FIT_OK;
        if (fits)
            fit_nodes_assume(fit, p->demand.uid, node, p->needs);
    }
    for (size_t i = 0; i < askings->n && !fits; i++)
        if (askings->list[i].demand.pair == pair->pair)
            fit_nodes_forget(fit, askings->list[i].demand.uid);
    return fits;
}

/* All pods of the unit, one after the other. */
struct attempt {
    const struct gate_place_config *config;
    struct nodes *nodes;
    const struct askings *askings;
    struct gate_placing *placing;   /* those that have a place */
    struct gate_no_place *no_place; /* why the next has none */
};

/* The same as choose(), with room for the whole pair, which is assumed there
 * from then on. */
static int32_t choose_with_room(struct attempt *t, const struct snapshot *s,
                                const struct asking *asking)
{
    const struct gate_placing *placing = t->placing;
    const struct gate_placed *former = placing->n
                                           ? &placing->pods[placing->n - 1]
                                           : NULL;
    const struct demand *d = &asking->demand;
    const struct pod_needs *needs = asking->pod->needs;
    bool begun = former && former->demand.pair == d->pair;
    if (!begun)
        nodes_recount(t->nodes, needs);
    for (;;) {
        int32_t node = choose(t->config, s, d, t->nodes);
        if (node == NODE_NONE ||
            (begun && strcmp(former->node, t->nodes->names[node]) == 0) ||
            assume_pair(t->config->fit, t->askings, d, t->nodes->names[node]))
            return node;
        nodes_fill(t->nodes, node, needs);
    }
}

/* 0; -EAGAIN: nodes have come or gone; -EBUSY. */
static int place(struct attempt *t, const struct asking *asking)
{
    const struct gate_place_config *config = t->config;
    const struct nodes *nodes = t->nodes;
    struct gate_placed *ret = &t->placing->pods[t->placing->n];
    const struct demand *d = &ret->demand;
    ret->demand = asking->demand;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(config->writer);
    pending_demands_put_planned(config->demands, d, nodes->snapshot,
                                nodes->indexes, nodes->n);
    /* names of nodes hold, indexes too as long as none came or went */
    if (s->roster != nodes->snapshot->roster)
        return -EAGAIN;
    cleanup_with(snapshot) struct snapshot *seen = nodes_see(nodes, s);
    int32_t node = choose_with_room(t, seen, asking);
    if (node == NODE_NONE) {
        explain(config, nodes, seen, d, t->no_place);
        return -EBUSY;
    }
    const char *name = nodes->names[node];
    struct writer_op op = {.kind = WRITER_BIND,
                           .node = name,
                           .demand = d,
                           .candidates = nodes->candidates,
                           .withheld = nodes->withheld,
                           .n_withheld = nodes->n_withheld,
                           .out = STR_INIT(STR_MAX_DEFAULT)};
    config->begin(config->ctx, d->uid);
    int r = writer_run(config->writer, &op);
    if (r < 0) {
        config->refuse(config->ctx, d, op.error.text);
        str_fini(&op.out);
        t->no_place->demand = *d;
        str_add(&t->no_place->text, op.error.text);
        return -EBUSY;
    }
    (void)snprintf(ret->node, sizeof ret->node, "%s", name);
    ret->allocation_size = op.out.size;
    ret->allocation = str_steal(&op.out);
    ret->number = op.resource_version;
    ret->created = op.created;
    ret->pod = gate_pod_ref(asking->pod);
    ret->needs = asking->needs ? claim_needs_ref(asking->needs) : NULL;
    t->placing->n++;
    return 0;
}

/* --- the unit ------------------------------------------------------------------- */

/* What it had before is true, or given back by whoever decided it. */
static void give_back(const struct gate_place_config *config,
                      const struct gate_placed *p)
{
    const struct demand *d = &p->demand;
    struct writer_op op = {.kind = WRITER_FREE,
                           .namespace = d->namespace,
                           .pod = d->name,
                           .uid = d->uid,
                           .number = p->number};
    if (p->created)
        (void)writer_run(config->writer, &op); /* there, or gone already */
    fit_nodes_forget(config->fit, d->uid);
}

void gate_unplace(const struct gate_place_config *config,
                  const struct gate_placing *placing, const char *why)
{
    for (size_t i = placing->n; i-- > 0;) {
        give_back(config, &placing->pods[i]);
        config->refuse(config->ctx, &placing->pods[i].demand, why);
    }
}

/* After nodes have come or gone. */
static void nodes_again(struct nodes *n, const struct gate_place_config *config,
                        const struct askings *askings,
                        const struct strmap *avoid)
{
    nodes_fini(n);
    nodes_init(n, config->writer, avoid);
    nodes_of_unit(n, config, askings);
}

static int place_all(struct attempt *t)
{
    const struct askings *askings = t->askings;
    int r = 0;
    *t->placing = (struct gate_placing){
        .pods = xcalloc(askings->n + 1, sizeof *t->placing->pods)};
    for (size_t i = 0; i < askings->n && r == 0; i++)
        r = place(t, &askings->list[i]);
    for (size_t i = 0; i < askings->n && r < 0; i++)
        fit_nodes_forget(t->config->fit, askings->list[i].demand.uid);
    return r;
}

int gate_place(const struct gate_place_config *config,
               const struct gate_unit *unit, const struct strmap *avoid,
               struct gate_placing *ret_placing,
               struct gate_no_place *ret_no_place)
{
    cleanup_nodes struct nodes nodes;
    cleanup_askings struct askings askings = {0};
    memset(ret_no_place, 0, sizeof *ret_no_place);
    str_init(&ret_no_place->text, TEXT_MAX);
    for (size_t i = 0; i < unit->n; i++)
        ret_no_place->never_preempts |= unit->pods[i]->never_preempts;
    nodes_init(&nodes, config->writer, avoid);
    int read = askings_read(config, nodes.snapshot, unit, &askings,
                            ret_no_place);
    if (read < 0)
        return read;
    nodes_of_unit(&nodes, config, &askings);
    struct attempt attempt = {config, &nodes, &askings, ret_placing,
                              ret_no_place};
    for (unsigned i = 0;; i++) {
        int r = place_all(&attempt);
        if (r == 0)
            return 0;
        gate_unplace(config, ret_placing,
                     "another pod of its job has no place");
        gate_placing_fini(ret_placing);
        if (r != -EAGAIN)
            return r;
        if (i >= RETRIES_MAX) {
            str_add(&ret_no_place->text,
                    "its nodes change too fast: it is tried again");
            return -EBUSY;
        }
        nodes_again(&nodes, config, &askings, avoid);
    }
}
