/* claim_cel - the subset of CEL that selectors of devices in the field use,
 * compiled and evaluated as kube-scheduler does it.  Pure.
 *
 * Read are: literals (bool, int, text with its escapes and r""), lists of them
 * on the right of `in`; device.driver, device.allowMultipleAllocations,
 * device.attributes and device.capacity, indexed by ["domain"] and ["name"] or
 * .name, also .?name with orValue() and hasValue(); has(); `in` a map; == != <
 * <= > >= && || ! - ?: and parentheses; of a text startsWith, endsWith,
 * contains, matches (expressions whose meaning POSIX and RE2 share),
 * lowerAscii, upperAscii, size; quantity() and semver() with compareTo,
 * isGreaterThan, isLessThan, and of versions major, minor, patch; cel.bind().
 * Types are not checked before: the API server has done it. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_CEL_H
#define BIGA_MODEL_CLAIM_CLAIM_CEL_H

#include "model/claim/claim_device.h"

enum {
    CLAIM_CEL_MAX = 10240,      /* bytes, as Kubernetes allows */
    CLAIM_CEL_NODES_MAX = 2048, /* operators, calls and values */
    CLAIM_CEL_DEPTH_MAX = 64,   /* of nesting */
};

struct claim_cel; /* immutable; any thread may evaluate it */

/* 0, and the caller destroys it; -EINVAL for what is no CEL or passes a cap;
 * -ENOTSUP for CEL outside the subset.  Both name the word and its position:
 * `at 17: "exists": is not read by Biga`. */
int claim_cel_compile(const char *text, size_t size, struct claim_cel **ret_cel,
                      struct error *err);
void claim_cel_destroy(struct claim_cel *cel); /* NULL allowed */
DEFINE_CLEANUP(claim_cel, struct claim_cel *, claim_cel_destroy)

const char *claim_cel_text(const struct claim_cel *cel); /* as it was given */

/* Does the device of that driver match?  0; -EDOM for what CEL calls an error
 * ("no such key: x", a comparison of an int with a text): kube-scheduler then
 * allocates nothing on the node, it does not try the next device; -ENOTSUP
 * when it depends on an attribute of type CLAIM_OTHER. */
int claim_cel_eval(const struct claim_cel *cel,
                   const struct claim_device *device, const char *driver,
                   bool *ret_match, struct error *err);

#endif
