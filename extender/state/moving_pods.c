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
    int64_t until_ms; /* of an offer; 0: it is nominated */
    enum pod_role role;
    int32_t pair;
};

typedef char leaving_uid[DEMAND_UID_MAX + 1];

struct moving_pods {
    atomic_uint refs;
    struct coming *coming; /* by pair, the host pod first, then by uid, an
                            * offer before an older nomination */
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
    if (order == 0)
        order = strcmp(x->uid, y->uid);
    return order ? order : (x->until_ms == 0) - (y->until_ms == 0);
}

static int compare_uid(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void add_coming(struct moving_pods *m, const struct demand *pod,
                       const char *node, int64_t until_ms)
{
    if (m->n_coming >= MOVING_PODS_MAX)
        return;
    struct coming *c = &m->coming[m->n_coming++];
    memset(c, 0, sizeof *c);
    memcpy(c->uid, pod->uid, strlen(pod->uid) + 1);
    memcpy(c->namespace, pod->namespace, strlen(pod->namespace) + 1);
    memcpy(c->job, pod->job, strlen(pod->job) + 1);
    memcpy(c->node, node, strnlen(node, sizeof c->node - 1));
    demand_pair_key(pod, c->pair_key);
    c->until_ms = until_ms;
    c->role = pod->role;
    c->pair = pod->pair;
}

/* A copy with room for one more of each. */
static struct moving_pods *copy(const struct moving_pods *old)
{
    struct moving_pods *m = xcalloc(1, sizeof *m);
    atomic_init(&m->refs, 1);
    m->n_coming = old ? old->n_coming : 0;
    m->n_leaving = old ? old->n_leaving : 0;
    m->coming = xcalloc(m->n_coming + 1, sizeof *m->coming);
    m->leaving = xcalloc(m->n_leaving + 1, sizeof *m->leaving);
    for (size_t i = 0; i < m->n_coming; i++)
        m->coming[i] = old->coming[i];
    for (size_t i = 0; i < m->n_leaving; i++)
        memcpy(m->leaving[i], old->leaving[i], sizeof(leaving_uid));
    return m;
}

static void remove_coming(struct moving_pods *m, const char *uid, bool offered)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_coming; i++)
        if (strcmp(m->coming[i].uid, uid) != 0 ||
            (m->coming[i].until_ms > 0) != offered)
            m->coming[kept++] = m->coming[i];
    m->n_coming = kept;
}

static void remove_leaving(struct moving_pods *m, const char *uid)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_leaving; i++)
        if (strcmp(m->leaving[i], uid) != 0)
            memmove(m->leaving[kept++], m->leaving[i], sizeof(leaving_uid));
    m->n_leaving = kept;
}

/* In order; NULL when there are none. */
static struct moving_pods *finish(struct moving_pods *m)
{
    qsort(m->coming, m->n_coming, sizeof *m->coming, compare_coming);
    qsort(m->leaving, m->n_leaving, sizeof *m->leaving, compare_uid);
    if (m->n_coming + m->n_leaving)
        return m;
    moving_pods_unref(m);
    return NULL;
}

struct moving_pods *moving_pods_with(const struct moving_pods *old,
                                     const struct demand *pod, const char *node,
                                     bool leaving)
{
    struct moving_pods *m = copy(old);
    remove_coming(m, pod->uid, false);
    remove_leaving(m, pod->uid);
    if (node) {
        remove_coming(m, pod->uid, true);
        add_coming(m, pod, node, 0);
    }
    if (leaving && m->n_leaving < MOVING_PODS_MAX)
        memcpy(m->leaving[m->n_leaving++], pod->uid, strlen(pod->uid) + 1);
    return finish(m);
}

struct moving_pods *moving_pods_offer(const struct moving_pods *old,
                                      const struct demand *pod,
                                      const char *node, int64_t until_ms)
{
    struct moving_pods *m = copy(old);
    remove_coming(m, pod->uid, true);
    add_coming(m, pod, node, until_ms);
    return finish(m);
}

static bool offer_ends(const struct coming *c, const char *uid, int64_t now_ms)
{
    return c->until_ms > 0 &&
           (now_ms >= c->until_ms || strcmp(c->uid, uid) == 0);
}

bool moving_pods_offer_ends(const struct moving_pods *m, const char *uid,
                            int64_t now_ms)
{
    for (size_t i = 0; m && i < m->n_coming; i++)
        if (offer_ends(&m->coming[i], uid, now_ms))
            return true;
    return false;
}

struct moving_pods *moving_pods_end_offers(const struct moving_pods *old,
                                           const char *uid, int64_t now_ms)
{
    struct moving_pods *m = copy(old);
    m->n_coming = 0;
    for (size_t i = 0; old && i < old->n_coming; i++)
        if (!offer_ends(&old->coming[i], uid, now_ms))
            m->coming[m->n_coming++] = old->coming[i];
    return finish(m);
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
