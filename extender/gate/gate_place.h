/* gate_place - finds a place for all pods of a unit that are to have one, or for
 * none: by the extender's own decision and plan, among the nodes that
 * kube-scheduler would take. */
#ifndef BIGA_EXTENDER_GATE_GATE_PLACE_H
#define BIGA_EXTENDER_GATE_GATE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/claims/claim_book.h"
#include "extender/fit/fit_nodes.h"
#include "extender/gate/gate_pods.h"
#include "extender/keep/writer.h"
#include "extender/pods/pending_demands.h"
#include "lib/base/strmap.h"

/* All of it outlives who uses it. */
struct gate_place_config {
    struct writer *writer;
    struct plans *plans; /* NULL: none are kept */
    struct fit_nodes *fit;
    struct claim_book *claims; /* NULL: pods with claims are not planned */
    struct pending_demands *demands;
    /* A request for the pod begins, before anything is allocated for it; or
     * ends, because it was refused (`why` NULL: which nobody is told). */
    void (*begin)(void *ctx, const char *uid);
    void (*refuse)(void *ctx, const struct demand *pod, const char *why);
    void *ctx;
};

/* A pod that has a place, which nobody but this process knows of yet. */
struct gate_placed {
    struct gate_pod *pod;
    struct demand demand;      /* with what its claims ask */
    struct claim_needs *needs; /* NULL: it has no claims */
    char node[DEMAND_NAME_MAX + 1];
    char *allocation; /* as JSON */
    size_t allocation_size;
    uint64_t number;
    bool created; /* now: else it had that already, and what has become of it
                   * is not known yet */
};
struct gate_placing {
    struct gate_placed *pods;
    size_t n;
};
void gate_placed_fini(struct gate_placed *p);
void gate_placing_fini(struct gate_placing *p);
static inline void cleanup_gate_placing_p(struct gate_placing *p)
{
    gate_placing_fini(p);
}
#define cleanup_gate_placing \
    __attribute__((__cleanup__(cleanup_gate_placing_p)))

/* Why there is no place, for people; and which nodes kube-scheduler would
 * take (indexes of `snapshot`), for who looks for victims. */
struct gate_no_place {
    struct str text;
    struct demand demand; /* of the pod that has none */
    struct snapshot *snapshot;
    int32_t *nodes;
    size_t n_nodes;
    bool no_room; /* there are nodes, and what is on them is in the way */
    bool never_preempts; /* nor may it be evicted for one of the pods */
};
void gate_no_place_fini(struct gate_no_place *w);
static inline void cleanup_gate_no_place_p(struct gate_no_place *w)
{
    gate_no_place_fini(w);
}
#define cleanup_gate_no_place \
    __attribute__((__cleanup__(cleanup_gate_no_place_p)))

/* 0 and the places; or why not, and nothing has changed: -EBUSY no node will do,
 * -EDOM claims that cannot be planned.  `unit` has the pods that are to be
 * placed, and no others; `avoid` (NULL: none) has the names of nodes that are
 * passed over. */
int gate_place(const struct gate_place_config *config,
               const struct gate_unit *unit, const struct strmap *avoid,
               struct gate_placing *ret_placing,
               struct gate_no_place *ret_no_place);
/* Give the places back; `why` NULL: nobody is told. */
void gate_unplace(const struct gate_place_config *config,
                  const struct gate_placing *placing, const char *why);

#endif
