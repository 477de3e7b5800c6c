#include "router/log/log_copier.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/io/clock.h"
#include "router/log/log_copier_private.h"
#include "router/log/log_state.h"

enum {
    WAIT_MS = 5000,
    WAIT_MAX_MS = 30000,
    LINGER_MS = 60,
    REST_MS = 20000,
    ROUND_MAX = 8 << 20, /* what biga-card gives at most */
    FREE_STEP = 16 << 20,
    REMOTE_PATH_MAX = 1024,
};

/* --- its life ------------------------------------------------------------- */

static int folder_open(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_errno(err, errno, "%s", path) : fd;
}

static int states_open(const char *path, struct error *err)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_errno(err, errno, "%s", path);
    int fd = folder_open(path, err);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int code = errno;
    (void)close(fd); /* a folder: nothing was written */
    return code == EWOULDBLOCK
               ? error_set(err, EBUSY, "%s: another one copies logs", path)
               : error_errno(err, code, "%s", path);
}

static struct log_copier_config
with_defaults(const struct log_copier_config *config)
{
    struct log_copier_config c = *config;
    c.wait_ms = c.wait_ms ? c.wait_ms : WAIT_MS;
    c.wait_max_ms = c.wait_max_ms ? c.wait_max_ms : WAIT_MAX_MS;
    c.linger_ms = c.linger_ms ? c.linger_ms : LINGER_MS;
    c.rest_ms = c.rest_ms ? c.rest_ms : REST_MS;
    if (c.round_max == 0 || c.round_max > ROUND_MAX)
        c.round_max = ROUND_MAX;
    c.free_step = c.free_step ? c.free_step : FREE_STEP;
    return c;
}

int log_copier_create(const struct log_copier_config *config,
                      struct log_copier **ret_copier, struct error *err)
{
    int root = folder_open(config->pod_logs, err);
    if (root < 0)
        return root;
    int states = states_open(config->states, err);
    if (states < 0) {
        (void)close(root); /* a folder: nothing was written */
        return states;
    }
    struct log_copier *c = xcalloc(1, sizeof *c);
    c->config = with_defaults(config);
    c->pod_logs = xstrdup(config->pod_logs);
    c->remote_dir = xstrdup(config->remote_dir);
    c->root = root;
    c->states = states;
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail */
    clock_wait_init(&c->wake);
    *ret_copier = c;
    return 0;
}

static struct log_container *first_busy(const struct log_copier *c)
{
    size_t pos = 0;
    struct log_container *k;
    while ((k = strmap_next(&c->containers, &pos)) && !k->busy)
        ;
    return k;
}

static void wake_all(struct log_copier *c)
{
    for (size_t i = 0; i < c->n_remotes; i++)
        (void)pthread_cond_broadcast(&c->remotes[i]->wake);
    (void)pthread_cond_broadcast(&c->wake);
}

void log_copier_stop(struct log_copier *c)
{
    hold_lock(&c->lock);
    c->stopped = true;
    wake_all(c);
    while (first_busy(c))
        (void)clock_wait(&c->wake, &c->lock, INT64_MAX);
}

static void container_destroy(void *value)
{
    struct log_container *k = value;
    log_sink_close(k->sink);
    free(k->key);
    free(k->path);
    free(k->remote_path);
    free(k);
}

void log_copier_destroy(struct log_copier *c)
{
    if (!c)
        return;
    log_copier_stop(c);
    (void)pthread_mutex_lock(&c->lock);
    c->ended = true;
    wake_all(c);
    (void)pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->n_remotes; i++) {
        for (unsigned t = 0; t < c->remotes[i]->n_threads; t++)
            (void)pthread_join(c->remotes[i]->threads[t], NULL); /* begun */
        (void)pthread_cond_destroy(&c->remotes[i]->wake); /* nobody waits */
        free(c->remotes[i]);
    }
    strmap_fini_with(&c->containers, container_destroy);
    (void)close(c->root);                  /* a folder: nothing was written */
    (void)close(c->states);                /* the same */
    (void)pthread_cond_destroy(&c->wake);  /* nobody waits */
    (void)pthread_mutex_destroy(&c->lock); /* nobody has it */
    free(c->pod_logs);
    free(c->remote_dir);
    free(c);
}

/* --- what others call ----------------------------------------------------- */

static int stopped(struct error *err)
{
    return error_set(err, ECANCELED, "the router stops");
}

static bool is_same(const struct log_container *k,
                    const struct log_target *target)
{
    return strcmp(k->remote->name, target->remote) == 0 &&
           strcmp(k->remote_path, target->remote_path) == 0 &&
           strcmp(k->path, target->path) == 0;
}

/* A place for it in the table, which is busy until its file is open; none when
 * it is there already. */
