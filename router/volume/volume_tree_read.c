/* A folder of the home as a volume_tree. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "router/volume/volume_tree.h"

enum { TRIES = 16 }; /* while the kubelet changes it */

struct reading {
    struct volume_tree *tree;
    const char *path; /* of the whole, for errors */
    char data[256];   /* where "..data" leads; "" none */
    unsigned depth;
    struct error *err;
};

DEFINE_CLEANUP(dir, DIR *, closedir)

/* What vanishes while it is read was replaced. */
static int failed(const struct reading *r, const char *name, int code)
{
    return code == ENOENT ? -EAGAIN
                          : error_errno(r->err, code, "%s/%s", r->path, name);
}

static int refuse(const struct reading *r, const char *name, const char *why)
{
    return error_set(r->err, EINVAL, "%s/%s: %s", r->path, name, why);
}

static void from_stat(struct volume_item *item, const struct stat *st)
{
    item->mode = st->st_mode & (S_ISDIR(st->st_mode) ? 03777 : 0777);
    item->uid = st->st_uid;
    item->gid = st->st_gid;
}

static int add(const struct reading *r, const struct volume_item *item)
{
    int rc = volume_tree_add(r->tree, item, r->err);
    return rc ? error_wrap(r->err, "%s", r->path) : 0;
}

static int add_file(const struct reading *r, int fd, struct volume_item *item)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failed(r, item->name, errno);
    if (!S_ISREG(st.st_mode))
        return refuse(r, item->name, "is neither a file nor a folder");
    if (st.st_size > VOLUME_FILE_MAX)
        return error_set(r->err, EFBIG,
                         "%s/%s: has %lld bytes, the limit is "
                         "%d",
                         r->path, item->name, (long long)st.st_size,
                         VOLUME_FILE_MAX);
    size_t size = (size_t)st.st_size, n = 0;
    cleanup_free char *data = xmalloc(size + 1);
    for (ssize_t got; n < size; n += (size_t)got) {
        got = read(fd, data + n, size - n);
        if (got < 0)
            return failed(r, item->name, errno);
        if (got == 0)
            break; /* it was cut meanwhile: there will be another event */
    }
    from_stat(item, &st);
    item->type = VOLUME_FILE;
    item->data = data;
    item->size = n;
    int rc = add(r, item);
    explicit_bzero(data, size);
    return rc;
}

static int add_link(const struct reading *r, int dir, const char *leaf,
                    const char *name)
{
    char target[VOLUME_NAME_MAX + 2];
    ssize_t n = readlinkat(dir, leaf, target, sizeof target);
    if (n < 0)
        return failed(r, name, errno);
    if ((size_t)n == sizeof target)
        return refuse(r, name, "is a link that is too long");
    target[n] = '\0';
    const struct volume_item item = {
        .name = name, .type = VOLUME_LINK, .target = target};
    return add(r, &item);
}

static int add_folder(struct reading *r, int dir, const char *name);

static int add_entry(struct reading *r, int dir, const char *leaf,
                     const char *name)
{
    struct stat st;
    struct volume_item item = {.name = name};
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return failed(r, name, errno);
    if (S_ISLNK(st.st_mode))
        return add_link(r, dir, leaf, name);
    bool folder = S_ISDIR(st.st_mode);
    /* a pipe would never open, a device do who knows what */
    if (!folder && !S_ISREG(st.st_mode))
        return refuse(r, name, "is neither a file nor a folder");
    cleanup_fd int fd = openat(dir, leaf,
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
                                   (folder ? O_DIRECTORY : 0));
    if (fd < 0)
        return failed(r, name, errno);
    return folder ? add_folder(r, fd, name) : add_file(r, fd, &item);
}

/* At the top: the folder that is meant, and none that was, or is to be. */
static bool is_meant(const struct reading *r, const char *leaf)
{
    if (strcmp(leaf, ".") == 0 || strcmp(leaf, "..") == 0)
        return false;
    return r->depth > 1 || !r->data[0] || strncmp(leaf, "..", 2) != 0 ||
           strcmp(leaf, VOLUME_DATA) == 0 || strcmp(leaf, r->data) == 0;
}

static int add_entries(struct reading *r, int dir, const char *name)
{
    cleanup_fd int own = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    cleanup_with(dir) DIR *list = own < 0 ? NULL : fdopendir(own);
    int rc = 0;
    if (!list)
        return failed(r, name, errno);
    own = -1; /* the list's */
    for (struct dirent *e; !rc && (e = readdir(list));) {
        if (!is_meant(r, e->d_name))
            continue;
        cleanup_free char *below = *name ? xasprintf("%s/%s", name, e->d_name)
                                         : xstrdup(e->d_name);
        rc = add_entry(r, dir, e->d_name, below);
    }
    return rc;
}

static int add_folder(struct reading *r, int dir, const char *name)
{
    struct stat st;
    struct volume_item item = {.name = name, .type = VOLUME_FOLDER};
    if (fstat(dir, &st) != 0)
        return failed(r, name, errno);
    if (r->depth == VOLUME_DEPTH_MAX)
        return error_set(r->err, EFBIG, "%s/%s: more than %d folders deep",
                         r->path, name, VOLUME_DEPTH_MAX);
    from_stat(&item, &st);
    int rc = add(r, &item);
    r->depth++;
    if (!rc)
        rc = add_entries(r, dir, name);
    r->depth--;
    return rc;
}

/* Where "..data" leads now; "" when there is none. */
static int read_data(const struct reading *r, int dir, char ret_data[256])
{
    ssize_t n = readlinkat(dir, VOLUME_DATA, ret_data, 256);
    if (n < 0 && errno == ENOENT)
        n = 0;
    if (n < 0)
        return failed(r, VOLUME_DATA, errno);
    if (n == 256 || memchr(ret_data, '/', (size_t)n))
        return refuse(r, VOLUME_DATA, "leads out of its folder");
    ret_data[n] = '\0';
    return 0;
}

/* -EAGAIN: it was changed meanwhile. */
static int read_once(struct reading *r, int dir)
{
    char after[256];
    int rc = read_data(r, dir, r->data);
    if (!rc)
        rc = add_folder(r, dir, "");
    if (!rc)
        rc = read_data(r, dir, after);
    if (!rc && strcmp(after, r->data) != 0)
        rc = -EAGAIN;
    return rc ? rc : volume_tree_sort(r->tree, r->err);
}

int volume_tree_read(const char *path, struct volume_tree *ret_tree,
                     struct error *err)
{
    int rc = -EAGAIN;
    for (unsigned i = 0; rc == -EAGAIN && i < TRIES; i++) {
        struct volume_tree tree = {0};
        struct reading r = {.tree = &tree, .path = path, .err = err};
        cleanup_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
                                            O_CLOEXEC);
        if (dir < 0)
            return error_errno(err, errno, "%s", path);
        rc = read_once(&r, dir);
        if (!rc) {
            *ret_tree = tree;
            return 0;
        }
        volume_tree_fini(&tree);
    }
    return rc == -EAGAIN
               ? error_set(err, EAGAIN, "%s: changes while it is read", path)
               : rc;
}

int volume_tree_read_file(const char *path, struct volume_tree *ret_tree,
                          struct error *err)
{
    struct volume_tree tree = {0};
    const struct reading r = {.tree = &tree, .path = path, .err = err};
    struct volume_item item = {.name = ""};
    cleanup_fd int fd = open(path,
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "%s", path);
    int rc = add_file(&r, fd, &item);
    if (rc) {
        volume_tree_fini(&tree);
        return rc;
    }
    *ret_tree = tree;
    return 0;
}
