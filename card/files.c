#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "card/card_private.h"
#include "lib/base/mem.h"

/* The name of a file while it is being written.  A process that is killed
 * leaves it behind, and the next one overwrites it. */
static const char unfinished[] = ".biga-new";

/* One file's arguments. */
struct piece_file {
    const char *name;
    bool folder;
    mode_t mode;
    size_t n;
    const char *const *pieces;
};

long card_number(const char *text, int base, long max)
{
    char *end;
    if (text[0] < '0' || text[0] > '9' || strlen(text) > 8)
        return -1;
    long value = strtol(text, &end, base);
    return *end || value > max ? -1 : value;
}

/* Take the arguments of a file from the front; how many these are. */
static int take_file(int argc, const char *const *argv,
                     struct piece_file *ret_file, struct error *err)
{
    if (!card_name_ok(argv[0]))
        return error_set(err, EINVAL, "'%s': is no name below the folder",
                         argv[0]);
    if (argc < 3)
        return error_set(err, EINVAL, "%s: lacks its mode or pieces", argv[0]);
    bool folder = argv[1][0] == 'd';
    long mode = card_number(argv[1] + folder, 8, 0777);
    if (mode < 0)
        return error_set(err, EINVAL,
                         "%s: mode '%s' is not octal, up to 777, with or "
                         "without a 'd' before it",
                         argv[0], argv[1]);
    long n = card_number(argv[2], 10, CARD_PIECES_MAX);
    if (n < 0 || n > argc - 3 || (folder && n > 0))
        return error_set(err, EINVAL, "%s: has not '%s' pieces", argv[0],
                         argv[2]);
    for (long i = 0; i < n; i++)
        if (strlen(argv[3 + i]) > CARD_PIECE_MAX)
            return error_set(err, EINVAL, "%s: a piece has more than %d bytes",
                             argv[0], CARD_PIECE_MAX);
    *ret_file = (struct piece_file){.name = argv[0],
                                    .folder = folder,
                                    .mode = (mode_t)mode,
                                    .n = (size_t)n,
                                    .pieces = argv + 3};
    return (int)n + 3;
}

int card_write_pieces(int fd, const char *const *pieces, size_t n,
                      struct pad *pad)
{
    cleanup_free unsigned char *data = xmalloc(CARD_PIECE_MAX / 4 * 3);
    size_t size;
    for (size_t i = 0; i < n; i++) {
        if (card_decode(pieces[i], strlen(pieces[i]), data, &size) ||
            !pad_lift(pad, data, size))
            return -EBADMSG;
        int rc = card_write(fd, data, size);
        if (rc)
            return rc;
    }
    return 0;
}

/* It is not flushed: after a crash of the card its sandboxes are void, and
 * files are delivered anew. */
