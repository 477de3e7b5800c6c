#include "extender/pods/pending_demands.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { CHAINS = 2 * PENDING_DEMANDS_MAX, NOBODY = UINT16_MAX };

/* Entries are given out in a circle; each is in two hash chains. */
struct entry {
    struct demand demand;
    char *refusal;                 /* or NULL */
    struct candidates *candidates; /* or NULL */
    uint16_t next_uid, next_name;
    bool used;
    int64_t since_s, since_ms; /* of the first question, by either clock */
    int64_t asked_ms;          /* of the last */
    uint64_t serial;           /* of the first question; see walk */
};

struct pending_demands {
    pthread_mutex_t lock;
    struct entry *entries;
    uint16_t by_uid[CHAINS];
    uint16_t by_name[CHAINS];
    uint16_t turn;
    uint64_t version, serial;
    struct candidates *last; /* pods of one job share them */
};

static size_t uid_chain(const char *uid)
{
    return hash_bytes(uid, strlen(uid)) % CHAINS;
}

static size_t name_chain(const char *namespace, const char *name)
{
    return (hash_bytes(namespace, strlen(namespace)) * 31 +
            hash_bytes(name, strlen(name))) %
           CHAINS;
}

struct pending_demands *pending_demands_create(void)
{
    struct pending_demands *s = xcalloc(1, sizeof *s);
    (void)pthread_mutex_init(&s->lock, NULL);
    s->entries = xcalloc(PENDING_DEMANDS_MAX, sizeof *s->entries);
    for (size_t i = 0; i < CHAINS; i++)
        s->by_uid[i] = s->by_name[i] = NOBODY;
    return s;
}

void pending_demands_destroy(struct pending_demands *s)
{
    if (!s)
        return;
    (void)pthread_mutex_destroy(&s->lock);
    for (size_t i = 0; i < PENDING_DEMANDS_MAX; i++) {
        free(s->entries[i].refusal);
        candidates_unref(s->entries[i].candidates);
    }
    candidates_unref(s->last);
    free(s->entries);
    free(s);
}

static struct entry *find_uid(struct pending_demands *s, const char *uid)
{
    for (uint16_t i = s->by_uid[uid_chain(uid)]; i != NOBODY;
         i = s->entries[i].next_uid)
        if (strcmp(s->entries[i].demand.uid, uid) == 0)
            return &s->entries[i];
    return NULL;
}

static struct entry *find_name(struct pending_demands *s, const char *namespace,
                               const char *name)
{
    for (uint16_t i = s->by_name[name_chain(namespace, name)]; i != NOBODY;
         i = s->entries[i].next_name) {
        const struct demand *d = &s->entries[i].demand;
        if (strcmp(d->name, name) == 0 && strcmp(d->namespace, namespace) == 0)
            return &s->entries[i];
    }
    return NULL;
}

static void unlink_entry(struct pending_demands *s, uint16_t index)
{
    struct entry *e = &s->entries[index];
    uint16_t *at = &s->by_uid[uid_chain(e->demand.uid)];
    while (*at != index)
        at = &s->entries[*at].next_uid;
    *at = e->next_uid;
    at = &s->by_name[name_chain(e->demand.namespace, e->demand.name)];
    while (*at != index)
        at = &s->entries[*at].next_name;
    *at = e->next_name;
    s->version++;
    e->used = false;
    free(e->refusal);
    e->refusal = NULL;
    candidates_unref(e->candidates);
    e->candidates = NULL;
}

static void link_entry(struct pending_demands *s, uint16_t index,
                       const struct demand *demand, const char *refusal)
{
    struct entry *e = &s->entries[index];
    uint16_t *uid = &s->by_uid[uid_chain(demand->uid)];
    uint16_t *name = &s->by_name[name_chain(demand->namespace, demand->name)];
    e->demand = *demand;
    e->refusal = refusal ? xstrdup(refusal) : NULL;
    e->next_uid = *uid;
    e->next_name = *name;
    s->version++;
    e->used = true;
    e->since_s = clock_wall_s();
    e->since_ms = e->asked_ms = clock_ms();
    e->serial = ++s->serial;
    *uid = *name = index;
}

