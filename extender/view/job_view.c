#include "extender/view/job_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/achieved/achieved.h"
#include "extender/judge/alignment.h"
#include "extender/view/views.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- pairs -------------------------------------------------------------- */

/* A job's members, and the nodes of some of them, one after the other: all of
 * that lies anywhere in memory, so it is fetched for many at a time. */
struct stretch {
    const struct allocation *const *members;
    size_t n, from, to;
    int32_t nodes[64]; /* of [from, to): indexes, or NODE_NONE */
};

static void fetch_members(const struct stretch *x)
{
    for (size_t i = x->from; i < x->to; i++) {
        const struct allocation *a = x->members[i];
        __builtin_prefetch(&a->demand.pair);
        __builtin_prefetch(&a->demand.cards);
        __builtin_prefetch(&a->demand.n_shapes);
        __builtin_prefetch(&a->demand.role);
        __builtin_prefetch(&a->held);
        __builtin_prefetch(&a->node);
    }
    for (size_t i = x->from; i < x->to; i++) {
        const struct allocation *a = x->members[i];
        __builtin_prefetch(a->node);
        __builtin_prefetch(a->cards);
        __builtin_prefetch(a->gpus);
    }
}

static void fetch_nodes(const struct stretch *x, const struct snapshot *s)
{
    for (size_t i = 0; i < x->to - x->from; i++)
        if (x->nodes[i] != NODE_NONE)
            __builtin_prefetch(&snapshot_node(s, (size_t)x->nodes[i])->topo);
    for (size_t i = 0; i < x->to - x->from; i++)
        if (x->nodes[i] != NODE_NONE)
            __builtin_prefetch(snapshot_node(s, (size_t)x->nodes[i])->topo);
}

static void stretch_move(struct stretch *x, const struct snapshot *s,
                         size_t from)
{
    struct jtext names[ARRAY_LEN(x->nodes)];
    size_t rest = x->n - from;
    x->from = from;
    x->to = from + (rest < ARRAY_LEN(names) ? rest : ARRAY_LEN(names));
    fetch_members(x);
    for (size_t i = from; i < x->to; i++) {
        const char *node = x->members[i]->node;
        names[i - from] = (struct jtext){node, strlen(node), false};
    }
    snapshot_find_many(s, names, x->to - from, x->nodes);
    fetch_nodes(x, s);
}

static int32_t node_of(const struct stretch *x, const struct snapshot *s,
                       size_t member)
{
    const char *node = x->members[member]->node;
    return member < x->to ? x->nodes[member - x->from]
                          : snapshot_find(s, node, strlen(node));
}

/* The better witness of a pair's place: host pod, held place, xPU pod. */
static int weight(const struct allocation *a)
{
    if (a->held)
        return 1;
    return a->demand.role == ROLE_HOST ? 2 : 0;
}

/* Of `n` members from that one on. */
static void pair_read(struct job_view *v, const struct stretch *x, size_t from,
                      size_t n)
{
    const struct allocation *const *m = x->members + from;
    size_t of = 0; /* whose place is the pair's */
    struct job_pair *p = &v->pairs[v->n_pairs++];
    *p = (struct job_pair){
        .rank = m[0]->demand.pair, .all = m, .n_all = n, .leaf = FABRIC_NONE};
    for (size_t i = 0; i < n; i++) {
        if (weight(m[i]) > weight(m[of]))
            of = i;
        p->bound |= !m[i]->held;
        p->n_members += !m[i]->held;
        if (m[i]->demand.size > 0 && (uint32_t)m[i]->demand.size > v->size)
            v->size = (uint32_t)m[i]->demand.size;
    }
    if ((uint32_t)p->rank + 1 > v->size)
        v->size = (uint32_t)p->rank + 1;
    p->place = m[of];
    int32_t i = node_of(x, v->snapshot, from + of);
    if (i != NODE_NONE) {
        p->node = snapshot_node(v->snapshot, (size_t)i);
        p->leaf = snapshot_leaf(v->snapshot, (size_t)i);
    }
    int relation = alignment_relation(v->snapshot, p->place);
    v->relation = relation > v->relation ? relation : v->relation;
    p->aligned = alignment_is_good(p->node, p->place, p->rank);
    v->bound += p->bound;
    v->held += !p->bound;
    v->unaligned += !p->aligned;
}

/* --- the places together ------------------------------------------------ */

