/* What can be saved from a damaged database.  Slices come back from their
 * advertisers by themselves; allocations, and what was applied, do not. */
#include <inttypes.h>
#include <stdio.h>

#include "extender/store_private.h"
#include "model/base/mem.h"
#include "model/io/log.h"

/* From both ends: reading stops at a page that is damaged. */
static const char *const sql_salvage[] = {
    "SELECT namespace, name, json, sum FROM allocations ORDER BY rowid",
    "SELECT namespace, name, json, sum FROM allocations ORDER BY rowid DESC",
};

/* NULL when the damage does not even let it be opened. */
static sqlite3 *open_damaged(const char *path)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    /* a log beside it is read, but not moved into it */
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db,
                          "PRAGMA locking_mode = EXCLUSIVE;"
                          "PRAGMA trusted_schema = OFF;"
                          "PRAGMA cell_size_check = ON;",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return db;
    (void)sqlite3_close_v2(db); /* nothing was written */
    return NULL;
}

/* One row into the store, if it is as it was written. */
static int save_row(struct sqlite *s, sqlite3_stmt *q, unsigned *n_saved,
                    struct error *err)
{
    cleanup_with(allocation) struct allocation *a = NULL;
    if (!store_row_is_whole(q) ||
        allocation_decode(store_column(q, 2),
                          (size_t)sqlite3_column_bytes(q, 2), &a, NULL) < 0)
        return 0;
    if (s->store.version < a->number)
        s->store.version = a->number;
    ++*n_saved;
    return store_put_allocation(&s->store, a, err);
}

static int save_rows(struct sqlite *s, sqlite3 *db, const char *sql,
                     unsigned *n_saved, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int e = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK)
        while (e == 0 && sqlite3_step(q) == SQLITE_ROW)
            e = save_row(s, q, n_saved, err);
    (void)sqlite3_finalize(q); /* of a database known to be damaged */
    return e;
}

int store_salvage(struct sqlite *s, const char *path, struct error *err)
{
    unsigned n_saved[ARRAY_LEN(sql_salvage)] = {0};
    sqlite3 *db = open_damaged(path);
    int e = store_begin(&s->store, err);
    for (size_t i = 0; db && e == 0 && i < ARRAY_LEN(sql_salvage); i++)
        e = save_rows(s, db, sql_salvage[i], &n_saved[i], err);
    if (e == 0)
        e = store_commit(&s->store, err);
    (void)sqlite3_close_v2(db); /* nothing was written */

    char read[32];
    (void)snprintf(read, sizeof read, "%u",
                   n_saved[0] > n_saved[1] ? n_saved[0] : n_saved[1]);
    log_event(LOG_WARN, "store-salvaged", "from", path, "allocations", read,
              NULL);
    return e;
}
