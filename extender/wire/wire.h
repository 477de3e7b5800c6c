/* wire - what kube-scheduler sends an extender and what it expects back
 * (k8s.io/kube-scheduler/extender/v1).
 *
 * Requests are scanned in place, strictly and without a DOM: names and nodes
 * are borrowed from the request's bytes.  Keys of the extender's own types are
 * read case-insensitively, as Go does, and written in PascalCase. */
#ifndef BIGA_EXTENDER_WIRE_WIRE_H
#define BIGA_EXTENDER_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/roster/roster.h"
#include "lib/base/error.h"
#include "lib/base/jscan.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"

enum {
    WIRE_NODES_MAX = 200000,   /* names or nodes in one request */
    WIRE_VICTIMS_MAX = 100000, /* victims in one preempt request */
    WIRE_BODY_MAX = 512 << 20, /* full Node objects are big */
    WIRE_BIND_BODY_MAX = 1 << 20,
};

/* ExtenderArgs.  Reused between requests: the lists keep their room. */
struct wire_args {
    struct demand demand; /* zero unless it was read */
    struct jtext pod;     /* its bytes, borrowed from the request; the same */
    bool has_pod;
    bool full_nodes;     /* Nodes was given, not NodeNames */
    struct jtext *names; /* as they stand in the request, escapes included */
    int32_t *indexes;    /* where the roster has them, or ROSTER_NONE */
    struct jtext *nodes; /* full_nodes: the bytes of each Node object */
    size_t n, names_cap, nodes_cap;

    /* the pod that was read last, and what it asks: by one config only */
    char *known_pod;
    size_t known_size;
    struct demand known_demand;
};
void wire_args_fini(struct wire_args *a);

/* 0; -EINVAL with the position or the path of what is wrong in the request;
 * -EDOM when the request is sound but its pod breaks the pod contract (then
 * the lists are read, too). */
int wire_read_args(const char *body, size_t size,
                   const struct demand_config *config,
                   const struct roster *roster, struct wire_args *ret_args,
                   struct error *err);

/* ExtenderBindingArgs. */
struct wire_binding {
    char name[DEMAND_NAME_MAX + 1];
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char uid[DEMAND_UID_MAX + 1];
    char node[DEMAND_NAME_MAX + 1];
};
int wire_read_binding(const char *body, size_t size,
                      struct wire_binding *ret_binding, struct error *err);

/* ExtenderPreemptionArgs, from either of its two maps: for each node the
 * UIDs of its victims. */
struct wire_victims {
    struct jtext node;
    size_t first, n; /* into uids */
    int64_t pdb_violations;
};
struct wire_preemption {
    struct demand demand;
    bool has_pod;
    struct wire_victims *nodes;
    struct jtext *uids;
    size_t n_nodes, n_uids, nodes_cap, uids_cap;
};
void wire_preemption_fini(struct wire_preemption *p);
int wire_read_preemption(const char *body, size_t size,
                         const struct demand_config *config,
                         struct wire_preemption *ret_preemption,
                         struct error *err);

/* ExtenderFilterResult with the nodes at `positions` of the request, in that
 * order, in the form in which they came. */
void wire_write_fitting(const struct wire_args *a, const uint32_t *positions,
                        size_t n, struct str *out);

/* The beginning and end of a result in which nothing fits: between them,
 * wire_write_failed() for all nodes that preemption may help, then
 * wire_write_unresolvable(), then the others. */
struct wire_failures {
    struct str *out;
    bool any;
};
void wire_failures_begin(const struct wire_args *a, struct wire_failures *f,
                         struct str *out);
void wire_failures_add(struct wire_failures *f, const struct jtext *name,
                       const char *reason, size_t reason_size);
void wire_failures_unresolvable(struct wire_failures *f);
void wire_failures_end(struct wire_failures *f);

/* {"…","Error":"text"} of a filter. */
void wire_write_filter_error(const char *text, struct str *out);

/* HostPriorityList: scores[i] belongs to names[i]. */
void wire_write_priorities(const struct jtext *names, const uint8_t *scores,
                           size_t n, struct str *out);

/* ExtenderBindingResult; "" means bound. */
void wire_write_binding(const char *error, struct str *out);

/* What becomes of one node of a preempt request. */
struct wire_named {
    bool keep;
    bool instead;            /* of those of the request: */
    const char *const *uids; /* victims beside those of the request */
    size_t n;
};
/* ExtenderPreemptionResult with the nodes that are kept. */
void wire_write_preemption(const struct wire_preemption *p,
                           const struct wire_named *named, struct str *out);

#endif
