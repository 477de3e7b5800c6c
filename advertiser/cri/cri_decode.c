#include <malloc.h>
#include <string.h>

#include "advertiser/cri/cri_private.h"
#include "lib/base/json.h"
#include "lib/h2/grpc_text.h"

/* --- within bounds --------------------------------------------------------
 *
 * Two bytes of a reply can become a message of a hundred, so what the decoder
 * takes is counted, and it ends when that is too much. */

struct reply {
    ProtobufCMessage *message;
    ProtobufCAllocator allocator;
    size_t used, max;
};

static void *take_memory(void *ctx, size_t size)
{
    struct reply *reply = ctx;
    if (size > reply->max - reply->used)
        return NULL;
    void *p = xmalloc(size + 1); /* for adopt() */
    size_t real = malloc_usable_size(p);
    reply->used += real < reply->max - reply->used ? real
                                                   : reply->max - reply->used;
    return p;
}

static void give_memory(void *ctx, void *p)
{
    struct reply *reply = ctx;
    size_t real = p ? malloc_usable_size(p) : 0;
    reply->used -= real < reply->used ? real : reply->used;
    free(p);
}

static void reply_fini(struct reply *reply)
{
    if (reply->message)
        protobuf_c_message_free_unpacked(reply->message, &reply->allocator);
    reply->message = NULL;
}
#define cleanup_reply __attribute__((__cleanup__(reply_fini)))

/* The message, or NULL, which is -EPROTO.  `reply` is where it stays, because
 * the allocator points into it. */
static void *reply_read(struct reply *reply,
                        const ProtobufCMessageDescriptor *type,
                        const void *data, size_t size, struct error *err)
{
    memset(reply, 0, sizeof *reply);
    reply->allocator.alloc = take_memory;
    reply->allocator.free = give_memory;
    reply->allocator.allocator_data = reply;
    reply->max = CRI_DECODE_MAX;
    if (size < (CRI_DECODE_MAX - CRI_DECODE_BASE) / CRI_DECODE_TIMES)
        reply->max = CRI_DECODE_BASE + size * CRI_DECODE_TIMES;
    reply->message = protobuf_c_message_unpack(type, &reply->allocator, size,
                                               data);
    if (!reply->message)
        (void)error_set(err, EPROTO,
                        "the reply is no %s, or needs over %zu bytes to be "
                        "one",
                        type->short_name, reply->max);
    return reply->message;
}

/* --- parts ---------------------------------------------------------------- */

bool cri_id_valid(const char *id)
{
    size_t n = strspn(id, "0123456789abcdef");
    return n >= 1 && n <= CRI_ID_MAX && id[n] == '\0';
}

static int take_id(const char *what, const char *id,
                   char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    char shown[48];
    if (!cri_id_valid(id)) {
        grpc_text(id, strnlen(id, sizeof shown), shown, sizeof shown);
        return error_set(err, EPROTO,
                         "the id of a %s is \"%s\"; 1 to %d of 0-9 and a-f "
                         "are allowed",
                         what, shown, CRI_ID_MAX);
    }
    (void)snprintf(ret_id, CRI_ID_MAX + 1, "%s", id);
    return 0;
}

static int take_that_id(const char *what, const char *id, const char *expected,
                        char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    int r = take_id(what, id, ret_id, err);
    if (r == 0 && strcmp(id, expected) != 0)
        return error_set(err, EPROTO,
                         "asked for the %s %.20s, the reply is about %.20s",
                         what, expected, id);
    return r;
}

static void take_text(const char *text, char ret_text[CRI_TEXT_MAX])
{
    grpc_text(text, strnlen(text, CRI_TEXT_MAX), ret_text, CRI_TEXT_MAX);
}

static char *copy_text(const char *text)
{
    char copy[CRI_TEXT_MAX];
    take_text(text, copy);
    return xstrdup(copy);
}

static int check_count(const char *what, size_t n, struct error *err)
{
    if (n <= CRI_OBJECTS_MAX)
        return 0;
    return error_set(err, EPROTO, "the reply lists %zu %s, the limit is %d", n,
                     what, CRI_OBJECTS_MAX);
}

