#include "router/log/log_sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/failpoint.h"
#include "router/log/log_state.h"

enum {
    LINE_MAX_SIZE = 65536, /* what is longer is no line */
    PARTS_MIN = 2,         /* the pod's folder, and a name in it */
};

struct log_sink {
    int root, states;
    char *key, *path;
    const char *below; /* of path: what is below the root */
    int fd;
    uint64_t size; /* of the file */
    uint64_t next; /* offset in the remote's file */
    uint64_t half; /* bytes at the end that are no whole line */
    struct log_state state;
};

/* --- paths ---------------------------------------------------------------- */

/* How many parts; 0 when one of them may not be. */
static size_t parts_of(const char *path)
{
    for (size_t n = 1;; n++) {
        size_t len = strcspn(path, "/");
        if (len == 0 || len > NAME_MAX || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return 0;
        path += len;
        if (!*path++)
            return n;
    }
}

static int path_check(const struct log_sink_config *config,
                      const char **ret_below, struct error *err)
{
    size_t len = strlen(config->root_path);
    const char *path = config->path;
    if (strlen(path) > LOG_PATH_MAX ||
        strncmp(path, config->root_path, len) != 0 || path[len] != '/' ||
        parts_of(path + len + 1) < PARTS_MIN)
        return error_set(err, EINVAL,
                         "log path \"%.300s\": must be of a file in a folder "
                         "of a pod below %s",
                         path, config->root_path);
    *ret_below = path + len + 1;
    return 0;
}

/* The folder of the log, and its name there. */
static int folder_open(const struct log_sink *s, const char **ret_name,
                       struct error *err)
{
    cleanup_free char *copy = xstrdup(s->below);
    char *part = copy;
    int dir = s->root;
    for (char *slash; (slash = strchr(part, '/')); part = slash + 1) {
        *slash = '\0';
        int next = openat(dir, part,
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int code = errno;
        if (dir != s->root)
            (void)close(dir); /* a folder: nothing was written */
        if (next < 0)
            return error_errno(err, code, "%s: at '%s'", s->path, part);
        dir = next;
    }
    *ret_name = s->below + (part - copy);
    return dir;
}

static int file_open(const struct log_sink *s, int dir, const char *name,
                     int flags, struct stat *ret_st, struct error *err)
{
    /* a FIFO would never open, a device do who knows what */
    int fd = openat(
        dir, name,
        O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0640);
    if (fd < 0 || fstat(fd, ret_st) != 0)
        return error_errno(err, errno, "%s", s->path);
    if (S_ISREG(ret_st->st_mode) && ret_st->st_nlink <= 1)
        return fd;
    (void)close(fd); /* nothing was written */
    return error_set(err, EINVAL, "%s: is no ordinary file", s->path);
}

static int named_open(const struct log_sink *s, int flags, struct stat *ret_st,
                      struct error *err)
{
    const char *name;
    int dir = folder_open(s, &name, err);
    if (dir < 0)
        return dir;
    int fd = file_open(s, dir, name, flags, ret_st, err);
    (void)close(dir); /* a folder: nothing was written */
    return fd;
}

/* --- which file ----------------------------------------------------------- */

static struct log_place place_of(const struct stat *st, uint64_t next)
{
    return (struct log_place){.device = st->st_dev,
                              .inode = st->st_ino,
                              .base = (int64_t)next - st->st_size};
}

/* How many bytes at its end are no whole line. */
static uint64_t half_of(int fd, uint64_t size)
{
    cleanup_free char *text = xmalloc(LINE_MAX_SIZE);
    uint64_t from = size > LINE_MAX_SIZE ? size - LINE_MAX_SIZE : 0;
    ssize_t n = pread(fd, text, (size_t)(size - from), (off_t)from);
    const char *end = n > 0 ? memrchr(text, '\n', (size_t)n) : NULL;
    if (!end)
        return from > 0 ? 0 : size;
    return size - from - (uint64_t)(end - text) - 1;
}

/* From now on it is this file: written down first. */
static int take_file(struct log_sink *s, int fd, const struct stat *st,
                     uint64_t next, struct error *err)
{
    struct log_state state = s->state;
    struct log_place now = place_of(st, next);
    if (now.inode != state.now.inode || now.device != state.now.device)
        state.before = state.now;
    state.now = now;
    int rc = log_state_save(s->states, s->key, &state, err);
    if (rc)
        return rc;
    if (s->fd >= 0 && s->fd != fd)
        (void)close(s->fd); /* what counts is durable or still on the remote */
    s->fd = fd;
    s->state = state;
    s->next = next;
    s->size = (uint64_t)st->st_size;
    s->half = half_of(fd, s->size);
    return 0;
}

struct folder {
    struct log_seen seen[LOG_FOLDER_FILES];
    size_t n, named;
    char renamed[NAME_MAX + 1]; /* of the file with the inode looked for */
};

/* The kubelet's rotated files are called as the log is, and a time. */
static void folder_read(int dir, const char *name, uint64_t inode,
                        struct folder *ret_folder)
{
    struct stat st;
    int copy = dup(dir);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    ret_folder->n = ret_folder->named = 0;
    bool named = false;
    for (struct dirent *e;
         list && ret_folder->n < LOG_FOLDER_FILES && (e = readdir(list));) {
        if (strncmp(e->d_name, name, strlen(name)) != 0 ||
            fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (strcmp(e->d_name, name) == 0) {
            ret_folder->named = ret_folder->n;
            named = true;
        }
        if (st.st_ino == inode)
            (void)snprintf(ret_folder->renamed, sizeof ret_folder->renamed,
                           "%s", e->d_name);
        ret_folder->seen[ret_folder->n++] =
            (struct log_seen){st.st_dev, st.st_ino, (uint64_t)st.st_size};
    }
    if (!named)
        ret_folder->named = ret_folder->n;
    if (list)
        (void)closedir(list); /* it was only read */
    else if (copy >= 0)
        (void)close(copy); /* the same */
}

/* Go on where the one before this process has stopped. */
static int resume(struct log_sink *s, struct error *err)
{
    const char *name;
    struct stat st;
    struct log_resume how;
    int dir = folder_open(s, &name, err);
    if (dir < 0)
        return dir;
    cleanup_free struct folder *folder = xcalloc(1, sizeof *folder);
    folder_read(dir, name, s->state.now.inode, folder);
    log_state_resume(&s->state, folder->seen, folder->n, folder->named, &how);
    bool renamed = how.how == LOG_RESUME_RENAMED;
    int fd = file_open(s, dir, renamed ? folder->renamed : name,
                       renamed ? 0 : O_CREAT, &st, err);
    (void)close(dir); /* a folder: nothing was written */
    if (fd < 0)
        return fd;
    int rc = take_file(s, fd, &st, how.next, err);
    if (rc)
        (void)close(fd); /* nothing was written */
    return rc;
}

/* A container that nobody has written of yet: `next` from the size of its file
 * when what the state said is not readable. */
static int begin(struct log_sink *s, bool damaged, struct error *err)
{
    struct stat st;
    int fd = named_open(s, O_CREAT, &st, err);
    if (fd < 0)
        return fd;
    int rc = take_file(s, fd, &st, damaged ? (uint64_t)st.st_size : 0, err);
    if (rc)
        (void)close(fd); /* nothing was written */
    return rc;
}

int log_sink_open(const struct log_sink_config *config,
                  struct log_sink **ret_sink, struct error *err)
{
    const char *below = NULL;
    if (!log_key_ok(config->key))
        return error_set(err, EINVAL,
                         "key of a log \"%.300s\": must be of "
                         "letters, digits, '.', '_' and '-'",
                         config->key);
    int rc = path_check(config, &below, err);
    if (rc)
        return rc;
    cleanup_with(log_sink) struct log_sink *s = xcalloc(1, sizeof *s);
    s->root = config->root;
    s->states = config->states;
    s->key = xstrdup(config->key);
    s->path = xstrdup(config->path);
    s->below = s->path + (below - config->path);
    s->fd = -1;
    rc = log_state_load(s->states, s->key, &s->state, err);
    rc = rc ? begin(s, rc != -ENOENT, err) : resume(s, err);
    if (rc)
        return rc;
    *ret_sink = steal(&s);
    return 0;
}

void log_sink_close(struct log_sink *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        (void)close(s->fd); /* what is not durable is still on the remote */
    free(s->key);
    free(s->path);
    free(s);
}

/* --- writing -------------------------------------------------------------- */

uint64_t log_sink_next(const struct log_sink *s)
{
    return s->next;
}

static int write_all(int fd, const char *data, size_t size)
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

static int copy_file(int from, int to, uint64_t size)
{
    cleanup_free char *text = xmalloc(LINE_MAX_SIZE);
    for (uint64_t at = 0; at < size;) {
        ssize_t n = pread(from, text, LINE_MAX_SIZE, (off_t)at);
        int rc = n <= 0 ? -EIO : write_all(to, text, (size_t)n);
        if (rc)
            return rc;
        at += (uint64_t)n;
    }
    return 0;
}

/* Our file is nowhere any more.  The kubelet thinks that it was not reopened,
 * as the answer did not come, and has renamed the old one back over it: what
 * we have of the new one goes to the end of that. */
static int move_back(struct log_sink *s, struct error *err)
{
    struct stat st;
    int fd = named_open(s, 0, &st, err);
    if (fd < 0)
        return 0; /* the whole folder is on its way out */
    int rc = copy_file(s->fd, fd, s->size);
    if (rc || fstat(fd, &st) != 0)
        rc = error_errno(err, rc ? -rc : errno, "%s", s->path);
    else
        rc = take_file(s, fd, &st, s->next, err);
    if (rc)
        (void)close(fd); /* told already */
    return rc;
}

/* Others may do to the file what they like, and we still know which bytes it
 * has. */
static int look(struct log_sink *s, struct error *err)
{
    struct stat st;
    if (fstat(s->fd, &st) != 0)
        return error_errno(err, errno, "%s", s->path);
    if (st.st_nlink == 0)
        return move_back(s, err);
    return (uint64_t)st.st_size == s->size
               ? 0
               : take_file(s, s->fd, &st, s->next, err);
}

/* The kubelet has a whole line in memory when it reads one: the first that has
 * no end gets one, in place of a byte.  No other in a frame is so long. */
static char *end_line(const struct log_sink *s, const char *data, size_t size)
{
    const char *end = memchr(data, '\n', size);
    if (s->half + (end ? (size_t)(end - data) : size) <= LOG_LINE_MAX)
        return NULL;
    char *copy = xmalloc(size);
    memcpy(copy, data, size);
    copy[s->half < LOG_LINE_MAX ? LOG_LINE_MAX - s->half : 0] = '\n';
    return copy;
}

int log_sink_write(struct log_sink *s, const char *data, size_t size,
                   struct error *err)
{
    int rc = look(s, err);
    if (rc)
        return rc;
    cleanup_free char *ended = end_line(s, data, size);
    if (ended)
        data = ended;
    if (failpoint("log-half-write"))
        (void)write_all(s->fd, data, size / 2); /* a test has it die next */
    (void)failpoint("log-before-write");
    rc = write_all(s->fd, data, size);
    if (rc) {
        /* a half line would be in the way when the file is rotated; where it
         * cannot go either, look() finds it */
        (void)!ftruncate(s->fd, (off_t)s->size);
        return error_errno(err, -rc, "%s", s->path);
    }
    (void)failpoint("log-after-write");
    const char *end = memrchr(data, '\n', size);
    s->half = end ? size - (size_t)(end - data) - 1 : s->half + size;
    s->size += size;
    s->next += size;
    return 0;
}

int log_sink_skip(struct log_sink *s, uint64_t offset, struct error *err)
{
    struct stat st;
    if (fstat(s->fd, &st) != 0)
        return error_errno(err, errno, "%s", s->path);
    return take_file(s, s->fd, &st, offset, err);
}

/* --- rotation and durability ---------------------------------------------- */

/* A line is in one file: its begin goes from the old one, and comes again. */
static int cut_half(struct log_sink *s, struct error *err)
{
    if (s->half == 0)
        return 0;
    if (ftruncate(s->fd, (off_t)(s->size - s->half)) != 0)
        return error_errno(err, errno, "%s", s->path);
    s->size -= s->half;
    s->next -= s->half;
    s->half = 0;
    return 0;
}

int log_sink_reopen(struct log_sink *s, struct error *err)
{
    struct stat st;
    (void)failpoint("log-before-reopen");
    int fd = named_open(s, O_CREAT, &st, err);
    if (fd < 0)
        return fd;
    if (st.st_ino == s->state.now.inode && st.st_dev == s->state.now.device) {
        (void)close(fd); /* it is the same file: nothing was written by it */
        return 0;
    }
    (void)failpoint("log-after-create");
    int rc = cut_half(s, err);
    if (!rc && fdatasync(s->fd) != 0)
        rc = error_errno(err, errno, "%s", s->path);
    if (!rc)
        rc = take_file(s, fd, &st, s->next, err);
    if (rc)
        (void)close(fd); /* nothing was written */
    (void)failpoint("log-after-reopen");
    return rc;
}

int log_sink_sync(struct log_sink *s, uint64_t *ret_offset, struct error *err)
{
    struct log_state state = s->state;
    if (fdatasync(s->fd) != 0)
        return error_errno(err, errno, "%s", s->path);
    state.kept = s->next - s->half;
    int rc = log_state_save(s->states, s->key, &state, err);
    if (rc)
        return rc;
    s->state = state;
    *ret_offset = state.kept;
    return 0;
}

int log_sink_forget(struct log_sink *s, struct error *err)
{
    return log_state_remove(s->states, s->key, err);
}
