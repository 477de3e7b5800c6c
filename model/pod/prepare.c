#include "model/pod/prepare.h"

#include <string.h>

#include "lib/base/jrow.h"

enum {
    RAW_MAX = 6 * PREPARE_HOOK_MAX, /* every character an escape */
    SHOWN_MAX = 48,                 /* bytes of a wrong value in an error */
};

/* What was found: data NULL when it is absent, or null. */
struct found {
    struct jtext vfs, sfs, hook;
    bool seen_vfs, seen_sfs, seen_hook;
};

bool prepare_hook_ok(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size <= PREPARE_HOOK_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == size;
}

static void take(struct jscan *s, bool *seen, struct jtext *ret_text)
{
    size_t at = jscan_offset(s);
    if (*seen)
        jscan_fail(s, "annotation given twice", at);
    else if (!jscan_null(s))
        (void)jscan_string(s, ret_text); /* a fault sticks */
    *seen = true;
}

static void find_vfs(struct jscan *s, void *to)
{
    struct found *found = to;
    take(s, &found->seen_vfs, &found->vfs);
}

static void find_sfs(struct jscan *s, void *to)
{
    struct found *found = to;
    take(s, &found->seen_sfs, &found->sfs);
}

static void find_hook(struct jscan *s, void *to)
{
    struct found *found = to;
    take(s, &found->seen_hook, &found->hook);
}

static const struct jrow annotation_rows[] = {
    JROW_CALL(PREPARE_VFS, JROW_STRICT, JKIND_NONE, find_vfs),
    JROW_CALL(PREPARE_SFS, JROW_STRICT, JKIND_NONE, find_sfs),
    JROW_CALL(PREPARE_HOOK, JROW_STRICT, JKIND_NONE, find_hook),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    JROW_OBJECT("annotations", JROW_NULLABLE, annotation_rows),
    JROW_END,
};
static const struct jrow pod_rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, metadata_rows),
    JROW_END,
};

static int fail_value(const char *key, const struct jtext *t,
                      const char *allowed, struct error *err)
{
    size_t shown = t->size < SHOWN_MAX ? t->size : SHOWN_MAX;
    for (size_t i = 0; i < shown; i++)
        if (t->data[i] < ' ' || t->data[i] > '~')
            shown = i; /* nothing but plain characters is repeated */
    return error_set(
        err, EDOM, "metadata.annotations[\"%s\"]: is \"%.*s%s\", must be %s",
        key, (int)shown, t->data, shown < t->size ? "…" : "", allowed);
}

/* A number without sign, leading zero or suffix. */
static int take_number(const char *key, const struct jtext *t, int max,
                       int *ret_number, struct error *err)
{
    char raw[RAW_MAX + 1], allowed[64];
    size_t size = t->size <= RAW_MAX ? jtext_decode(t, raw) : 0;
    int value = 0;
    bool ok = size > 0 && size <= 4 && strspn(raw, "0123456789") == size &&
              (raw[0] != '0' || size == 1);
    for (size_t i = 0; ok && i < size; i++)
        value = value * 10 + (raw[i] - '0');
    if (ok && value <= max) {
        *ret_number = value;
        return 0;
    }
    (void)snprintf(allowed, sizeof allowed, "a whole number from 0 to %d", max);
    return fail_value(key, t, allowed, err);
}

static int take_hook(const struct jtext *t, char ret[PREPARE_HOOK_MAX + 1],
                     struct error *err)
{
    char raw[RAW_MAX + 1], allowed[128];
    size_t size = t->size <= RAW_MAX ? jtext_decode(t, raw) : 0;
    if (size > 0 && strlen(raw) == size && prepare_hook_ok(raw)) {
        memcpy(ret, raw, size + 1);
        return 0;
    }
    (void)snprintf(allowed, sizeof allowed,
                   "1 to %d of a to z, 0 to 9 and '-': the name of one of the "
                   "operator's hooks",
                   PREPARE_HOOK_MAX);
    return fail_value(PREPARE_HOOK, t, allowed, err);
}

int prepare_read(const char *json, size_t size, struct prepare *ret_prepare,
                 struct error *err)
{
    struct jscan s;
    struct found found = {0};
    struct prepare p = {.sriov_vfs = -1};
    int rc = 0;
    jscan_init(&s, json, size);
    if (jrow_parse(&s, JROW_STRICT, pod_rows, &found, err) < 0)
        return -EINVAL;
    if (found.vfs.data)
        rc = take_number(PREPARE_VFS, &found.vfs, PREPARE_VFS_MAX, &p.sriov_vfs,
                         err);
    if (rc == 0 && found.sfs.data)
        rc = take_number(PREPARE_SFS, &found.sfs, PREPARE_SFS_MAX, &p.sfs, err);
    if (rc == 0 && found.hook.data)
        rc = take_hook(&found.hook, p.hook, err);
    if (rc == 0)
        *ret_prepare = p;
    return rc;
}
