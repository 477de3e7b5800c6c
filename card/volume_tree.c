/* biga-card tree, last and pods: what is there. */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/card_private.h"
#include "card/volume.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

enum { HASHED_MAX = 1 << 20, ITEM_MAX = 4096 + 128 };
static const char filled_by_pods[] = "/volumes/kubernetes.io~empty-dir/";

struct walk {
    int out;
    unsigned n, depth;
    size_t n_held;
    char held[65536]; /* not written yet */
};

DEFINE_CLEANUP(dir, DIR *, closedir)

static int walk_flush(struct walk *w)
{
    int rc = card_write(w->out, (const unsigned char *)w->held, w->n_held);
    w->n_held = 0;
    return rc;
}

/* With its end. */
__attribute__((format(printf, 2, 3))) static int walk_say(struct walk *w,
                                                          const char *fmt, ...)
{
    va_list args;
    char line[ITEM_MAX];
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line)
        return -ENAMETOOLONG;
    int rc = w->n_held + (size_t)n + 1 > sizeof w->held ? walk_flush(w) : 0;
    memcpy(w->held + w->n_held, line, (size_t)n + 1);
    w->n_held += (size_t)n + 1;
    return rc;
}

static int walk_end(struct walk *w, struct error *err)
{
    int rc = walk_say(w, "end %u", w->n);
    if (!rc)
        rc = walk_flush(w);
    return rc ? error_errno(err, -rc, "output") : 0;
}

/* 0 when it is too large, or cannot be read. */
static uint64_t hash_of(int dir, const char *leaf, uint64_t size)
{
    struct stat st;
    if (size > HASHED_MAX)
        return 0;
    cleanup_fd int fd = openat(dir, leaf,
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    cleanup_free unsigned char *data = xmalloc(size + 1);
    size_t n = 0;
    for (ssize_t got; n < size; n += (size_t)got)
        if ((got = read(fd, data + n, size - n)) <= 0)
            return 0;
    uint64_t hash = hash_bytes(data, n);
    explicit_bzero(data, n);
    return hash;
}

static int walk_folder(struct walk *w, int dir, const char *name);

static int walk_item(struct walk *w, int dir, const char *leaf,
                     const char *name)
{
    struct stat st;
    char target[1024];
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (++w->n > CARD_TREE_MAX)
        return -E2BIG;
    bool file = S_ISREG(st.st_mode);
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, leaf, target, sizeof target - 1);
        if (n < 0)
            return -errno;
        target[n] = '\0';
        int rc = walk_say(w, "l 0 0 0 0 0 %s", name);
        return rc ? rc : walk_say(w, "%s", target);
    }
    if (!file && !S_ISDIR(st.st_mode))
        return -EINVAL;
    uint64_t size = file ? (uint64_t)st.st_size : 0;
    int rc = walk_say(w, "%c %o %u %u %llu %llx %s", file ? 'f' : 'd',
                      (unsigned)(st.st_mode & 07777), (unsigned)st.st_uid,
                      (unsigned)st.st_gid, (unsigned long long)size,
                      file ? (unsigned long long)hash_of(dir, leaf, size) : 0,
                      name);
    if (rc || file || strstr(name, filled_by_pods))
        return rc;
    cleanup_fd int fd = openat(dir, leaf,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : walk_folder(w, fd, name);
}

static int walk_folder(struct walk *w, int dir, const char *name)
{
    cleanup_fd int own = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    cleanup_with(dir) DIR *list = own < 0 ? NULL : fdopendir(own);
    int rc = 0;
    if (!list)
        return -errno;
    own = -1; /* the list's */
    if (++w->depth > CARD_TREE_DEPTH)
        return -ELOOP;
    for (struct dirent *e; !rc && (e = readdir(list));) {
        if (e->d_name[0] == '.' &&
            (!e->d_name[1] || strcmp(e->d_name, "..") == 0 ||
             (w->depth == 1 && strncmp(e->d_name, ".biga-", 6) == 0)))
            continue;
        cleanup_free char *below = xasprintf("%s/%s", name, e->d_name);
        rc = walk_item(w, dir, e->d_name, below);
    }
    w->depth--;
    return rc;
}

int card_tree(const char *disk, const char *memory, int out, struct error *err)
{
    cleanup_free struct walk *w = xcalloc(1, sizeof *w);
    const char *const paths[] = {disk, memory}, *const names[] = {"disk",
                                                                  "memory"};
    w->out = out;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cleanup_fd int dir = card_open_dir(paths[i], false, err);
        int rc = dir == -ENOENT ? 0
                 : dir < 0      ? dir
                                : walk_folder(w, dir, names[i]);
        if (rc && dir < 0)
            return rc;
        if (rc)
            return error_errno(err, -rc, "%s", paths[i]);
    }
    return walk_end(w, err);
}

int card_pods(int argc, const char *const *argv, int out, struct error *err)
{
    cleanup_free struct walk *w = xcalloc(1, sizeof *w);
    w->out = out;
    for (int i = 0; i < argc; i++) {
        cleanup_fd int dir = card_open_dir(argv[i], false, err);
        if (dir == -ENOENT)
            continue;
        if (dir < 0)
            return dir;
        cleanup_with(dir) DIR *list = fdopendir(dir);
        if (!list)
            return error_errno(err, errno, "%s", argv[i]);
        dir = -1; /* the list's */
        for (struct dirent *e; (e = readdir(list));) {
            struct stat st;
            if (e->d_name[0] == '.' ||
                fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) !=
                    0 ||
                !S_ISDIR(st.st_mode))
                continue;
            int rc = ++w->n > CARD_TREE_MAX ? -E2BIG
                                            : walk_say(w, "%s", e->d_name);
            if (rc)
                return error_errno(err, -rc, "%s", argv[i]);
        }
    }
    return walk_end(w, err);
}

int card_last(const char *path, size_t max, int out, size_t *ret_size,
              struct error *err)
{
    struct stat st;
    cleanup_fd int fd = card_open_file(path, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0)
        return error_errno(err, errno, "%s", path);
    size_t want = (uint64_t)st.st_size < max ? (size_t)st.st_size : max, n = 0;
    cleanup_free unsigned char *data = xmalloc(want + 1);
    for (ssize_t got; n < want; n += (size_t)got) {
        got = pread(fd, data + n, want - n, st.st_size - (off_t)(want - n));
        if (got < 0)
            return error_errno(err, errno, "%s", path);
        if (got == 0)
            break;
    }
    int rc = card_write(out, data, n);
    if (rc)
        return error_errno(err, -rc, "output");
    *ret_size = n;
    return 0;
}
