/* history_db - the tables of the history, and one connection to them: the one
 * that writes, or one that reads beside it.
 *
 * Texts stand in a table of their own and once each.  Intervals carry a level,
 * by how long they were: what was at a moment is found from the moment back as
 * far as each level can reach, so that a question costs the same whatever was
 * before and after. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_DB_H
#define BIGA_EXTENDER_HISTORY_HISTORY_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/db/sqldb.h"

#define HISTORY_FILE "history.db"

enum {
    HISTORY_LEVELS = 13,           /* the last one is of all longer ones */
    HISTORY_LEVEL_OPEN = 63,       /* of what goes on */
    HISTORY_NODE_GONE_STATUS = 99, /* in place of an enum node_status */
};
/* An interval of this level is shorter than history_level_reach(). */
int history_level(int64_t duration_ms);
static inline int64_t history_level_reach(int level)
{
    return level >= HISTORY_LEVELS - 1 ? INT64_MAX / 2
                                       : (INT64_C(1) << 2 * (level + 1)) * 1000;
}

enum history_sql {
    HISTORY_BEGIN,
    HISTORY_BEGIN_READ,
    HISTORY_COMMIT,
    HISTORY_ROLLBACK,
    /* writing */
    HISTORY_PUT_NAME,
    HISTORY_TOUCH_NAME,
    HISTORY_PUT_EVENT,
    HISTORY_COUNT_EVENT,
    HISTORY_PUT_PLACE,
    HISTORY_CLOSE_PLACE,
    HISTORY_PUT_NODE,
    HISTORY_DROP_EVENTS,
    HISTORY_DROP_PLACES,
    HISTORY_DROP_NODES,
    HISTORY_DROP_NAMES,
    /* reading */
    HISTORY_FIND_NAME,
    HISTORY_GET_NAME,
    HISTORY_NAMES_FROM,
    HISTORY_OPEN_PLACES,
    HISTORY_LAST_NODES,
    HISTORY_EVENT_AT,
    HISTORY_PLACE_AT,
    HISTORY_EVENTS_UP,
    HISTORY_EVENTS_DOWN,
    HISTORY_EVENTS_OF_OBJECT_UP,
    HISTORY_EVENTS_OF_OBJECT_DOWN,
    HISTORY_EVENTS_OF_NODE_UP,
    HISTORY_EVENTS_OF_NODE_DOWN,
    HISTORY_EVENTS_OF_JOB_UP,
    HISTORY_EVENTS_OF_JOB_DOWN,
    HISTORY_LAST_OF_OBJECT,
    HISTORY_PLACES_OF_NODE,
    HISTORY_PLACES_OF_JOB,
    HISTORY_PLACES_OF_POD,
    HISTORY_NODE_THEN,
    HISTORY_NODES_ALL,
    HISTORY_SQL_COUNT
};

struct history_db {
    struct sqldb d;
    sqlite3_stmt *sql[HISTORY_SQL_COUNT];
};

/* The one that writes, which makes the tables when there are none; -EBADMSG:
 * damaged, or not a history; -EPROTO: of a newer program. */
int history_db_open(struct history_db *db, const char *path, struct error *err);
/* One that reads, beside it. */
int history_db_open_reader(struct history_db *db, const char *path,
                           struct error *err);
void history_db_close(struct history_db *db);

/* --- rows ----------------------------------------------------------------- */

/* Values of a statement in order, and their sum. */
struct history_row {
    sqlite3_stmt *q;
    int n;
    int64_t sum;
};
static inline struct history_row history_row(struct history_db *db,
                                             enum history_sql which)
{
    return (struct history_row){.q = db->sql[which]};
}
void history_row_int(struct history_row *r, int64_t value);
void history_row_text(struct history_row *r, const char *text); /* borrowed */
void history_row_sum(struct history_row *r);
/* A value that is none of the row's. */
void history_row_bare(struct history_row *r, int64_t value);
int history_row_run(struct history_db *db, struct history_row *r,
                    struct error *err);

/* The hash by which a text is found. */
int64_t history_name_hash(const char *text);

/* The events whose numbers are from the result on are of `ms` or later, as far
 * as the clock went forward only; 0: none. */
int history_seq_from(struct history_db *db, enum history_sql at, int64_t ms,
                     int64_t *ret_seq, struct error *err);

#endif
