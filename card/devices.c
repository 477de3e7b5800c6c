/* Which device nodes of the card are at paths that have patterns. */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/card.h"
#include "lib/base/mem.h"

struct looking {
    char *found[CARD_DEVICES_MAX];
    size_t n;
    bool many; /* there are more than that */
    dev_t dev; /* the file system of /dev */
};

/* Lines of the output are paths. */
static bool is_plain(const char *name)
{
    for (; *name; name++)
        if (*name <= ' ' || *name > '~')
            return false;
    return true;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_device(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode));
}

static void keep(struct looking *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->found[i], path) == 0)
            return;
    if (l->n == CARD_DEVICES_MAX)
        l->many = true;
    else
        l->found[l->n++] = xstrdup(path);
}

/* A folder, -1 when there is none.  Other file systems are not entered: on
 * /dev/shm anybody makes files. */
static int open_below(const struct looking *l, int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_dev != l->dev)) {
        (void)close(fd); /* a folder: nothing was written */
        fd = -1;
    }
    return fd;
}

/* `dir`, which is taken over, is `path`; `pattern` is what follows it.  Links
 * are not followed.  As deep as the pattern has parts. */
static void look(struct looking *l, int dir, const char *path,
                 const char *pattern)
{
    const char *slash = strchr(pattern, '/');
    cleanup_free char *part =
        xstrndup(pattern, slash ? (size_t)(slash - pattern) : strlen(pattern));
    DIR *list = fdopendir(dir);
    if (!list) {
        (void)close(dir); /* nothing was written to it */
        return;
    }
    for (const struct dirent *d; !l->many && (d = readdir(list));) {
        if (fnmatch(part, d->d_name, FNM_PERIOD) != 0 || is_dots(d->d_name) ||
            !is_plain(d->d_name))
            continue;
        cleanup_free char *here = xasprintf("%s/%s", path, d->d_name);
        int below = slash ? open_below(l, dirfd(list), d->d_name) : -1;
        if (below >= 0)
            look(l, below, here, slash + 1);
        else if (!slash && is_device(dirfd(list), d->d_name))
            keep(l, here);
    }
    (void)closedir(list); /* it was read only */
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int tell(struct looking *l, int out, struct error *err)
{
    qsort(l->found, l->n, sizeof *l->found, by_text);
    for (size_t i = 0; i < l->n; i++)
        if (dprintf(out, "%s\n", l->found[i]) < 0)
            return error_errno(err, errno, "output");
    return 0;
}

static int look_for(struct looking *l, const char *dev, const char *pattern,
                    struct error *err)
{
    static const char below[] = "/dev/";
    const char *rest = pattern + sizeof below - 1;
    if (strncmp(pattern, below, sizeof below - 1) != 0 || !card_name_ok(rest))
        return error_set(err, EINVAL, "%s: is no path below /dev", pattern);
    struct stat st;
    int dir = card_open_dir(dev, false, err);
    if (dir < 0)
        return dir;
    if (fstat(dir, &st) != 0) {
        int rc = error_errno(err, errno, "%s", dev);
        (void)close(dir); /* a folder: nothing was written */
        return rc;
    }
    l->dev = st.st_dev;
    look(l, dir, "/dev", rest);
    return l->many ? error_set(err, E2BIG, "%s: there are more than %d devices",
                               pattern, CARD_DEVICES_MAX)
                   : 0;
}

int card_devices(const char *dev, int argc, const char *const *argv, int out,
                 struct error *err)
{
    struct looking l = {.n = 0};
    int rc = 0;
    for (int i = 0; i < argc && rc == 0; i++)
        rc = look_for(&l, dev, argv[i], err);
    if (rc == 0)
        rc = tell(&l, out, err);
    for (size_t i = 0; i < l.n; i++)
        free(l.found[i]);
    return rc;
}
