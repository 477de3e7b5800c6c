/* dbfile - a state directory and the database file in it. */
#ifndef BIGA_LIB_DB_DBFILE_H
#define BIGA_LIB_DB_DBFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

enum { DBFILE_DAMAGED_MAX = 1000 }; /* damaged databases that are kept */

/* Make the directory (mode 0700) when it is missing, and take its lock, which
 * is held until `*ret_fd` is closed.  -EBUSY: another process has it. */
int dbfile_lock(const char *dir, int *ret_fd, struct error *err);

/* Names in it that were made, moved or removed are durable. */
int dbfile_sync(const char *dir, struct error *err);

/* Make the database file `name` (mode 0600) when it is missing, durably; close its
 * mode when it is there. */
int dbfile_create(const char *dir, const char *name, struct error *err);

/* There is nothing in it, or it is not there. */
bool dbfile_is_empty(const char *dir, const char *name);

/* A damaged database is replaced by what could be saved of it.  That is
 * written to NAME DBFILE_FRESH and closed; then it is renamed to NAME
 * DBFILE_WHOLE, the damaged one and its log are moved to the first free
 * "NAME.damaged-N" (`*ret_aside`, which the caller frees), and it takes their
 * place.  When that is cut short dbfile_tidy(), at the next start, goes on
 * where it was, so that nothing is saved from half of a copy. */
#define DBFILE_FRESH ".salvaging"
#define DBFILE_WHOLE ".salvaged"
int dbfile_replace(const char *dir, const char *name, char **ret_aside,
                   struct error *err);
int dbfile_tidy(const char *dir, const char *name, struct error *err);

/* Damaged ones that were moved aside. */
struct dbfile_aside {
    int64_t bytes;     /* of all, with their logs */
    char *oldest;      /* the one that was written to longest ago, the caller's;
                    * NULL: there is none */
    int64_t oldest_ms; /* when that was, since 1970 */
};
void dbfile_look_aside(const char *dir, const char *name,
                       struct dbfile_aside *ret_aside);
/* Remove such a one. */
int dbfile_drop_aside(const char *path, struct error *err);

#endif
