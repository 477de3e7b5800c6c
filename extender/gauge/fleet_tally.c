#include "extender/gauge/fleet_tally.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/alignment.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"

struct fleet_tally {
    pthread_mutex_t lock;
    struct snapshot *of; /* NULL: nothing is counted */
    struct achieved_book *book;
    struct strmap reports; /* that were counted, by node */
    uint64_t version;      /* of the book */
    struct fleet_counts counts;
    struct strmap lost; /* nodes that are not aligned by what their pods have
                         * lost alone; of the snapshot */
    int64_t kept_ms;
};

/* --- one node --------------------------------------------------------------- */

/* A node as it is in a snapshot, to be counted or taken off again. */
struct part {
    const struct snapshot *snapshot;
    size_t index;
    const struct achieved_report *report; /* NULL: none */
    size_t by;                            /* 1; or SIZE_MAX, which takes off */
};

static void count_cards(struct fleet_counts *c, const struct part *part)
{
    const struct node *node = snapshot_node(part->snapshot, part->index);
    int32_t at = snapshot_leaf(part->snapshot, part->index);
    struct fleet_leaf *leaf = &c->leaves[at >= 0 ? (size_t)at : c->n_leaves];
    bool ill = node->status != NODE_READY;
    struct fleet_leaf here = {0};
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    here.cards = (int64_t)n;
    for (size_t k = 0; k < n; k++) {
        enum card_state state = card_state(node, k);
        c->cards[state] += part->by;
        here.idle += state == CARD_IDLE;
        ill |= state == CARD_UNHEALTHY;
        if (state == CARD_IDLE || state == CARD_USED)
            here.cores += node->state.free_cores[k];
    }
    c->ill += ill ? part->by : 0;
    int64_t sign = part->by == 1 ? 1 : -1;
    leaf->nodes += sign;
    leaf->ill += ill ? sign : 0;
    leaf->cards += sign * here.cards;
    leaf->idle += sign * here.idle;
    leaf->cores += sign * here.cores;
}

static void count_gpus(struct fleet_counts *c, const struct part *part)
{
    const struct node *node = snapshot_node(part->snapshot, part->index);
    size_t first, n = view_count(node, DEVICE_GPU, &first);
    c->gpus += part->by * n;
    for (size_t i = 0; i < n; i++)
        if (!(node->state.gpus_used >> i & 1))
            c->free_gpus += part->by;
}

/* Is the node not aligned by what is lost alone? */
static bool count_pods(struct fleet_counts *c, const struct part *part)
{
    const struct node *node = snapshot_node(part->snapshot, part->index);
    bool unaligned = false, lost = false;
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        struct achieved x;
        bool counts = achieved_counts(a);
        unaligned = unaligned ||
                    (counts && !alignment_is_good(node, a, a->demand.pair));
        if (a->held)
            continue;
        if (a->n_cards)
            c->relations[a->relation] += part->by;
        achieved_judge(part->snapshot, a, part->report, &x, NULL);
        c->achieved[x.state] += part->by;
        lost |= part->report && x.state == ACHIEVED_LOST;
        if (counts)
            c->alignment[a->relation][x.relation] += part->by;
    }
    c->unaligned += unaligned || lost ? part->by : 0;
    return lost && !unaligned;
}

static bool count_node(struct fleet_counts *c, const struct part *part)
{
    const struct node *node = snapshot_node(part->snapshot, part->index);
    c->nodes[node->status] += part->by;
    c->claims += part->by * node->n_rests;
    count_cards(c, part);
    count_gpus(c, part);
    return count_pods(c, part);
}

/* --- from one snapshot to the next ------------------------------------------- */

struct step {
    struct fleet_tally *t;
    struct snapshot *next;
};

static void count_in(struct fleet_tally *t, const struct snapshot *s,
                     int32_t index, size_t by)
{
    if (index == NODE_NONE)
        return;
    const struct node *node = snapshot_node(s, (size_t)index);
    const struct part part = {
        .snapshot = s,
        .index = (size_t)index,
        .report = node->n_allocations ? strmap_get(&t->reports, node->name)
                                      : NULL,
        .by = by};
    bool lost = count_node(&t->counts, &part);
    if (by != 1)
        (void)strmap_remove(&t->lost, node->name);
    else if (lost)
        (void)strmap_put(&t->lost, node->name, (void *)node);
}

/* All that is counted of a node is by what is on it: also what a pod has got,
 * as others of its pair count where they are on the same node. */
static void recount(void *ctx, int32_t before, int32_t after)
{
    struct step *step = ctx;
    count_in(step->t, step->t->of, before, SIZE_MAX);
    count_in(step->t, step->next, after, 1);
}

/* --- reports ------------------------------------------------------------------ */

static void report_free(void *report)
{
    achieved_report_unref(report);
}

static void count_anew(struct fleet_tally *t)
{
    struct fleet_counts *c = &t->counts;
    size_t n = t->of->fabric ? fabric_n_domains(t->of->fabric) : 0;
    free(c->leaves);
    strmap_fini(&t->lost);
    t->lost = (struct strmap){NULL, 0, 0};
    *c = (struct fleet_counts){.leaves = xcalloc(n + 1, sizeof *c->leaves),
                               .n_leaves = n};
    for (size_t i = 0; i < t->of->n_nodes; i++)
        count_in(t, t->of, (int32_t)i, 1);
}