static struct cri_pair *take_labels(Cri__Pair *const *labels, size_t *n)
{
    *n = *n < CRI_LABELS_MAX ? *n : CRI_LABELS_MAX;
    if (*n == 0)
        return NULL;
    struct cri_pair *list = xcalloc(*n, sizeof *list);
    for (size_t i = 0; i < *n; i++) {
        list[i].key = copy_text(labels[i]->key);
        list[i].value = copy_text(labels[i]->value);
    }
    return list;
}

static void drop_labels(struct cri_pair *labels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((char *)(uintptr_t)labels[i].key);
        free((char *)(uintptr_t)labels[i].value);
    }
    free(labels);
}

static bool has_label(Cri__Pair *const *labels, size_t n,
                      const struct cri_pair *wanted)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(labels[i]->key, wanted->key) == 0)
            return strcmp(labels[i]->value, wanted->value) == 0;
    return false;
}

static bool has_labels(Cri__Pair *const *labels, size_t n,
                       struct cri_pairs wanted)
{
    for (size_t i = 0; i < wanted.n; i++)
        if (!has_label(labels, n, &wanted.list[i]))
            return false;
    return true;
}

/* --- the runtime ---------------------------------------------------------- */

int cri_decode_version(const void *data, size_t size,
                       struct cri_version *ret_version, struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__VersionResponse *m =
        reply_read(&reply, &cri__version_response__descriptor, data, size, err);
    if (!m)
        return -EPROTO;
    take_text(m->runtime_name, ret_version->runtime);
    take_text(m->runtime_version, ret_version->version);
    take_text(m->runtime_api_version, ret_version->api);
    return 0;
}

int cri_decode_status(const void *data, size_t size,
                      struct cri_status *ret_status, struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__StatusResponse *m =
        reply_read(&reply, &cri__status_response__descriptor, data, size, err);
    if (!m)
        return -EPROTO;
    if (!m->status)
        return error_set(err, EPROTO, "the reply has no status");
    struct cri_status status = {0};
    for (size_t i = 0; i < m->status->n_conditions; i++) {
        const Cri__RuntimeCondition *c = m->status->conditions[i];
        bool runtime = strcmp(c->type, "RuntimeReady") == 0;
        bool network = strcmp(c->type, "NetworkReady") == 0;
        status.runtime_ready |= runtime && c->status;
        status.network_ready |= network && c->status;
        if ((runtime || network) && !c->status && !*status.reason)
            take_text(*c->message ? c->message : c->reason, status.reason);
    }
    *ret_status = status;
    return 0;
}

int cri_decode_id(const void *data, size_t size, char ret_id[CRI_ID_MAX + 1],
                  struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__IdRequest *m = reply_read(&reply, &cri__id_request__descriptor,
                                         data, size, err);
    if (!m)
        return -EPROTO;
    return take_id("new object", m->id, ret_id, err);
}

/* --- sandboxes ------------------------------------------------------------ */

static void sandbox_fini(struct cri_sandbox *s)
{
    free(s->namespace);
    free(s->name);
    free(s->uid);
    drop_labels(s->labels, s->n_labels);
    memset(s, 0, sizeof *s);
}

void cri_sandboxes_fini(struct cri_sandboxes *s)
{
    for (size_t i = 0; i < s->n; i++)
        sandbox_fini(&s->list[i]);
    free(s->list);
    memset(s, 0, sizeof *s);
}

static void take_metadata(const Cri__PodSandboxMetadata *m,
                          struct cri_sandbox *s)
{
    s->namespace = copy_text(m ? m->namespace_ : "");
    s->name = copy_text(m ? m->name : "");
    s->uid = copy_text(m ? m->uid : "");
    s->attempt = m ? m->attempt : 0;
}

