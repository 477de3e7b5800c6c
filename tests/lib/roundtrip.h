/* roundtrip - a topology through its ResourceSlices and back. */
#ifndef BIGA_TESTS_ROUNDTRIP_H
#define BIGA_TESTS_ROUNDTRIP_H

#include <stdbool.h>

#include "model/topo/topo.h"

/* Encode all slices, decode them, join them in reverse: true when devices,
 * relations, distances and content hash are the same.  Else what differs goes
 * to stderr. */
bool roundtrip(const struct topo *topo);

#endif
