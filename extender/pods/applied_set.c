/* The set of what was applied: sorted arrays, copied when somebody else looks
 * at them. */
#include <string.h>

#include "extender/pods/applied_private.h"
#include "lib/base/lower_bound.h"
#include "lib/base/refs.h"

static int compare_pod(const struct applied_pod *p, const char *namespace,
                       const char *name)
{
    int order = strcmp(p->namespace, namespace);
    return order ? order : strcmp(p->name, name);
}

static int compare_config(const struct applied_config *c, bool secret,
                          const char *namespace, const char *name)
{
    int order = strcmp(c->namespace, namespace);
    if (order == 0)
        order = (int)c->secret - (int)secret;
    return order ? order : strcmp(c->name, name);
}

/* The first index that is not below. */
static size_t pod_from(const struct pod_set *s, const char *namespace,
                       const char *name)
{
    return lower_bound(s->n_pods, i,
                       compare_pod(s->pods[i], namespace, name) < 0);
}

static size_t uid_from(const struct pod_set *s, const char *uid)
{
    return lower_bound(s->n_pods, i, strcmp(s->by_uid[i]->uid, uid) < 0);
}

static size_t config_from(const struct pod_set *s, bool secret,
                          const char *namespace, const char *name)
{
    return lower_bound(s->n_configs, i,
                       compare_config(s->configs[i], secret, namespace, name) <
                           0);
}

struct applied_pod *pod_set_find(const struct pod_set *s, const char *namespace,
                                 const char *name)
{
    size_t i = pod_from(s, namespace, name);
    return i < s->n_pods && compare_pod(s->pods[i], namespace, name) == 0
               ? s->pods[i]
               : NULL;
}

struct applied_pod *pod_set_find_uid(const struct pod_set *s, const char *uid)
{
    size_t i = uid_from(s, uid);
    return i < s->n_pods && strcmp(s->by_uid[i]->uid, uid) == 0 ? s->by_uid[i]
                                                                : NULL;
}

void applied_pod_join(const struct applied_pod *p, struct demand *d)
{
    const struct demand *of = &p->demand;
    if (p->deleting || p->ended == POD_STATE_FAILED)
        return; /* it will not run (again) */
    d->runs |= of->role == ROLE_HOST ? RUNS_HOST : RUNS_CARDS;
    if (d->role != ROLE_HOST || of->role != ROLE_XPU || of->pair != d->pair)
        return;
    d->rights |= of->rights;
    d->has_card_need |= of->has_card_need;
    if (d->card_cores < of->card_cores)
        d->card_cores = of->card_cores;
    if (d->card_memory_mib < of->card_memory_mib)
        d->card_memory_mib = of->card_memory_mib;
}

static bool is_of_job(const struct applied_pod *p, const struct demand *d)
{
    return p->demand.role != ROLE_SERVICE &&
           strcmp(p->namespace, d->namespace) == 0 &&
           strcmp(p->demand.job, d->job) == 0;
}

void pod_set_demand(const struct pod_set *s, const struct applied_pod *p,
                    struct demand *ret_demand)
{
    struct demand *d = ret_demand;
    int32_t size = p->demand.size;
    *d = p->demand;
    applied_pod_join(p, d);
    if (!d->job[0] || d->role == ROLE_SERVICE)
        return;
    for (size_t i = 0; i < s->n_pods; i++)
        if (is_of_job(s->pods[i], d) && s->pods[i]->demand.size > size)
            size = s->pods[i]->demand.size;
    for (size_t i = 0; i < s->n_pods; i++)
        if (is_of_job(s->pods[i], d) &&
            (size > 1 || s->pods[i]->demand.pair == d->pair))
            applied_pod_join(s->pods[i], d);
}

struct applied_config *pod_set_config(const struct pod_set *s, bool secret,
                                      const char *namespace, const char *name)
{
    size_t i = config_from(s, secret, namespace, name);
    return i < s->n_configs &&
                   compare_config(s->configs[i], secret, namespace, name) == 0
               ? s->configs[i]
               : NULL;
}

/* --- what pods take from ConfigMaps and Secrets ------------------------------ */

static int each_entry(void *ctx, bool secret, const char *namespace,
                      const char *name,
                      void (*visit)(void *arg, const char *key,
                                    const char *data, size_t size),
                      void *arg)
{
    const struct applied_config *c = pod_set_config(ctx, secret, namespace,
                                                    name);
    if (!c)
        return -ENOENT;
    for (size_t i = 0; i < c->n_entries; i++)
        visit(arg, c->entries[i].key, c->entries[i].data, c->entries[i].size);
    return 0;
}

