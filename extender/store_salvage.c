/* What can be saved from a damaged database.  Slices come back from their
 * advertisers by themselves; allocations, and what was applied, do not. */
#include <inttypes.h>
#include <stdio.h>

#include "extender/store_private.h"
#include "model/base/mem.h"
#include "model/io/log.h"

enum { COUNT_MAX = 32 };

/* One row that is as it was written, into the store. */
typedef int save_f(struct sqlite *s, sqlite3_stmt *q, unsigned *n_saved,
                   struct error *err);
static save_f save_allocation, save_pod, save_config;

/* From both ends: reading stops at a page that is damaged. */
static const struct salvage {
    const char *what, *forward, *backward;
    save_f *save;
} salvages[] = {
    {"allocations",
     "SELECT namespace, name, json, sum FROM allocations ORDER BY rowid",
     "SELECT namespace, name, json, sum FROM allocations ORDER BY rowid DESC",
     save_allocation},
    {"pods", "SELECT " SQL_POD_COLUMNS " FROM pods ORDER BY rowid",
     "SELECT " SQL_POD_COLUMNS " FROM pods ORDER BY rowid DESC", save_pod},
    {"configs",
     "SELECT secret, namespace, name, json, sum FROM configs ORDER BY rowid",
     "SELECT secret, namespace, name, json, sum FROM configs "
     "ORDER BY rowid DESC",
     save_config},
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

static int save_allocation(struct sqlite *s, sqlite3_stmt *q, unsigned *n_saved,
                           struct error *err)
{
    cleanup_with(allocation) struct allocation *a = NULL;
    if (allocation_decode(store_column(q, 2),
                          (size_t)sqlite3_column_bytes(q, 2), &a, NULL) < 0)
        return 0;
    store_raise_version(&s->store, a->number);
    ++*n_saved;
    return store_put_allocation(&s->store, a, err);
}

static int save_pod(struct sqlite *s, sqlite3_stmt *q, unsigned *n_saved,
                    struct error *err)
{
    struct store_pod pod;
    store_pod_row(q, &pod);
    store_raise_version(&s->store, pod.number);
    ++*n_saved;
    return store_put_pod(&s->store, &pod, err);
}

static int save_config(struct sqlite *s, sqlite3_stmt *q, unsigned *n_saved,
                       struct error *err)
{
    struct store_config config;
    store_config_row(q, &config);
    ++*n_saved;
    return store_put_config(&s->store, &config, err);
}

static int save_rows(struct sqlite *s, sqlite3 *db, const char *sql,
                     save_f *save, unsigned *n_saved, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int e = 0;
    *n_saved = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK)
        while (e == 0 && sqlite3_step(q) == SQLITE_ROW)
            if (sqldb_row_is_whole(q))
                e = save(s, q, n_saved, err);
    (void)sqlite3_finalize(q); /* of a database known to be damaged */
    return e;
}

/* All of one table; `ret_text` gets how many rows. */
static int save_table(struct sqlite *s, sqlite3 *db, const struct salvage *t,
                      char ret_text[COUNT_MAX], struct error *err)
{
    unsigned forward = 0, backward = 0;
    int e = save_rows(s, db, t->forward, t->save, &forward, err);
    if (e == 0)
        e = save_rows(s, db, t->backward, t->save, &backward, err);
    (void)snprintf(ret_text, COUNT_MAX, "%u",
                   forward > backward ? forward : backward);
    return e;
}

int store_salvage(struct sqlite *s, const char *path, struct error *err)
{
    char counts[ARRAY_LEN(salvages)][COUNT_MAX] = {"0", "0", "0"};
    sqlite3 *db = open_damaged(path);
    int e = store_begin(&s->store, err);
    for (size_t i = 0; db && e == 0 && i < ARRAY_LEN(salvages); i++)
        e = save_table(s, db, &salvages[i], counts[i], err);
    if (e == 0)
        e = store_commit(&s->store, err);
    (void)sqlite3_close_v2(db); /* nothing was written */
    log_event(LOG_WARN, "store-salvaged", "from", path, salvages[0].what,
              counts[0], salvages[1].what, counts[1], salvages[2].what,
              counts[2], NULL);
    return e;
}
