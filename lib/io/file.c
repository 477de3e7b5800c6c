#include "lib/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

int file_read(const char *path, size_t max, char **ret_text, size_t *ret_size,
              struct error *err)
{
    /* a FIFO must not hold us up: do not wait for its writer */
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, errno, "cannot open %s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: is not a regular file", path);
    if (st.st_size < 0 || (uintmax_t)st.st_size > max)
        return error_set(err, EFBIG, "%s: has %jd bytes, at most %zu allowed",
                         path, (intmax_t)st.st_size, max);
    const size_t size = (size_t)st.st_size;
    cleanup_free char *text = xmalloc(size + 1);
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, text + used, size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read %s", path);
        if (n == 0)
            break; /* it was cut while we read */
        used += (size_t)n;
    }
    text[used] = '\0';
    *ret_size = used;
    *ret_text = steal(&text);
    return 0;
}

int file_write(const char *path, mode_t mode, const char *text, size_t size,
               bool durable, struct error *err)
{
    cleanup_fd int fd =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return error_errno(err, errno, "%s: cannot be made", path);
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, text + at, size - at);
        if (n < 0 && errno != EINTR)
            return error_errno(err, errno, "%s: cannot be written", path);
        at += n > 0 ? (size_t)n : 0;
    }
    if (durable && fsync(fd) < 0)
        return error_errno(err, errno, "%s: cannot be written", path);
    return 0;
}

/* The names in the folder of `path` are as they are seen. */
static int sync_names(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *dir = !slash ? xstrdup(".")
                             : slash == path
                                 ? xstrdup("/")
                                 : xstrndup(path, (size_t)(slash - path));
    cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0
               ? error_errno(err, errno, "%s: cannot be written", dir)
               : 0;
}

int file_replace(const char *path, mode_t mode, const char *text, size_t size,
                 bool durable, struct error *err)
{
    cleanup_free char *fresh = xasprintf("%s.new", path);
    int e = file_write(fresh, mode, text, size, durable, err);
    if (e == 0 && rename(fresh, path) < 0)
        e = error_errno(err, errno, "%s: cannot be renamed", fresh);
    return e == 0 && durable ? sync_names(path, err) : e;
}

int file_remove(const char *path, struct error *err)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return error_errno(err, errno, "%s: cannot be removed", path);
    return sync_names(path, err);
}

bool file_link_name(const char *path, char *ret_name, size_t room)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    (void)snprintf(ret_name, room, "%s", slash ? slash + 1 : target);
    return true;
}
