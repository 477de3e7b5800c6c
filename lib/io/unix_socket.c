#include "lib/io/unix_socket.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/mem.h"

enum { BACKLOG = 128 };

#define BESIDE ".new"

bool unix_path_is_good(const char *path)
{
    return *path == '/' &&
           strlen(path) < sizeof((struct sockaddr_un *)NULL)->sun_path;
}

static int address_fill(const char *path, struct sockaddr_un *ret_address,
                        struct error *err)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!unix_path_is_good(path))
        return error_set(err, EINVAL,
                         "cannot listen on \"unix:%.200s\": the path must be "
                         "absolute and have at most %zu bytes, has %zu",
                         path, sizeof ret_address->sun_path - 1, strlen(path));
    memcpy(ret_address->sun_path, path, strlen(path));
    return 0;
}

/* Does anybody answer there? */
static bool is_served(const struct sockaddr_un *address)
{
    cleanup_fd int fd = socket(AF_UNIX,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* EAGAIN: its backlog is full, so there is somebody */
    return fd < 0 ||
           connect(fd, (const struct sockaddr *)address, sizeof *address) ==
               0 ||
           errno != ECONNREFUSED;
}

/* Nothing is there, or a socket. */
static int check_place(const char *path, bool *ret_found, struct error *err)
{
    struct stat st;
    *ret_found = lstat(path, &st) == 0;
    if (!*ret_found)
        return errno == ENOENT ? 0 : error_errno(err, errno, "%s", path);
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, EEXIST, "%s: is there, and is no socket", path);
    return 0;
}

/* Remove a socket file that no process serves any more, and nothing else. */
static int remove_stale(const struct sockaddr_un *address, struct error *err)
{
    const char *path = address->sun_path;
    bool found;
    int r = check_place(path, &found, err);
    if (r < 0 || !found)
        return r;
    if (is_served(address))
        return error_set(err, EADDRINUSE, "%s: somebody else serves it", path);
    return unlink(path) < 0 && errno != ENOENT
               ? error_errno(err, errno, "%s", path)
               : 0;
}

/* The folder, locked as long as it is open: of two that start at once, the
 * second finds the first one's socket served. */
static int lock_folder(const char *path, struct error *err)
{
    size_t size = (size_t)(strrchr(path, '/') - path);
    cleanup_free char *folder = size ? xstrndup(path, size) : xstrdup("/");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "%s", folder);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR) {
            int r = error_errno(err, errno, "%s", folder);
            (void)close(fd);
            return r;
        }
    return fd;
}

/* With the folder locked, and nothing at that path. */
static int bind_there(const struct sockaddr_un *address, int *ret_fd,
                      struct stat *ret_stat, struct error *err)
{
    const char *path = address->sun_path;
    cleanup_fd int fd = socket(AF_UNIX,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* the file gets the mode that the socket has: there is no moment in which
     * others could connect */
    if (fd < 0 || fchmod(fd, 0600) < 0 ||
        bind(fd, (const struct sockaddr *)address, sizeof *address) < 0 ||
        lstat(path, ret_stat) < 0)
        return error_errno(err, errno, "cannot listen on \"unix:%s\"", path);
    if (listen(fd, BACKLOG) < 0) {
        int r = error_errno(err, errno, "cannot listen on \"unix:%s\"", path);
        (void)unlink(path); /* just made */
        return r;
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* Beside it, and then in its place. */
static int replace(const char *path, int *ret_fd, struct stat *ret_stat,
                   struct error *err)
{
    struct sockaddr_un address;
    cleanup_free char *beside = xasprintf("%s" BESIDE, path);
    cleanup_fd int fd = -1;
    bool found;
    int r = check_place(path, &found, err);
    if (r == 0)
        r = address_fill(beside, &address, err);
    if (r == 0) /* of somebody who was killed between the two steps */
        r = remove_stale(&address, err);
    if (r == 0)
        r = bind_there(&address, &fd, ret_stat, err);
    if (r < 0)
        return r;
    if (rename(beside, path) < 0) {
        r = error_errno(err, errno, "cannot rename %s to %s", beside, path);
        (void)unlink(beside); /* just made */
        return r;
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int unix_listen(const char *path, bool take_over, int *ret_fd,
                struct unix_file *ret_file, struct error *err)
{
    struct sockaddr_un address;
    struct stat st;
    int r = address_fill(path, &address, err);
    if (r < 0)
        return r;
    cleanup_fd int lock = lock_folder(path, err);
    if (lock < 0)
        return lock;
    if (take_over) {
        r = replace(path, ret_fd, &st, err);
    } else {
        r = remove_stale(&address, err);
        if (r == 0)
            r = bind_there(&address, ret_fd, &st, err);
    }
    if (r < 0)
        return r;
    *ret_file = (struct unix_file){
        .path = xstrdup(path), .device = st.st_dev, .inode = st.st_ino};
    return 0;
}

void unix_file_fini(struct unix_file *file)
{
    struct stat st;
    if (file->path && lstat(file->path, &st) == 0 &&
        st.st_dev == file->device && st.st_ino == file->inode)
        (void)unlink(file->path); /* who starts next would remove it */
    free(file->path);
    file->path = NULL;
}

int unix_connect(const char *path)
{
    struct sockaddr_un address;
    if (address_fill(path, &address, NULL) < 0)
        return -EINVAL;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        int r = -errno;
        (void)close(fd);
        return r;
    }
    return fd;
}

uid_t unix_peer(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ? (uid_t)-1
                                                                     : peer.uid;
}

bool unix_peer_is_ours(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}
