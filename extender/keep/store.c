#include "extender/keep/store.h"

#include <stdlib.h>

#include "extender/keep/store_private.h"
#include "lib/base/mem.h"

/* The API server keeps everything: nothing is left to do. */
static const struct store_ops kubernetes_ops;

int store_open(enum store_kind kind, const char *dir, struct store **ret_store,
               struct error *err)
{
    if (kind == STORE_SQLITE)
        return sqlite_open(dir, ret_store, err);
    if (dir)
        return error_set(err, EINVAL,
                         "--state %s: the API server keeps the state of "
                         "--store kubernetes",
                         dir);
    struct store *s = xcalloc(1, sizeof *s);
    s->ops = &kubernetes_ops;
    s->kind = kind;
    *ret_store = s;
    return 0;
}

void store_close(struct store *s)
{
    if (s && s->ops->close)
        s->ops->close(s);
    else
        free(s);
}

enum store_kind store_get_kind(const struct store *s)
{
    return s->kind;
}

/* --- transactions ------------------------------------------------------ */

int store_begin(struct store *s, struct error *err)
{
    return s->ops->begin ? s->ops->begin(s, err) : 0;
}

int store_commit(struct store *s, struct error *err)
{
    int e = s->ops->commit ? s->ops->commit(s, err) : 0;
    if (e < 0)
        store_rollback(s);
    else
        store_committed(s);
    return e;
}

void store_rollback(struct store *s)
{
    s->version = s->committed;
    s->doubt = s->committed_doubt;
    if (s->ops->rollback)
        s->ops->rollback(s);
}

void store_tidy(struct store *s)
{
    if (s->ops->tidy)
        s->ops->tidy(s);
}

/* --- versions ---------------------------------------------------------- */

uint64_t store_resource_version(const struct store *s)
{
    return s->version;
}

uint64_t store_take_version(struct store *s)
{
    return ++s->version;
}

void store_raise_version(struct store *s, uint64_t version)
{
    if (s->version < version)
        s->version = version;
}

/* --- writing ----------------------------------------------------------- */

int store_put_slice(struct store *s, const char *name, const char *node,
                    const char *json, size_t size,
                    uint64_t *ret_resource_version, struct error *err)
{
    const struct store_slice slice = {name, node, json, size, s->version + 1};
    int e = s->ops->put_slice ? s->ops->put_slice(s, &slice, err) : 0;
    if (e == 0)
        *ret_resource_version = store_take_version(s);
    return e;
}

int store_delete_slice(struct store *s, const char *name, struct error *err)
{
    (void)store_take_version(s); /* a change, though nobody is told which */
    return s->ops->delete_slice ? s->ops->delete_slice(s, name, err) : 0;
}

int store_retire_boot(struct store *s, const char *node, const char *boot_id,
                      struct error *err)
{
    return s->ops->retire_boot ? s->ops->retire_boot(s, node, boot_id, err) : 0;
}

int store_set_silent(struct store *s, const char *node, bool silent,
                     struct error *err)
{
    return s->ops->set_silent ? s->ops->set_silent(s, node, silent, err) : 0;
}

bool store_past_mark(const struct store *s)
{
    return s->past_mark;
}

bool store_in_doubt(const struct store *s)
{
    return s->doubt != 0;
}

int store_trust(struct store *s, const char *node, struct error *err)
{
    (void)store_take_version(s);
    int e = s->ops->trust && s->doubt ? s->ops->trust(s, node, err) : 0;
    if (e == 0 && !node)
        s->doubt = 0;
    return e;
}

int store_put_fed(struct store *s, const char *node, uint64_t number,
                  struct error *err)
{
    return s->ops->put_fed ? s->ops->put_fed(s, node, number, err) : 0;
}

int store_put_allocation(struct store *s, const struct allocation *a,
                         struct error *err)
{
    return s->ops->put_allocation ? s->ops->put_allocation(s, a, err) : 0;
}

int store_delete_allocation(struct store *s, const char *namespace,
                            const char *name, struct error *err)
{
    return s->ops->delete_allocation
               ? s->ops->delete_allocation(s, namespace, name, err)
               : 0;
}

static int refuse(struct error *err)
{
    return error_set(err, ENOTSUP,
                     "the API server keeps pods, ConfigMaps and Secrets");
}

int store_put_pod(struct store *s, const struct store_pod *pod,
                  struct error *err)
{
    return s->ops->put_pod ? s->ops->put_pod(s, pod, err) : refuse(err);
}

int store_delete_pod(struct store *s, const char *namespace, const char *name,
                     struct error *err)
{
    (void)store_take_version(s);
    return s->ops->delete_pod ? s->ops->delete_pod(s, namespace, name, err)
                              : refuse(err);
}

int store_put_config(struct store *s, const struct store_config *config,
                     struct error *err)
{
    (void)store_take_version(s);
    return s->ops->put_config ? s->ops->put_config(s, config, err)
                              : refuse(err);
}

int store_delete_config(struct store *s, bool secret, const char *namespace,
                        const char *name, struct error *err)
{
    (void)store_take_version(s);
    return s->ops->delete_config
               ? s->ops->delete_config(s, secret, namespace, name, err)
               : refuse(err);
}

/* --- reading ----------------------------------------------------------- */

int store_each_slice(struct store *s, const char *after_name,
                     store_slice_f *visit, void *ctx, struct error *err)
{
    const char *after = after_name ? after_name : "";
    return s->ops->each_slice ? s->ops->each_slice(s, after, visit, ctx, err)
                              : 0;
}

int store_get_slice(struct store *s, const char *name, store_slice_f *visit,
                    void *ctx, struct error *err)
{
    if (s->ops->get_slice)
        return s->ops->get_slice(s, name, visit, ctx, err);
    return error_set(err, ENOENT, "slice %s: the API server has it, if anyone",
                     name);
}

int store_each_retired_boot(struct store *s, store_boot_f *visit, void *ctx,
                            struct error *err)
{
    return s->ops->each_retired_boot
               ? s->ops->each_retired_boot(s, visit, ctx, err)
               : 0;
}

int store_each_silent(struct store *s, store_node_f *visit, void *ctx,
                      struct error *err)
{
    return s->ops->each_silent ? s->ops->each_silent(s, visit, ctx, err) : 0;
}

int store_each_trusted(struct store *s, store_node_f *visit, void *ctx,
                       struct error *err)
{
    return s->ops->each_trusted ? s->ops->each_trusted(s, visit, ctx, err) : 0;
}

int store_each_fed(struct store *s, store_fed_f *visit, void *ctx,
                   struct error *err)
{
    return s->ops->each_fed ? s->ops->each_fed(s, visit, ctx, err) : 0;
}

int store_each_allocation(struct store *s, store_allocation_f *visit, void *ctx,
                          struct error *err)
{
    return s->ops->each_allocation ? s->ops->each_allocation(s, visit, ctx, err)
                                   : 0;
}

int store_each_pod(struct store *s, store_pod_f *visit, void *ctx,
                   struct error *err)
{
    return s->ops->each_pod ? s->ops->each_pod(s, visit, ctx, err) : 0;
}

int store_each_config(struct store *s, store_config_f *visit, void *ctx,
                      struct error *err)
{
    return s->ops->each_config ? s->ops->each_config(s, visit, ctx, err) : 0;
}
