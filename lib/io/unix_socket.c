#include "lib/io/unix_socket.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/mem.h"

enum { BACKLOG = 128 };

static int address_fill(const char *path, struct sockaddr_un *ret_address,
                        struct error *err)
{
    size_t size = strlen(path);
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (*path != '/' || size >= sizeof ret_address->sun_path)
        return error_set(err, EINVAL,
                         "cannot listen on \"unix:%.200s\": the path must be "
                         "absolute and have at most %zu bytes, has %zu",
                         path, sizeof ret_address->sun_path - 1, size);
    memcpy(ret_address->sun_path, path, size);
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

/* Remove a socket file that no process serves any more, and nothing else. */
static int remove_stale(const struct sockaddr_un *address, struct error *err)
{
    const char *path = address->sun_path;
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "%s", path);
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, EEXIST, "%s: is there, and is no socket", path);
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

int unix_listen(const char *path, int *ret_fd, struct unix_file *ret_file,
                struct error *err)
{
    struct sockaddr_un address;
    struct stat st;
    int r = address_fill(path, &address, err);
    if (r < 0)
        return r;
    cleanup_fd int lock = lock_folder(path, err);
    if (lock < 0)
        return lock;
    r = remove_stale(&address, err);
    if (r < 0)
        return r;
    cleanup_fd int fd = socket(AF_UNIX,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* the file gets the mode that the socket has: there is no moment in which
     * others could connect */
    if (fd < 0 || fchmod(fd, 0600) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        lstat(path, &st) < 0)
        return error_errno(err, errno, "cannot listen on \"unix:%s\"", path);
    if (listen(fd, BACKLOG) < 0) {
        r = error_errno(err, errno, "cannot listen on \"unix:%s\"", path);
        (void)unlink(path); /* just made */
        return r;
    }
    *ret_file = (struct unix_file){
        .path = xstrdup(path), .device = st.st_dev, .inode = st.st_ino};
    *ret_fd = fd;
    fd = -1;
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
