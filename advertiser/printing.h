/* printing - what --print says, on the standard output. */
#ifndef BIGA_ADVERTISER_PRINTING_H
#define BIGA_ADVERTISER_PRINTING_H

#include "model/topo/topo.h"

/* `what` is "tree", "matrix", "relations" or "slices"; these are of the boot
 * that is named.  0; -EIO, and it was said why. */
int printing_topo(const char *what, const char *boot_id,
                  const struct topo *topo);

#endif
