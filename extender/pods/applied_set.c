/* The set of what was applied: sorted arrays, copied when somebody else looks
 * at them. */
#include <string.h>

#include "extender/pods/applied_private.h"
#include "extender/pods/applied_view.h"
#include "extender/pods/job_states.h"
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

static int compare_job(const struct applied_pod *p, const char *namespace,
                       const char *job)
{
    int order = strcmp(p->namespace, namespace);
    return order ? order : strcmp(p->demand.job, job);
}

static bool is_of_jobs(const struct applied_pod *p)
{
    return p->demand.job[0] && p->demand.role != ROLE_SERVICE;
}

size_t pod_set_from(const struct pod_set *s, const char *namespace,
                    const char *name, bool past)
{
    return lower_bound(s->n_pods, i,
                       compare_pod(s->pods[i], namespace, name) < past);
}

size_t pod_set_job_from(const struct pod_set *s, const char *namespace,
                        const char *job, bool past)
{
    return lower_bound(s->n_by_job, i,
                       compare_job(s->by_job[i], namespace, job) < past);
}

size_t pod_set_job_end(const struct pod_set *s, size_t first)
{
    return job_states_end(s->job_states, s->n_by_job, first);
}

unsigned pod_set_job_states(const struct pod_set *s, size_t first, size_t end)
{
    return job_states_of(s->job_states, first, end);
}

_Static_assert(POD_STATES <= 32, "states are bits, and less than a byte");

/* Where it is in `by_job`, or is to be, and what there is of its job. */
static size_t member_from(const struct pod_set *s, const struct applied_pod *p,
                          size_t *ret_first, size_t *ret_end)
{
    const char *job = p->demand.job;
    size_t from = pod_set_job_from(s, p->namespace, job, false);
    size_t end = pod_set_job_from(s, p->namespace, job, true);
    *ret_first = from;
    *ret_end = end;
    return from + lower_bound(end - from, i,
                              strcmp(s->by_job[from + i]->name, p->name) < 0);
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
    size_t i = pod_set_from(s, namespace, name, false);
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

void pod_set_demand(const struct pod_set *s, const struct applied_pod *p,
                    struct demand *ret_demand)
{
    struct demand *d = ret_demand;
    int32_t size = p->demand.size;
    *d = p->demand;
    applied_pod_join(p, d);
    if (!d->job[0] || d->role == ROLE_SERVICE)
        return;
    size_t from = pod_set_job_from(s, d->namespace, d->job, false);
    size_t end = pod_set_job_from(s, d->namespace, d->job, true);
    for (size_t i = from; i < end; i++)
        if (s->by_job[i]->demand.size > size)
            size = s->by_job[i]->demand.size;
    for (size_t i = from; i < end; i++)
        if (size > 1 || s->by_job[i]->demand.pair == d->pair)
            applied_pod_join(s->by_job[i], d);
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
    free(s->states);
    free(s->by_uid);
    free(s->by_job);
    free(s->job_states);
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
    n->states = xcalloc(s->pods_cap + 1, sizeof(*n->states));
    n->by_uid = xcalloc(s->pods_cap + 1, sizeof(*n->by_uid));
    n->by_job = xcalloc(s->by_job_cap + 1, sizeof(*n->by_job));
    n->job_states = xcalloc(s->by_job_cap + 1, sizeof(*n->job_states));
    n->configs = xcalloc(s->configs_cap + 1, sizeof(*n->configs));
    for (size_t i = 0; i < s->n_pods; i++) {
        n->pods[i] = applied_pod_ref(s->pods[i]);
        n->by_uid[i] = s->by_uid[i];
        n->states[i] = s->states[i];
    }
    for (size_t i = 0; i < s->n_by_job; i++) {
        n->by_job[i] = s->by_job[i];
        n->job_states[i] = s->job_states[i];
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
    ordered_insert(array, n, sizeof element, at, &element);
}

static void remove_at(void *array, size_t n, size_t at)
{
    ordered_remove(array, n, sizeof(void *), at);
}

void pod_set_remove(struct pod_set *s, const char *namespace, const char *name)
{
    size_t at = pod_set_from(s, namespace, name, false);
    struct applied_pod *old = at < s->n_pods ? s->pods[at] : NULL;
    if (!old || compare_pod(old, namespace, name) != 0)
        return;
    remove_at(s->pods, s->n_pods, at);
    ordered_remove(s->states, s->n_pods, sizeof(*s->states), at);
    remove_at(s->by_uid, s->n_pods, uid_from(s, old->uid));
    s->n_pods--;
    if (is_of_jobs(old)) {
        size_t first, end, member = member_from(s, old, &first, &end);
        remove_at(s->by_job, s->n_by_job, member);
        job_states_remove(s->job_states, s->n_by_job, member);
        s->n_by_job--;
    }
    applied_pod_unref(old);
}

static void put_member(struct pod_set *s, struct applied_pod *p, uint8_t state)
{
    size_t states_cap = s->by_job_cap, first, end;
    size_t at = member_from(s, p, &first, &end);
    s->by_job = xgrow(s->by_job, s->n_by_job, &s->by_job_cap,
                      sizeof(*s->by_job));
    s->job_states = xgrow(s->job_states, s->n_by_job, &states_cap,
                          sizeof(*s->job_states));
    insert_at(s->by_job, s->n_by_job, at, p);
    job_states_insert(s->job_states, s->n_by_job, at, state,
                      job_place_of(at, first, end > first));
    s->n_by_job++;
}

void pod_set_put(struct pod_set *s, struct applied_pod *p)
{
    uint8_t state = (uint8_t)pod_state_shown(p, NULL);
    pod_set_remove(s, p->namespace, p->name);
    if (s->n_pods == s->pods_cap) {
        size_t cap = s->pods_cap, states_cap = cap;
        s->pods = xgrow(s->pods, s->n_pods, &s->pods_cap, sizeof(*s->pods));
        s->by_uid = xgrow(s->by_uid, s->n_pods, &cap, sizeof(*s->by_uid));
        s->states = xgrow(s->states, s->n_pods, &states_cap,
                          sizeof(*s->states));
    }
    size_t at = pod_set_from(s, p->namespace, p->name, false);
    insert_at(s->pods, s->n_pods, at, p);
    ordered_insert(s->states, s->n_pods, sizeof state, at, &state);
    insert_at(s->by_uid, s->n_pods, uid_from(s, p->uid), p);
    s->n_pods++;
    if (is_of_jobs(p))
        put_member(s, p, state);
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
