#include "extender/pods/pod_files.h"

#include <stdlib.h>
#include <string.h>

#include "extender/pods/applied_private.h"
#include "lib/base/base64.h"
#include "model/pod/podfeed.h"
#include "model/pod/podspec.h"

enum { CONFIGS_MAX = 1024 }; /* of one pod */

/* A ConfigMap or Secret, and which of its keys are taken. */
struct taking {
    const struct applied_config *config;
    bool *keys; /* by entry */
};

struct gather {
    const struct pod_set *first, *then; /* where they are; NULL: nowhere */
    struct taking *list;
    size_t n, cap, at; /* which is being looked at */
    bool too_many;
};

static void gather_fini(struct gather *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->list[i].keys);
    free(g->list);
}

static const struct applied_config *find_config(const struct gather *g,
                                                bool secret,
                                                const char *namespace,
                                                const char *name)
{
    const struct applied_config *c =
        g->first ? pod_set_config(g->first, secret, namespace, name) : NULL;
    return c || !g->then ? c : pod_set_config(g->then, secret, namespace, name);
}

/* --- what it takes ------------------------------------------------------ */

static int gather_each(void *ctx, bool secret, const char *namespace,
                       const char *name,
                       void (*visit)(void *arg, const char *key,
                                     const char *data, size_t size),
                       void *arg)
{
    struct gather *g = ctx;
    const struct applied_config *c = find_config(g, secret, namespace, name);
    if (!c)
        return -ENOENT;
    for (g->at = 0; g->at < g->n && g->list[g->at].config != c; g->at++)
        ;
    if (g->at == CONFIGS_MAX) {
        g->too_many = true;
        return 0;
    }
    if (g->at == g->n) {
        g->list = xgrow(g->list, g->n, &g->cap, sizeof *g->list);
        g->list[g->n++] =
            (struct taking){c, xcalloc(c->n_entries + 1, sizeof(bool))};
    }
    for (size_t i = 0; i < c->n_entries; i++)
        visit(arg, c->entries[i].key, c->entries[i].data, c->entries[i].size);
    return 0;
}

static int compare_key(const void *key, const void *entry)
{
    return strcmp(key, ((const struct config_entry *)entry)->key);
}

static void gather_taken(void *ctx, bool secret, const char *name,
                         const char *key)
{
    struct gather *g = ctx;
    const struct taking *t = &g->list[g->at];
    const struct applied_config *c = t->config;
    const struct config_entry *e = bsearch(key, c->entries, c->n_entries,
                                           sizeof *c->entries, compare_key);
    (void)secret; /* it is the one that is being looked at */
    (void)name;
    if (e)
        t->keys[e - c->entries] = true;
}

static size_t base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}

static const char *kind_of(const struct applied_config *c)
{
    return c->secret ? "Secret" : "ConfigMap";
}

/* Bytes of `{"kind":"…","name":"…","data":{"…":"…","…":"…"}}`; names and keys
 * need no escapes. */
static size_t size_of(const struct taking *t)
{
    const struct applied_config *c = t->config;
    size_t size = sizeof "{\"kind\":\"\",\"name\":\"\",\"data\":{}}" - 1 +
                  strlen(kind_of(c)) + strlen(c->name),
           n = 0;
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct config_entry *e = &c->entries[i];
        if (!t->keys[i])
            continue;
        size += sizeof "\"\":\"\"" - 1 + strlen(e->key) + base64_size(e->size);
        size += n++ > 0;
    }
    return size;
}

static int check_size(const struct gather *g, struct error *err)
{
    size_t size = 2; /* brackets */
    if (g->too_many)
        return error_set(err, EFBIG,
                         "takes from more than %d ConfigMaps and Secrets",
                         CONFIGS_MAX);
    for (size_t i = 0; i < g->n; i++)
        size += size_of(&g->list[i]) + (i > 0);
    if (size > PODFEED_FILES_MAX)
        return error_set(err, EFBIG,
                         "what it takes from ConfigMaps and Secrets has %zu "
                         "bytes as a node is told it (a third more than as "
                         "it is), the limit is %d: take fewer keys, by items "
                         "and configMapKeyRef",
                         size, PODFEED_FILES_MAX);
    return 0;
}

/* 0, or what is wrong with the spec, as things are; -EFBIG in any case when
 * it is too large. */
static int gather_run(struct gather *g, const struct applied_pod *p,
                      const char *node, struct error *err)
{
    const struct podspec_source source = {gather_each, g, gather_taken};
    cleanup_with(podspec) struct podspec *spec = NULL;
    struct error size_err;
    int e = podspec_parse(p->json, p->size, node, &source, &spec, err);
    if (e == -EFBIG || check_size(g, &size_err) == 0)
        return e;
    if (err)
        *err = size_err;
    return -EFBIG;
}

/* --- what is made of it ------------------------------------------------- */

int pod_files_check(const struct pod_set *set, const struct applied_pod *p,
                    struct error *err)
{
    struct gather g = {.then = set};
    int e = gather_run(&g, p, "", err);
    gather_fini(&g);
    return e;
}

int pod_files_check_size(const struct pod_set *set,
                         const struct pod_change *changes, size_t n,
                         struct error *err)
{
    struct pod_set *fresh = xcalloc(1, sizeof *fresh);
    int e = 0;
    atomic_init(&fresh->refs, 1);
    for (size_t i = 0; i < n; i++)
        if (changes[i].kind == CONFIG_APPLY)
            pod_set_put_config(fresh, changes[i].config);
    for (size_t i = 0; i < n && e == 0; i++) {
        struct gather g = {.first = fresh, .then = set};
        if (changes[i].kind != APPLIED_APPLY)
            continue;
        if (gather_run(&g, changes[i].pod, "", err) == -EFBIG)
            e = error_wrap(err, "Pod %s/%s", changes[i].pod->namespace,
                           changes[i].pod->name);
        gather_fini(&g);
    }
    pod_set_unref(fresh);
    return e;
}

static void write_taking(const struct taking *t, struct str *out)
{
    const struct applied_config *c = t->config;
    const char *comma = "";
    str_addf(out, "{\"kind\":\"%s\",\"name\":\"%s\",\"data\":{", kind_of(c),
             c->name);
    for (size_t i = 0; i < c->n_entries; i++) {
        if (!t->keys[i])
            continue;
        str_addf(out, "%s\"%s\":\"", comma, c->entries[i].key);
        base64_add(out, c->entries[i].data, c->entries[i].size);
        str_add_c(out, '"');
        comma = ",";
    }
    str_add(out, "}}");
}

int pod_files_write(const struct pod_set *set, const struct applied_pod *p,
                    const char *node, struct str *out, struct error *err)
{
    struct gather g = {.then = set};
    int e = gather_run(&g, p, node, err) == -EFBIG ? -EFBIG : 0;
    if (e == 0)
        str_add_c(out, '[');
    for (size_t i = 0; e == 0 && i < g.n; i++) {
        str_add(out, i ? "," : "");
        write_taking(&g.list[i], out);
    }
    if (e == 0)
        str_add_c(out, ']');
    gather_fini(&g);
    return e;
}
