#include "extender/keep/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/keep/store_private.h"
#include "lib/base/mem.h"
#include "lib/db/dbfile.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

#define STORE_FILE_NAME "biga.db"
enum {
    SCHEMA_VERSION = 3,
    MARKED_VERSION = 2,          /* the first that has a mark beside it */
    APPLICATION_ID = 0x42494741, /* "BIGA" */
    LOG_PAGES_MAX = 1000,        /* from then on they are moved into the
                                  * database */
};

/* Every row carries the hash of its other columns, `sum`: SQLite itself does
 * not notice a flipped bit inside a value. */
#define SQL_APPLIED                                                     \
    "CREATE TABLE pods ("                                               \
    "  namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL," \
    "  number INTEGER NOT NULL, deleting INTEGER NOT NULL,"             \
    "  grace INTEGER NOT NULL, ended INTEGER NOT NULL,"                 \
    "  reason TEXT NOT NULL, message TEXT NOT NULL,"                    \
    "  json TEXT NOT NULL, next TEXT NOT NULL, sum INTEGER NOT NULL,"   \
    "  PRIMARY KEY (namespace, name)) STRICT;"                          \
    "CREATE TABLE configs ("                                            \
    "  secret INTEGER NOT NULL, namespace TEXT NOT NULL,"               \
    "  name TEXT NOT NULL, json TEXT NOT NULL, sum INTEGER NOT NULL,"   \
    "  PRIMARY KEY (secret, namespace, name)) STRICT;"

#define SQL_DRAINS                                   \
    "CREATE TABLE IF NOT EXISTS drains ("            \
    "  node TEXT NOT NULL, card TEXT NOT NULL,"      \
    "  evict INTEGER NOT NULL, since TEXT NOT NULL," \
    "  who TEXT NOT NULL, reason TEXT NOT NULL,"     \
    "  sum INTEGER NOT NULL, PRIMARY KEY (node, card)) STRICT;"

#define SQL_SCHEMA                                                       \
    "BEGIN;"                                                             \
    "CREATE TABLE meta ("                                                \
    "  key TEXT PRIMARY KEY, value INTEGER NOT NULL,"                    \
    "  sum INTEGER NOT NULL) STRICT;"                                    \
    "CREATE TABLE slices ("                                              \
    "  name TEXT PRIMARY KEY, node TEXT NOT NULL,"                       \
    "  version INTEGER NOT NULL, json TEXT NOT NULL,"                    \
    "  sum INTEGER NOT NULL) STRICT;"                                    \
    "CREATE TABLE retired_boots ("                                       \
    "  seq INTEGER PRIMARY KEY, node TEXT NOT NULL,"                     \
    "  boot_id TEXT NOT NULL, sum INTEGER NOT NULL,"                     \
    "  UNIQUE (node, boot_id)) STRICT;"                                  \
    "CREATE TABLE allocations ("                                         \
    "  namespace TEXT NOT NULL, name TEXT NOT NULL, json TEXT NOT NULL," \
    "  sum INTEGER NOT NULL, PRIMARY KEY (namespace, name)) STRICT;"     \
    "PRAGMA application_id = 1112098625;" SQL_APPLIED SQL_DRAINS         \
    "PRAGMA user_version = 3;"                                           \
    "COMMIT;"

/* From schema version 1, which had no tables of applied objects. */
#define SQL_SCHEMA_1_TO_3 \
    "BEGIN;" SQL_APPLIED SQL_DRAINS "PRAGMA user_version = 3; COMMIT;"
/* From version 2, which had none of drains. */
#define SQL_SCHEMA_2_TO_3 "BEGIN;" SQL_DRAINS "PRAGMA user_version = 3; COMMIT;"

#define SQL_PRAGMAS SQLDB_PRAGMAS "PRAGMA journal_size_limit = 16777216;"

