#include "advertiser/cri/cri.h"

#include <string.h>

#include "advertiser/cri/cri_private.h"

#define RUNTIME "/runtime.v1.RuntimeService/"
#define IMAGES "/runtime.v1.ImageService/"

enum {
    REPLY_KEPT = 64 << 10, /* bytes of a buffer that is kept for the next */
};

struct cri {
    struct grpc *grpc;
    const char *endpoint;
    struct str reply; /* of the last call */
    struct grpc_end end;
};

int cri_create(const struct grpc_config *config, struct cri **ret_cri,
               struct error *err)
{
    struct grpc *grpc = NULL;
    int r = grpc_create(config, &grpc, err);
    if (r < 0)
        return r;
    struct cri *c = xcalloc(1, sizeof *c);
    c->grpc = grpc;
    c->endpoint = config->endpoint;
    c->end.code = -1;
    *ret_cri = c;
    return 0;
}

void cri_destroy(struct cri *c)
{
    if (!c)
        return;
    grpc_destroy(c->grpc);
    str_fini(&c->reply);
    free(c);
}

void cri_reconnect(struct cri *c)
{
    grpc_reconnect(c->grpc);
}

void cri_local_address(const struct cri *c, char ret_text[GRPC_ADDRESS_MAX])
{
    grpc_local_address(c->grpc, ret_text);
}

const struct grpc_end *cri_end(const struct cri *c)
{
    return &c->end;
}

/* --- what a call comes to --------------------------------------------------
 */

static int plain_errno(const struct grpc_end *end)
{
    enum { UNAUTHENTICATED = 16 };
    static const int errors[] = {
        [GRPC_NOT_FOUND] = ENOENT,     [GRPC_ALREADY_EXISTS] = EEXIST,
        [GRPC_UNIMPLEMENTED] = ENOSYS, [GRPC_PERMISSION_DENIED] = EACCES,
        [UNAUTHENTICATED] = EACCES,    [GRPC_RESOURCE_EXHAUSTED] = ENOSPC,
        [GRPC_UNAVAILABLE] = EAGAIN,   [GRPC_DEADLINE_EXCEEDED] = ETIMEDOUT,
    };
    if (strstr(end->message, "is reserved for"))
        return EEXIST;
    if (strstr(end->message, "no space left"))
        return ENOSPC;
    size_t code = (size_t)end->code;
    return code < ARRAY_LEN(errors) && errors[code] ? errors[code] : EREMOTEIO;
}

int cri_make_plain(const struct grpc_end *end, int r, struct error *err)
{
    struct error said = *err;
    if (r != -EREMOTEIO || end->code < 0)
        return r;
    bool closed = end->code == GRPC_UNIMPLEMENTED &&
                  strstr(end->message, "unknown service");
    return error_set(err, plain_errno(end), "%s%s", said.text,
                     closed ? "; containerd serves its CRI over TCP only with "
                              "disable_tcp_service = false"
                            : "");
}

/* Name the call in the text of a decoder. */
static int judge(const struct cri *c, const char *method, int r,
                 struct error *err)
{
    if (r < 0 && err && err->code == -r)
        return error_wrap(err, "%s: %s", c->endpoint, strrchr(method, '/') + 1);
    return r;
}

/* The reply is in c->reply. */
static int call_packed(struct cri *c, const char *method, const void *packed,
                       size_t size, unsigned ms, struct error *err)
{
    struct error mine = {0};
    if (c->reply.cap > REPLY_KEPT)
        str_fini(&c->reply);
    err = err ? err : &mine;
    int r = grpc_call(c->grpc, method, packed, size, ms, &c->reply, &c->end,
                      err);
    return cri_make_plain(&c->end, r, err);
}

