#include "extender/history/history_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/history/history_book_private.h"
#include "lib/db/dbfile.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

enum { HOUR_MS = 3600000, DAY_MS = 86400000 };
enum { DROP_ROWS = 5000, FREE_PAGES = 2000 };

/* --- opening -------------------------------------------------------------- */

int history_book_renew(const char *dir, const struct error *why,
                       struct error *err)
{
    cleanup_free char *path = xasprintf("%s/" HISTORY_FILE DBFILE_FRESH, dir);
    cleanup_free char *shared = xasprintf("%s/" HISTORY_FILE "-shm", dir);
    cleanup_free char *aside = NULL;
    struct history_db db;
    (void)unlink(shared); /* a reader may have it: the new one gets another */
    int e = dbfile_create(dir, HISTORY_FILE DBFILE_FRESH, err);
    if (e == 0)
        e = history_db_open(&db, path, err);
    if (e < 0)
        return e;
    history_db_close(&db);
    (void)failpoint("history-before-aside");
    e = dbfile_replace(dir, HISTORY_FILE, &aside, err);
    (void)failpoint("history-after-aside");
    if (e == 0)
        log_event(LOG_ERROR, "history-damaged", "error", why->text, "moved-to",
                  aside, NULL);
    return e;
}

static int open_as_left(const char *dir, struct history_book *b,
                        struct error *err)
{
    cleanup_free char *path = xasprintf("%s/" HISTORY_FILE, dir);
    int e = dbfile_create(dir, HISTORY_FILE, err);
    if (e == 0)
        e = history_db_open(&b->db, path, err);
    if (e == 0)
        e = history_names_open(&b->db, &b->names, err);
    return e == 0 ? book_load(b, err) : e;
}

int history_book_open(const char *dir, struct history_book **ret_book,
                      struct error *err)
{
    struct error why = {0};
    struct history_book *b = xcalloc(1, sizeof *b);
    int e = dbfile_tidy(dir, HISTORY_FILE, err);
    if (e == 0 && (e = open_as_left(dir, b, &why)) < 0 && err)
        *err = why;
    if (e == -EBADMSG) {
        history_book_close(b);
        b = xcalloc(1, sizeof *b);
        e = history_book_renew(dir, &why, err);
        if (e == 0)
            e = open_as_left(dir, b, err);
    }
    if (e < 0)
        history_book_close(b);
    else
        *ret_book = b;
    return e;
}

void history_book_close(struct history_book *b)
{
    if (!b)
        return;
    book_forget(b);
    book_forget_refusals(b);
    history_names_close(b->names);
    history_db_close(&b->db); /* which rolls back */
    free(b);
}

int history_book_check(struct history_book *b, struct error *err)
{
    return sqldb_check(&b->db.d, "it is damaged", err);
}

/* --- transactions --------------------------------------------------------- */

static int run(struct history_book *b, enum history_sql which,
               struct error *err)
{
    struct history_row r = history_row(&b->db, which);
    return history_row_run(&b->db, &r, err);
}

/* Texts of what goes on are used every day. */
static int touch_open(struct history_book *b, struct error *err)
{
    size_t pos = 0;
    struct open_place *p;
    struct open_node *n;
    int e = 0;
    while (e == 0 && (p = strmap_next(&b->places, &pos))) {
        const int64_t ids[] = {p->pod_id, p->job_id, p->node_id, p->devices_id};
        for (size_t i = 0; i < ARRAY_LEN(ids) && e == 0; i++)
            e = history_names_touch(b->names, ids[i], b->day, err);
    }
    for (pos = 0; e == 0 && (n = strmap_next(&b->nodes, &pos));) {
        e = history_names_touch(b->names, n->node_id, b->day, err);
        if (e == 0)
            e = history_names_touch(b->names, n->cards_id, b->day, err);
    }
    return e;
}

int history_book_begin(struct history_book *b, int64_t now_ms,
                       struct error *err)
{
    int64_t day = now_ms / DAY_MS;
    int e = run(b, HISTORY_BEGIN, err);
    b->begun = e == 0;
    b->now_ms = now_ms;
    if (e < 0 || day == b->day)
        return e;
    b->day = day;
    return touch_open(b, err);
}

int history_book_commit(struct history_book *b, struct error *err)
{
    int e = b->now_ms >= b->flush_ms ? book_flush_refusals(b, err) : 0;
    (void)failpoint("history-before-commit");
    if (e == 0 && failpoint("history-commit"))
        e = error_set(err, ENOSPC, "history: a failpoint");
    if (e == 0)
        e = run(b, HISTORY_COMMIT, err);
    (void)failpoint("history-after-commit");
    b->begun = b->begun && e < 0;
    return e;
}

int history_book_finish(struct history_book *b, int64_t now_ms,
                        struct error *err)
{
    int e = history_book_begin(b, now_ms, err);
    b->flush_ms = 0;
    return e == 0 ? history_book_commit(b, err) : e;
}

