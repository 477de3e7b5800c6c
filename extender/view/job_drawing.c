#include "extender/view/job_drawing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/view/pair_mark.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum {
    COLUMNS = 4, /* of nodes, at most */
    TITLE = 24,  /* of a node; leaves have two lines */
    NODE = 290,  /* width */
    INNER = PAIR_MARK_LINE_WIDTH,
    CELL_STEP = 22,
    CELLS = INNER / PAIR_MARK_CELL_STEP, /* in a row */
    TEXT_MAX = 4096,
};

/* How much is drawn of a pair. */
enum detail { DETAIL_LINE, DETAIL_CELL, DETAIL_NONE };

/* Pairs of one node, or nodes of one leaf. */
struct part {
    size_t begin, end; /* of the list below */
    int32_t rank;      /* the lowest in it */
};

struct sheet {
    const struct job_view *view;
    const struct job_pair **pairs; /* by leaf, node and rank */
    struct part *nodes;            /* of pairs */
    struct part *leaves;           /* of nodes */
    size_t n_nodes, n_leaves;
    enum detail detail;
    int columns; /* of nodes in a leaf; as many leaves beside each other as
                  * have room */
    struct str body;
};

/* --- the order ------------------------------------------------------------ */

static int pair_order(const void *pa, const void *pb)
{
    const struct job_pair *a = *(const struct job_pair *const *)pa;
    const struct job_pair *b = *(const struct job_pair *const *)pb;
    if (a->leaf != b->leaf)
        return a->leaf < b->leaf ? -1 : 1;
    int order = text_order(a->place->node, b->place->node);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static bool same_node(const struct job_pair *a, const struct job_pair *b)
{
    return a->leaf == b->leaf && strcmp(a->place->node, b->place->node) == 0;
}

static const struct job_pair *node_first(const struct sheet *s, size_t node)
{
    return s->pairs[s->nodes[node].begin];
}

static int part_order(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Nodes within their leaf, and leaves, by the first rank that they have. */
static void sort_by_rank(struct sheet *s)
{
    for (size_t i = 0; i < s->n_leaves; i++) {
        struct part *leaf = &s->leaves[i];
        qsort(s->nodes + leaf->begin, leaf->end - leaf->begin, sizeof *s->nodes,
              part_order);
        leaf->rank = s->nodes[leaf->begin].rank;
    }
    if (s->n_leaves)
        qsort(s->leaves, s->n_leaves, sizeof *s->leaves, part_order);
}

static void sort(struct sheet *s)
{
    const struct job_view *v = s->view;
    for (size_t i = 0; i < v->n_pairs; i++)
        s->pairs[i] = &v->pairs[i];
    if (v->n_pairs)
        qsort(s->pairs, v->n_pairs, sizeof *s->pairs, pair_order);
    for (size_t i = 0; i < v->n_pairs; i++) {
        if (i == 0 || !same_node(s->pairs[i - 1], s->pairs[i]))
            s->nodes[s->n_nodes++].begin = i;
        struct part *node = &s->nodes[s->n_nodes - 1];
        node->end = i + 1;
        node->rank = s->pairs[node->begin]->rank; /* they are in order */
    }
    for (size_t i = 0; i < s->n_nodes; i++) {
        if (i == 0 || node_first(s, i - 1)->leaf != node_first(s, i)->leaf)
            s->leaves[s->n_leaves++].begin = i;
        s->leaves[s->n_leaves - 1].end = i + 1;
    }
    sort_by_rank(s);
}

/* --- one node ------------------------------------------------------------- */

static int node_height(const struct sheet *s, const struct part *node)
{
    int n = (int)(node->end - node->begin);
    int rows = s->detail == DETAIL_LINE ? n * DRAWING_LINE
                                        : (n + CELLS - 1) / CELLS * CELL_STEP;
    return TITLE + rows + DRAWING_PAD;
}

static void write_node(struct sheet *s, const struct part *node, int x, int y)
{
    const char *name = s->pairs[node->begin]->place->node;
    const struct box frame = {x, y, NODE, node_height(s, node)};
    drawing_group(&s->body, "node", name);
    text_escape(name, &s->body);
    drawing_told(&s->body);
    drawing_rect(&s->body, "s", &frame, 6);
    drawing_text(&s->body, "b", x + DRAWING_PAD, y + 17, name,
                 drawing_letters(INNER));
    x += DRAWING_PAD;
    y += TITLE;
    for (size_t i = node->begin; i < node->end; i++) {
        int at = (int)(i - node->begin);
        if (s->detail == DETAIL_LINE)
            pair_mark_line(s->view, s->pairs[i], x,
                           y + (at + 1) * DRAWING_LINE - 4, &s->body);
        else
            pair_mark_cell(s->view, s->pairs[i],
                           x + at % CELLS * PAIR_MARK_CELL_STEP,
                           y + at / CELLS * CELL_STEP, &s->body);
    }
    drawing_group_end(&s->body);
}

/* --- one leaf ------------------------------------------------------------- */

static int rank_order(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void add_ranks(const struct sheet *s, size_t begin, size_t end,
                      struct str *out)
{
    cleanup_free int32_t *ranks = xcalloc(end - begin + 1, sizeof *ranks);
    struct job_ranges r = {.out = out};
    size_t n = 0;
    for (size_t i = begin; i < end; i++)
        ranks[n++] = s->pairs[i]->rank;
    qsort(ranks, n, sizeof *ranks, rank_order);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && ranks[k] == ranks[k - 1] + 1; k++)
            ;
        job_ranges_add(&r, ranks[i], ranks[k - 1]);
    }
}

static const char *leaf_name(const struct sheet *s, int32_t leaf)
{
    return leaf == FABRIC_NONE
               ? "leaf unknown"
               : fabric_domain(s->view->snapshot->fabric, leaf)->name;
}

static int leaf_width(const struct sheet *s)
{
    return s->columns * (NODE + DRAWING_GAP) - DRAWING_GAP + 2 * DRAWING_PAD;
}

static void add_leaf_text(const struct sheet *s, const struct part *leaf,
                          struct str *out)
{
    size_t begin = SIZE_MAX, end = 0, unaligned = 0; /* they are adjacent */
    for (size_t i = leaf->begin; i < leaf->end; i++) {
        begin = s->nodes[i].begin < begin ? s->nodes[i].begin : begin;
        end = s->nodes[i].end > end ? s->nodes[i].end : end;
    }
    for (size_t i = begin; i < end; i++)
        unaligned += !s->pairs[i]->aligned;
    str_addf(out, "%zu pair%s on %zu node%s", end - begin,
             end - begin == 1 ? "" : "s", leaf->end - leaf->begin,
             leaf->end - leaf->begin == 1 ? "" : "s");
    if (unaligned)
        str_addf(out, ", %zu not aligned", unaligned);
    str_add(out, "; ranks ");
    add_ranks(s, begin, end, out);
}

static int row_height(const struct sheet *s, size_t first, size_t end)
{
    int h = 0;
    for (size_t i = first; i < end && i < first + (size_t)s->columns; i++) {
        int own = node_height(s, &s->nodes[i]);
        h = own > h ? own : h;
    }
    return h;
}

static int leaf_height(const struct sheet *s, const struct part *leaf)
{
    int h = TITLE + DRAWING_LINE + DRAWING_GAP;
    for (size_t i = leaf->begin; s->detail != DETAIL_NONE && i < leaf->end;
         i += (size_t)s->columns)
        h += row_height(s, i, leaf->end) + DRAWING_GAP;
    return h;
}

static void write_leaf(struct sheet *s, const struct part *leaf, int x, int y)
{
    const struct box frame = {x, y, leaf_width(s), leaf_height(s, leaf)};
    const char *name = leaf_name(s, node_first(s, leaf->begin)->leaf);
    size_t columns = (size_t)s->columns;
    size_t letters = drawing_letters(leaf_width(s) - 2 * DRAWING_PAD);
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    add_leaf_text(s, leaf, &text);
    drawing_group(&s->body, "leaf", name);
    text_escape(name, &s->body);
    str_addf(&s->body, ": %s", str_text(&text));
    drawing_told(&s->body);
    drawing_rect(&s->body, "f", &frame, 8);
    drawing_text(&s->body, "b", x + DRAWING_PAD, y + 20, name, letters);
    drawing_text(&s->body, "d", x + DRAWING_PAD, y + 20 + DRAWING_LINE,
                 str_text(&text), letters);
    y += TITLE + DRAWING_LINE + DRAWING_GAP;
    for (size_t i = leaf->begin; s->detail != DETAIL_NONE && i < leaf->end;
         i++) {
        size_t column = (i - leaf->begin) % columns;
        if (column == 0 && i > leaf->begin)
            y += row_height(s, i - columns, leaf->end) + DRAWING_GAP;
        write_node(s, &s->nodes[i],
                   x + DRAWING_PAD + (int)column * (NODE + DRAWING_GAP), y);
    }
    drawing_group_end(&s->body);
}

/* Where they end. */
static int write_leaves(struct sheet *s, int y)
{
    size_t n = s->n_leaves < JOB_DRAWING_LEAVES ? s->n_leaves
                                                : JOB_DRAWING_LEAVES;
    size_t beside = COLUMNS / (size_t)s->columns;
    for (size_t i = 0; i < n; i += beside) {
        int h = 0;
        for (size_t k = i; k < n && k < i + beside; k++) {
            int own = leaf_height(s, &s->leaves[k]);
            write_leaf(s, &s->leaves[k],
                       DRAWING_MARGIN +
                           (int)(k - i) * (leaf_width(s) + DRAWING_GAP),
                       y);
            h = own > h ? own : h;
        }
        y += h + DRAWING_GAP;
    }
    return y;
}

/* --- the whole ------------------------------------------------------------ */

static void write_head(struct sheet *s, const char *title)
{
    const struct job_view *v = s->view;
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    drawing_text(&s->body, "h", DRAWING_MARGIN, 30, title, 100);
    str_addf(&text, "%" PRIu32 " of %" PRIu32 " pairs bound", v->bound,
             v->size);
    if (v->held)
        str_addf(&text, ", %" PRIu32 " held", v->held);
    str_addf(&text,
             "; %" PRIu32 " not aligned; %" PRIu32 " lea%s, %" PRIu32
             " crossing%s",
             v->unaligned, v->leaves, v->leaves == 1 ? "f" : "ves",
             v->crossings, v->crossings == 1 ? "" : "s");
    if (v->tier != FABRIC_APART)
        str_addf(&text, ", within one %s", fabric_tier_name(v->tier));
    drawing_text(&s->body, "d", DRAWING_MARGIN, 50, str_text(&text), 160);
}

/* Pairs without a place, and leaves that are not drawn. */
static int write_rest(struct sheet *s, int y)
{
    const struct job_view *v = s->view;
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    if (s->n_leaves > JOB_DRAWING_LEAVES) {
        str_addf(&text, "and %zu more leaves",
                 s->n_leaves - JOB_DRAWING_LEAVES);
        drawing_text(&s->body, "d", DRAWING_MARGIN, y + 14, str_text(&text),
                     160);
        y += DRAWING_LINE;
        str_reset(&text);
    }
    if (v->size > v->bound + v->held) {
        str_add(&text, "without a place: ranks ");
        job_view_add_missing(v, &text);
        drawing_text(&s->body, "bad", DRAWING_MARGIN, y + 14, str_text(&text),
                     160);
        y += DRAWING_LINE;
    }
    return y;
}

static int write_legend(struct sheet *s, int y)
{
    static const struct drawing_kind kinds[] = {
        {"near", "aligned"},
        {"far", "not aligned"},
        {"kept", "place held"},
        {"ill", "less achieved than promised"},
    };
    if (s->detail == DETAIL_NONE)
        return y;
    drawing_legend(&s->body, DRAWING_MARGIN, y + 14, kinds, ARRAY_LEN(kinds));
    return y + DRAWING_LINE;
}

/* As many as the largest leaf needs. */
static int find_columns(const struct sheet *s)
{
    size_t most = s->detail == DETAIL_NONE ? 2 : 1;
    for (size_t i = 0; s->detail != DETAIL_NONE && i < s->n_leaves; i++)
        if (s->leaves[i].end - s->leaves[i].begin > most)
            most = s->leaves[i].end - s->leaves[i].begin;
    return most > 2 ? COLUMNS : (int)most;
}

void job_drawing_write(const struct job_view *v, enum drawing_form form,
                       struct str *out)
{
    cleanup_free const struct job_pair **pairs = xcalloc(v->n_pairs + 1,
                                                         sizeof *pairs);
    cleanup_free struct part *nodes = xcalloc(v->n_pairs + 1, sizeof *nodes);
    cleanup_free struct part *leaves = xcalloc(v->n_pairs + 1, sizeof *leaves);
    cleanup_free char *title = xasprintf("%s/%s", v->namespace, v->job);
    struct sheet s = {.view = v,
                      .pairs = pairs,
                      .nodes = nodes,
                      .leaves = leaves,
                      .detail = v->n_pairs <= JOB_DRAWING_LINES   ? DETAIL_LINE
                                : v->n_pairs <= JOB_DRAWING_CELLS ? DETAIL_CELL
                                                                  : DETAIL_NONE,
                      .body = STR_INIT(STR_MAX_DEFAULT)};
    int y = DRAWING_HEAD;
    sort(&s);
    s.columns = find_columns(&s);
    write_head(&s, title);
    y = write_legend(&s, write_rest(&s, write_leaves(&s, y)));
    int beside = COLUMNS / s.columns;
    if (s.n_leaves < 2 || (size_t)beside > s.n_leaves)
        beside = s.n_leaves < 2 ? 2 / s.columns + 1 : (int)s.n_leaves;
    drawing_finish(title, &s.body,
                   2 * DRAWING_MARGIN +
                       beside * (leaf_width(&s) + DRAWING_GAP) - DRAWING_GAP,
                   y + DRAWING_MARGIN, form, out);
    str_fini(&s.body);
}
