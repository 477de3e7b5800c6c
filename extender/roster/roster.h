/* roster - the names of all nodes, sorted, and their hash index; immutable,
 * counted.  What is derived of it copies what is sorted, and shares the
 * index. */
#ifndef BIGA_EXTENDER_ROSTER_ROSTER_H
#define BIGA_EXTENDER_ROSTER_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/jscan.h"

struct roster;

enum { ROSTER_NONE = -1 }; /* no such name */

/* Of names in byte order, without repeats. */
struct roster *roster_create(const char *const *names, size_t n);

/* Either a name, of at most 253 bytes, or (NULL) `n` names of another roster,
 * from index `from` on. */
struct roster_run {
    const char *name;
    size_t from, n;
};
/* The names of these runs, which are in byte order, without repeats. */
struct roster *roster_derive(const struct roster *r,
                             const struct roster_run *runs, size_t n_runs);
/* Beside its index, which is its rank, a name has an id that stays the same as
 * long as rosters have the ids of one another: mostly those that are derived.
 * Ids are small. */
bool roster_has_ids_of(const struct roster *r, const struct roster *other);
uint32_t roster_id(const struct roster *r, size_t index);
int32_t roster_find_id(const struct roster *r, uint32_t id);
/* How many names there are that come before this one. */
size_t roster_rank(const struct roster *r, const char *name);

struct roster *roster_ref(struct roster *r);
void roster_unref(struct roster *r); /* NULL allowed */
int32_t roster_find(const struct roster *r, const char *name, size_t size);
void roster_find_many(const struct roster *r, const struct jtext *names,
                      size_t n, int32_t *ret_indexes);

/* Names come in the order that they have here for long stretches: a list of
 * kube-scheduler's begins anywhere in it.  What comes next. */
struct roster_walk {
    const struct roster *roster;
    uint32_t rank, next;
};
void roster_walk_init(struct roster_walk *w, const struct roster *r);
/* jscan_strings() that finds the names, too. */
size_t roster_read(struct roster_walk *w, struct jscan *s,
                   struct jtext *ret_names, int32_t *ret_indexes, size_t max);

/* Visit all names in their order; `name` is not terminated. */
typedef void roster_name_f(void *ctx, size_t index, const char *name,
                           size_t size);
void roster_each(const struct roster *r, roster_name_f *visit, void *ctx);

#endif