uint64_t history_book_newest(const struct history_book *b)
{
    return (uint64_t)b->newest_event;
}

void history_book_go_on(struct history_book *b, uint64_t newest)
{
    if ((uint64_t)b->newest_event < newest)
        b->newest_event = (int64_t)newest;
}

/* --- places --------------------------------------------------------------- */

static uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

bool history_book_has(const struct history_book *b,
                      const struct history_place *p)
{
    const struct open_place *o = strmap_get(&b->places, p->pod);
    return o && strcmp(o->node_name, p->node) == 0 &&
           o->devices_hash == hash_text(p->devices);
}

const char *history_book_where(const struct history_book *b, const char *pod)
{
    const struct open_place *o = strmap_get(&b->places, pod);
    return o ? o->node_name : "";
}

static int write_place(struct history_book *b, enum history_sql which,
                       const struct open_place *p, int64_t until_ms,
                       struct error *err)
{
    struct history_row r = history_row(&b->db, which);
    history_row_int(&r, p->id);
    history_row_int(&r, p->pod_id);
    history_row_int(&r, p->job_id);
    history_row_int(&r, p->node_id);
    history_row_int(&r, p->pair);
    history_row_int(&r, p->role);
    history_row_int(&r, p->devices_id);
    history_row_int(&r, p->since_ms);
    history_row_int(&r, until_ms);
    history_row_int(&r, until_ms ? history_level(until_ms - p->since_ms)
                                 : HISTORY_LEVEL_OPEN);
    history_row_sum(&r);
    int e = history_row_run(&b->db, &r, err);
    (void)failpoint("history-place");
    return e;
}

int history_book_freed(struct history_book *b, const char *pod, int64_t ms,
                       bool *ret_had, struct error *err)
{
    struct open_place *p = strmap_remove(&b->places, pod);
    *ret_had = p;
    if (!p)
        return 0;
    const int64_t ids[] = {p->pod_id, p->job_id, p->node_id, p->devices_id};
    /* the clock may have been set back */
    int e = write_place(b, HISTORY_CLOSE_PLACE, p,
                        ms > p->since_ms ? ms : p->since_ms, err);
    for (size_t i = 0; i < ARRAY_LEN(ids) && e == 0; i++)
        e = history_names_touch(b->names, ids[i], b->day, err);
    open_place_free(p);
    return e;
}

int history_book_placed(struct history_book *b, const struct history_place *p,
                        struct error *err)
{
    bool ignored;
    int e = history_book_freed(b, p->pod, p->since_ms, &ignored, err);
    struct open_place o = {.devices_hash = hash_text(p->devices),
                           .id = b->newest_place + 1,
                           .since_ms = p->since_ms,
                           .pair = p->pair,
                           .role = p->role};
    if (e == 0)
        e = book_name(b, p->pod, &o.pod_id, err);
    if (e == 0)
        e = book_name(b, p->job, &o.job_id, err);
    if (e == 0)
        e = book_name(b, p->node, &o.node_id, err);
    if (e == 0)
        e = book_name(b, p->devices, &o.devices_id, err);
    if (e == 0)
        e = write_place(b, HISTORY_PUT_PLACE, &o, 0, err);
    if (e < 0)
        return e;
    b->newest_place++;
    o.pod = xstrdup(p->pod);
    o.job = xstrdup(p->job);
    o.node_name = xstrdup(p->node);
    (void)strmap_put(&b->places, o.pod, xmemdup(&o, sizeof o));
    return 0;
}

void history_book_each_place(const struct history_book *b,
                             void (*visit)(void *ctx,
                                           const struct history_place *p),
                             void *ctx)
{
    size_t pos = 0;
    const struct open_place *p;
    while ((p = strmap_next(&b->places, &pos)))
        visit(ctx, &(struct history_place){.pod = p->pod,
                                           .job = p->job,
                                           .node = p->node_name,
                                           .pair = p->pair,
                                           .role = p->role,
                                           .since_ms = p->since_ms});
}

/* --- nodes ---------------------------------------------------------------- */

const struct history_node *history_book_node_now(const struct history_book *b,
                                                 const char *node)
{
    const struct open_node *n = strmap_get(&b->nodes, node);
    return n ? &n->told : NULL;
}

void history_book_each_node(const struct history_book *b,
                            void (*visit)(void *ctx,
                                          const struct history_node *n),
                            void *ctx)
{
    size_t pos = 0;
    const struct open_node *n;
    while ((n = strmap_next(&b->nodes, &pos)))
        visit(ctx, &n->told);
}

