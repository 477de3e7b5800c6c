/* scratch - the working memory of one scheduler request, kept for the next
 * one so that a request in steady state allocates nothing. */
#ifndef BIGA_EXTENDER_WIRE_SCRATCH_H
#define BIGA_EXTENDER_WIRE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "extender/wire/wire.h"
#include "lib/base/str.h"

struct scratch {
    struct wire_args args;
    struct wire_preemption preemption;
    uint32_t *best; /* positions */
    uint32_t *costs;
    uint8_t *scores;
    size_t cap; /* of the three above */
    struct str text;
    struct str own;     /* of one node alone */
    struct str refusal; /* in a cluster: why no node fits, for an Event */
    struct scratch *next;
};

struct scratch_pool;
struct scratch_pool *scratch_pool_create(void);
void scratch_pool_destroy(struct scratch_pool *p); /* NULL allowed */

/* Any thread; give back what was taken. */
struct scratch *scratch_take(struct scratch_pool *p);
void scratch_give(struct scratch_pool *p, struct scratch *s);

/* Room for `n` candidates in the three arrays. */
void scratch_fit(struct scratch *s, size_t n);

#endif
