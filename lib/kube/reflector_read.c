#include <string.h>

#include "lib/base/jrow.h"
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
            kube_metadata_read(&s, version);
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

struct outline {
    struct jtext type, object;
};

int event_read(const char *json, size_t size, struct event *ret_event,
               struct error *err)
{
    static const struct jrow rows[] = {
        JROW("type", JROW_STRICT, jrow_text, struct outline, type),
        JROW("object", JROW_STRICT, jrow_raw, struct outline, object),
        JROW_END,
    };
    struct event event = {.type = EVENT_ERROR};
    struct outline found = {0};
    struct jscan s;
    jscan_init_kube(&s, json, size);
    if (jrow_parse(&s, JROW_STRICT, rows, &found, err) < 0)
        return error_wrap(err, "event");
    if (!found.type.data || event_type(&found.type, &event.type) < 0)
        return error_set(err, EINVAL, "event: unknown type \"%.*s\"",
                         (int)(found.type.size < 40 ? found.type.size : 40),
                         found.type.data ? found.type.data : "");
    if (!found.object.data || found.object.data[0] != '{')
        return error_set(err, EINVAL, "event: object is missing");
    event.object = found.object;
    if (event.type != EVENT_ERROR &&
        !object_version(&event.object, event.version))
        return error_set(err, EINVAL,
                         "event: object.metadata.resourceVersion is "
                         "missing or wrong");
    *ret_event = event;
    return 0;
}

struct answer {
    int64_t code;
    struct jtext message;
};

void status_read(const char *json, size_t size, struct status *ret_status)
{
    static const struct jrow rows[] = {
        JROW("code", JROW_STRICT, jrow_int64, struct answer, code),
        JROW("message", JROW_STRICT, jrow_text, struct answer, message),
        JROW_END,
    };
    size_t max = sizeof ret_status->message - 1;
    struct answer answer = {0};
    struct jscan s;
    memset(ret_status, 0, sizeof *ret_status);
    jscan_init_kube(&s, json, size);
    if (jrow_parse(&s, JROW_STRICT, rows, &answer, NULL) == 0 &&
        answer.message.data) {
        cleanup_free char *text = xmalloc(answer.message.size + 1);
        size_t n = jtext_decode(&answer.message, text);
        memcpy(ret_status->message, text, n < max ? n : max);
        ret_status->code = answer.code;
        return;
    }
    if (size)
        memcpy(ret_status->message, json, size < max ? size : max);
}
