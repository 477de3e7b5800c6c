/* state_intern - interned shapes and node states, and the remembered cost of each
 * demand class on each state.
 *
 * Append-only while it lives: drafts intern, readers look up, on any thread.
 * When it has grown past its use the writer starts a fresh one and re-interns
 * what is alive; snapshots keep the one they were made with. */
#ifndef BIGA_EXTENDER_STATE_STATE_INTERN_H
#define BIGA_EXTENDER_STATE_STATE_INTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "model/decide/decide.h"

#define STATE_UNUSABLE UINT32_C(0) /* the id of "not ready": never fits */

struct state_intern;
struct state_intern *state_intern_create(void);
struct state_intern *state_intern_ref(struct state_intern *s);
void state_intern_unref(struct state_intern *s); /* NULL allowed */

/* The interned shape equal to topo's; lives as long as `s`. */
const struct shape *state_intern_shape(struct state_intern *s,
                                       const struct topo *topo);
/* The id of a state (whose shape is interned here), 1…; STATE_UNUSABLE when
 * there is no room for another one. */
uint32_t state_intern_intern(struct state_intern *s,
                             const struct node_state *state);
uint32_t state_intern_count(const struct state_intern *s);
const struct node_state *state_intern_get(const struct state_intern *s,
                                          uint32_t id);
/* Time for a fresh one, with `live` nodes: most states or shapes here are of
 * the past. */
bool state_intern_outgrown(const struct state_intern *s, size_t live);
/* What the shapes take, tables and all. */
size_t state_intern_shape_bytes(const struct state_intern *s);
/* All shapes that are here now are of live nodes. */
void state_intern_all_live(struct state_intern *s);
/* There is no room for another demand class: either for none at all, or the
 * costs of more than a few take too much memory. */
bool state_intern_full(const struct state_intern *s);

/* The costs of one demand class over all states.  Any thread.  Owned by
 * `s`; NULL when `s` has no room for another class (then use decide_cost). */
struct costs;
struct costs *state_intern_costs(struct state_intern *s,
                                 const struct demand *demand);

/* The cost of the class on state `id`, computed at most once per thread. */
uint32_t costs_compute(struct costs *c, uint32_t id);
enum { COSTS_CHUNK = 4096, COSTS_CHUNKS_MAX = 1024 };
struct costs {
    /* 0: not known; where nothing is yet, one of zeros that all share */
    _Atomic(_Atomic uint32_t *) chunks[COSTS_CHUNKS_MAX];
    struct state_intern *states;
    struct demand demand;
    uint64_t hash;
};
/* The same if it is known, else 0. */
static inline uint32_t costs_peek(struct costs *c, uint32_t id)
{
    _Atomic uint32_t *chunk = atomic_load_explicit(&c->chunks[id / COSTS_CHUNK],
                                                   memory_order_acquire);
    return atomic_load_explicit(&chunk[id % COSTS_CHUNK], memory_order_relaxed);
}
static inline uint32_t costs_get(struct costs *c, uint32_t id)
{
    uint32_t cost = costs_peek(c, id);
    return cost ? cost : costs_compute(c, id);
}

#endif
