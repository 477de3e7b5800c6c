/* What is known of the nodes since the database was found damaged. */
#include "extender/keep/store_private.h"

#define DOUBT "doubt"      /* value: the version at which doubt began */
#define TRUSTED "trusted/" /* prefix of a node's key; same value */

#define NOTING "noting what is in doubt"

bool store_in_doubt(const struct store *s)
{
    return s->doubt != 0;
}

int store_begin_doubt(struct store *s, struct error *err)
{
    s->doubt = store_take_version(s);
    return store_put_meta(s, DOUBT, "", s->doubt, NOTING, err);
}

void store_load_doubt(struct store *s, const char *key, int64_t value)
{
    if (strcmp(key, DOUBT) == 0)
        s->doubt = (uint64_t)value;
}

static int end_doubt(struct store *s, struct error *err)
{
    store_bind(s->sql[SQL_DELETE_META], 1, DOUBT, strlen(DOUBT));
    int e = store_run(s, SQL_DELETE_META, "ending the doubt", err);
    return e == 0 ? store_run(s, SQL_TRIM_TRUSTED, "ending the doubt", err) : e;
}

int store_trust(struct store *s, const char *node, struct error *err)
{
    (void)store_take_version(s);
    if (!s->doubt)
        return 0;
    if (node)
        return store_put_meta(s, TRUSTED, node, s->doubt, NOTING, err);
    int e = end_doubt(s, err);
    if (e == 0)
        s->doubt = 0;
    return e;
}

struct trusted_walk {
    const struct store *store;
    store_node_f *visit;
    void *ctx;
};

/* A row with another value belongs to an earlier damage and does not count. */
static int visit_trusted(void *ctx, const char *node, uint64_t doubt)
{
    const struct trusted_walk *walk = ctx;
    return doubt == walk->store->doubt ? walk->visit(walk->ctx, node, doubt)
                                       : 0;
}

int store_each_trusted(struct store *s, store_node_f *visit, void *ctx,
                       struct error *err)
{
    struct trusted_walk walk = {s, visit, ctx};
    return store_each_meta(s, TRUSTED, visit_trusted, &walk, err);
}
