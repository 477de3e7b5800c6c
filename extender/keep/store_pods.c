/* The rows of what was applied in embedded mode: pods, ConfigMaps, Secrets. */
#include "extender/keep/store_private.h"

static int refuse_applied(struct error *err)
{
    return error_set(err, ENOTSUP,
                     "the API server keeps pods, ConfigMaps and Secrets");
}

/* --- pods ----------------------------------------------------------------- */

int store_put_pod(struct store *s, const struct store_pod *pod,
                  struct error *err)
{
    if (!store_has_database(s))
        return refuse_applied(err);
    sqlite3_stmt *q = s->sql[SQL_PUT_POD];
    const char *reason = pod->ended ? pod->reason : "";
    const char *message = pod->ended ? pod->message : "";
    const char *next = pod->next ? pod->next : "";
    int64_t sum = sum_text(sum_text(0, pod->namespace), pod->name);
    sum = sum_u64(sum_text(sum, pod->uid), pod->number);
    sum = sum_u64(sum_u64(sum, pod->deleting), pod->grace_s);
    sum = sum_text(sum_text(sum_u64(sum, pod->ended), reason), message);
    sum = sum_text(sum_add(sum, pod->json, pod->size), next);
    store_bind(q, 1, pod->namespace, strlen(pod->namespace));
    store_bind(q, 2, pod->name, strlen(pod->name));
    store_bind(q, 3, pod->uid, strlen(pod->uid));
    (void)sqlite3_bind_int64(q, 4, (int64_t)pod->number);
    (void)sqlite3_bind_int64(q, 5, pod->deleting);
    (void)sqlite3_bind_int64(q, 6, pod->grace_s);
    (void)sqlite3_bind_int64(q, 7, pod->ended);
    store_bind(q, 8, reason, strlen(reason));
    store_bind(q, 9, message, strlen(message));
    store_bind(q, 10, pod->json, pod->size);
    store_bind(q, 11, next, strlen(next));
    (void)sqlite3_bind_int64(q, 12, sum);
    return store_run(s, SQL_PUT_POD, "storing a pod", err);
}

int store_delete_pod(struct store *s, const char *namespace, const char *name,
                     struct error *err)
{
    (void)store_take_version(s);
    if (!store_has_database(s))
        return refuse_applied(err);
    store_bind(s->sql[SQL_DELETE_POD], 1, namespace, strlen(namespace));
    store_bind(s->sql[SQL_DELETE_POD], 2, name, strlen(name));
    return store_run(s, SQL_DELETE_POD, "deleting a pod", err);
}

struct pod_walk {
    store_pod_f *visit;
    void *ctx;
};

static int visit_pod(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct pod_walk *walk = ctx;
    (void)err;
    const struct store_pod pod = {
        .namespace = store_column(q, 0),
        .name = store_column(q, 1),
        .uid = store_column(q, 2),
        .number = (uint64_t)sqlite3_column_int64(q, 3),
        .deleting = sqlite3_column_int64(q, 4) != 0,
        .grace_s = (uint32_t)sqlite3_column_int64(q, 5),
        .ended = (uint32_t)sqlite3_column_int64(q, 6),
        .reason = store_column(q, 7),
        .message = store_column(q, 8),
        .json = store_column(q, 9),
        .size = (size_t)sqlite3_column_bytes(q, 9),
        .next = store_column(q, 10),
    };
    return walk->visit(walk->ctx, &pod);
}

int store_each_pod(struct store *s, store_pod_f *visit, void *ctx,
                   struct error *err)
{
    struct pod_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_POD, visit_pod, &walk, err);
}

/* --- ConfigMaps and Secrets ----------------------------------------------- */

int store_put_config(struct store *s, const struct store_config *config,
                     struct error *err)
{
    (void)store_take_version(s);
    if (!store_has_database(s))
        return refuse_applied(err);
    sqlite3_stmt *q = s->sql[SQL_PUT_CONFIG];
    int64_t sum = sum_text(sum_u64(0, config->secret), config->namespace);
    sum = sum_add(sum_text(sum, config->name), config->json, config->size);
    (void)sqlite3_bind_int64(q, 1, config->secret);
    store_bind(q, 2, config->namespace, strlen(config->namespace));
    store_bind(q, 3, config->name, strlen(config->name));
    store_bind(q, 4, config->json, config->size);
    (void)sqlite3_bind_int64(q, 5, sum);
    return store_run(s, SQL_PUT_CONFIG, "storing a ConfigMap or Secret", err);
}

int store_delete_config(struct store *s, bool secret, const char *namespace,
                        const char *name, struct error *err)
{
    (void)store_take_version(s);
    if (!store_has_database(s))
        return refuse_applied(err);
    sqlite3_stmt *q = s->sql[SQL_DELETE_CONFIG];
    (void)sqlite3_bind_int64(q, 1, secret);
    store_bind(q, 2, namespace, strlen(namespace));
    store_bind(q, 3, name, strlen(name));
    return store_run(s, SQL_DELETE_CONFIG, "deleting a ConfigMap or Secret",
                     err);
}

struct config_walk {
    store_config_f *visit;
    void *ctx;
};

static int visit_config(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct config_walk *walk = ctx;
    (void)err;
    const struct store_config config = {
        .secret = sqlite3_column_int64(q, 0) != 0,
        .namespace = store_column(q, 1),
        .name = store_column(q, 2),
        .json = store_column(q, 3),
        .size = (size_t)sqlite3_column_bytes(q, 3),
    };
    return walk->visit(walk->ctx, &config);
}

int store_each_config(struct store *s, store_config_f *visit, void *ctx,
                      struct error *err)
{
    struct config_walk walk = {.visit = visit, .ctx = ctx};
    return store_each_row(s, SQL_EACH_CONFIG, visit_config, &walk, err);
}
