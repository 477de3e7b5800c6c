/* cdi - what a container gets of the cards of one claim, as a file of the
 * Container Device Interface (github.com/cncf-tags/container-device-interface,
 * SPEC.md 0.5.0): one device for each card, with the files below /dev of the
 * host's side of it, and variables.  schema/claims.md is the home of the
 * names. */
#ifndef BIGA_ADVERTISER_DRA_CDI_H
#define BIGA_ADVERTISER_DRA_CDI_H

#include "advertiser/describe/cardfile.h"
#include "advertiser/dra/dra_record.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/topo/topo.h"

enum { CDI_MAX = 1 << 20 }; /* bytes of a file */

/* Where the cards are looked at. */
struct cdi_host {
    const struct topo *topo;
    const char *sysroot;          /* NULL: they are described, not found */
    const struct cardfile *cards; /* NULL: none */
};

/* Append the file.  -ENODEV names a device that is no card of this host now;
 * -E2BIG: it would be larger than CDI_MAX. */
int cdi_write(const struct dra_record *r, const struct cdi_host *host,
              struct str *out, struct error *err);

#endif
