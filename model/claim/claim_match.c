#include "model/claim/claim_match.h"

#include <string.h>

/* As ToleratesTaint() of k8s.io/dynamic-resource-allocation/resourceclaim. */
static bool tolerates(const struct claim_toleration *t,
                      const struct claim_taint *taint)
{
    return (!*t->effect || strcmp(t->effect, taint->effect) == 0) &&
           (!*t->key || strcmp(t->key, taint->key) == 0) &&
           (t->exists || strcmp(t->value, taint->value) == 0);
}

bool claim_tolerates(const struct claim_request *request,
                     const struct claim_taint *taint)
{
    if (strcmp(taint->effect, "NoSchedule") != 0 &&
        strcmp(taint->effect, "NoExecute") != 0)
        return true;
    for (size_t i = 0; i < request->n_tolerations; i++)
        if (tolerates(&request->tolerations[i], taint))
            return true;
    return false;
}

/* A device, and whose it is. */
struct candidate {
    const struct claim_device *device;
    const char *driver;
};

/* Who asks is named in front of a selector's own words. */
static int match_selectors(struct claim_cel *const *selectors, size_t n,
                           const char *whose, const char *name,
                           const struct candidate *c, struct error *why)
{
    for (size_t i = 0; i < n; i++) {
        struct error said;
        bool match = false;
        int rc = claim_cel_eval(selectors[i], c->device, c->driver, &match,
                                &said);
        if (rc < 0)
            return error_set(why, said.code, "%s \"%s\": selector %zu: %s",
                             whose, name, i + 1, said.text);
        if (!match) {
            (void)error_set(why, ENODEV,
                            "%s \"%s\": selector %zu does not match", whose,
                            name, i + 1);
            return 0;
        }
    }
    return 1;
}

static int match_capacities(const struct claim_request *request,
                            const struct claim_device *device,
                            struct error *why)
{
    for (size_t i = 0; i < request->n_needs; i++) {
        const struct claim_capacity *need = &request->needs[i];
        const struct claim_capacity *has = claim_capacity_find(
            device->capacities, device->n_capacities, need->key);
        if (has && claim_capacity_take(has, need->milli) >= 0)
            continue;
        (void)error_set(why, ENODEV, "request \"%s\": %s: %s", request->name,
                        need->key,
                        has ? "the device does not allow so much"
                            : "the device has no such capacity");
        return 0;
    }
    return 1;
}

int claim_match(const struct claim_class *class,
                const struct claim_request *request,
                const struct claim_device *device, const char *driver,
                struct error *why)
{
    if (class->bad.code)
        return error_set(why, ENOTSUP, "class \"%s\": %s", class->name,
                         class->bad.text);
    const struct candidate c = {device, driver};
    int rc = match_selectors(class->selectors, class->n_selectors, "class",
                             class->name, &c, why);
    if (rc == 1)
        rc = match_selectors(request->selectors, request->n_selectors,
                             "request", request->name, &c, why);
    if (rc == 1)
        rc = match_capacities(request, device, why);
    for (size_t i = 0; rc == 1 && i < device->n_taints; i++) {
        const struct claim_taint *t = &device->taints[i];
        if (claim_tolerates(request, t))
            continue;
        rc = 0;
        (void)error_set(why, ENODEV,
                        "request \"%s\": does not tolerate the device's taint "
                        "%s%s%s:%s",
                        request->name, t->key, *t->value ? "=" : "", t->value,
                        t->effect);
    }
    return rc;
}

const struct claim_attribute *
claim_match_attribute(const struct claim_device *device, const char *qualified)
{
    char domain[CLAIM_NAME_MAX + 1];
    const char *slash = strchr(qualified, '/');
    size_t size = slash ? (size_t)(slash - qualified) : 0;
    if (!slash || size >= sizeof domain)
        return NULL;
    memcpy(domain, qualified, size);
    domain[size] = '\0';
    return claim_device_attribute(device, domain, slash + 1);
}

bool claim_attribute_equal(const struct claim_attribute *a,
                           const struct claim_attribute *b)
{
    return a->type == b->type && a->type != CLAIM_OTHER &&
           a->number == b->number && strcmp(a->text, b->text) == 0;
}
