#include "router/wire/request.h"

#include <errno.h>
#include <string.h>

#include "model/pod/pod_keys.h"

void request_fini(struct request *r)
{
    arena_fini(&r->arena);
    *r = (struct request){0};
}

static void init(struct request *r)
{
    *r = (struct request){
        .id = "",
        .handler = "",
        .image = "",
        .allocation = "",
        .pod = {.namespace = "",
                .name = "",
                .uid = "",
                .hostname = "",
                .log_directory = "",
                .allocation = ""},
        .container = {.name = "",
                      .image = "",
                      .user_image = "",
                      .log_path = ""},
        .filter = {.id = "", .sandbox_id = ""},
    };
}

/* --- parts ---------------------------------------------------------------- */

static int take_text(struct request *r, const char *what, size_t max,
                     struct proto_bytes b, const char **ret_text,
                     struct error *err)
{
    if (b.size > max)
        return error_set(err, EINVAL, "%s: has %zu bytes, the limit is %zu",
                         what, b.size, max);
    if (!proto_is_text(b))
        return error_set(err, EINVAL, "%s: is no text in UTF-8", what);
    *ret_text = arena_strndup(&r->arena, b.size ? b.data : "", b.size);
    return 0;
}

/* A text of a message; absent, it stays as it is. */
static int find_text(struct request *r, struct proto_bytes message,
                     uint32_t number, const char *what, const char **ret_text,
                     struct error *err)
{
    struct proto_field f;
    int e = proto_find(message, number, PROTO_BYTES, &f, err);
    return e > 0 ? take_text(r, what, REQUEST_TEXT_MAX, f.bytes, ret_text, err)
                 : e;
}

static int find_allocation(struct request *r, struct proto_bytes message,
                           uint32_t annotations, const char **ret_text,
                           struct error *err)
{
    struct proto_bytes value;
    int e = proto_find_pair(message, annotations, WORD_ALLOCATION, &value, err);
    return e > 0 ? take_text(r, "annotation " WORD_ALLOCATION,
                             REQUEST_ALLOCATION_MAX, value, ret_text, err)
                 : e;
}

static int find_number(struct proto_bytes message, uint32_t number,
                       uint32_t *ret_value, struct error *err)
{
    struct proto_field f;
    int e = proto_find(message, number, PROTO_VARINT, &f, err);
    if (e > 0)
        *ret_value = (uint32_t)f.value;
    return e < 0 ? e : 0;
}

/* A message within; absent, it is empty. */
static int find_message(struct proto_bytes message, uint32_t number,
                        struct proto_bytes *ret_within, struct error *err)
{
    struct proto_field f;
    int e = proto_find(message, number, PROTO_BYTES, &f, err);
    *ret_within = e > 0 ? f.bytes : (struct proto_bytes){"", 0};
    return e;
}

/* --- the key -------------------------------------------------------------- */

static int read_id(struct request *r, struct proto_bytes message,
                   struct error *err)
{
    struct proto_field f;
    int e = proto_find(message, 1, PROTO_BYTES, &f, err);
    return e > 0 ? take_text(r, "id", CRI_ID_MAX, f.bytes, &r->id, err) : e;
}

static int read_image(struct request *r, struct proto_bytes message,
                      struct error *err)
{
    struct proto_bytes spec;
    int e = find_message(message, CRI_PullImageRequest_image, &spec, err);
    if (e >= 0)
        e = find_text(r, spec, CRI_ImageSpec_image, "image", &r->image, err);
    if (e >= 0)
        e = find_text(r, spec, CRI_ImageSpec_runtime_handler, "runtime_handler",
                      &r->handler, err);
    if (e >= 0)
        e = find_allocation(r, spec, CRI_ImageSpec_annotations, &r->allocation,
                            err);
    return e;
}

