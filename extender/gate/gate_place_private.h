/* What gate_place.c and gate_place_asks.c share: what the pods of a unit ask
 * that are to be placed together, with what their claims do. */
#ifndef BIGA_EXTENDER_GATE_GATE_PLACE_PRIVATE_H
#define BIGA_EXTENDER_GATE_GATE_PLACE_PRIVATE_H

#include "extender/gate/gate_place.h"

struct asking {
    struct gate_pod *pod; /* borrowed from the unit */
    struct demand demand; /* with what its claims ask */
    struct claim_needs *needs;
};
struct askings {
    struct asking *list;
    size_t n;
};

void askings_fini(struct askings *a);
static inline void cleanup_askings_p(struct askings *a)
{
    askings_fini(a);
}
#define cleanup_askings __attribute__((__cleanup__(cleanup_askings_p)))

/* 0; -EDOM and the pod that cannot be planned. */
int askings_read(const struct gate_place_config *config,
                 const struct snapshot *s, const struct gate_unit *unit,
                 struct askings *ret, struct gate_no_place *no_place);

#endif
