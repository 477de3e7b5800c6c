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

int card_tmpfs(int dir, const char *leaf, uint64_t size, struct error *err)
{
    char path[64], options[64];
    if (mkdirat(dir, leaf, 0700) != 0 && errno != EEXIST)
        return error_errno(err, errno, "%s", leaf);
    if (size == 0)
        return 1;
    cleanup_fd int fd = openat(dir, leaf,
                               O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "%s", leaf);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)snprintf(options, sizeof options, "mode=0700,size=%llu",
                   (unsigned long long)size);
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
        return errno == EPERM || errno == EACCES
                   ? 1
                   : error_errno(err, errno, "%s: tmpfs of %llu bytes", leaf,
                                 (unsigned long long)size);
    if (mount_reaches_others(dir, leaf))
        return 0;
    /* the descriptor is of what is below it */
    cleanup_fd int on = openat(dir, leaf,
                               O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", on);
    (void)umount2(path, MNT_DETACH); /* nobody has seen it */
    return 1;
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
