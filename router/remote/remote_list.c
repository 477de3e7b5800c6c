/* What a remote lists, and the statuses of what is in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/io/clock.h"
#include "router/remote/remote_private.h"
#include "router/wire/fields.h"
#include "router/wire/found.h"

struct cri_pairs remote_labels(const struct remote *r)
{
    return (struct cri_pairs){r->labels, ARRAY_LEN(r->labels)};
}

/* --- calls ---------------------------------------------------------------- */

/* On the thread's own connection; an answer that cannot be one is none. */
static int ask(struct remote *r, enum method_id method,
               const struct str *request, unsigned ms, struct str *ret_reply,
               struct error *err)
{
    struct grpc_end end;
    return grpc_call(r->grpc, method_get(method)->path, str_text(request),
                     request->size, ms, ret_reply, &end, err);
}

/* The field of the labels in the filter of that list. */
static uint32_t selector_of(enum method_id method)
{
    switch (method) {
    case METHOD_LIST_CONTAINERS:
        return CRI_ContainerFilter_label_selector;
    case METHOD_LIST_CONTAINER_STATS:
        return CRI_ContainerStatsFilter_label_selector;
    default:
        return CRI_PodSandboxFilter_label_selector;
    }
}

static void write_filter(struct str *out, enum method_id method,
                         struct cri_pairs labels)
{
    /* of all three: the filter is field 1 */
    size_t at = proto_open(out, CRI_ListPodSandboxRequest_filter);
    for (size_t i = 0; i < labels.n; i++)
        proto_add_pair(out, selector_of(method), labels.list[i].key,
                       labels.list[i].value);
    proto_close(out, at);
}

/* --- lists ---------------------------------------------------------------- */

struct reading {
    struct seen *seen;
    bool sandbox;
};

static void take_found(void *ctx, const struct found *found)
{
    const struct reading *r = ctx;
    (void)seen_add(r->seen, found, r->sandbox);
}

/* `reply` is one of that list, of things with these labels. */
static int read_list(const struct remote *r, enum method_id method,
                     struct cri_pairs labels, const struct str *reply,
                     struct seen *seen, struct error *err)
{
    struct reading to = {seen, method == METHOD_LIST_POD_SANDBOX};
    struct error why = {0};
    int e = found_read(method_get(method),
                       (struct proto_bytes){str_text(reply), reply->size},
                       labels, take_found, &to, &why);
    seen->partly |= e > 0;
    if (e >= 0)
        return 0;
    return error_set(err, -e, "%s: %s: %s", r->config.place.name,
                     method_name(method_get(method)), why.text);
}

/* A runtime has them in any order. */
uint64_t remote_peek_sum(const struct str *reply)
{
    struct proto_reader r;
    struct proto_field f;
    uint64_t sum = 0;
    proto_reader_init(&r, (struct proto_bytes){str_text(reply), reply->size});
    while (proto_next(&r, &f, NULL) > 0)
        sum += hash_bytes(f.raw.data, f.raw.size);
    return sum;
}

static int list_one(struct remote *r, enum method_id method, unsigned ms,
                    struct remote_listed *l, struct error *err)
{
    cleanup_str struct str request = STR_INIT(CRI_TEXT_MAX * 8);
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    reply.soft = true;
    write_filter(&request, method, remote_labels(r));
    int e = ask(r, method, &request, ms, &reply, err);
    if (e == 0)
        e = read_list(r, method, remote_labels(r), &reply, &l->seen, err);
    if (e < 0)
        return e;
    if (method == METHOD_LIST_CONTAINERS)
        l->view->sum = remote_peek_sum(&reply);
    l->view->lists[method == METHOD_LIST_CONTAINERS] =
        remote_blob((struct proto_bytes){str_text(&reply), reply.size});
    return 0;
}

/* --- statuses ------------------------------------------------------------- */

