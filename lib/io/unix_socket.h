/* unix_socket - sockets that are files: listen on one, connect to one, and know
 * who has connected. */
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

/* Is it absolute, and no longer than a socket's may be? */
bool unix_path_is_good(const char *path);

/* Listen there, mode 0600, without blocking; a socket that nobody serves is
 * removed first.  -EADDRINUSE when somebody does, but with `take_over`: ours is
 * put in the place of theirs, at once, so that no client ever finds none.
 * -EEXIST: there is something that is no socket. */
int unix_listen(const char *path, bool take_over, int *ret_fd,
                struct unix_file *ret_file, struct error *err);
/* Remove it, if it still is ours. */
void unix_file_fini(struct unix_file *file);

/* A connection without blocking, or -errno: -EAGAIN when its backlog is full. */
int unix_connect(const char *path);
/* Whose process connected; -1: not known. */
uid_t unix_peer(int fd);
/* Is that root, or the user that we are? */
bool unix_peer_is_ours(uid_t uid);

#endif
