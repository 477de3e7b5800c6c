/* Any bytes as a slice: no crash; what is accepted comes out of encoding
 * and decoding as it went in. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/slice/slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct topo *join_one(const char *json, size_t size)
{
    cleanup_with(slice) struct slice *slice = NULL;
    struct topo *topo = NULL;
    struct error err;
    if (slice_decode(json, size, &slice, &err) < 0 ||
        slice_get_pool_count(slice) != 1)
        return NULL;
    return slice_join(&slice, 1, &topo, &err) < 0 ? NULL : topo;
}

/* One slice may list more devices than one of ours does. */
static struct topo *through_slices(const struct topo *topo)
{
    const struct slice_epoch epoch = {"boot", 1};
    struct slice *slices[SLICE_POOL_SLICES_MAX] = {0};
    struct topo *back = NULL;
    size_t n = slice_count(topo);
    for (size_t i = 0; i < n; i++) {
        cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
        slice_encode(topo, &epoch, i, &text);
        if (slice_decode(text.data, text.size, &slices[i], NULL) < 0 ||
            slice_get_given(slices[i]) != slice_given(topo, i))
            abort();
    }
    if (slice_join(slices, n, &back, NULL) < 0)
        abort();
    for (size_t i = 0; i < n; i++)
        slice_unref(slices[i]);
    return back;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(topo) struct topo *topo = join_one((const char *)data, size);
    if (!topo)
        return 0;
    cleanup_with(topo) struct topo *back = through_slices(topo);
    char a[17], b[17];
    slice_content_hash(topo, a);
    slice_content_hash(back, b);
    if (strcmp(a, b) != 0)
        abort();
    return 0;
}
