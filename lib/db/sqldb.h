/* sqldb - a SQLite database that one process uses: open, check, run, close.
 *
 * The last column of each row is a hash of the others, since SQLite does not
 * notice a flipped bit in a value.  Its owner defines tables and statements. */
#ifndef BIGA_LIB_DB_SQLDB_H
#define BIGA_LIB_DB_SQLDB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/db/dbmark.h"

/* Texts are constants. */
struct sqldb {
    sqlite3 *db;        /* NULL: not open */
    const char *noun;   /* "database": begins the texts about damage */
    const char *prefix; /* "", or what other errors begin with: "intents: " */
    const char *opening, *reading; /* name these actions in errors */
    const char *fsync_event;       /* the log event of a failed fsync */
};

/* What all of ours begin with, to be executed once one is open: one process,
 * durable with each commit, nothing of a damaged file trusted. */
#define SQLDB_PRAGMAS                  \
    "PRAGMA locking_mode = EXCLUSIVE;" \
    "PRAGMA trusted_schema = OFF;"     \
    "PRAGMA cell_size_check = ON;"     \
    "PRAGMA mmap_size = 0;"            \
    "PRAGMA temp_store = MEMORY;"      \
    "PRAGMA journal_mode = WAL;"       \
    "PRAGMA synchronous = FULL;"

/* Open in SQLite's defensive mode; `path` may be ":memory:".  Close it also
 * after a failure.  Closing leaves its log as it is until sqldb_trust(): a
 * checkpoint of a damaged database would destroy what can be saved. */
int sqldb_open(struct sqldb *d, const char *path, struct error *err);
/* The database was checked and is undamaged. */
void sqldb_trust(struct sqldb *d);
/* Also finalizes its `n` statements and sets them to NULL. */
void sqldb_close(struct sqldb *d, sqlite3_stmt **statements, size_t n);

/* Ends the process when `rc` is a failed fsync, and does nothing otherwise:
 * what is on disk is unknown then, and a second fsync may succeed although
 * pages were lost.  Only a restart finds out. */
void sqldb_die_of_fsync(const struct sqldb *d, int rc);

/* --- one that may be damaged --------------------------------------------- */

/* A database file, and what its owner does with it. */
struct sqldb_file {
    const char *name;          /* in the state directory */
    const char *empty;         /* the error text when it has become empty */
    const char *damaged_event; /* the log event when a new one replaced it */
    /* Open `path`, prepare its statements and read all of it; -EBADMSG:
     * damaged.  `fresh`: it is to be empty. */
    int (*open)(void *owner, const char *path, bool fresh, struct error *err);
    void (*close)(void *owner);
    /* How many commits were found in it. */
    uint64_t (*n_commits)(const void *owner);
    /* -EBADMSG, with a text, when it has fewer commits than `marked`. */
    int (*too_old)(const void *owner, uint64_t marked, struct error *err);
    /* Store what can be saved of the damaged one, in commits after the first
     * `n_commits`. */
    int (*save)(void *owner, const char *dir, uint64_t n_commits,
                struct error *err);
};
/* Open the database and its mark (dbmark.h).  A database that is damaged, or
 * older than its mark, is moved aside and replaced by a new one with what could
 * be saved. */
int sqldb_open_checked(struct sqldb *d, const struct sqldb_file *file,
                       const char *dir, void *owner, struct dbmark **mark,
                       struct error *err);

/* --- statements ----------------------------------------------------------- */

int sqldb_execute(struct sqldb *d, const char *sql, const char *what,
                  struct error *err);
/* The first column of the first row, as a number, and whether it is "ok". */
int sqldb_query(struct sqldb *d, const char *sql, int64_t *ret_number,
                bool *ret_ok, struct error *err);
/* -EBADMSG: a table or column is not as it was made. */
int sqldb_prepare(struct sqldb *d, const char *const *texts,
                  sqlite3_stmt **ret_statements, size_t n, struct error *err);
/* -EBADMSG: quick_check finds damage; `text` says so. */
int sqldb_check(struct sqldb *d, const char *text, struct error *err);

/* Run a statement, with its values bound, that returns no rows. */
int sqldb_run(struct sqldb *d, sqlite3_stmt *q, const char *what,
              struct error *err);

/* Visit every row; `visit` returns nonzero to end the walk, and that is
 * returned when negative.  A row whose sum is wrong is -EBADMSG. */
typedef int sqldb_row_f(sqlite3_stmt *q, void *ctx, struct error *err);
int sqldb_each(struct sqldb *d, sqlite3_stmt *q, sqldb_row_f *visit, void *ctx,
               struct error *err);
/* A visitor that does nothing, to check the sums only. */
int sqldb_visit_nothing(sqlite3_stmt *q, void *ctx, struct error *err);

/* The sum of a row, over its other columns in order; begin with 0. */
static inline int64_t sum_add(int64_t sum, const void *data, size_t size)
{
    return (int64_t)hash_mix((uint64_t)sum + 1, hash_bytes(data, size));
}

static inline int64_t sum_text(int64_t sum, const char *text)
{
    return sum_add(sum, text, strlen(text));
}

static inline int64_t sum_u64(int64_t sum, uint64_t value)
{
    return sum_add(sum, &value, sizeof value);
}

#endif
