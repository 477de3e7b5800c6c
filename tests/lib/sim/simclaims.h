/* simclaims - objects of Dynamic Resource Allocation, as an API server has
 * them, for tests.  All are JSON that the caller frees; namespace "ns". */
#ifndef BIGA_TESTS_LIB_SIM_SIMCLAIMS_H
#define BIGA_TESTS_LIB_SIM_SIMCLAIMS_H

#include <stdint.h>

#include "model/topo/topo.h"

/* What DeviceClass xpu.biga.dev selects. */
#define SIMCLAIMS_CARD_CEL                  \
    "device.driver == \"xpu.biga.dev\" && " \
    "device.attributes[\"biga.dev\"].kind == \"card\""

/* The slice of a host's cards, all given by claims; that of this name has a
 * taint ("": none). */
char *simclaims_cards(const struct topo *topo, int64_t generation,
                      const char *tainted);
/* The slice of its GPUs, "gpu-0" …, of driver gpu.example.com. */
char *simclaims_gpus(const struct topo *topo, int64_t generation,
                     const char *tainted);
char *simclaims_class(const char *name, const char *cel);
/* Lists of requests (without brackets) and constraints (with them). */
char *simclaims_template(const char *name, const char *requests,
                         const char *constraints);
/* One for a GPU, made for the pod's "pair"; allocated with these results
 * (without brackets; "": not allocated), owned by and reserved for the pod
 * with that uid ("": nobody). */
char *simclaims_claim(const char *name, unsigned version, const char *pod_uid,
                      const char *results);
/* A pod with these spec.resourceClaims (without brackets). */
char *simclaims_pod(const char *name, const char *claims);

#endif
