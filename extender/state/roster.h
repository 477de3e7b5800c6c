/* roster - the names of all nodes, sorted, and their hash index; immutable,
 * counted. */
#ifndef BIGA_EXTENDER_STATE_ROSTER_H
#define BIGA_EXTENDER_STATE_ROSTER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/jscan.h"

struct roster;

enum { ROSTER_NONE = -1 }; /* no such name */

/* `names` are in byte order, without repeats, each at most 253 bytes. */
struct roster *roster_create(const char *const *names, size_t n);
struct roster *roster_ref(struct roster *r);
void roster_unref(struct roster *r); /* NULL allowed */
int32_t roster_find(const struct roster *r, const char *name, size_t size);
void roster_find_many(const struct roster *r, const struct jtext *names,
                      size_t n, int32_t *ret_indexes);

/* Visit all names in their order; `name` is not terminated. */
typedef void roster_name_f(void *ctx, size_t index, const char *name,
                           size_t size);
void roster_each(const struct roster *r, roster_name_f *visit, void *ctx);

#endif
