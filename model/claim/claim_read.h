/* claim_read - what the readers of claims, classes, slices and pods share: an
 * object read by jrow, texts kept in an arena, and refusals that name the
 * path. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_READ_H
#define BIGA_MODEL_CLAIM_CLAIM_READ_H

#include "lib/base/jrow.h"
#include "lib/base/mem.h"

/* Stands first in the structure that rows read into. */
struct claim_reading {
    struct arena *arena; /* where texts go */
    struct error *err;   /* may be NULL */
    int code;            /* 0, or what was refused; -EINVAL, -EDOM */
};

/* Read a whole text, at most `max` bytes, that is one object.  0, or what
 * was refused, or -EINVAL with the position. */
int claim_read_object(const char *json, size_t size, size_t max,
                      const struct jrow *rows, struct claim_reading *r);

/* The first refusal stays; the scanner stops at it.  `code` is positive. */
void claim_refuse(struct claim_reading *r, struct jscan *s, int code,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The decoded text in the arena; "" when there is none (data NULL).  NULL when
 * it is longer than `max`: then it is refused by its `path`. */
const char *claim_keep(struct claim_reading *r, struct jscan *s,
                       const struct jtext *text, size_t max, const char *path);

/* As claim_keep(), and refused when it is empty, too. */
const char *claim_need(struct claim_reading *r, struct jscan *s,
                       const struct jtext *text, size_t max, const char *path);

/* A copy of an array in the arena; its elements are of `size` bytes. */
void *claim_keep_array(struct claim_reading *r, const void *array, size_t n,
                       size_t size);

/* The amount under the cursor, a text or a number, in thousandths; refused by
 * its `path` when it is none. */
int64_t claim_read_amount(struct claim_reading *r, struct jscan *s,
                          const char *path);

#endif
