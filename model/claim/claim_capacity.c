#include "model/claim/claim_capacity.h"

#include <string.h>

#include "model/claim/claim_read.h"

/* One capacity of a map. */
struct one {
    struct claim_reading *r;
    const char *path; /* of the map */
    struct claim_capacity capacity;
    int64_t values[CLAIM_VALUES_MAX];
};

static void read_amount(struct jscan *s, struct one *one, const char *member,
                        int64_t *to)
{
    cleanup_free char *path = xasprintf("%s[\"%s\"]%s", one->path,
                                        one->capacity.key, member);
    *to = claim_read_amount(one->r, s, path);
}

#define AMOUNT(name, member, field)                                      \
    static void name(struct jscan *s, void *to)                          \
    {                                                                    \
        read_amount(s, to, member, &((struct one *)to)->capacity.field); \
    }
AMOUNT(read_value, ".value", milli)
AMOUNT(read_default, ".requestPolicy.default", preset)
AMOUNT(read_min, ".requestPolicy.validRange.min", min)
AMOUNT(read_max, ".requestPolicy.validRange.max", max)
AMOUNT(read_step, ".requestPolicy.validRange.step", step)

static void read_valid(struct jscan *s, void *to)
{
    struct one *one = to;
    if (one->capacity.n_values == CLAIM_VALUES_MAX)
        claim_refuse(one->r, s, EINVAL,
                     "%s[\"%s\"].requestPolicy.validValues: are more than %d",
                     one->path, one->capacity.key, CLAIM_VALUES_MAX);
    else
        read_amount(s, one, ".requestPolicy.validValues",
                    &one->values[one->capacity.n_values++]);
}

static const struct jrow range_rows[] = {
    JROW_CALL("min", JROW_NULLABLE, JKIND_NONE, read_min),
    JROW_CALL("max", JROW_NULLABLE, JKIND_NONE, read_max),
    JROW_CALL("step", JROW_NULLABLE, JKIND_NONE, read_step),
    JROW_END,
};
static const struct jrow policy_rows[] = {
    JROW_CALL("default", JROW_NULLABLE, JKIND_NONE, read_default),
    JROW_EACH("validValues", JROW_NULLABLE, read_valid),
    JROW_OBJECT("validRange", JROW_NULLABLE, range_rows),
    JROW_END,
};
static const struct jrow device_rows[] = {
    JROW_CALL("value", JROW_STRICT, JKIND_NONE, read_value),
    JROW_OBJECT("requestPolicy", JROW_NULLABLE, policy_rows),
    JROW_END,
};

static void set_name(struct claim_reading *r, struct claim_capacity *c)
{
    const char *slash = strchr(c->key, '/');
    c->domain = slash
                    ? arena_strndup(r->arena, c->key, (size_t)(slash - c->key))
                    : "";
    c->name = slash ? slash + 1 : c->key;
}

static bool read_one(struct claim_reading *r, struct jscan *s,
                     enum capacity_form form, struct one *one)
{
    set_name(r, &one->capacity);
    if (form == CAPACITY_AMOUNT)
        read_amount(s, one, "", &one->capacity.milli);
    else
        (void)jrow_read(s, JROW_STRICT, device_rows, one); /* a fault sticks */
    if (!s->fault && one->capacity.milli < 0)
        claim_refuse(r, s, EINVAL, "%s[\"%s\"].value: must be there", one->path,
                     one->capacity.key);
    one->capacity.values = claim_keep_array(
        r, one->values, one->capacity.n_values, sizeof *one->values);
    return !s->fault;
}

size_t claim_read_capacities(struct claim_reading *r, struct jscan *s,
                             enum capacity_form form, const char *path,
                             struct claim_capacity *ret)
{
    struct jtext key;
    size_t n = 0;
    if (!jscan_object(s))
        return 0;
    while (jscan_member(s, &key)) {
        struct one one = {
            .r = r,
            .path = path,
            .capacity =
                {.milli = -1, .preset = -1, .min = -1, .max = -1, .step = -1},
        };
        if (n == CLAIM_CAPACITIES_MAX) {
            claim_refuse(r, s, EINVAL, "%s: has more than %d members", path,
                         CLAIM_CAPACITIES_MAX);
            return n;
        }
        one.capacity.key = claim_need(r, s, &key, CLAIM_NAME_MAX, path);
        if (!one.capacity.key || !read_one(r, s, form, &one))
            return n;
        ret[n++] = one.capacity;
    }
    return n;
}

const struct claim_capacity *
claim_capacity_find(const struct claim_capacity *capacities, size_t n,
                    const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(capacities[i].key, key) == 0)
            return &capacities[i];
    return NULL;
}

/* --- what a request takes ------------------------------------------------ */

/* As calculateConsumedCapacity() of k8s.io/dynamic-resource-allocation
 * (structured/internal/incubating/consumable_capacity.go). */
static int64_t round_up(const struct claim_capacity *c, int64_t milli)
{
    if (c->min >= 0) {
        if (milli <= c->min)
            return c->min;
        int64_t over = c->step > 0 ? (milli - c->min) % c->step : 0;
        if (over == 0)
            return milli;
        return milli > INT64_MAX - (c->step - over) ? -1
                                                    : milli + (c->step - over);
    }
    for (size_t i = 0; i < c->n_values; i++)
        if (milli <= c->values[i])
            return c->values[i];
    return milli;
}

/* As violatesPolicy() there. */
static bool allowed(const struct claim_capacity *c, int64_t milli)
{
    if (milli == c->preset)
        return true;
    if (c->max >= 0 && milli > c->max)
        return false;
    if (c->min >= 0 || c->max >= 0 || c->n_values == 0)
        return true;
    for (size_t i = 0; i < c->n_values; i++)
        if (c->values[i] == milli)
            return true;
    return false;
}

int64_t claim_capacity_take(const struct claim_capacity *capacity,
                            int64_t milli)
{
    int64_t take = milli >= 0              ? round_up(capacity, milli)
                   : capacity->preset >= 0 ? capacity->preset
                                           : capacity->milli;
    return take >= 0 && take <= capacity->milli && allowed(capacity, take)
               ? take
               : -1;
}
