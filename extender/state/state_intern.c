#include "extender/state/state_intern.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

enum {
    CLASSES_MAX = 4096,     /* remembered demand classes */
    CLASSES_FEW = 256,      /* there is always memory for these, and for */
    COSTS_SPARE = 64 << 20, /* more while all take less than this */
    CLASSES_SLOTS = 8192,   /* of their hash table */
    STATES_MAX = COSTS_CHUNK * COSTS_CHUNKS_MAX,
    STATES_SPARE = 65536,    /* dead states that are tolerated */
    SHAPES_SPARE = 16 << 20, /* bytes of dead shapes that are tolerated */
};

struct state_intern {
    atomic_uint refs;

    /* Guarded by `lock`, but for reading what an id leads to: whoever has an
     * id got it after its state was written. */
    pthread_mutex_t lock;
    struct node_state *chunks[COSTS_CHUNKS_MAX];
    uint32_t *table; /* ids by hash of their state; 0 is free */
    uint32_t table_cap;
    struct shape **shapes;
    size_t n_shapes, shapes_cap;

    atomic_uint n; /* ids given out, with 0 */
    atomic_size_t shape_bytes;
    atomic_size_t live_bytes; /* of shapes, when it was last known */
    atomic_uint n_classes;
    atomic_size_t costs_bytes; /* of all classes */
    _Atomic(struct costs *) classes[CLASSES_SLOTS];
};

/* Of costs that are not known, in all classes; never written. */
static _Atomic uint32_t unknown[COSTS_CHUNK];

struct state_intern *state_intern_create(void)
{
    struct state_intern *s = xcalloc(1, sizeof *s);
    atomic_init(&s->refs, 1);
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail on Linux */
    s->chunks[0] = xcalloc(COSTS_CHUNK, sizeof *s->chunks[0]);
    atomic_init(&s->n, 1);
    s->table_cap = 1024;
    s->table = xcalloc(s->table_cap, sizeof *s->table);
    return s;
}

DEFINE_REF(state_intern_ref, struct state_intern)

static void costs_destroy(struct costs *c)
{
    for (size_t i = 0; c && i < COSTS_CHUNKS_MAX; i++) {
        _Atomic uint32_t *chunk = atomic_load_explicit(&c->chunks[i],
                                                       memory_order_relaxed);
        if (chunk != unknown)
            free((void *)chunk);
    }
    free(c);
}

void state_intern_unref(struct state_intern *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    for (size_t i = 0; i < CLASSES_SLOTS; i++)
        costs_destroy(
            atomic_load_explicit(&s->classes[i], memory_order_relaxed));
    for (size_t i = 0; i < COSTS_CHUNKS_MAX; i++)
        free(s->chunks[i]);
    for (size_t i = 0; i < s->n_shapes; i++)
        shape_destroy(s->shapes[i]);
    free(s->shapes);
    free(s->table);
    (void)pthread_mutex_destroy(&s->lock); /* nobody holds it */
    free(s);
}

/* --- shapes and states ------------------------------------------------- */

static const struct shape *shape_find_locked(const struct state_intern *s,
                                             const struct shape *shape)
{
    for (size_t i = 0; i < s->n_shapes; i++)
        if (s->shapes[i]->hash == shape->hash &&
            shape_equal(s->shapes[i], shape))
            return s->shapes[i];
    return NULL;
}

/* Its table of subsets is nearly all of it: 256 KiB with 16 cards. */
static size_t shape_size(const struct shape *shape)
{
    return sizeof *shape +
           ((size_t)1 << shape->n_cards) * sizeof *shape->subsets;
}

static const struct shape *shape_add_locked(struct state_intern *s,
                                            const struct shape *outline)
{
    struct shape *fresh = shape_create_from(outline);
    s->shapes = xgrow(s->shapes, s->n_shapes, &s->shapes_cap,
                      sizeof *s->shapes);
    s->shapes[s->n_shapes++] = fresh;
    atomic_fetch_add(&s->shape_bytes, shape_size(fresh));
    return fresh;
}

const struct shape *state_intern_shape(struct state_intern *s,
                                       const struct topo *topo)
{
    struct shape outline;
    shape_outline(topo, &outline);
    hold_lock(&s->lock);
    const struct shape *known = shape_find_locked(s, &outline);
    return known ? known : shape_add_locked(s, &outline);
}

/* The same state with its padding zeroed, so that memcmp tells. */
static void state_copy(struct node_state *to, const struct node_state *from)
{
    memset(to, 0, sizeof *to);
    to->shape = from->shape;
    memcpy(to->free_cores, from->free_cores, sizeof to->free_cores);
    memcpy(to->free_memory_mib, from->free_memory_mib,
           sizeof to->free_memory_mib);
    memcpy(to->cores, from->cores, sizeof to->cores);
    memcpy(to->memory_mib, from->memory_mib, sizeof to->memory_mib);
    to->usable = from->usable;
    to->drained = from->drained;
    to->closed = from->closed;
    to->occupied = from->occupied;
    to->shared = from->shared;
    to->reserved = from->reserved;
    to->gpus_used = from->gpus_used;
    to->nics_used = from->nics_used;
    to->inert = from->inert;
    to->passive = from->passive;
    to->claimed = from->claimed;
    to->unsized = from->unsized;
    memcpy(to->free_cpu_milli, from->free_cpu_milli, sizeof to->free_cpu_milli);
}

static void table_grow_locked(struct state_intern *s, uint32_t n)
{
    free(s->table);
    s->table_cap *= 2;
    s->table = xcalloc(s->table_cap, sizeof *s->table);
    for (uint32_t id = 1; id < n; id++) {
        const struct node_state *state = state_intern_get(s, id);
        uint32_t i = (uint32_t)hash_bytes(state, sizeof *state);
        while (s->table[i & (s->table_cap - 1)])
            i++;
        s->table[i & (s->table_cap - 1)] = id;
    }
}

