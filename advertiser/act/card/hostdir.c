#include "advertiser/act/card/hostdir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/log_line.h"
#include "lib/io/tree.h"
#include "lib/io/writers.h"

/* --- writing ------------------------------------------------------------ */

/* One that is there, or is made: then of that mode, whatever the umask is. */
static int open_part(int at, const char *name)
{
    bool made = mkdirat(at, name, 0755) == 0;
    if (!made && errno != EEXIST)
        return -1;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && made && fchmod(fd, 0755) < 0) {
        int code = errno;
        (void)close(fd); /* nothing was written to it */
        errno = code;
        return -1;
    }
    return fd;
}

/* The directory `name` (with its parents) below `base`, made where missing. */
static int open_below(int base, const char *name)
{
    int at = fcntl(base, F_DUPFD_CLOEXEC, 0);
    char part[256];
    while (at >= 0 && *name) {
        size_t n = strcspn(name, "/");
        if (n >= sizeof part) {
            (void)close(at); /* nothing was written to it */
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, name, n);
        part[n] = '\0';
        name += n + (name[n] == '/');
        if (n == 0)
            continue;
        int next = open_part(at, part);
        int code = errno;
        (void)close(at); /* nothing was written to it */
        errno = code;
        at = next;
    }
    return at;
}

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

static int write_file(int volume, const struct podspec_file *f,
                      struct error *err)
{
    const char *slash = strrchr(f->path, '/');
    const char *name = slash ? slash + 1 : f->path;
    cleanup_free char *above = xstrndup(f->path,
                                        slash ? (size_t)(slash - f->path) : 0);
    cleanup_fd int dir = open_below(volume, above);
    if (dir < 0)
        return error_errno(err, errno, "file %s", f->path);
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return error_errno(err, errno, "file %s", f->path);
    cleanup_fd int fd = openat(
        dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || write_all(fd, f->data, f->size) < 0 ||
        fchmod(fd, f->mode & 0777) < 0)
        return error_errno(err, errno, "file %s", f->path);
    return 0;
}

static int make_volume(int base, const char *above,
                       const struct podspec_volume *v, struct error *err)
{
    cleanup_free char *name = xasprintf("%s%s", above, v->name);
    cleanup_fd int dir = open_below(base, name);
    if (dir < 0)
        return error_errno(err, errno, "volume %s", v->name);
    if (v->kind == PODSPEC_EMPTY && fchmod(dir, 0777) < 0)
        return error_errno(err, errno, "volume %s", v->name);
    for (size_t i = 0; i < v->n_files; i++) {
        int e = write_file(dir, &v->files[i], err);
        if (e < 0)
            return error_wrap(err, "volume %s", v->name);
    }
    return 0;
}

/* A pod's own: nobody else may look into it. */
static int open_pod(const char *dir, struct error *err)
{
    cleanup_fd int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int base = root < 0 ? -1 : open_below(root, dir);
    if (base < 0)
        return error_errno(err, errno, "directory %s", dir);
    if (fchmod(base, 0700) < 0) {
        int e = error_errno(err, errno, "directory %s", dir);
        (void)close(base); /* nothing was written to it */
        return e;
    }
    return base;
}

static int make_in_memory(const char *memory, const struct podspec_volume *v,
                          struct error *err)
{
    struct statfs fs;
    cleanup_fd int base = open_pod(memory, err);
    if (base < 0)
        return base;
    if (fstatfs(base, &fs) < 0)
        return error_errno(err, errno, "directory %s", memory);
    if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
        return error_set(err, EMEDIUMTYPE,
                         "volume %s: directory %s is not in memory", v->name,
                         memory);
    return make_volume(base, "", v, err);
}

int hostdir_make(const char *dir, const char *memory,
                 const struct podspec *spec, struct error *err)
{
    cleanup_fd int base = open_pod(dir, err);
    if (base < 0)
        return base;
    cleanup_fd int logs = open_below(base, "logs");
    if (logs < 0)
        return error_errno(err, errno, "directory %s/logs", dir);
    for (size_t i = 0; i < spec->n_volumes; i++) {
        const struct podspec_volume *v = &spec->volumes[i];
        int e = v->medium == PODSPEC_MEMORY
                    ? make_in_memory(memory, v, err)
                    : make_volume(base, "volumes/", v, err);
        if (e < 0)
            return e;
    }
    return 0;
}