/* Takes the reference over; the node is counted anew. */
static void take_report(struct fleet_tally *t, struct achieved_report *r)
{
    int32_t at = snapshot_find(t->of, r->node, strlen(r->node));
    count_in(t, t->of, at, SIZE_MAX);
    struct achieved_report *old = strmap_remove(&t->reports, r->node);
    (void)strmap_put(&t->reports, r->node, r);
    achieved_report_unref(old);
    count_in(t, t->of, at, 1);
}

static void follow_reports(struct fleet_tally *t)
{
    size_t n;
    bool all;
    cleanup_free struct achieved_report **list =
        achieved_book_since(t->book, &t->version, &all, &n);
    if (!all) {
        for (size_t i = 0; i < n; i++)
            take_report(t, list[i]);
        return;
    }
    strmap_fini_with(&t->reports, report_free);
    t->reports = (struct strmap){NULL, 0, 0};
    for (size_t i = 0; i < n; i++)
        (void)strmap_put(&t->reports, list[i]->node, list[i]);
    count_anew(t);
}

/* --- all of it ------------------------------------------------------------------ */

static void forget_locked(struct fleet_tally *t)
{
    strmap_fini(&t->lost);
    snapshot_unref(t->of);
    strmap_fini_with(&t->reports, report_free);
    free(t->counts.leaves);
    t->of = NULL;
    t->lost = t->reports = (struct strmap){NULL, 0, 0};
    t->version = 0;
    t->counts = (struct fleet_counts){.leaves = NULL};
}

static void follow(struct fleet_tally *t, struct snapshot *s)
{
    struct step step = {.t = t, .next = s};
    snapshot_diff_nodes(t->of, s, recount, &step);
    snapshot_unref(t->of);
    t->of = snapshot_ref(s);
}

static void bring_up_locked(struct fleet_tally *t, struct snapshot *s,
                            struct achieved_book *book)
{
    if (t->of && (t->of->fabric != s->fabric || t->book != book))
        forget_locked(t);
    t->book = book;
    if (t->of)
        follow(t, s);
    else
        t->of = snapshot_ref(s);
    follow_reports(t);
    t->kept_ms = clock_ms();
}

/* Has a pod on it lost what it was promised, as far as is seen? */
static bool is_lost(const struct fleet_tally *t, const struct snapshot *seen,
                    const struct node *node)
{
    const struct achieved_report *report = strmap_get(&t->reports, node->name);
    int32_t at = snapshot_find(seen, node->name, strlen(node->name));
    if (at == NODE_NONE)
        return false;
    node = snapshot_node(seen, (size_t)at);
    for (size_t i = 0; i < node->n_allocations; i++) {
        struct achieved x;
        if (node->allocations[i]->held)
            continue;
        achieved_judge(seen, node->allocations[i], report, &x, NULL);
        if (x.state == ACHIEVED_LOST)
            return true;
    }
    return false;
}

static size_t count_unseen(const struct fleet_tally *t,
                           const struct snapshot *seen)
{
    size_t n = 0, at = 0;
    for (const struct node *node; (node = strmap_next(&t->lost, &at));)
        n += !is_lost(t, seen, node);
    return n;
}

static void get(struct fleet_tally *t, struct snapshot *s,
                struct achieved_book *book, struct fleet_counts *ret)
{
    hold_lock(&t->lock);
    bring_up_locked(t, s->whole ? s->whole : s, book);
    *ret = t->counts;
    if (s->whole)
        ret->unaligned -= count_unseen(t, s);
    ret->leaves = xmalloc((t->counts.n_leaves + 1) * sizeof *ret->leaves);
    memcpy(ret->leaves, t->counts.leaves,
           (t->counts.n_leaves + 1) * sizeof *ret->leaves);
}

void fleet_tally_get(struct fleet_tally *t, struct snapshot *s,
                     struct achieved_book *book, struct fleet_counts *ret)
{
    struct fleet_tally *once = t ? NULL : fleet_tally_create();
    get(t ? t : once, s, book, ret);
    fleet_tally_destroy(once);
}

void fleet_counts_fini(struct fleet_counts *c)
{
    free(c->leaves);
}

void fleet_tally_keep(struct fleet_tally *t, struct snapshot *s,
                      struct achieved_book *book)
{
    hold_lock(&t->lock);
    if (!t->of || clock_ms() - t->kept_ms >= FLEET_TALLY_KEEP_MS)
        bring_up_locked(t, s, book);
}

struct fleet_tally *fleet_tally_create(void)
{
    struct fleet_tally *t = xcalloc(1, sizeof *t);
    (void)pthread_mutex_init(&t->lock, NULL); /* cannot fail on Linux */
    return t;
}

void fleet_tally_destroy(struct fleet_tally *t)
{
    if (!t)
        return;
    forget_locked(t);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}
