#include "extender/history/history_db.h"

#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"

enum {
    SCHEMA_VERSION = 1,
    APPLICATION_ID = 0x42494748, /* "BIGH" */
    BUSY_MS = 5000,              /* a reader opens while a log is begun anew */
};

/* Every row carries the hash of its other columns, `sum` (sqldb.h).  `seq` and
 * `id` grow with time. */
#define SQL_SCHEMA                                                    \
    "BEGIN;"                                                          \
    "CREATE TABLE names ("                                            \
    "  id INTEGER PRIMARY KEY AUTOINCREMENT, hash INTEGER NOT NULL,"  \
    "  text TEXT NOT NULL, day INTEGER NOT NULL,"                     \
    "  sum INTEGER NOT NULL) STRICT;"                                 \
    "CREATE INDEX names_hash ON names (hash);"                        \
    "CREATE TABLE events ("                                           \
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,"   \
    "  kind INTEGER NOT NULL, reason INTEGER NOT NULL,"               \
    "  object INTEGER NOT NULL, node INTEGER NOT NULL,"               \
    "  job INTEGER NOT NULL, pair INTEGER NOT NULL,"                  \
    "  message INTEGER NOT NULL, count INTEGER NOT NULL,"             \
    "  last INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;"          \
    "CREATE INDEX events_object ON events (object);"                  \
    "CREATE INDEX events_node ON events (node) WHERE node > 0;"       \
    "CREATE INDEX events_job ON events (job) WHERE job > 0;"          \
    "CREATE TABLE places ("                                           \
    "  id INTEGER PRIMARY KEY AUTOINCREMENT, pod INTEGER NOT NULL,"   \
    "  job INTEGER NOT NULL, node INTEGER NOT NULL,"                  \
    "  pair INTEGER NOT NULL, role INTEGER NOT NULL,"                 \
    "  devices INTEGER NOT NULL, since INTEGER NOT NULL,"             \
    "  until INTEGER NOT NULL, level INTEGER NOT NULL,"               \
    "  sum INTEGER NOT NULL) STRICT;"                                 \
    "CREATE INDEX places_node ON places (node, level, since, until);" \
    "CREATE INDEX places_pod ON places (pod);"                        \
    "CREATE INDEX places_job ON places (job) WHERE job > 0;"          \
    "CREATE INDEX places_open ON places (level) WHERE level = 63;"    \
    "CREATE TABLE nodes ("                                            \
    "  id INTEGER PRIMARY KEY AUTOINCREMENT, node INTEGER NOT NULL,"  \
    "  since INTEGER NOT NULL, status INTEGER NOT NULL,"              \
    "  cards INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;"         \
    "CREATE INDEX nodes_node ON nodes (node, since);"                 \
    "PRAGMA application_id = 1112098632;"                             \
    "PRAGMA user_version = 1;"                                        \
    "COMMIT;"

/* Unlike the state, it is read beside being written. */
#define SQL_PRAGMAS                \
    "PRAGMA trusted_schema = OFF;" \
    "PRAGMA cell_size_check = ON;" \
    "PRAGMA temp_store = MEMORY;"  \
    "PRAGMA cache_size = -8192;"
#define SQL_PRAGMAS_WRITER              \
    SQL_PRAGMAS                         \
    "PRAGMA auto_vacuum = INCREMENTAL;" \
    "PRAGMA journal_mode = WAL;"        \
    "PRAGMA synchronous = FULL;"        \
    "PRAGMA journal_size_limit = 16777216;"
#define SQL_PRAGMAS_READER SQL_PRAGMAS "PRAGMA query_only = ON;"

#define EVENT_COLUMNS                                                        \
    "seq, at, kind, reason, object, node, job, pair, message, count, last, " \
    "sum"
#define EVENTS_UP(where)                                             \
    "SELECT " EVENT_COLUMNS " FROM events WHERE " where "seq >= ?1 " \
    "ORDER BY seq LIMIT ?3"
#define EVENTS_DOWN(where)                                           \
    "SELECT " EVENT_COLUMNS " FROM events WHERE " where "seq <= ?1 " \
    "ORDER BY seq DESC LIMIT ?3"
#define PLACE_COLUMNS \
    "id, pod, job, node, pair, role, devices, since, until, level, sum"
#define NODE_COLUMNS "id, node, since, status, cards, sum"

/* A "+" hides a value from the choice of a partial index, for which a statement
 * would be prepared anew with each value. */
static const char *const sql_texts[HISTORY_SQL_COUNT] = {
    [HISTORY_BEGIN] = "BEGIN IMMEDIATE",
    [HISTORY_BEGIN_READ] = "BEGIN",
    [HISTORY_COMMIT] = "COMMIT",
    [HISTORY_ROLLBACK] = "ROLLBACK",
    [HISTORY_PUT_NAME] =
        "INSERT INTO names (id, hash, text, day, sum) VALUES (?1, ?2, ?3, ?4, "
        "?5)",
    [HISTORY_TOUCH_NAME] = "UPDATE names SET day = ?4, sum = ?5 WHERE id = ?1 "
                           "AND hash = ?2 AND text = ?3",
    [HISTORY_PUT_EVENT] = "INSERT INTO events (" EVENT_COLUMNS
                          ") VALUES (?1, ?2, ?3, ?4, ?5, "
                          "?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [HISTORY_COUNT_EVENT] =
        "UPDATE events SET count = ?10, last = ?11, sum = ?12 WHERE seq = ?1 "
        "AND at = ?2 AND kind = ?3 AND reason = ?4 AND object = ?5 AND "
        "node = ?6 AND job = ?7 AND pair = ?8 AND message = ?9",
    [HISTORY_PUT_PLACE] = "INSERT INTO places (" PLACE_COLUMNS
                          ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
                          "?11)",
    [HISTORY_CLOSE_PLACE] =
        "UPDATE places SET until = ?9, level = ?10, sum = ?11 WHERE id = ?1 "
        "AND pod = ?2 AND job = ?3 AND node = ?4 AND pair = ?5 AND role = ?6 "
        "AND devices = ?7 AND since = ?8",
    [HISTORY_PUT_NODE] = "INSERT INTO nodes (" NODE_COLUMNS
                         ") VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [HISTORY_DROP_EVENTS] = "DELETE FROM events WHERE seq IN (SELECT seq FROM "
                            "events WHERE seq < ?1 ORDER BY seq LIMIT ?2)",
    [HISTORY_DROP_PLACES] =
        "DELETE FROM places WHERE id IN (SELECT id FROM places WHERE id < ?1 "
        "AND until > 0 AND until < ?2 ORDER BY id LIMIT ?3)",
    /* what held at ?1 stays */
    [HISTORY_DROP_NODES] =
        "DELETE FROM nodes WHERE since < ?1 AND (status = 99 OR EXISTS "
        "(SELECT 1 FROM nodes AS later WHERE later.node = nodes.node AND "
        "later.since <= ?1 AND (later.since > nodes.since OR "
        "later.since = nodes.since AND later.id > nodes.id)))",
    [HISTORY_DROP_NAMES] = "DELETE FROM names WHERE day < ?1",
    [HISTORY_FIND_NAME] =
        "SELECT id, hash, text, day, sum FROM names WHERE hash = ?1",
    [HISTORY_GET_NAME] =
        "SELECT id, hash, text, day, sum FROM names WHERE id = ?1",
    [HISTORY_NAMES_FROM] = "SELECT id, hash, text, day, sum FROM names WHERE "
                           "id > ?1 ORDER BY id",
    [HISTORY_OPEN_PLACES] = "SELECT " PLACE_COLUMNS " FROM places WHERE "
                            "level = 63",
    [HISTORY_LAST_NODES] = "SELECT " NODE_COLUMNS
                           " FROM nodes ORDER BY node, since, id",
    [HISTORY_EVENT_AT] =
        "SELECT at FROM events WHERE seq >= ?1 ORDER BY seq LIMIT 1",
    [HISTORY_PLACE_AT] =
        "SELECT since FROM places WHERE id >= ?1 ORDER BY id LIMIT 1",
    [HISTORY_EVENTS_UP] = EVENTS_UP(""),
    [HISTORY_EVENTS_DOWN] = EVENTS_DOWN(""),
    [HISTORY_EVENTS_OF_OBJECT_UP] = EVENTS_UP("object = ?2 AND "),
    [HISTORY_EVENTS_OF_OBJECT_DOWN] = EVENTS_DOWN("object = ?2 AND "),
    [HISTORY_EVENTS_OF_NODE_UP] = EVENTS_UP("node = +?2 AND node > 0 AND "),
    [HISTORY_EVENTS_OF_NODE_DOWN] = EVENTS_DOWN("node = +?2 AND node > 0 AND "),
    [HISTORY_EVENTS_OF_JOB_UP] = EVENTS_UP("job = +?2 AND job > 0 AND "),
    [HISTORY_EVENTS_OF_JOB_DOWN] = EVENTS_DOWN("job = +?2 AND job > 0 AND "),
    [HISTORY_LAST_OF_OBJECT] = "SELECT " EVENT_COLUMNS
                               " FROM events WHERE object = ?1 AND kind = ?2 "
                               "AND ?3 >> reason & 1 ORDER BY seq DESC LIMIT 1",
    [HISTORY_PLACES_OF_NODE] =
        "SELECT " PLACE_COLUMNS " FROM places WHERE node = ?1 AND level = +?2 "
        "AND since > ?3 AND since <= ?4 AND (until = 0 OR until > ?4)",
    [HISTORY_PLACES_OF_JOB] = "SELECT " PLACE_COLUMNS " FROM places WHERE "
                              "job = +?1 AND job > 0 ORDER BY id DESC LIMIT ?2",
    [HISTORY_PLACES_OF_POD] = "SELECT " PLACE_COLUMNS " FROM places WHERE "
                              "pod = ?1 ORDER BY id DESC LIMIT ?2",
    [HISTORY_NODE_THEN] = "SELECT " NODE_COLUMNS
                          " FROM nodes WHERE node = ?1 AND since <= ?2 "
                          "ORDER BY since DESC, id DESC LIMIT 1",
    [HISTORY_NODES_ALL] =
        "WITH RECURSIVE each (node) AS (SELECT min(node) FROM nodes UNION ALL "
        "SELECT (SELECT min(node) FROM nodes WHERE node > each.node) FROM each "
        "WHERE each.node IS NOT NULL) SELECT node FROM each WHERE node IS NOT "
        "NULL",
};

int history_level(int64_t duration_ms)
{
    int level = 0;
    while (duration_ms >= history_level_reach(level))
        level++;
    return level;
}

/* --- opening -------------------------------------------------------------- */

static int check_identity(struct history_db *db, struct error *err)
{
    int64_t application, version;
    bool ignored;
    int e = sqldb_query(&db->d, "PRAGMA application_id", &application, &ignored,
                        err);
    if (e == 0)
        e = sqldb_query(&db->d, "PRAGMA user_version", &version, &ignored, err);
    if (e < 0)
        return e;
    if (application == APPLICATION_ID && version > SCHEMA_VERSION)
        return error_set(err, EPROTO,
                         "the history is of version %lld, must be at most %d: "
                         "a newer Biga has written it",
                         (long long)version, SCHEMA_VERSION);
    if (application == APPLICATION_ID && version == SCHEMA_VERSION)
        return 0;
    if (application != 0 || version != 0)
        return error_set(err, EBADMSG, "the file is not a history");
    return sqldb_execute(&db->d, SQL_SCHEMA, "making the history", err);
}

static int open_with(struct history_db *db, const char *path,
                     const char *pragmas, struct error *err)
{
    *db = (struct history_db){
        .d = {.noun = "history",
              .prefix = "history: ",
              .opening = "opening it",
              .reading = "reading it",
              .fsync_event = "history-fsync-failed"},
    };
    int e = sqldb_open(&db->d, path, err);
    if (e == 0)
        (void)sqlite3_busy_timeout(db->d.db, BUSY_MS);
    return e == 0 ? sqldb_execute(&db->d, pragmas, db->d.opening, err) : e;
}

static int prepare(struct history_db *db, struct error *err)
{
    return sqldb_prepare(&db->d, sql_texts, db->sql, HISTORY_SQL_COUNT, err);
}

int history_db_open(struct history_db *db, const char *path, struct error *err)
{
    int e = open_with(db, path, SQL_PRAGMAS_WRITER, err);
    if (e == 0)
        e = check_identity(db, err);
    if (e == 0)
        e = prepare(db, err);
    if (e == 0)
        sqldb_trust(&db->d);
    else
        history_db_close(db);
    return e;
}

int history_db_open_reader(struct history_db *db, const char *path,
                           struct error *err)
{
    int e = open_with(db, path, SQL_PRAGMAS_READER, err);
    if (e == 0)
        e = prepare(db, err);
    if (e < 0)
        history_db_close(db);
    return e;
}

void history_db_close(struct history_db *db)
{
    sqldb_close(&db->d, db->sql, HISTORY_SQL_COUNT);
}

/* --- rows ----------------------------------------------------------------- */

void history_row_bare(struct history_row *r, int64_t value)
{
    (void)sqlite3_bind_int64(r->q, ++r->n, value);
}

void history_row_int(struct history_row *r, int64_t value)
{
    history_row_bare(r, value);
    r->sum = sum_u64(r->sum, (uint64_t)value);
}

void history_row_text(struct history_row *r, const char *text)
{
    (void)sqlite3_bind_text(r->q, ++r->n, text, -1, SQLITE_STATIC);
    r->sum = sum_text(r->sum, text);
}

void history_row_sum(struct history_row *r)
{
    history_row_bare(r, r->sum);
}

int history_row_run(struct history_db *db, struct history_row *r,
                    struct error *err)
{
    return sqldb_run(&db->d, r->q, "writing it", err);
}

int64_t history_name_hash(const char *text)
{
    return (int64_t)(hash_bytes(text, strlen(text)) & UINT32_MAX);
}

/* --- by time -------------------------------------------------------------- */

/* The first value of the first row from `number` on, and whether there is
 * one. */
static int first_from(struct history_db *db, enum history_sql which,
                      int64_t number, int64_t *ret_ms, bool *ret_some,
                      struct error *err)
{
    sqlite3_stmt *q = db->sql[which];
    (void)sqlite3_bind_int64(q, 1, number);
    int rc = sqlite3_step(q);
    *ret_some = rc == SQLITE_ROW;
    *ret_ms = *ret_some ? sqlite3_column_int64(q, 0) : 0;
    (void)sqlite3_reset(q); /* repeats the error of step */
    (void)sqlite3_clear_bindings(q);
    if (*ret_some || rc == SQLITE_DONE)
        return 0;
    bool damaged = (rc & 0xff) == SQLITE_CORRUPT;
    return error_set(err, damaged ? EBADMSG : EIO, "history: reading it: %s",
                     sqlite3_errmsg(db->d.db));
}

int history_seq_from(struct history_db *db, enum history_sql at, int64_t ms,
                     int64_t *ret_seq, struct error *err)
{
    int64_t low = 0, high = INT64_C(1) << 62;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, found;
        bool some;
        int e = first_from(db, at, middle, &found, &some, err);
        if (e < 0)
            return e;
        if (!some || found >= ms)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_seq = low;
    return 0;
}
