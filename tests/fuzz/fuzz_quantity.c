/* Any bytes as a quantity: no crash, nothing negative, and an answer only for
 * what is one. */
#include <stdint.h>
#include <stdlib.h>

#include "model/pod/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t milli = -7;
    if (quantity_parse((const char *)data, size, &milli)) {
        if (milli < 0 || quantity_kib(milli) < 0)
            abort();
    } else if (milli != -7) {
        abort();
    }
    return 0;
}
