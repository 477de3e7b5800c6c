#include "extender/keep/job_lease.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"

struct lease {
    char key[JOB_LEASE_KEY_MAX];
    struct demand pod; /* any pod that the lease is for */
    int64_t until_ms;
    int64_t former_ms; /* before it was hastened; 0: it was not */
    size_t at;         /* in the list */
};

struct leases {
    pthread_mutex_t lock; /* taken to change what follows, and by
                           * leases_end() to read it */
    struct strmap by_key;
    struct lease **list;
    size_t n, cap;
    int64_t first_ms; /* none ends earlier */
    size_t n_hastened;
};

struct leases *leases_create(void)
{
    struct leases *l = xcalloc(1, sizeof *l);
    l->first_ms = INT64_MAX;
    (void)pthread_mutex_init(&l->lock, NULL); /* cannot fail on Linux */
    return l;
}

void leases_destroy(struct leases *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++)
        free(l->list[i]);
    free(l->list);
    strmap_fini(&l->by_key);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct lease *lease_create(struct leases *l, const char *key,
                                  const struct demand *pod)
{
    struct lease *lease = xcalloc(1, sizeof *lease);
    memcpy(lease->key, key, strlen(key) + 1);
    lease->pod = *pod;
    lease->at = l->n;
    l->list = xgrow(l->list, l->n, &l->cap, sizeof(*l->list));
    l->list[l->n++] = lease;
    (void)strmap_put(&l->by_key, lease->key, lease);
    return lease;
}

void leases_renew(struct leases *l, const struct demand *pod, int64_t until_ms)
{
    char key[JOB_LEASE_KEY_MAX];
    job_lease_key(pod, key);
    hold_lock(&l->lock);
    struct lease *lease = strmap_get(&l->by_key, key);
    if (!lease)
        lease = lease_create(l, key, pod);
    lease->until_ms = until_ms;
    if (until_ms < l->first_ms)
        l->first_ms = until_ms;
}

bool leases_prolong(struct leases *l, const struct demand *pod,
                    int64_t until_ms)
{
    char key[JOB_LEASE_KEY_MAX];
    job_lease_key(pod, key);
    if (!strmap_get(&l->by_key, key))
        return false;
    leases_renew(l, pod, until_ms);
    return true;
}

static void find_first(struct leases *l)
{
    l->first_ms = INT64_MAX;
    for (size_t i = 0; i < l->n; i++)
        if (l->list[i]->until_ms < l->first_ms)
            l->first_ms = l->list[i]->until_ms;
}

void leases_drop(struct leases *l, const struct demand *pod)
{
    char key[JOB_LEASE_KEY_MAX];
    job_lease_key(pod, key);
    hold_lock(&l->lock);
    struct lease *lease = strmap_remove(&l->by_key, key);
    if (lease) {
        struct lease *last = l->list[--l->n];
        l->list[lease->at] = last;
        last->at = lease->at;
        l->n_hastened -= lease->former_ms != 0;
        free(lease);
        find_first(l);
    }
}

void leases_hasten(struct leases *l, const struct demand *pod, int64_t now_ms)
{
    char key[JOB_LEASE_KEY_MAX];
    job_lease_key(pod, key);
    struct lease *lease = strmap_get(&l->by_key, key);
    if (lease && lease->former_ms == 0) {
        lease->former_ms = lease->until_ms;
        l->n_hastened++;
    }
    leases_renew(l, pod, now_ms);
}

void leases_mark(struct leases *l)
{
    for (size_t i = 0; i < l->n && l->n_hastened > 0; i++) {
        l->n_hastened -= l->list[i]->former_ms != 0;
        l->list[i]->former_ms = 0;
    }
}

void leases_undo(struct leases *l)
{
    hold_lock(&l->lock);
    for (size_t i = 0; i < l->n && l->n_hastened > 0; i++) {
        struct lease *lease = l->list[i];
        l->n_hastened -= lease->former_ms != 0;
        if (lease->former_ms > lease->until_ms)
            lease->until_ms = lease->former_ms;
        lease->former_ms = 0;
    }
    find_first(l);
}

bool leases_end(struct leases *l, const char *job, int64_t *ret_until_ms)
{
    char key[JOB_KEY_MAX];
    bool any = false;
    hold_lock(&l->lock);
    for (size_t i = 0; i < l->n; i++) {
        job_key(&l->list[i]->pod, key);
        if (job[0] && strcmp(job, key) != 0)
            continue;
        if (!any || l->list[i]->until_ms > *ret_until_ms)
            *ret_until_ms = l->list[i]->until_ms;
        any = true;
    }
    return any;
}

bool leases_due(const struct leases *l, int64_t now_ms)
{
    return l->first_ms <= now_ms;
}

const struct demand *leases_next_ended(const struct leases *l, int64_t now_ms,
                                       size_t *pos)
{
    if (*pos > l->n)
        *pos = l->n;
    /* backwards: dropping a lease moves the last one, which was visited
     * already, to its index */
    while (*pos > 0) {
        const struct lease *lease = l->list[--*pos];
        if (lease->until_ms <= now_ms)
            return &lease->pod;
    }
    return NULL;
}
