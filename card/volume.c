#include "card/volume.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "card/card_private.h"
#include "lib/base/mem.h"
#include "lib/io/tree.h"

/* In the pod's folder, where no container sees it. */
static const char unfinished[] = ".biga-new";

struct step {
    const char *word, *name;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    size_t n; /* pieces */
    const char *const *pieces;
    const char *target; /* of a part: the folder */
    uint64_t size;
};

/* --- what is to be done ----------------------------------------------------- */

static int bad(const char *what, const char *value, struct error *err)
{
    return error_set(err, EINVAL, "%s '%.80s': is none", what, value);
}

static bool top_named(const char *name)
{
    return (strncmp(name, "disk/", 5) == 0 ||
            strncmp(name, "memory/", 7) == 0) &&
           card_name_ok(name);
}

/* "UID:GID" */
static int take_owner(const char *text, struct step *s, struct error *err)
{
    char user[16];
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : sizeof user;
    if (len >= sizeof user)
        return bad("owner", text, err);
    memcpy(user, text, len);
    user[len] = '\0';
    char *end;
    errno = 0;
    unsigned long uid = strtoul(user, &end, 10);
    bool good = user[0] >= '0' && user[0] <= '9' && !*end;
    unsigned long gid = strtoul(colon + 1, &end, 10);
    good = good && colon[1] >= '0' && colon[1] <= '9' && !*end;
    /* the last number means "as it is" to chown() */
    if (!good || errno || uid >= UINT32_MAX || gid >= UINT32_MAX)
        return bad("owner", text, err);
    s->uid = (uid_t)uid;
    s->gid = (gid_t)gid;
    return 0;
}

/* MODE UID:GID, and of files N PIECE…; how many words these are. */
static int take_made(int argc, const char *const *argv, struct step *s,
                     struct error *err)
{
    bool folder = strcmp(s->word, "folder") == 0;
    bool part = strcmp(s->word, "part") == 0;
    bool tmpfs = strcmp(s->word, "tmpfs") == 0;
    if (argc < (folder ? 2 : 3))
        return error_set(err, EINVAL, "%s: lacks words", s->name);
    long mode = card_number(argv[0], 8, folder || part || tmpfs ? 03777 : 0777);
    if (mode < 0)
        return bad("mode", argv[0], err);
    s->mode = (mode_t)mode;
    int rc = take_owner(argv[1], s, err);
    if (rc || folder)
        return rc ? rc : 2;
    s->target = argv[2];
    if (part)
        return top_named(s->target) ? 3 : bad("folder", s->target, err);
    char *end;
    errno = 0;
    s->size = strtoull(argv[2], &end, 10);
    if (argv[2][0] < '0' || argv[2][0] > '9' || *end || errno)
        return bad("number", argv[2], err);
    if (tmpfs)
        return 3;
    if (s->size > CARD_PIECES_MAX || s->size > (uint64_t)(argc - 3))
        return error_set(err, EINVAL, "%s: has not '%s' pieces", s->name,
                         argv[2]);
    s->n = (size_t)s->size;
    s->pieces = argv + 3;
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->pieces[i]) > CARD_PIECE_MAX)
            return error_set(err, EINVAL, "%s: a piece has more than %d bytes",
                             s->name, CARD_PIECE_MAX);
    return 3 + (int)s->n;
}

/* Take a step from the front; how many words it has. */
static int take_step(int argc, const char *const *argv, struct step *ret_step,
                     struct error *err)
{
    static const char *const made[] = {"folder", "file", "inplace", "tmpfs",
                                       "part"};
    struct step s = {.word = argv[0], .name = argc > 1 ? argv[1] : ""};
    int n = -1;
    if (!top_named(s.name))
        return error_set(err, EINVAL,
                         "'%.80s': is no name below disk/ or memory/", s.name);
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        if (strcmp(s.word, made[i]) == 0)
            n = take_made(argc - 2, argv + 2, &s, err);
    if (strcmp(s.word, "drop") == 0)
        n = 0;
    else if (strcmp(s.word, "link") == 0 && argc > 2) {
        s.target = argv[2];
        n = card_name_ok(s.target) ? 1 : bad("target", s.target, err);
    } else if (n == -1)
        n = bad("step", s.word, err);
    if (n < 0)
        return n;
    *ret_step = s;
    return n + 2;
}

/* --- doing it --------------------------------------------------------------- */

