#include "lib/kube/list.h"

#include <string.h>

#include "lib/base/jrow.h"

struct list {
    char version[KUBE_VERSION_MAX + 1];
    struct str *next; /* may be NULL: not wanted */
    bool has_items;
};

static void read_version(struct jscan *s, void *to)
{
    struct jtext text;
    size_t at = jscan_offset(s);
    if (!jscan_string(s, &text))
        return;
    if (text.size > 0 && text.size <= KUBE_VERSION_MAX)
        (void)jtext_decode(&text, ((struct list *)to)->version);
    else
        jscan_fail(s, "resourceVersion is empty or too long", at);
}

static void read_next(struct jscan *s, void *to)
{
    struct str *next = ((struct list *)to)->next;
    struct jtext text;
    size_t at = jscan_offset(s);
    if (!next) {
        (void)jscan_skip(s); /* a fault sticks */
        return;
    }
    if (jscan_null(s) || !jscan_string(s, &text))
        return;
    if (text.size > KUBE_CONTINUE_MAX) {
        jscan_fail(s, "continue is too long", at);
        return;
    }
    str_reset(next);
    if (text.size && str_reserve(next, text.size))
        next->size = jtext_decode(&text, next->data);
}

static void read_items(struct jscan *s, void *to)
{
    ((struct list *)to)->has_items = true;
    (void)jscan_skip(s); /* a fault sticks */
}

static const struct jrow metadata_rows[] = {
    JROW_CALL("resourceVersion", JROW_STRICT, JKIND_STRING, read_version),
    JROW_CALL("continue", JROW_STRICT, JKIND_NONE, read_next),
    JROW_END,
};

void kube_metadata_read(struct jscan *s, char version[KUBE_VERSION_MAX + 1])
{
    struct list list = {0};
    if (jrow_read(s, JROW_STRICT, metadata_rows, &list))
        memcpy(version, list.version, sizeof list.version);
}

int kube_list_read(const char *json, size_t size,
                   char ret_version[KUBE_VERSION_MAX + 1], struct str *ret_next,
                   struct error *err)
{
    static const struct jrow rows[] = {
        JROW_OBJECT("metadata", JROW_STRICT, metadata_rows),
        JROW_CALL("items", JROW_STRICT, JKIND_NONE, read_items),
        JROW_END,
    };
    struct jscan s;
    struct list list = {.next = ret_next};
    str_reset(ret_next);
    jscan_init_kube(&s, json, size);
    if (jrow_parse(&s, JROW_STRICT, rows, &list, err) < 0)
        return -EINVAL;
    if (!list.has_items)
        return error_set(err, EINVAL, "has no items");
    if (!list.version[0])
        return error_set(err, EINVAL, "metadata.resourceVersion is missing");
    memcpy(ret_version, list.version, sizeof list.version);
    return 0;
}
