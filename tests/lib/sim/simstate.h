/* simstate - a writer to play with: hosts that publish, pods that are bound,
 * and a check of what comes out. */
#ifndef BIGA_TESTS_LIB_SIM_SIMSTATE_H
#define BIGA_TESTS_LIB_SIM_SIMSTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/keep/writer.h"
#include "lib/base/str.h"

/* Start a writer without a clock of its own (sweep_ms 0); aborts when it
 * cannot be had. */
struct writer *sim_writer(const char *dir);
/* The same, with what is applied; `pods` outlives it. */
struct writer *sim_writer_with(const char *dir, struct applied *pods);
/* One that holds the places of a job in pieces of that size. */
struct writer *sim_writer_piece(const char *dir, size_t piece);

/* The JSON of slice `index` of a simhost; the caller frees. */
char *sim_slice(const char *node, unsigned n_cards, const char *boot_id,
                int64_t generation, size_t index);
/* Publish all slices of a simhost; the first result that is not 0. */
int sim_publish(struct writer *w, const char *node, unsigned n_cards,
                const char *boot_id, int64_t generation);
/* Any topology, as what its node says first; the result. */
int sim_publish_topo(struct writer *w, const struct topo *topo);
/* One slice of a host that needs SIM_SLICES of them; the result. */
enum { SIM_SLICES = 3 };
int sim_publish_one(struct writer *w, const char *node, const char *boot_id,
                    int64_t generation, size_t index);
/* Withdraw a simhost of one slice; the result. */
int sim_withdraw(struct writer *w, const char *node);
/* A heartbeat with a simhost's one slice; was it taken as one? */
bool sim_heartbeat(struct writer *w, const char *node, unsigned n_cards,
                   const char *boot_id, int64_t generation);

/* A pod of namespace "ns" and uid "uid-NAME" that asks for one card. */
struct demand sim_pod(const char *name, enum pod_role role, const char *job,
                      int pair);
/* A pod of a job of `size` pairs with one card each, which is planned. */
struct demand sim_member(const char *name, enum pod_role role, const char *job,
                         int pair, int size);
struct demand sim_need(struct demand d, uint32_t cores, uint32_t memory_mib);

/* `err` and `ret_created` may be NULL. */
int sim_bind(struct writer *w, const struct demand *d, const char *node,
             bool *ret_created, struct error *err);
int sim_release(struct writer *w, const char *pod);

/* Does the snapshot promise nothing twice?  Counted from its allocations by
 * rules of its own: no card of an exclusive pod has another pair on it, no
 * card gives more cores or memory than it has, no GPU or NIC is given to two pods,
 * and the lists of the nodes are those of the index.  False with the reason
 * in `why`. */
bool sim_check(const struct snapshot *s, struct str *why);

/* A small generator of numbers, the same everywhere. */
uint32_t sim_random(uint64_t *state);

#endif
