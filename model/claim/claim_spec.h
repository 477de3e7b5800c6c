/* claim_spec - what a claim asks for: ResourceClaim.spec, which is also
 * ResourceClaimTemplate.spec.spec (resource.k8s.io/v1).  Pure.
 *
 * The JSON is kept as it was, because a pinned claim (claim_pin.h) is the same
 * but for one selector more. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_SPEC_H
#define BIGA_MODEL_CLAIM_CLAIM_SPEC_H

#include "lib/base/jscan.h"
#include "model/claim/claim_class.h"

enum {
    CLAIM_REQUESTS_MAX = 32, /* as in Kubernetes, like those below */
    CLAIM_CONSTRAINTS_MAX = 32,
    CLAIM_SPEC_MAX = 1 << 20, /* bytes of its JSON */
};

struct claim_toleration {
    const char *key, *value; /* "" : every key */
    bool exists;             /* operator Exists: every value */
    const char *effect;      /* "": every effect */
};

/* How a selector goes into the JSON: with its member, with its list, as the
 * list's first, or behind others. */
enum claim_pin_form {
    CLAIM_PIN_MEMBER,
    CLAIM_PIN_LIST,
    CLAIM_PIN_FIRST,
    CLAIM_PIN_NEXT
};

struct claim_request {
    const char *name, *class;
    bool all;      /* allocationMode All: every device that matches */
    int64_t count; /* else so many, >= 1 */
    bool admin;    /* adminAccess: takes nothing from others */
    struct claim_cel *const *selectors;
    size_t n_selectors;
    const struct claim_capacity *needs; /* capacity.requests */
    size_t n_needs;
    const struct claim_toleration *tolerations;
    size_t n_tolerations;
    /* where one selector more goes into the JSON: at byte `pin_at`, in place
     * of `pin_cut` bytes */
    size_t pin_at, pin_cut;
    enum claim_pin_form pin_form;
};

struct claim_constraint {
    const char *const *requests; /* names; none: all of the claim */
    size_t n_requests;
    const char *match;    /* matchAttribute, "domain/name", or "" */
    const char *distinct; /* distinctAttribute, or "" */
};

struct claim_spec {
    const char *json; /* as it was read */
    size_t json_size;
    struct claim_request *requests;
    size_t n_requests;
    const struct claim_constraint *constraints;
    size_t n_constraints;
    bool has_config;    /* it stands in the JSON */
    struct arena arena; /* holds all of it but the compiled selectors */
};

/* Read a spec, a JSON object; it is copied.  0, and the caller destroys it.
 * -EINVAL: no JSON, or what the API server would not take, with path and value.
 * -EDOM: what Biga cannot plan (firstAvailable, derivedAttributes, a
 * constraint or a selector that it cannot read), with the request's name and
 * what would help. */
int claim_spec_read(const char *json, size_t size, struct claim_spec **ret_spec,
                    struct error *err);
void claim_spec_destroy(struct claim_spec *spec); /* NULL allowed */
DEFINE_CLEANUP(claim_spec, struct claim_spec *, claim_spec_destroy)

/* The request with this name (of "request/subrequest" the first half), or
 * NULL. */
const struct claim_request *claim_spec_request(const struct claim_spec *spec,
                                               const char *name);
/* Does the constraint bind this request? */
bool claim_constraint_binds(const struct claim_constraint *constraint,
                            const char *request);

#endif
