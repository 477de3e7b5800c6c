#include "extender/state/plans.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

struct entry {
    struct snapshot *snapshot; /* NULL: free */
    struct demand asked;
    uint64_t *candidates;
    uint64_t hash;
    int32_t rank, pin;
    uint32_t mode;
    uint64_t used; /* when, in look-ups */
    struct plan *plan;
    struct plan_refusal refusal;
};

struct plans {
    pthread_mutex_t lock;
    uint64_t clock; /* look-ups so far */
    struct plans_counts counts;
    struct entry entries[PLANS_MAX];
};

struct plans *plans_create(void)
{
    struct plans *p = xcalloc(1, sizeof *p);
    (void)pthread_mutex_init(&p->lock, NULL); /* cannot fail on Linux */
    return p;
}

static void entry_fini(struct entry *e)
{
    snapshot_unref(e->snapshot);
    plan_unref(e->plan);
    free(e->candidates);
    memset(e, 0, sizeof *e);
}

void plans_destroy(struct plans *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < PLANS_MAX; i++)
        entry_fini(&p->entries[i]);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

static size_t candidate_bytes(const struct plans_key *key)
{
    return (key->snapshot->n_nodes + 63) / 64 * sizeof(uint64_t);
}

static uint64_t key_hash(const struct plans_key *key)
{
    uint64_t hash = hash_bytes((const char *)key->asked, sizeof *key->asked);
    if (key->candidates)
        hash = hash_mix(hash, hash_bytes((const char *)key->candidates,
                                         candidate_bytes(key)));
    return hash;
}

/* Is it the same question, whatever the snapshot?  Candidates are bits of the
 * same nodes. */
static bool entry_asks(const struct entry *e, const struct plans_key *key,
                       uint64_t hash)
{
    return e->hash == hash && e->rank == key->rank && e->pin == key->pin &&
           e->mode == key->mode &&
           (e->candidates != NULL) == (key->candidates != NULL) &&
           memcmp(&e->asked, key->asked, sizeof e->asked) == 0 &&
           (!e->candidates ||
            memcmp(e->candidates, key->candidates, candidate_bytes(key)) == 0);
}

static struct entry *entry_find(struct plans *p, const struct plans_key *key,
                                uint64_t hash)
{
    for (size_t i = 0; i < PLANS_MAX; i++)
        if (p->entries[i].snapshot == key->snapshot &&
            entry_asks(&p->entries[i], key, hash))
            return &p->entries[i];
    return NULL;
}

bool plans_find(struct plans *p, const struct plans_key *key,
                struct plan **ret_plan, struct plan_refusal *ret_refusal)
{
    uint64_t hash = key_hash(key);
    pthread_mutex_lock(&p->lock);
    struct entry *e = entry_find(p, key, hash);
    if (e) {
        e->used = ++p->clock;
        *ret_plan = e->plan ? plan_ref(e->plan) : NULL;
        *ret_refusal = e->refusal;
    }
    pthread_mutex_unlock(&p->lock);
    return e != NULL;
}

static bool is_earlier(const struct snapshot *s, const struct snapshot *now)
{
    return s && (s == now || s->number < now->number) &&
           s->roster == now->roster && s->fabric == now->fabric &&
           s->policy == now->policy;
}

struct plan *plans_find_earlier(struct plans *p, const struct plans_key *key,
                                struct snapshot **ret_snapshot)
{
    uint64_t hash = key_hash(key);
    const struct entry *newest = NULL;
    hold_lock(&p->lock);
    for (size_t i = 0; i < PLANS_MAX; i++) {
        const struct entry *e = &p->entries[i];
        if (e->plan && is_earlier(e->snapshot, key->snapshot) &&
            entry_asks(e, key, hash) &&
            (!newest || newest->snapshot->number < e->snapshot->number))
            newest = e;
    }
    if (!newest)
        return NULL;
    *ret_snapshot = snapshot_ref(newest->snapshot);
    return plan_ref(newest->plan);
}

/* A free entry, or the one that was not asked for the longest. */
static struct entry *entry_oldest(struct plans *p)
{
    struct entry *oldest = &p->entries[0];
    for (size_t i = 1; i < PLANS_MAX; i++)
        if (p->entries[i].used < oldest->used)
            oldest = &p->entries[i];
    return oldest;
}

void plans_put(struct plans *p, const struct plans_key *key, struct plan *plan,
               const struct plan_refusal *refusal)
{
    struct entry fresh = {
        .snapshot = snapshot_ref((struct snapshot *)key->snapshot),
        .hash = key_hash(key),
        .rank = key->rank,
        .pin = key->pin,
        .mode = key->mode,
        .plan = plan ? plan_ref(plan) : NULL,
        .refusal = *refusal,
    };
    memcpy(&fresh.asked, key->asked, sizeof fresh.asked);
    if (key->candidates)
        fresh.candidates = xmemdup(key->candidates, candidate_bytes(key));
    struct entry old;
    pthread_mutex_lock(&p->lock);
    struct entry *e = entry_find(p, key, fresh.hash);
    if (!e) { /* else another thread has made the same */
        e = entry_oldest(p);
        p->counts.planned++;
        p->counts.refused[refusal->lack] += !plan;
    }
    old = *e;
    *e = fresh;
    e->used = ++p->clock;
    pthread_mutex_unlock(&p->lock);
    entry_fini(&old); /* a snapshot may go with it, which takes its time */
}

void plans_count(struct plans *p, struct plans_counts *ret_counts)
{
    hold_lock(&p->lock);
    *ret_counts = p->counts;
}