static uint32_t state_intern_locked(struct state_intern *s,
                                    const struct node_state *state)
{
    uint32_t mask = s->table_cap - 1;
    uint32_t i = (uint32_t)hash_bytes(state, sizeof *state) & mask;
    for (; s->table[i]; i = (i + 1) & mask)
        if (memcmp(state_intern_get(s, s->table[i]), state, sizeof *state) == 0)
            return s->table[i];

    uint32_t n = atomic_load_explicit(&s->n, memory_order_relaxed);
    if (n == STATES_MAX)
        return STATE_UNUSABLE; /* a node that cannot be told is not used */
    struct node_state **chunk = &s->chunks[n / COSTS_CHUNK];
    if (!*chunk)
        *chunk = xcalloc(COSTS_CHUNK, sizeof **chunk);
    memcpy(&(*chunk)[n % COSTS_CHUNK], state, sizeof *state);
    s->table[i] = n;
    atomic_store_explicit(&s->n, n + 1, memory_order_release);
    if ((n + 1) * 2 > s->table_cap)
        table_grow_locked(s, n + 1);
    return n;
}

uint32_t state_intern_intern(struct state_intern *s,
                             const struct node_state *state)
{
    struct node_state key;
    state_copy(&key, state);
    hold_lock(&s->lock);
    return state_intern_locked(s, &key);
}

uint32_t state_intern_count(const struct state_intern *s)
{
    return atomic_load_explicit(&s->n, memory_order_acquire);
}

const struct node_state *state_intern_get(const struct state_intern *s,
                                          uint32_t id)
{
    return &s->chunks[id / COSTS_CHUNK][id % COSTS_CHUNK];
}

bool state_intern_outgrown(const struct state_intern *s, size_t live)
{
    return state_intern_count(s) > 4 * live + STATES_SPARE ||
           state_intern_shape_bytes(s) >
               2 * atomic_load(&s->live_bytes) + SHAPES_SPARE;
}

size_t state_intern_shape_bytes(const struct state_intern *s)
{
    return atomic_load(&s->shape_bytes);
}

void state_intern_all_live(struct state_intern *s)
{
    atomic_store(&s->live_bytes, state_intern_shape_bytes(s));
}

bool state_intern_full(const struct state_intern *s)
{
    unsigned n = atomic_load(&s->n_classes);
    return n >= CLASSES_MAX ||
           (n >= CLASSES_FEW && atomic_load(&s->costs_bytes) >= COSTS_SPARE);
}

/* --- costs ------------------------------------------------------------- */

/* The class, or NULL with `*ret_slot` the free slot where it would go; that
 * is CLASSES_SLOTS never, as the table is at most half full. */
static struct costs *class_find(struct state_intern *s,
                                const struct demand *demand, uint64_t hash,
                                size_t *ret_slot)
{
    for (size_t i = hash % CLASSES_SLOTS;; i = (i + 1) % CLASSES_SLOTS) {
        struct costs *c = atomic_load_explicit(&s->classes[i],
                                               memory_order_acquire);
        if (!c) {
            *ret_slot = i;
            return NULL;
        }
        if (c->hash == hash && demand_same_class(&c->demand, demand))
            return c;
    }
}

static struct costs *costs_create(struct state_intern *s,
                                  const struct demand *demand, uint64_t hash)
{
    struct costs *c = xmalloc(sizeof *c);
    for (size_t i = 0; i < COSTS_CHUNKS_MAX; i++)
        atomic_init(&c->chunks[i], unknown);
    c->states = s;
    c->demand = *demand;
    c->hash = hash;
    atomic_fetch_add(&s->n_classes, 1);
    atomic_fetch_add(&s->costs_bytes, sizeof *c);
    return c;
}

struct costs *state_intern_costs(struct state_intern *s,
                                 const struct demand *demand)
{
    size_t slot = 0;
    uint64_t hash = demand_class_hash(demand);
    struct costs *c = class_find(s, demand, hash, &slot);
    if (c || state_intern_full(s))
        return c;

    hold_lock(&s->lock);
    c = class_find(s, demand, hash, &slot);
    if (!c && !state_intern_full(s)) {
        c = costs_create(s, demand, hash);
        atomic_store_explicit(&s->classes[slot], c, memory_order_release);
    }
    return c;
}

static _Atomic uint32_t *costs_chunk(struct costs *c, uint32_t id)
{
    _Atomic(_Atomic uint32_t *) *at = &c->chunks[id / COSTS_CHUNK];
    _Atomic uint32_t *chunk = atomic_load_explicit(at, memory_order_acquire);
    if (chunk != unknown)
        return chunk;
    _Atomic uint32_t *fresh = xcalloc(COSTS_CHUNK, sizeof *fresh);
    if (atomic_compare_exchange_strong_explicit(
            at, &chunk, fresh, memory_order_acq_rel, memory_order_acquire)) {
        atomic_fetch_add(&c->states->costs_bytes, COSTS_CHUNK * sizeof *fresh);
        return fresh;
    }
    free((void *)fresh);
    return chunk;
}

uint32_t costs_compute(struct costs *c, uint32_t id)
{
    uint32_t cost = id == STATE_UNUSABLE
                        ? COST_NO_FIT
                        : decide_cost(state_intern_get(c->states, id),
                                      &c->demand);
    atomic_store_explicit(&costs_chunk(c, id)[id % COSTS_CHUNK], cost,
                          memory_order_relaxed);
    return cost;
}