int cri_decode_sandboxes(const void *data, size_t size, struct cri_pairs labels,
                         struct cri_sandboxes *ret_list, struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__ListPodSandboxResponse *m = reply_read(
        &reply, &cri__list_pod_sandbox_response__descriptor, data, size, err);
    int r = m ? check_count("sandboxes", m->n_items, err) : -EPROTO;
    if (r < 0)
        return r;
    struct cri_sandboxes list = {0};
    list.list = xcalloc(m->n_items ? m->n_items : 1, sizeof *list.list);
    for (size_t i = 0; r == 0 && i < m->n_items; i++) {
        const Cri__PodSandbox *from = m->items[i];
        struct cri_sandbox *s = &list.list[list.n];
        r = take_id("sandbox", from->id, s->id, err);
        if (r < 0 || !has_labels(from->labels, from->n_labels, labels))
            continue;
        take_metadata(from->metadata, s);
        s->ready = from->state == CRI__POD_SANDBOX_STATE__SANDBOX_READY;
        s->created_ns = from->created_at;
        s->n_labels = from->n_labels;
        s->labels = take_labels(from->labels, &s->n_labels);
        list.n++;
    }
    if (r == 0)
        *ret_list = list;
    else
        cri_sandboxes_fini(&list);
    return r;
}

/* --- containers ----------------------------------------------------------- */

void cri_container_fini(struct cri_container *s)
{
    free(s->name);
    free(s->image);
    free(s->reason);
    free(s->message);
    free(s->log_path);
    drop_labels(s->labels, s->n_labels);
    memset(s, 0, sizeof *s);
}

void cri_containers_fini(struct cri_containers *s)
{
    for (size_t i = 0; i < s->n; i++)
        cri_container_fini(&s->list[i]);
    free(s->list);
    memset(s, 0, sizeof *s);
}

static enum cri_container_state take_state(Cri__ContainerState state)
{
    switch (state) {
    case CRI__CONTAINER_STATE__CONTAINER_CREATED:
        return CRI_CREATED;
    case CRI__CONTAINER_STATE__CONTAINER_RUNNING:
        return CRI_RUNNING;
    case CRI__CONTAINER_STATE__CONTAINER_EXITED:
        return CRI_EXITED;
    default: /* anything may come */
        return CRI_UNKNOWN;
    }
}

int cri_decode_container(const void *data, size_t size, const char *id,
                         struct cri_container *ret_container, struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__ContainerStatusResponse *m = reply_read(
        &reply, &cri__container_status_response__descriptor, data, size, err);
    if (!m)
        return -EPROTO;
    const Cri__ContainerStatus *from = m->status;
    if (!from)
        return error_set(err, EPROTO, "the reply has no status");
    struct cri_container c = {.n_labels = from->n_labels};
    int r = take_that_id("container", from->id, id, c.id, err);
    if (r < 0)
        return r;
    c.name = copy_text(from->metadata ? from->metadata->name : "");
    c.attempt = from->metadata ? from->metadata->attempt : 0;
    c.image = copy_text(from->image ? from->image->image : "");
    c.state = take_state(from->state);
    c.labels = take_labels(from->labels, &c.n_labels);
    c.exit_code = from->exit_code;
    c.started_ns = from->started_at;
    c.finished_ns = from->finished_at;
    c.reason = copy_text(from->reason);
    c.message = copy_text(from->message);
    c.log_path = copy_text(from->log_path);
    *ret_container = c;
    return 0;
}

static int take_container(const Cri__Container *from, struct cri_container *c,
                          struct error *err)
{
    int r = take_id("container", from->id, c->id, err);
    if (r == 0)
        r = take_id("sandbox", from->pod_sandbox_id, c->sandbox_id, err);
    if (r < 0)
        return r;
    c->name = copy_text(from->metadata ? from->metadata->name : "");
    c->attempt = from->metadata ? from->metadata->attempt : 0;
    c->image = copy_text(from->image ? from->image->image : "");
    c->state = take_state(from->state);
    c->n_labels = from->n_labels;
    c->labels = take_labels(from->labels, &c->n_labels);
    return 0;
}