static int write_in(int dir, const char *leaf, const struct piece_file *file,
                    struct pad *pad)
{
    if (unlinkat(dir, unfinished, 0) != 0 && errno != ENOENT)
        return -errno;
    cleanup_fd int fd =
        openat(dir, unfinished,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = card_write_pieces(fd, file->pieces, file->n, pad);
    /* whatever the umask is */
    if (!rc && fchmod(fd, file->mode) != 0)
        rc = -errno;
    if (!rc && renameat(dir, unfinished, dir, leaf) != 0)
        rc = -errno;
    if (rc)
        (void)unlinkat(dir, unfinished, 0); /* the first failure is told */
    return rc;
}

/* A descriptor of its own for the folder `name`; `name` "": of `top`. */
static int open_below(int top, const char *name, struct error *err)
{
    int dir = fcntl(top, F_DUPFD_CLOEXEC, 0);
    if (dir < 0)
        return error_errno(err, errno, "%s", name);
    return *name ? card_open_below(dir, name, true, err) : dir;
}

static int make_folder(int top, const struct piece_file *file,
                       struct error *err)
{
    cleanup_fd int dir = open_below(top, file->name, err);
    if (dir < 0)
        return dir;
    if (fchmod(dir, file->mode) != 0)
        return error_errno(err, errno, "%s", file->name);
    return 0;
}

static int write_file(int top, const struct piece_file *file, struct pad *pad,
                      struct error *err)
{
    const char *slash = strrchr(file->name, '/');
    cleanup_free char *folder =
        xstrndup(file->name, slash ? (size_t)(slash - file->name) : 0);
    cleanup_fd int dir = open_below(top, folder, err);
    if (dir < 0)
        return dir;
    int rc = write_in(dir, slash ? slash + 1 : file->name, file, pad);
    if (rc == -EBADMSG)
        return error_set(err, EINVAL,
                         "%s: a piece is not base64, or longer than the pad",
                         file->name);
    return rc ? error_errno(err, -rc, "%s", file->name) : 0;
}

static int write_list(int top, int argc, const char *const *argv,
                      struct pad *pad, struct error *err)
{
    struct piece_file file;
    int rc = 0;
    for (int at = 0, n; !rc && at < argc; at += n) {
        if ((n = take_file(argc - at, argv + at, &file, err)) < 0)
            return n;
        rc = file.folder ? make_folder(top, &file, err)
                         : write_file(top, &file, pad, err);
    }
    return rc;
}

/* All of it is looked at before anything is written. */
static int check_list(int argc, const char *const *argv, bool folders,
                      struct error *err)
{
    struct piece_file file;
    for (int at = 0, n; at < argc; at += n) {
        if ((n = take_file(argc - at, argv + at, &file, err)) < 0)
            return n;
        if (folders && !file.folder)
            return error_set(err, EINVAL, "%s: is no folder", file.name);
    }
    return 0;
}

/* One writer at a time: the unfinished file has one name. */
static int open_locked(const char *dir, struct error *err)
{
    int top = card_open_pod(dir, err);
    if (top >= 0 && flock(top, LOCK_EX) != 0) {
        int rc = error_errno(err, errno, "%s", dir);
        (void)close(top); /* a folder: nothing was written */
        return rc;
    }
    return top;
}

int card_files(const char *dir, const char *id, int argc,
               const char *const *argv, struct error *err)
{
    struct pad pad = {0};
    int rc = check_list(argc, argv, false, err);
    if (rc)
        return rc;
    cleanup_fd int top = open_locked(dir, err);
    if (top < 0)
        return top;
    if (strcmp(id, "-") != 0)
        rc = pad_take(top, id, &pad, err);
    if (!rc)
        rc = write_list(top, argc, argv, &pad, err);
    pad_fini(&pad);
    return rc;
}

int card_memory(const char *dir, int argc, const char *const *argv,
                struct error *err)
{
    struct statfs fs;
    struct pad none = {0};
    int rc = check_list(argc, argv, true, err);
    if (rc)
        return rc;
    cleanup_fd int top = open_locked(dir, err);
    if (top < 0)
        return top;
    if (fstatfs(top, &fs) != 0)
        return error_errno(err, errno, "%s", dir);
    if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
        return error_set(err, EMEDIUMTYPE,
                         "%s: is not in memory: /dev/shm of this machine is no "
                         "tmpfs",
                         dir);
    return write_list(top, argc, argv, &none, err);
}

int card_hugepages(const char *mount, uint64_t page, const char *dir, int argc,
                   const char *const *argv, struct error *err)
{
    struct statfs fs;
    struct pad none = {0};
    int rc = check_list(argc, argv, true, err);
    if (rc)
        return rc;
    if (statfs(mount, &fs) != 0 || fs.f_type != HUGETLBFS_MAGIC ||
        (uint64_t)fs.f_bsize != page)
        return error_set(err, EMEDIUMTYPE,
                         "no hugetlbfs with pages of %" PRIu64
                         " bytes is mounted there",
                         page);
    cleanup_fd int top = open_locked(dir, err);
    return top < 0 ? top : write_list(top, argc, argv, &none, err);
}
