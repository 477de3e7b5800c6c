#include "router/volume/volume_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/act/card/pod_dir.h"
#include "lib/io/clock.h"
#include "router/volume/volume_sync_private.h"

static char *copy(const char *text, const char *otherwise)
{
    return xstrdup(text ? text : otherwise);
}

static void config_fini(struct volume_sync_config *c)
{
    free((char *)(uintptr_t)c->kubelet_root);
    free((char *)(uintptr_t)c->disk);
    free((char *)(uintptr_t)c->memory);
    free((char *)(uintptr_t)c->memory_helper);
}

int volume_sync_create(const struct volume_sync_config *config,
                       struct volume_sync **ret_sync, struct error *err)
{
    struct volume_sync *s = xcalloc(1, sizeof *s);
    s->config = (struct volume_sync_config){
        .kubelet_root = xstrdup(config->kubelet_root),
        .disk = xstrdup(config->disk),
        .memory = copy(config->memory, ACT_MEMORY_DIR),
        .memory_helper = copy(config->memory_helper, ACT_MEMORY_HELPER),
        .exec = config->exec,
        .ctx = config->ctx,
    };
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail */
    s->watch = volume_watch_create();
    int code = pthread_create(&s->watcher, NULL, sync_watcher_run, s);
    if (code) {
        volume_watch_destroy(s->watch);
        (void)pthread_mutex_destroy(&s->lock);
        config_fini(&s->config);
        free(s);
        return error_errno(err, code, "volumes: a thread");
    }
    *ret_sync = s;
    return 0;
}

static void remote_destroy(struct sync_remote *r)
{
    for (size_t i = 0; i < r->n_pods; i++)
        sync_pod_destroy(r->pods[i]);
    free(r->pods);
    (void)pthread_cond_destroy(&r->wake);
    free(r->name);
    free(r);
}

void volume_sync_destroy(struct volume_sync *s)
{
    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->ending = true;
    for (size_t i = 0; i < s->n_remotes; i++) {
        s->remotes[i]->ending = true;
        (void)pthread_cond_broadcast(&s->remotes[i]->wake);
    }
    (void)pthread_mutex_unlock(&s->lock);
    volume_watch_wake(s->watch);
    (void)pthread_join(s->watcher, NULL);
    for (size_t i = 0; i < s->n_remotes; i++) {
        (void)pthread_join(s->remotes[i]->thread, NULL);
        remote_destroy(s->remotes[i]);
    }
    volume_watch_destroy(s->watch);
    (void)pthread_mutex_destroy(&s->lock);
    config_fini(&s->config);
    free(s);
}

/* --- remotes, with the lock ------------------------------------------------- */

static struct sync_remote *remote_find(struct volume_sync *s, const char *name)
{
    for (size_t i = 0; i < s->n_remotes; i++)
        if (strcmp(s->remotes[i]->name, name) == 0)
            return s->remotes[i];
    return NULL;
}

static struct sync_remote *remote_get(struct volume_sync *s, const char *name,
                                      struct error *err)
{
    struct sync_remote *r = remote_find(s, name);
    if (r)
        return r;
    if (s->n_remotes == VOLUME_REMOTES_MAX) {
        (void)error_set(err, ENOSPC, "remote %s: there are %d already", name,
                        VOLUME_REMOTES_MAX);
        return NULL;
    }
    r = xcalloc(1, sizeof *r);
    r->sync = s;
    r->name = xstrdup(name);
    clock_wait_init(&r->wake);
    int code = pthread_create(&r->thread, NULL, sync_remote_run, r);
    if (code) {
        (void)error_errno(err, code, "remote %s: a thread", name);
        remote_destroy(r);
        return NULL;
    }
    return s->remotes[s->n_remotes++] = r;
}

/* --- paths --------------------------------------------------------------------- */

/* Is it that folder, or below it? */
static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (!path[len] || path[len] == '/');
}

/* What other pods have there is nobody's hostPath. */
static int check_path(const struct volume_sync *s, const char *path,
                      struct error *err)
{
    cleanup_free char *plain = xstrdup(path);
    char *to = plain;
    for (const char *at = plain; *at; at++)
        if (at[0] != '/' || at[1] != '/')
            *to++ = *at;
    *to = '\0';
    const char *const own[] = {s->config.disk, s->config.memory};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (is_below(plain, own[i]) || is_below(own[i], plain) ||
            strcmp(plain, "/") == 0)
            return error_set(err, EPERM,
                             "hostPath %.200s: has the volumes of other pods "
                             "in it",
                             path);
    return 0;
}

static char *remote_path(const struct volume_sync *s, const char *uid,
                         const struct volume_home *h)
{
    if (h->form == VOLUME_AS_PATH)
        return xstrdup(h->path);
    return h->memory ? xasprintf("%s/%s/%s", s->config.memory, uid, h->name)
                     : xasprintf("%s/pods/%s/%s", s->config.disk, uid, h->name);
}