static int add_label(struct request *r, struct proto_bytes entry,
                     struct cri_pair *list, struct error *err)
{
    struct proto_bytes key, value;
    struct cri_pairs *labels = &r->filter.labels;
    int e = proto_read_pair(entry, &key, &value, err);
    if (e < 0)
        return e;
    if (labels->n == REQUEST_LABELS_MAX)
        return error_set(err, EINVAL, "label_selector: has more than %d labels",
                         REQUEST_LABELS_MAX);
    struct cri_pair *to = &list[labels->n];
    e = take_text(r, "label_selector", REQUEST_TEXT_MAX, key, &to->key, err);
    if (e == 0)
        e = take_text(r, "label_selector", REQUEST_TEXT_MAX, value, &to->value,
                      err);
    labels->n += e == 0;
    return e;
}

static int read_labels(struct request *r, struct proto_bytes filter,
                       uint32_t number, struct error *err)
{
    struct proto_reader reader;
    struct proto_field f;
    struct cri_pair *list = NULL;
    int e;
    proto_reader_init(&reader, filter);
    while ((e = proto_next(&reader, &f, err)) > 0) {
        if (f.number != number || f.kind != PROTO_BYTES)
            continue;
        if (!list)
            list = arena_alloc(&r->arena, REQUEST_LABELS_MAX * sizeof *list);
        r->filter.labels.list = list;
        if ((e = add_label(r, f.bytes, list, err)) < 0)
            return e;
    }
    return e;
}

static int read_filter(struct request *r, const struct list_form *form,
                       struct proto_bytes message, struct error *err)
{
    struct proto_bytes filter, state;
    int e = form ? find_message(message, 1, &filter, err) : 0;
    if (e <= 0)
        return e;
    e = find_text(r, filter, 1, "filter.id", &r->filter.id, err);
    if (e >= 0 && form->filter_sandbox)
        e = find_text(r, filter, form->filter_sandbox, "filter.pod_sandbox_id",
                      &r->filter.sandbox_id, err);
    if (e >= 0 && form->filter_state) {
        e = find_message(filter, form->filter_state, &state, err);
        r->filter.has_state = e > 0;
        if (e > 0)
            e = find_number(state, 1, &r->filter.state, err);
    }
    return e < 0 ? e : read_labels(r, filter, form->filter_labels, err);
}

static int read_key(struct request *r, const struct method *m,
                    struct proto_bytes message, struct error *err)
{
    uint32_t handler = m->id == METHOD_RESTORE_POD
                           ? CRI_RestorePodRequest_runtime_handler
                           : CRI_RunPodSandboxRequest_runtime_handler;
    switch (m->key) {
    case METHOD_BY_HANDLER:
        return find_text(r, message, handler, "runtime_handler", &r->handler,
                         err);
    case METHOD_BY_SANDBOX:
    case METHOD_BY_CONTAINER:
        return read_id(r, message, err);
    case METHOD_BY_IMAGE:
        return read_image(r, message, err);
    case METHOD_BY_FILTER:
        return read_filter(r, list_form_get(m), message, err);
    default:
        return 0;
    }
}

int request_read(const struct method *m, struct proto_bytes message,
                 struct request *ret_request, struct error *err)
{
    struct request r;
    uint32_t verbose = 0;
    init(&r);
    int e = message.size <= REQUEST_SIZE_MAX
                ? read_key(&r, m, message, err)
                : error_set(err, EINVAL, "has %zu bytes, the limit is %d",
                            message.size, REQUEST_SIZE_MAX);
    if (e >= 0 &&
        (m->id == METHOD_POD_SANDBOX_STATUS ||
         m->id == METHOD_CONTAINER_STATUS || m->id == METHOD_IMAGE_STATUS))
        e = find_number(message, CRI_PodSandboxStatusRequest_verbose, &verbose,
                        err);
    if (e < 0) {
        request_fini(&r);
        return error_wrap(err, "%s", method_name(m));
    }
    r.verbose = verbose != 0;
    *ret_request = r;
    return 0;
}
