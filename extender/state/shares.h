/* shares - the declared shares of services on all nodes of a snapshot. */
#ifndef BIGA_EXTENDER_STATE_SHARES_H
#define BIGA_EXTENDER_STATE_SHARES_H

#include <stddef.h>

#include "extender/state/snapshot.h"
#include "extender/state/usage.h"

/* How many there are in each state. */
void shares_count(const struct snapshot *s, size_t ret_counts[SHARE_STATES]);

#endif
