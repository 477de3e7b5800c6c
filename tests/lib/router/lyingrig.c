#include "tests/lib/router/lyingrig.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "router/wire/fields.h"
#include "tests/lib/tmpdir.h"

/* --- calls -------------------------------------------------------------------
 */

int lyingrig_call(struct lyingrig *r, const char *method,
                  const struct str *request)
{
    struct rpc_call c;
    char path[80];
    (void)snprintf(path, sizeof path, "/runtime.v1.%s/%s",
                   strstr(method, "Image") ? "ImageService" : "RuntimeService",
                   method);
    rpc_begin(r->kubelet, &c, path, NULL);
    rpc_send(&c, str_text(request), request->size);
    rpc_send_end(&c);
    int code = rpc_wait(&c);
    (void)snprintf(r->text, sizeof r->text, "%s", rpc_text(&c));
    str_reset(&r->reply);
    if (c.in.size > 5)
        str_add_n(&r->reply, c.in.data + 5, c.in.size - 5);
    rpc_end(&c);
    return code;
}

int lyingrig_call_id(struct lyingrig *r, const char *method, const char *id)
{
    cleanup_str struct str request = STR_INIT(256);
    proto_add_text(&request, 1, id);
    return lyingrig_call(r, method, &request);
}

static void add_config(struct str *out, uint32_t number, const char *name,
                       const char *card)
{
    size_t config = proto_open(out, number);
    size_t metadata = proto_open(out, CRI_PodSandboxConfig_metadata);
    proto_add_text(out, CRI_PodSandboxMetadata_name, name);
    proto_add_text(out, CRI_PodSandboxMetadata_uid, name);
    proto_add_text(out, CRI_PodSandboxMetadata_namespace, "ns");
    proto_close(out, metadata);
    if (card) {
        cleanup_free char *text = xasprintf(
            "{\"pod\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\","
            "\"role\":\"xpu\"},\"node\":\"n1\",\"cards\":[{\"id\":\"%s\"}]}",
            name, name, card);
        proto_add_pair(out, CRI_PodSandboxConfig_annotations,
                       "biga.dev/allocation", text);
    }
    proto_close(out, config);
}

/* The id in the reply; "" when there is none. */
static void take_id(const struct lyingrig *r, char ret_id[LYINGRIG_ID])
{
    struct proto_field f;
    const struct proto_bytes reply = {str_text(&r->reply), r->reply.size};
    bool has = proto_find(reply, 1, PROTO_BYTES, &f, NULL) == 1;
    (void)snprintf(ret_id, LYINGRIG_ID, "%.*s", has ? (int)f.bytes.size : 0,
                   has ? f.bytes.data : "");
}

int lyingrig_run(struct lyingrig *r, const char *name, const char *card,
                 char ret_id[LYINGRIG_ID])
{
    cleanup_str struct str request = STR_INIT(4096);
    add_config(&request, CRI_RunPodSandboxRequest_config, name, card);
    proto_add_text(&request, CRI_RunPodSandboxRequest_runtime_handler,
                   card ? "xpu" : "");
    int code = lyingrig_call(r, "RunPodSandbox", &request);
    take_id(r, ret_id);
    return code;
}

int lyingrig_create(struct lyingrig *r, const char *name,
                    char ret_id[LYINGRIG_ID])
{
    cleanup_str struct str request = STR_INIT(4096);
    proto_add_text(&request, CRI_CreateContainerRequest_pod_sandbox_id, r->pod);
    size_t config = proto_open(&request, CRI_CreateContainerRequest_config);
    size_t metadata = proto_open(&request, CRI_ContainerConfig_metadata);
    proto_add_text(&request, CRI_ContainerMetadata_name, name);
    proto_close(&request, metadata);
    proto_close(&request, config);
    add_config(&request, CRI_CreateContainerRequest_sandbox_config, "a",
               r->places[0].name);
    int code = lyingrig_call(r, "CreateContainer", &request);
    take_id(r, ret_id);
    return code;
}

/* --- from start to end ----------------------------------------------------------
 */

static void start(struct lyingrig *r)
{
    struct error err = {0};
    const struct serve_config config = {
        .listen = r->listen,
        .home = r->home_path,
        .state = r->state,
        .kubelet_dir = r->dir,
        .pod_logs = r->dir,
        .node = "n1",
        .cluster = "c",
        .handler = "xpu",
        .remote_handler = "",
        .default_remote = r->places[0].name,
        .helper_image = "biga-card:1",
        .card_dir = "/var/lib/biga",
        .hooks = "",
        .timeout_ms = LYINGRIG_MS,
        .pull_timeout_ms = LYINGRIG_MS,
        .probe_ms = 100,
        .lost_ms = 4 * LYINGRIG_MS, /* four times what a probe may take */
        .fresh_ms = LYINGRIG_MS,
        .status_ms = LYINGRIG_MS,
        .places = r->places,
        .n_places = LYINGRIG_CARDS,
    };
    cr_assert_eq(serve_start(&config, &r->serve, &err), 0, "%s", err.text);
    r->kubelet = rpc_open(r->listen);
}

