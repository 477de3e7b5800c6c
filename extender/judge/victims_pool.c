/* The pairs of one node that can be evicted, and the best set of them. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/victims_private.h"
#include "lib/base/mem.h"

/* --- who is there ------------------------------------------------------- */

static int compare_pair(const void *a, const void *b)
{
    const struct allocation *x = *(const struct allocation *const *)a;
    const struct allocation *y = *(const struct allocation *const *)b;
    int order = strcmp(x->pair_key, y->pair_key);
    return order ? order : allocation_compare_pod(x, y);
}

static int compare_unit(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return strcmp(x->members[0]->pair_key, y->members[0]->pair_key);
}

static bool same_job(const struct demand *a, const struct demand *b)
{
    return a->job[0] && strcmp(a->job, b->job) == 0 &&
           strcmp(a->namespace, b->namespace) == 0;
}

/* May `pod` evict it? */
static bool is_evictable(const struct allocation *a, const struct demand *pod)
{
    const struct demand *d = &a->demand;
    return (d->role == ROLE_HOST || d->role == ROLE_XPU) && !a->held &&
           d->uid[0] && d->priority < pod->priority && !same_job(d, pod) &&
           (strcmp(d->name, pod->name) != 0 ||
            strcmp(d->namespace, pod->namespace) != 0);
}

static bool is_among(const struct allocation *a,
                     const struct allocation *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == a)
            return true;
    return false;
}

/* The members of one pair: true when all can be evicted. */
static bool read_unit(struct unit *u, const struct demand *pod,
                      const struct victims_ask *ask, bool *ret_given)
{
    bool evictable = true;
    *ret_given = false;
    for (size_t i = 0; i < u->n; i++) {
        const struct allocation *a = u->members[i];
        evictable &= is_evictable(a, pod);
        u->priority += a->demand.priority;
        *ret_given |= is_among(a, ask->given, ask->n_given);
    }
    return evictable;
}

static void number_jobs(struct pool *p)
{
    for (unsigned i = 0; i < p->n_units; i++) {
        const struct demand *d = &p->units[i].members[0]->demand;
        p->units[i].job = (uint8_t)i;
        for (unsigned j = i; j-- > 0;)
            if (same_job(d, &p->units[j].members[0]->demand))
                p->units[i].job = p->units[j].job;
        for (size_t j = 0; j < p->n_given; j++)
            if (same_job(d, &p->gone[j]->demand))
                p->units[i].job = JOB_BROKEN;
    }
}

bool pool_init(struct pool *p, const struct node *node,
               const struct demand *pod, const struct victims_ask *ask)
{
    size_t n = node->n_allocations;
    bool sound = true;
    *p = (struct pool){.node = node};
    p->members = xcalloc(n + 1, sizeof *p->members);
    p->gone = xcalloc(n + 1, sizeof *p->gone);
    p->units = xcalloc(n + 1, sizeof *p->units);
    for (size_t i = 0; i < n; i++)
        p->members[i] = node->allocations[i];
    qsort(p->members, n, sizeof *p->members, compare_pair);
    for (size_t i = 0; i < n;) {
        struct unit u = {.members = p->members + i};
        bool given;
        while (i < n &&
               strcmp(p->members[i]->pair_key, u.members[0]->pair_key) == 0) {
            u.n++;
            i++;
        }
        bool evictable = read_unit(&u, pod, ask, &given);
        if (given) {
            sound &= evictable;
            memcpy(p->gone + p->n_given, u.members, u.n * sizeof *p->gone);
            p->n_given += u.n;
            p->n_given_units++;
        } else if (evictable) {
            p->units[p->n_units++] = u;
        }
    }
    qsort(p->units, p->n_units, sizeof *p->units, compare_unit);
    if (p->n_units > VICTIMS_PAIRS_MAX)
        p->n_units = VICTIMS_PAIRS_MAX;
    number_jobs(p);
    return sound;
}

void pool_fini(struct pool *p)
{
    free(p->members);
    free(p->gone);
    free(p->units);
    memset(p, 0, sizeof *p);
}

const struct allocation *const *pool_gone(struct pool *p, uint64_t set,
                                          size_t *ret_n)
{
    size_t n = p->n_given;
    for (uint64_t left = set; left; left &= left - 1) {
        const struct unit *u = &p->units[__builtin_ctzll(left)];
        memcpy(p->gone + n, u->members, u->n * sizeof *p->gone);
        n += u->n;
    }
    *ret_n = n;
    return p->gone;
}

