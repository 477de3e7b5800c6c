/* Any bytes as a ResourceSlice: no crash; a refusal says why and makes
 * nothing; what is read is found again by its name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_device(const struct claim_device *d)
{
    require(d->name[0] && d->pcie_root && d->node);
    require(d->n_attributes <= CLAIM_ATTRIBUTES_MAX &&
            d->n_capacities <= CLAIM_CAPACITIES_MAX &&
            d->n_taints <= CLAIM_TAINTS_MAX);
    for (size_t i = 0; i < d->n_attributes; i++) {
        const struct claim_attribute *a = &d->attributes[i];
        require(a->type <= CLAIM_OTHER && strlen(a->text) <= CLAIM_TEXT_MAX);
        a = claim_device_attribute(d, a->domain, a->name);
        require(a && strcmp(a->name, d->attributes[i].name) == 0);
    }
    for (size_t i = 0; i < d->n_capacities; i++) {
        const struct claim_capacity *c = &d->capacities[i];
        require(c->milli >= 0 &&
                claim_device_capacity(d, c->domain, c->name) != NULL);
        require(claim_capacity_take(c, 1500) <= c->milli);
    }
    for (size_t i = 0; i < d->n_taints; i++)
        require(d->taints[i].key && d->taints[i].value && d->taints[i].effect);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(claim_slice) struct claim_slice *slice = NULL;
    struct error err = {0};
    int rc = claim_slice_read((const char *)data, size, &slice, &err);
    if (rc < 0) {
        require(rc == -EINVAL && err.code == EINVAL && err.text[0] && !slice);
        return 0;
    }
    require(slice->name[0] && slice->driver[0] && slice->pool[0]);
    require((slice->reach == CLAIM_OF_NODE) == (slice->node[0] != '\0'));
    for (size_t i = 0; i < slice->n_devices; i++)
        check_device(&slice->devices[i]);
    return 0;
}
