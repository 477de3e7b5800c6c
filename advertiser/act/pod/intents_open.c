/* The database of the intents: its tables, and how it is opened. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "advertiser/act/pod/intents_private.h"
#include "lib/base/mem.h"
#include "lib/db/dbfile.h"
#include "lib/db/dbsalvage.h"

#define FILE_NAME "intents.db"
enum {
    SCHEMA_VERSION = 1,
    APPLICATION_ID = 0x42494749, /* "BIGI" */
};

/* Every row carries the hash of its other columns, `sum`: SQLite itself does
 * not notice a flipped bit inside a value. */
#define SQL_SCHEMA                                                 \
    "BEGIN;"                                                       \
    "CREATE TABLE pods ("                                          \
    "  uid TEXT PRIMARY KEY, owner TEXT NOT NULL,"                 \
    "  namespace TEXT NOT NULL, name TEXT NOT NULL,"               \
    "  place TEXT NOT NULL, pair_key TEXT NOT NULL,"               \
    "  hook TEXT NOT NULL, env TEXT NOT NULL, spec TEXT NOT NULL," \
    "  files TEXT NOT NULL, is_host INTEGER NOT NULL,"             \
    "  restarts INTEGER NOT NULL, sriov_vfs INTEGER NOT NULL,"     \
    "  sum INTEGER NOT NULL) STRICT;"                              \
    "CREATE TABLE progress ("                                      \
    "  uid TEXT PRIMARY KEY, json TEXT NOT NULL,"                  \
    "  sum INTEGER NOT NULL) STRICT;"                              \
    "CREATE TABLE drained ("                                       \
    "  place TEXT PRIMARY KEY, sum INTEGER NOT NULL) STRICT;"      \
    "PRAGMA application_id = 1112098633;"                          \
    "PRAGMA user_version = 1;"                                     \
    "COMMIT;"

/* Not there in databases of before; who does not know them leaves them
 * alone. */
#define SQL_LOGS                                      \
    "CREATE TABLE IF NOT EXISTS logs ("               \
    "  uid TEXT NOT NULL, container TEXT NOT NULL,"   \
    "  owner TEXT NOT NULL, namespace TEXT NOT NULL," \
    "  name TEXT NOT NULL, init INTEGER NOT NULL,"    \
    "  next INTEGER NOT NULL, text BLOB NOT NULL,"    \
    "  sum INTEGER NOT NULL, PRIMARY KEY (uid, container)) STRICT"

#define SQL_LEFT                                                      \
    "CREATE TABLE IF NOT EXISTS leftovers ("                          \
    "  place TEXT NOT NULL, uid TEXT NOT NULL, sum INTEGER NOT NULL," \
    "  PRIMARY KEY (place, uid)) STRICT"

/* Counts the commits, for the mark.  Who does not know it counts none. */
#define SQL_COMMITS                                      \
    "CREATE TABLE IF NOT EXISTS commits ("               \
    "  id INTEGER PRIMARY KEY, number INTEGER NOT NULL," \
    "  sum INTEGER NOT NULL) STRICT"

#define SQL_PRAGMAS                           \
    SQLDB_PRAGMAS "PRAGMA cache_size = -256;" \
                  "PRAGMA journal_size_limit = 4194304;"

/* --- opening ------------------------------------------------------------ */

/* `fresh`: there is to be nothing in it yet. */
static int check_schema(struct intents *s, bool fresh, struct error *err)
{
    int64_t id = 0, version = 0, tables = 0, counts = 0;
    bool ok = false;
    int e = sqldb_query(&s->d, "PRAGMA application_id", &id, &ok, err);
    if (e == 0)
        e = sqldb_query(&s->d, "PRAGMA user_version", &version, &ok, err);
    if (e == 0)
        e = sqldb_query(
            &s->d, "SELECT count(*) FROM sqlite_schema WHERE name = 'commits'",
            &counts, &ok, err);
    if (e == 0)
        e = sqldb_query(&s->d, "SELECT count(*) FROM sqlite_schema", &tables,
                        &ok, err);
    if (e < 0)
        return e;
    bool empty = id == 0 && version == 0 && tables == 0;
    if (!counts && !fresh && dbmark_get(s->mark))
        return error_set(err, EBADMSG, "intents: the database lacks tables");
    if (empty)
        return sqldb_execute(&s->d, SQL_SCHEMA, s->d.opening, err);
    if (id != APPLICATION_ID && !fresh && dbmark_get(s->mark))
        return error_set(err, EBADMSG,
                         "intents: its header is not what was written");
    if (id != APPLICATION_ID)
        return error_set(err, EINVAL, "intents: the database is not Biga's");
    if (version > SCHEMA_VERSION)
        return error_set(err, ENOTSUP,
                         "intents: the database has schema %" PRId64
                         ", this program knows up to %d: use a newer program, "
                         "or another state directory",
                         version, SCHEMA_VERSION);
    return 0;
}

