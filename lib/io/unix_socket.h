/* unix_socket - sockets that are files: listen on one, and know who has
 * connected. */
#ifndef BIGA_LIB_IO_UNIX_SOCKET_H
#define BIGA_LIB_IO_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/error.h"

/* The file of a socket of ours. */
struct unix_file {
    char *path; /* NULL: none */
    dev_t device;
    ino_t inode;
};

/* Listen there, mode 0600, without blocking; a socket that nobody serves is
 * removed first.  -EADDRINUSE when somebody does; -EEXIST: there is something that
 * is no socket. */
int unix_listen(const char *path, int *ret_fd, struct unix_file *ret_file,
                struct error *err);
/* Remove it, if it still is ours. */
void unix_file_fini(struct unix_file *file);

/* Whose process connected; -1: not known. */
uid_t unix_peer(int fd);
/* Is that root, or the user that we are? */
bool unix_peer_is_ours(uid_t uid);

#endif
