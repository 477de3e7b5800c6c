/* node_facts - what a Node says that kube-scheduler judges by: labels, taints,
 * whether it is cordoned, and what it has of each resource.  Pure. */
#ifndef BIGA_EXTENDER_FIT_NODE_FACTS_H
#define BIGA_EXTENDER_FIT_NODE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

/* Caps of one Node; one that has more is refused, with the name of the
 * field. */
enum {
    NODE_FACTS_NAME_MAX = 253,
    NODE_FACTS_LABELS_MAX = 4096,
    NODE_FACTS_TAINTS_MAX = 1024,
    NODE_FACTS_RESOURCES_MAX = 256,
};

struct node_label {
    const char *key, *value;
};

struct node_taint {
    const char *key, *value, *effect;
};

/* Units as in take_amount; "pods" in pieces. */
struct node_amount {
    const char *resource;
    int64_t amount;
};

struct node_facts {
    char name[NODE_FACTS_NAME_MAX + 1];
    bool unschedulable;
    const struct node_label *labels; /* by key, in order */
    size_t n_labels;
    /* Those that keep pods away: NoSchedule and NoExecute. */
    const struct node_taint *taints;
    size_t n_taints;
    const struct node_amount *amounts; /* status.allocatable */
    size_t n_amounts;
    struct arena memory;
};

/* -EINVAL with the field: no sound JSON, no name, or beyond a cap. */
int node_facts_read(const char *json, size_t size, struct node_facts *ret_facts,
                    struct error *err);
void node_facts_fini(struct node_facts *f);

#endif
