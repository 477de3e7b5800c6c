#include "model/claim/claim_status.h"

#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_read.h"

struct reading {
    struct claim_reading base;
    struct claim_status *status;
    struct jtext namespace, name, uid, version, pod_claim, pinned, spec;
    struct claim_result results[CLAIM_RESULTS_MAX];
    struct claim_pod reserved[CLAIM_RESERVED_MAX];
    struct jtext node;
    size_t n_terms, n_fields; /* of the node selector */
};

#define TEXT(key, field) \
    JROW(key, JROW_NULLABLE, jrow_text, struct reading, field)

/* --- metadata ----------------------------------------------------------- */

struct owner {
    struct jtext api, kind, name, uid;
    bool controller;
};

static void read_true(struct jscan *s, void *to)
{
    (void)jscan_bool(s, to); /* a fault sticks */
}

static void read_owner(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("apiVersion", JROW_NULLABLE, jrow_text, struct owner, api),
        JROW("kind", JROW_NULLABLE, jrow_text, struct owner, kind),
        JROW("name", JROW_NULLABLE, jrow_text, struct owner, name),
        JROW("uid", JROW_NULLABLE, jrow_text, struct owner, uid),
        JROW_CALL_TO("controller", JROW_NULLABLE, JKIND_NONE, read_true,
                     struct owner, controller),
        JROW_END,
    };
    struct reading *r = to;
    struct owner o = {0};
    if (!jrow_read(s, JROW_STRICT, rows, &o) || !o.controller || !o.kind.data ||
        !jtext_is(&o.kind, "Pod") || !o.api.data || !jtext_is(&o.api, "v1"))
        return;
    r->status->owner.name = claim_keep(&r->base, s, &o.name, CLAIM_NAME_MAX,
                                       "metadata.ownerReferences[].name");
    r->status->owner.uid = claim_keep(&r->base, s, &o.uid, CLAIM_NAME_MAX,
                                      "metadata.ownerReferences[].uid");
}

static void read_deletion(struct jscan *s, void *to)
{
    ((struct reading *)to)->status->deleting = true;
    (void)jscan_skip(s); /* a fault sticks */
}

static const struct jrow annotation_rows[] = {
    JROW(CLAIM_POD_CLAIM_KEY, JROW_NULLABLE, jrow_text, struct reading,
         pod_claim),
    JROW(CLAIM_PINNED_KEY, JROW_NULLABLE, jrow_text, struct reading, pinned),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    TEXT("namespace", namespace),
    TEXT("name", name),
    TEXT("uid", uid),
    TEXT("resourceVersion", version),
    JROW_CALL("deletionTimestamp", JROW_NULLABLE, JKIND_STRING, read_deletion),
    JROW_OBJECT("annotations", JROW_NULLABLE, annotation_rows),
    JROW_EACH("ownerReferences", JROW_NULLABLE, read_owner),
    JROW_END,
};

/* --- results ------------------------------------------------------------ */

struct result_reading {
    struct reading *all;
    struct jtext request, driver, pool, device, share;
    bool admin;
    struct claim_capacity consumed[CLAIM_CAPACITIES_MAX];
    size_t n_consumed;
};

#define RESULTS "status.allocation.devices.results"

static void read_consumed(struct jscan *s, void *to)
{
    struct result_reading *q = to;
    q->n_consumed = claim_read_capacities(&q->all->base, s, CAPACITY_AMOUNT,
                                          RESULTS "[].consumedCapacity",
                                          q->consumed);
}

static const struct jrow result_rows[] = {
    JROW("request", JROW_NULLABLE, jrow_text, struct result_reading, request),
    JROW("driver", JROW_NULLABLE, jrow_text, struct result_reading, driver),
    JROW("pool", JROW_NULLABLE, jrow_text, struct result_reading, pool),
    JROW("device", JROW_NULLABLE, jrow_text, struct result_reading, device),
    JROW("shareID", JROW_NULLABLE, jrow_text, struct result_reading, share),
    JROW_CALL_TO("adminAccess", JROW_NULLABLE, JKIND_NONE, read_true,
                 struct result_reading, admin),
    JROW_CALL("consumedCapacity", JROW_NULLABLE, JKIND_OBJECT, read_consumed),
    JROW_END,
};

