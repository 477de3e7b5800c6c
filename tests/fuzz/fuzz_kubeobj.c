/* Any bytes as a Node, a slice or a list of slices from the API server: no
 * crash, and what is read is bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/publish/kubeobj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    cleanup_with(kubeobj_slices) struct kubeobj_slices *all = NULL;
    struct kubeobj one;
    struct error err;
    if (kubeobj_read(json, size, &one, &err) == 0 &&
        (!*one.name || strlen(one.uid) > KUBEOBJ_TEXT_MAX))
        abort();
    if (kubeobj_read_slices(json, size, &all, &err) == 0 &&
        (all->n > KUBEOBJ_SLICES_MAX || (all->more && all->n == 0)))
        abort();
    return 0;
}
