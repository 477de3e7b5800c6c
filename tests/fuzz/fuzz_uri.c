/* A request target: whatever comes, the pieces are texts without control
 * characters inside their buffers, and matching them reads nothing else. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t check_text(const char *text, bool lines)
{
    for (const char *p = text; *p; p++)
        assert(((unsigned char)*p >= 0x20 && *p != 0x7f) ||
               (lines && (*p == '\t' || *p == '\n')));
    return strlen(text);
}

/* The parameter "c" may repeat; the others stand once. */
static void check_params(const struct uri *u, size_t *total)
{
    size_t n_c = 0;
    for (unsigned i = 0; i < u->n_params; i++) {
        const char *name = u->params[i].name, *value = u->params[i].value;
        bool c = strcmp(name, "c") == 0;
        *total += check_text(name, false) + check_text(value, c);
        assert(uri_param_n(u, name, c ? n_c++ : 0) == value);
    }
    assert(!uri_param_n(u, "c", n_c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const patterns[] = {
        "/", "/v1/nodes/:", "/:/:/:/:", "/::", "/a/::"};
    static struct uri u = {.repeats = "c"};
    cleanup_free char *target = xstrndup((const char *)data, size);
    const char *args[URI_ARGS_MAX];
    struct error err;
    if (uri_parse(target, &u, &err)) {
        assert(strlen(u.path) <= URI_MAX);
        return 0;
    }
    size_t total = 0;
    for (unsigned i = 0; i < u.n_segments; i++)
        total += check_text(u.segments[i], false);
    check_params(&u, &total);
    assert(total <= strlen(target));
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (uri_match(&u, patterns[i], args))
            for (size_t k = 0; k < URI_ARGS_MAX; k++)
                (void)strlen(args[k]);
    return 0;
}