static int visit_commit(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct intents *s = ctx;
    (void)err;
    s->commits = (uint64_t)sqlite3_column_int64(q, 0);
    return 0;
}

/* -EBADMSG when anything in there is damaged. */
static int check_content(struct intents *s, struct error *err)
{
    static const enum sql all[] = {SQL_EACH, SQL_EACH_PROGRESS,
                                   SQL_EACH_DRAINED, SQL_EACH_LOG,
                                   SQL_EACH_LEFTOVER_DIR};
    int e = sqldb_check(&s->d, "the database fails its check", err);
    if (e == 0)
        e = sqldb_prepare(&s->d, intents_sql, s->sql, SQL_COUNT, err);
    for (size_t i = 0; i < ARRAY_LEN(all) && e == 0; i++)
        e = sqldb_each(&s->d, s->sql[all[i]], sqldb_visit_nothing, NULL, err);
    if (e == 0)
        e = sqldb_each(&s->d, s->sql[SQL_EACH_COMMIT], visit_commit, s, err);
    return e;
}

static int open_database(void *owner, const char *path, bool fresh,
                         struct error *err)
{
    struct intents *s = owner;
    s->commits = 0;
    int e = sqldb_open(&s->d, path, err);
    if (e == 0)
        e = sqldb_execute(&s->d, SQL_PRAGMAS, s->d.opening, err);
    if (e == 0)
        e = check_schema(s, fresh, err);
    if (e == 0)
        e = sqldb_execute(&s->d, SQL_LOGS ";" SQL_LEFT ";" SQL_COMMITS,
                          s->d.opening, err);
    return e == 0 ? check_content(s, err) : e;
}

static void close_database(void *owner)
{
    struct intents *s = owner;
    sqldb_close(&s->d, s->sql, SQL_COUNT);
}

static uint64_t n_commits(const void *owner)
{
    return ((const struct intents *)owner)->commits;
}

static int too_old(const void *owner, uint64_t marked, struct error *err)
{
    return error_set(err, EBADMSG,
                     "intents: has %" PRIu64 " commits, and %" PRIu64
                     " were made: its log is damaged, or it is an older copy",
                     n_commits(owner), marked);
}

static int save_row(void *ctx, const struct dbpages_row *row)
{
    struct intents *s = ctx;
    const struct dbpages_value *v = row->values;
    if (!dbsalvage_is(row, "ti"))
        return 0;
    cleanup_free char *place = xstrndup(v[0].data, v[0].size);
    return intents_drain(s, place, true, NULL);
}

/* What is wanted will be said again, but nobody else knows what was
 * drained. */
static int save(void *owner, const char *dir, uint64_t commits,
                struct error *err)
{
    struct intents *s = owner;
    struct dbpages_found found;
    s->commits = commits; /* and one more: it is not older than the mark */
    int e = intents_touch(s, err);
    if (e == 0 && dbsalvage_each(dir, FILE_NAME, save_row, s, &found) < 0)
        e = error_set(err, EIO, "intents: saving what was drained");
    return e;
}

int intents_open(const char *dir, struct intents **ret_intents,
                 struct error *err)
{
    static const struct sqldb_file file = {
        .name = FILE_NAME,
        .empty = "intents: the database is empty",
        .damaged_event = "intents-damaged",
        .open = open_database,
        .close = close_database,
        .n_commits = n_commits,
        .too_old = too_old,
        .save = save,
    };
    cleanup_with(intents) struct intents *s = xcalloc(1, sizeof *s);
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail on Linux */
    s->lock_fd = -1;
    s->d = (struct sqldb){.noun = "intents",
                          .prefix = "intents: ",
                          .opening = "opening",
                          .reading = "reading",
                          .fsync_event = "intents-fsync-failed"};
    int e = dir ? dbfile_lock(dir, &s->lock_fd, err) : 0;
    if (e == 0)
        e = dir ? sqldb_open_checked(&s->d, &file, dir, s, &s->mark, err)
                : open_database(s, ":memory:", true, err);
    if (e < 0)
        return e;
    *ret_intents = steal(&s);
    return 0;
}

void intents_close(struct intents *s)
{
    if (!s)
        return;
    close_database(s);
    dbmark_close(s->mark);
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd); /* nothing was written to it */
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