void lyingrig_open(struct lyingrig *r)
{
    *r = (struct lyingrig){.dir = tmpdir_create(),
                           .reply = STR_INIT(LYINGRIG_ROOM)};
    r->lie.reply = STR_INIT(LYINGRIG_ROOM);
    log_set_level((enum log_level)(LOG_ERROR + 1));
    r->listen = xasprintf("%s/cri.sock", r->dir);
    r->home_path = xasprintf("%s/home.sock", r->dir);
    r->state = xasprintf("%s/state", r->dir);
    cr_assert_eq(mkdir(r->state, 0700), 0);
    r->home = runtimeserver_start(r->home_path);
    for (int i = 0; i < LYINGRIG_CARDS; i++) {
        cleanup_free char *path = xasprintf("%s/card-%d", r->dir, i);
        struct act_place *p = &r->places[i];
        (void)snprintf(p->name, sizeof p->name, "card-0000-1%d-00", i);
        (void)snprintf(p->endpoint, sizeof p->endpoint, "unix://%s", path);
        r->cards[i] = runtimeserver_start(path);
    }
    start(r);
    cr_assert_eq(lyingrig_run(r, "host", NULL, r->host), 0, "%s", r->text);
    cr_assert_eq(lyingrig_run(r, "other", r->places[1].name, r->other), 0, "%s",
                 r->text);
    cr_assert_eq(lyingrig_run(r, "a", r->places[0].name, r->pod), 0, "%s",
                 r->text);
    cr_assert_eq(lyingrig_create(r, "main", r->container), 0, "%s", r->text);
}

void lyingrig_close(struct lyingrig *r)
{
    rpc_close(r->kubelet);
    serve_stop(r->serve, 0);
    runtimeserver_stop(r->home);
    runtimeserver_stop(r->cards[0]);
    runtimeserver_stop(r->cards[1]);
    tmpdir_remove(r->dir);
    free(r->listen);
    free(r->home_path);
    free(r->state);
    str_fini(&r->reply);
    str_fini(&r->lie.reply);
}

/* --- lies ---------------------------------------------------------------------
 */

static int tell(void *ctx, const char *method, int code, struct str *reply)
{
    const struct lyingrig_lie *l = ctx;
    if (strcmp(method, l->method) != 0)
        return code;
    str_reset(reply);
    str_add_n(reply, str_text(&l->reply), l->reply.size);
    return l->code;
}

/* The second time it was told before. */
void lyingrig_wait_asked(struct lyingrig *r, const char *method)
{
    unsigned from = runtimeserver_calls(r->cards[0], method);
    while (runtimeserver_calls(r->cards[0], method) < from + 2)
        (void)poll(NULL, 0, 2);
}

void lyingrig_lie(struct lyingrig *r, const char *method, int code)
{
    r->lie.method = method;
    r->lie.code = code;
    runtimeserver_lie(r->cards[0], tell, &r->lie);
}

void lyingrig_be_honest(struct lyingrig *r)
{
    runtimeserver_lie(r->cards[0], NULL, NULL);
    str_reset(&r->lie.reply);
}

void lyingrig_lie_id(struct lyingrig *r, const char *method, const char *id,
                     size_t size)
{
    proto_add_bytes(&r->lie.reply, 1, (struct proto_bytes){id, size});
    lyingrig_lie(r, method, 0);
}

bool lyingrig_says(const struct lyingrig *r, const char *text)
{
    return r->reply.size &&
           memmem(r->reply.data, r->reply.size, text, strlen(text));
}

size_t lyingrig_count(struct lyingrig *r, const char *method)
{
    const struct str all = {0};
    struct proto_reader p;
    struct proto_field f;
    size_t n = 0;
    cr_assert_eq(lyingrig_call(r, method, &all), 0, "%s: %s", method, r->text);
    proto_reader_init(&p,
                      (struct proto_bytes){str_text(&r->reply), r->reply.size});
    while (proto_next(&p, &f, NULL) == 1)
        n++;
    return n;
}

bool lyingrig_check_others(struct lyingrig *r)
{
    char id[LYINGRIG_ID];
    /* its pod and that pod's container, and what it has made and lied about */
    unsigned there = runtimeserver_count(r->cards[0], NULL);
    size_t n = lyingrig_count(r, "ListPodSandbox");
    bool listed = lyingrig_says(r, r->pod);
    cr_assert(lyingrig_says(r, r->host) && lyingrig_says(r, r->other));
    cr_assert_geq(n, listed ? 3 : 2, "%zu", n);
    cr_assert_leq(n, listed ? 1 + there : 2, "%zu", n);
    cr_assert_eq(lyingrig_call_id(r, "PodSandboxStatus", r->host), 0, "%s",
                 r->text);
    cr_assert_eq(lyingrig_call_id(r, "PodSandboxStatus", r->other), 0, "%s",
                 r->text);
    cr_assert_eq(lyingrig_run(r, "b", r->places[1].name, id), 0, "%s", r->text);
    cr_assert_eq(lyingrig_call_id(r, "RemovePodSandbox", id), 0, "%s", r->text);
    return listed;
}
