/* The rows. */
#include "router/keep/keepdb.h"

#include <stdlib.h>
#include <string.h>

#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "router/keep/keepdb_private.h"

enum { ROW_KEY_SIZE = KEPT_KEY_SIZE + 2 };

const char *const keepdb_sql[KEEPDB_COUNT] = {
    [KEEPDB_BEGIN] = "BEGIN IMMEDIATE",
    [KEEPDB_COMMIT] = "COMMIT",
    [KEEPDB_ROLLBACK] = "ROLLBACK",
    [KEEPDB_PUT] = "INSERT OR REPLACE INTO records VALUES (?1,?2,?3)",
    [KEEPDB_DELETE] = "DELETE FROM records WHERE key = ?1",
    [KEEPDB_EACH] = "SELECT * FROM records ORDER BY key",
    [KEEPDB_PUT_COMMIT] = "INSERT OR REPLACE INTO commits VALUES (1,?1,?2)",
    [KEEPDB_EACH_COMMIT] = "SELECT number, sum FROM commits",
};

static int run(struct keepdb *db, enum keepdb_sql which, struct error *err)
{
    return sqldb_run(&db->d, db->sql[which], keepdb_sql[which], err);
}

/* The statement's text stays the caller's until it has run. */
static void bind_text(struct keepdb *db, enum keepdb_sql which, int at,
                      const char *text)
{
    (void)sqlite3_bind_text64(db->sql[which], at, text, strlen(text),
                              SQLITE_STATIC, SQLITE_UTF8);
}

/* Everything ends with this: 0 when it is durable. */
static int finish(struct keepdb *db, int e, struct error *err)
{
    if (e == 0) {
        sqlite3_stmt *q = db->sql[KEEPDB_PUT_COMMIT];
        uint64_t number = db->commits + 1;
        (void)sqlite3_bind_int64(q, 1, (int64_t)number);
        (void)sqlite3_bind_int64(q, 2, sum_u64(0, number));
        e = run(db, KEEPDB_PUT_COMMIT, err);
    }
    if (e == 0 && failpoint("cri-commit"))
        e = error_set(err, ENOSPC, "keep: committing: a failpoint");
    if (e == 0)
        e = run(db, KEEPDB_COMMIT, err);
    if (e < 0 && !sqlite3_get_autocommit(db->d.db))
        (void)run(db, KEEPDB_ROLLBACK, NULL); /* nothing else is left to do */
    if (e < 0)
        return e;
    db->commits++;
    if (db->mark)
        dbmark_set(db->mark, db->commits);
    return 0;
}

int keepdb_touch(struct keepdb *db, struct error *err)
{
    return finish(db, run(db, KEEPDB_BEGIN, err), err);
}

int keepdb_put_row(struct keepdb *db, const char *key, const char *text,
                   struct error *err)
{
    int e = run(db, KEEPDB_BEGIN, err);
    if (e == 0) {
        bind_text(db, KEEPDB_PUT, 1, key);
        bind_text(db, KEEPDB_PUT, 2, text);
        (void)sqlite3_bind_int64(db->sql[KEEPDB_PUT], 3,
                                 sum_text(sum_text(0, key), text));
        e = run(db, KEEPDB_PUT, err);
    }
    return finish(db, e, err);
}

static void row_key(const struct kept *k, char ret_key[ROW_KEY_SIZE])
{
    ret_key[0] = k->kind == KEPT_SANDBOX ? 's' : 'c';
    ret_key[1] = '/';
    kept_key(k, ret_key + 2);
}

int keepdb_put(struct keepdb *db, const struct kept *k, struct error *err)
{
    cleanup_str struct str text = STR_INIT(KEPT_TEXT_MAX);
    char key[ROW_KEY_SIZE];
    row_key(k, key);
    kept_text_write(k, &text);
    if (text.overflow)
        return error_set(err, E2BIG, "keep: %s: has more than %d bytes", key,
                         KEPT_TEXT_MAX);
    return keepdb_put_row(db, key, str_text(&text), err);
}

int keepdb_delete(struct keepdb *db, struct kept *const *list, size_t n,
                  struct error *err)
{
    char key[ROW_KEY_SIZE];
    int e = run(db, KEEPDB_BEGIN, err);
    for (size_t i = 0; i < n && e == 0; i++) {
        row_key(list[i], key);
        bind_text(db, KEEPDB_DELETE, 1, key);
        e = run(db, KEEPDB_DELETE, err);
    }
    return finish(db, e, err);
}

/* --- reading -------------------------------------------------------------- */

struct reading {
    void (*visit)(void *ctx, const struct kept *k);
    void *ctx;
};

/* A row of a newer program may be one that we cannot read: it stays. */
static int read_row(sqlite3_stmt *q, void *ctx, struct error *err)
{
    const struct reading *r = ctx;
    struct error why = {0};
    cleanup_with(kept) struct kept *k = NULL;
    const char *text = (const char *)sqlite3_column_text(q, 1);
    (void)err;
    if (kept_text_read(text ? text : "", (size_t)sqlite3_column_bytes(q, 1), &k,
                       &why) == 0)
        r->visit(r->ctx, k);
    else
        log_event(LOG_ERROR, "keep-record-skipped", "key",
                  (const char *)sqlite3_column_text(q, 0), "error", why.text,
                  NULL);
    return 0;
}

int keepdb_each(struct keepdb *db,
                void (*visit)(void *ctx, const struct kept *k), void *ctx,
                struct error *err)
{
    struct reading r = {visit, ctx};
    return sqldb_each(&db->d, db->sql[KEEPDB_EACH], read_row, &r, err);
}
