/* places - between the topology and the actuator: which cards pods can run on
 * and how to reach them, and how they fare.  Pure, but for the times of
 * files. */
#ifndef BIGA_ADVERTISER_PLACES_H
#define BIGA_ADVERTISER_PLACES_H

#include <stddef.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/describe/cardfile.h"
#include "lib/base/error.h"
#include "model/topo/topo.h"

/* The cards of `topo` with an endpoint, by the card file (NULL: none) and else
 * as the topology has it, and the host, whose runtime is `host_runtime` ("":
 * none).  Returns how many. */
size_t places_of(const struct topo *topo, const struct cardfile *cards,
                 const char *host_runtime,
                 struct act_place ret_places[ACT_PLACES_MAX]);
/* Fill in files_ns of all; true when one has changed. */
bool places_touch(struct act_place *places, size_t n);

/* The topology with how its cards fare: those that are lost or drained are
 * withdrawn.  One that is suspect is as it was: it is either ready again, or
 * lost, within seconds.  With TOPO_RUNS_PODS those with an endpoint run pods.
 * The caller owns `*ret_topo`. */
int places_mark(const struct topo *topo, enum topo_runs runs,
                const struct act_place_status *views, size_t n,
                struct topo **ret_topo, struct error *err);

/* The topology with cards that are given by ResourceClaims.  The caller owns
 * it. */
struct topo *places_by_claims(const struct topo *topo);

#endif
