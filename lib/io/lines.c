#include "lib/io/lines.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

static int read_all(int fd, uint64_t offset, size_t size, char *data,
                    size_t *ret_n)
{
    size_t n = 0;
    while (n < size) {
        ssize_t got = pread(fd, data + n, size - n, (off_t)(offset + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret_n = n;
    return 0;
}

/* Up to the last line's end. */
static size_t whole_size(const char *data, size_t n, bool at_end,
                         const struct lines_ask *ask)
{
    const char *end = memrchr(data, '\n', n);
    if (ask->ended && at_end)
        return n;
    if (end)
        return (size_t)(end - data) + 1;
    return n == ask->max ? n : 0;
}

int lines_read(int fd, const struct lines_ask *ask, struct lines *ret_lines)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    uint64_t size = (uint64_t)st.st_size, from = ask->offset;
    bool cut = ask->tail && size > ask->max;
    if (ask->tail)
        from = cut ? size - ask->max : 0;
    else if (from > size)
        from = 0;
    size_t n = size - from < ask->max ? (size_t)(size - from) : ask->max;
    cleanup_free char *data = xmalloc(n + 1);
    int e = read_all(fd, from, n, data, &n);
    if (e < 0)
        return e;
    size_t whole = whole_size(data, n, from + n >= size, ask), skip = 0;
    const char *end = cut ? memchr(data, '\n', whole) : NULL;
    if (end)
        skip = (size_t)(end - data) + 1;
    memmove(data, data + skip, whole - skip);
    *ret_lines = (struct lines){steal(&data), whole - skip, from + whole};
    return 0;
}
