/* Any bytes as a record and as the annotation of one: no crash; what is read
 * keeps to its rules, and is the same when it is written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "router/keep/kept_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static bool same(const struct kept *a, const struct kept *b)
{
    return a->kind == b->kind && a->state == b->state &&
           a->attempt == b->attempt && a->hash == b->hash &&
           a->made_s == b->made_s && strcmp(a->id, b->id) == 0 &&
           strcmp(a->remote, b->remote) == 0 && strcmp(a->uid, b->uid) == 0 &&
           strcmp(a->container, b->container) == 0 &&
           strcmp(a->log_path, b->log_path) == 0 &&
           strcmp(a->allocation, b->allocation) == 0 &&
           a->mounts.size == b->mounts.size &&
           memcmp(a->mounts.data, b->mounts.data, a->mounts.size) == 0;
}

/* What a record holds that its kind has not is not written. */
static void check(const struct kept *k)
{
    cleanup_str struct str text = STR_INIT(2 * KEPT_TEXT_MAX);
    cleanup_with(kept) struct kept *once = NULL, *twice = NULL;
    must(kept_check(k, NULL) == 0);
    must(!strstr(k->log_path, "/../") && !strchr(k->uid, '/'));
    kept_text_write(k, &text);
    if (text.overflow || text.size > KEPT_TEXT_MAX)
        return;
    must(kept_text_read(text.data, text.size, &once, NULL) == 0);
    str_reset(&text);
    kept_text_write(once, &text);
    must(kept_text_read(text.data, text.size, &twice, NULL) == 0);
    must(same(once, twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct kept_secret secret = {"of nobody"};
    cleanup_with(kept) struct kept *k = NULL, *said = NULL;
    struct error err = {0};
    bool sealed = false;
    char *text = xmalloc(size + 1);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (kept_text_read(text, size, &k, &err) == 0)
        check(k);
    else
        must(*err.text && !k);
    err.text[0] = '\0';
    if (kept_unseal(text, &secret, &said, &sealed, &err) == 0) {
        must(!sealed && said->state == KEPT_ANNOUNCED);
        check(said);
    } else {
        must(*err.text && !said);
    }
    free(text);
    return 0;
}
