/* sqldb - a SQLite database of one process, as all of ours are opened and
 * read: what its errors mean, and rows that carry the hash of their other
 * columns in the last one, since SQLite itself does not notice a flipped bit
 * inside a value.  Which tables and statements there are is its owner's. */
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
    /* what it was about, in the texts of errors */
    const char *opening, *reading;
    const char *fsync_event; /* the log event of a failed fsync */
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

/* Opens it, DEFENSIVE; `path` may be ":memory:".  It is to be closed also
 * after a failure.  As long as it is not known to be whole, its log is left as
 * it is when it is closed. */
int sqldb_open(struct sqldb *d, const char *path, struct error *err);
/* It is. */
void sqldb_trust(struct sqldb *d);
/* With its `n` statements, which are NULL then. */
void sqldb_close(struct sqldb *d, sqlite3_stmt **statements, size_t n);

/* What is on disk after a failed fsync is unknown, and a second one may claim
 * success although pages were lost: only a restart finds out, so the process
 * ends.  Anything else is nothing. */
void sqldb_die_of_fsync(const struct sqldb *d, int rc);

/* --- one that may be damaged --------------------------------------------- */

/* What the owner of a database file does to it. */
struct sqldb_file {
    const char *name;          /* in the state directory */
    const char *empty;         /* the error: nothing is in it any more */
    const char *damaged_event; /* the log event when a new one replaced it */
    /* Open `path`, its pragmas, tables and statements, and read all of it;
     * -EBADMSG: damaged.  `fresh`: there is to be nothing in it yet. */
    int (*open)(void *owner, const char *path, bool fresh, struct error *err);
    void (*close)(void *owner);
    /* How many commits were found in it. */
    uint64_t (*n_commits)(const void *owner);
    /* The error, -EBADMSG, when these are fewer than were `marked`. */
    int (*too_old)(const void *owner, uint64_t marked, struct error *err);
    /* Store what can be saved of the damaged one, with a commit that is newer
     * than the first `n_commits`. */
    int (*save)(void *owner, const char *dir, uint64_t n_commits,
                struct error *err);
};
/* Open the database and its mark (dbmark.h) as they were left.  One that is
 * damaged, or older than its mark, is moved aside, and a new one takes its
 * place with what could be saved. */
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

/* Run a statement that returns no rows, with what was bound. */
int sqldb_run(struct sqldb *d, sqlite3_stmt *q, const char *what,
              struct error *err);

/* Visit every row; `visit` returns nonzero to end the walk, and that is
 * returned when negative.  A row whose sum is wrong is -EBADMSG. */
typedef int sqldb_row_f(sqlite3_stmt *q, void *ctx, struct error *err);
int sqldb_each(struct sqldb *d, sqlite3_stmt *q, sqldb_row_f *visit, void *ctx,
               struct error *err);
/* A visitor that does nothing: the sums alone are looked at. */
int sqldb_visit_nothing(sqlite3_stmt *q, void *ctx, struct error *err);

/* The sum of a row: over its other columns, in their order; 0 before the
 * first. */
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
