#include "lib/kube/list.h"

#include <string.h>

static bool version_string(struct jscan *s, char version[KUBE_VERSION_MAX + 1])
{
    struct jtext text;
    size_t at = jscan_offset(s);
    if (!jscan_string(s, &text))
        return false;
    if (text.size == 0 || text.size > KUBE_VERSION_MAX) {
        jscan_fail(s, "resourceVersion is empty or too long", at);
        return false;
    }
    (void)jtext_decode(&text, version);
    return true;
}

static bool next_string(struct jscan *s, struct str *next)
{
    struct jtext text;
    size_t at = jscan_offset(s);
    if (jscan_null(s))
        return true;
    if (!jscan_string(s, &text))
        return false;
    if (text.size > KUBE_CONTINUE_MAX) {
        jscan_fail(s, "continue is too long", at);
        return false;
    }
    str_reset(next);
    if (text.size && str_reserve(next, text.size))
        next->size = jtext_decode(&text, next->data);
    return true;
}

void kube_metadata_read(struct jscan *s, char version[KUBE_VERSION_MAX + 1],
                        struct str *next)
{
    struct jtext key;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "resourceVersion"))
            (void)version_string(s, version);
        else if (next && jtext_is(&key, "continue"))
            (void)next_string(s, next);
        else
            (void)jscan_skip(s);
    }
}

int kube_list_read(const char *json, size_t size,
                   char ret_version[KUBE_VERSION_MAX + 1], struct str *ret_next,
                   struct error *err)
{
    struct jscan s;
    struct jtext key;
    char version[KUBE_VERSION_MAX + 1] = "";
    bool items = false;
    str_reset(ret_next);
    jscan_init_kube(&s, json, size);
    if (jscan_object(&s))
        while (jscan_member(&s, &key)) {
            items |= jtext_is(&key, "items");
            if (jtext_is(&key, "metadata"))
                kube_metadata_read(&s, version, ret_next);
            else
                (void)jscan_skip(&s);
        }
    if (!jscan_end(&s))
        return jscan_error(&s, err);
    if (!items)
        return error_set(err, EINVAL, "has no items");
    if (!version[0])
        return error_set(err, EINVAL, "metadata.resourceVersion is missing");
    memcpy(ret_version, version, sizeof version);
    return 0;
}
