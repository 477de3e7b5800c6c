/* states - interned shapes and node states, and the remembered cost of each
 * demand class on each state.
 *
 * Append-only while it lives: drafts intern, readers look up, on any thread.
 * When it has grown past its use the writer starts a fresh one and re-interns
 * what is alive; snapshots keep the one they were made with. */
#ifndef BIGA_EXTENDER_STATE_STATES_H
#define BIGA_EXTENDER_STATE_STATES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "model/decide/decide.h"

#define STATE_UNUSABLE UINT32_C(0) /* the id of "not ready": never fits */

struct states;
struct states *states_create(void);
struct states *states_ref(struct states *s);
void states_unref(struct states *s); /* NULL allowed */

/* The interned shape equal to topo's; lives as long as `s`. */
const struct shape *states_shape(struct states *s, const struct topo *topo);
/* The id of a state (whose shape is interned here), 1…; STATE_UNUSABLE when
 * there is no room for another one. */
uint32_t states_intern(struct states *s, const struct node_state *state);
uint32_t states_count(const struct states *s);
const struct node_state *states_get(const struct states *s, uint32_t id);
/* Time for a fresh one, with `live` nodes: most states or shapes here are of
 * the past. */
bool states_outgrown(const struct states *s, size_t live);
/* What the shapes take, tables and all. */
size_t states_shape_bytes(const struct states *s);
/* All shapes that are here now are of live nodes. */
void states_all_live(struct states *s);
/* There is no room for another demand class. */
bool states_full(const struct states *s);

/* The costs of one demand class over all states.  Any thread.  Owned by
 * `s`; NULL when `s` has no room for another class (then use decide_cost). */
struct costs;
struct costs *states_costs(struct states *s, const struct demand *demand);

/* The cost of the class on state `id`, computed at most once per thread. */
uint32_t costs_compute(struct costs *c, uint32_t id);
enum { COSTS_CHUNK = 4096, COSTS_CHUNKS_MAX = 1024 };
struct costs {
    _Atomic(_Atomic uint32_t *) chunks[COSTS_CHUNKS_MAX]; /* 0: not known */
    struct states *states;
    struct demand demand;
    uint64_t hash;
};
static inline uint32_t costs_get(struct costs *c, uint32_t id)
{
    _Atomic uint32_t *chunk = atomic_load_explicit(&c->chunks[id / COSTS_CHUNK],
                                                   memory_order_acquire);
    uint32_t cost = chunk ? atomic_load_explicit(&chunk[id % COSTS_CHUNK],
                                                 memory_order_relaxed)
                          : 0;
    return cost ? cost : costs_compute(c, id);
}

#endif
