/* What goes on, as the file has it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history_book_private.h"

void open_place_free(void *place)
{
    struct open_place *p = place;
    free(p->pod);
    free(p->job);
    free(p->node_name);
    free(p);
}

static void open_node_free(void *node)
{
    struct open_node *n = node;
    free(n->node);
    free(n->cards);
    free(n);
}

void open_node_put(struct history_book *b, const struct open_node *n)
{
    struct open_node *copy = xmemdup(n, sizeof *n);
    struct open_node *old = strmap_remove(&b->nodes, n->node);
    copy->told.node = copy->node;
    copy->told.cards = copy->cards;
    if (old)
        open_node_free(old);
    (void)strmap_put(&b->nodes, copy->node, copy);
}

void book_forget(struct history_book *b)
{
    strmap_fini_with(&b->places, open_place_free);
    strmap_fini_with(&b->nodes, open_node_free);
    b->places = b->nodes = (struct strmap){0};
}

void book_forget_gone(struct history_book *b, int64_t before_ms)
{
    cleanup_free struct open_node **gone = xcalloc(b->nodes.n + 1,
                                                   sizeof(struct open_node *));
    size_t n = 0, pos = 0;
    for (struct open_node *x; (x = strmap_next(&b->nodes, &pos));)
        if (x->told.status == HISTORY_NODE_GONE_STATUS &&
            x->told.since_ms < before_ms)
            gone[n++] = x;
    for (size_t i = 0; i < n; i++) {
        (void)strmap_remove(&b->nodes, gone[i]->node);
        open_node_free(gone[i]);
    }
}

/* --- reading -------------------------------------------------------------- */

/* Rows are read first, and their texts then. */
struct rows {
    struct open_place *places;
    struct open_node *nodes;
    size_t n, cap;
};

static int on_place(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct rows *r = ctx;
    (void)err;
    r->places = xgrow(r->places, r->n, &r->cap, sizeof *r->places);
    r->places[r->n++] = (struct open_place){
        .id = sqlite3_column_int64(q, 0),
        .pod_id = sqlite3_column_int64(q, 1),
        .job_id = sqlite3_column_int64(q, 2),
        .node_id = sqlite3_column_int64(q, 3),
        .pair = (int32_t)sqlite3_column_int64(q, 4),
        .role = (uint8_t)sqlite3_column_int64(q, 5),
        .devices_id = sqlite3_column_int64(q, 6),
        .since_ms = sqlite3_column_int64(q, 7),
    };
    return 0;
}

/* In the order of nodes and time: the last one of each counts. */
static int on_node(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct rows *r = ctx;
    const struct open_node n = {
        .node_id = sqlite3_column_int64(q, 1),
        .told = {.since_ms = sqlite3_column_int64(q, 2),
                 .status = (int)sqlite3_column_int64(q, 3)},
        .cards_id = sqlite3_column_int64(q, 4),
    };
    (void)err;
    if (r->n == 0 || r->nodes[r->n - 1].node_id != n.node_id) {
        r->nodes = xgrow(r->nodes, r->n, &r->cap, sizeof *r->nodes);
        r->n++;
    }
    r->nodes[r->n - 1] = n;
    return 0;
}

static int each(struct history_book *b, enum history_sql which,
                sqldb_row_f *visit, struct rows *r, struct error *err)
{
    return sqldb_each(&b->db.d, b->db.sql[which], visit, r, err);
}

static int take_place(struct history_book *b, const struct open_place *row,
                      struct error *err)
{
    struct open_place *p = xmemdup(row, sizeof *row);
    cleanup_free char *devices = NULL;
    int e = history_names_get(&b->db, p->pod_id, &p->pod, err);
    if (e == 0)
        e = history_names_get(&b->db, p->job_id, &p->job, err);
    if (e == 0)
        e = history_names_get(&b->db, p->node_id, &p->node_name, err);
    if (e == 0)
        e = history_names_get(&b->db, p->devices_id, &devices, err);
    if (e < 0) {
        open_place_free(p);
        return e;
    }
    p->devices_hash = hash_bytes(devices, strlen(devices));
    struct open_place *old = strmap_remove(&b->places, p->pod);
    if (old)
        open_place_free(old);
    (void)strmap_put(&b->places, p->pod, p);
    return 0;
}

static int take_node(struct history_book *b, const struct open_node *row,
                     struct error *err)
{
    struct open_node n = *row;
    int e = history_names_get(&b->db, n.node_id, &n.node, err);
    if (e == 0)
        e = history_names_get(&b->db, n.cards_id, &n.cards, err);
    if (e == 0) {
        open_node_put(b, &n);
        return 0;
    }
    free(n.node);
    free(n.cards);
    return e;
}

static int load_places(struct history_book *b, struct error *err)
{
    struct rows r = {0};
    int e = each(b, HISTORY_OPEN_PLACES, on_place, &r, err);
    for (size_t i = 0; i < r.n && e == 0; i++)
        e = take_place(b, &r.places[i], err);
    free(r.places);
    return e;
}

static int load_nodes(struct history_book *b, struct error *err)
{
    struct rows r = {0};
    int e = each(b, HISTORY_LAST_NODES, on_node, &r, err);
    for (size_t i = 0; i < r.n && e == 0; i++)
        e = take_node(b, &r.nodes[i], err);
    free(r.nodes);
    return e;
}

static int newest_of(struct history_book *b, const char *sql, int64_t *ret,
                     struct error *err)
{
    bool ignored;
    return sqldb_query(&b->db.d, sql, ret, &ignored, err);
}

#define NEWEST(table)                                                     \
    "SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = '" table \
    "'), 0)"

static int load(struct history_book *b, struct error *err)
{
    int e = newest_of(b, NEWEST("events"), &b->newest_event, err);
    if (e == 0)
        e = newest_of(b, NEWEST("places"), &b->newest_place, err);
    if (e == 0)
        e = newest_of(b, NEWEST("nodes"), &b->newest_node, err);
    if (e == 0)
        e = load_places(b, err);
    return e == 0 ? load_nodes(b, err) : e;
}

static int run(struct history_book *b, enum history_sql which,
               struct error *err)
{
    struct history_row r = history_row(&b->db, which);
    return history_row_run(&b->db, &r, err);
}

/* In one transaction, or each name would take the file's locks.  Who fails
 * closes the file, which ends it. */
int book_load(struct history_book *b, struct error *err)
{
    int e = run(b, HISTORY_BEGIN_READ, err);
    if (e == 0)
        e = load(b, err);
    return e == 0 ? run(b, HISTORY_COMMIT, err) : e;
}