static void put(struct pending_demands *s, const struct demand *demand,
                const char *refusal)
{
    if (!demand->uid[0])
        return;
    hold_lock(&s->lock);
    struct entry *old = find_uid(s, demand->uid);
    if (old) {
        uint16_t index = (uint16_t)(old - s->entries);
        struct candidates *kept = candidates_ref(old->candidates);
        int64_t since_s = old->since_s, since_ms = old->since_ms;
        uint64_t serial = old->serial;
        uint64_t version = s->version;
        bool news = !refusal != !old->refusal;
        unlink_entry(s, index);
        link_entry(s, index, demand, refusal);
        old->candidates = kept;
        old->since_s = since_s;
        old->since_ms = since_ms;
        old->serial = serial;
        s->version = version + news;
    } else {
        uint16_t index = s->turn;
        s->turn = (uint16_t)((s->turn + 1) % PENDING_DEMANDS_MAX);
        if (s->entries[index].used)
            unlink_entry(s, index);
        link_entry(s, index, demand, refusal);
    }
}

void pending_demands_offer(struct pending_demands *s,
                           const struct demand *demand, const char *refusal)
{
    enum { TRIES = 64 };
    if (!demand->uid[0])
        return;
    hold_lock(&s->lock);
    bool known = find_uid(s, demand->uid) != NULL;
    for (unsigned i = 0; i < TRIES && !known; i++) {
        uint16_t index = s->turn;
        s->turn = (uint16_t)((s->turn + 1) % PENDING_DEMANDS_MAX);
        known = !s->entries[index].used;
        if (known)
            link_entry(s, index, demand, refusal);
    }
}

void pending_demands_put(struct pending_demands *s, const struct demand *demand)
{
    put(s, demand, NULL);
}

void pending_demands_put_planned(struct pending_demands *s,
                                 const struct demand *demand,
                                 const struct snapshot *snapshot,
                                 const int32_t *indexes, size_t n)
{
    pending_demands_put(s, demand);
    (void)pthread_mutex_lock(&s->lock);
    struct candidates *like = candidates_ref(s->last);
    (void)pthread_mutex_unlock(&s->lock);
    struct candidates *fresh = candidates_create(snapshot, indexes, n, like);
    candidates_unref(like);
    (void)pthread_mutex_lock(&s->lock);
    struct entry *e = find_uid(s, demand->uid);
    struct candidates *last = s->last, *old = e ? e->candidates : NULL;
    if (e)
        e->candidates = candidates_ref(fresh);
    s->last = fresh;
    (void)pthread_mutex_unlock(&s->lock);
    candidates_unref(last);
    candidates_unref(old);
}

struct candidates *pending_demands_candidates(struct pending_demands *s,
                                              const char *uid)
{
    hold_lock(&s->lock);
    const struct entry *e = find_uid(s, uid);
    return e ? candidates_ref(e->candidates) : NULL;
}

void pending_demands_refuse(struct pending_demands *s,
                            const struct demand *demand, const char *text)
{
    put(s, demand, text);
}

bool pending_demands_find_uid(struct pending_demands *s, const char *uid,
                              struct demand *ret_demand)
{
    hold_lock(&s->lock);
    const struct entry *e = find_uid(s, uid);
    bool found = e && !e->refusal;
    if (found)
        *ret_demand = e->demand;
    return found;
}

