/* A Cookie header: what is found is the value of the first cookie of that name,
 * as another reader finds it, and a value that is too long is no value. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/http/cookies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VALUE_MAX = 32 };

/* The same, piece by piece; NULL: there is none. */
static char *first_value(const char *header, const char *name)
{
    cleanup_free char *copy = xstrdup(header);
    char *rest = copy, *pair;
    while ((pair = strsep(&rest, ";"))) {
        pair += strspn(pair, " \t");
        char *equals = strchr(pair, '=');
        if (!equals)
            continue;
        *equals = '\0';
        if (strcmp(pair, name) == 0)
            return xstrdup(equals + 1);
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"biga", "__Host-biga", "b"};
    cleanup_free char *header = xstrndup((const char *)data, size);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cleanup_str struct str value = STR_INIT(VALUE_MAX);
        cleanup_free char *want = first_value(header, names[i]);
        value.soft = true;
        bool found = cookies_find(header, names[i], &value);
        assert(!found || (want && strcmp(str_text(&value), want) == 0));
        assert(found || !want || strlen(want) >= VALUE_MAX);
        assert(value.size <= VALUE_MAX);
    }
    return 0;
}
