/* The database of the intents: its tables, and how it is opened. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "advertiser/act/intents_private.h"
#include "model/base/mem.h"
#include "model/io/dbfile.h"
#include "model/io/log.h"

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

#define SQL_PRAGMAS                    \
    "PRAGMA locking_mode = EXCLUSIVE;" \
    "PRAGMA trusted_schema = OFF;"     \
    "PRAGMA cell_size_check = ON;"     \
    "PRAGMA mmap_size = 0;"            \
    "PRAGMA cache_size = -256;"        \
    "PRAGMA temp_store = MEMORY;"      \
    "PRAGMA journal_mode = WAL;"       \
    "PRAGMA synchronous = FULL;"       \
    "PRAGMA journal_size_limit = 4194304;"

/* --- opening ------------------------------------------------------------ */

static int check_schema(struct intents *s, struct error *err)
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
    if (id == 0 && version == 0 && tables == 0)
        return sqldb_execute(&s->d, SQL_SCHEMA, s->d.opening, err);
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

/* -EBADMSG when anything in there is damaged. */
static int check_content(struct intents *s, struct error *err)
{
    static const enum sql all[] = {SQL_EACH, SQL_EACH_PROGRESS,
                                   SQL_EACH_DRAINED, SQL_EACH_LOG,
                                   SQL_EACH_LEFT};
    int e = sqldb_check(&s->d, "the database fails its check", err);
    if (e == 0)
        e = sqldb_prepare(&s->d, intents_sql, s->sql, SQL_COUNT, err);
    for (size_t i = 0; i < ARRAY_LEN(all) && e == 0; i++)
        e = sqldb_each(&s->d, s->sql[all[i]], sqldb_visit_nothing, NULL, err);
    return e;
}

static void close_database(struct intents *s)
{
    sqldb_close(&s->d, s->sql, SQL_COUNT);
}

static int open_database(struct intents *s, const char *dir, struct error *err)
{
    cleanup_free char *path = dir ? xasprintf("%s/" FILE_NAME, dir)
                                  : xstrdup(":memory:");
    int e = sqldb_open(&s->d, path, err);
    if (e == 0)
        e = sqldb_execute(&s->d, SQL_PRAGMAS, s->d.opening, err);
    if (e == 0)
        e = check_schema(s, err);
    if (e == 0)
        e = sqldb_execute(&s->d, SQL_LOGS ";" SQL_LEFT, s->d.opening, err);
    if (e == 0)
        e = check_content(s, err);
    if (e == 0)
        sqldb_trust(&s->d);
    return e;
}

static int open_or_renew(struct intents *s, const char *dir, struct error *err)
{
    struct error why = {0};
    cleanup_free char *aside = NULL;
    int e = dbfile_create(dir, FILE_NAME, err);
    if (e < 0)
        return e;
    e = open_database(s, dir, &why);
    if (e != -EBADMSG) {
        if (e < 0 && err)
            *err = why;
        return e;
    }
    close_database(s);
    e = dbfile_set_aside(dir, FILE_NAME, &aside, err);
    if (e < 0)
        return e;
    log_event(LOG_ERROR, "intents-damaged", "error", why.text, "moved-to",
              aside, NULL);
    e = dbfile_create(dir, FILE_NAME, err);
    return e == 0 ? open_database(s, dir, err) : e;
}

int intents_open(const char *dir, struct intents **ret_intents,
                 struct error *err)
{
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
        e = dir ? open_or_renew(s, dir, err) : open_database(s, NULL, err);
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
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd); /* nothing was written to it */
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
