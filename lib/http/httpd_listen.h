/* httpd_listen - the sockets that a listener may have: TCP, or a file. */
#ifndef BIGA_LIB_HTTP_HTTPD_LISTEN_H
#define BIGA_LIB_HTTP_HTTPD_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"

/* The file of a unix socket of ours. */
struct unix_file {
    char *path; /* NULL: none */
    dev_t device;
    ino_t inode;
};

/* Open "HOST:PORT" or "[V6]:PORT" for listening; -EPERM when it must be on
 * loopback and is not. */
int address_listen(const char *text, bool loopback, int *ret_fd,
                   struct error *err);
uint16_t address_port(int fd);

/* The path of "unix:/path", else NULL. */
const char *address_unix(const char *listen);
/* Listen there, mode 0600; a socket that nobody serves is removed first. */
int unix_listen(const char *path, int *ret_fd, struct unix_file *ret_file,
                struct error *err);
/* Remove it, if it still is ours. */
void unix_file_fini(struct unix_file *file);

#endif
