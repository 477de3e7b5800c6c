/* node_match - what a pod needs of a node against the node's labels and
 * taints, by kube-scheduler's rules.  Pure. */
#ifndef BIGA_EXTENDER_FIT_NODE_MATCH_H
#define BIGA_EXTENDER_FIT_NODE_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/fit/node_facts.h"
#include "extender/fit/pod_needs.h"

/* A value that is NODE_MATCH_NAME itself (the pointer) is the node's name. */
extern const char NODE_MATCH_NAME[];

struct node_match {
    const char *name;
    const struct node_label *labels; /* by key, in order */
    size_t n_labels;
    bool asked_name; /* set when the answer depends on the name */
};

/* Node selector and required node affinity. */
bool node_match_labels(struct node_match *m, const struct pod_needs *needs);

/* The first taint that is not tolerated, or NULL. */
const struct node_taint *node_match_taints(const struct node_taint *taints,
                                           size_t n,
                                           const struct pod_needs *needs);

#endif
