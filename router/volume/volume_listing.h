/* volume_listing - what `biga-card tree` says that a remote has of a pod (its
 * form stands in card/tree.h), as a volume_tree without contents.  The bytes of
 * a remote are hostile: nothing in them is believed but that it has, or lacks,
 * what we would send anyway.  Pure. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_LISTING_H
#define BIGA_ROUTER_VOLUME_VOLUME_LISTING_H

#include <stddef.h>

#include "lib/base/error.h"
#include "router/volume/volume_tree.h"

enum { VOLUME_LISTING_MAX = 4 << 20 }; /* bytes */

/* Items are named as in volume_plan.h: "disk/…" and "memory/…".  -EPROTO says
 * at which byte it is cut off or against the form. */
int volume_listing_read(const char *text, size_t size,
                        struct volume_tree *ret_tree, struct error *err);

#endif
