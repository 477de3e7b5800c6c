/* file - a whole file into memory, with a cap, and out of it. */
#ifndef BIGA_LIB_IO_FILE_H
#define BIGA_LIB_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/base/error.h"

/* Read the regular file `path` of at most `max` bytes; the caller frees
 * `*ret_text`, which is NUL-terminated behind its `*ret_size` bytes.  Errors
 * name the path. */
int file_read(const char *path, size_t max, char **ret_text, size_t *ret_size,
              struct error *err);

/* Write all of `text` to `path`, made with `mode` or emptied before; never
 * through a symbolic link.  `durable`: it is on the disk then, its name not
 * yet.  Errors name the path; half of the text may be there then. */
int file_write(const char *path, mode_t mode, const char *text, size_t size,
               bool durable, struct error *err);

/* The same in place of the file that is there, by way of PATH.new: whoever
 * reads `path`, also after a crash, sees the old one or the new.  `durable`:
 * the new one is there after a loss of power, too. */
int file_replace(const char *path, mode_t mode, const char *text, size_t size,
                 bool durable, struct error *err);
/* Remove it, durably; one that is not there is a success. */
int file_remove(const char *path, struct error *err);

/* The last part of where a link leads, cut to `room`; false: there is none. */
bool file_link_name(const char *path, char *ret_name, size_t room);

#endif
