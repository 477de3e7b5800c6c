/* The database: its tables, and how it is opened. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/db/dbfile.h"
#include "lib/db/dbsalvage.h"
#include "router/keep/keepdb_private.h"

#define FILE_NAME "keep.db"
enum {
    SCHEMA_VERSION = 1,
    APPLICATION_ID = 0x4249474b, /* "BIGK" */
};

/* Every row carries the hash of its other columns, `sum` (sqldb.h). */
#define SQL_SCHEMA                                       \
    "BEGIN;"                                             \
    "CREATE TABLE records ("                             \
    "  key TEXT PRIMARY KEY, text TEXT NOT NULL,"        \
    "  sum INTEGER NOT NULL) STRICT;"                    \
    "CREATE TABLE commits ("                             \
    "  id INTEGER PRIMARY KEY, number INTEGER NOT NULL," \
    "  sum INTEGER NOT NULL) STRICT;"                    \
    "PRAGMA application_id = 1112098635;"                \
    "PRAGMA user_version = 1;"                           \
    "COMMIT;"

#define SQL_PRAGMAS                           \
    SQLDB_PRAGMAS "PRAGMA cache_size = -256;" \
                  "PRAGMA journal_size_limit = 4194304;"

/* `fresh`: there is to be nothing in it yet. */
static int check_schema(struct keepdb *db, bool fresh, struct error *err)
{
    int64_t id = 0, version = 0, tables = 0;
    bool ok = false;
    int e = sqldb_query(&db->d, "PRAGMA application_id", &id, &ok, err);
    if (e == 0)
        e = sqldb_query(&db->d, "PRAGMA user_version", &version, &ok, err);
    if (e == 0)
        e = sqldb_query(&db->d, "SELECT count(*) FROM sqlite_schema", &tables,
                        &ok, err);
    if (e < 0)
        return e;
    bool used = !fresh && db->mark && dbmark_get(db->mark);
    if (used && (id != APPLICATION_ID || !tables))
        return error_set(err, EBADMSG,
                         "keep: its header is not what was written");
    if (id == 0 && version == 0 && tables == 0)
        return sqldb_execute(&db->d, SQL_SCHEMA, db->d.opening, err);
    if (id != APPLICATION_ID)
        return error_set(err, EINVAL, "keep: the database is not Biga's");
    if (version > SCHEMA_VERSION)
        return error_set(err, ENOTSUP,
                         "keep: the database has schema %" PRId64
                         ", this program knows up to %d: use a newer program, "
                         "or another state directory",
                         version, SCHEMA_VERSION);
    return 0;
}

static int visit_commit(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct keepdb *db = ctx;
    (void)err;
    db->commits = (uint64_t)sqlite3_column_int64(q, 0);
    return 0;
}

/* -EBADMSG when anything in there is damaged. */
static int check_content(struct keepdb *db, struct error *err)
{
    int e = sqldb_check(&db->d, "the database fails its check", err);
    if (e == 0)
        e = sqldb_prepare(&db->d, keepdb_sql, db->sql, KEEPDB_COUNT, err);
    if (e == 0)
        e = sqldb_each(&db->d, db->sql[KEEPDB_EACH], sqldb_visit_nothing, NULL,
                       err);
    if (e == 0)
        e = sqldb_each(&db->d, db->sql[KEEPDB_EACH_COMMIT], visit_commit, db,
                       err);
    return e;
}

static int open_database(void *owner, const char *path, bool fresh,
                         struct error *err)
{
    struct keepdb *db = owner;
    db->commits = 0;
    int e = sqldb_open(&db->d, path, err);
    if (e == 0)
        e = sqldb_execute(&db->d, SQL_PRAGMAS, db->d.opening, err);
    if (e == 0)
        e = check_schema(db, fresh, err);
    return e == 0 ? check_content(db, err) : e;
}

static void close_database(void *owner)
{
    struct keepdb *db = owner;
    sqldb_close(&db->d, db->sql, KEEPDB_COUNT);
}

static uint64_t n_commits(const void *owner)
{
    return ((const struct keepdb *)owner)->commits;
}

static int too_old(const void *owner, uint64_t marked, struct error *err)
{
    return error_set(err, EBADMSG,
                     "keep: has %" PRIu64 " commits, and %" PRIu64
                     " were made: its log is damaged, or it is an older copy",
                     n_commits(owner), marked);
}

static int save_row(void *ctx, const struct dbpages_row *row)
{
    const struct dbpages_value *v = row->values;
    if (!dbsalvage_is(row, "tti"))
        return 0;
    cleanup_free char *key = xstrndup(v[0].data, v[0].size);
    cleanup_free char *text = xstrndup(v[1].data, v[1].size);
    return keepdb_put_row(ctx, key, text, NULL);
}

/* One that was deleted may come back with this: the remote's next list says
 * that it is gone. */
static int save(void *owner, const char *dir, uint64_t commits,
                struct error *err)
{
    struct keepdb *db = owner;
    struct dbpages_found found;
    db->commits = commits; /* and one more: it is not older than the mark */
    int e = keepdb_touch(db, err);
    if (e == 0 && dbsalvage_each(dir, FILE_NAME, save_row, db, &found) < 0)
        e = error_set(err, EIO, "keep: saving what is readable");
    return e;
}

int keepdb_open(const char *dir, struct keepdb **ret_db, struct error *err)
{
    static const struct sqldb_file file = {
        .name = FILE_NAME,
        .empty = "keep: the database is empty",
        .damaged_event = "keep-damaged",
        .open = open_database,
        .close = close_database,
        .n_commits = n_commits,
        .too_old = too_old,
        .save = save,
    };
    cleanup_with(keepdb) struct keepdb *db = xcalloc(1, sizeof *db);
    db->lock_fd = -1;
    db->d = (struct sqldb){.noun = "keep",
                           .prefix = "keep: ",
                           .opening = "opening",
                           .reading = "reading",
                           .fsync_event = "keep-fsync-failed"};
    int e = dir ? dbfile_lock(dir, &db->lock_fd, err) : 0;
    if (e == 0)
        e = keepdb_load_secret(dir, &db->secret, &db->is_new, err);
    if (e == 0)
        e = dir ? sqldb_open_checked(&db->d, &file, dir, db, &db->mark, err)
                : open_database(db, ":memory:", true, err);
    if (e < 0)
        return e;
    *ret_db = steal(&db);
    return 0;
}

void keepdb_close(struct keepdb *db)
{
    if (!db)
        return;
    close_database(db);
    dbmark_close(db->mark);
    if (db->lock_fd >= 0)
        (void)close(db->lock_fd); /* nothing was written to it */
    explicit_bzero(&db->secret, sizeof db->secret);
    free(db);
}

const struct kept_secret *keepdb_secret(const struct keepdb *db)
{
    return &db->secret;
}

bool keepdb_is_new(const struct keepdb *db)
{
    return db->is_new;
}
