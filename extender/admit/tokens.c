#include "extender/admit/tokens.h"

#include <gnutls/crypto.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/lower_bound.h"

#define TOKEN_CHARACTERS                   \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"           \
    "abcdefghijklmnopqrstuvwxyz0123456789" \
    "-._~+/="

enum { DIGEST = 32 };

struct token {
    uint8_t digest[DIGEST];
    char *user;
};

struct tokens {
    struct token *list; /* by digest */
    size_t n, cap;
};

static void digest_of(const char *token, size_t size,
                      uint8_t ret_digest[DIGEST])
{
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, token, size, ret_digest) < 0)
        abort(); /* it is always there */
}

/* Where the digest stands, or would. */
static size_t token_find(const struct tokens *t, const uint8_t *digest,
                         bool *ret_found)
{
    size_t at = lower_bound(t->n, i,
                            memcmp(t->list[i].digest, digest, DIGEST) < 0);
    *ret_found = at < t->n && memcmp(t->list[at].digest, digest, DIGEST) == 0;
    return at;
}

static int check_token(const char *token, size_t size, struct error *err)
{
    if (size < TOKEN_MIN || size > TOKEN_MAX)
        return error_set(err, EINVAL,
                         "the token has %zu characters, must have %d to %d",
                         size, TOKEN_MIN, TOKEN_MAX);
    for (size_t i = 0; i < size; i++)
        if (!token[i] || !strchr(TOKEN_CHARACTERS, token[i]))
            return error_set(err, EINVAL,
                             "character %zu of the token is not allowed: only "
                             "letters, digits and -._~+/=",
                             i + 1);
    return 0;
}

static int check_user(const char *user, size_t size, struct error *err)
{
    if (size == 0 || size > TOKEN_USER_MAX)
        return error_set(err, EINVAL,
                         "the user's name has %zu characters, must have 1 to "
                         "%d",
                         size, TOKEN_USER_MAX);
    for (size_t i = 0; i < size; i++)
        if (user[i] <= ' ' || user[i] > '~' || user[i] == ',')
            return error_set(err, EINVAL,
                             "character %zu of the user's name is not allowed: "
                             "only printable ASCII without space and comma",
                             i + 1);
    return 0;
}

static int token_add(struct tokens *t, const char *line, size_t size,
                     struct error *err)
{
    uint8_t digest[DIGEST];
    bool found;
    const char *comma = memchr(line, ',', size);
    size_t length = comma ? (size_t)(comma - line) : size;
    if (!comma)
        return error_set(err, EINVAL, "must be TOKEN,USER: there is no comma");
    int r = check_token(line, length, err);
    if (r == 0)
        r = check_user(comma + 1, size - length - 1, err);
    if (r < 0)
        return r;
    if (t->n == TOKENS_MAX)
        return error_set(err, EINVAL, "more than %d tokens", TOKENS_MAX);
    digest_of(line, length, digest);
    size_t at = token_find(t, digest, &found);
    if (found)
        return error_set(err, EINVAL, "the token stands above already");
    t->list = xgrow(t->list, t->n, &t->cap, sizeof *t->list);
    memmove(&t->list[at + 1], &t->list[at], (t->n - at) * sizeof *t->list);
    memcpy(t->list[at].digest, digest, DIGEST);
    t->list[at].user = xstrndup(comma + 1, size - length - 1);
    t->n++;
    return 0;
}

int tokens_parse(const char *text, size_t size, struct tokens **ret_tokens,
                 struct error *err)
{
    cleanup_with(tokens) struct tokens *t = xcalloc(1, sizeof *t);
    size_t number = 0;
    for (const char *p = text, *end = text + size; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t length = (size_t)((newline ? newline : end) - p);
        const char *line = p;
        p += length + (newline != NULL);
        number++;
        if (length > 0 && line[length - 1] == '\r')
            length--;
        if (length == 0 || *line == '#')
            continue;
        int r = token_add(t, line, length, err);
        if (r < 0) {
            (void)error_wrap(err, "line %zu", number);
            return r;
        }
    }
    if (t->n == 0)
        return error_set(err, EINVAL,
                         "holds no token: one line for each, "
                         "TOKEN,USER");
    *ret_tokens = steal(&t);
    return 0;
}

void tokens_destroy(struct tokens *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->list[i].user);
    free(t->list);
    free(t);
}

size_t tokens_count(const struct tokens *t)
{
    return t->n;
}

const char *tokens_user(const struct tokens *t, const char *token)
{
    uint8_t digest[DIGEST];
    bool found;
    digest_of(token, strlen(token), digest);
    size_t at = token_find(t, digest, &found);
    return found ? t->list[at].user : NULL;
}
