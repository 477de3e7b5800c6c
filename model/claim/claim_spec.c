#include "model/claim/claim_spec.h"

#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_read.h"

struct reading {
    struct claim_reading base;
    struct claim_spec *spec;
    struct claim_request requests[CLAIM_REQUESTS_MAX];
    struct claim_constraint constraints[CLAIM_CONSTRAINTS_MAX];
};

/* One request.  Its name may stand behind the rest, so what Biga cannot plan
 * is kept in `bad` until it is there. */
struct request_reading {
    struct reading *all;
    char path[64];
    struct jtext name, class, mode;
    int64_t count;
    bool has_count, admin, has_exactly, has_selectors;
    size_t pin_at, pin_cut;
    enum claim_pin_form pin_form;
    struct claim_selectors selectors;
    struct claim_capacity needs[CLAIM_CAPACITIES_MAX];
    struct claim_toleration tolerations[CLAIM_TAINTS_MAX];
    size_t n_needs, n_tolerations;
    const char *bad; /* NULL, or what cannot be planned, and what would help */
};

/* --- what stands in exactly ------------------------------------------------ */

static void read_selectors(struct jscan *s, void *to)
{
    struct request_reading *q = to;
    char path[96];
    if (q->has_selectors) {
        claim_refuse(&q->all->base, s, EINVAL,
                     "%s.exactly.selectors: stands there twice", q->path);
        return;
    }
    q->has_selectors = true;
    (void)jscan_peek(s); /* to its first byte */
    q->pin_at = jscan_offset(s);
    if (jscan_null(s)) {
        q->pin_cut = jscan_offset(s) - q->pin_at;
        q->pin_form = CLAIM_PIN_LIST;
        return;
    }
    (void)snprintf(path, sizeof path, "%s.exactly.selectors", q->path);
    claim_read_selectors(&q->all->base, s, path, &q->selectors);
    q->pin_at = jscan_offset(s) - 1;
    q->pin_form = q->selectors.n ? CLAIM_PIN_NEXT : CLAIM_PIN_FIRST;
}

static void read_count(struct jscan *s, void *to)
{
    struct request_reading *q = to;
    q->has_count = jscan_int64(s, &q->count);
}

static void read_admin(struct jscan *s, void *to)
{
    (void)jscan_bool(s, &((struct request_reading *)to)->admin);
}

static void read_needs(struct jscan *s, void *to)
{
    struct request_reading *q = to;
    char path[96];
    (void)snprintf(path, sizeof path, "%s.exactly.capacity.requests", q->path);
    q->n_needs = claim_read_capacities(&q->all->base, s, CAPACITY_AMOUNT, path,
                                       q->needs);
}

struct toleration_reading {
    struct jtext key, operator, value, effect;
};

static void read_toleration(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("key", JROW_NULLABLE, jrow_text, struct toleration_reading, key),
        JROW("operator", JROW_NULLABLE, jrow_text,
             struct toleration_reading, operator),
        JROW("value", JROW_NULLABLE, jrow_text, struct toleration_reading,
             value),
        JROW("effect", JROW_NULLABLE, jrow_text, struct toleration_reading,
             effect),
        JROW_END,
    };
    struct request_reading *q = to;
    struct claim_reading *r = &q->all->base;
    struct toleration_reading t = {0};
    if (!jrow_read(s, JROW_STRICT, rows, &t))
        return;
    bool exists = t.operator.data && jtext_is(&t.operator, "Exists");
    if (!exists && t.operator.data && !jtext_is(&t.operator, "Equal") &&
        t.operator.size)
        return; /* as one that is not there: so the allocator has it */
    if (q->n_tolerations == CLAIM_TAINTS_MAX) {
        claim_refuse(r, s, EINVAL, "%s.exactly.tolerations: are more than %d",
                     q->path, CLAIM_TAINTS_MAX);
        return;
    }
    q->tolerations[q->n_tolerations++] = (struct claim_toleration){
        .key = claim_keep(r, s, &t.key, 2 * CLAIM_NAME_MAX, "toleration.key"),
        .value = claim_keep(r, s, &t.value, CLAIM_TEXT_MAX, "toleration.value"),
        .effect = claim_keep(r, s, &t.effect, CLAIM_TEXT_MAX,
                             "toleration.effect"),
        .exists = exists,
    };
}