static int call(struct cri *c, const char *method,
                const ProtobufCMessage *request, unsigned ms, struct error *err)
{
    size_t size = protobuf_c_message_get_packed_size(request);
    cleanup_free uint8_t *packed = xmalloc(size ? size : 1);
    (void)protobuf_c_message_pack(request, packed);
    return call_packed(c, method, packed, size, ms, err);
}

int cri_call(struct cri *c, const char *method, struct cri_bytes request,
             unsigned ms, struct cri_bytes *ret_reply, struct error *err)
{
    int r = call_packed(c, method, request.data, request.size, ms, err);
    if (r == 0)
        *ret_reply = (struct cri_bytes){c->reply.data, c->reply.size};
    return r;
}

static int check_id(const struct cri *c, const char *id, struct error *err)
{
    if (cri_id_valid(id))
        return 0;
    return error_set(err, EINVAL,
                     "%s: \"%.40s\" is no id: 1 to %d of 0-9 and a-f are "
                     "allowed",
                     c->endpoint, id, CRI_ID_MAX);
}

/* A call whose request is the id alone. */
static int call_id(struct cri *c, const char *method, const char *id,
                   unsigned ms, struct error *err)
{
    Cri__IdRequest request = CRI__ID_REQUEST__INIT;
    int r = check_id(c, id, err);
    if (r < 0)
        return r;
    request.id = cri_encode_text(id);
    return call(c, method, &request.base, ms, err);
}

#define DECODE(c, method, decoder, ...) \
    judge((c), (method),                \
          decoder((c)->reply.data, (c)->reply.size, __VA_ARGS__, err), err)

#define cleanup_arena __attribute__((__cleanup__(arena_fini)))

/* --- the runtime ---------------------------------------------------------- */

/* Where there is no such service, grpc-go answers before it has read the call,
 * and libcurl 7.88 forgets the answer when it goes on sending to a stream that
 * has ended: over TLS about one in five. */
static bool may_be_closed(const struct cri *c, int r, const struct error *err)
{
    return r == -EPROTO && c->end.code < 0 && err &&
           strstr(err->text, "broke off the call") &&
           strncmp(c->endpoint, "tcp:", 4) == 0;
}

int cri_version(struct cri *c, unsigned ms, struct cri_version *ret_version,
                struct error *err)
{
    const char *method = RUNTIME "Version";
    Cri__VersionRequest request = CRI__VERSION_REQUEST__INIT;
    request.version = cri_encode_text("v1");
    int r = call(c, method, &request.base, ms, err);
    if (may_be_closed(c, r, err)) {
        struct error said = *err;
        return error_set(err, EPROTO,
                         "%s; a containerd without "
                         "disable_tcp_service = false may do that",
                         said.text);
    }
    return r < 0 ? r : DECODE(c, method, cri_decode_version, ret_version);
}

int cri_status(struct cri *c, unsigned ms, struct cri_status *ret_status,
               struct error *err)
{
    const char *method = RUNTIME "Status";
    Cri__StatusRequest request = CRI__STATUS_REQUEST__INIT;
    int r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_status, ret_status);
}

/* --- sandboxes ------------------------------------------------------------ */

int cri_run_sandbox(struct cri *c, const struct cri_sandbox_config *config,
                    unsigned ms, char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    const char *method = RUNTIME "RunPodSandbox";
    cleanup_arena struct arena a = {0};
    Cri__RunPodSandboxRequest request = CRI__RUN_POD_SANDBOX_REQUEST__INIT;
    request.config = cri_encode_sandbox(&a, config);
    request.runtime_handler = cri_encode_text(config->runtime_handler);
    int r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_id, ret_id);
}

int cri_stop_sandbox(struct cri *c, const char *id, unsigned ms,
                     struct error *err)
{
    return call_id(c, RUNTIME "StopPodSandbox", id, ms, err);
}

int cri_remove_sandbox(struct cri *c, const char *id, unsigned ms,
                       struct error *err)
{
    return call_id(c, RUNTIME "RemovePodSandbox", id, ms, err);
}