int cri_decode_containers(const void *data, size_t size,
                          struct cri_pairs labels,
                          struct cri_containers *ret_list, struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__ListContainersResponse *m = reply_read(
        &reply, &cri__list_containers_response__descriptor, data, size, err);
    int r = m ? check_count("containers", m->n_containers, err) : -EPROTO;
    if (r < 0)
        return r;
    struct cri_containers list = {0};
    list.list = xcalloc(m->n_containers ? m->n_containers : 1,
                        sizeof *list.list);
    for (size_t i = 0; r == 0 && i < m->n_containers; i++) {
        const Cri__Container *from = m->containers[i];
        if (!has_labels(from->labels, from->n_labels, labels))
            continue;
        r = take_container(from, &list.list[list.n], err);
        if (r == 0)
            list.n++;
    }
    if (r == 0)
        *ret_list = list;
    else
        cri_containers_fini(&list);
    return r;
}

void cri_usages_fini(struct cri_usages *u)
{
    for (size_t i = 0; i < u->n; i++)
        drop_labels(u->list[i].labels, u->list[i].n_labels);
    free(u->list);
    memset(u, 0, sizeof *u);
}

static int take_usage(const Cri__ContainerStats *from, struct cri_usage *u,
                      struct error *err)
{
    int r = take_id("container", from->attributes->id, u->id, err);
    if (r < 0)
        return r;
    u->cpu_ns = from->cpu->usage_core_nano_seconds->value;
    u->at_ns = from->cpu->timestamp;
    if (from->memory && from->memory->working_set_bytes)
        u->memory = from->memory->working_set_bytes->value;
    u->n_labels = from->attributes->n_labels;
    u->labels = take_labels(from->attributes->labels, &u->n_labels);
    return 0;
}

int cri_decode_usages(const void *data, size_t size,
                      struct cri_usages *ret_list, struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__ListContainerStatsResponse *m =
        reply_read(&reply, &cri__list_container_stats_response__descriptor,
                   data, size, err);
    int r = m ? check_count("stats", m->n_stats, err) : -EPROTO;
    if (r < 0)
        return r;
    struct cri_usages list = {0};
    list.list = xcalloc(m->n_stats + 1, sizeof *list.list);
    for (size_t i = 0; r == 0 && i < m->n_stats; i++) {
        const Cri__ContainerStats *from = m->stats[i];
        if (!from->attributes || !from->cpu ||
            !from->cpu->usage_core_nano_seconds)
            continue; /* it does not run, or ends just now */
        r = take_usage(from, &list.list[list.n], err);
        if (r == 0)
            list.n++;
    }
    if (r == 0)
        *ret_list = list;
    else
        cri_usages_fini(&list);
    return r;
}

/* What is large is not copied. */
static struct str adopt(ProtobufCBinaryData *bytes, size_t max)
{
    struct str s = STR_INIT(max);
    if (bytes->len == 0)
        return s;
    s.data = (char *)bytes->data;
    s.size = bytes->len;
    s.cap = bytes->len + 1;
    s.data[s.size] = '\0';
    *bytes = (ProtobufCBinaryData){0};
    return s;
}

int cri_decode_exec(const void *data, size_t size, struct cri_exec *ret_exec,
                    struct error *err)
{
    cleanup_reply struct reply reply;
    Cri__ExecSyncResponse *m = reply_read(
        &reply, &cri__exec_sync_response__descriptor, data, size, err);
    if (!m)
        return -EPROTO;
    size_t max = ret_exec->max ? ret_exec->max : CRI_EXEC_OUTPUT_MAX;
    if (m->stdout_data.len > max || m->stderr_data.len > max)
        return error_set(err, EMSGSIZE,
                         "the command wrote %zu and %zu bytes, the limit is "
                         "%zu each",
                         m->stdout_data.len, m->stderr_data.len, max);
    ret_exec->exit_code = m->exit_code;
    ret_exec->out = adopt(&m->stdout_data, max);
    ret_exec->err = adopt(&m->stderr_data, max);
    return 0;
}