/* A leaf, or a node of unknown place, which is one by itself. */
static int leaf_compare(const struct job_pair *a, const struct job_pair *b)
{
    if (a->leaf != b->leaf)
        return a->leaf < b->leaf ? -1 : 1;
    return a->leaf == FABRIC_NONE ? strcmp(a->place->node, b->place->node) : 0;
}

static int leaf_order(const void *pa, const void *pb)
{
    return leaf_compare(*(const struct job_pair *const *)pa,
                        *(const struct job_pair *const *)pb);
}

static int node_order(const void *pa, const void *pb)
{
    const struct job_pair *a = *(const struct job_pair *const *)pa;
    const struct job_pair *b = *(const struct job_pair *const *)pb;
    if (a->node || b->node) /* any order will do */
        return (a->node > b->node) - (a->node < b->node);
    return strcmp(a->place->node, b->place->node);
}

static size_t count_distinct(const struct job_pair **pairs, size_t n,
                             int (*order)(const void *, const void *))
{
    size_t distinct = n > 0;
    if (n)
        qsort(pairs, n, sizeof *pairs, order);
    for (size_t i = 1; i < n; i++)
        distinct += order(&pairs[i - 1], &pairs[i]) != 0;
    return distinct;
}

static void score(struct job_view *v)
{
    cleanup_free const struct job_pair **order = xcalloc(v->n_pairs + 1,
                                                         sizeof *order);
    for (size_t i = 0; i < v->n_pairs; i++)
        order[i] = &v->pairs[i];
    for (size_t i = 1; i < v->n_pairs; i++) {
        const struct job_pair *a = &v->pairs[i - 1], *b = &v->pairs[i];
        v->crossings += b->rank == a->rank + 1 && leaf_compare(a, b) != 0;
    }
    v->n_nodes = count_distinct(order, v->n_pairs, node_order);
    v->leaves = (uint32_t)count_distinct(order, v->n_pairs, leaf_order);
    for (size_t i = 1; i < v->n_pairs && v->n_nodes > 1; i++) {
        unsigned tier = fabric_common_tier(v->snapshot->fabric,
                                           v->pairs[0].leaf, v->pairs[i].leaf);
        v->tier = tier > v->tier ? tier : v->tier;
    }
}

/* As its pods make it, and by its places. */
static enum job_state state_of(const struct job_view *v)
{
    enum job_state state = v->told ? v->told->state : JOB_PENDING;
    bool placed = v->size > 0 && v->bound + v->held == v->size;
    return state == JOB_PENDING && placed ? JOB_PLANNED : state;
}

void job_view_init(struct job_view *v, const struct snapshot *snapshot,
                   struct achieved_book *achieved,
                   const struct job_parts *parts)
{
    const struct allocation *const *members = parts->members;
    const struct job_told *told = parts->told;
    size_t n = parts->n;
    *v = (struct job_view){
        .snapshot = snapshot,
        .achieved = achieved,
        .told = told,
        .namespace = told ? told->namespace : members[0]->demand.namespace,
        .job = told ? told->name : members[0]->demand.job,
        .size = told ? told->size : 0,
        .relation = -1,
        .pairs = xcalloc(n + 1, sizeof *v->pairs),
    };
    struct stretch x = {.members = members, .n = n};
    for (size_t i = 0, end; i < n; i = end) {
        if (i >= x.to)
            stretch_move(&x, snapshot, i);
        for (end = i + 1; end < n; end++)
            if (members[end]->demand.pair != members[i]->demand.pair)
                break;
        pair_read(v, &x, i, end - i);
    }
    score(v);
    v->state = state_of(v);
}

void job_view_fini(struct job_view *v)
{
    free(v->pairs);
}

bool job_view_is_whole(const struct job_view *v)
{
    return v->bound == v->size;
}

bool job_view_is_over(const struct job_view *v)
{
    return v->state == JOB_SUCCEEDED || v->state == JOB_FAILED;
}

const char *job_view_reason(const struct job_view *v)
{
    bool placed = v->state == JOB_PLANNED; /* it waits for no place */
    return !v->told || (placed && v->told->asks) ? "" : v->told->reason;
}

/* --- ranges of ranks ---------------------------------------------------- */

void job_ranges_add(struct job_ranges *r, int64_t first, int64_t last)
{
    if (first > last || r->n > JOB_RANGES_MAX)
        return;
    if (r->n++ == JOB_RANGES_MAX) {
        str_add(r->out, ",…");
        return;
    }
    str_addf(r->out, "%s%" PRId64, r->n > 1 ? "," : "", first);
    if (last > first)
        str_addf(r->out, "-%" PRId64, last);
}

