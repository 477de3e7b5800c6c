/* remotes - which remote runtimes there are, by the operator's settings: the
 * cards that the card file gives an endpoint, or the one other machine.
 *
 * A card need not be in this machine's /sys to be one of the file's: what the
 * file names by its PCI address is there.  Entries that match by ids of vendor
 * and device are looked for in /sys; those by serial are not, for nothing here
 * reads the cards themselves. */
#ifndef BIGA_ROUTER_REMOTES_H
#define BIGA_ROUTER_REMOTES_H

#include <stddef.h>

#include "advertiser/act/card/card.h"
#include "lib/base/error.h"

enum { REMOTES_MAX = 16 };

struct remotes {
    size_t n;
    struct act_place list[REMOTES_MAX]; /* by their names */
};

/* 0; -errno with a text that names the file: it cannot be read, or has more
 * than REMOTES_MAX cards with an endpoint.  `sysfs` NULL: "/sys". */
int remotes_load(const char *card_file, const char *sysfs,
                 struct remotes *ret_remotes, struct error *err);
/* Just one, named ACT_HOST. `keys`: ca, cert and key, or NULL for plaintext. */
void remotes_host(const char *endpoint, const char *const keys[3],
                  struct remotes *ret_remotes);

#endif
