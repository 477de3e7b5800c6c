/* Any bytes as a Node, a slice or a list of slices from the API server: no
 * crash, and what is read is bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/publish/kube_objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    cleanup_with(kube_objects_slices) struct kube_objects_slices *all = NULL;
    struct kube_objects one;
    struct error err;
    if (kube_objects_read(json, size, &one, &err) == 0 &&
        (!*one.name || strlen(one.uid) > KUBE_OBJECTS_TEXT_MAX))
        abort();
    if (kube_objects_read_slices(json, size, &all, &err) == 0 &&
        (all->n > KUBE_OBJECTS_SLICES_MAX || (all->more && all->n == 0)))
        abort();
    return 0;
}
