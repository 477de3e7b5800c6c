#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "card/card.h"
#include "card/follow_private.h"
#include "lib/base/mem.h"
#include "lib/io/writers.h"

enum { PIECE_MIN = 2 * CARD_LINE_MAX };

int64_t follow_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* is always there */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- to and from the file ------------------------------------------------- */

/* The folder of `path`, or with `nearest` what there is of the way to it. */
static int folder_open(const char *path, bool nearest)
{
    cleanup_free char *way = xstrdup(path);
    for (char *slash; (slash = strrchr(way, '/'));) {
        *slash = '\0';
        int dir = card_open_dir(slash == way ? "/" : way, false, NULL);
        if (dir >= 0 || !nearest || dir != -ENOENT || slash == way)
            return dir;
    }
    return -EINVAL;
}

static int file_open(const char *path, int flags)
{
    cleanup_fd int dir = folder_open(path, false);
    struct stat st;
    if (dir < 0)
        return dir;
    /* a FIFO would never open, a device do who knows what */
    int fd = openat(dir, strrchr(path, '/') + 1,
                    flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    (void)close(fd); /* nothing was written */
    return -EINVAL;
}

/* What is not told is found when a round looks again (FOLLOW_LOOK_MS). */
static void watch(int notify, int fd, uint32_t events)
{
    /* by descriptor: on no way to it is a link that somebody changes */
    char name[40];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (notify >= 0)
        (void)inotify_add_watch(notify, name, events);
}

void follow_file_open(struct follow_file *f, int notify)
{
    for (int i = 0; i < 2 && f->fd < 0; i++) {
        f->fd = file_open(f->path, O_RDONLY);
        f->fault = f->fd < 0 ? -f->fd : 0;
        if (f->fd >= 0) {
            watch(notify, f->fd, IN_MODIFY | IN_CLOSE_WRITE);
            return;
        }
        f->fd = -1;
        if (f->fault != ENOENT || i > 0)
            return;
        /* it may come between the two */
        cleanup_fd int dir = folder_open(f->path, true);
        if (dir >= 0)
            watch(notify, dir, IN_CREATE | IN_MOVED_TO);
    }
}

void follow_file_close(struct follow_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd); /* it was only read from */
    f->fd = -1;
}

void follow_file_free(const struct follow_file *f)
{
    off_t size = (off_t)(f->freed / FOLLOW_HOLE * FOLLOW_HOLE);
    if (size == 0)
        return;
    cleanup_fd int fd = file_open(f->path, O_WRONLY);
    /* where there can be no holes it stays until the container goes */
    if (fd >= 0)
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        size);
}

/* --- what is given -------------------------------------------------------- */

static int out_write(struct follow_out *out, const char *head, size_t n_head,
                     size_t size, struct error *err)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)head, n_head},
                             {out->piece, size}};
    out->given += n_head + size;
    for (struct iovec *p = parts; p < parts + 2;) {
        ssize_t n = writev(out->fd, p, (int)(parts + 2 - p));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "output");
        for (; p < parts + 2 && (size_t)n >= p->iov_len; p++)
            n -= (ssize_t)p->iov_len;
        if (p < parts + 2) {
            p->iov_base = (char *)p->iov_base + n;
            p->iov_len -= (size_t)n;
        }
    }
    return 0;
}

static int say(struct follow_out *out, char what, uint32_t tag, uint64_t value,
               struct error *err)
{
    char head[64];
    int n = snprintf(head, sizeof head, "%c %" PRIu32 " %" PRIu64 "\n", what,
                     tag, value);
    return out_write(out, head, (size_t)n, 0, err);
}

int follow_out_end(struct follow_out *out, struct error *err)
{
    char head[64];
    int n = snprintf(head, sizeof head, "z %" PRIu64 "\n", out->given);
    return out_write(out, head, (size_t)n, 0, err);
}

/* What was freed and never came to the host's files: go on behind it. */
static void pass_hole(struct follow_file *f)
{
    off_t at = lseek(f->fd, (off_t)f->next, SEEK_DATA);
    f->looked = true;
    f->torn = at > (off_t)f->next;
    if (f->torn)
        f->next = (uint64_t)at;
}

/* How much of `size` bytes is whole lines; all where there are no lines. */
static size_t whole_lines(const struct follow_file *f, const char *data,
                          size_t size, bool more)
{
    const char *end = memrchr(data, '\n', size);
    if (f->ends && !more)
        return size;
    return end ? (size_t)(end - data) + 1 : size > CARD_LINE_MAX ? size : 0;
}

static int give(struct follow_file *f, struct follow_out *out, size_t from,
                size_t size, struct error *err)
{
    char head[64];
    memmove(out->piece, out->piece + from, size);
    int n = snprintf(head, sizeof head, "d %" PRIu32 " %" PRIu64 " %zu\n",
                     f->tag, f->next, size);
    f->next += size;
    out->room -= size < out->room ? size : out->room;
    if (f->rate) {
        int64_t now = follow_now_ns();
        f->due_ns = (f->due_ns > now ? f->due_ns : now) +
                    (int64_t)(size * 1000000000 / f->rate);
    }
    return out_write(out, head, (size_t)n, size, err);
}

/* With a limit an eighth of a second's bytes; a line always fits. */
static size_t piece_of(const struct follow_file *f)
{
    uint64_t want = f->rate / 8;
    return f->rate == 0 || want > FOLLOW_PIECE ? FOLLOW_PIECE
           : want > PIECE_MIN                  ? (size_t)want
                                               : PIECE_MIN;
}

int follow_file_give(struct follow_file *f, struct follow_out *out,
                     struct error *err)
{
    if (f->fd < 0 || (f->rate && f->due_ns > follow_now_ns()))
        return 0;
    if (!f->looked)
        pass_hole(f);
    size_t want = piece_of(f);
    ssize_t n = pread(f->fd, out->piece, want, (off_t)f->next);
    if (n <= 0)
        return 0;
    size_t size = (size_t)n, from = 0;
    if (f->torn) {
        const char *end = memchr(out->piece, '\n', size);
        from = end ? (size_t)(end - out->piece) + 1 : size;
        f->torn = !end;
        f->next += from;
        size -= from;
    }
    size = whole_lines(f, out->piece + from, size, n == (ssize_t)want);
    if (size == 0)
        return n == (ssize_t)want && from > 0;
    int rc = give(f, out, from, size, err);
    return rc ? rc : n == (ssize_t)want;
}

/* --- its end -------------------------------------------------------------- */

int follow_file_tell(struct follow_file *f, struct follow_out *out,
                     struct error *err)
{
    struct stat st;
    if (!f->ends || f->told)
        return 0;
    if (f->fd < 0) {
        f->told = true;
        int rc = say(out, 'm', f->tag, (uint64_t)f->fault, err);
        return rc ? rc : 1;
    }
    /* in this order: nothing more comes then */
    if (!writers_are_gone(f->fd) || fstat(f->fd, &st) != 0 ||
        (uint64_t)st.st_size > f->next)
        return 0;
    f->told = true;
    int rc = say(out, 'e', f->tag, f->next, err);
    return rc ? rc : 1;
}

int follow_file_complain(struct follow_file *f, struct follow_out *out,
                         struct error *err)
{
    if (f->fd >= 0 || f->fault == ENOENT || f->told)
        return 0;
    f->told = true;
    return say(out, 'm', f->tag, (uint64_t)f->fault, err);
}