struct podspec_source pod_set_source(const struct pod_set *s)
{
    return (struct podspec_source){.each = each_entry, .ctx = (void *)s};
}

/* --- references ----------------------------------------------------------------- */

DEFINE_REF(pod_set_ref, struct pod_set)

void pod_set_unref(struct pod_set *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    for (size_t i = 0; i < s->n_pods; i++)
        applied_pod_unref(s->pods[i]);
    for (size_t i = 0; i < s->n_configs; i++)
        applied_config_unref(s->configs[i]);
    free(s->pods);
    free(s->by_uid);
    free(s->configs);
    free(s);
}

static struct pod_set *copy_set(const struct pod_set *s)
{
    struct pod_set *n = xcalloc(1, sizeof *n);
    const size_t from = offsetof(struct pod_set, version); /* refs move */
    memcpy((char *)n + from, (const char *)s + from, sizeof *n - from);
    atomic_init(&n->refs, 1);
    n->pods = xcalloc(s->pods_cap + 1, sizeof(*n->pods));
    n->by_uid = xcalloc(s->pods_cap + 1, sizeof(*n->by_uid));
    n->configs = xcalloc(s->configs_cap + 1, sizeof(*n->configs));
    for (size_t i = 0; i < s->n_pods; i++) {
        n->pods[i] = applied_pod_ref(s->pods[i]);
        n->by_uid[i] = s->by_uid[i];
    }
    for (size_t i = 0; i < s->n_configs; i++)
        n->configs[i] = applied_config_ref(s->configs[i]);
    return n;
}

struct pod_set *applied_writable(struct applied *p)
{
    /* references are only taken with the lock held */
    if (atomic_load_explicit(&p->set->refs, memory_order_acquire) > 1) {
        struct pod_set *copy = copy_set(p->set);
        pod_set_unref(p->set);
        p->set = copy;
    }
    p->set->version++;
    return p->set;
}

/* --- changes -------------------------------------------------------------------- */

static void insert_at(void *array, size_t n, size_t at, const void *element)
{
    char *list = array;
    size_t size = sizeof(void *);
    memmove(list + (at + 1) * size, list + at * size, (n - at) * size);
    memcpy(list + at * size, &element, size);
}

static void remove_at(void *array, size_t n, size_t at)
{
    char *list = array;
    size_t size = sizeof(void *);
    memmove(list + at * size, list + (at + 1) * size, (n - at - 1) * size);
}

void pod_set_remove(struct pod_set *s, const char *namespace, const char *name)
{
    size_t at = pod_from(s, namespace, name);
    struct applied_pod *old = at < s->n_pods ? s->pods[at] : NULL;
    if (!old || compare_pod(old, namespace, name) != 0)
        return;
    remove_at(s->pods, s->n_pods, at);
    remove_at(s->by_uid, s->n_pods, uid_from(s, old->uid));
    s->n_pods--;
    applied_pod_unref(old);
}

void pod_set_put(struct pod_set *s, struct applied_pod *p)
{
    pod_set_remove(s, p->namespace, p->name);
    if (s->n_pods == s->pods_cap) {
        size_t cap = s->pods_cap;
        s->pods = xgrow(s->pods, s->n_pods, &s->pods_cap, sizeof(*s->pods));
        s->by_uid = xgrow(s->by_uid, s->n_pods, &cap, sizeof(*s->by_uid));
    }
    insert_at(s->pods, s->n_pods, pod_from(s, p->namespace, p->name), p);
    insert_at(s->by_uid, s->n_pods, uid_from(s, p->uid), p);
    s->n_pods++;
    (void)applied_pod_ref(p);
}

void pod_set_remove_config(struct pod_set *s, bool secret,
                           const char *namespace, const char *name)
{
    size_t at = config_from(s, secret, namespace, name);
    struct applied_config *old = at < s->n_configs ? s->configs[at] : NULL;
    if (!old || compare_config(old, secret, namespace, name) != 0)
        return;
    remove_at(s->configs, s->n_configs, at);
    s->n_configs--;
    applied_config_unref(old);
}

void pod_set_put_config(struct pod_set *s, struct applied_config *c)
{
    pod_set_remove_config(s, c->secret, c->namespace, c->name);
    s->configs = xgrow(s->configs, s->n_configs, &s->configs_cap,
                       sizeof(*s->configs));
    insert_at(s->configs, s->n_configs,
              config_from(s, c->secret, c->namespace, c->name), c);
    s->n_configs++;
    (void)applied_config_ref(c);
}