static void status_request(struct str *out, const struct remote_item *item)
{
    proto_add_text(out,
                   item->sandbox ? CRI_PodSandboxStatusRequest_pod_sandbox_id
                                 : CRI_ContainerStatusRequest_container_id,
                   item->id);
}

/* One that the remote does not have any more, or cannot tell, has none: the
 * kubelet is told the same when it asks.  -ETIMEDOUT: it may be that one alone
 * that hangs. */
static int fetch_status(struct remote *r, struct remote_item *item, unsigned ms,
                        size_t *room, struct error *err)
{
    cleanup_str struct str request = STR_INIT(CRI_TEXT_MAX);
    cleanup_str struct str reply = STR_INIT(FROM_REMOTE_STATUS_MAX);
    reply.soft = true;
    status_request(&request, item);
    int e = ask(
        r, item->sandbox ? METHOD_POD_SANDBOX_STATUS : METHOD_CONTAINER_STATUS,
        &request, ms, &reply, err);
    if (e == -EREMOTEIO || e == -EMSGSIZE)
        return 0;
    if (e < 0)
        return e;
    if (reply.size > *room)
        return 0;
    *room -= reply.size;
    item->status =
        remote_blob((struct proto_bytes){str_text(&reply), reply.size});
    return 0;
}

static bool is_touched(const struct remote_touched *t, const char *id)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (strcmp(t->ids[i], id) == 0)
            return true;
    return !t;
}

/* As before, when nothing has happened to it since. */
static void keep_status(struct remote_item *item, const struct remote_view *old,
                        const struct remote_touched *touched, size_t *room)
{
    const struct remote_item *was = remote_view_item(old, item->id);
    item->slow = was && was->slow;
    if (!was || !was->status || was->sandbox != item->sandbox ||
        was->state != item->state || was->status->size > *room ||
        is_touched(touched, item->id))
        return;
    *room -= was->status->size;
    item->status = remote_blob_ref(was->status);
}

/* Those that had an answer the last time, or those that had none.  The first
 * that has none ends it: the others are asked for with the next list. */
static int fetch_all(struct remote *r, struct remote_view *v, bool slow,
                     unsigned ms, size_t *room, struct error *err)
{
    int e = 0;
    for (size_t i = 0; i < v->n && e == 0; i++) {
        struct remote_item *item = &v->items[i];
        if (item->status || item->slow != slow)
            continue;
        e = fetch_status(r, item, ms, room, err);
        if (e == 0)
            item->slow = false;
        if (e == -ETIMEDOUT)
            item->slow = true;
    }
    return e;
}

static int fill_view(struct remote *r, const struct remote_view *old,
                     const struct remote_touched *touched, unsigned ms,
                     struct remote_listed *l, struct error *err)
{
    struct remote_view *v = l->view;
    size_t room = REMOTE_VIEW_STATUS_MAX;
    int e = 0;
    v->items = xcalloc(l->seen.n + 1, sizeof *v->items);
    for (size_t i = 0; i < l->seen.n; i++) {
        const struct seen_item *seen = &l->seen.list[i];
        struct remote_item *item = &v->items[v->n++];
        memcpy(item->id, seen->id, sizeof item->id);
        memcpy(item->sandbox_id, seen->sandbox_id, sizeof item->sandbox_id);
        item->sandbox = seen->sandbox;
        item->state = seen->state;
        keep_status(item, old, touched, &room);
    }
    e = fetch_all(r, v, false, ms, &room, err);
    if (e == 0)
        e = fetch_all(r, v, true, ms, &room, err);
    return e == -ETIMEDOUT ? 0 : e; /* it has answered with its lists */
}

/* --- for the thread ------------------------------------------------------- */

void remote_listed_fini(struct remote_listed *l)
{
    seen_fini(&l->seen);
    remote_view_unref(l->view);
    l->view = NULL;
}

/* Containers first: when the sandbox of one is missing afterwards, it is gone,
 * and not just newer than the list. */