char *volume_sync_home_path(const struct volume_sync *s, const char *uid,
                            const char *path)
{
    cleanup_free char *disk = xasprintf("%s/pods/%s", s->config.disk, uid);
    cleanup_free char *memory = xasprintf("%s/%s", s->config.memory, uid);
    const char *folder = is_below(path, disk)     ? disk
                         : is_below(path, memory) ? memory
                                                  : NULL;
    const char *rest = folder ? path + strlen(folder) : "";
    if (!rest[0] || !volume_name_ok(rest + 1))
        return NULL;
    return xasprintf("%s/pods/%s%s", s->config.kubelet_root, uid, rest);
}

/* --- pods ---------------------------------------------------------------------- */

int volume_sync_check(const struct volume_sync *s, const char *uid,
                      struct error *err)
{
    return volume_home_check(s->config.kubelet_root, uid, err);
}

/* What n mounts need: of mount i homes[i], and homes[n + i] before that. */
static struct volume_home *homes_alloc(size_t n)
{
    return xcalloc(2 * n + 1, sizeof(struct volume_home));
}

static void homes_free(struct volume_home *homes, size_t n)
{
    for (size_t i = 0; i < 2 * n; i++)
        volume_home_fini(&homes[i]);
    free(homes);
}

static int look(const struct volume_sync *s, const char *uid,
                const struct mount *mounts, size_t n,
                struct volume_home *ret_homes, struct error *err)
{
    if (!volume_name_ok(uid) || strchr(uid, '/') || strlen(uid) > ACT_UID_MAX)
        return error_set(err, EINVAL, "pod uid \"%.80s\": is no name", uid);
    for (size_t i = 0; i < n; i++) {
        int rc = volume_home_look(s->config.kubelet_root, uid, &mounts[i],
                                  &ret_homes[i], &ret_homes[n + i], err);
        if (!rc && ret_homes[i].form == VOLUME_AS_PATH)
            rc = check_path(s, ret_homes[i].path, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* With the lock: the pod's, taken; NULL with an error.  One that is just being
 * removed is waited for, and begins anew. */
static struct sync_pod *pod_taken(struct sync_remote *r, const char *uid,
                                  struct error *err)
{
    while (!r->ending) {
        struct sync_pod *pod = sync_pod_get(r, uid);
        if (!pod) {
            (void)error_set(err, ENOSPC, "%s: has %d pods already", r->name,
                            VOLUME_PODS_MAX);
            return NULL;
        }
        if (sync_pod_take(r, pod))
            return pod;
    }
    (void)error_set(err, ECANCELED, "pod %s: the router ends", uid);
    return NULL;
}

/* With the lock: its units are added; those that it has are looked at again. */
static void add_units(struct volume_sync *s, struct sync_pod *pod,
                      struct volume_home *homes, size_t n, bool ours)
{
    pod->forgotten = false;
    pod->due_ms = 0;
    for (size_t i = 0; i < n; i++)
        if (homes[n + i].name)
            sync_pod_add(s, pod, &homes[n + i], ours);
    for (size_t i = 0; i < n; i++)
        if (homes[i].form != VOLUME_AS_PATH)
            sync_pod_add(s, pod, &homes[i], ours);
}

static int deliver(struct volume_sync *s, const struct volume_pod *name,
                   struct volume_home *homes, size_t n, struct error *err)
{
    (void)pthread_mutex_lock(&s->lock);
    struct sync_remote *r = remote_get(s, name->remote, err);
    struct sync_pod *pod = r ? pod_taken(r, name->uid, err) : NULL;
    if (pod)
        add_units(s, pod, homes, n, true);
    (void)pthread_mutex_unlock(&s->lock);
    if (!pod)
        return -err->code;
    int rc = sync_deliver(r, pod, err);
    (void)pthread_mutex_lock(&s->lock);
    sync_pod_give(r, pod);
    (void)pthread_mutex_unlock(&s->lock);
    return rc;
}

int volume_sync_prepare(struct volume_sync *s, const struct volume_pod *pod,
                        const struct mount *mounts, size_t n, char ***ret_paths,
                        struct error *err)
{
    struct error why = {0};
    struct volume_home *homes = homes_alloc(n);
    char **paths = xcalloc(n + 1, sizeof *paths);
    int rc = look(s, pod->uid, mounts, n, homes, &why);
    bool any = false;
    for (size_t i = 0; !rc && i < n; i++) {
        paths[i] = remote_path(s, pod->uid, &homes[i]);
        any = any || homes[i].form != VOLUME_AS_PATH;
    }
    if (!rc && any)
        rc = deliver(s, pod, homes, n, &why);
    homes_free(homes, n);
    if (!rc) {
        *ret_paths = paths;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    if (err)
        *err = why;
    return rc;
}

int volume_sync_adopt(struct volume_sync *s, const struct volume_pod *name,
                      const struct mount *mounts, size_t n, struct error *err)
{
    struct error why = {0};
    struct volume_home *homes = homes_alloc(n);
    int rc = look(s, name->uid, mounts, n, homes, &why);
    if (!rc) {
        hold_lock(&s->lock);
        struct sync_remote *r = remote_get(s, name->remote, &why);
        struct sync_pod *pod = r ? sync_pod_get(r, name->uid) : NULL;
        if (pod) {
            add_units(s, pod, homes, n, false);
            (void)pthread_cond_broadcast(&r->wake);
        } else {
            rc = r ? error_set(&why, ENOSPC, "%s: has %d pods already",
                               name->remote, VOLUME_PODS_MAX)
                   : -why.code;
        }
    }
    homes_free(homes, n);
    if (rc && err)
        *err = why;
    return rc;
}

/* --- the termination message -------------------------------------------------- */

/* Into the kubelet's own file, which stays the one that it is. */
static int write_message(const char *path, const struct str *text,
                         struct error *err)
{
    struct stat st;
    cleanup_fd int fd = open(path,
                             O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0; /* the kubelet is done with the pod */
    if (fd < 0 || fstat(fd, &st) != 0)
        return error_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: is no file", path);
    for (size_t at = 0; at < text->size;) {
        ssize_t n = pwrite(fd, str_text(text) + at, text->size - at, (off_t)at);
        if (n < 0)
            return error_errno(err, errno, "%s", path);
        at += (size_t)n;
    }
    return ftruncate(fd, (off_t)text->size) == 0
               ? 0
               : error_errno(err, errno, "%s", path);
}

static int fetch(struct volume_sync *s, const struct volume_pod *pod,
                 const struct volume_home *home, struct str *text,
                 struct error *err)
{
    struct sync_place place;
    cleanup_free char *name = xasprintf("disk/%s", home->name);
    (void)pthread_mutex_lock(&s->lock);
    struct sync_remote *r = remote_get(s, pod->remote, err);
    unsigned lane = r ? sync_lane_take(r) : 0;
    (void)pthread_mutex_unlock(&s->lock);
    if (!r)
        return -err->code;
    sync_place_init(r, pod->uid, lane, &place);
    int rc = volume_send_last(&place.place, name, VOLUME_MESSAGE_MAX, text,
                              err);
    sync_place_fini(&place);
    (void)pthread_mutex_lock(&s->lock);
    sync_lane_give(r, lane);
    (void)pthread_mutex_unlock(&s->lock);
    return rc;
}

int volume_sync_collect(struct volume_sync *s, const struct volume_pod *pod,
                        const struct mount *mount, struct error *err)
{
    struct error why = {0};
    cleanup_str struct str text = STR_INIT(VOLUME_MESSAGE_MAX + 1);
    struct volume_home home[2] = {{0}};
    int rc = look(s, pod->uid, mount, 1, home, &why);
    if (!rc && home->form != VOLUME_AS_OUTPUT)
        rc = error_set(&why, EINVAL, "%s: is no termination log",
                       mount->host_path);
    if (!rc)
        rc = fetch(s, pod, home, &text, &why);
    if (!rc)
        rc = write_message(home->path, &text, &why);
    volume_home_fini(&home[0]);
    volume_home_fini(&home[1]);
    /* here: the kubelet is done with the pod; there: there is no message */
    if (rc == -ENOENT)
        return 0;
    if (rc && err)
        *err = why;
    return rc;
}

/* --- the end -------------------------------------------------------------------- */

void volume_sync_forget(struct volume_sync *s, const struct volume_pod *name)
{
    struct error err;
    hold_lock(&s->lock);
    struct sync_remote *r = remote_get(s, name->remote, &err);
    struct sync_pod *pod = r ? sync_pod_get(r, name->uid) : NULL;
    if (!pod)
        return; /* a sweep finds it */
    pod->forgotten = true;
    pod->due_ms = 0;
    (void)pthread_cond_broadcast(&r->wake);
}

void volume_sync_sweep(struct volume_sync *s, const char *remote,
                       const char *const *uids, size_t n)
{
    struct error err;
    hold_lock(&s->lock);
    struct sync_remote *r = remote_get(s, remote, &err);
    if (!r)
        return;
    for (size_t i = 0; i < r->n_kept; i++)
        free(r->kept[i]);
    r->kept = xrealloc(r->kept, n + 1, sizeof *r->kept);
    for (size_t i = 0; i < n; i++)
        r->kept[i] = xstrdup(uids[i]);
    r->n_kept = n;
    r->sweeping = true;
    r->sweep_ms = 0;
    (void)pthread_cond_broadcast(&r->wake);
}

static bool is_settled(const struct sync_remote *r)
{
    if (r->sweeping)
        return false;
    for (size_t i = 0; i < r->n_pods; i++) {
        const struct sync_pod *pod = r->pods[i];
        if (pod->busy || pod->forgotten)
            return false;
        for (size_t k = 0; k < pod->n_units; k++)
            if (pod->units[k]->dirty)
                return false;
    }
    return true;
}

void volume_sync_count(struct volume_sync *s,
                       struct volume_sync_counts *ret_counts)
{
    hold_lock(&s->lock);
    *ret_counts = s->counts;
}

int volume_sync_settle(struct volume_sync *s, const char *remote, unsigned ms)
{
    hold_lock(&s->lock);
    struct sync_remote *r = remote_find(s, remote);
    int64_t due = clock_ms() + ms;
    while (r && !is_settled(r))
        if (!clock_wait(&r->wake, &s->lock, due) && !is_settled(r))
            return -ETIMEDOUT;
    return 0;
}
