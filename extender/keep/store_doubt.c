/* What is known of the nodes since the database was found damaged. */
#include "extender/keep/store_private.h"
#include "lib/base/mem.h"

#define DOUBT "doubt"      /* its value: the version of when it began */
#define TRUSTED "trusted/" /* what keys of nodes begin with; the same value */

static int put(struct sqlite *s, const char *key, uint64_t value,
               struct error *err)
{
    sqlite3_stmt *q = s->sql[SQL_PUT_META];
    store_bind(q, 1, key, strlen(key));
    (void)sqlite3_bind_int64(q, 2, (int64_t)value);
    (void)sqlite3_bind_int64(q, 3, sum_u64(sum_text(0, key), value));
    return store_run(s, SQL_PUT_META, "noting what is in doubt", err);
}

int sqlite_begin_doubt(struct sqlite *s, struct error *err)
{
    s->store.doubt = store_take_version(&s->store);
    return put(s, DOUBT, s->store.doubt, err);
}

void sqlite_load_doubt(struct sqlite *s, const char *key, int64_t value)
{
    if (strcmp(key, DOUBT) == 0)
        s->store.doubt = (uint64_t)value;
}

int sqlite_trust(struct store *base, const char *node, struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    if (node) {
        cleanup_free char *key = xasprintf(TRUSTED "%s", node);
        return put(s, key, base->doubt, err);
    }
    store_bind(s->sql[SQL_DELETE_META], 1, DOUBT, strlen(DOUBT));
    int e = store_run(s, SQL_DELETE_META, "ending the doubt", err);
    return e == 0 ? store_run(s, SQL_TRIM_TRUSTED, "ending the doubt", err) : e;
}

struct trusted_walk {
    const struct store *store;
    store_node_f *visit;
    void *ctx;
};

/* Of an earlier damage it says nothing any more. */
static int visit_trusted(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct trusted_walk *walk = ctx;
    const char *key = store_column(q, 0);
    (void)err;
    if (strncmp(key, TRUSTED, strlen(TRUSTED)) != 0 ||
        (uint64_t)sqlite3_column_int64(q, 1) != walk->store->doubt)
        return 0;
    return walk->visit(walk->ctx, key + strlen(TRUSTED));
}

int sqlite_each_trusted(struct store *base, store_node_f *visit, void *ctx,
                        struct error *err)
{
    struct sqlite *s = sqlite_of(base);
    struct trusted_walk walk = {base, visit, ctx};
    return store_each_row(s, SQL_EACH_META, visit_trusted, &walk, err);
}
