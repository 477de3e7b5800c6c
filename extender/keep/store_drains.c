/* The rows of what is drained. */
#include <stdio.h>

#include "extender/keep/store_private.h"

int store_put_drain(struct store *s, const char *node,
                    const struct card_bar *drain, struct error *err)
{
    (void)store_take_version(s);
    if (!store_has_database(s))
        return 0;
    sqlite3_stmt *q = s->sql[SQL_PUT_DRAIN];
    int64_t sum = sum_u64(sum_text(sum_text(0, node), drain->card),
                          drain->evict);
    sum = sum_text(sum_text(sum_text(sum, drain->since), drain->by),
                   drain->reason);
    store_bind(q, 1, node, strlen(node));
    store_bind(q, 2, drain->card, strlen(drain->card));
    (void)sqlite3_bind_int64(q, 3, drain->evict);
    store_bind(q, 4, drain->since, strlen(drain->since));
    store_bind(q, 5, drain->by, strlen(drain->by));
    store_bind(q, 6, drain->reason, strlen(drain->reason));
    (void)sqlite3_bind_int64(q, 7, sum);
    return store_run(s, SQL_PUT_DRAIN, "storing a drain", err);
}

int store_delete_drain(struct store *s, const char *node, const char *card,
                       struct error *err)
{
    (void)store_take_version(s);
    if (!store_has_database(s))
        return 0;
    store_bind(s->sql[SQL_DELETE_DRAIN], 1, node, strlen(node));
    store_bind(s->sql[SQL_DELETE_DRAIN], 2, card, strlen(card));
    return store_run(s, SQL_DELETE_DRAIN, "ending a drain", err);
}

struct drain_walk {
    store_drain_f *visit;
    void *ctx;
};

static int visit_drain(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct drain_walk *walk = ctx;
    struct card_bar drain = {.drains = true,
                             .evict = sqlite3_column_int64(q, 2) != 0};
    (void)err;
    (void)snprintf(drain.card, sizeof drain.card, "%s", store_column(q, 1));
    (void)snprintf(drain.since, sizeof drain.since, "%s", store_column(q, 3));
    (void)snprintf(drain.by, sizeof drain.by, "%s", store_column(q, 4));
    (void)snprintf(drain.reason, sizeof drain.reason, "%s", store_column(q, 5));
    card_drain_explain(&drain);
    return walk->visit(walk->ctx, store_column(q, 0), &drain);
}

int store_each_drain(struct store *s, store_drain_f *visit, void *ctx,
                     struct error *err)
{
    struct drain_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_DRAIN, visit_drain, &walk, err);
}
