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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(topo) struct topo *topo = join_one((const char *)data, size);
    if (!topo)
        return 0;
    const struct slice_epoch epoch = {"boot", 1};
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    slice_encode(topo, &epoch, 0, &text);
    cleanup_with(topo) struct topo *back = join_one(text.data, text.size);
    char a[17], b[17];
    if (!back)
        abort();
    slice_content_hash(topo, a);
    slice_content_hash(back, b);
    if (strcmp(a, b) != 0)
        abort();
    return 0;
}