bool pending_demands_find_name(struct pending_demands *s, const char *namespace,
                               const char *name, struct demand *ret_demand,
                               char **ret_refusal)
{
    (void)pthread_mutex_lock(&s->lock);
    const struct entry *e = find_name(s, namespace, name);
    if (e) {
        *ret_demand = e->demand;
        *ret_refusal = e->refusal ? xstrdup(e->refusal) : NULL;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return e != NULL;
}

/* All entries that are there when it begins, the newest first, and none of them
 * twice.  The lock is held for one at a time, so that filter, which has to put
 * its own, waits for no more than that. */
struct walk {
    struct pending_demands *s;
    uint64_t until; /* who came later may have been here before */
    uint16_t at;
    unsigned n; /* that are behind it */
    struct demand demand;
    char *refusal; /* or NULL */
    int64_t since_s, asked_ms;
};

static void walk_begin(struct walk *w, struct pending_demands *s)
{
    *w = (struct walk){.s = s};
    hold_lock(&s->lock);
    w->until = s->serial;
    w->at = s->turn;
}

typedef bool is_wanted_f(const void *arg, const struct demand *demand,
                         const char *refusal);

/* Take the entry before; false: it is none, or is not wanted. */
static bool walk_take(struct walk *w, is_wanted_f *is_wanted, const void *arg)
{
    w->n++;
    w->at = (uint16_t)((w->at + PENDING_DEMANDS_MAX - 1) % PENDING_DEMANDS_MAX);
    free(w->refusal);
    w->refusal = NULL;
    hold_lock(&w->s->lock);
    const struct entry *e = &w->s->entries[w->at];
    if (!e->used || e->serial > w->until ||
        (is_wanted && !is_wanted(arg, &e->demand, e->refusal)))
        return false;
    w->demand = e->demand;
    w->refusal = e->refusal ? xstrdup(e->refusal) : NULL;
    w->since_s = e->since_s;
    w->asked_ms = e->asked_ms;
    return true;
}

/* The next one; false, and nothing is left of the walk: there is none. */
static bool walk_next(struct walk *w, is_wanted_f *is_wanted, const void *arg)
{
    while (w->n < PENDING_DEMANDS_MAX)
        if (walk_take(w, is_wanted, arg))
            return true;
    free(w->refusal);
    w->refusal = NULL;
    return false;
}

struct job_name {
    const char *namespace, *job;
};

static bool is_of_job(const void *arg, const struct demand *d,
                      const char *refusal)
{
    const struct job_name *name = arg;
    return !refusal && strcmp(d->job, name->job) == 0 &&
           strcmp(d->namespace, name->namespace) == 0;
}

bool pending_demands_find_job(struct pending_demands *s, const char *namespace,
                              const char *job, pending_demands_done_f *is_done,
                              const void *ctx, struct demand *ret_demand)
{
    const struct job_name name = {namespace, job};
    bool found = false, open = false;
    struct walk w;
    walk_begin(&w, s);
    while (!open && walk_next(&w, is_of_job, &name)) { /* has no refusal */
        open = !is_done(ctx, &w.demand);
        if (open || !found)
            *ret_demand = w.demand;
        found = true;
    }
    return found;
}

int64_t pending_demands_waited_ms(struct pending_demands *s, const char *uid)
{
    int64_t now_ms = clock_ms();
    hold_lock(&s->lock);
    const struct entry *e = find_uid(s, uid);
    return e ? now_ms - e->since_ms : -1;
}

uint64_t pending_demands_version(struct pending_demands *s)
{
    hold_lock(&s->lock);
    return s->version;
}

void pending_demands_each(struct pending_demands *s, pending_demands_f *visit,
                          void *arg)
{
    int64_t now_ms = clock_ms();
    struct walk w;
    walk_begin(&w, s);
    while (walk_next(&w, NULL, NULL))
        if (now_ms - w.asked_ms < PENDING_DEMANDS_FRESH_MS)
            visit(arg, &w.demand, w.refusal, w.since_s);
}

void pending_demands_forget(struct pending_demands *s, const char *namespace,
                            const char *name)
{
    hold_lock(&s->lock);
    struct entry *e = find_name(s, namespace, name);
    if (e)
        unlink_entry(s, (uint16_t)(e - s->entries));
}
