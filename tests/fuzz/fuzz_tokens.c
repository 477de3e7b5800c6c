/* A file of tokens: what is accepted is a list of users that are found by
 * the very tokens that stand in the file, and an error never shows one. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "extender/admit/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    cleanup_with(tokens) struct tokens *t = NULL;
    struct error err = {0};
    size_t n = 0;
    if (tokens_parse(text, size, &t, &err) < 0) {
        assert(err.code == EINVAL && err.text[0]);
        return 0;
    }
    for (const char *p = text, *end = text + size; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *line_end = newline ? newline : end;
        const char *comma = memchr(p, ',', (size_t)(line_end - p));
        if (*p != '#' && comma) {
            cleanup_free char *token = xstrndup(p, (size_t)(comma - p));
            const char *user = tokens_user(t, token);
            assert(user && strncmp(user, comma + 1, strlen(user)) == 0);
            n++;
        }
        p = line_end + 1;
    }
    assert(n == tokens_count(t) && n > 0 && n <= TOKENS_MAX);
    return 0;
}