int cri_list_sandboxes(struct cri *c, struct cri_pairs labels, unsigned ms,
                       struct cri_sandboxes *ret_list, struct error *err)
{
    const char *method = RUNTIME "ListPodSandbox";
    cleanup_arena struct arena a = {0};
    Cri__PodSandboxFilter filter = CRI__POD_SANDBOX_FILTER__INIT;
    Cri__ListPodSandboxRequest request = CRI__LIST_POD_SANDBOX_REQUEST__INIT;
    filter.n_label_selector = labels.n;
    filter.label_selector = cri_encode_pairs(&a, &labels);
    request.filter = &filter;
    int r = call(c, method, &request.base, ms, err);
    return r < 0 ? r
                 : DECODE(c, method, cri_decode_sandboxes, labels, ret_list);
}

/* --- containers ----------------------------------------------------------- */

int cri_create_container(struct cri *c, const char *sandbox_id,
                         const struct cri_container_config *config,
                         const struct cri_sandbox_config *sandbox, unsigned ms,
                         char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    const char *method = RUNTIME "CreateContainer";
    cleanup_arena struct arena a = {0};
    Cri__CreateContainerRequest request = CRI__CREATE_CONTAINER_REQUEST__INIT;
    int r = check_id(c, sandbox_id, err);
    if (r < 0)
        return r;
    request.pod_sandbox_id = cri_encode_text(sandbox_id);
    request.config = cri_encode_container(&a, config, sandbox);
    request.sandbox_config = cri_encode_sandbox(&a, sandbox);
    r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_id, ret_id);
}

int cri_start_container(struct cri *c, const char *id, unsigned ms,
                        struct error *err)
{
    return call_id(c, RUNTIME "StartContainer", id, ms, err);
}

int cri_stop_container(struct cri *c, const char *id, uint32_t grace_s,
                       unsigned ms, struct error *err)
{
    Cri__StopContainerRequest request = CRI__STOP_CONTAINER_REQUEST__INIT;
    int r = check_id(c, id, err);
    if (r < 0)
        return r;
    request.container_id = cri_encode_text(id);
    request.timeout = grace_s;
    return call(c, RUNTIME "StopContainer", &request.base, ms, err);
}

int cri_remove_container(struct cri *c, const char *id, unsigned ms,
                         struct error *err)
{
    return call_id(c, RUNTIME "RemoveContainer", id, ms, err);
}

int cri_list_containers(struct cri *c, struct cri_pairs labels, unsigned ms,
                        struct cri_containers *ret_list, struct error *err)
{
    const char *method = RUNTIME "ListContainers";
    cleanup_arena struct arena a = {0};
    Cri__ContainerFilter filter = CRI__CONTAINER_FILTER__INIT;
    Cri__ListContainersRequest request = CRI__LIST_CONTAINERS_REQUEST__INIT;
    filter.n_label_selector = labels.n;
    filter.label_selector = cri_encode_pairs(&a, &labels);
    request.filter = &filter;
    int r = call(c, method, &request.base, ms, err);
    return r < 0 ? r
                 : DECODE(c, method, cri_decode_containers, labels, ret_list);
}

int cri_container_status(struct cri *c, const char *id, unsigned ms,
                         struct cri_container *ret_container, struct error *err)
{
    const char *method = RUNTIME "ContainerStatus";
    int r = call_id(c, method, id, ms, err);
    return r < 0 ? r
                 : DECODE(c, method, cri_decode_container, id, ret_container);
}

void cri_exec_fini(struct cri_exec *e)
{
    str_fini(&e->out);
    str_fini(&e->err);
}

