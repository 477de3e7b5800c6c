/* Places and nodes as they were at a moment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history_names.h"
#include "extender/history/history_read_private.h"
#include "extender/state/scope.h"

/* --- places --------------------------------------------------------------- */

struct place_scan {
    struct history_reader *r;
    int64_t ms;
    history_place_f *visit;
    void *ctx;
    bool first_only;
};

static int on_place(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct place_scan *s = ctx;
    struct history_place p = {
        .pair = (int32_t)sqlite3_column_int64(q, 4),
        .role = (uint8_t)sqlite3_column_int64(q, 5),
        .since_ms = sqlite3_column_int64(q, 7),
        .until_ms = sqlite3_column_int64(q, 8),
    };
    if (p.since_ms > s->ms || (p.until_ms && p.until_ms <= s->ms))
        return 0;
    int e = reader_text(s->r, sqlite3_column_int64(q, 1), &p.pod, err);
    if (e == 0)
        e = reader_text(s->r, sqlite3_column_int64(q, 2), &p.job, err);
    if (e == 0)
        e = reader_text(s->r, sqlite3_column_int64(q, 3), &p.node, err);
    if (e == 0)
        e = reader_text(s->r, sqlite3_column_int64(q, 6), &p.devices, err);
    if (e < 0)
        return e;
    if (!scope_sees_object(s->r->scope, p.pod)) {
        p.pod = SCOPE_HIDDEN_NAMESPACE "/" SCOPE_HIDDEN_NAME;
        p.job = "";
    }
    s->visit(s->ctx, &p);
    return s->first_only;
}

int history_read_places_of_node(struct history_reader *r, const char *node,
                                int64_t ms, history_place_f *visit, void *ctx,
                                struct error *err)
{
    struct place_scan s = {.r = r, .ms = ms, .visit = visit, .ctx = ctx};
    int64_t id = 0;
    int e = history_names_find(&r->db, node, &id, err);
    for (int i = 0; e == 0 && id && i <= HISTORY_LEVELS; i++) {
        bool open = i == HISTORY_LEVELS;
        struct history_row row = history_row(&r->db, HISTORY_PLACES_OF_NODE);
        history_row_bare(&row, id);
        history_row_bare(&row, open ? HISTORY_LEVEL_OPEN : i);
        history_row_bare(&row, open ? -1 : ms - history_level_reach(i));
        history_row_bare(&row, ms);
        e = reader_each(r, row.q, on_place, &s, err);
    }
    return e;
}

static int places_of(struct place_scan *s, enum history_sql which,
                     const char *text, struct error *err)
{
    struct history_reader *r = s->r;
    int64_t id = 0;
    int e = history_names_find(&r->db, text, &id, err);
    if (e < 0 || id == 0)
        return e;
    struct history_row row = history_row(&r->db, which);
    history_row_bare(&row, id);
    history_row_bare(&row, HISTORY_SCAN_MAX);
    return reader_each(r, row.q, on_place, s, err);
}

int history_read_places_of_job(struct history_reader *r, const char *job,
                               int64_t ms, history_place_f *visit, void *ctx,
                               struct error *err)
{
    struct place_scan s = {.r = r, .ms = ms, .visit = visit, .ctx = ctx};
    return places_of(&s, HISTORY_PLACES_OF_JOB, job, err);
}

int history_read_place_of_pod(struct history_reader *r, const char *pod,
                              int64_t ms, history_place_f *visit, void *ctx,
                              struct error *err)
{
    struct place_scan s = {
        .r = r, .ms = ms, .visit = visit, .ctx = ctx, .first_only = true};
    return places_of(&s, HISTORY_PLACES_OF_POD, pod, err);
}

/* --- nodes ---------------------------------------------------------------- */

struct node_scan {
    struct history_reader *r;
    struct history_node *node;
    bool found;
};

static int on_node(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct node_scan *s = ctx;
    s->node->since_ms = sqlite3_column_int64(q, 2);
    s->node->status = (int)sqlite3_column_int64(q, 3);
    s->found = true;
    return reader_text(s->r, sqlite3_column_int64(q, 4), &s->node->cards, err);
}

int history_read_node(struct history_reader *r, const char *node, int64_t ms,
                      struct history_node *ret_node, bool *ret_found,
                      struct error *err)
{
    struct history_node found = {.node = node, .cards = ""};
    struct node_scan s = {.r = r, .node = &found};
    int64_t id = 0;
    int e = history_names_find(&r->db, node, &id, err);
    if (e == 0 && id) {
        struct history_row row = history_row(&r->db, HISTORY_NODE_THEN);
        history_row_bare(&row, id);
        history_row_bare(&row, ms);
        e = reader_each(r, row.q, on_node, &s, err);
    }
    if (e < 0)
        return e;
    *ret_found = s.found;
    if (s.found)
        *ret_node = found;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int history_read_nodes(struct history_reader *r, const char ***ret_names,
                       size_t *ret_n, struct error *err)
{
    sqlite3_stmt *q = r->db.sql[HISTORY_NODES_ALL];
    cleanup_free const char **names = NULL;
    size_t n = 0, cap = 0;
    int rc, e = 0;
    while (e == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        names = xgrow(names, n, &cap, sizeof *names);
        e = reader_text(r, sqlite3_column_int64(q, 0), &names[n++], err);
    }
    if (e == 0 && rc != SQLITE_DONE)
        e = error_set(err, (rc & 0xff) == SQLITE_CORRUPT ? EBADMSG : EIO,
                      "history: reading it: %s", sqlite3_errmsg(r->db.d.db));
    (void)sqlite3_reset(q); /* repeats the error of step */
    if (e < 0)
        return e;
    if (n)
        qsort(names, n, sizeof *names, compare_names);
    *ret_names = steal(&names);
    *ret_n = n;
    return 0;
}
