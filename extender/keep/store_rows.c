/* The rows of the database: slices, boot ids, allocations. */
#include "extender/keep/store_private.h"
#include "lib/base/mem.h"
#include "lib/io/failpoint.h"

enum { RETIRED_BOOTS_MAX = 16 };

/* --- slices ------------------------------------------------------------ */

int sqlite_put_slice(struct store *base, const struct store_slice *slice,
                     struct error *err)
{
    sqlite3_stmt *q = sqlite_of(base)->sql[SQL_PUT_SLICE];
    int64_t sum = sum_text(sum_text(0, slice->name), slice->node);
    sum = sum_add(sum_u64(sum, slice->version), slice->json, slice->size);
    if (failpoint("put-slice"))
        return error_set(err, EIO, "storing slice %s: a failpoint",
                         slice->name);
    store_bind(q, 1, slice->name, strlen(slice->name));
    store_bind(q, 2, slice->node, strlen(slice->node));
    (void)sqlite3_bind_int64(q, 3, (int64_t)slice->version);
    store_bind(q, 4, slice->json, slice->size);
    (void)sqlite3_bind_int64(q, 5, sum);
    return store_run(sqlite_of(base), SQL_PUT_SLICE, "storing a slice", err);
}

int sqlite_delete_slice(struct store *base, const char *name, struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    store_bind(s->sql[SQL_DELETE_SLICE], 1, name, strlen(name));
    return store_run(s, SQL_DELETE_SLICE, "deleting a slice", err);
}

struct slice_walk {
    store_slice_f *visit;
    void *ctx;
    size_t n;
};

static int visit_slice(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct slice_walk *walk = ctx;
    (void)err;
    walk->n++;
    return walk->visit(walk->ctx, store_column(q, 0), store_column(q, 3),
                       (size_t)sqlite3_column_bytes(q, 3),
                       (uint64_t)sqlite3_column_int64(q, 2));
}

int sqlite_each_slice(struct store *base, const char *after_name,
                      store_slice_f *visit, void *ctx, struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    struct slice_walk walk = {.visit = visit, .ctx = ctx};
    const char *after = after_name ? after_name : "";
    store_bind(s->sql[SQL_EACH_SLICE], 1, after, strlen(after));
    return store_each_row(s, SQL_EACH_SLICE, visit_slice, &walk, err);
}

int sqlite_get_slice(struct store *base, const char *name, store_slice_f *visit,
                     void *ctx, struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    struct slice_walk walk = {.visit = visit, .ctx = ctx};
    store_bind(s->sql[SQL_GET_SLICE], 1, name, strlen(name));
    int e = store_each_row(s, SQL_GET_SLICE, visit_slice, &walk, err);
    if (e == 0 && walk.n == 0)
        e = error_set(err, ENOENT, "slice %s: not there", name);
    return e;
}

/* --- boots ------------------------------------------------------------- */

int sqlite_retire_boot(struct store *base, const char *node,
                       const char *boot_id, struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    sqlite3_stmt *put = s->sql[SQL_PUT_BOOT];
    store_bind(put, 1, node, strlen(node));
    store_bind(put, 2, boot_id, strlen(boot_id));
    (void)sqlite3_bind_int64(put, 3, sum_text(sum_text(0, node), boot_id));
    int e = store_run(s, SQL_PUT_BOOT, "storing a boot id", err);
    if (e < 0)
        return e;
    store_bind(s->sql[SQL_TRIM_BOOTS], 1, node, strlen(node));
    (void)sqlite3_bind_int64(s->sql[SQL_TRIM_BOOTS], 2, RETIRED_BOOTS_MAX);
    return store_run(s, SQL_TRIM_BOOTS, "trimming boot ids", err);
}

struct boot_walk {
    store_boot_f *visit;
    void *ctx;
};

static int visit_boot(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct boot_walk *walk = ctx;
    (void)err;
    return walk->visit(walk->ctx, store_column(q, 0), store_column(q, 1));
}

int sqlite_each_retired_boot(struct store *base, store_boot_f *visit, void *ctx,
                             struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    struct boot_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_BOOT, visit_boot, &walk, err);
}

/* --- silent nodes ------------------------------------------------------- */

#define SILENT "silent/" /* what their keys begin with */

