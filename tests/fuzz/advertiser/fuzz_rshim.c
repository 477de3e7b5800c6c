/* What rshim tells: whatever it is, what is read keeps to its limits and is
 * clean, and belongs to at most one of two cards. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/prep/rshim.h"
#include "lib/base/hidden_text.h"

static void check_text(const char *text)
{
    size_t size = strlen(text);
    if (size > RSHIM_TEXT_MAX)
        abort();
    for (size_t at = 0; at < size;) {
        bool hidden;
        at += hidden_text_next(text + at, size - at, &hidden);
        if (hidden)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rshim rshim;
    rshim_read((const char *)data, size, &rshim);
    check_text(rshim.device);
    check_text(rshim.mode);
    check_text(rshim.info);
    check_text(rshim.part);
    if (rshim_is_of(&rshim, "0000:17:00.0") &&
        rshim_is_of(&rshim, "0001:17:00.0"))
        abort();
    return 0;
}
