/* How DRA may give a device: who must not have it (taints), and how much of
 * it a claim may take.  It follows from the topology and is not read back into
 * it; but whoever wrote it has to see when somebody else changed it. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "model/slice/slice_private.h"

/* --- written -------------------------------------------------------------- */

static void add_taint(struct str *out, const char *key, const char *value)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "key", key);
    jwrite_text(out, "value", value);
    jwrite_text(out, "effect", "NoSchedule");
    jwrite_end_object(out);
}

static void add_card_taints(struct str *out, const struct device *d)
{
    if (!d->by_claims)
        add_taint(out, SLICE_TAINT_ALLOCATED, "pods");
    if (strcmp(d->health, "lost") == 0)
        add_taint(out, SLICE_TAINT_LOST, "runtime");
    else if (strcmp(d->health, "drained") == 0)
        add_taint(out, SLICE_TAINT_DRAINED, "operator");
    else if (d->unhealthy)
        add_taint(out, SLICE_TAINT_UNHEALTHY, "withdrawn");
}

static bool has_taint(const struct device *d)
{
    return d->kind != DEVICE_CARD || !d->by_claims || d->unhealthy ||
           strcmp(d->health, "lost") == 0 || strcmp(d->health, "drained") == 0;
}

/* Nobody can tell what is left of a card of unknown size. */
bool slice_is_shared(const struct device *d)
{
    return d->kind == DEVICE_CARD && d->by_claims && d->cores != 0 &&
           d->memory_mib != 0;
}

void slice_write_given(const struct device *d, struct str *out)
{
    if (slice_is_shared(d))
        jwrite_bool(out, "allowMultipleAllocations", true);
    if (!has_taint(d))
        return;
    jwrite_array(out, "taints");
    if (d->kind == DEVICE_CARD)
        add_card_taints(out, d);
    else
        add_taint(out, SLICE_TAINT_NOT_GIVEN, "topology");
    str_add_c(out, ']');
}

/* Who states nothing takes all.  One step more than the least must fit, says
 * the API server. */
void slice_write_policy(const char *all, uint64_t n, const char *unit,
                        struct str *out)
{
    char one[8];
    (void)snprintf(one, sizeof one, "1%s", unit);
    jwrite_object(out, "requestPolicy");
    jwrite_text(out, "default", all);
    jwrite_object(out, "validRange");
    jwrite_text(out, "min", one);
    if (n > 1)
        jwrite_text(out, "step", one);
    str_add(out, "}}");
}

/* --- read ----------------------------------------------------------------- */

static void mix(struct slice *s, const char *text)
{
    const uint64_t words[] = {s->given, hash_bytes(text, strlen(text))};
    s->given = hash_bytes(words, sizeof words);
}

static int fail_type(const struct slice *s, const char *path, const char *want,
                     struct error *err)
{
    return error_set(err, EINVAL, "spec.devices[%zu].%s: must be %s",
                     s->n_devices, path, want);
}

static const cJSON *member(const cJSON *json, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(json, name);
    return m && !cJSON_IsNull(m) ? m : NULL;
}

static int read_taint(const cJSON *taint, struct slice *s, struct error *err)
{
    static const char *const members[] = {"key", "value", "effect"};
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const cJSON *m = member(taint, members[i]);
        if (!cJSON_IsObject(taint) || (m && !cJSON_IsString(m)))
            return fail_type(s, "taints",
                             "objects with texts as key, value and effect",
                             err);
        mix(s, members[i]);
        mix(s, m ? m->valuestring : "");
    }
    return 0;
}

static int read_taints(const cJSON *list, struct slice *s, struct error *err)
{
    const cJSON *taint;
    if (list && !cJSON_IsArray(list))
        return fail_type(s, "taints", "an array", err);
    cJSON_ArrayForEach(taint, list)
    {
        int r = read_taint(taint, s, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The API server may write an amount in another way: "1000" as "1k". */
static void mix_amount(struct slice *s, const cJSON *json, const char *name)
{
    const cJSON *m = member(json, name);
    char text[24];
    uint64_t value;
    mix(s, name);
    if (!cJSON_IsString(m)) {
        mix(s, m ? "?" : "");
    } else if (slice_parse_quantity(m->valuestring, &value)) {
        (void)snprintf(text, sizeof text, "%" PRIu64, value);
        mix(s, text);
    } else {
        mix(s, m->valuestring);
    }
}

static void read_policy(const cJSON *capacity, struct slice *s)
{
    static const char *const amounts[] = {"min", "max", "step"};
    const cJSON *policy = member(capacity, "requestPolicy");
    if (!policy)
        return;
    const cJSON *range = member(policy, "validRange");
    mix(s, capacity->string);
    mix_amount(s, policy, "default");
    mix(s, member(policy, "validValues") ? "validValues" : "");
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++)
        mix_amount(s, range, amounts[i]);
}

int slice_read_given(const cJSON *json, struct slice *s, struct error *err)
{
    const cJSON *capacities = member(json, "capacity");
    const cJSON *multiple = member(json, "allowMultipleAllocations");
    if (multiple && !cJSON_IsBool(multiple))
        return fail_type(s, "allowMultipleAllocations", "true or false", err);
    mix(s, s->devices[s->n_devices].d.id);
    if (cJSON_IsTrue(multiple))
        mix(s, "multiple");
    /* in an order of our own: theirs is any */
    for (enum capacity_id id = 0; id < CAPACITY_COUNT; id++) {
        const cJSON *c = member(capacities, slice_capacities[id].name);
        if (c)
            read_policy(c, s);
    }
    return read_taints(member(json, "taints"), s, err);
}

uint64_t slice_get_given(const struct slice *slice)
{
    return slice->given;
}

uint64_t slice_given(const struct topo *topo, size_t index)
{
    const struct slice_epoch epoch = {"boot", 1};
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    cleanup_with(slice) struct slice *slice = NULL;
    slice_encode(topo, &epoch, index, &text);
    /* what we write can be read: a test holds us to it */
    if (slice_decode(text.data, text.size, &slice, NULL) < 0)
        return 0;
    return slice->given;
}