int sqlite_set_silent(struct store *base, const char *node, bool silent,
                      struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    sqlite3_stmt *q = s->sql[silent ? SQL_PUT_META : SQL_DELETE_META];
    cleanup_free char *key = xasprintf(SILENT "%s", node);
    store_bind(q, 1, key, strlen(key));
    if (silent) {
        (void)sqlite3_bind_int64(q, 2, 1);
        (void)sqlite3_bind_int64(q, 3, sum_u64(sum_text(0, key), 1));
    }
    return store_run(s, silent ? SQL_PUT_META : SQL_DELETE_META,
                     "noting a silent node", err);
}

struct silent_walk {
    store_node_f *visit;
    void *ctx;
};

static int visit_silent(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct silent_walk *walk = ctx;
    const char *key = store_column(q, 0);
    (void)err;
    if (strncmp(key, SILENT, strlen(SILENT)) != 0)
        return 0;
    return walk->visit(walk->ctx, key + strlen(SILENT));
}

int sqlite_each_silent(struct store *base, store_node_f *visit, void *ctx,
                       struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    struct silent_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_META, visit_silent, &walk, err);
}

/* --- what nodes were told ----------------------------------------------- */

#define FED "fed/" /* what their keys begin with */

int sqlite_put_fed(struct store *base, const char *node, uint64_t number,
                   struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    sqlite3_stmt *q = s->sql[SQL_PUT_META];
    cleanup_free char *key = xasprintf(FED "%s", node);
    store_bind(q, 1, key, strlen(key));
    (void)sqlite3_bind_int64(q, 2, (int64_t)number);
    (void)sqlite3_bind_int64(q, 3, sum_u64(sum_text(0, key), number));
    return store_run(s, SQL_PUT_META, "noting what a node was told", err);
}

struct fed_walk {
    store_fed_f *visit;
    void *ctx;
};

static int visit_fed(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct fed_walk *walk = ctx;
    const char *key = store_column(q, 0);
    (void)err;
    if (strncmp(key, FED, strlen(FED)) != 0)
        return 0;
    return walk->visit(walk->ctx, key + strlen(FED),
                       (uint64_t)sqlite3_column_int64(q, 1));
}

int sqlite_each_fed(struct store *base, store_fed_f *visit, void *ctx,
                    struct error *err)
{
    struct fed_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(sqlite_of(base), SQL_EACH_META, visit_fed, &walk,
                          err);
}

/* --- allocations ------------------------------------------------------- */

int sqlite_put_allocation(struct store *base, const struct allocation *a,
                          struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    sqlite3_stmt *q = s->sql[SQL_PUT_ALLOCATION];
    const char *namespace = a->demand.namespace, *name = a->demand.name;
    cleanup_str struct str json = STR_INIT(STR_MAX_DEFAULT);
    allocation_encode(a, &json);
    int64_t sum = sum_text(sum_text(0, namespace), name);
    store_bind(q, 1, namespace, strlen(namespace));
    store_bind(q, 2, name, strlen(name));
    store_bind(q, 3, json.data, json.size);
    (void)sqlite3_bind_int64(q, 4, sum_add(sum, json.data, json.size));
    return store_run(s, SQL_PUT_ALLOCATION, "storing an allocation", err);
}

int sqlite_delete_allocation(struct store *base, const char *namespace,
                             const char *name, struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    sqlite3_stmt *q = s->sql[SQL_DELETE_ALLOCATION];
    store_bind(q, 1, namespace, strlen(namespace));
    store_bind(q, 2, name, strlen(name));
    return store_run(s, SQL_DELETE_ALLOCATION, "deleting an allocation", err);
}

struct allocation_walk {
    store_allocation_f *visit;
    void *ctx;
};

static int visit_allocation(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct allocation_walk *walk = ctx;
    cleanup_with(allocation) struct allocation *a = NULL;
    int e = allocation_decode(store_column(q, 2),
                              (size_t)sqlite3_column_bytes(q, 2), &a, err);
    if (e < 0)
        return error_wrap(err, "allocation of %s/%s", store_column(q, 0),
                          store_column(q, 1));
    return walk->visit(walk->ctx, a);
}

int sqlite_each_allocation(struct store *base, store_allocation_f *visit,
                           void *ctx, struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    struct allocation_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_ALLOCATION, visit_allocation, &walk, err);
}
