/* pod_takes - what a pod takes of its node by its requests of every resource,
 * as kube-scheduler sums them, and by its host ports.  Pure. */
#ifndef BIGA_EXTENDER_FIT_POD_TAKES_H
#define BIGA_EXTENDER_FIT_POD_TAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

/* What is beyond these is left out, and `more` names it. */
enum { POD_TAKES_RESOURCES_MAX = 16, POD_TAKES_PORTS_MAX = 64 };

/* Of one resource: cpu in thousandths, any other in its units (bytes, pieces);
 * above 0. */
struct take_amount {
    const char *resource;
    int64_t amount;
};

struct take_port {
    const char *ip; /* "0.0.0.0": on all */
    uint16_t port;
    char protocol; /* 'T'CP, 'U'DP, 'S'CTP */
};

struct pod_takes {
    const struct take_amount *amounts; /* by name, in order */
    size_t n_amounts;
    const struct take_port *ports;
    size_t n_ports;
    const char *more; /* NULL, or the field with too many: a constant text */
    struct arena memory;
};

/* Of a Pod as the API server has it.  Members of another type than expected
 * count as absent.  -EINVAL: no sound JSON, or no object. */
int pod_takes_read(const char *json, size_t size, struct pod_takes *ret_takes,
                   struct error *err);
void pod_takes_fini(struct pod_takes *t); /* a zeroed one takes nothing */

/* May two be on one node, as to their ports? */
bool pod_takes_ports_clash(const struct pod_takes *a,
                           const struct pod_takes *b);

/* Does kube-scheduler judge by a resource of this name?  Any but "pods", which
 * it counts itself, and names without a domain that it does not know. */
bool pod_takes_counts(const char *resource, size_t size);
/* A quantity in thousandths, in the units above: rounded up. */
int64_t pod_takes_units(const char *resource, size_t size, int64_t milli);

#endif
