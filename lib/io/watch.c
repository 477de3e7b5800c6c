#include "lib/io/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void watch_init(struct watched_file *f, const char *path, size_t max)
{
    memset(f, 0, sizeof *f);
    f->path = xstrdup(path);
    f->max = max;
}

void watch_fini(struct watched_file *f)
{
    free(f->path);
    f->path = NULL;
}

static int64_t time_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* Note what the file is now; true when that is news. */
static bool watch_note(struct watched_file *f, int fd)
{
    struct stat st;
    __typeof__(f->last) now;
    memset(&now, 0, sizeof now);
    if (fd < 0 || fstat(fd, &st) < 0) {
        now.error = errno;
    } else {
        now.device = (uint64_t)st.st_dev;
        now.inode = (uint64_t)st.st_ino;
        now.size = (int64_t)st.st_size;
        now.mtime_ns = time_ns(&st.st_mtim);
        now.ctime_ns = time_ns(&st.st_ctim);
    }
    bool same = f->looked && now.error == f->last.error &&
                now.device == f->last.device && now.inode == f->last.inode &&
                now.size == f->last.size && now.mtime_ns == f->last.mtime_ns &&
                now.ctime_ns == f->last.ctime_ns;
    f->looked = true;
    f->last = now;
    return !same;
}

static int read_all(const struct watched_file *f, int fd, struct str *out,
                    struct error *err)
{
    char buffer[65536];
    for (;;) {
        ssize_t n = read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "%s", f->path);
        if (n == 0)
            return 0;
        if (out->size + (size_t)n > f->max)
            return error_set(err, EFBIG, "%s: has more than %zu bytes", f->path,
                             f->max);
        str_add_n(out, buffer, (size_t)n);
    }
}

int watch_poll(struct watched_file *f, struct str *ret_text, struct error *err)
{
    cleanup_fd int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    /* what it is before it is read: a change meanwhile shows next time */
    if (!watch_note(f, fd))
        return 0;
    if (f->last.error)
        return error_errno(err, f->last.error, "%s", f->path);
    str_reset(ret_text);
    int r = read_all(f, fd, ret_text, err);
    return r < 0 ? r : 1;
}
