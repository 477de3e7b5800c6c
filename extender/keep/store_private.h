/* What the files of the store share: its database, if it has one. */
#ifndef BIGA_EXTENDER_KEEP_STORE_PRIVATE_H
#define BIGA_EXTENDER_KEEP_STORE_PRIVATE_H

#include <sqlite3.h>
#include <string.h>

#include "extender/keep/store.h"
#include "lib/db/dbmark.h"
#include "lib/db/sqldb.h"

/* What a pod is read from, in this order. */
#define SQL_POD_COLUMNS                                                       \
    "namespace, name, uid, number, deleting, grace, ended, reason, message, " \
    "json, next, sum"

enum sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_PUT_META,
    SQL_DELETE_META,
    SQL_EACH_META,
    SQL_TRIM_TRUSTED,
    SQL_PUT_SLICE,
    SQL_DELETE_SLICE,
    SQL_GET_SLICE,
    SQL_EACH_SLICE,
    SQL_PUT_BOOT,
    SQL_TRIM_BOOTS,
    SQL_EACH_BOOT,
    SQL_PUT_ALLOCATION,
    SQL_DELETE_ALLOCATION,
    SQL_EACH_ALLOCATION,
    SQL_PUT_POD,
    SQL_DELETE_POD,
    SQL_EACH_POD,
    SQL_PUT_CONFIG,
    SQL_DELETE_CONFIG,
    SQL_EACH_CONFIG,
    SQL_PUT_DRAIN,
    SQL_DELETE_DRAIN,
    SQL_EACH_DRAIN,
    SQL_COUNT
};

struct store {
    enum store_kind kind;
    uint64_t version;   /* the newest given out */
    uint64_t committed; /* the newest that is durable */
    uint64_t doubt;     /* the version when damage was found; 0: none */
    uint64_t committed_doubt;
    bool past_mark; /* see store_past_mark() */

    struct sqldb d; /* not open: the API server keeps everything */
    sqlite3_stmt *sql[SQL_COUNT];
    int lock_fd;         /* -1 in memory */
    struct dbmark *mark; /* of what is committed; NULL in memory */
    int log_pages;       /* waiting in the log */
    bool tidy_failed;    /* logged already */
    struct str row;      /* the JSON of the row that is stored */
};

/* Is there a database?  Otherwise the store only counts versions. */
static inline bool store_has_database(const struct store *s)
{
    return s->d.db != NULL;
}

/* What is so now is durable. */
static inline void store_committed(struct store *s)
{
    s->committed = s->version;
    s->committed_doubt = s->doubt;
}

/* The row of the table meta that has this key: `prefix` and a node's name. */
int store_put_meta(struct store *s, const char *prefix, const char *node,
                   uint64_t value, const char *what, struct error *err);
/* Visit those whose key begins with `prefix`. */
int store_each_meta(struct store *s, const char *prefix, store_node_f *visit,
                    void *ctx, struct error *err);

/* From now on all nodes are in doubt. */
int store_begin_doubt(struct store *s, struct error *err);
/* Take a row of the table meta, if it is the one that says so. */
void store_load_doubt(struct store *s, const char *key, int64_t value);

/* Texts must outlive the statement's run. */
void store_bind(sqlite3_stmt *q, int at, const char *text, size_t size);

/* Run a statement that returns no rows, with what was bound; `what` is for
 * the error text. */
int store_run(struct store *s, enum sql which, const char *what,
              struct error *err);

/* Visit every row of a query, as sqldb_each() does; none without a database. */
int store_each_row(struct store *s, enum sql which, sqldb_row_f *visit,
                   void *ctx, struct error *err);

/* Copy the allocations and applied objects that can still be read from the
 * files of the damaged database `name`, which are not changed.  All nodes are
 * in doubt then; versions continue after `version`.  Fails only when the copy
 * cannot be stored. */
int store_salvage(struct store *s, const char *dir, const char *name,
                  uint64_t version, struct error *err);

static inline const char *store_column(sqlite3_stmt *q, int i)
{
    return (const char *)sqlite3_column_text(q, i);
}

#endif
