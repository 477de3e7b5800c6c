#include "extender/admit/tokens.h"

#include <gnutls/crypto.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/lower_bound.h"

#define TOKEN_CHARACTERS                   \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"           \
    "abcdefghijklmnopqrstuvwxyz0123456789" \
    "-._~+/="

enum { DIGEST = 32 };

static const char *const verbs[] = {"log", "exec", "attach", "portforward",
                                    "view"};
#define ALL_VERBS ((1U << ARRAY_LEN(verbs)) - 1)

struct right {
    unsigned verbs;                          /* a bit for each */
    char namespace[TOKEN_NAMESPACE_MAX + 1]; /* "*": all */
};

struct token {
    uint8_t digest[DIGEST];
    char *user;
    struct right *rights;
    size_t n_rights;
    struct scope *scope; /* NULL: all namespaces */
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

/* "exec:team-a"; what stands there may be a token, and is not shown. */
static bool right_read(const char *text, size_t size, struct right *ret_right)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const char *colon = memchr(text, ':', size);
    size_t verb = colon ? (size_t)(colon - text) : 0;
    size_t namespace = colon ? size - verb - 1 : 0;
    unsigned bits = verb == 1 && *text == '*' ? ALL_VERBS : 0;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strlen(verbs[i]) == verb && memcmp(verbs[i], text, verb) == 0)
            bits = 1U << i;
    if (!bits || namespace == 0 || namespace > TOKEN_NAMESPACE_MAX)
        return false;
    memcpy(ret_right->namespace, colon + 1, namespace);
    ret_right->namespace[namespace] = '\0';
    ret_right->verbs = bits;
    return strcmp(ret_right->namespace, "*") == 0 ||
           strspn(ret_right->namespace, letters) == namespace;
}

/* What stands behind the user, each with a comma before. */
static int rights_read(struct token *t, const char *text, size_t size,
                       struct error *err)
{
    while (size > 0) {
        const char *next = memchr(text + 1, ',', size - 1);
        size_t length = next ? (size_t)(next - text) : size;
        if (t->n_rights == TOKEN_RIGHTS_MAX)
            return error_set(err, EINVAL, "more than %d rights",
                             TOKEN_RIGHTS_MAX);
        t->rights = xrealloc(t->rights, t->n_rights + 1, sizeof *t->rights);
        if (!right_read(text + 1, length - 1, &t->rights[t->n_rights]))
            return error_set(err, EINVAL,
                             "right %zu is not allowed: must be "
                             "VERB:NAMESPACE, VERB one of log, exec, attach, "
                             "portforward, view or *, NAMESPACE a name or *",
                             t->n_rights + 1);
        t->n_rights++;
        text += length;
        size -= length;
    }
    return 0;
}

/* One right in all namespaces, or none at all, lets see all of them. */
static struct scope *scope_of_rights(const struct token *t)
{
    const char *names[TOKEN_RIGHTS_MAX];
    for (size_t i = 0; i < t->n_rights; i++) {
        names[i] = t->rights[i].namespace;
        if (strcmp(names[i], "*") == 0)
            return NULL;
    }
    return t->n_rights ? scope_create(names, t->n_rights) : NULL;
}

static int token_add(struct tokens *t, const char *line, size_t size,
                     struct error *err)
{
    bool found;
    struct token token = {.user = NULL};
    const char *comma = memchr(line, ',', size);
    size_t length = comma ? (size_t)(comma - line) : size;
    if (!comma)
        return error_set(err, EINVAL, "must be TOKEN,USER: there is no comma");
    const char *user = comma + 1, *end = line + size;
    const char *rights = memchr(user, ',', (size_t)(end - user));
    if (!rights)
        rights = end;
    int r = check_token(line, length, err);
    if (r == 0)
        r = check_user(user, (size_t)(rights - user), err);
    if (r < 0)
        return r;
    if (t->n == TOKENS_MAX)
        return error_set(err, EINVAL, "more than %d tokens", TOKENS_MAX);
    digest_of(line, length, token.digest);
    size_t at = token_find(t, token.digest, &found);
    if (found)
        return error_set(err, EINVAL, "the token stands above already");
    r = rights_read(&token, rights, (size_t)(end - rights), err);
    if (r < 0) {
        free(token.rights);
        return r;
    }
    token.user = xstrndup(user, (size_t)(rights - user));
    token.scope = scope_of_rights(&token);
    t->list = xgrow(t->list, t->n, &t->cap, sizeof *t->list);
    memmove(&t->list[at + 1], &t->list[at], (t->n - at) * sizeof *t->list);
    t->list[at] = token;
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
    for (size_t i = 0; i < t->n; i++) {
        free(t->list[i].user);
        free(t->list[i].rights);
        scope_unref(t->list[i].scope);
    }
    free(t->list);
    free(t);
}

size_t tokens_count(const struct tokens *t)
{
    return t->n;
}

static const struct token *token_of(const struct tokens *t, const char *token)
{
    uint8_t digest[DIGEST];
    bool found;
    digest_of(token, strlen(token), digest);
    size_t at = token_find(t, digest, &found);
    return found ? &t->list[at] : NULL;
}

const char *tokens_user(const struct tokens *t, const char *token)
{
    const struct token *x = token_of(t, token);
    return x ? x->user : NULL;
}

struct scope *tokens_scope(const struct tokens *t, const char *token)
{
    const struct token *x = token_of(t, token);
    return x ? x->scope : NULL;
}

bool tokens_may(const struct tokens *t, const char *token, const char *verb,
                const char *namespace)
{
    const struct token *x = token_of(t, token);
    unsigned bit = 0;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i], verb) == 0)
            bit = 1U << i;
    if (x && x->n_rights == 0)
        return strcmp(verb, "log") == 0;
    for (size_t i = 0; x && i < x->n_rights; i++)
        if (x->rights[i].verbs & bit &&
            (strcmp(x->rights[i].namespace, "*") == 0 ||
             strcmp(x->rights[i].namespace, namespace) == 0))
            return true;
    return false;
}
