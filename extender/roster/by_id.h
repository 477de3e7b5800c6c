/* by_id - things that are counted, by the ids that a roster has for their
 * names.  What two of them have in common they share, so that a change copies
 * hardly more than itself, however the ranks of names move. */
#ifndef BIGA_EXTENDER_ROSTER_BY_ID_H
#define BIGA_EXTENDER_ROSTER_BY_ID_H

#include <stdint.h>

enum { BY_ID_MAX = 1 << 24 }; /* ids are smaller */

struct by_id_kind {
    void (*ref)(void *thing);
    void (*unref)(void *thing);
};

struct by_id {
    const struct by_id_kind *kind;
    void *root; /* NULL: nothing is there */
};

/* Another holder of the same things. */
struct by_id by_id_ref(const struct by_id *x);
void by_id_fini(struct by_id *x);

/* Set what is there; takes over the reference.  NULL: nothing. */
void by_id_set(struct by_id *x, uint32_t id, void *thing);
void *by_id_get(const struct by_id *x, uint32_t id); /* borrowed */

/* Visit in the order of ids what is not the same thing in both; NULL: there is
 * nothing. */
typedef void by_id_visit_f(void *ctx, uint32_t id, void *before, void *after);
void by_id_diff(const struct by_id *before, const struct by_id *after,
                by_id_visit_f *visit, void *ctx);

#endif
