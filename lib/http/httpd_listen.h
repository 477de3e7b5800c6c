/* httpd_listen - the sockets that a listener may have: TCP, or a file. */
#ifndef BIGA_LIB_HTTP_HTTPD_LISTEN_H
#define BIGA_LIB_HTTP_HTTPD_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

/* Open "HOST:PORT" or "[V6]:PORT" for listening; -EPERM when it must be on
 * loopback and is not. */
int address_listen(const char *text, bool loopback, int *ret_fd,
                   struct error *err);
uint16_t address_port(int fd);

/* The path of "unix:/path", else NULL. */
const char *address_unix(const char *listen);

#endif
