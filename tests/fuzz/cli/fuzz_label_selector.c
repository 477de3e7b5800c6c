/* A selector: any text is one or refused with a reason, and what selects does
 * so twice. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/base/label_selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *value_of(void *ctx, const char *key)
{
    assert(*key);
    return strcmp(key, "none") == 0 ? NULL : ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(label_selector) struct label_selector *s = NULL;
    cleanup_free char *text = xstrndup(size ? (const char *)data : "", size);
    struct error err = {0};
    int r = label_selector_parse(text, &s, &err);
    assert(r == -EINVAL ? !s && err.text[0] : r == 0 && s);
    if (r == 0)
        assert(label_selector_matches(s, value_of, text) ==
               label_selector_matches(s, value_of, text));
    return 0;
}
