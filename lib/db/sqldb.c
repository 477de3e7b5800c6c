#include "lib/db/sqldb.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"

/* --- errors --------------------------------------------------------------- */

void sqldb_die_of_fsync(const struct sqldb *d, int rc)
{
    if (rc != SQLITE_IOERR_FSYNC && rc != SQLITE_IOERR_DIR_FSYNC)
        return;
    log_event(LOG_ERROR, d->fsync_event, "error", sqlite3_errstr(rc), NULL);
    abort();
}

/* -errno, with a text that begins with `what`, of SQLite's result `rc`. */
static int sqlite_error(const struct sqldb *d, int rc, const char *what,
                        struct error *err)
{
    static const struct {
        int rc, code;
    } codes[] = {
        {SQLITE_FULL, ENOSPC},     {SQLITE_READONLY, EROFS},
        {SQLITE_CANTOPEN, EACCES}, {SQLITE_PERM, EACCES},
        {SQLITE_CORRUPT, EBADMSG}, {SQLITE_NOTADB, EBADMSG},
        {SQLITE_BUSY, EBUSY},      {SQLITE_LOCKED, EBUSY},
        {SQLITE_ERROR, EBADMSG}, /* the schema is not as it was made */
    };
    int code = EIO;
    sqldb_die_of_fsync(d, rc);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].rc == (rc & 0xff))
            code = codes[i].code;
    return error_set(err, code, "%s%s: %s", d->prefix, what,
                     d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(rc));
}

/* --- opening -------------------------------------------------------------- */

int sqldb_open(struct sqldb *d, const char *path, struct error *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(path, &d->db, flags, NULL);
    if (rc != SQLITE_OK)
        return sqlite_error(d, rc, path, err);
    /* settings that are known are taken */
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return 0;
}

void sqldb_trust(struct sqldb *d)
{
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

void sqldb_close(struct sqldb *d, sqlite3_stmt **statements, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)sqlite3_finalize(statements[i]); /* repeats an earlier error */
        statements[i] = NULL;
    }
    (void)sqlite3_close_v2(d->db); /* what matters was committed */
    d->db = NULL;
}

int sqldb_execute(struct sqldb *d, const char *sql, const char *what,
                  struct error *err)
{
    int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : sqlite_error(d, rc, what, err);
}

int sqldb_query(struct sqldb *d, const char *sql, int64_t *ret_number,
                bool *ret_ok, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int e = 0;
    int rc = sqlite3_prepare_v2(d->db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(q, 0);
        *ret_number = sqlite3_column_int64(q, 0);
        *ret_ok = text && strcmp(text, "ok") == 0;
    } else {
        e = sqlite_error(d, rc, sql, err);
    }
    (void)sqlite3_finalize(q); /* repeats the error of step */
    return e;
}

int sqldb_prepare(struct sqldb *d, const char *const *texts,
                  sqlite3_stmt **ret_statements, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = sqlite3_prepare_v3(d->db, texts[i], -1,
                                    SQLITE_PREPARE_PERSISTENT,
                                    &ret_statements[i], NULL);
        if (rc != SQLITE_OK)
            return sqlite_error(d, rc, d->opening, err);
    }
    return 0;
}

int sqldb_check(struct sqldb *d, const char *text, struct error *err)
{
    int64_t number;
    bool ok = false;
    int e = sqldb_query(d, "PRAGMA quick_check(1)", &number, &ok, err);
    return e == 0 && !ok ? error_set(err, EBADMSG, "%s: %s", d->noun, text) : e;
}

/* --- statements and rows -------------------------------------------------- */

int sqldb_run(struct sqldb *d, sqlite3_stmt *q, const char *what,
              struct error *err)
{
    int rc = sqlite3_step(q);
    int e = rc == SQLITE_DONE ? 0 : sqlite_error(d, rc, what, err);
    (void)sqlite3_reset(q); /* repeats the error of step */
    (void)sqlite3_clear_bindings(q);
    return e;
}

/* Is the last column the sum of the others? */
static bool row_is_whole(sqlite3_stmt *q)
{
    int64_t sum = 0;
    int n = sqlite3_column_count(q);
    for (int i = 0; i < n - 1; i++) {
        if (sqlite3_column_type(q, i) == SQLITE_INTEGER)
            sum = sum_u64(sum, (uint64_t)sqlite3_column_int64(q, i));
        else
            sum = sum_add(sum, sqlite3_column_text(q, i),
                          (size_t)sqlite3_column_bytes(q, i));
    }
    return sum == sqlite3_column_int64(q, n - 1);
}

int sqldb_each(struct sqldb *d, sqlite3_stmt *q, sqldb_row_f *visit, void *ctx,
               struct error *err)
{
    int rc = SQLITE_ROW, e = 0;
    while (e == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        if (!row_is_whole(q))
            e = error_set(err, EBADMSG, "%s: a row is damaged", d->noun);
        else
            e = visit(q, ctx, err);
    }
    if (e == 0 && rc != SQLITE_DONE)
        e = sqlite_error(d, rc, d->reading, err);
    (void)sqlite3_reset(q); /* repeats the error of step */
    (void)sqlite3_clear_bindings(q);
    return e < 0 ? e : 0;
}

int sqldb_visit_nothing(sqlite3_stmt *q, void *ctx, struct error *err)
{
    (void)q;
    (void)ctx;
    (void)err;
    return 0;
}