int history_book_node(struct history_book *b, const struct history_node *n,
                      struct error *err)
{
    const struct history_node *now = history_book_node_now(b, n->node);
    struct open_node o = {.told = *n};
    if (now && now->status == n->status && strcmp(now->cards, n->cards) == 0)
        return 0;
    int e = book_name(b, n->node, &o.node_id, err);
    if (e == 0)
        e = book_name(b, n->cards, &o.cards_id, err);
    if (e < 0)
        return e;
    struct history_row r = history_row(&b->db, HISTORY_PUT_NODE);
    history_row_int(&r, ++b->newest_node);
    history_row_int(&r, o.node_id);
    history_row_int(&r, n->since_ms);
    history_row_int(&r, n->status);
    history_row_int(&r, o.cards_id);
    history_row_sum(&r);
    e = history_row_run(&b->db, &r, err);
    if (e < 0)
        return e;
    o.node = xstrdup(n->node);
    o.cards = xstrdup(n->cards);
    open_node_put(b, &o);
    return 0;
}

/* --- what is old ---------------------------------------------------------- */

/* Drop a part of what a statement names; the number of rows. */
static int drop_some(struct history_book *b, enum history_sql which,
                     const int64_t *values, size_t n, bool *ret_more,
                     struct error *err)
{
    struct history_row r = history_row(&b->db, which);
    for (size_t i = 0; i < n; i++)
        history_row_bare(&r, values[i]);
    int e = history_row_run(&b->db, &r, err);
    *ret_more |= e == 0 && sqlite3_changes(b->db.d.db) >= DROP_ROWS;
    return e;
}

static int drop_within(struct history_book *b, int64_t before_ms,
                       bool *ret_more, struct error *err)
{
    int64_t seq, id;
    bool ignored = false;
    int e = history_seq_from(&b->db, HISTORY_EVENT_AT, before_ms, &seq, err);
    if (e == 0)
        e = history_seq_from(&b->db, HISTORY_PLACE_AT, before_ms, &id, err);
    if (e == 0)
        e = drop_some(b, HISTORY_DROP_EVENTS, (int64_t[]){seq, DROP_ROWS}, 2,
                      ret_more, err);
    if (e == 0)
        e = drop_some(b, HISTORY_DROP_PLACES,
                      (int64_t[]){id, before_ms, DROP_ROWS}, 3, ret_more, err);
    /* for nodes and texts the whole of their tables is read: not each minute */
    if (e < 0 || *ret_more || before_ms / HOUR_MS == b->dropped_hour)
        return e;
    b->dropped_hour = before_ms / HOUR_MS;
    e = drop_some(b, HISTORY_DROP_NODES, (int64_t[]){before_ms}, 1, &ignored,
                  err);
    if (e == 0)
        book_forget_gone(b, before_ms);
    /* what is used on a day is stored within it, or was by midnight */
    return e == 0 ? history_names_drop(b->names, before_ms / DAY_MS - 1, err)
                  : e;
}

int history_book_drop(struct history_book *b, int64_t now_ms, int64_t before_ms,
                      bool *ret_more, struct error *err)
{
    *ret_more = false;
    int e = history_book_begin(b, now_ms, err); /* texts in use are of today */
    if (e == 0)
        e = drop_within(b, before_ms, ret_more, err);
    if (e == 0)
        e = history_book_commit(b, err);
    if (e == 0 && !*ret_more)
        e = sqldb_execute(&b->db.d, "PRAGMA incremental_vacuum(2000)",
                          "giving back", err);
    return e;
}

static int64_t number(struct history_book *b, const char *sql, int *e,
                      struct error *err)
{
    int64_t value = 0;
    bool ignored;
    if (*e == 0)
        *e = sqldb_query(&b->db.d, sql, &value, &ignored, err);
    return value;
}

int history_book_size(struct history_book *b, int64_t *ret_bytes,
                      struct error *err)
{
    int e = 0;
    int64_t pages = number(b, "PRAGMA page_count", &e, err);
    int64_t unused = number(b, "PRAGMA freelist_count", &e, err);
    int64_t size = number(b, "PRAGMA page_size", &e, err);
    if (e == 0)
        *ret_bytes = (pages - unused) * size;
    return e;
}

int history_book_sixteenth(struct history_book *b, int64_t *ret_ms,
                           struct error *err)
{
    int e = 0;
    int64_t ms = number(
        b,
        "SELECT ifnull((SELECT at FROM events WHERE seq >= (SELECT min(seq) + "
        "(max(seq) - min(seq)) / 16 + 1 FROM events) ORDER BY seq LIMIT 1), 0)",
        &e, err);
    if (e == 0)
        *ret_ms = ms;
    return e;
}

int history_book_oldest(struct history_book *b, int64_t *ret_ms,
                        struct error *err)
{
    int e = 0;
    int64_t ms = number(
        b, "SELECT ifnull((SELECT at FROM events ORDER BY seq LIMIT 1), 0)", &e,
        err);
    if (e == 0)
        *ret_ms = ms;
    return e;
}
