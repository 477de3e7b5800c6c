/* history_record - what is told to the book of snapshots and of pods that were
 * applied: what is different from one to the next.
 *
 * All return 0 or -errno of the book. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_RECORD_H
#define BIGA_EXTENDER_HISTORY_HISTORY_RECORD_H

#include <stdint.h>

#include "extender/history/history_book.h"
#include "extender/pods/applied_set.h"
#include "extender/state/snapshot.h"

/* All that is so now, beside what the book has of an earlier run. */
int history_record_all(struct history_book *b, const struct snapshot *s,
                       int64_t ms, struct error *err);
/* What is different since. */
int history_record_change(struct history_book *b, const struct snapshot *before,
                          const struct snapshot *after, int64_t ms,
                          struct error *err);
/* How pods fare that were applied. */
int history_record_pods(struct history_book *b, const struct pod_set *before,
                        const struct pod_set *after, int64_t ms,
                        struct error *err);

/* One that may have been told before (`again`). */
int history_record_again(struct history_book *b, const struct history_event *e,
                         struct error *err);

/* The cards of a node as history_node has them: an object of JSON a line, each
 * of which begins with {"id": and the name that people use. */
void history_record_cards(const struct node *node, struct str *out);

#endif
