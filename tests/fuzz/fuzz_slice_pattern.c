/* Any bytes as two slices with a NUL between them, the first as a pattern for
 * the second: what it reads is what decoding says. */
#include <stdint.h>
#include <string.h>

#include "tests/lib/patterncheck.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    if (!nul)
        return 0;
    size_t first = (size_t)(nul - text);
    const struct patterncheck_text of = {text, first};
    const struct patterncheck_text other = {nul + 1, size - first - 1};
    (void)patterncheck(&of, &of);
    (void)patterncheck(&of, &other);
    return 0;
}
