/* The rows of the database: slices, boot ids, allocations. */
#include "extender/keep/store_private.h"
#include "lib/base/mem.h"
#include "lib/io/failpoint.h"

enum { RETIRED_BOOTS_MAX = 16 };

/* --- slices ------------------------------------------------------------ */

static int put_slice(struct store *s, const char *name, const char *node,
                     const char *json, size_t size, struct error *err)
{
    sqlite3_stmt *q = s->sql[SQL_PUT_SLICE];
    uint64_t version = s->version + 1;
    int64_t sum = sum_u64(sum_text(sum_text(0, name), node), version);
    if (failpoint("put-slice"))
        return error_set(err, EIO, "storing slice %s: a failpoint", name);
    store_bind(q, 1, name, strlen(name));
    store_bind(q, 2, node, strlen(node));
    (void)sqlite3_bind_int64(q, 3, (int64_t)version);
    store_bind(q, 4, json, size);
    (void)sqlite3_bind_int64(q, 5, sum_add(sum, json, size));
    return store_run(s, SQL_PUT_SLICE, "storing a slice", err);
}

int store_put_slice(struct store *s, const char *name, const char *node,
                    const char *json, size_t size,
                    uint64_t *ret_resource_version, struct error *err)
{
    int e = store_has_database(s) ? put_slice(s, name, node, json, size, err)
                                  : 0;
    if (e == 0)
        *ret_resource_version = store_take_version(s);
    return e;
}

int store_delete_slice(struct store *s, const char *name, struct error *err)
{
    (void)store_take_version(s); /* the collection has changed; nobody needs
                                  * the number */
    if (!store_has_database(s))
        return 0;
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

int store_each_slice(struct store *s, const char *after_name,
                     store_slice_f *visit, void *ctx, struct error *err)
{
    if (!store_has_database(s))
        return 0;
    struct slice_walk walk = {.visit = visit, .ctx = ctx};
    const char *after = after_name ? after_name : "";
    store_bind(s->sql[SQL_EACH_SLICE], 1, after, strlen(after));
    return store_each_row(s, SQL_EACH_SLICE, visit_slice, &walk, err);
}

int store_get_slice(struct store *s, const char *name, store_slice_f *visit,
                    void *ctx, struct error *err)
{
    if (!store_has_database(s))
        return error_set(err, ENOENT,
                         "slice %s: the API server has it, if anyone", name);
    struct slice_walk walk = {.visit = visit, .ctx = ctx};
    store_bind(s->sql[SQL_GET_SLICE], 1, name, strlen(name));
    int e = store_each_row(s, SQL_GET_SLICE, visit_slice, &walk, err);
    if (e == 0 && walk.n == 0)
        e = error_set(err, ENOENT, "slice %s: not there", name);
    return e;
}

/* --- boots ------------------------------------------------------------- */

int store_retire_boot(struct store *s, const char *node, const char *boot_id,
                      struct error *err)
{
    if (!store_has_database(s))
        return 0;
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

int store_each_retired_boot(struct store *s, store_boot_f *visit, void *ctx,
                            struct error *err)
{
    struct boot_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_BOOT, visit_boot, &walk, err);
}

/* --- the table meta ----------------------------------------------------- */

int store_put_meta(struct store *s, const char *prefix, const char *node,
                   uint64_t value, const char *what, struct error *err)
{
    sqlite3_stmt *q = s->sql[SQL_PUT_META];
    cleanup_free char *key = xasprintf("%s%s", prefix, node);
    store_bind(q, 1, key, strlen(key));
    (void)sqlite3_bind_int64(q, 2, (int64_t)value);
    (void)sqlite3_bind_int64(q, 3, sum_u64(sum_text(0, key), value));
    return store_run(s, SQL_PUT_META, what, err);
}

struct meta_walk {
    const char *prefix;
    store_node_f *visit;
    void *ctx;
};

static int visit_meta(sqlite3_stmt *q, void *ctx, struct error *err)
{
    const struct meta_walk *walk = ctx;
    const char *key = store_column(q, 0);
    (void)err;
    if (strncmp(key, walk->prefix, strlen(walk->prefix)) != 0)
        return 0;
    return walk->visit(walk->ctx, key + strlen(walk->prefix),
                       (uint64_t)sqlite3_column_int64(q, 1));
}

int store_each_meta(struct store *s, const char *prefix, store_node_f *visit,
                    void *ctx, struct error *err)
{
    struct meta_walk walk = {prefix, visit, ctx};
    return store_each_row(s, SQL_EACH_META, visit_meta, &walk, err);
}

/* Prefixes of keys in the table meta, before a node's name. */
#define SILENT "silent/"
#define FED "fed/"

int store_set_silent(struct store *s, const char *node, bool silent,
                     struct error *err)
{
    if (!store_has_database(s))
        return 0;
    if (silent)
        return store_put_meta(s, SILENT, node, 1, "noting a silent node", err);
    cleanup_free char *key = xasprintf(SILENT "%s", node);
    store_bind(s->sql[SQL_DELETE_META], 1, key, strlen(key));
    return store_run(s, SQL_DELETE_META, "noting a silent node", err);
}

int store_each_silent(struct store *s, store_node_f *visit, void *ctx,
                      struct error *err)
{
    return store_each_meta(s, SILENT, visit, ctx, err);
}

int store_put_fed(struct store *s, const char *node, uint64_t number,
                  struct error *err)
{
    if (!store_has_database(s))
        return 0;
    return store_put_meta(s, FED, node, number, "noting what a node was told",
                          err);
}

int store_each_fed(struct store *s, store_node_f *visit, void *ctx,
                   struct error *err)
{
    return store_each_meta(s, FED, visit, ctx, err);
}

/* --- allocations ------------------------------------------------------- */

int store_put_allocation(struct store *s, const struct allocation *a,
                         struct error *err)
{
    if (!store_has_database(s))
        return 0;
    sqlite3_stmt *q = s->sql[SQL_PUT_ALLOCATION];
    const char *namespace = a->demand.namespace, *name = a->demand.name;
    struct str *json = &s->row;
    str_reset(json);
    allocation_encode(a, json);
    int64_t sum = sum_text(sum_text(0, namespace), name);
    store_bind(q, 1, namespace, strlen(namespace));
    store_bind(q, 2, name, strlen(name));
    store_bind(q, 3, json->data, json->size);
    (void)sqlite3_bind_int64(q, 4, sum_add(sum, json->data, json->size));
    return store_run(s, SQL_PUT_ALLOCATION, "storing an allocation", err);
}

int store_delete_allocation(struct store *s, const char *namespace,
                            const char *name, struct error *err)
{
    if (!store_has_database(s))
        return 0;
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

int store_each_allocation(struct store *s, store_allocation_f *visit, void *ctx,
                          struct error *err)
{
    struct allocation_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_ALLOCATION, visit_allocation, &walk, err);
}
