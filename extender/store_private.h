/* What store.c and store_rows.c share. */
#ifndef BIGA_EXTENDER_STORE_PRIVATE_H
#define BIGA_EXTENDER_STORE_PRIVATE_H

#include <sqlite3.h>
#include <string.h>

#include "extender/store.h"
#include "model/base/hash.h"

enum sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_PUT_META,
    SQL_DELETE_META,
    SQL_EACH_META,
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
    SQL_COUNT
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *sql[SQL_COUNT];
    int lock_fd;        /* -1 in memory */
    uint64_t version;   /* the newest given out */
    uint64_t committed; /* the newest that is durable */
    int log_pages;      /* waiting in the log */
    bool tidy_failed;   /* said so already */
};

/* Texts must outlive the statement's run. */
void store_bind(sqlite3_stmt *q, int at, const char *text, size_t size);

/* Run a statement that returns no rows, with what was bound; `what` is for
 * the error text. */
int store_run(struct store *s, enum sql which, const char *what,
              struct error *err);

/* Visit every row of a query; `visit` returns nonzero to end the walk. A row
 * whose sum is wrong is -EBADMSG. */
typedef int store_row_f(sqlite3_stmt *q, void *ctx, struct error *err);
int store_each_row(struct store *s, enum sql which, store_row_f *visit,
                   void *ctx, struct error *err);

/* Is the last column the sum of the others? */
bool store_row_is_whole(sqlite3_stmt *q);

/* Take over the allocations that can still be read in the damaged database
 * at `path`, which is left as it is: what was promised is known to nobody
 * else.  Fails only when they cannot be stored. */
int store_salvage(struct store *s, const char *path, struct error *err);

static inline const char *store_column(sqlite3_stmt *q, int i)
{
    return (const char *)sqlite3_column_text(q, i);
}

/* The sum of a row: over its other columns, in their order. */
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
