#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/mem.h"

static void copy_text(struct jscan *s, char *dst, size_t cap)
{
    struct jtext text;
    if (jscan_peek(s) != JKIND_STRING)
        (void)jscan_skip(s); /* a fault sticks */
    else if (jscan_string(s, &text) && text.size < cap)
        (void)jtext_decode(&text, dst);
}

static void read_object(struct jscan *s, struct jtext *ret)
{
    if (jscan_peek(s) == JKIND_OBJECT)
        (void)jscan_raw(s, ret); /* a fault sticks */
    else
        (void)jscan_skip(s); /* the same */
}

static void read_metadata(struct jscan *s, struct cluster_object *o)
{
    struct jtext key;
    if (jscan_peek(s) != JKIND_OBJECT) {
        (void)jscan_skip(s); /* a fault sticks */
        return;
    }
    (void)jscan_object(s); /* it is one */
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "name"))
            copy_text(s, o->name, sizeof o->name);
        else if (jtext_is(&key, "uid"))
            copy_text(s, o->uid, sizeof o->uid);
        else if (jtext_is(&key, "resourceVersion"))
            copy_text(s, o->resource_version, sizeof o->resource_version);
        else if (jtext_is(&key, "labels"))
            read_object(s, &o->labels);
        else
            (void)jscan_skip(s); /* a fault ends the loop */
    }
}

int cluster_object_read(const char *json, size_t size,
                        struct cluster_object *ret_object, struct error *err)
{
    struct cluster_object o = {0};
    struct jscan s;
    struct jtext key;
    jscan_init_kube(&s, json, size);
    (void)jscan_object(&s); /* a fault ends the loop */
    while (jscan_member(&s, &key)) {
        if (jtext_is(&key, "metadata"))
            read_metadata(&s, &o);
        else if (jtext_is(&key, "spec"))
            read_object(&s, &o.spec);
        else if (jtext_is(&key, "status"))
            read_object(&s, &o.status);
        else
            (void)jscan_skip(&s); /* a fault ends the loop */
    }
    if (!jscan_end(&s))
        return jscan_error(&s, err);
    if (!o.name[0])
        return error_set(err, EINVAL, "metadata.name: must have 1 to %zu bytes",
                         sizeof o.name - 1);
    *ret_object = o;
    return 0;
}
