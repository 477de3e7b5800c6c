/* gate_open - what is written into a pod when its gate is opened.  Pure. */
#ifndef BIGA_EXTENDER_GATE_GATE_OPEN_H
#define BIGA_EXTENDER_GATE_GATE_OPEN_H

#include <stdbool.h>

#include "extender/gate/gate_place.h"
#include "lib/base/str.h"

/* A JSON merge patch of the Pod with this uid (or the API server refuses it):
 * its allocation, the gate removed, and with `by_affinity` what pins it to its
 * node.  Biga's gate is the only one that is left on it. */
void gate_open_write(const struct gate_placed *placed, bool by_affinity,
                     struct str *out);
/* The same for a pod whose gate is open, and that is planned anew; the API
 * server refuses it once kube-scheduler has bound the pod: its node cannot be
 * taken away. */
void gate_reopen_write(const struct gate_placed *placed, struct str *out);

#endif