static const char *const sql_texts[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_PUT_META] = "INSERT INTO meta (key, value, sum) VALUES (?1, ?2, ?3) "
                     "ON CONFLICT (key) DO UPDATE SET value = ?2, sum = ?3",
    [SQL_DELETE_META] = "DELETE FROM meta WHERE key = ?1",
    [SQL_EACH_META] = "SELECT key, value, sum FROM meta ORDER BY key",
    [SQL_TRIM_TRUSTED] = "DELETE FROM meta WHERE key GLOB 'trusted/*'",
    [SQL_PUT_SLICE] =
        "INSERT INTO slices (name, node, version, json, sum) "
        "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO UPDATE "
        "SET node = ?2, version = ?3, json = ?4, sum = ?5",
    [SQL_DELETE_SLICE] = "DELETE FROM slices WHERE name = ?1",
    [SQL_GET_SLICE] = "SELECT name, node, version, json, sum FROM slices "
                      "WHERE name = ?1",
    [SQL_EACH_SLICE] = "SELECT name, node, version, json, sum FROM slices "
                       "WHERE name > ?1 ORDER BY name",
    [SQL_PUT_BOOT] = "INSERT OR REPLACE INTO retired_boots "
                     "(node, boot_id, sum) VALUES (?1, ?2, ?3)",
    [SQL_TRIM_BOOTS] =
        "DELETE FROM retired_boots WHERE node = ?1 AND seq NOT IN "
        "(SELECT seq FROM retired_boots WHERE node = ?1 "
        "ORDER BY seq DESC LIMIT ?2)",
    [SQL_EACH_BOOT] = "SELECT node, boot_id, sum FROM retired_boots "
                      "ORDER BY seq",
    [SQL_PUT_ALLOCATION] =
        "INSERT INTO allocations (namespace, name, json, sum) "
        "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (namespace, name) "
        "DO UPDATE SET json = ?3, sum = ?4",
    [SQL_DELETE_ALLOCATION] = "DELETE FROM allocations "
                              "WHERE namespace = ?1 AND name = ?2",
    [SQL_EACH_ALLOCATION] = "SELECT namespace, name, json, sum "
                            "FROM allocations ORDER BY namespace, name",
    [SQL_PUT_POD] =
        "INSERT INTO pods (namespace, name, uid, number, deleting, grace, "
        "ended, reason, message, json, next, sum) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) "
        "ON CONFLICT (namespace, name) DO UPDATE SET uid = ?3, number = ?4, "
        "deleting = ?5, grace = ?6, ended = ?7, reason = ?8, message = ?9, "
        "json = ?10, next = ?11, sum = ?12",
    [SQL_DELETE_POD] = "DELETE FROM pods WHERE namespace = ?1 AND name = ?2",
    [SQL_EACH_POD] = "SELECT " SQL_POD_COLUMNS " FROM pods "
                     "ORDER BY namespace, name",
    [SQL_PUT_CONFIG] =
        "INSERT INTO configs (secret, namespace, name, json, sum) "
        "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (secret, namespace, name) "
        "DO UPDATE SET json = ?4, sum = ?5",
    [SQL_DELETE_CONFIG] = "DELETE FROM configs WHERE secret = ?1 "
                          "AND namespace = ?2 AND name = ?3",
    [SQL_EACH_CONFIG] = "SELECT secret, namespace, name, json, sum "
                        "FROM configs ORDER BY namespace, secret, name",
    [SQL_PUT_DRAIN] =
        "INSERT INTO drains (node, card, evict, since, who, reason, sum) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (node, card) "
        "DO UPDATE SET evict = ?3, since = ?4, who = ?5, reason = ?6, sum = ?7",
    [SQL_DELETE_DRAIN] = "DELETE FROM drains WHERE node = ?1 AND card = ?2",
    [SQL_EACH_DRAIN] = "SELECT node, card, evict, since, who, reason, sum "
                       "FROM drains ORDER BY node, card",
};

/* --- statements ---------------------------------------------------------- */

void store_bind(sqlite3_stmt *q, int at, const char *text, size_t size)
{
    (void)sqlite3_bind_text64(q, at, text, size, SQLITE_STATIC, SQLITE_UTF8);
}

int store_run(struct store *s, enum sql which, const char *what,
              struct error *err)
{
    return sqldb_run(&s->d, s->sql[which], what, err);
}

int store_each_row(struct store *s, enum sql which, sqldb_row_f *visit,
                   void *ctx, struct error *err)
{
    return store_has_database(s)
               ? sqldb_each(&s->d, s->sql[which], visit, ctx, err)
               : 0;
}

/* --- opening ----------------------------------------------------------- */

static int on_log(void *ctx, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct store *)ctx)->log_pages = pages;
    return SQLITE_OK;
}

