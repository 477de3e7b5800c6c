#include "extender/state/scope.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

struct scope {
    atomic_uint refs;
    size_t n;
    char **names;
    uint64_t hash;
};

struct scope *scope_create(const char *const *names, size_t n)
{
    struct scope *s = xcalloc(1, sizeof *s);
    atomic_init(&s->refs, 1);
    s->names = xcalloc(n + 1, sizeof *s->names);
    s->hash = 1;
    for (size_t i = 0; i < n; i++) {
        if (scope_sees(s, names[i]))
            continue;
        s->names[s->n++] = xstrdup(names[i]);
        s->hash = hash_mix(s->hash, hash_bytes(names[i], strlen(names[i])));
    }
    return s;
}

DEFINE_REF(scope_ref, struct scope)

void scope_unref(struct scope *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    for (size_t i = 0; i < s->n; i++)
        free(s->names[i]);
    free(s->names);
    free(s);
}

static bool sees(const struct scope *s, const char *namespace, size_t size)
{
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->names[i]) == size &&
            memcmp(s->names[i], namespace, size) == 0)
            return true;
    return false;
}

bool scope_sees(const struct scope *s, const char *namespace)
{
    return !s || sees(s, namespace, strlen(namespace));
}

bool scope_sees_object(const struct scope *s, const char *object)
{
    return !s || sees(s, object, strcspn(object, "/"));
}

bool scope_is_same(const struct scope *a, const struct scope *b)
{
    if (!a || !b)
        return a == b;
    for (size_t i = 0; i < a->n; i++)
        if (!scope_sees(b, a->names[i]))
            return false;
    return a->n == b->n;
}

uint64_t scope_hash(const struct scope *s)
{
    return s ? s->hash : 0;
}

void scope_write(const struct scope *s, struct str *out)
{
    for (size_t i = 0; s && i < s->n; i++)
        str_addf(out, "%s%s", i ? ", " : "", s->names[i]);
}
