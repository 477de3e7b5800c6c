/* What the kinds of store are made of: store.c counts versions and hands on to
 * the operations of the kind; store_sqlite.c, store_rows.c and store_salvage.c
 * are those of SQLite. */
#ifndef BIGA_EXTENDER_KEEP_STORE_PRIVATE_H
#define BIGA_EXTENDER_KEEP_STORE_PRIVATE_H

#include <sqlite3.h>
#include <string.h>

#include "extender/keep/store.h"
#include "lib/db/dbmark.h"
#include "lib/db/sqldb.h"

/* A slice to be stored, under the version it gets. */
struct store_slice {
    const char *name, *node, *json;
    size_t size;
    uint64_t version;
};

/* As in store.h; the versions are counted before and after.  One that is NULL
 * has nothing to do. */
struct store_ops {
    void (*close)(struct store *s); /* frees it, too */
    int (*begin)(struct store *s, struct error *err);
    int (*commit)(struct store *s, struct error *err);
    void (*rollback)(struct store *s);
    void (*tidy)(struct store *s);
    int (*put_slice)(struct store *s, const struct store_slice *slice,
                     struct error *err);
    int (*delete_slice)(struct store *s, const char *name, struct error *err);
    int (*retire_boot)(struct store *s, const char *node, const char *boot_id,
                       struct error *err);
    int (*set_silent)(struct store *s, const char *node, bool silent,
                      struct error *err);
    int (*trust)(struct store *s, const char *node, struct error *err);
    int (*each_trusted)(struct store *s, store_node_f *visit, void *ctx,
                        struct error *err);
    int (*put_fed)(struct store *s, const char *node, uint64_t number,
                   struct error *err);
    int (*put_allocation)(struct store *s, const struct allocation *a,
                          struct error *err);
    int (*delete_allocation)(struct store *s, const char *namespace,
                             const char *name, struct error *err);
    int (*put_pod)(struct store *s, const struct store_pod *pod,
                   struct error *err);
    int (*delete_pod)(struct store *s, const char *namespace, const char *name,
                      struct error *err);
    int (*put_config)(struct store *s, const struct store_config *config,
                      struct error *err);
    int (*delete_config)(struct store *s, bool secret, const char *namespace,
                         const char *name, struct error *err);
    int (*each_slice)(struct store *s, const char *after, store_slice_f *visit,
                      void *ctx, struct error *err);
    int (*get_slice)(struct store *s, const char *name, store_slice_f *visit,
                     void *ctx, struct error *err);
    int (*each_retired_boot)(struct store *s, store_boot_f *visit, void *ctx,
                             struct error *err);
    int (*each_silent)(struct store *s, store_node_f *visit, void *ctx,
                       struct error *err);
    int (*each_fed)(struct store *s, store_fed_f *visit, void *ctx,
                    struct error *err);
    int (*each_allocation)(struct store *s, store_allocation_f *visit,
                           void *ctx, struct error *err);
    int (*each_pod)(struct store *s, store_pod_f *visit, void *ctx,
                    struct error *err);
    int (*each_config)(struct store *s, store_config_f *visit, void *ctx,
                       struct error *err);
};

struct store {
    const struct store_ops *ops;
    enum store_kind kind;
    uint64_t version;   /* the newest given out */
    uint64_t committed; /* the newest that is durable */
    uint64_t doubt;     /* the one of when damage was found; 0: all is known */
    uint64_t committed_doubt;
    bool past_mark; /* see store_past_mark() */
};

/* What is so now is durable. */
static inline void store_committed(struct store *s)
{
    s->committed = s->version;
    s->committed_doubt = s->doubt;
}

/* --- SQLite -------------------------------------------------------------- */

struct sqlite;
int sqlite_open(const char *dir, struct store **ret_store, struct error *err);
/* The rows: of store_rows.c. */
int sqlite_put_slice(struct store *s, const struct store_slice *slice,
                     struct error *err);
int sqlite_delete_slice(struct store *s, const char *name, struct error *err);
int sqlite_each_slice(struct store *s, const char *after, store_slice_f *visit,
                      void *ctx, struct error *err);
int sqlite_get_slice(struct store *s, const char *name, store_slice_f *visit,
                     void *ctx, struct error *err);
int sqlite_retire_boot(struct store *s, const char *node, const char *boot_id,
                       struct error *err);
int sqlite_each_retired_boot(struct store *s, store_boot_f *visit, void *ctx,
                             struct error *err);
int sqlite_set_silent(struct store *s, const char *node, bool silent,
                      struct error *err);
int sqlite_each_silent(struct store *s, store_node_f *visit, void *ctx,
                       struct error *err);
int sqlite_put_fed(struct store *s, const char *node, uint64_t number,
                   struct error *err);
int sqlite_each_fed(struct store *s, store_fed_f *visit, void *ctx,
                    struct error *err);
int sqlite_put_allocation(struct store *s, const struct allocation *a,
                          struct error *err);
int sqlite_delete_allocation(struct store *s, const char *namespace,
                             const char *name, struct error *err);
int sqlite_each_allocation(struct store *s, store_allocation_f *visit,
                           void *ctx, struct error *err);
/* The rows: of store_pods.c. */
int sqlite_put_pod(struct store *s, const struct store_pod *pod,
                   struct error *err);
int sqlite_delete_pod(struct store *s, const char *namespace, const char *name,
                      struct error *err);
int sqlite_each_pod(struct store *s, store_pod_f *visit, void *ctx,
                    struct error *err);
int sqlite_put_config(struct store *s, const struct store_config *config,
                      struct error *err);
int sqlite_delete_config(struct store *s, bool secret, const char *namespace,
                         const char *name, struct error *err);
int sqlite_each_config(struct store *s, store_config_f *visit, void *ctx,
                       struct error *err);
/* The rows: of store_doubt.c. */
int sqlite_begin_doubt(struct sqlite *s, struct error *err);
void sqlite_load_doubt(struct sqlite *s, const char *key, int64_t value);
int sqlite_trust(struct store *s, const char *node, struct error *err);
int sqlite_each_trusted(struct store *s, store_node_f *visit, void *ctx,
                        struct error *err);

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
    SQL_COUNT
};

struct sqlite {
    struct store store; /* first */
    struct sqldb d;
    sqlite3_stmt *sql[SQL_COUNT];
    int lock_fd;         /* -1 in memory */
    struct dbmark *mark; /* of what is committed; NULL in memory */
    int log_pages;       /* waiting in the log */
    bool tidy_failed;    /* said so already */
};

static inline struct sqlite *sqlite_of(struct store *s)
{
    return (struct sqlite *)s;
}

/* Texts must outlive the statement's run. */
void store_bind(sqlite3_stmt *q, int at, const char *text, size_t size);

/* Run a statement that returns no rows, with what was bound; `what` is for
 * the error text. */
int store_run(struct sqlite *s, enum sql which, const char *what,
              struct error *err);

/* Visit every row of a query, as sqldb_each() does. */
int store_each_row(struct sqlite *s, enum sql which, sqldb_row_f *visit,
                   void *ctx, struct error *err);

/* Take over the allocations, and what was applied, that are still in the files
 * of the damaged database `name`, which are left as they are: what was promised
 * is known to nobody else.  All of it is in doubt then; versions go on after
 * `version`.  Fails only when that cannot be stored. */
int store_salvage(struct sqlite *s, const char *dir, const char *name,
                  uint64_t version, struct error *err);

static inline const char *store_column(sqlite3_stmt *q, int i)
{
    return (const char *)sqlite3_column_text(q, i);
}

#endif