int cri_decode_url(const void *data, size_t size, char ret_url[CRI_TEXT_MAX],
                   struct error *err)
{
    cleanup_reply struct reply reply;
    Cri__StreamResponse *m =
        reply_read(&reply, &cri__stream_response__descriptor, data, size, err);
    if (!m)
        return -EPROTO;
    size_t len = strlen(m->url);
    for (size_t i = 0; i < len; i++)
        if (m->url[i] <= ' ' || m->url[i] >= 0x7f)
            return error_set(err, EPROTO, "url: byte %zu is not printable",
                             i + 1);
    if (len == 0 || len >= CRI_TEXT_MAX)
        return error_set(err, EPROTO, "url: has %zu bytes, must have 1 to %d",
                         len, CRI_TEXT_MAX - 1);
    memcpy(ret_url, m->url, len + 1);
    return 0;
}

/* --- images --------------------------------------------------------------- */

/* Of "info", of which CRI says no more than that it is for debugging, what
 * containerd and CRI-O put there: {"imageSpec":{"architecture":"arm64"}}. */
static void take_arch(Cri__Pair *const *info, size_t n, char *ret, size_t size)
{
    size_t i = 0;
    struct error ignored = {0};
    cleanup_with(json) cJSON *json = NULL;
    struct reader r;
    while (i < n && strcmp(info[i]->key, "info") != 0)
        i++;
    if (i == n ||
        json_parse(info[i]->value, strlen(info[i]->value), &json, &ignored) < 0)
        return;
    reader_init(&r, json, "", &ignored);
    const cJSON *spec = reader_opt_object(&r, "imageSpec");
    if (!spec)
        return;
    reader_init(&r, spec, "imageSpec", &ignored);
    const char *arch = reader_opt_string(&r, "architecture", size - 1);
    if (arch)
        grpc_text(arch, strlen(arch), ret, size);
}

int cri_decode_image(const void *data, size_t size, struct cri_image *ret_image,
                     struct error *err)
{
    cleanup_reply struct reply reply;
    const Cri__ImageStatusResponse *m = reply_read(
        &reply, &cri__image_status_response__descriptor, data, size, err);
    if (!m)
        return -EPROTO;
    memset(ret_image, 0, sizeof *ret_image);
    if (!m->image)
        return 0;
    ret_image->present = true;
    ret_image->size = m->image->size;
    ret_image->uid = m->image->uid ? m->image->uid->value : -1;
    take_text(m->image->id, ret_image->id);
    take_text(m->image->username, ret_image->username);
    take_arch(m->info, m->n_info, ret_image->arch, sizeof ret_image->arch);
    return 0;
}

/* --- events --------------------------------------------------------------- */

int cri_decode_event(const void *data, size_t size, struct cri_event *ret_event,
                     struct error *err)
{
    static const enum cri_event_kind kinds[] = {
        [CRI__CONTAINER_EVENT_TYPE__CONTAINER_CREATED_EVENT] =
            CRI_EVENT_CREATED,
        [CRI__CONTAINER_EVENT_TYPE__CONTAINER_STARTED_EVENT] =
            CRI_EVENT_STARTED,
        [CRI__CONTAINER_EVENT_TYPE__CONTAINER_STOPPED_EVENT] =
            CRI_EVENT_STOPPED,
        [CRI__CONTAINER_EVENT_TYPE__CONTAINER_DELETED_EVENT] =
            CRI_EVENT_DELETED,
    };
    cleanup_reply struct reply reply;
    const Cri__ContainerEventResponse *m = reply_read(
        &reply, &cri__container_event_response__descriptor, data, size, err);
    if (!m)
        return -EPROTO;
    size_t type = (size_t)m->container_event_type;
    if (type >= ARRAY_LEN(kinds))
        return 1;
    struct cri_event event = {.kind = kinds[type]};
    int r = take_id("container", m->container_id, event.container_id, err);
    const Cri__PodSandboxStatus *sandbox = m->pod_sandbox_status;
    if (r == 0 && sandbox && *sandbox->id)
        r = take_id("sandbox", sandbox->id, event.sandbox_id, err);
    if (sandbox && sandbox->metadata &&
        strlen(sandbox->metadata->uid) < sizeof event.uid)
        grpc_text(sandbox->metadata->uid, strlen(sandbox->metadata->uid),
                  event.uid, sizeof event.uid);
    if (r == 0)
        *ret_event = event;
    return r;
}
