#include "lib/db/dbfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

int dbfile_sync(const char *dir, struct error *err)
{
    cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return error_errno(err, errno, "state directory %s", dir);
    return 0;
}

/* A directory that is new has to be in its parent after a power cut, too. */
static int make_directory(const char *dir, struct error *err)
{
    if (mkdir(dir, 0700) < 0)
        return errno == EEXIST
                   ? 0
                   : error_errno(err, errno, "state directory %s", dir);
    cleanup_free char *parent = xasprintf("%s/..", dir);
    return dbfile_sync(parent, err);
}

/* Whoever can write to it could put another database in our place. */
static int check_directory(const char *dir, struct error *err)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return error_errno(err, errno, "state directory %s", dir);
    if (st.st_mode & S_IWOTH)
        return error_set(err, EPERM,
                         "state directory %s: everybody may write to it (mode "
                         "%03o): run chmod o-w on it",
                         dir, (unsigned)st.st_mode & 0777);
    return 0;
}

int dbfile_lock(const char *dir, int *ret_fd, struct error *err)
{
    int e = make_directory(dir, err);
    if (e == 0)
        e = check_directory(dir, err);
    if (e < 0)
        return e;
    cleanup_free char *path = xasprintf("%s/lock", dir);
    cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                             0600);
    if (fd < 0)
        return error_errno(err, errno, "lock file %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return error_errno(err, errno, "lock file %s", path);
        return error_set(err, EBUSY,
                         "state directory %s: another process uses it", dir);
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int dbfile_create(const char *dir, const char *name, struct error *err)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                             0600);
    if (fd < 0 || fchmod(fd, 0600) < 0)
        return error_errno(err, errno, "database %s", path);
    return dbfile_sync(dir, err);
}

bool dbfile_is_empty(const char *dir, const char *name)
{
    struct stat st;
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    return stat(path, &st) < 0 || st.st_size == 0;
}

static int set_aside(const char *dir, const char *name, char **ret_path,
                     struct error *err)
{
    cleanup_free char *from = xasprintf("%s/%s", dir, name);
    cleanup_free char *from_log = xasprintf("%s-wal", from);
    for (int i = 1; i <= DBFILE_DAMAGED_MAX; i++) {
        cleanup_free char *to = xasprintf("%s.damaged-%d", from, i);
        cleanup_free char *to_log = xasprintf("%s-wal", to);
        if (access(to, F_OK) == 0 || access(to_log, F_OK) == 0)
            continue;
        /* the log first: it must never meet the next database */
        if (rename(from_log, to_log) < 0 && errno != ENOENT)
            return error_errno(err, errno, "moving %s aside", from_log);
        if (rename(from, to) < 0 && errno != ENOENT)
            return error_errno(err, errno, "moving %s aside", from);
        *ret_path = steal(&to);
        return dbfile_sync(dir, err);
    }
    return error_set(err, EEXIST,
                     "%s is damaged, and %d earlier ones are still there", from,
                     DBFILE_DAMAGED_MAX);
}

int dbfile_replace(const char *dir, const char *name, char **ret_aside,
                   struct error *err)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    cleanup_free char *fresh = xasprintf("%s" DBFILE_FRESH, path);
    cleanup_free char *whole = xasprintf("%s" DBFILE_WHOLE, path);
    cleanup_free char *log = xasprintf("%s-wal", fresh);
    if (access(log, F_OK) == 0)
        return error_set(err, ENOSPC,
                         "%s: could not be written whole: is the disk full?",
                         fresh);
    if (rename(fresh, whole) < 0)
        return error_errno(err, errno, "moving %s", fresh);
    int e = dbfile_sync(dir, err);
    if (e == 0)
        e = set_aside(dir, name, ret_aside, err);
    if (e == 0 && rename(whole, path) < 0)
        e = error_errno(err, errno, "moving %s", whole);
    return e == 0 ? dbfile_sync(dir, err) : e;
}

/* One that is not there is none. */
static int discard(const char *path, struct error *err)
{
    return unlink(path) < 0 && errno != ENOENT
               ? error_errno(err, errno, "removing %s", path)
               : 0;
}

int dbfile_tidy(const char *dir, const char *name, struct error *err)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    cleanup_free char *fresh = xasprintf("%s" DBFILE_FRESH, path);
    cleanup_free char *fresh_log = xasprintf("%s-wal", fresh);
    cleanup_free char *whole = xasprintf("%s" DBFILE_WHOLE, path);
    cleanup_free char *aside = NULL;
    int e = discard(fresh, err);
    if (e == 0)
        e = discard(fresh_log, err);
    if (e < 0 || access(whole, F_OK) < 0)
        return e;
    if (access(path, F_OK) == 0)
        e = set_aside(dir, name, &aside, err);
    if (e == 0 && rename(whole, path) < 0)
        e = error_errno(err, errno, "moving %s", whole);
    return e == 0 ? dbfile_sync(dir, err) : e;
}

/* --- those that are aside --------------------------------------------------- */

/* Adds up; when it was written to last. */
static int64_t look_at(const char *path, int64_t *bytes)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return 0;
    *bytes += st.st_size;
    return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

void dbfile_look_aside(const char *dir, const char *name,
                       struct dbfile_aside *ret_aside)
{
    struct dbfile_aside found = {0};
    for (int i = 1; i <= DBFILE_DAMAGED_MAX; i++) {
        cleanup_free char *path = xasprintf("%s/%s.damaged-%d", dir, name, i);
        cleanup_free char *log = xasprintf("%s-wal", path);
        int64_t bytes = 0, ms = look_at(path, &bytes);
        int64_t log_ms = look_at(log, &bytes);
        ms = log_ms > ms ? log_ms : ms;
        found.bytes += bytes;
        if (ms == 0 || (found.oldest && ms >= found.oldest_ms))
            continue;
        free(found.oldest);
        found.oldest = steal(&path);
        found.oldest_ms = ms;
    }
    *ret_aside = found;
}

int dbfile_drop_aside(const char *path, struct error *err)
{
    cleanup_free char *log = xasprintf("%s-wal", path);
    int e = discard(log, err);
    return e == 0 ? discard(path, err) : e;
}
