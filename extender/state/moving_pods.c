#include "extender/state/moving_pods.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/lower_bound.h"
#include "lib/base/refs.h"

struct coming {
    char uid[DEMAND_UID_MAX + 1];
    char pair_key[DEMAND_PAIR_KEY_MAX];
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char job[DEMAND_NAME_MAX + 1]; /* "" none */
    char node[DEMAND_NAME_MAX + 1];
    enum pod_role role;
    int32_t pair;
};

typedef char leaving_uid[DEMAND_UID_MAX + 1];

struct moving_pods {
    atomic_uint refs;
    struct coming *coming; /* by pair, the host pod first, then by uid */
    leaving_uid *leaving;  /* in order */
    size_t n_coming, n_leaving;
};

struct moving_pods *moving_pods_ref(struct moving_pods *m)
{
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void moving_pods_unref(struct moving_pods *m)
{
    if (!m || !refs_drop(&m->refs))
        return;
    free(m->coming);
    free(m->leaving);
    free(m);
}

static int compare_coming(const void *a, const void *b)
{
    const struct coming *x = a, *y = b;
    int order = strcmp(x->pair_key, y->pair_key);
    if (order == 0)
        order = (x->role != ROLE_HOST) - (y->role != ROLE_HOST);
    return order ? order : strcmp(x->uid, y->uid);
}

static int compare_uid(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void add_coming(struct moving_pods *m, const struct demand *pod,
                       const char *node)
{
    struct coming *c = &m->coming[m->n_coming++];
    memset(c, 0, sizeof *c);
    memcpy(c->uid, pod->uid, strlen(pod->uid) + 1);
    memcpy(c->namespace, pod->namespace, strlen(pod->namespace) + 1);
    memcpy(c->job, pod->job, strlen(pod->job) + 1);
    memcpy(c->node, node, strnlen(node, sizeof c->node - 1));
    demand_pair_key(pod, c->pair_key);
    c->role = pod->role;
    c->pair = pod->pair;
}

struct moving_pods *moving_pods_with(const struct moving_pods *old,
                                     const struct demand *pod, const char *node,
                                     bool leaving)
{
    size_t n_coming = old ? old->n_coming : 0;
    size_t n_leaving = old ? old->n_leaving : 0;
    cleanup_with(moving_pods) struct moving_pods *m = xcalloc(1, sizeof *m);
    atomic_init(&m->refs, 1);
    m->coming = xcalloc(n_coming + 1, sizeof *m->coming);
    m->leaving = xcalloc(n_leaving + 1, sizeof *m->leaving);
    for (size_t i = 0; i < n_coming; i++)
        if (strcmp(old->coming[i].uid, pod->uid) != 0)
            m->coming[m->n_coming++] = old->coming[i];
    for (size_t i = 0; i < n_leaving; i++)
        if (strcmp(old->leaving[i], pod->uid) != 0)
            memcpy(m->leaving[m->n_leaving++], old->leaving[i],
                   sizeof(leaving_uid));
    if (node && m->n_coming < MOVING_PODS_MAX)
        add_coming(m, pod, node);
    if (leaving && m->n_leaving < MOVING_PODS_MAX)
        memcpy(m->leaving[m->n_leaving++], pod->uid, strlen(pod->uid) + 1);
    qsort(m->coming, m->n_coming, sizeof *m->coming, compare_coming);
    qsort(m->leaving, m->n_leaving, sizeof *m->leaving, compare_uid);
    return m->n_coming + m->n_leaving ? steal(&m) : NULL;
}

const char *moving_pods_pair_node(const struct moving_pods *m,
                                  const char *pair_key, const char *uid)
{
    size_t n = m ? m->n_coming : 0;
    size_t at = lower_bound(n, i, strcmp(m->coming[i].pair_key, pair_key) < 0);
    for (; at < n && strcmp(m->coming[at].pair_key, pair_key) == 0; at++)
        if (strcmp(m->coming[at].uid, uid) != 0)
            return m->coming[at].node;
    return NULL;
}

const char *moving_pods_next_of_job(const struct moving_pods *m,
                                    const struct demand *pod, size_t *pos,
                                    int32_t *ret_pair)
{
    while (m && pod->job[0] && *pos < m->n_coming) {
        const struct coming *c = &m->coming[(*pos)++];
        if (strcmp(c->job, pod->job) != 0 ||
            strcmp(c->namespace, pod->namespace) != 0)
            continue;
        *ret_pair = c->pair;
        return c->node;
    }
    return NULL;
}

bool moving_pods_has_job(const struct moving_pods *m, const struct demand *pod,
                         const char *node)
{
    size_t pos = 0;
    int32_t ignored;
    for (const char *at;
         (at = moving_pods_next_of_job(m, pod, &pos, &ignored));)
        if (!node || strcmp(at, node) == 0)
            return true;
    return false;
}

bool moving_pods_is_leaving(const struct moving_pods *m, const char *uid)
{
    return m && bsearch(uid, m->leaving, m->n_leaving, sizeof *m->leaving,
                        compare_uid);
}
