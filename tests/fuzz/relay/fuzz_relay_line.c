/* The first line of a node: what is taken has a status that an answer may have,
 * and a text that ends. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "extender/relay/relay_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct relay_line line;
    struct error err = {0};
    if (size > RELAY_LINE_MAX)
        return 0;
    if (relay_line_read((const char *)data, size, &line, &err) < 0) {
        assert(*err.text);
        return 0;
    }
    assert(line.status == 200 || (line.status >= 400 && line.status <= 599));
    assert(memchr(line.error, '\0', sizeof line.error));
    return 0;
}