static int reserve(struct log_copier *c, const struct log_target *target,
                   struct log_container **ret_container, struct error *err)
{
    struct log_remote *r;
    struct log_container *there = log_copier_take(c, target->key);
    if (c->stopped)
        return stopped(err);
    if (there) {
        bool same = is_same(there, target);
        log_copier_give(there);
        *ret_container = NULL;
        return same ? 0
                    : error_set(err, EEXIST, "log %s: is another container's",
                                target->key);
    }
    int rc = log_remote_make(c, target->remote, &r, err);
    if (!rc && r->n == LOG_CONTAINERS_MAX)
        rc = error_set(err, ENOSPC, "remote %s: more than %d containers",
                       r->name, LOG_CONTAINERS_MAX);
    if (!rc)
        rc = log_remote_begin(r, err);
    if (rc)
        return rc;
    struct log_container *k = xcalloc(1, sizeof *k);
    k->key = xstrdup(target->key);
    k->path = xstrdup(target->path);
    k->remote_path = xstrdup(target->remote_path);
    k->remote = r;
    k->busy = true;
    (void)strmap_put(&c->containers, k->key, k);
    log_container_list(k); /* nothing to follow until its file is open */
    *ret_container = k;
    return 0;
}

static int target_check(const struct log_target *target, struct error *err)
{
    const char *path = target->remote_path;
    if (path[0] != '/' || strlen(path) > REMOTE_PATH_MAX ||
        strchr(path, '\n') || strstr(path, "//") || strstr(path, "/../") ||
        strstr(path, "/./"))
        return error_set(err, EINVAL,
                         "remote log path \"%.300s\": must be absolute and of "
                         "plain parts",
                         path);
    return 0;
}

static void forget(struct log_container *k)
{
    log_container_unlist(k);
    (void)strmap_remove(&k->remote->copier->containers, k->key);
    log_remote_wake(k->remote);
    container_destroy(k);
}

int log_copier_add(struct log_copier *c, const struct log_target *target,
                   struct error *err)
{
    struct log_container *k = NULL;
    struct log_sink *sink = NULL;
    int rc = target_check(target, err);
    if (rc)
        return rc;
    (void)pthread_mutex_lock(&c->lock);
    rc = reserve(c, target, &k, err);
    (void)pthread_mutex_unlock(&c->lock);
    if (rc || !k)
        return rc;
    struct log_sink_config config = {.root = c->root,
                                     .root_path = c->pod_logs,
                                     .states = c->states,
                                     .key = target->key,
                                     .path = target->path};
    rc = log_sink_open(&config, &sink, err);
    hold_lock(&c->lock);
    if (rc) {
        forget(k);
        return rc;
    }
    k->sink = sink;
    k->next = k->freed = k->freed_sent = k->freed_done = log_sink_next(sink);
    k->remote->version++;
    log_copier_give(k);
    return 0;
}

int log_copier_reopen(struct log_copier *c, const char *key, struct error *err)
{
    (void)pthread_mutex_lock(&c->lock);
    struct log_container *k = log_copier_take(c, key);
    bool is_over = c->stopped;
    (void)pthread_mutex_unlock(&c->lock);
    if (!k)
        return is_over ? stopped(err)
                       : error_set(err, ENOENT, "log %s: is not copied", key);
    int rc = log_sink_reopen(k->sink, err);
    hold_lock(&c->lock);
    if (log_sink_next(k->sink) != k->next) {
        k->next = log_sink_next(k->sink);
        log_container_renew(k);
    }
    log_copier_give(k);
    return rc;
}

/* Its end is wanted: who waits for bytes is hurried. */
static struct log_container *want_end(struct log_copier *c, const char *key)
{
    struct log_container *k = log_copier_find(c, key);
    if (k && !k->ends) {
        k->ends = true;
        k->remote->version++;
        log_remote_wake(k->remote);
    }
    return k && !k->done ? k : NULL;
}

int log_copier_finish(struct log_copier *c, const char *key, unsigned ms,
                      struct error *err)
{
    int64_t due = clock_ms() + ms;
    uint64_t next = 0;
    struct log_container *k;
    hold_lock(&c->lock);
    /* looked for again each time: it may be gone by then */
    while (!c->stopped && (k = want_end(c, key))) {
        if (k->next != next) {
            next = k->next;
            due = clock_ms() + ms;
        }
        if (k->remote->cut)
            return error_set(err, ENETUNREACH, "log %s: %s is cut off", key,
                             k->remote->name);
        if (clock_ms() >= due)
            return error_set(err, ETIMEDOUT,
                             "log %s: nothing has come from %s in %u ms, and "
                             "it has not ended",
                             key, k->remote->name, ms);
        (void)clock_wait(&c->wake, &c->lock, due);
    }
    return c->stopped ? stopped(err) : 0;
}

void log_copier_remove(struct log_copier *c, const char *key)
{
    struct error err;
    (void)pthread_mutex_lock(&c->lock);
    struct log_container *k = log_copier_take(c, key);
    (void)pthread_mutex_unlock(&c->lock);
    if (!k)
        return;
    /* one that stays is of a key that does not come again */
    (void)log_sink_forget(k->sink, &err);
    hold_lock(&c->lock);
    forget(k);
}

void log_copier_cut(struct log_copier *c, const char *remote, bool cut)
{
    struct error err;
    struct log_remote *r;
    hold_lock(&c->lock);
    if (log_remote_make(c, remote, &r, &err) != 0 || r->cut == cut)
        return;
    r->cut = cut;
    r->retry_ms = 0;
    r->wait_ms = c->config.wait_ms;
    log_remote_wake(r);
}

void log_copier_count(struct log_copier *c,
                      struct log_copier_counts *ret_counts)
{
    hold_lock(&c->lock);
    *ret_counts = c->counts;
    ret_counts->n_containers = c->containers.n;
}
