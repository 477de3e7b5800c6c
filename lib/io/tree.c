#include "lib/io/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

/* A tree that goes. */
struct tree {
    int top;
    dev_t device;
    unsigned n_moved;
    bool moved; /* something was moved to the top: look there again */
    char failed[256];
};

static int remove_all(struct tree *t, int dir, unsigned depth);

static int note(struct tree *t, const char *name, int code)
{
    (void)snprintf(t->failed, sizeof t->failed, "%s", name);
    return -code;
}

static int move_up(struct tree *t, int dir, const char *name)
{
    for (unsigned tries = 0; tries < 1000; tries++) {
        char to[32];
        (void)snprintf(to, sizeof to, ".biga-rm-%u", t->n_moved++);
        if (renameat2(dir, name, t->top, to, RENAME_NOREPLACE) == 0) {
            t->moved = true;
            return 0;
        }
        if (errno != EEXIST)
            return note(t, name, errno);
    }
    return note(t, name, EEXIST);
}

static int remove_dir(struct tree *t, int dir, const char *name, unsigned depth)
{
    struct stat st;
    if (depth >= TREE_DEPTH_MAX)
        return move_up(t, dir, name);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR) /* a file that cannot go, as an immutable */
        return note(t, name, EPERM);
    if (fd < 0)
        return errno == ENOENT ? 0 : note(t, name, errno);
    int rc = 0;
    if (fstat(fd, &st) != 0)
        rc = note(t, name, errno);
    else if (st.st_dev != t->device)
        rc = note(t, name, EXDEV);
    if (!rc)
        rc = remove_all(t, fd, depth);
    (void)close(fd); /* a folder: nothing was written */
    if (!rc && unlinkat(dir, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        rc = note(t, name, errno);
    return rc;
}

/* Everything in `dir`, which stays open. */
static int remove_all(struct tree *t, int dir, unsigned depth)
{
    int own = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    DIR *list = own < 0 ? NULL : fdopendir(own);
    int rc = 0;
    if (!list) {
        rc = note(t, ".", errno);
        if (own >= 0)
            (void)close(own); /* a folder: nothing was written */
        return rc;
    }
    rewinddir(list);
    for (struct dirent *e; !rc && (e = readdir(list));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(dir, e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        rc = errno == EISDIR || errno == EPERM
                 ? remove_dir(t, dir, e->d_name, depth + 1)
                 : note(t, e->d_name, errno);
    }
    (void)closedir(list); /* only read */
    return rc;
}

int tree_remove(int above, const char *name, const char *path,
                struct error *err)
{
    struct stat st;
    cleanup_fd int top =
        openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0 && errno == ENOENT)
        return 0;
    if (top < 0 || fstat(top, &st) != 0)
        return error_errno(err, errno, "%s", path);
    struct tree t = {.top = top, .device = st.st_dev, .moved = true};
    int rc = 0;
    while (t.moved && !rc) {
        t.moved = false;
        rc = remove_all(&t, top, 0);
    }
    if (rc)
        return error_errno(err, -rc, "%s: '%s' in it", path, t.failed);
    if (unlinkat(above, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        return error_errno(err, errno, "%s", path);
    return 0;
}