static void read_derived(struct jscan *s, void *to)
{
    ((struct request_reading *)to)->bad =
        "has derivedAttributes, which Biga does not read: leave them out";
    (void)jscan_skip(s); /* a fault sticks */
}

static const struct jrow capacity_rows[] = {
    JROW_CALL("requests", JROW_NULLABLE, JKIND_OBJECT, read_needs),
    JROW_END,
};
static const struct jrow exactly_rows[] = {
    JROW("deviceClassName", JROW_NULLABLE, jrow_text, struct request_reading,
         class),
    JROW("allocationMode", JROW_NULLABLE, jrow_text, struct request_reading,
         mode),
    JROW_CALL("count", JROW_NULLABLE, JKIND_NONE, read_count),
    JROW_CALL("adminAccess", JROW_NULLABLE, JKIND_NONE, read_admin),
    JROW_CALL("selectors", JROW_STRICT, JKIND_NONE, read_selectors),
    JROW_OBJECT("capacity", JROW_NULLABLE, capacity_rows),
    JROW_EACH("tolerations", JROW_NULLABLE, read_toleration),
    JROW_EACH("derivedAttributes", JROW_NULLABLE, read_derived),
    JROW_END,
};

static void read_exactly(struct jscan *s, void *to)
{
    struct request_reading *q = to;
    if (q->has_exactly) {
        claim_refuse(&q->all->base, s, EINVAL, "%s.exactly: stands there twice",
                     q->path);
        return;
    }
    q->has_exactly = true;
    (void)jscan_peek(s); /* to its bracket */
    q->pin_at = jscan_offset(s) + 1;
    q->pin_form = CLAIM_PIN_MEMBER;
    (void)jrow_read(s, JROW_STRICT, exactly_rows, q); /* a fault sticks */
}

/* --- requests ----------------------------------------------------------- */

static void read_alternative(struct jscan *s, void *to)
{
    ((struct request_reading *)to)->bad =
        "has firstAvailable, whose devices cannot be named before one is "
        "chosen: use exactly";
    (void)jscan_skip(s); /* a fault sticks */
}

static const struct jrow request_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct request_reading, name),
    JROW_CALL("exactly", JROW_NULLABLE, JKIND_NONE, read_exactly),
    JROW_EACH("firstAvailable", JROW_NULLABLE, read_alternative),
    JROW_END,
};

/* allocationMode and count, with Kubernetes' defaults */
static void set_count(struct jscan *s, struct request_reading *q,
                      struct claim_request *request)
{
    struct claim_reading *r = &q->all->base;
    request->all = q->mode.data && jtext_is(&q->mode, "All");
    request->count = q->has_count ? q->count : 1;
    if (q->mode.data && q->mode.size && !request->all &&
        !jtext_is(&q->mode, "ExactCount"))
        q->bad = "has an allocationMode that Biga does not know: use "
                 "ExactCount or All";
    else if (!request->all && request->count < 1)
        claim_refuse(r, s, EINVAL,
                     "%s.exactly.count: is %lld, must be at least 1", q->path,
                     (long long)request->count);
}