int card_tops_open(const char *disk, const char *memory,
                   struct card_tops *ret_tops, struct error *err)
{
    struct statfs fs;
    struct card_tops tops = {.disk = card_open_pod(disk, err), .memory = -1};
    if (tops.disk < 0)
        return tops.disk;
    int rc = tops.memory = card_open_pod(memory, err);
    if (rc >= 0 && fstatfs(tops.memory, &fs) != 0)
        rc = error_errno(err, errno, "%s", memory);
    else if (rc >= 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
        rc = error_set(err, EMEDIUMTYPE, "%s: is not in memory", memory);
    /* one writer at a time: the unfinished file has one name */
    if (rc >= 0 && flock(tops.disk, LOCK_EX) != 0)
        rc = error_errno(err, errno, "%s", disk);
    if (rc < 0) {
        card_tops_close(&tops);
        return rc;
    }
    *ret_tops = tops;
    return 0;
}

void card_tops_close(struct card_tops *tops)
{
    /* folders: nothing was written */
    (void)close(tops->disk);
    if (tops->memory >= 0)
        (void)close(tops->memory);
}

int card_tops_find(const struct card_tops *tops, const char *name, bool make,
                   int *ret_top, const char **ret_leaf, struct error *err)
{
    bool on_disk = name[0] == 'd';
    int top = on_disk ? tops->disk : tops->memory;
    const char *below = name + (on_disk ? 5 : 7);
    const char *slash = strrchr(below, '/');
    int dir = fcntl(top, F_DUPFD_CLOEXEC, 0);
    if (dir < 0)
        return error_errno(err, errno, "%s", name);
    if (slash) {
        cleanup_free char *above = xstrndup(below, (size_t)(slash - below));
        dir = card_open_below(dir, above, make, err);
        if (dir < 0)
            return dir;
    }
    *ret_top = top;
    *ret_leaf = slash ? slash + 1 : below;
    return dir;
}

/* It is whoever's it is to be before it has the mode that lets others in. */
static int dress(int fd, const struct step *s)
{
    if (fchown(fd, s->uid, s->gid) != 0 || fchmod(fd, s->mode) != 0)
        return -errno;
    return 0;
}

static int make_folder(int dir, const char *leaf, const struct step *s,
                       struct error *err)
{
    int rc = strcmp(s->word, "tmpfs") == 0 ? card_tmpfs(dir, leaf, s->size, err)
                                           : 0;
    if (rc < 0)
        return rc;
    if (rc == 1)
        (void)fprintf(stderr, "unlimited=%s\n", s->name);
    if (mkdirat(dir, leaf, 0700) != 0 && errno != EEXIST)
        return error_errno(err, errno, "%s", s->name);
    cleanup_fd int fd = openat(dir, leaf,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    rc = fd < 0 ? -errno : dress(fd, s);
    return rc ? error_errno(err, -rc, "%s", s->name) : 0;
}

/* The folder of a part, of which pods have made what they like. */
static int part_open(const struct card_tops *tops, const struct step *s,
                     struct error *err)
{
    cleanup_free char *copy = xstrdup(strchr(s->target, '/') + 1);
    cleanup_fd int dir = fcntl(s->target[0] == 'd' ? tops->disk : tops->memory,
                               F_DUPFD_CLOEXEC, 0);
    char *rest = copy;
    for (char *part; dir >= 0 && (part = strsep(&rest, "/"));) {
        int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        bool made = mkdirat(dir, part, 0700) == 0;
        int next = openat(dir, part, flags);
        int rc = next < 0 ? -errno : made ? dress(next, s) : 0;
        (void)close(dir); /* a folder: nothing was written */
        dir = next;
        if (rc)
            return error_errno(err, -rc, "%s: at '%s'", s->target, part);
    }
    int found = dir;
    dir = -1; /* the caller's */
    return found < 0 ? error_errno(err, errno, "%s", s->target) : found;
}

static int make_part(const struct card_tops *tops, int dir, const char *leaf,
                     const struct step *s, struct error *err)
{
    cleanup_fd int folder = part_open(tops, s, err);
    int rc = folder < 0 ? folder : card_bind(dir, leaf, folder, err);
    return rc == 1 ? error_set(err, ENOTSUP,
                               "%s: cannot be mounted so that others see it: "
                               "is / a shared mount on this card?",
                               s->target)
                   : rc;
}

static int told(const struct step *s, int rc, struct error *err)
{
    if (rc == -EBADMSG)
        return error_set(err, EINVAL,
                         "%s: a piece is not base64, or longer than the pad",
                         s->name);
    return rc ? error_errno(err, -rc, "%s", s->name) : 0;
}

/* What is there takes the new one's place, but for a folder. */
static int put(int top, int dir, const char *leaf)
{
    struct stat st;
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(st.st_mode))
        return -EISDIR;
    return renameat(top, unfinished, dir, leaf) == 0 ? 0 : -errno;
}

static int clear(int top)
{
    return unlinkat(top, unfinished, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

static int write_file(int top, int dir, const char *leaf, const struct step *s,
                      struct pad *pad)
{
    int rc = clear(top);
    if (rc)
        return rc;
    cleanup_fd int fd =
        openat(top, unfinished,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    rc = card_write_pieces(fd, s->pieces, s->n, pad);
    if (!rc)
        rc = dress(fd, s);
    if (!rc)
        rc = put(top, dir, leaf);
    if (rc)
        (void)clear(top); /* the first failure is told */
    return rc;
}

/* Mounts of a single file are of its inode: it is written over, and only then
 * cut, so that it is at no time empty. */
static int write_inplace(int top, int dir, const char *leaf,
                         const struct step *s, struct pad *pad)
{
    struct stat st;
    cleanup_fd int fd = openat(dir, leaf,
                               O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return write_file(top, dir, leaf, s, pad);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    int rc = card_write_pieces(fd, s->pieces, s->n, pad);
    off_t size = lseek(fd, 0, SEEK_CUR);
    if (!rc && (size < 0 || ftruncate(fd, size) != 0))
        rc = -errno;
    return rc ? rc : dress(fd, s);
}

static int lead(int top, int dir, const char *leaf, const struct step *s)
{
    int rc = clear(top);
    if (rc)
        return rc;
    if (symlinkat(s->target, top, unfinished) != 0)
        return -errno;
    rc = put(top, dir, leaf);
    if (rc)
        (void)clear(top); /* the first failure is told */
    return rc;
}

static int drop(int dir, const char *leaf, const struct step *s,
                struct error *err)
{
    if (unlinkat(dir, leaf, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM
               ? tree_remove(dir, leaf, s->name, err)
               : error_errno(err, errno, "%s", s->name);
}

static int do_step(const struct card_tops *tops, const struct step *s,
                   struct pad *pad, struct error *err)
{
    int top;
    const char *leaf;
    bool drops = strcmp(s->word, "drop") == 0;
    cleanup_fd int dir = card_tops_find(tops, s->name, !drops, &top, &leaf,
                                        err);
    if (dir < 0)
        return drops && dir == -ENOENT ? 0 : dir;
    if (strcmp(s->word, "folder") == 0 || strcmp(s->word, "tmpfs") == 0)
        return make_folder(dir, leaf, s, err);
    if (strcmp(s->word, "part") == 0)
        return make_part(tops, dir, leaf, s, err);
    if (strcmp(s->word, "file") == 0)
        return told(s, write_file(top, dir, leaf, s, pad), err);
    if (strcmp(s->word, "inplace") == 0)
        return told(s, write_inplace(top, dir, leaf, s, pad), err);
    if (strcmp(s->word, "link") == 0)
        return told(s, lead(top, dir, leaf, s), err);
    return drop(dir, leaf, s, err);
}

static int do_steps(const struct card_tops *tops, int argc,
                    const char *const *argv, struct pad *pad, struct error *err)
{
    struct step s;
    for (int at = 0, n; at < argc; at += n) {
        if ((n = take_step(argc - at, argv + at, &s, err)) < 0)
            return n;
        int rc = do_step(tops, &s, pad, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int card_volume(int argc, const char *const *argv, struct error *err)
{
    struct pad pad = {0};
    struct card_tops tops;
    struct step s;
    for (int at = 3, n; at < argc; at += n)
        if ((n = take_step(argc - at, argv + at, &s, err)) < 0)
            return n;
    int rc = card_tops_open(argv[0], argv[1], &tops, err);
    if (rc)
        return rc;
    if (strcmp(argv[2], "-") != 0)
        rc = pad_take(tops.memory, argv[2], &pad, err);
    if (!rc)
        rc = do_steps(&tops, argc - 3, argv + 3, &pad, err);
    pad_fini(&pad);
    card_tops_close(&tops);
    return rc;
}
