#include "model/claim/pod_claims.h"

#include <string.h>

#include "model/claim/claim_read.h"

struct reading {
    struct claim_reading base;
    struct pod_claims claims;
    /* what containers use, and what the status says: both may stand before
     * the claims themselves */
    const char *used[POD_CLAIMS_MAX];
    struct pod_claim made[POD_CLAIMS_MAX];
    size_t n_used, n_made;
    struct jtext extended;
};

struct names {
    struct jtext name, claim, template;
};

static const struct jrow names_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct names, name),
    JROW("resourceClaimName", JROW_NULLABLE, jrow_text, struct names, claim),
    JROW("resourceClaimTemplateName", JROW_NULLABLE, jrow_text, struct names,
         template),
    JROW_END,
};

static bool too_many(struct reading *r, struct jscan *s, size_t n,
                     const char *path)
{
    if (n == POD_CLAIMS_MAX)
        claim_refuse(&r->base, s, EINVAL, "%s: are more than %d", path,
                     POD_CLAIMS_MAX);
    return n == POD_CLAIMS_MAX;
}

static void read_claim(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct pod_claims *all = &r->claims;
    struct names n = {0};
    if (too_many(r, s, all->n, "spec.resourceClaims") ||
        !jrow_read(s, JROW_STRICT, names_rows, &n))
        return;
    all->items[all->n++] = (struct pod_claim){
        .name = claim_need(&r->base, s, &n.name, CLAIM_NAME_MAX,
                           "spec.resourceClaims[].name"),
        .claim = claim_keep(&r->base, s, &n.claim, CLAIM_NAME_MAX,
                            "spec.resourceClaims[].resourceClaimName"),
        .template =
            claim_keep(&r->base, s, &n.template, CLAIM_NAME_MAX,
                       "spec.resourceClaims[].resourceClaimTemplateName"),
        .made = "",
    };
}

static void read_made(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct names n = {0};
    if (too_many(r, s, r->n_made, "status.resourceClaimStatuses") ||
        !jrow_read(s, JROW_STRICT, names_rows, &n))
        return;
    r->made[r->n_made++] = (struct pod_claim){
        .name = claim_keep(&r->base, s, &n.name, CLAIM_NAME_MAX,
                           "status.resourceClaimStatuses[].name"),
        .made = claim_keep(&r->base, s, &n.claim, CLAIM_NAME_MAX,
                           "status.resourceClaimStatuses[].resourceClaimName"),
    };
}

static void read_use(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct names n = {0};
    if (!jrow_read(s, JROW_STRICT, names_rows, &n))
        return;
    const char *name = claim_keep(&r->base, s, &n.name, CLAIM_NAME_MAX,
                                  "spec.containers[].resources.claims[].name");
    for (size_t i = 0; name && i < r->n_used; i++)
        if (strcmp(r->used[i], name) == 0)
            return;
    if (!too_many(r, s, r->n_used, "spec.containers[].resources.claims") &&
        name)
        r->used[r->n_used++] = name;
}

static const struct jrow resources_rows[] = {
    JROW_EACH("claims", JROW_NULLABLE, read_use),
    JROW_END,
};
static const struct jrow container_rows[] = {
    JROW_OBJECT("resources", JROW_NULLABLE, resources_rows),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW_EACH("resourceClaims", JROW_NULLABLE, read_claim),
    JROW_OBJECTS("containers", JROW_NULLABLE, container_rows),
    JROW_OBJECTS("initContainers", JROW_NULLABLE, container_rows),
    JROW_END,
};
static const struct jrow extended_rows[] = {
    JROW("resourceClaimName", JROW_NULLABLE, jrow_text, struct reading,
         extended),
    JROW_END,
};
static const struct jrow status_rows[] = {
    JROW_EACH("resourceClaimStatuses", JROW_NULLABLE, read_made),
    JROW_OBJECT("extendedResourceClaimStatus", JROW_NULLABLE, extended_rows),
    JROW_END,
};
static const struct jrow object_rows[] = {
    JROW_OBJECT("spec", JROW_NULLABLE, spec_rows),
    JROW_OBJECT("status", JROW_NULLABLE, status_rows),
    JROW_END,
};

static void join(struct reading *r)
{
    for (size_t i = 0; i < r->claims.n; i++) {
        struct pod_claim *c = &r->claims.items[i];
        for (size_t j = 0; j < r->n_used; j++)
            c->used = c->used || strcmp(r->used[j], c->name) == 0;
        for (size_t j = 0; j < r->n_made; j++)
            if (strcmp(r->made[j].name, c->name) == 0) {
                c->made = r->made[j].made;
                c->made_known = true;
            }
    }
}

int pod_claims_read(const char *json, size_t size, struct pod_claims *ret,
                    struct error *err)
{
    struct reading r = {.base = {.err = err}};
    struct jscan none; /* it only carries the refusal */
    jscan_init(&none, "", 0);
    r.base.arena = &r.claims.arena;
    int rc = claim_read_object(json, size, POD_CLAIMS_POD_MAX, object_rows,
                               &r.base);
    if (rc == 0) {
        r.claims.extended =
            claim_keep(&r.base, &none, &r.extended, CLAIM_NAME_MAX,
                       "status.extendedResourceClaimStatus.resourceClaimName");
        rc = r.base.code;
    }
    if (rc == 0) {
        join(&r);
        *ret = r.claims;
    } else {
        pod_claims_fini(&r.claims);
    }
    return rc;
}

void pod_claims_fini(struct pod_claims *claims)
{
    arena_fini(&claims->arena);
    claims->n = 0;
}

const struct pod_claim *pod_claims_find(const struct pod_claims *claims,
                                        const char *name)
{
    for (size_t i = 0; i < claims->n; i++)
        if (strcmp(claims->items[i].name, name) == 0)
            return &claims->items[i];
    return NULL;
}