static void read_result(struct jscan *s, void *to)
{
    struct reading *all = to;
    struct claim_reading *r = &all->base;
    struct claim_status *status = all->status;
    if (status->n_results == CLAIM_RESULTS_MAX) {
        claim_refuse(r, s, EINVAL, RESULTS ": are more than %d",
                     CLAIM_RESULTS_MAX);
        return;
    }
    cleanup_free struct result_reading *q = xcalloc(1, sizeof *q);
    q->all = all;
    if (!jrow_read(s, JROW_STRICT, result_rows, q))
        return;
    all->results[status->n_results++] = (struct claim_result){
        .request = claim_keep(r, s, &q->request, 2 * CLAIM_NAME_MAX,
                              RESULTS "[].request"),
        .driver = claim_need(r, s, &q->driver, CLAIM_NAME_MAX,
                             RESULTS "[].driver"),
        .pool = claim_need(r, s, &q->pool, CLAIM_NAME_MAX, RESULTS "[].pool"),
        .device = claim_need(r, s, &q->device, CLAIM_NAME_MAX,
                             RESULTS "[].device"),
        .share = claim_keep(r, s, &q->share, CLAIM_NAME_MAX,
                            RESULTS "[].shareID"),
        .admin = q->admin,
        .consumed = claim_keep_array(r, q->consumed, q->n_consumed,
                                     sizeof *q->consumed),
        .n_consumed = q->n_consumed,
    };
}

/* --- the node of an allocation ---------------------------------------------
 * One term with the field metadata.name In ["node"]; beside it there may be
 * more that the node fulfils. */

struct field {
    struct jtext key, operator, value;
    size_t n_values;
};

static void read_field_value(struct jscan *s, void *to)
{
    struct field *f = to;
    if (jscan_string(s, &f->value))
        f->n_values++;
}

static void read_field(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("key", JROW_NULLABLE, jrow_text, struct field, key),
        JROW("operator", JROW_NULLABLE, jrow_text, struct field, operator),
        JROW_EACH("values", JROW_NULLABLE, read_field_value),
        JROW_END,
    };
    struct reading *r = to;
    struct field f = {0};
    if (!jrow_read(s, JROW_STRICT, rows, &f) || !f.key.data ||
        !f.operator.data || !jtext_is(&f.key, "metadata.name") ||
        !jtext_is(&f.operator, "In") || f.n_values != 1)
        return;
    r->n_fields++;
    r->node = f.value;
}

static const struct jrow term_rows[] = {
    JROW_EACH("matchFields", JROW_NULLABLE, read_field),
    JROW_END,
};

static void read_term(struct jscan *s, void *to)
{
    ((struct reading *)to)->n_terms++;
    (void)jrow_read(s, JROW_STRICT, term_rows, to); /* a fault sticks */
}

/* --- status and the object ------------------------------------------------ */

struct consumer {
    struct jtext group, resource, name, uid;
};

static void read_reserved(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("apiGroup", JROW_NULLABLE, jrow_text, struct consumer, group),
        JROW("resource", JROW_NULLABLE, jrow_text, struct consumer, resource),
        JROW("name", JROW_NULLABLE, jrow_text, struct consumer, name),
        JROW("uid", JROW_NULLABLE, jrow_text, struct consumer, uid),
        JROW_END,
    };
    struct reading *r = to;
    struct claim_status *status = r->status;
    struct consumer c = {0};
    if (!jrow_read(s, JROW_STRICT, rows, &c))
        return;
    if (c.group.size || !c.resource.data || !jtext_is(&c.resource, "pods")) {
        status->n_other_reserved++;
        return;
    }
    if (status->n_reserved == CLAIM_RESERVED_MAX) {
        claim_refuse(&r->base, s, EINVAL,
                     "status.reservedFor: are more than %d",
                     CLAIM_RESERVED_MAX);
        return;
    }
    r->reserved[status->n_reserved++] = (struct claim_pod){
        .name = claim_keep(&r->base, s, &c.name, CLAIM_NAME_MAX,
                           "status.reservedFor[].name"),
        .uid = claim_keep(&r->base, s, &c.uid, CLAIM_NAME_MAX,
                          "status.reservedFor[].uid"),
    };
}

