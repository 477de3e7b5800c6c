/* pod_needs - what a pod needs of its node, by what kube-scheduler would judge:
 * node selector, required node affinity, tolerations, and what it takes of it.
 * Read from the Pod as the API server has it.  Pure.
 *
 * Once read it does not change: any thread may read it, and several may hold
 * it. */
#ifndef BIGA_EXTENDER_FIT_POD_NEEDS_H
#define BIGA_EXTENDER_FIT_POD_NEEDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/fit/pod_takes.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* Caps of one pod, beside those of pod_takes.h; one that has more is refused,
 * with the name of the field. */
enum {
    POD_NEEDS_SELECTOR_MAX = 64, /* members of spec.nodeSelector */
    POD_NEEDS_TERMS_MAX = 32,
    POD_NEEDS_REQUIREMENTS_MAX = 64, /* of a term, of each kind */
    POD_NEEDS_VALUES_MAX = 16384,    /* of a requirement */
    POD_NEEDS_TOLERATIONS_MAX = 256,
};

enum needs_operator {
    NEEDS_IN,
    NEEDS_NOT_IN,
    NEEDS_EXISTS,
    NEEDS_DOES_NOT_EXIST,
    NEEDS_GT,
    NEEDS_LT,
    NEEDS_NEVER /* none of these, or unsound: fits nowhere */
};

struct needs_requirement {
    const char *key;
    enum needs_operator op;
    const char *const *values;
    size_t n_values;
};

/* All of its requirements are to be met; one without any fits nowhere. */
struct needs_term {
    const struct needs_requirement *labels, *fields;
    size_t n_labels, n_fields;
    const char *json_labels, *json_fields; /* as they stand; NULL: none */
};

enum needs_toleration_operator {
    NEEDS_EQUAL,
    NEEDS_ANY,           /* Exists */
    NEEDS_TAINT_BELOW,   /* Lt: the taint's value is the smaller number */
    NEEDS_TAINT_ABOVE,   /* Gt */
    NEEDS_TOLERATES_NONE /* another */
};

struct needs_toleration {
    const char *key, *value, *effect; /* "" each: not said */
    enum needs_toleration_operator op;
};

/* What kube-scheduler judges by beside that, and nobody here does: it may
 * refuse a node that fits. */
enum needs_unjudged {
    NEEDS_SPREAD = 1,  /* topologySpreadConstraints, DoNotSchedule */
    NEEDS_PODS = 2,    /* required affinity or anti-affinity to pods */
    NEEDS_VOLUMES = 4, /* claims of volumes, which nodes may not reach */
};

struct pod_needs {
    atomic_uint refs;
    uint64_t hash; /* of `all` */
    char *all;     /* all that follows as one text, which says whether two
                    * are equal */
    size_t all_size;
    struct pod_takes takes;
    const struct needs_requirement *selector; /* NEEDS_IN, of one value */
    size_t n_selector;
    bool has_affinity; /* required node affinity: one of the terms is to fit */
    const struct needs_term *terms;
    size_t n_terms;
    const struct needs_toleration *tolerations;
    size_t n_tolerations;
    unsigned unjudged; /* enum needs_unjudged, together */
    struct arena memory;
};

/* -EINVAL with the field: no sound JSON, no object, or beyond a cap. */
int pod_needs_read(const char *json, size_t size, struct pod_needs **ret_needs,
                   struct error *err);
struct pod_needs *pod_needs_ref(struct pod_needs *n);
void pod_needs_unref(struct pod_needs *n); /* NULL allowed */
DEFINE_CLEANUP(pod_needs, struct pod_needs *, pod_needs_unref)
bool pod_needs_equal(const struct pod_needs *a, const struct pod_needs *b);

/* All of them as one text. */
void pod_needs_write(const struct pod_needs *n, struct str *out);

/* What `unjudged` means, for people: "topology spread constraints, required
 * pod (anti)affinity"; nothing when it is 0. */
void pod_needs_write_unjudged(const struct pod_needs *n, struct str *out);

/* The value of spec.affinity for a merge patch (JSON merge, or strategic) that
 * pins the pod to a node, and to no other.  The API server lets the required
 * node affinity of a gated pod only become narrower: where it has terms, each
 * keeps what it has and gets one more requirement, but for one that pins to
 * that node already, or is empty (which never fits).  Preferred affinity and
 * affinity to pods stay, because a merge patch does not name them. */
void pod_needs_write_affinity(const struct pod_needs *n, const char *node,
                              struct str *out);

#endif
