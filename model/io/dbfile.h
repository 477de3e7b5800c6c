/* dbfile - a state directory and the database file in it. */
#ifndef BIGA_IO_DBFILE_H
#define BIGA_IO_DBFILE_H

#include "model/base/error.h"

enum { DBFILE_DAMAGED_MAX = 1000 }; /* damaged databases that are kept */

/* Make the directory (mode 0700) when it is missing, and take its lock, which
 * is held until `*ret_fd` is closed.  -EBUSY: another process has it. */
int dbfile_lock(const char *dir, int *ret_fd, struct error *err);

/* Names in it that were made, moved or removed are durable. */
int dbfile_sync(const char *dir, struct error *err);

/* Make the database file `name` (mode 0600) when it is missing, durably; close its
 * mode when it is there. */
int dbfile_create(const char *dir, const char *name, struct error *err);

/* Move the database and its log aside, to the first free
 * "NAME.damaged-N"; the caller frees `*ret_path`. */
int dbfile_set_aside(const char *dir, const char *name, char **ret_path,
                     struct error *err);

#endif