static const struct jrow selector_rows[] = {
    JROW_EACH("nodeSelectorTerms", JROW_NULLABLE, read_term),
    JROW_END,
};
static const struct jrow given_rows[] = {
    JROW_EACH("results", JROW_NULLABLE, read_result),
    JROW_END,
};
static const struct jrow allocation_rows[] = {
    JROW_OBJECT("devices", JROW_NULLABLE, given_rows),
    JROW_OBJECT("nodeSelector", JROW_NULLABLE, selector_rows),
    JROW_END,
};

static void read_allocation(struct jscan *s, void *to)
{
    ((struct reading *)to)->status->allocated = true;
    (void)jrow_read(s, JROW_STRICT, allocation_rows, to); /* a fault sticks */
}

static void read_spec(struct jscan *s, void *to)
{
    (void)jscan_raw(s, to); /* a fault sticks */
}

static const struct jrow status_rows[] = {
    JROW_CALL("allocation", JROW_NULLABLE, JKIND_OBJECT, read_allocation),
    JROW_EACH("reservedFor", JROW_NULLABLE, read_reserved),
    JROW_END,
};
static const struct jrow object_rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, metadata_rows),
    JROW_CALL_TO("spec", JROW_NULLABLE, JKIND_OBJECT, read_spec, struct reading,
                 spec),
    JROW_OBJECT("status", JROW_NULLABLE, status_rows),
    JROW_END,
};

static int finish(struct reading *r)
{
    struct claim_status *status = r->status;
    struct claim_reading *base = &r->base;
    struct jscan none; /* it only carries the refusals */
    jscan_init(&none, "", 0);
    status->namespace = claim_need(base, &none, &r->namespace, CLAIM_NAME_MAX,
                                   "metadata.namespace");
    status->name = claim_need(base, &none, &r->name, CLAIM_NAME_MAX,
                              "metadata.name");
    status->uid = claim_need(base, &none, &r->uid, CLAIM_NAME_MAX,
                             "metadata.uid");
    status->version = claim_keep(base, &none, &r->version, CLAIM_NAME_MAX,
                                 "metadata.resourceVersion");
    status->pod_claim = claim_keep(base, &none, &r->pod_claim, CLAIM_NAME_MAX,
                                   "metadata.annotations[\"" CLAIM_POD_CLAIM_KEY
                                   "\"]");
    status->pinned = claim_keep(base, &none, &r->pinned, CLAIM_OBJECT_MAX,
                                "metadata.annotations[\"" CLAIM_PINNED_KEY
                                "\"]");
    status->is_pinned = r->pinned.data;
    if (r->n_terms == 1 && r->n_fields == 1)
        status->node = claim_keep(base, &none, &r->node, CLAIM_NAME_MAX,
                                  "status.allocation.nodeSelector");
    status->results = claim_keep_array(base, r->results, status->n_results,
                                       sizeof *r->results);
    status->reserved = claim_keep_array(base, r->reserved, status->n_reserved,
                                        sizeof *r->reserved);
    return base->code;
}

int claim_status_read(const char *json, size_t size,
                      struct claim_status **ret_status, struct error *err)
{
    cleanup_with(claim_status) struct claim_status *status =
        xcalloc(1, sizeof *status);
    cleanup_free struct reading *r = xcalloc(1, sizeof *r);
    r->base = (struct claim_reading){.arena = &status->arena, .err = err};
    r->status = status;
    status->owner = (struct claim_pod){"", ""};
    status->node = "";
    int rc = claim_read_object(json, size, CLAIM_OBJECT_MAX, object_rows,
                               &r->base);
    if (rc == 0)
        rc = finish(r);
    if (rc < 0)
        return rc;
    if (!r->spec.data)
        (void)error_set(&status->bad, EINVAL, "spec: must be an object");
    else if (claim_spec_read(r->spec.data, r->spec.size, &status->spec,
                             &status->bad) < 0)
        (void)error_wrap(&status->bad, "spec");
    *ret_status = steal(&status);
    return 0;
}

void claim_status_destroy(struct claim_status *status)
{
    if (!status)
        return;
    claim_spec_destroy(status->spec);
    arena_fini(&status->arena);
    free(status);
}