/* `fresh`: the database has just been created and may be empty.  Otherwise an
 * empty one is damage if the mark says that something was committed. */
static int check_schema(struct store *s, bool fresh, struct error *err)
{
    int64_t id = 0, version = 0, tables = 0;
    bool ok = false;
    int e = sqldb_query(&s->d, "PRAGMA application_id", &id, &ok, err);
    if (e == 0)
        e = sqldb_query(&s->d, "PRAGMA user_version", &version, &ok, err);
    if (e == 0)
        e = sqldb_query(&s->d, "SELECT count(*) FROM sqlite_schema", &tables,
                        &ok, err);
    if (e < 0)
        return e;
    bool empty = id == 0 && version == 0 && tables == 0;
    bool ours = !fresh && s->mark && dbmark_get(s->mark);
    if (ours && empty)
        return error_set(err, EBADMSG, "database: nothing is in it");
    if (ours && (id != APPLICATION_ID || version < MARKED_VERSION))
        return error_set(err, EBADMSG,
                         "database: its header is not what was written");
    if (empty)
        return sqldb_execute(&s->d, SQL_SCHEMA, "making the database", err);
    if (id != APPLICATION_ID)
        return error_set(err, EINVAL, "database: not one of Biga's");
    if (version > SCHEMA_VERSION)
        return error_set(err, ENOTSUP,
                         "database: has schema %" PRId64
                         ", this program knows up to %d: use a newer "
                         "program, or another state directory",
                         version, SCHEMA_VERSION);
    if (version == SCHEMA_VERSION)
        return 0;
    return sqldb_execute(&s->d,
                         version < 2 ? SQL_SCHEMA_1_TO_3 : SQL_SCHEMA_2_TO_3,
                         "renewing the database", err);
}

static int visit_meta(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct store *s = ctx;
    (void)err;
    if (strcmp(store_column(q, 0), "version") == 0)
        s->version = (uint64_t)sqlite3_column_int64(q, 1);
    store_load_doubt(s, store_column(q, 0), sqlite3_column_int64(q, 1));
    return 0;
}

/* -EBADMSG when any row is damaged. */
static int check_content(struct store *s, struct error *err)
{
    static const enum sql others[] = {SQL_EACH_SLICE,      SQL_EACH_BOOT,
                                      SQL_EACH_ALLOCATION, SQL_EACH_POD,
                                      SQL_EACH_CONFIG,     SQL_EACH_DRAIN};
    int e = sqldb_check(&s->d, "fails its check", err);
    if (e == 0)
        e = sqldb_prepare(&s->d, sql_texts, s->sql, SQL_COUNT, err);
    if (e == 0)
        e = store_each_row(s, SQL_EACH_META, visit_meta, s, err);
    store_bind(s->sql[SQL_EACH_SLICE], 1, "", 0);
    for (size_t i = 0; i < ARRAY_LEN(others) && e == 0; i++)
        e = store_each_row(s, others[i], sqldb_visit_nothing, NULL, err);
    store_committed(s);
    return e;
}

static int open_database(void *owner, const char *path, bool fresh,
                         struct error *err)
{
    struct store *s = owner;
    s->version = s->doubt = 0;
    int e = sqldb_open(&s->d, path, err);
    if (e < 0)
        return e;
    (void)sqlite3_wal_hook(s->d.db, on_log, s);
    e = sqldb_execute(&s->d, SQL_PRAGMAS, path, err);
    if (e == 0)
        e = check_schema(s, fresh, err);
    return e == 0 ? check_content(s, err) : e;
}

static void close_database(void *owner)
{
    struct store *s = owner;
    sqldb_close(&s->d, s->sql, SQL_COUNT);
}

static uint64_t version_of(const void *owner)
{
    return ((const struct store *)owner)->version;
}

static int too_old(const void *owner, uint64_t marked, struct error *err)
{
    return error_set(err, EBADMSG,
                     "database: is at version %" PRIu64 ", and %" PRIu64
                     " was acknowledged: its log is damaged, or it is an "
                     "older copy",
                     version_of(owner), marked);
}

static int save(void *owner, const char *dir, uint64_t version,
                struct error *err)
{
    return store_salvage(owner, dir, STORE_FILE_NAME, version, err);
}

