/* store_file - the state directory and the files in it. */
#ifndef BIGA_EXTENDER_STORE_FILE_H
#define BIGA_EXTENDER_STORE_FILE_H

#include "model/base/error.h"

#define STORE_FILE_NAME "biga.db"
enum { STORE_DAMAGED_MAX = 1000 }; /* damaged databases that are kept */

/* Make the directory (mode 0700) when it is missing, and take its lock, which
 * is held until `*ret_fd` is closed.  -EBUSY: another process has it. */
int store_file_lock(const char *dir, int *ret_fd, struct error *err);

/* Make the database file (mode 0600) when it is missing, durably; close its
 * mode when it is there. */
int store_file_create(const char *dir, struct error *err);

/* Move the database and its log aside, to the first free
 * "biga.db.damaged-N"; the caller frees `*ret_name`. */
int store_file_set_aside(const char *dir, char **ret_name, struct error *err);

#endif
