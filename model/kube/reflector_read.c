#include <string.h>

#include "model/kube/reflector_private.h"

/* Decode into a buffer of `size`; false when it does not fit. */
static bool copy_text(const struct jtext *t, char *dst, size_t size)
{
    if (t->size >= size)
        return false;
    (void)jtext_decode(t, dst);
    return true;
}

static bool version_string(struct jscan *s, char version[VERSION_MAX + 1])
{
    struct jtext text;
    size_t at = jscan_offset(s);
    if (!jscan_string(s, &text))
        return false;
    if (text.size == 0 || !copy_text(&text, version, VERSION_MAX + 1)) {
        jscan_fail(s, "resourceVersion is empty or too long", at);
        return false;
    }
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
    if (text.size > CONTINUE_MAX) {
        jscan_fail(s, "continue is too long", at);
        return false;
    }
    str_reset(next);
    if (text.size && str_reserve(next, text.size))
        next->size = jtext_decode(&text, next->data);
    return true;
}

/* The metadata of a list or an object; `next` may be NULL. */
static void metadata_read(struct jscan *s, char version[VERSION_MAX + 1],
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

int list_read(const char *json, size_t size, char ret_version[VERSION_MAX + 1],
              struct str *ret_next, struct error *err)
{
    struct jscan s;
    struct jtext key;
    char version[VERSION_MAX + 1] = "";
    bool items = false;
    str_reset(ret_next);
    jscan_init_kube(&s, json, size);
    if (jscan_object(&s))
        while (jscan_member(&s, &key)) {
            items |= jtext_is(&key, "items");
            if (jtext_is(&key, "metadata"))
                metadata_read(&s, version, ret_next);
            else
                (void)jscan_skip(&s);
        }
    if (!jscan_end(&s)) {
        return jscan_error(&s, err);
    }
    if (!items)
        return error_set(err, EINVAL, "has no items");
    if (!version[0])
        return error_set(err, EINVAL, "metadata.resourceVersion is missing");
    memcpy(ret_version, version, sizeof version);
    return 0;
}

/* metadata.resourceVersion of an object that was checked already. */
static bool object_version(const struct jtext *object,
                           char version[VERSION_MAX + 1])
{
    struct jscan s;
    struct jtext key;
    jscan_init_kube(&s, object->data, object->size);
    version[0] = '\0';
    if (!jscan_object(&s))
        return false;
    while (jscan_member(&s, &key)) {
        if (jtext_is(&key, "metadata")) {
            metadata_read(&s, version, NULL);
            return !s.fault && version[0];
        }
        (void)jscan_skip(&s);
    }
    return false;
}

static int event_type(const struct jtext *name, enum event_type *ret_type)
{
    static const struct {
        const char *name;
        enum event_type type;
    } types[] = {{"ADDED", EVENT_PUT},
                 {"MODIFIED", EVENT_PUT},
                 {"DELETED", EVENT_GONE},
                 {"BOOKMARK", EVENT_BOOKMARK},
                 {"ERROR", EVENT_ERROR}};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (jtext_is(name, types[i].name)) {
            *ret_type = types[i].type;
            return 0;
        }
    return -EINVAL;
}

int event_read(const char *json, size_t size, struct event *ret_event,
               struct error *err)
{
    struct event event = {.type = EVENT_ERROR};
    struct jscan s;
    struct jtext key, type = {0};
    jscan_init_kube(&s, json, size);
    if (jscan_object(&s))
        while (jscan_member(&s, &key)) {
            if (jtext_is(&key, "type"))
                (void)jscan_string(&s, &type);
            else if (jtext_is(&key, "object"))
                (void)jscan_raw(&s, &event.object);
            else
                (void)jscan_skip(&s);
        }
    if (!jscan_end(&s)) {
        (void)jscan_error(&s, err);
        return error_wrap(err, "event");
    }
    if (!type.data || event_type(&type, &event.type) < 0)
        return error_set(err, EINVAL, "event: unknown type \"%.*s\"",
                         (int)(type.size < 40 ? type.size : 40),
                         type.data ? type.data : "");
    if (!event.object.data || event.object.data[0] != '{')
        return error_set(err, EINVAL, "event: object is missing");
    if (event.type != EVENT_ERROR &&
        !object_version(&event.object, event.version))
        return error_set(err, EINVAL,
                         "event: object.metadata.resourceVersion is "
                         "missing or wrong");
    *ret_event = event;
    return 0;
}

void status_read(const char *json, size_t size, struct status *ret_status)
{
    struct jscan s;
    struct jtext key, message = {0};
    int64_t code = 0;
    memset(ret_status, 0, sizeof *ret_status);
    jscan_init_kube(&s, json, size);
    if (jscan_object(&s))
        while (jscan_member(&s, &key)) {
            if (jtext_is(&key, "code"))
                (void)jscan_int64(&s, &code);
            else if (jtext_is(&key, "message"))
                (void)jscan_string(&s, &message);
            else
                (void)jscan_skip(&s);
        }
    size_t max = sizeof ret_status->message - 1;
    if (jscan_end(&s) && message.data) {
        cleanup_free char *text = xmalloc(message.size + 1);
        size_t n = jtext_decode(&message, text);
        memcpy(ret_status->message, text, n < max ? n : max);
        ret_status->code = code;
        return;
    }
    if (size)
        memcpy(ret_status->message, json, size < max ? size : max);
}