/* --- removing ----------------------------------------------------------- */

int hostdir_remove(const char *dir, struct error *err)
{
    return tree_remove(AT_FDCWD, dir, dir, err);
}

/* --- logs --------------------------------------------------------------- */

/* Whole lines of `data`; how many bytes of it were taken. */
static size_t take_lines(const char *data, size_t size, size_t max,
                         struct str *out)
{
    size_t at = 0;
    while (at < size) {
        const char *line = data + at;
        const char *end = memchr(line, '\n', size - at);
        if (!end)
            break;
        size_t n = (size_t)(end - line);
        struct log_line l = log_line_read(line, n);
        if (out->size > 0 && out->size + n - l.head + 1 > max)
            break;
        str_add_n(out, line + l.head, n - l.head);
        if (!l.partial)
            str_add_c(out, '\n');
        at += n + 1;
    }
    return at;
}

static int open_log(const char *path)
{
    return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

void hostdir_log_await(const char *path)
{
    struct stat st;
    cleanup_fd int fd = open_log(path);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        (void)writers_await(fd, WRITERS_WAIT_MS); /* what is there is given */
}

/* 1: it is not there. */
static int open_log_file(const char *path, int *ret_fd, struct stat *ret_st,
                         struct error *err)
{
    int fd = open_log(path);
    if (fd < 0 && errno == ENOENT)
        return 1;
    if (fd < 0 || fstat(fd, ret_st) < 0)
        return error_errno(err, errno, "log %s", path);
    *ret_fd = fd;
    if (!S_ISREG(ret_st->st_mode))
        return error_set(err, EINVAL, "log %s: no file", path);
    return 0;
}

int hostdir_log_lines(const char *path, const struct lines_ask *ask,
                      struct str *ret_text, uint64_t *ret_next,
                      struct error *err)
{
    struct stat st;
    cleanup_fd int fd = -1;
    int e = open_log_file(path, &fd, &st, err);
    if (e > 0)
        *ret_next = ask->tail ? 0 : ask->offset;
    if (e != 0)
        return e < 0 ? e : 0;
    struct lines lines;
    e = lines_read(fd, ask, &lines);
    if (e < 0)
        return error_errno(err, -e, "log %s", path);
    str_add_n(ret_text, lines.data, lines.size);
    free(lines.data);
    *ret_next = lines.next;
    return 0;
}

int hostdir_log(const char *path, uint64_t offset, size_t max,
                struct str *ret_text, uint64_t *ret_next, struct error *err)
{
    struct stat st;
    cleanup_fd int fd = -1;
    int e = open_log_file(path, &fd, &st, err);
    if (e > 0)
        *ret_next = offset;
    if (e != 0)
        return e < 0 ? e : 0;
    if (offset > (uint64_t)st.st_size) /* it was replaced */
        offset = 0;
    if (max > HOSTDIR_LOG_MAX)
        max = HOSTDIR_LOG_MAX;
    cleanup_free char *data = xmalloc(HOSTDIR_LOG_MAX);
    ssize_t n = pread(fd, data, HOSTDIR_LOG_MAX, (off_t)offset);
    if (n < 0)
        return error_errno(err, errno, "log %s", path);
    size_t taken = take_lines(data, (size_t)n, max, ret_text);
    if (taken == 0 && n == HOSTDIR_LOG_MAX) { /* a line without an end */
        str_add_n(ret_text, data, max);
        taken = max;
    }
    *ret_next = offset + taken;
    return 0;
}

int hostdir_log_tail(const char *path, size_t max, struct str *ret_text,
                     uint64_t *ret_next, struct error *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return error_errno(err, errno, "log %s", path);
    uint64_t size = (uint64_t)st.st_size;
    bool cut = size > max;
    cleanup_str struct str text = STR_INIT(2 * HOSTDIR_LOG_MAX);
    int e = hostdir_log(path, cut ? size - max - 1 : 0, max + 1, &text,
                        ret_next, err);
    if (e < 0)
        return e;
    const char *all = str_text(&text);
    const char *end = cut ? memchr(all, '\n', text.size) : NULL;
    size_t skip = end ? (size_t)(end + 1 - all) : 0; /* half a line */
    str_add_n(ret_text, all + skip, text.size - skip);
    return 0;
}
