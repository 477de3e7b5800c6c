/* put - bytes into a file descriptor, all of them. */
#ifndef BIGA_CLI_BASE_PUT_H
#define BIGA_CLI_BASE_PUT_H

#include <stddef.h>

#include "lib/base/error.h"

/* Blocks until all is written, also where the file is shared with somebody who
 * has it not block.  -errno, with a text that names `what`. */
int put_all(int fd, const char *data, size_t size, const char *what,
            struct error *err);

#endif
