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
