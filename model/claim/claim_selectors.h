/* claim_selectors - the selectors of a class or a request, read and compiled.
 * Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_SELECTORS_H
#define BIGA_MODEL_CLAIM_CLAIM_SELECTORS_H

#include "model/claim/claim_cel.h"
#include "model/claim/claim_read.h"

enum { CLAIM_SELECTORS_MAX = 32 }; /* of a class or request, as in Kubernetes */

struct claim_selectors {
    size_t n;
    struct claim_cel *items[CLAIM_SELECTORS_MAX]; /* the caller's */
    struct error bad; /* code 0, or of the first that Biga cannot read */
};

/* Read the array under the cursor, [{"cel":{"expression":"…"}}], on top of
 * what `ret` has.  Too many are refused; one that cannot be read is not
 * counted, and `bad` says which. */
void claim_read_selectors(struct claim_reading *r, struct jscan *s,
                          const char *path, struct claim_selectors *ret);

#endif
