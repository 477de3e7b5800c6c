#include "router/serve/ids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/strmap.h"
#include "lib/io/file.h"
#include "lib/io/log.h"

struct ids {
    char *dir; /* NULL: in memory */
    pthread_mutex_t lock;
    struct strmap map; /* by id; each holds a reference */
};

/* --- on disk -----------------------------------------------------------------
 */

static int write_all(int fd, const struct str *text)
{
    size_t done = 0;
    while (done < text->size) {
        ssize_t n = write(fd, text->data + done, text->size - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

static int sync_dir(const char *dir)
{
    cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int save(const struct ids *s, const struct object *o, struct error *err)
{
    cleanup_str struct str text = STR_INIT(OBJECT_SIZE_MAX);
    if (!s->dir)
        return 0;
    cleanup_free char *path = xasprintf("%s/%s", s->dir, o->id);
    cleanup_free char *fresh = xasprintf("%s.new", path);
    object_encode(o, &text);
    if (text.overflow)
        return error_set(err, EFBIG, "%s: over %d bytes", path,
                         OBJECT_SIZE_MAX);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, errno, "%s", fresh);
    int r = write_all(fd, &text);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r == 0)
        r = sync_dir(s->dir);
    return r < 0 ? error_errno(err, -r, "%s", path) : 0;
}

static void drop(const struct ids *s, const char *id)
{
    if (!s->dir)
        return;
    cleanup_free char *path = xasprintf("%s/%s", s->dir, id);
    if (unlink(path) < 0 && errno != ENOENT)
        log_event(LOG_WARN, "object-left", "file", path, "error",
                  strerror(errno), NULL);
}

static struct object *borrow(void *ctx, const char *id)
{
    const struct ids *s = ctx;
    return strmap_get(&s->map, id);
}

static void set_aside(const char *path, const struct error *why)
{
    cleanup_free char *bad = xasprintf("%s.bad", path);
    log_event(LOG_ERROR, "object-unreadable", "file", path, "error", why->text,
              NULL);
    (void)rename(path, bad); /* if it cannot be, it is told again next time */
}

static void load_file(struct ids *s, const char *name, bool sandboxes)
{
    cleanup_free char *path = xasprintf("%s/%s", s->dir, name);
    cleanup_free char *text = NULL;
    size_t size;
    struct object *o = NULL;
    struct error err = {0};
    int r = file_read(path, OBJECT_SIZE_MAX, &text, &size, &err);
    if (r == 0)
        r = object_decode(text, size, borrow, s, &o, &err);
    if (r == -ENOENT && sandboxes)
        return; /* a container: its turn comes */
    if (r == 0 && strcmp(o->id, name) != 0)
        r = error_set(&err, EINVAL, "id: is %s", o->id);
    if (r < 0) {
        object_unref(o);
        set_aside(path, &err);
        return;
    }
    object_unref(strmap_put(&s->map, o->id, o));
}

static bool is_id(const char *name)
{
    return strlen(name) == FROM_REMOTE_ID_SIZE &&
           strspn(name, "0123456789abcdef") == FROM_REMOTE_ID_SIZE;
}

static int load(struct ids *s, struct error *err)
{
    for (int round = 0; round < 2; round++) {
        DIR *dir = opendir(s->dir);
        if (!dir)
            return error_errno(err, errno, "%s", s->dir);
        for (const struct dirent *e; (e = readdir(dir));)
            if (is_id(e->d_name) && !strmap_get(&s->map, e->d_name))
                load_file(s, e->d_name, round == 0);
        (void)closedir(dir); /* only read from */
    }
    return 0;
}

int ids_open(const char *dir, struct ids **ret_ids, struct error *err)
{
    struct ids *s = xcalloc(1, sizeof *s);
    (void)pthread_mutex_init(&s->lock, NULL);
    s->dir = dir ? xstrdup(dir) : NULL;
    int r = 0;
    if (dir && mkdir(dir, 0700) < 0 && errno != EEXIST)
        r = error_errno(err, errno, "%s", dir);
    if (r == 0 && dir)
        r = load(s, err);
    if (r < 0)
        ids_close(s);
    else
        *ret_ids = s;
    return r;
}

static void unref(void *object)
{
    object_unref(object);
}

void ids_close(struct ids *s)
{
    if (!s)
        return;
    strmap_fini_with(&s->map, unref);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->dir);
    free(s);
}

/* --- any thread --------------------------------------------------------------
 */

static int check(struct ids *s, const struct object *o, struct error *err)
{
    hold_lock(&s->lock);
    const struct object *old = strmap_get(&s->map, o->id);
    if (old && strcmp(old->remote, o->remote) != 0)
        return error_set(err, EEXIST, "%s says the id %s, which is %s's",
                         o->remote, o->id, old->remote);
    if (!old && s->map.n == IDS_MAX)
        return error_set(err, ENOSPC,
                         "%d sandboxes and containers are on remotes", IDS_MAX);
    return 0;
}

int ids_add(struct ids *s, struct object *o, struct error *err)
{
    int r = check(s, o, err);
    if (r == 0)
        r = save(s, o, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&s->lock);
    struct object *old = strmap_put(&s->map, o->id, object_ref(o));
    (void)pthread_mutex_unlock(&s->lock);
    object_unref(old);
    return 0;
}

static bool is_in(const struct object *o, const char *id)
{
    return o->sandbox && strcmp(o->sandbox->id, id) == 0;
}

/* One that is it, or is in it; no more reference of ours. */
static struct object *take_one(struct ids *s, const char *id)
{
    hold_lock(&s->lock);
    size_t pos = 0;
    for (struct object *o; (o = strmap_next(&s->map, &pos));)
        if (is_in(o, id))
            return strmap_remove(&s->map, o->id);
    return strmap_remove(&s->map, id);
}

void ids_remove(struct ids *s, const char *id)
{
    for (struct object *o; (o = take_one(s, id));) {
        drop(s, o->id);
        object_unref(o);
    }
}

struct object *ids_find(struct ids *s, const char *id)
{
    hold_lock(&s->lock);
    struct object *o = strmap_get(&s->map, id);
    return o ? object_ref(o) : NULL;
}

struct object *ids_find_pod(struct ids *s, const char *uid, uint32_t attempt)
{
    hold_lock(&s->lock);
    size_t pos = 0;
    for (struct object *o; (o = strmap_next(&s->map, &pos));)
        if (!o->sandbox && o->pod.attempt == attempt &&
            strcmp(o->pod.uid, uid) == 0)
            return object_ref(o);
    return NULL;
}

struct object *ids_find_container(struct ids *s, const char *id,
                                  const char *name, uint32_t attempt)
{
    hold_lock(&s->lock);
    size_t pos = 0;
    for (struct object *o; (o = strmap_next(&s->map, &pos));)
        if (is_in(o, id) && o->container.attempt == attempt &&
            strcmp(o->container.name, name) == 0)
            return object_ref(o);
    return NULL;
}

static void add_those(struct ids *s, const char *remote, bool sandboxes,
                      struct object **list, size_t *n)
{
    size_t pos = 0;
    for (struct object *o; (o = strmap_next(&s->map, &pos));)
        if (!o->sandbox == sandboxes &&
            (!remote || strcmp(o->remote, remote) == 0))
            list[(*n)++] = object_ref(o);
}

size_t ids_list(struct ids *s, const char *remote, struct object ***ret_list)
{
    hold_lock(&s->lock);
    struct object **list = xcalloc(s->map.n + 1, sizeof *list);
    size_t n = 0;
    add_those(s, remote, true, list, &n);
    add_those(s, remote, false, list, &n);
    *ret_list = list;
    return n;
}

void ids_list_free(struct object **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        object_unref(list[i]);
    free(list);
}