int remote_list(struct remote *r, const struct remote_view *old,
                const struct remote_touched *touched, unsigned ms,
                struct remote_listed *ret_listed, struct error *err)
{
    struct remote_listed l = {.view = remote_view_create(),
                              .mark = keep_mark(r->config.keep)};
    l.view->time_ms = clock_ms();
    l.view->wall_ns = clock_wall_ns();
    int e = list_one(r, METHOD_LIST_CONTAINERS, ms, &l, err);
    if (e == 0)
        e = list_one(r, METHOD_LIST_POD_SANDBOX, ms, &l, err);
    if (e == 0) {
        seen_sort(&l.seen);
        e = fill_view(r, old, touched, ms, &l, err);
    }
    if (e < 0)
        remote_listed_fini(&l);
    else
        *ret_listed = l;
    return e;
}

void remote_peek_request(const struct remote *r, struct str *out)
{
    write_filter(out, METHOD_LIST_CONTAINERS, remote_labels(r));
}

int remote_peek(struct remote *r, unsigned ms, uint64_t *ret_sum,
                struct error *err)
{
    cleanup_str struct str request = STR_INIT(CRI_TEXT_MAX * 8);
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    reply.soft = true;
    remote_peek_request(r, &request);
    int e = ask(r, METHOD_LIST_CONTAINERS, &request, ms, &reply, err);
    if (e == 0)
        *ret_sum = remote_peek_sum(&reply);
    return e;
}

int remote_list_stats(struct remote *r, unsigned ms,
                      struct remote_stats **ret_stats, struct error *err)
{
    const enum method_id method = METHOD_LIST_CONTAINER_STATS;
    cleanup_with(remote_stats) struct remote_stats *s = xcalloc(1, sizeof *s);
    cleanup_str struct str request = STR_INIT(CRI_TEXT_MAX * 8);
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    reply.soft = true;
    atomic_init(&s->refs, 1);
    s->time_ms = clock_ms();
    write_filter(&request, method, remote_labels(r));
    int e = ask(r, method, &request, ms, &reply, err);
    if (e < 0 && e != -EREMOTEIO) /* it may have none */
        return e;
    if (e == 0)
        s->containers =
            remote_blob((struct proto_bytes){str_text(&reply), reply.size});
    *ret_stats = steal(&s);
    return 0;
}

/* --- for calls ------------------------------------------------------------ */

int remote_look(struct remote *r, const char *uid, unsigned ms,
                struct seen *ret_seen, struct error *err)
{
    static const enum method_id lists[] = {METHOD_LIST_CONTAINERS,
                                           METHOD_LIST_POD_SANDBOX};
    struct cri_pair list[3] = {
        r->labels[0], r->labels[1], {ACT_LABEL_UID, uid}};
    const struct cri_pairs labels = {list, ARRAY_LEN(list)};
    int e = 0;
    for (size_t i = 0; i < ARRAY_LEN(lists) && e == 0; i++) {
        cleanup_str struct str request = STR_INIT(CRI_TEXT_MAX * 8);
        cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
        struct grpc_end end;
        reply.soft = true;
        write_filter(&request, lists[i], labels);
        const struct remote_ask what = {
            .method = method_get(lists[i]),
            .request = {str_text(&request), request.size},
            .ms = ms};
        e = remote_call(r, &what, &reply, &end, err);
        if (e == 0)
            e = read_list(r, lists[i], labels, &reply, ret_seen, err);
    }
    return e;
}

int remote_call_id(struct remote *r, enum method_id method, const char *id,
                   unsigned ms, struct error *err)
{
    cleanup_str struct str request = STR_INIT(CRI_TEXT_MAX);
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    struct grpc_end end;
    reply.soft = true;
    proto_add_text(&request, 1, id); /* of all calls of an id alone */
    const struct remote_ask what = {
        .method = method_get(method),
        .request = {str_text(&request), request.size},
        .ms = ms};
    int e = remote_call(r, &what, &reply, &end, err);
    return e == -EREMOTEIO && end.code == GRPC_NOT_FOUND ? 0 : e;
}
