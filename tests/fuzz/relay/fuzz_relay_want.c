/* What a client wants: whatever its query says, its node is told an object of
 * JSON, or the client why not. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "extender/relay/relay_want.h"
#include "lib/base/json.h"
#include "lib/http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *get(const void *uri, const char *name, size_t n)
{
    return uri_param_n(uri, name, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct uri u = {.repeats = "command"};
    cleanup_free char *target = xstrndup((const char *)data, size);
    struct error err = {0};
    if (uri_parse(target, &u, &err) < 0)
        return 0;
    const struct relay_query query = {get, &u};
    for (unsigned k = 0; k < RELAY_KINDS; k++) {
        cleanup_str struct str out = STR_INIT(RELAY_WANT_MAX);
        str_add(&out, "{");
        *err.text = '\0';
        if (relay_want_read((enum relay_kind)k, &query, &out, &err) < 0) {
            assert(*err.text);
            continue;
        }
        str_add(&out, "}");
        assert(!out.overflow);
        assert(json_check(out.data, out.size, &err) == 0);
    }
    return 0;
}
