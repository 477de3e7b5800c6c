#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/card_private.h"
#include "lib/base/mem.h"

/* Open the folder `name` of `dir`, with `make` also one that is missing. */
static int open_part(int dir, const char *name, bool make)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, name, flags);
    if (fd < 0 && errno == ENOENT && make) {
        if (mkdirat(dir, name, 0755) != 0 && errno != EEXIST)
            return -errno;
        fd = openat(dir, name, flags);
        /* whatever the umask is: any user of a container may look into it */
        if (fd >= 0 && fchmod(fd, 0755) != 0) {
            int rc = -errno;
            (void)close(fd); /* a folder: nothing was written */
            return rc;
        }
    }
    return fd < 0 ? -errno : fd;
}

int card_open_below(int dir, const char *path, bool make, struct error *err)
{
    cleanup_free char *copy = xstrdup(path);
    char *rest = copy;
    for (char *part; (part = strsep(&rest, "/"));) {
        int next = open_part(dir, part, make);
        (void)close(dir); /* a folder: nothing was written */
        if (next < 0)
            return error_errno(err, -next, "%s: at '%s'", path, part);
        dir = next;
    }
    return dir;
}

int card_open_dir(const char *path, bool make, struct error *err)
{
    bool root = path[0] == '/' && !path[1];
    if (!root && (path[0] != '/' || !card_name_ok(path + 1)))
        return error_set(err, EINVAL, "%s: is no absolute path", path);
    int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_errno(err, errno, "/");
    return root ? dir : card_open_below(dir, path + 1, make, err);
}

int card_open_pod(const char *path, struct error *err)
{
    cleanup_fd int top = card_open_dir(path, true, err);
    if (top < 0)
        return top;
    if (fchmod(top, 0700) != 0)
        return error_errno(err, errno, "%s", path);
    int taken = top;
    top = -1;
    return taken;
}

int card_write(int fd, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}
