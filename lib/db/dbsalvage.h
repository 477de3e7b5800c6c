/* dbsalvage - the rows of a damaged database that are as they were written:
 * dbpages, with the sums that our rows carry (sqldb.h). */
#ifndef BIGA_LIB_DB_DBSALVAGE_H
#define BIGA_LIB_DB_DBSALVAGE_H

#include "lib/base/error.h"
#include "lib/db/dbpages.h"

/* Visit them, newer ones after older ones; the files are left as they are.
 * Nobody has the database open.  0, or what `visit` returned. */
int dbsalvage_each(const char *dir, const char *name, dbpages_row_f *visit,
                   void *ctx, struct dbpages_found *ret_found);

/* Is it a row of these columns: 't' text, 'i' integer, 'b' blob? */
bool dbsalvage_is(const struct dbpages_row *row, const char *columns);

#endif
