/* fed - up to which allocation each node has been told what it is to run.  What
 * it was never told of it has never begun.
 *
 * The writer thread changes it, with what it stores: a change is pending until
 * it is committed.  Any thread reads it. */
#ifndef BIGA_EXTENDER_PODS_FED_H
#define BIGA_EXTENDER_PODS_FED_H

#include <stdbool.h>
#include <stdint.h>

struct fed;
struct fed *fed_create(void);
void fed_destroy(struct fed *f); /* NULL allowed */

/* All nodes may have been told of allocations up to this number. */
void fed_set_floor(struct fed *f, uint64_t number);
/* As it was stored. */
void fed_load(struct fed *f, const char *node, uint64_t number);

/* The number of the newest allocation that the node may know, for sure: it is
 * written down. */
uint64_t fed_number(struct fed *f, const char *node);

/* --- the writer thread ---------------------------------------------------- */

/* The same with what is pending. */
uint64_t fed_pending(struct fed *f, const char *node);
/* The node is about to be told. */
void fed_raise(struct fed *f, const char *node, uint64_t number);
/* What is pending was committed, or was not. */
void fed_mark(struct fed *f);
void fed_undo(struct fed *f);

#endif