int64_t pool_priority(const struct pool *p, uint64_t set)
{
    int64_t sum = 0;
    for (uint64_t left = set; left; left &= left - 1)
        sum += p->units[__builtin_ctzll(left)].priority;
    return sum;
}

void pool_name(struct pool *p, const struct victims_ask *ask, uint64_t set,
               struct victims *ret_victims)
{
    size_t n;
    const struct allocation *const *gone = pool_gone(p, set, &n);
    ret_victims->fits = true;
    ret_victims->named = xcalloc(n + 1, sizeof *ret_victims->named);
    for (size_t i = 0; i < n; i++)
        if (!is_among(gone[i], ask->given, ask->n_given))
            ret_victims->named[ret_victims->n++] = gone[i];
}

/* --- the best set ------------------------------------------------------- */

/* What sets of one size are compared by; the lower the better. */
struct worth {
    unsigned jobs;
    int64_t priority;
    size_t pods;
};

struct hunt {
    struct pool *pool;
    room_f *room;
    void *ctx;
    uint64_t evicted;                 /* anyway */
    uint8_t order[VICTIMS_PAIRS_MAX]; /* the units that are left */
    unsigned n;
    bool found;
    uint64_t best;
    struct worth worth;
};

static struct worth worth_of(const struct pool *p, uint64_t set)
{
    struct worth w = {.priority = pool_priority(p, set)};
    uint64_t jobs = 0;
    for (uint64_t left = set; left; left &= left - 1) {
        const struct unit *u = &p->units[__builtin_ctzll(left)];
        w.pods += u->n;
        if (u->job != JOB_BROKEN)
            jobs |= UINT64_C(1) << u->job;
    }
    w.jobs = (unsigned)__builtin_popcountll(jobs);
    return w;
}

static bool is_better(const struct worth *a, const struct worth *b)
{
    if (a->jobs != b->jobs)
        return a->jobs < b->jobs;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->pods < b->pods;
}

static bool makes_room(struct hunt *h, uint64_t set)
{
    size_t n;
    const struct allocation *const *gone = pool_gone(h->pool, h->evicted | set,
                                                     &n);
    if (*h->pool->steps)
        --*h->pool->steps;
    return h->room(h->ctx, gone, n);
}

static void offer(struct hunt *h, uint64_t set)
{
    struct worth worth = worth_of(h->pool, h->evicted | set);
    if ((h->found && !is_better(&worth, &h->worth)) || !makes_room(h, set))
        return;
    h->found = true;
    h->best = set;
    h->worth = worth;
}

/* All sets of `set` and `size` more of the units from `at` on.  A unit is
 * left out only as long as all that come after it would do. */
static void descend(struct hunt *h, unsigned at, uint64_t set, unsigned size)
{
    if (size == 0) {
        offer(h, set);
        return;
    }
    if (h->n - at < size || *h->pool->steps == 0)
        return;
    descend(h, at + 1, set | UINT64_C(1) << h->order[at], size - 1);
    uint64_t rest = 0;
    for (unsigned i = at + 1; i < h->n; i++)
        rest |= UINT64_C(1) << h->order[i];
    if (h->n - at > size && makes_room(h, set | rest))
        descend(h, at + 1, set, size);
}

/* All, less each that can be spared, the dearest first. */
static uint64_t spare(struct hunt *h, uint64_t all)
{
    for (unsigned i = h->n; i-- > 0;) {
        uint64_t unit = UINT64_C(1) << h->order[i];
        if (makes_room(h, all & ~unit))
            all &= ~unit;
    }
    return all;
}

bool pool_find(struct pool *p, uint64_t evicted, room_f *room, void *ctx,
               uint64_t *ret_units)
{
    struct hunt h = {.pool = p, .room = room, .ctx = ctx, .evicted = evicted};
    uint64_t all = 0;
    for (unsigned i = 0; i < p->n_units; i++)
        if (!(evicted >> i & 1)) {
            h.order[h.n++] = (uint8_t)i;
            all |= UINT64_C(1) << i;
        }
    if (!makes_room(&h, all))
        return false;
    for (unsigned size = 0; size <= h.n && !h.found && *p->steps; size++)
        descend(&h, 0, 0, size);
    *ret_units = h.found ? h.best : spare(&h, all);
    return true;
}
