/* dbmark - which commit of a database was acknowledged last, kept beside it.
 *
 * SQLite takes a damaged frame of its log for the log's end, so a database
 * that has lost commits opens as if they had never been.  Whoever counts its
 * commits in the database, and writes the number here after each, can tell:
 * what is in the database must not be older than its mark.
 *
 * The mark is written after the commit is durable and is not synced with it,
 * so that it is never ahead of the database and costs one write(2).  There are
 * two slots, written in turn: a torn one is the older mark, and no alarm. */
#ifndef BIGA_LIB_DB_DBMARK_H
#define BIGA_LIB_DB_DBMARK_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

struct dbmark;

/* The file "DIR/NAME-mark" (mode 0600) of the database DIR/NAME; one that is
 * missing is made, durably, and says 0.  So does one in which nothing is to be
 * read, and the log says so ("mark-damaged"); and one that a full disk has no
 * room for ("mark-failed"), which is made at the next start. */
int dbmark_open(const char *dir, const char *name, struct dbmark **ret_mark,
                struct error *err);
void dbmark_close(struct dbmark *m); /* synced; NULL allowed */
DEFINE_CLEANUP(dbmark, struct dbmark *, dbmark_close)

/* The newest commit that was acknowledged; 0: none is known of. */
uint64_t dbmark_get(const struct dbmark *m);
/* Commit `number` is durable.  A lower number than before is nothing.  What
 * cannot be written is logged once: the mark is then too old, which hides
 * damage, and does no harm. */
void dbmark_set(struct dbmark *m, uint64_t number);
/* For when nobody waits: make it outlive a power cut, too. */
void dbmark_sync(struct dbmark *m);

#endif
