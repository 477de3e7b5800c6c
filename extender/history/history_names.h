/* history_names - the texts of the history, each stored once, by number; with
 * the day on which they were used last, so that those that nothing is left of
 * can go.  One thread, within a transaction. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_NAMES_H
#define BIGA_EXTENDER_HISTORY_HISTORY_NAMES_H

#include <stdint.h>

#include "extender/history/history_db.h"

struct history_names;
/* The connection outlives it. */
int history_names_open(struct history_db *db, struct history_names **ret_names,
                       struct error *err);
void history_names_close(struct history_names *n); /* NULL allowed */

/* The number of a text, which is used on that day; "" is 0. */
int history_names_put(struct history_names *n, const char *text, int64_t day,
                      int64_t *ret_id, struct error *err);
/* The text of this number is used on that day. */
int history_names_touch(struct history_names *n, int64_t id, int64_t day,
                        struct error *err);
/* The text of a number, the caller's; 0 is "".  -EBADMSG: there is none. */
int history_names_get(struct history_db *db, int64_t id, char **ret_text,
                      struct error *err);
/* The number of a text; 0: it is not there. */
int history_names_find(struct history_db *db, const char *text, int64_t *ret_id,
                       struct error *err);
/* Drop those that were used before that day alone. */
int history_names_drop(struct history_names *n, int64_t day, struct error *err);

#endif
