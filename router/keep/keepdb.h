/* keepdb - the file of the map: a row for each record, by its kind and key, in
 * SQLite (lib/db), with a mark of its commits beside it; and the node's secret
 * in a file of its own, so that it outlives a damaged database.
 *
 * Use from one thread at a time.  What writes is durable when it returns 0. */
#ifndef BIGA_ROUTER_KEEP_KEEPDB_H
#define BIGA_ROUTER_KEEP_KEEPDB_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "router/keep/kept.h"
#include "router/keep/kept_text.h"

struct keepdb;
/* `dir` is made (0700) when it is missing, NULL is in memory.  -EBUSY: another
 * process uses it.  A damaged file is moved aside, and what can be read of it is
 * in the new one. */
int keepdb_open(const char *dir, struct keepdb **ret_db, struct error *err);
void keepdb_close(struct keepdb *db); /* NULL allowed */
DEFINE_CLEANUP(keepdb, struct keepdb *, keepdb_close)

const struct kept_secret *keepdb_secret(const struct keepdb *db);
/* The secret was made just now: there was none. */
bool keepdb_is_new(const struct keepdb *db);

/* In place of that of its kind and key. */
int keepdb_put(struct keepdb *db, const struct kept *k, struct error *err);
/* All or none of them; those that are not there count. */
int keepdb_delete(struct keepdb *db, struct kept *const *list, size_t n,
                  struct error *err);
/* Which are whole, in order; borrowed for the call. */
int keepdb_each(struct keepdb *db,
                void (*visit)(void *ctx, const struct kept *k), void *ctx,
                struct error *err);

#endif