void job_view_add_missing(const struct job_view *v, struct str *out)
{
    struct job_ranges r = {.out = out};
    int64_t next = 0;
    for (size_t i = 0; i < v->n_pairs; i++) {
        job_ranges_add(&r, next, v->pairs[i].rank - 1);
        next = v->pairs[i].rank + 1;
    }
    job_ranges_add(&r, next, (int64_t)v->size - 1);
}

void job_view_add_held(const struct job_view *v, struct str *out)
{
    struct job_ranges r = {.out = out};
    for (size_t i = 0, end; i < v->n_pairs; i = end) {
        for (end = i + 1; end < v->n_pairs; end++)
            if (v->pairs[end].bound != v->pairs[i].bound ||
                v->pairs[end].rank != v->pairs[end - 1].rank + 1)
                break;
        if (!v->pairs[i].bound)
            job_ranges_add(&r, v->pairs[i].rank, v->pairs[end - 1].rank);
    }
}

/* --- JSON --------------------------------------------------------------- */

static const char *tier_word(const struct job_view *v)
{
    return v->tier == FABRIC_APART ? NULL : fabric_tier_name(v->tier);
}

static const char *relation_of(const struct job_view *v)
{
    return v->relation < 0 ? NULL : relation_name((enum relation)v->relation);
}

static uint32_t count_missing(const struct job_view *v)
{
    return job_view_is_over(v) ? 0 : v->size - v->bound - v->held;
}

static void write_time(const char *key, int64_t s, struct str *out)
{
    char text[CLOCK_UTC_MAX];
    if (s <= 0)
        return;
    clock_format_utc(s, text);
    jwrite_text(out, key, text);
}

static void write_told(const struct job_view *v, struct str *out)
{
    const struct job_told *t = v->told;
    jwrite_text(out, "state", job_state_name(v->state));
    jwrite_text(out, "reason", job_view_reason(v));
    jwrite_uint(out, "placed", v->bound + v->held);
    jwrite_uint(out, "running", t ? t->running : 0);
    jwrite_uint(out, "ready", t ? t->ready : 0);
    jwrite_text_or_null(out, "relation", relation_of(v));
    jwrite_uint(out, "leaves", v->leaves);
    if (!t)
        return;
    if (t->gone)
        jwrite_bool(out, "deleted", true);
    write_time("submitted", t->submitted_s, out);
    write_time("started", t->started_s, out);
    write_time("ended", t->ended_s, out);
}

/* Without the end of the object. */
static void write_head(const struct job_view *v, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", v->namespace);
    jwrite_text(out, "name", v->job);
    jwrite_uint(out, "size", v->size);
    jwrite_object(out, "pairs");
    jwrite_uint(out, "bound", v->bound);
    jwrite_uint(out, "held", v->held);
    jwrite_uint(out, "missing", count_missing(v));
    jwrite_end_object(out);
    jwrite_uint(out, "nodes", v->n_nodes);
    jwrite_object(out, "score");
    jwrite_uint(out, "unaligned", v->unaligned);
    jwrite_text_or_null(out, "tier", tier_word(v));
    jwrite_uint(out, "leaves", v->leaves);
    jwrite_uint(out, "crossings", v->crossings);
    jwrite_end_object(out);
    write_told(v, out);
}

void job_view_write(const struct job_view *v, struct str *out)
{
    write_head(v, out);
    str_add_c(out, '}');
}

static const char *leaf_name(const struct job_view *v, const struct job_pair *p)
{
    return p->leaf == FABRIC_NONE
               ? NULL
               : fabric_domain(v->snapshot->fabric, p->leaf)->name;
}

static void write_achieved(const struct job_view *v, const struct allocation *a,
                           struct str *out)
{
    cleanup_with(achieved_report) struct achieved_report *report = NULL;
    if (!v->achieved)
        return;
    report = achieved_book_get(v->achieved, a->node);
    achieved_write(v->snapshot, a, report, out);
}

