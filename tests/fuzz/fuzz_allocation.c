/* The reader of stored allocations: what it takes it writes back, and that
 * reads as the same again. */
#include "extender/state/allocation.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(allocation) struct allocation *a = NULL, *b = NULL;
    cleanup_str struct str first = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str second = STR_INIT(STR_MAX_DEFAULT);
    struct error err = {0};
    int e = allocation_decode((const char *)data, size, &a, &err);
    if (e < 0) {
        assert(e == -EINVAL && err.code == EINVAL && err.text[0]);
        assert(!a);
        return 0;
    }
    allocation_encode(a, &first);
    e = allocation_decode(first.data, first.size, &b, &err);
    assert(e == 0);
    allocation_encode(b, &second);
    assert(first.size == second.size &&
           memcmp(first.data, second.data, first.size) == 0);
    allocation_unref(b);
    b = NULL;
    return 0;
}