static int open_file(struct store *s, const char *dir, struct error *err)
{
    static const struct sqldb_file file = {
        .name = STORE_FILE_NAME,
        .empty = "database: is empty",
        .damaged_event = "store-damaged",
        .open = open_database,
        .close = close_database,
        .n_commits = version_of,
        .too_old = too_old,
        .save = save,
    };
    int e = sqldb_open_checked(&s->d, &file, dir, s, &s->mark, err);
    if (e == 0)
        s->past_mark = s->version > dbmark_get(s->mark);
    return e;
}

int store_open(enum store_kind kind, const char *dir, struct store **ret_store,
               struct error *err)
{
    if (kind == STORE_KUBERNETES && dir)
        return error_set(err, EINVAL,
                         "--state %s: the API server keeps the state of "
                         "--store kubernetes",
                         dir);
    struct store *s = xcalloc(1, sizeof *s);
    s->kind = kind;
    s->lock_fd = -1;
    s->row = STR_INIT(STR_MAX_DEFAULT);
    s->d = (struct sqldb){.noun = "database",
                          .prefix = "",
                          .opening = "database",
                          .reading = "reading the database",
                          .fsync_event = "store-fsync-failed"};
    int e = dir ? dbfile_lock(dir, &s->lock_fd, err) : 0;
    if (e == 0 && dir)
        e = open_file(s, dir, err);
    else if (e == 0 && kind == STORE_SQLITE)
        e = open_database(s, ":memory:", true, err);
    if (e < 0) {
        store_close(s);
        return dir ? error_wrap(err, "--state %s", dir) : e;
    }
    *ret_store = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    close_database(s);
    dbmark_close(s->mark);
    str_fini(&s->row);
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd); /* nothing was written to it */
    free(s);
}

enum store_kind store_get_kind(const struct store *s)
{
    return s->kind;
}

bool store_past_mark(const struct store *s)
{
    return s->past_mark;
}

/* --- versions ---------------------------------------------------------- */

uint64_t store_resource_version(const struct store *s)
{
    return s->version;
}

uint64_t store_take_version(struct store *s)
{
    return ++s->version;
}

void store_raise_version(struct store *s, uint64_t version)
{
    if (s->version < version)
        s->version = version;
}

/* --- transactions ------------------------------------------------------ */

int store_begin(struct store *s, struct error *err)
{
    if (!store_has_database(s))
        return 0;
    return store_run(s, SQL_BEGIN, "beginning a transaction", err);
}

/* Each commit gets a version of its own, by which the mark identifies it, even
 * when no operation took one. */
static int put_version(struct store *s, struct error *err)
{
    if (s->version == s->committed)
        (void)store_take_version(s);
    return store_put_meta(s, "version", "", s->version, "writing the version",
                          err);
}

static int commit(struct store *s, struct error *err)
{
    int e = put_version(s, err);
    if (e == 0 && failpoint("commit"))
        e = error_set(err, ENOSPC, "committing: a failpoint");
    if (e == 0 && failpoint("fsync"))
        sqldb_die_of_fsync(&s->d, SQLITE_IOERR_FSYNC);
    if (e == 0)
        e = store_run(s, SQL_COMMIT, "committing", err);
    if (e == 0 && s->mark)
        dbmark_set(s->mark, s->version);
    return e;
}

int store_commit(struct store *s, struct error *err)
{
    int e = store_has_database(s) ? commit(s, err) : 0;
    if (e < 0)
        store_rollback(s);
    else
        store_committed(s);
    return e;
}

void store_rollback(struct store *s)
{
    s->version = s->committed;
    s->doubt = s->committed_doubt;
    if (store_has_database(s) && !sqlite3_get_autocommit(s->d.db))
        (void)store_run(s, SQL_ROLLBACK, "",
                        NULL); /* if even this fails nothing else can be done */
}

void store_tidy(struct store *s)
{
    if (!store_has_database(s) || s->log_pages < LOG_PAGES_MAX)
        return;
    int rc = sqlite3_wal_checkpoint_v2(s->d.db, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                       NULL, NULL);
    sqldb_die_of_fsync(&s->d, rc);
    if (s->mark)
        dbmark_sync(s->mark);
    if (rc == SQLITE_OK)
        s->log_pages = 0;
    else if (!s->tidy_failed)
        log_event(LOG_WARN, "store-tidy-failed", "error", sqlite3_errstr(rc),
                  NULL);
    s->tidy_failed = rc != SQLITE_OK;
}
