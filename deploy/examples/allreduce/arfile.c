#include "deploy/examples/allreduce/arfile.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"

/* Tells of whatever comes into the folder of `path`; -errno. */
static int watch_folder(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *folder =
        !slash ? xstrdup(".") : xasprintf("%.*s/", (int)(slash - path), path);
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 &&
        inotify_add_watch(fd, folder,
                          IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE) >= 0)
        return fd;
    int r = error_errno(err, errno, "%s", folder);
    if (fd >= 0)
        (void)close(fd); /* it watches nothing */
    return r;
}

/* The file, opened; -ENOENT when it is not there by `end`. */
static int await(int watching, const char *path, time_t end, FILE **ret_file,
                 struct error *err)
{
    char seen[4096];
    for (;;) {
        struct timespec now;
        FILE *f = fopen(path, "re");
        if (f) {
            *ret_file = f;
            return 0;
        }
        if (errno != ENOENT)
            return error_errno(err, errno, "%s", path);
        (void)clock_gettime(CLOCK_MONOTONIC, &now); /* there is always one */
        struct pollfd p = {.fd = watching, .events = POLLIN};
        if (now.tv_sec >= end ||
            (poll(&p, 1, (int)(end - now.tv_sec) * 1000) < 0 && errno != EINTR))
            return error_set(err, ENOENT, "%s: is not there", path);
        while (read(watching, seen, sizeof seen) > 0)
            ; /* that something came is enough */
    }
}

int arfile_read(const char *path, unsigned wait_s, struct ar_hosts *ret_hosts,
                struct error *err)
{
    struct timespec now;
    FILE *f = NULL;
    cleanup_free char *text = xmalloc(AR_HELLO_MAX + 1);
    cleanup_fd int watching = watch_folder(path, err);
    if (watching < 0)
        return watching;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* there is always one */
    int r = await(watching, path, now.tv_sec + (time_t)wait_s, &f, err);
    if (r < 0)
        return r;
    size_t size = fread(text, 1, AR_HELLO_MAX + 1, f);
    r = ferror(f) ? error_errno(err, errno, "cannot be read")
                  : arhosts_read(text, size, ret_hosts, err);
    (void)fclose(f); /* it was only read */
    return r < 0 ? error_wrap(err, "%s", path) : 0;
}

int arfile_write(const char *path, const char *text, struct error *err)
{
    static struct ar_hosts hosts;
    cleanup_free char *new = xasprintf("%s.new", path);
    int r = arhosts_read(text, strlen(text), &hosts, err);
    if (r < 0)
        return r;
    FILE *f = fopen(new, "we");
    if (!f)
        return error_errno(err, errno, "%s", new);
    bool written = fputs(text, f) >= 0;
    if (fclose(f) != 0 || !written || rename(new, path) != 0)
        r = error_errno(err, errno, "%s", path);
    if (r < 0)
        (void)unlink(new); /* it is of no use */
    return r;
}
