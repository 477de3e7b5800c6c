/* claim_match - may a request be given a device?  As DRA's allocator judges
 * one device by itself; what others have of it, and constraints between
 * devices, are not its affair.  Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_MATCH_H
#define BIGA_MODEL_CLAIM_CLAIM_MATCH_H

#include "model/claim/claim_spec.h"

/* 1: it may.  0: it may not, and `why` says so: a selector of the class or
 * of the request, a taint that is not tolerated, a capacity that it does not
 * have.  -EDOM: a selector raises an error for this device, so that
 * kube-scheduler allocates nothing of the request on this node.  -ENOTSUP: it
 * cannot be told (a class that Biga cannot read).  `class` is that which the
 * request names. */
int claim_match(const struct claim_class *class,
                const struct claim_request *request,
                const struct claim_device *device, const char *driver,
                struct error *why);

/* Is the taint tolerated?  One that keeps no new claim off counts as such. */
bool claim_tolerates(const struct claim_request *request,
                     const struct claim_taint *taint);

/* The value of "domain/name" that constraints compare, NULL when the device
 * has none, and whether two are equal. */
const struct claim_attribute *
claim_match_attribute(const struct claim_device *device, const char *qualified);
bool claim_attribute_equal(const struct claim_attribute *a,
                           const struct claim_attribute *b);

#endif