int cri_exec_sync(struct cri *c, const char *id, const char *const *argv,
                  size_t n_argv, uint32_t timeout_s, unsigned ms,
                  struct cri_exec *ret_exec, struct error *err)
{
    const char *method = RUNTIME "ExecSync";
    Cri__ExecSyncRequest request = CRI__EXEC_SYNC_REQUEST__INIT;
    int r = check_id(c, id, err);
    if (r < 0)
        return r;
    request.container_id = cri_encode_text(id);
    request.n_cmd = n_argv;
    request.cmd = cri_encode_texts(argv);
    request.timeout = timeout_s;
    r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_exec, ret_exec);
}

int cri_list_usage(struct cri *c, unsigned ms, struct cri_usages *ret_list,
                   struct error *err)
{
    const char *method = RUNTIME "ListContainerStats";
    Cri__ListContainerStatsRequest request =
        CRI__LIST_CONTAINER_STATS_REQUEST__INIT;
    int r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_usages, ret_list);
}

/* --- streams -------------------------------------------------------------- */

int cri_exec_url(struct cri *c, const char *id, const struct cri_command *cmd,
                 unsigned ms, char ret_url[CRI_TEXT_MAX], struct error *err)
{
    const char *method = RUNTIME "Exec";
    Cri__ExecRequest request = CRI__EXEC_REQUEST__INIT;
    int r = check_id(c, id, err);
    if (r < 0)
        return r;
    request.container_id = cri_encode_text(id);
    request.n_cmd = cmd->n_argv;
    request.cmd = cri_encode_texts(cmd->argv);
    request.stdin = cmd->streams.in;
    request.stdout = cmd->streams.out;
    request.stderr = cmd->streams.err;
    request.tty = cmd->streams.tty;
    r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_url, ret_url);
}

int cri_attach_url(struct cri *c, const char *id,
                   const struct cri_streams *streams, unsigned ms,
                   char ret_url[CRI_TEXT_MAX], struct error *err)
{
    const char *method = RUNTIME "Attach";
    Cri__AttachRequest request = CRI__ATTACH_REQUEST__INIT;
    int r = check_id(c, id, err);
    if (r < 0)
        return r;
    request.container_id = cri_encode_text(id);
    request.stdin = streams->in;
    request.stdout = streams->out;
    request.stderr = streams->err;
    request.tty = streams->tty;
    r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_url, ret_url);
}

int cri_forward_url(struct cri *c, const char *sandbox_id,
                    const struct cri_ports *ports, unsigned ms,
                    char ret_url[CRI_TEXT_MAX], struct error *err)
{
    const char *method = RUNTIME "PortForward";
    Cri__PortForwardRequest request = CRI__PORT_FORWARD_REQUEST__INIT;
    int r = check_id(c, sandbox_id, err);
    if (r < 0)
        return r;
    request.pod_sandbox_id = cri_encode_text(sandbox_id);
    request.n_port = ports->n;
    request.port = (int32_t *)(uintptr_t)ports->list; /* read only */
    r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_url, ret_url);
}

/* --- images --------------------------------------------------------------- */

int cri_image_status(struct cri *c, const char *image, unsigned ms,
                     struct cri_image *ret_image, struct error *err)
{
    const char *method = IMAGES "ImageStatus";
    cleanup_arena struct arena a = {0};
    Cri__ImageStatusRequest request = CRI__IMAGE_STATUS_REQUEST__INIT;
    request.image = cri_encode_image(&a, image);
    request.verbose = true; /* what it is made for */
    int r = call(c, method, &request.base, ms, err);
    return r < 0 ? r : DECODE(c, method, cri_decode_image, ret_image);
}

int cri_pull_image(struct cri *c, const char *image,
                   const struct cri_sandbox_config *sandbox, unsigned ms,
                   struct error *err)
{
    cleanup_arena struct arena a = {0};
    Cri__PullImageRequest request = CRI__PULL_IMAGE_REQUEST__INIT;
    request.image = cri_encode_image(&a, image);
    request.sandbox_config = sandbox ? cri_encode_sandbox(&a, sandbox) : NULL;
    return call(c, IMAGES "PullImage", &request.base, ms, err);
}
