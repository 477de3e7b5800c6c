#include <errno.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/log/log_copier_private.h"

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 5000 };

/* --- containers, with the lock held --------------------------------------- */

struct log_container *log_copier_find(struct log_copier *c, const char *key)
{
    return strmap_get(&c->containers, key);
}

struct log_container *log_copier_take(struct log_copier *c, const char *key)
{
    struct log_container *k = NULL;
    /* looked for again each time: it may be gone by then */
    while (!c->stopped && (k = log_copier_find(c, key)) && k->busy)
        (void)clock_wait(&c->wake, &c->lock, INT64_MAX);
    if (c->stopped || !k)
        return NULL;
    k->busy = true;
    return k;
}

void log_copier_give(struct log_container *k)
{
    k->busy = false;
    log_remote_wake(k->remote);
}

void log_container_unlist(struct log_container *k)
{
    struct log_remote *r = k->remote;
    size_t i = 0;
    while (i < r->n && r->list[i] != k)
        i++;
    if (i == r->n)
        return;
    r->n--;
    memmove(&r->list[i], &r->list[i + 1], (r->n - i) * sizeof r->list[0]);
}

/* Tags rise: the newest is the last. */
void log_container_list(struct log_container *k)
{
    struct log_remote *r = k->remote;
    k->tag = ++r->last_tag;
    r->list[r->n++] = k;
}

void log_container_renew(struct log_container *k)
{
    struct log_remote *r = k->remote;
    log_container_unlist(k);
    log_container_list(k);
    r->version++;
    log_remote_wake(r);
}

/* --- remotes, with the lock held ------------------------------------------ */

static struct log_remote *remote_find(const struct log_copier *c,
                                      const char *name)
{
    for (size_t i = 0; i < c->n_remotes; i++)
        if (strcmp(c->remotes[i]->name, name) == 0)
            return c->remotes[i];
    return NULL;
}

int log_remote_make(struct log_copier *c, const char *name,
                    struct log_remote **ret_remote, struct error *err)
{
    struct log_remote *r = remote_find(c, name);
    size_t len = strlen(name);
    if (!r && (len == 0 || len > LOG_REMOTE_NAME_MAX))
        return error_set(err, EINVAL, "remote \"%.300s\": of %zu characters",
                         name, len);
    if (!r && c->n_remotes == LOG_REMOTES_MAX)
        return error_set(err, ENOSPC, "remote %s: more than %d", name,
                         LOG_REMOTES_MAX);
    if (!r) {
        r = c->remotes[c->n_remotes++] = xcalloc(1, sizeof *r);
        (void)snprintf(r->name, sizeof r->name, "%s", name);
        r->copier = c;
        clock_wait_init(&r->wake);
        r->backoff = (struct backoff){.min_ms = BACKOFF_MIN_MS,
                                      .max_ms = BACKOFF_MAX_MS,
                                      .random = (uint64_t)clock_ns()};
    }
    *ret_remote = r;
    return 0;
}

void log_remote_wake(struct log_remote *r)
{
    (void)pthread_cond_broadcast(&r->wake);
    (void)pthread_cond_broadcast(&r->copier->wake);
}

int log_remote_begin(struct log_remote *r, struct error *err)
{
    while (r->n_threads < LOG_LANES) {
        int rc = pthread_create(&r->threads[r->n_threads], NULL,
                                log_round_thread, r);
        if (rc)
            return error_errno(err, rc, "remote %s: thread", r->name);
        r->n_threads++;
    }
    return 0;
}
