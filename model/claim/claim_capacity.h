/* claim_capacity - amounts by name, in the forms that the objects of DRA have:
 * with a policy (of devices), and plain ones (of requests, and what was
 * consumed).  Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_CAPACITY_H
#define BIGA_MODEL_CLAIM_CLAIM_CAPACITY_H

#include <stddef.h>
#include <stdint.h>

struct claim_reading;
struct jscan;

enum {
    CLAIM_CAPACITIES_MAX = 64, /* of a device, a request or a result */
    CLAIM_VALUES_MAX = 32,     /* that a policy lists */
    CLAIM_NAME_MAX = 253,      /* bytes of each name, also "domain/name" */
    CLAIM_TEXT_MAX = 255,      /* bytes of a value */
};

/* Amounts are in thousandths, as quantity_parse() has them; -1: not stated. */
struct claim_capacity {
    const char *key;           /* as written: requests and what was consumed
                                * name it so, with a domain or without */
    const char *domain, *name; /* domain "" in a request: the driver's */
    int64_t milli;
    /* how requests are rounded (requestPolicy); all -1 and 0: not at all */
    int64_t preset; /* what one that says nothing takes */
    int64_t min, max, step;
    size_t n_values;
    const int64_t *values; /* the only ones allowed, ascending */
};

/* By its key, or NULL. */
const struct claim_capacity *
claim_capacity_find(const struct claim_capacity *capacities, size_t n,
                    const char *key);

/* What a request for `milli` (-1: it does not say) of this capacity takes of
 * a device that may be in several claims: the amount rounded up as the policy
 * has it, all of it when neither says anything; -1 when the policy or the
 * capacity does not allow so much. */
int64_t claim_capacity_take(const struct claim_capacity *capacity,
                            int64_t milli);

/* --- for the readers of this room ---------------------------------------- */

enum capacity_form {
    CAPACITY_DEVICE, /* {"memory":{"value":"40Gi","requestPolicy":{…}}} */
    CAPACITY_AMOUNT, /* {"memory":"10Gi"} */
};

/* Read the map under the cursor into `ret`, which has room for
 * CLAIM_CAPACITIES_MAX; domain and name are set as in a request.  Returns how
 * many; refusals stay with `r` and name the path. */
size_t claim_read_capacities(struct claim_reading *r, struct jscan *s,
                             enum capacity_form form, const char *path,
                             struct claim_capacity *ret);

#endif