static void request_finish(struct jscan *s, struct request_reading *q,
                           struct claim_request *request)
{
    struct claim_reading *r = &q->all->base;
    char path[96];
    (void)snprintf(path, sizeof path, "%s.name", q->path);
    request->name = claim_need(r, s, &q->name, CLAIM_NAME_MAX, path);
    (void)snprintf(path, sizeof path, "%s.exactly.deviceClassName", q->path);
    set_count(s, q, request);
    if (!s->fault && q->bad)
        claim_refuse(r, s, EDOM, "request \"%s\": %s", request->name, q->bad);
    if (!s->fault && !q->has_exactly)
        claim_refuse(r, s, EDOM,
                     "request \"%s\": is of a kind that Biga does not know: "
                     "use exactly",
                     request->name);
    if (!s->fault && q->selectors.bad.code)
        claim_refuse(r, s, EDOM, "request \"%s\": %s", request->name,
                     q->selectors.bad.text);
    request->class = claim_need(r, s, &q->class, CLAIM_NAME_MAX, path);
    request->admin = q->admin;
    request->needs = claim_keep_array(r, q->needs, q->n_needs,
                                      sizeof *q->needs);
    request->n_needs = q->n_needs;
    request->tolerations = claim_keep_array(r, q->tolerations, q->n_tolerations,
                                            sizeof *q->tolerations);
    request->n_tolerations = q->n_tolerations;
    request->pin_at = q->pin_at;
    request->pin_cut = q->pin_cut;
    request->pin_form = q->pin_form;
}

static void read_request(struct jscan *s, void *to)
{
    struct reading *all = to;
    struct claim_reading *r = &all->base;
    struct claim_spec *spec = all->spec;
    if (spec->n_requests == CLAIM_REQUESTS_MAX) {
        claim_refuse(r, s, EINVAL, "devices.requests: are more than %d",
                     CLAIM_REQUESTS_MAX);
        return;
    }
    cleanup_free struct request_reading *q = xcalloc(1, sizeof *q);
    struct claim_request *request = &all->requests[spec->n_requests];
    q->all = all;
    (void)snprintf(q->path, sizeof q->path, "devices.requests[%zu]",
                   spec->n_requests);
    (void)jrow_read(s, JROW_STRICT, request_rows, q); /* a fault sticks */
    /* from here on the selectors are the spec's, whatever comes */
    request->selectors = claim_keep_array(r, q->selectors.items, q->selectors.n,
                                          sizeof *q->selectors.items);
    request->n_selectors = q->selectors.n;
    spec->n_requests++;
    if (!s->fault)
        request_finish(s, q, request);
    for (size_t i = 0; !s->fault && i + 1 < spec->n_requests; i++)
        if (strcmp(all->requests[i].name, request->name) == 0)
            claim_refuse(r, s, EINVAL, "%s.name: \"%s\" is there twice",
                         q->path, request->name);
}

/* --- constraints -------------------------------------------------------- */

struct constraint_reading {
    struct reading *all;
    struct jtext match, distinct;
    const char *requests[CLAIM_REQUESTS_MAX];
    size_t n_requests;
};

static void read_bound(struct jscan *s, void *to)
{
    struct constraint_reading *c = to;
    struct jtext text;
    if (!jscan_string(s, &text))
        return;
    if (c->n_requests == CLAIM_REQUESTS_MAX)
        claim_refuse(&c->all->base, s, EINVAL,
                     "devices.constraints[%zu].requests: are more than %d",
                     c->all->spec->n_constraints, CLAIM_REQUESTS_MAX);
    else
        c->requests[c->n_requests++] =
            claim_keep(&c->all->base, s, &text, 2 * CLAIM_NAME_MAX,
                       "devices.constraints[].requests[]");
}

static void read_constraint(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("matchAttribute", JROW_NULLABLE, jrow_text,
             struct constraint_reading, match),
        JROW("distinctAttribute", JROW_NULLABLE, jrow_text,
             struct constraint_reading, distinct),
        JROW_EACH("requests", JROW_NULLABLE, read_bound),
        JROW_END,
    };
    struct reading *all = to;
    struct claim_reading *r = &all->base;
    size_t n = all->spec->n_constraints;
    struct constraint_reading c = {.all = all};
    if (n == CLAIM_CONSTRAINTS_MAX) {
        claim_refuse(r, s, EINVAL, "devices.constraints: are more than %d",
                     CLAIM_CONSTRAINTS_MAX);
        return;
    }
    if (!jrow_read(s, JROW_STRICT, rows, &c))
        return;
    struct claim_constraint *made = &all->constraints[n];
    made->match = claim_keep(r, s, &c.match, 2 * CLAIM_NAME_MAX,
                             "devices.constraints[].matchAttribute");
    made->distinct = claim_keep(r, s, &c.distinct, 2 * CLAIM_NAME_MAX,
                                "devices.constraints[].distinctAttribute");
    made->requests = claim_keep_array(r, c.requests, c.n_requests,
                                      sizeof *c.requests);
    made->n_requests = c.n_requests;
    if (!s->fault && !*made->match && !*made->distinct)
        claim_refuse(r, s, EDOM,
                     "devices.constraints[%zu]: is of a kind that Biga does "
                     "not know: use matchAttribute or distinctAttribute",
                     n);
    all->spec->n_constraints++;
}

