/* Mounts of biga-card: a tmpfs of a pod with a limit of its own.  They reach
 * containers only where the mount of the pods' folders is shared with the
 * card's own system, which its /proc/self/mountinfo tells. */
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/card_private.h"
#include "card/volume.h"
#include "lib/base/mem.h"

static FILE *mounts_open(void)
{
    return fopen("/proc/self/mountinfo", "re");
}

/* The n-th word of a line, from 0 on; NULL when there is none. */
static const char *word_at(const char *line, unsigned n)
{
    while (line && n-- > 0) {
        line = strchr(line, ' ');
        line = line ? line + 1 : NULL;
    }
    return line;
}

/* Is the mount of that number shared? */
static bool is_shared(uint64_t id)
{
    cleanup_file FILE *list = mounts_open();
    cleanup_free char *line = NULL;
    size_t cap = 0;
    while (list && getline(&line, &cap, list) > 0) {
        if (strtoull(line, NULL, 10) != id)
            continue;
        const char *options = word_at(line, 6);
        const char *end = options ? strstr(options, "- ") : NULL;
        const char *found = options ? strstr(options, "shared:") : NULL;
        return found && end && found < end;
    }
    return false;
}

static bool mount_reaches_others(int dir, const char *leaf)
{
    struct statx st;
    return statx(dir, leaf, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &st) == 0 &&
           (st.stx_mask & STATX_MNT_ID) && is_shared(st.stx_mnt_id);
}

/* The descriptor of a folder to mount on, made when it is missing. */
static int place_open(int dir, const char *leaf, struct error *err)
{
    if (mkdirat(dir, leaf, 0700) != 0 && errno != EEXIST)
        return error_errno(err, errno, "%s", leaf);
    int fd = openat(dir, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? error_errno(err, errno, "%s", leaf) : fd;
}

/* 0; 1 when it is mounted no more, as nobody has seen it. */
static int keep_shared(int dir, const char *leaf)
{
    char path[64];
    if (mount_reaches_others(dir, leaf))
        return 0;
    /* the descriptor that it was mounted by is of what is below it */
    cleanup_fd int on = openat(dir, leaf,
                               O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", on);
    (void)umount2(path, MNT_DETACH);
    return 1;
}

static bool is_same(int one, int other)
{
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

int card_bind(int dir, const char *leaf, int folder, struct error *err)
{
    char from[64], path[64];
    cleanup_fd int fd = place_open(dir, leaf, err);
    if (fd < 0)
        return fd;
    if (is_same(fd, folder))
        return 0; /* of a container before */
    (void)snprintf(from, sizeof from, "/proc/self/fd/%d", folder);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (mount(from, path, NULL, MS_BIND, NULL) != 0)
        return errno == EPERM || errno == EACCES
                   ? 1
                   : error_errno(err, errno, "%s: mount", leaf);
    return keep_shared(dir, leaf);
}

int card_tmpfs(int dir, const char *leaf, uint64_t size, struct error *err)
{
    char path[64], options[64];
    cleanup_fd int fd = place_open(dir, leaf, err);
    if (fd < 0)
        return fd;
    if (size == 0)
        return 1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)snprintf(options, sizeof options, "mode=0700,size=%llu",
                   (unsigned long long)size);
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
        return errno == EPERM || errno == EACCES
                   ? 1
                   : error_errno(err, errno, "%s: tmpfs of %llu bytes", leaf,
                                 (unsigned long long)size);
    return keep_shared(dir, leaf);
}

/* As the kernel writes paths there: "\040" is a blank. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at && *at != ' ' && *at != '\n'; at++) {
        if (at[0] == '\\' && at[1] && at[2] && at[3]) {
            *to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 |
                           (at[3] - '0'));
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* The last mount below `path`; the caller frees it, NULL when there is none. */
static char *mount_below(const char *path)
{
    cleanup_file FILE *list = mounts_open();
    cleanup_free char *line = NULL;
    char *found = NULL;
    size_t cap = 0, len = strlen(path);
    while (list && getline(&line, &cap, list) > 0) {
        char *at = (char *)(uintptr_t)word_at(line, 4);
        if (!at)
            continue;
        unescape(at);
        if (strncmp(at, path, len) != 0 || at[len] != '/')
            continue;
        free(found);
        found = xstrdup(at);
    }
    return found;
}

int card_unmount(const char *path, struct error *err)
{
    for (unsigned n = 0; n < CARD_TREE_MAX; n++) {
        cleanup_free char *at = mount_below(path);
        if (!at)
            return 0;
        if (umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
            return error_errno(err, errno, "%s: unmount", at);
    }
    return error_set(err, E2BIG, "%s: more than %d mounts", path,
                     CARD_TREE_MAX);
}
