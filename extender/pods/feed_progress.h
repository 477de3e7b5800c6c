/* feed_progress - up to which allocation each node has been told what it is to run.  What
 * it was never told of it has never begun.
 *
 * The writer thread changes it, with what it stores: a change is pending until
 * it is committed.  Any thread reads it. */
#ifndef BIGA_EXTENDER_PODS_FEED_PROGRESS_H
#define BIGA_EXTENDER_PODS_FEED_PROGRESS_H

#include <stdint.h>

struct feed_progress;
struct feed_progress *feed_progress_create(void);
void feed_progress_destroy(struct feed_progress *f); /* NULL allowed */

/* All nodes may have been told of allocations up to this number. */
void feed_progress_set_floor(struct feed_progress *f, uint64_t number);
/* As it was stored. */
void feed_progress_load(struct feed_progress *f, const char *node,
                        uint64_t number);

/* The number of the newest allocation that the node may know, for sure: it is
 * written down. */
uint64_t feed_progress_number(struct feed_progress *f, const char *node);

/* --- the writer thread ---------------------------------------------------- */

/* The same with what is pending. */
uint64_t feed_progress_pending(struct feed_progress *f, const char *node);
/* The node is about to be told. */
void feed_progress_raise(struct feed_progress *f, const char *node,
                         uint64_t number);
/* What is pending was committed, or was not. */
void feed_progress_mark(struct feed_progress *f);
void feed_progress_undo(struct feed_progress *f);

#endif