static void write_pair(const struct job_view *v, const struct job_pair *p,
                       struct str *out)
{
    const struct allocation *a = p->place;
    jwrite_object(out, NULL);
    jwrite_int(out, "rank", p->rank);
    jwrite_text(out, "state", p->bound ? "bound" : "held");
    jwrite_text(out, "node", a->node);
    jwrite_text_or_null(out, "leaf", leaf_name(v, p));
    allocation_encode_devices(a, out);
    jwrite_int_or_null(out, "numa", a->numa);
    jwrite_text(out, "relation", relation_name(a->relation));
    alignment_write(v->snapshot, a, out);
    write_achieved(v, a, out);
    jwrite_bool(out, "aligned", p->aligned);
    jwrite_array(out, "members");
    for (size_t i = 0; i < p->n_all; i++) {
        if (p->all[i]->held)
            continue;
        jwrite_object(out, NULL);
        jwrite_text(out, "name", p->all[i]->demand.name);
        jwrite_text(out, "role", pod_role_name(p->all[i]->demand.role));
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
}

void job_view_write_whole(const struct job_view *v, struct str *out)
{
    cleanup_str struct str missing = STR_INIT(4096), held = STR_INIT(4096);
    if (!job_view_is_over(v))
        job_view_add_missing(v, &missing);
    job_view_add_held(v, &held);
    write_head(v, out);
    jwrite_text(out, "missing", str_text(&missing));
    jwrite_text(out, "held", str_text(&held));
    jwrite_array(out, "pairList");
    for (size_t i = 0; i < v->n_pairs; i++) {
        str_add(out, i ? ",\n" : "");
        write_pair(v, &v->pairs[i], out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
}

/* --- tables ------------------------------------------------------------- */

const char *const job_view_heads[] = {
    "JOB",     "STATE",     "SIZE",   "BOUND",  "HELD",      "MISSING",
    "RUNNING", "RELATION",  "NODES",  "LEAVES", "CROSSINGS", "UNALIGNED",
    "TIER",    "SUBMITTED", "REASON", NULL};
const char *const job_pair_heads[] = {"RANK",     "STATE",    "NODE", "LEAF",
                                      "CARDS",    "GPUS",     "NICS", "NUMA",
                                      "RELATION", "ACHIEVED", "PODS", NULL};

static void add_submitted(const struct job_view *v, struct table *t)
{
    char text[CLOCK_UTC_MAX] = "-";
    if (v->told && v->told->submitted_s)
        clock_format_utc(v->told->submitted_s, text);
    table_add(t, text);
}

void job_view_row(const struct job_view *v, struct table *t)
{
    const char *tier = tier_word(v);
    const char *relation = relation_of(v), *reason = job_view_reason(v);
    table_addf(t, "%s/%s", v->namespace, v->job);
    table_add(t, job_state_name(v->state));
    table_addf(t, "%" PRIu32, v->size);
    table_addf(t, "%" PRIu32, v->bound);
    table_addf(t, "%" PRIu32, v->held);
    table_addf(t, "%" PRIu32, count_missing(v));
    table_addf(t, "%" PRIu32, v->told ? v->told->running : 0);
    table_add(t, relation ? relation : "-");
    table_addf(t, "%zu", v->n_nodes);
    table_addf(t, "%" PRIu32, v->leaves);
    table_addf(t, "%" PRIu32, v->crossings);
    table_addf(t, "%" PRIu32, v->unaligned);
    table_add(t, tier ? tier : "-");
    add_submitted(v, t);
    table_add(t, *reason ? reason : "-");
}

void job_pair_rows(const struct job_view *v, struct table *t)
{
    for (size_t i = 0; i < v->n_pairs; i++) {
        const struct job_pair *p = &v->pairs[i];
        const char *leaf = leaf_name(v, p);
        table_addf(t, "%" PRId32, p->rank);
        table_add(t, p->bound ? "bound" : "held");
        table_add(t, p->place->node);
        table_add(t, leaf ? leaf : "-");
        view_ids(p->place->cards, p->place->n_cards, t);
        view_ids(p->place->gpus, p->place->n_gpus, t);
        view_ids(p->place->nics, p->place->n_nics, t);
        table_add_known(t, p->place->numa);
        table_add(t, alignment_word(v->snapshot, p->place));
        view_achieved_cell(v->snapshot, v->achieved, p->place, t);
        table_addf(t, "%zu", p->n_members);
    }
}

/* --- maps --------------------------------------------------------------- */

int job_view_map(const struct job_view *v, enum map_format format,
                 struct str *out, struct error *err)
{
    cleanup_free struct map_rank *ranks = xcalloc(v->n_pairs + 1,
                                                  sizeof *ranks);
    for (size_t i = 0; i < v->n_pairs; i++)
        ranks[i] = (struct map_rank){
            .rank = v->pairs[i].rank,
            .place = v->pairs[i].place,
            .topo = v->pairs[i].node ? v->pairs[i].node->topo : NULL,
        };
    return map_write(format, ranks, v->n_pairs, out, err);
}
