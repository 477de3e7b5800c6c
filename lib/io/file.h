/* file - a whole file into memory, with a cap. */
#ifndef BIGA_LIB_IO_FILE_H
#define BIGA_LIB_IO_FILE_H

#include <stddef.h>

#include "lib/base/error.h"

/* Read the regular file `path` of at most `max` bytes; the caller frees
 * `*ret_text`, which is NUL-terminated behind its `*ret_size` bytes.  Errors
 * name the path. */
int file_read(const char *path, size_t max, char **ret_text, size_t *ret_size,
              struct error *err);

#endif
