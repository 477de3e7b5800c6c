/* What a hook says while it flashes a card: whatever it writes, what is read
 * keeps to its limits, and is one clean line. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/flash/flash_said.h"
#include "lib/base/hidden_text.h"

static void check(const char *text, size_t max)
{
    size_t size = strlen(text);
    if (size > max)
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
    struct flash_said said, again;
    flash_said_read((const char *)data, size, &said);
    if (said.percent < -1 || said.percent > 100)
        abort();
    check(said.phase, FLASH_PHASE_MAX);
    check(said.version, FLASH_VERSION_MAX);
    /* a line that is not whole says nothing */
    while (size > 0 && data[size - 1] != '\n')
        size--;
    flash_said_read((const char *)data, size, &again);
    if (said.percent != again.percent || strcmp(said.phase, again.phase) ||
        strcmp(said.version, again.version))
        abort();
    return 0;
}
