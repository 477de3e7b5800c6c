#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/card_private.h"
#include "lib/base/mem.h"
#include "lib/io/lines.h"
#include "lib/io/log_line.h"
#include "lib/io/writers.h"

/* A walk through the file.  `line` is where the line begins that `next` is
 * in. */
struct log {
    int in, out;
    const char *path;
    uint64_t line, next;
    size_t room; /* bytes that may still be given */
    size_t n_held;
    char window[2 * CARD_LINE_MAX];
    char held[CARD_LINE_MAX]; /* given, and not written yet */
};

int card_open_file(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    if (!slash || !slash[1])
        return error_set(err, EINVAL, "%s: names no file", path);
    cleanup_free char *folder =
        xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
    cleanup_fd int dir = card_open_dir(folder, false, err);
    if (dir < 0)
        return dir;
    /* a FIFO would never open, a device do who knows what */
    cleanup_fd int fd = openat(dir, slash + 1,
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return error_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: is no file", path);
    int opened = fd;
    fd = -1;
    return opened;
}

static int log_read(struct log *l, uint64_t from, size_t max, size_t *ret_n,
                    struct error *err)
{
    size_t n = 0;
    while (n < max) {
        ssize_t got = pread(l->in, l->window + n, max - n, (off_t)(from + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(err, errno, "%s", l->path);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret_n = n;
    return 0;
}

static int log_flush(struct log *l, struct error *err)
{
    for (size_t at = 0; at < l->n_held;) {
        ssize_t n = write(l->out, l->held + at, l->n_held - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "output");
        at += (size_t)n;
    }
    l->n_held = 0;
    return 0;
}

/* Lines are short: a write for each would take most of the time. */
static int log_write(struct log *l, const char *text, size_t size,
                     struct error *err)
{
    l->room -= size;
    while (size > 0) {
        size_t n = sizeof l->held - l->n_held;
        int rc = n == 0 ? log_flush(l, err) : 0;
        if (rc)
            return rc;
        n = n < size ? n : size;
        memcpy(l->held + l->n_held, text, n);
        l->n_held += n;
        text += n;
        size -= n;
    }
    return 0;
}

/* Where the line of `next` begins: what follows depends on its head.  In a
 * line that is too long to be a logger's it is `next` itself. */
static int log_find_line(struct log *l, struct error *err)
{
    uint64_t from = l->next > CARD_LINE_MAX ? l->next - CARD_LINE_MAX : 0;
    size_t n, want = (size_t)(l->next - from);
    int rc = log_read(l, from, want, &n, err);
    if (rc)
        return rc;
    const char *end = n == want && n ? memrchr(l->window, '\n', n) : NULL;
    l->line = end        ? from + (size_t)(end - l->window) + 1
              : from > 0 ? l->next
                         : 0;
    return 0;
}

/* Give what is left of the line [0, size) of the window; with `ends` its line
 * end follows in the file. */
static int log_give_line(struct log *l, const char *text, size_t size,
                         bool ends, struct error *err)
{
    struct log_line line = log_line_read(text, size);
    size_t from = (size_t)(l->next - l->line);
    if (from < line.head)
        from = line.head;
    if (from > size) /* it was longer when it was looked for */
        from = size;
    size_t n = size - from < l->room ? size - from : l->room;
    int rc = log_write(l, text + from, n, err);
    if (rc)
        return rc;
    from += n;
    l->next = l->line + from;
    if (from < size || !ends)
        return 0;
    if (!line.partial && l->room == 0)
        return 0;
    if (!line.partial)
        rc = log_write(l, "\n", 1, err);
    l->next = l->line = l->next + 1;
    return rc;
}

/* Give the lines of one window; `*ret_more` when there may be others. */
static int log_window(struct log *l, bool *ret_more, struct error *err)
{
    size_t n, at = 0;
    int rc = log_read(l, l->line, sizeof l->window, &n, err);
    *ret_more = false;
    while (!rc && l->room > 0 && at < n) {
        const char *text = l->window + at;
        size_t left = n - at;
        const char *end = memchr(text, '\n',
                                 left < CARD_LINE_MAX ? left : CARD_LINE_MAX);
        if (!end && left < CARD_LINE_MAX)
            return 0; /* half a line, or its window's end */
        uint64_t line = l->line;
        size_t size = end ? (size_t)(end - text) : CARD_LINE_MAX;
        rc = log_give_line(l, text, size, end != NULL, err);
        *ret_more = true;
        if (!end && l->next == line + size)
            l->line = l->next;
        at += (size_t)(l->line - line);
        if (l->line == line)
            break; /* no room for the whole line */
    }
    return rc;
}

/* With `tail` of the last bytes that there is room for, else from `next`. */
static int log_give(struct log *l, bool tail, struct card_given *ret_given,
                    struct error *err)
{
    struct stat st;
    size_t max = l->room;
    cleanup_fd int fd = card_open_file(l->path, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0)
        return error_errno(err, errno, "%s", l->path);
    uint64_t size = (uint64_t)st.st_size;
    l->in = fd;
    if (tail)
        l->next = size > max ? size - max : 0;
    else if (l->next > size)
        l->next = 0;
    int rc = log_find_line(l, err);
    for (bool more = true; more && !rc;)
        rc = log_window(l, &more, err);
    if (!rc)
        rc = log_flush(l, err);
    if (rc)
        return rc;
    *ret_given = (struct card_given){.size = max - l->room, .next = l->next};
    return 0;
}

void card_log_await(const char *path)
{
    cleanup_fd int fd = card_open_file(path, NULL);
    if (fd >= 0) /* who reads it says why not */
        (void)writers_await(fd, WRITERS_WAIT_MS); /* what is there is given */
}

static struct log *log_create(const char *path, size_t max, int out)
{
    struct log *l = xcalloc(1, sizeof *l);
    l->path = path;
    l->room = max;
    l->out = out;
    return l;
}

int card_log(const char *path, uint64_t offset, size_t max, int out,
             struct card_given *ret_given, struct error *err)
{
    cleanup_free struct log *l = log_create(path, max, out);
    l->next = offset;
    return log_give(l, false, ret_given, err);
}

int card_log_tail(const char *path, size_t max, int out,
                  struct card_given *ret_given, struct error *err)
{
    cleanup_free struct log *l = log_create(path, max, out);
    return log_give(l, true, ret_given, err);
}

int card_lines(const char *path, const struct lines_ask *ask, int out,
               struct card_given *ret_given, struct error *err)
{
    struct lines lines;
    cleanup_fd int fd = card_open_file(path, err);
    if (fd < 0)
        return fd;
    int rc = lines_read(fd, ask, &lines);
    if (rc < 0)
        return error_errno(err, -rc, "%s", path);
    cleanup_free char *data = lines.data;
    for (size_t at = 0; at < lines.size;) {
        ssize_t n = write(out, data + at, lines.size - at);
        if (n < 0 && errno != EINTR)
            return error_errno(err, errno, "output");
        at += n > 0 ? (size_t)n : 0;
    }
    *ret_given = (struct card_given){lines.size, lines.next};
    return 0;
}
