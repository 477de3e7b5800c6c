#include <string.h>

#include "lib/kube/reflector_private.h"

/* metadata.resourceVersion of an object that was checked already. */
static bool object_version(const struct jtext *object,
                           char version[KUBE_VERSION_MAX + 1])
{
    struct jscan s;
    struct jtext key;
    jscan_init_kube(&s, object->data, object->size);
    version[0] = '\0';
    if (!jscan_object(&s))
        return false;
    while (jscan_member(&s, &key)) {
        if (jtext_is(&key, "metadata")) {
            kube_metadata_read(&s, version, NULL);
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