static void read_config(struct jscan *s, void *to)
{
    ((struct reading *)to)->spec->has_config = true;
    (void)jscan_skip(s); /* a fault sticks */
}

/* --- the object --------------------------------------------------------- */

static const struct jrow devices_rows[] = {
    JROW_EACH("requests", JROW_NULLABLE, read_request),
    JROW_EACH("constraints", JROW_NULLABLE, read_constraint),
    JROW_EACH("config", JROW_NULLABLE, read_config),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW_OBJECT("devices", JROW_NULLABLE, devices_rows),
    JROW_END,
};

/* Every constraint names requests that are there. */
static int check_constraints(const struct claim_spec *spec, struct error *err)
{
    for (size_t i = 0; i < spec->n_constraints; i++) {
        const struct claim_constraint *c = &spec->constraints[i];
        for (size_t j = 0; j < c->n_requests; j++)
            if (!claim_spec_request(spec, c->requests[j]))
                return error_set(err, EINVAL,
                                 "devices.constraints[%zu].requests: there is "
                                 "no request \"%s\"",
                                 i, c->requests[j]);
    }
    return 0;
}

int claim_spec_read(const char *json, size_t size, struct claim_spec **ret_spec,
                    struct error *err)
{
    if (size > CLAIM_SPEC_MAX)
        return error_set(err, EINVAL, "has %zu bytes, allowed are %d", size,
                         CLAIM_SPEC_MAX);
    cleanup_with(claim_spec) struct claim_spec *spec = xcalloc(1, sizeof *spec);
    cleanup_free struct reading *r = xcalloc(1, sizeof *r);
    r->base = (struct claim_reading){.arena = &spec->arena, .err = err};
    r->spec = spec;
    spec->json = arena_strndup(&spec->arena, json, size);
    spec->json_size = size;
    int rc = claim_read_object(spec->json, size, CLAIM_SPEC_MAX, spec_rows,
                               &r->base);
    spec->requests = claim_keep_array(&r->base, r->requests, spec->n_requests,
                                      sizeof *r->requests);
    spec->constraints = claim_keep_array(
        &r->base, r->constraints, spec->n_constraints, sizeof *r->constraints);
    if (rc == 0)
        rc = check_constraints(spec, err);
    if (rc == 0)
        *ret_spec = steal(&spec);
    return rc;
}

void claim_spec_destroy(struct claim_spec *spec)
{
    if (!spec)
        return;
    for (size_t i = 0; i < spec->n_requests; i++)
        for (size_t j = 0; j < spec->requests[i].n_selectors; j++)
            claim_cel_destroy(spec->requests[i].selectors[j]);
    arena_fini(&spec->arena);
    free(spec);
}

/* --- look-ups ----------------------------------------------------------- */

static bool names(const char *reference, const char *request)
{
    size_t size = strlen(request);
    return strncmp(reference, request, size) == 0 &&
           (reference[size] == '\0' || reference[size] == '/');
}

const struct claim_request *claim_spec_request(const struct claim_spec *spec,
                                               const char *name)
{
    for (size_t i = 0; i < spec->n_requests; i++)
        if (names(name, spec->requests[i].name))
            return &spec->requests[i];
    return NULL;
}

bool claim_constraint_binds(const struct claim_constraint *constraint,
                            const char *request)
{
    for (size_t i = 0; i < constraint->n_requests; i++)
        if (names(constraint->requests[i], request))
            return true;
    return constraint->n_requests == 0;
}
