#include "advertiser/cri/cri.h"

#include <criterion/criterion.h>

#include "advertiser/cri/cri_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/http/h2server.h"
#include "tests/lib/tmpdir.h"

enum { MS = 600000, REQUEST_MAX = 16384 };

#define ID "0123456789abcdef"

/* --- a runtime ------------------------------------------------------------ */

struct place {
    char *dir, *socket, *endpoint;
    struct h2_server *server;
    struct cri *cri;
    struct error err;
};

static void place_init(struct place *p)
{
    memset(p, 0, sizeof *p);
    p->dir = tmpdir_create();
    p->socket = xasprintf("%s/cri.sock", p->dir);
    p->endpoint = xasprintf("unix://%s", p->socket);
    const struct h2_config how = {.socket = p->socket};
    p->server = h2_server_start(&how);
    const struct grpc_config config = {.endpoint = p->endpoint};
    cr_assert_eq(cri_create(&config, &p->cri, &p->err), 0, "%s", p->err.text);
}

static void place_fini(struct place *p)
{
    cri_destroy(p->cri);
    h2_server_stop(p->server);
    tmpdir_remove(p->dir);
    free(p->endpoint);
    free(p->socket);
}

static void will_answer(struct place *p, const char *method,
                        const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    cleanup_free uint8_t *packed = xmalloc(size + 1);
    (void)protobuf_c_message_pack(message, packed);
    h2_server_reply(p->server, method, packed, size);
}

/* What the server was asked; free with protobuf_c_message_free_unpacked(). */
static void *asked(struct place *p, const ProtobufCMessageDescriptor *type)
{
    static uint8_t request[REQUEST_MAX];
    size_t size = h2_server_request(p->server, request, sizeof request);
    cr_assert_leq(size, sizeof request);
    void *message = protobuf_c_message_unpack(type, NULL, size, request);
    cr_assert_not_null(message);
    return message;
}

static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant;
}

/* --- calls ---------------------------------------------------------------- */

Test(cri, version_and_status)
{
    struct place p;
    struct cri_version version;
    struct cri_status status;
    Cri__VersionResponse v = CRI__VERSION_RESPONSE__INIT;
    Cri__RuntimeCondition ready = CRI__RUNTIME_CONDITION__INIT;
    Cri__RuntimeCondition network = CRI__RUNTIME_CONDITION__INIT;
    Cri__RuntimeCondition *both[] = {&ready, &network};
    Cri__RuntimeStatus inner = CRI__RUNTIME_STATUS__INIT;
    Cri__StatusResponse s = CRI__STATUS_RESPONSE__INIT;
    place_init(&p);
    v.runtime_name = text("containerd");
    v.runtime_version = text("1.6.20\033[2J");
    v.runtime_api_version = text("v1");
    will_answer(&p, "Version", &v.base);
    cr_assert_eq(cri_version(p.cri, MS, &version, &p.err), 0, "%s", p.err.text);
    cr_expect_str_eq(version.runtime, "containerd");
    cr_expect_str_eq(version.version, "1.6.20?[2J");
    cr_expect_str_eq(version.api, "v1");
    cr_expect_eq(cri_end(p.cri)->code, GRPC_OK);

    ready.type = text("RuntimeReady");
    ready.status = true;
    network.type = text("NetworkReady");
    network.message = text("no plugin");
    inner.conditions = both;
    inner.n_conditions = 2;
    s.status = &inner;
    will_answer(&p, "Status", &s.base);
    cr_assert_eq(cri_status(p.cri, MS, &status, &p.err), 0, "%s", p.err.text);
    cr_expect(status.runtime_ready);
    cr_expect_not(status.network_ready);
    cr_expect_str_eq(status.reason, "no plugin");
    place_fini(&p);
}

static const struct cri_pair labels[] = {{"biga.dev/node", "n1"},
                                         {"biga.dev/pod-uid", "u1"}};
static const struct cri_sandbox_config sandbox = {
    .namespace = "ns",
    .name = "pod",
    .uid = "u1",
    .attempt = 7,
    .log_directory = "/var/log/biga/u1",
    .labels = {labels, 2},
    .runtime_handler = "",
    .host_network = true,
    .run_as_user = -1,
};

Test(cri, a_sandbox_is_asked_for)
{
    struct place p;
    char id[CRI_ID_MAX + 1];
    Cri__RunPodSandboxResponse r = CRI__RUN_POD_SANDBOX_RESPONSE__INIT;
    place_init(&p);
    r.pod_sandbox_id = text(ID);
    will_answer(&p, "RunPodSandbox", &r.base);
    cr_assert_eq(cri_run_sandbox(p.cri, &sandbox, MS, id, &p.err), 0, "%s",
                 p.err.text);
    cr_expect_str_eq(id, ID);
    Cri__RunPodSandboxRequest *q =
        asked(&p, &cri__run_pod_sandbox_request__descriptor);
    const Cri__NamespaceOption *o =
        q->config->linux_config->security_context->namespace_options;
    cr_expect_str_eq(q->config->metadata->namespace_, "ns");
    cr_expect_str_eq(q->config->metadata->name, "pod");
    cr_expect_str_eq(q->config->metadata->uid, "u1");
    cr_expect_eq(q->config->metadata->attempt, 7);
    cr_expect_str_eq(q->config->hostname, "");
    cr_expect_eq(q->config->n_labels, 2);
    cr_expect_str_eq(q->config->labels[1]->value, "u1");
    cr_expect_eq(o->network, CRI__NAMESPACE_MODE__NODE);
    cr_expect_eq(o->pid, CRI__NAMESPACE_MODE__CONTAINER);
    cr_expect_null(q->config->linux_config->security_context->run_as_user);
    protobuf_c_message_free_unpacked(&q->base, NULL);
    place_fini(&p);
}

/* The request for the container of the test below. */
static void expect_container(const Cri__CreateContainerRequest *q)
{
    const Cri__LinuxContainerConfig *l = q->config->linux_config;
    cr_expect_str_eq(q->pod_sandbox_id, ID);
    cr_expect_str_eq(q->sandbox_config->metadata->uid, "u1");
    cr_expect_str_eq(q->config->image->image, "biga-busybox:1");
    cr_expect_eq(q->config->n_command, 2);
    cr_expect_str_eq(q->config->command[1], "-c");
    cr_expect_str_eq(q->config->args[0], "true");
    cr_expect_str_eq(q->config->envs[0]->key, "BIGA_RANK");
    cr_expect_str_eq(q->config->mounts[0]->host_path, "/run/biga/x");
    cr_expect(q->config->mounts[0]->readonly);
    cr_expect_eq(q->config->mounts[0]->propagation, 2);
    cr_assert_eq(q->config->n_devices, 1);
    cr_expect_str_eq(q->config->devices[0]->host_path, "/dev/uio0");
    cr_expect_str_eq(q->config->devices[0]->container_path, "/dev/uio0");
    cr_expect_str_eq(q->config->devices[0]->permissions, "rw");
    cr_expect_eq(l->resources->cpu_quota, 200000);
    cr_expect_str_eq(l->resources->cpuset_cpus, "0-3");
    cr_expect_eq(l->security_context->run_as_user->value, 1000);
    cr_expect_null(l->security_context->run_as_group);
    cr_expect(l->security_context->no_new_privs);
    cr_expect(l->security_context->readonly_rootfs);
    cr_expect_str_eq(l->security_context->capabilities->drop_capabilities[0],
                     "ALL");
    cr_expect_gt(l->security_context->n_masked_paths, 5);
    cr_expect_eq(l->security_context->namespace_options->network,
                 CRI__NAMESPACE_MODE__NODE);
}

Test(cri, a_container_is_asked_for)
{
    static const char *const command[] = {"/bin/sh", "-c"};
    static const char *const args[] = {"true"};
    static const char *const drop[] = {"ALL"};
    static const struct cri_pair env[] = {{"BIGA_RANK", "3"}};
    static const struct cri_mount mounts[] = {
        {"/etc/x", "/run/biga/x", true, true}};
    static const char *const devices[] = {"/dev/uio0"};
    const struct cri_container_config config = {
        .name = "main",
        .image = "biga-busybox:1",
        .command = command,
        .n_command = 2,
        .args = args,
        .n_args = 1,
        .env = {env, 1},
        .mounts = mounts,
        .n_mounts = 1,
        .devices = devices,
        .n_devices = 1,
        .log_path = "main/0.log",
        .cpu_period = 100000,
        .cpu_quota = 200000,
        .cpuset_cpus = "0-3",
        .memory_limit = 1 << 30,
        .run_as_user = 1000,
        .run_as_group = -1,
        .read_only_root = true,
        .no_new_privileges = true,
        .cap_drop = drop,
        .n_cap_drop = 1,
    };
    struct place p;
    char id[CRI_ID_MAX + 1];
    Cri__CreateContainerResponse r = CRI__CREATE_CONTAINER_RESPONSE__INIT;
    place_init(&p);
    r.container_id = text("c1");
    will_answer(&p, "CreateContainer", &r.base);
    cr_assert_eq(
        cri_create_container(p.cri, ID, &config, &sandbox, MS, id, &p.err), 0,
        "%s", p.err.text);
    cr_expect_str_eq(id, "c1");
    Cri__CreateContainerRequest *q =
        asked(&p, &cri__create_container_request__descriptor);
    expect_container(q);
    protobuf_c_message_free_unpacked(&q->base, NULL);
    place_fini(&p);
}

Test(cri, ids_are_checked_before_they_are_used)
{
    static const char *const bad[] = {"", "../x", "A0", "0 1", "g"};
    struct place p;
    place_init(&p);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cr_expect_eq(cri_stop_sandbox(p.cri, bad[i], MS, &p.err), -EINVAL);
        cr_expect_eq(cri_stop_container(p.cri, bad[i], 1, MS, &p.err), -EINVAL);
        cr_expect_eq(cri_remove_sandbox(p.cri, bad[i], MS, &p.err), -EINVAL);
    }
    cr_expect_eq(h2_server_calls(p.server), 0);
    place_fini(&p);
}

Test(cri, bad_ids_that_come_are_refused)
{
    static const char *const bad[] = {"", "../../etc/passwd", "ABC", "a b"};
    struct place p;
    char id[CRI_ID_MAX + 1] = "untouched", longest[CRI_ID_MAX + 2] = {0};
    Cri__RunPodSandboxResponse r = CRI__RUN_POD_SANDBOX_RESPONSE__INIT;
    place_init(&p);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        r.pod_sandbox_id = text(bad[i]);
        will_answer(&p, "RunPodSandbox", &r.base);
        cr_expect_eq(cri_run_sandbox(p.cri, &sandbox, MS, id, &p.err), -EPROTO);
        cr_expect(strstr(p.err.text, "RunPodSandbox"), "%s", p.err.text);
        cr_expect(strstr(p.err.text, p.endpoint), "%s", p.err.text);
        cr_expect_str_eq(id, "untouched");
    }
    memset(longest, 'a', CRI_ID_MAX + 1);
    r.pod_sandbox_id = longest;
    will_answer(&p, "RunPodSandbox", &r.base);
    cr_expect_eq(cri_run_sandbox(p.cri, &sandbox, MS, id, &p.err), -EPROTO);
    longest[CRI_ID_MAX] = '\0';
    will_answer(&p, "RunPodSandbox", &r.base);
    cr_expect_eq(cri_run_sandbox(p.cri, &sandbox, MS, id, &p.err), 0);
    place_fini(&p);
}

/* --- lists ---------------------------------------------------------------- */

Test(cri, a_list_has_only_what_has_the_labels)
{
    struct place p;
    struct cri_sandboxes list = {0};
    Cri__Pair node = CRI__PAIR__INIT, uid = CRI__PAIR__INIT;
    Cri__Pair *two[] = {&node, &uid};
    Cri__PodSandbox ours = CRI__POD_SANDBOX__INIT,
                    foreign = CRI__POD_SANDBOX__INIT;
    Cri__PodSandbox *both[] = {&foreign, &ours};
    Cri__ListPodSandboxResponse r = CRI__LIST_POD_SANDBOX_RESPONSE__INIT;
    place_init(&p);
    node.key = text("biga.dev/node");
    node.value = text("n1");
    uid.key = text("biga.dev/pod-uid");
    uid.value = text("u1");
    ours.id = text("aa");
    ours.labels = two;
    ours.n_labels = 2;
    ours.created_at = 123;
    foreign.id = text("bb");
    foreign.labels = two;
    foreign.n_labels = 1;
    foreign.state = CRI__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
    r.items = both;
    r.n_items = 2;
    will_answer(&p, "ListPodSandbox", &r.base);
    struct cri_pairs wanted = {labels, 2};
    cr_assert_eq(cri_list_sandboxes(p.cri, wanted, MS, &list, &p.err), 0, "%s",
                 p.err.text);
    cr_assert_eq(list.n, 1);
    cr_expect_str_eq(list.list[0].id, "aa");
    cr_expect(list.list[0].ready);
    cr_expect_eq(list.list[0].created_ns, 123);
    cr_expect_str_eq(list.list[0].labels[1].value, "u1");
    cri_sandboxes_fini(&list);
    Cri__ListPodSandboxRequest *q =
        asked(&p, &cri__list_pod_sandbox_request__descriptor);
    cr_expect_eq(q->filter->n_label_selector, 2);
    protobuf_c_message_free_unpacked(&q->base, NULL);
    wanted.n = 0;
    cr_assert_eq(cri_list_sandboxes(p.cri, wanted, MS, &list, &p.err), 0);
    cr_expect_eq(list.n, 2);
    cr_expect_not(list.list[0].ready);
    cri_sandboxes_fini(&list);
    place_fini(&p);
}

static int list_of(struct place *p, size_t n, struct cri_containers *ret_list)
{
    Cri__Container one = CRI__CONTAINER__INIT;
    Cri__ListContainersResponse r = CRI__LIST_CONTAINERS_RESPONSE__INIT;
    cleanup_free Cri__Container **all = xcalloc(n, sizeof *all);
    one.id = text("c1");
    one.pod_sandbox_id = text("a1");
    for (size_t i = 0; i < n; i++)
        all[i] = &one;
    r.containers = all;
    r.n_containers = n;
    will_answer(p, "ListContainers", &r.base);
    return cri_list_containers(p->cri, (struct cri_pairs){0}, MS, ret_list,
                               &p->err);
}

Test(cri, lists_have_a_cap)
{
    struct place p;
    struct cri_containers list = {0};
    place_init(&p);
    cr_assert_eq(list_of(&p, CRI_OBJECTS_MAX, &list), 0, "%s", p.err.text);
    cr_expect_eq(list.n, CRI_OBJECTS_MAX);
    cri_containers_fini(&list);
    cr_expect_eq(list_of(&p, CRI_OBJECTS_MAX + 1, &list), -EPROTO);
    cr_expect(strstr(p.err.text, "4097 containers"), "%s", p.err.text);
    place_fini(&p);
}

/* Two bytes each that would be a message of a hundred. */
Test(cri, a_small_reply_cannot_take_much_memory)
{
    struct place p;
    struct cri_containers list = {0};
    size_t size = 16 << 20;
    cleanup_free char *bomb = xmalloc(size);
    place_init(&p);
    for (size_t i = 0; i < size; i += 2) {
        bomb[i] = 0x0a;
        bomb[i + 1] = 0;
    }
    h2_server_reply(p.server, "ListContainers", bomb, size);
    cr_expect_eq(
        cri_list_containers(p.cri, (struct cri_pairs){0}, MS, &list, &p.err),
        -EPROTO);
    cr_expect(strstr(p.err.text, "ListContainers"), "%s", p.err.text);
    cr_expect_eq(list_of(&p, 1, &list), 0, "%s", p.err.text);
    cri_containers_fini(&list);
    place_fini(&p);
}

Test(cri, garbage_is_named)
{
    struct place p;
    struct cri_version version;
    place_init(&p);
    h2_server_fault(p.server, H2_GARBAGE);
    cr_expect_eq(cri_version(p.cri, MS, &version, &p.err), -EPROTO);
    cr_expect(strstr(p.err.text, "VersionResponse"), "%s", p.err.text);
    place_fini(&p);
}

/* --- states --------------------------------------------------------------- */

Test(cri, a_status_is_about_what_was_asked)
{
    struct place p;
    struct cri_container c = {0};
    Cri__ContainerMetadata m = CRI__CONTAINER_METADATA__INIT;
    Cri__ContainerStatus s = CRI__CONTAINER_STATUS__INIT;
    Cri__ContainerStatusResponse r = CRI__CONTAINER_STATUS_RESPONSE__INIT;
    place_init(&p);
    m.name = text("main");
    m.attempt = 2;
    s.id = text("c1");
    s.metadata = &m;
    s.state = CRI__CONTAINER_STATE__CONTAINER_EXITED;
    s.exit_code = 137;
    s.started_at = 5;
    s.finished_at = 9;
    s.reason = text("OOMKilled");
    r.status = &s;
    will_answer(&p, "ContainerStatus", &r.base);
    cr_assert_eq(cri_container_status(p.cri, "c1", MS, &c, &p.err), 0, "%s",
                 p.err.text);
    cr_expect_eq(c.state, CRI_EXITED);
    cr_expect_eq(c.exit_code, 137);
    cr_expect_eq(c.attempt, 2);
    cr_expect_str_eq(c.name, "main");
    cr_expect_str_eq(c.reason, "OOMKilled");
    cri_container_fini(&c);
    cr_expect_eq(cri_container_status(p.cri, "c2", MS, &c, &p.err), -EPROTO);
    cr_expect(strstr(p.err.text, "asked for"), "%s", p.err.text);
    r.status = NULL;
    will_answer(&p, "ContainerStatus", &r.base);
    cr_expect_eq(cri_container_status(p.cri, "c1", MS, &c, &p.err), -EPROTO);
    s.state = (Cri__ContainerState)99;
    r.status = &s;
    will_answer(&p, "ContainerStatus", &r.base);
    cr_assert_eq(cri_container_status(p.cri, "c1", MS, &c, &p.err), 0);
    cr_expect_eq(c.state, CRI_UNKNOWN);
    cri_container_fini(&c);
    place_fini(&p);
}

Test(cri, the_servers_codes_are_made_plain)
{
    static const struct {
        int code;
        const char *says;
        int expected;
    } cases[] = {
        {GRPC_NOT_FOUND, "no such", ENOENT},
        {GRPC_ALREADY_EXISTS, "there", EEXIST},
        {GRPC_UNKNOWN, "name \"x\" is reserved for \"y\"", EEXIST},
        {GRPC_UNIMPLEMENTED, "unknown method", ENOSYS},
        {GRPC_PERMISSION_DENIED, "no", EACCES},
        {GRPC_RESOURCE_EXHAUSTED, "full", ENOSPC},
        {GRPC_UNKNOWN, "write: no space left on device", ENOSPC},
        {GRPC_UNAVAILABLE, "later", EAGAIN},
        {GRPC_DEADLINE_EXCEEDED, "late", ETIMEDOUT},
        {GRPC_UNKNOWN, "whatever", EREMOTEIO},
    };
    struct place p;
    place_init(&p);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        h2_server_status(p.server, "StartContainer", cases[i].code,
                         cases[i].says);
        cr_expect_eq(cri_start_container(p.cri, ID, MS, &p.err),
                     -cases[i].expected, "%s", p.err.text);
        cr_expect(strstr(p.err.text, cases[i].says), "%s", p.err.text);
        cr_expect_eq(cri_end(p.cri)->code, cases[i].code);
        /* nobody has to ask why */
        cr_expect_eq(cri_start_container(p.cri, ID, MS, NULL),
                     -cases[i].expected);
    }
    h2_server_status(p.server, "StartContainer", GRPC_UNIMPLEMENTED,
                     "unknown service runtime.v1.RuntimeService");
    cr_expect_eq(cri_start_container(p.cri, ID, MS, &p.err), -ENOSYS);
    cr_expect(strstr(p.err.text, "disable_tcp_service"), "%s", p.err.text);
    place_fini(&p);
}

/* libcurl may lose that answer, but not what to do. */
Test(cri, an_answer_that_is_lost_has_a_hint)
{
    const struct h2_config how = {0};
    struct h2_server *server = h2_server_start(&how);
    cleanup_free char *endpoint = xasprintf("tcp://127.0.0.1:%u",
                                            (unsigned)h2_server_port(server));
    const struct grpc_config config = {.endpoint = endpoint, .plaintext = true};
    struct cri_version version;
    struct error err = {0};
    struct cri *cri = NULL;
    h2_server_fault(server, H2_RESET);
    cr_assert_eq(cri_create(&config, &cri, &err), 0, "%s", err.text);
    cr_expect_eq(cri_version(cri, MS, &version, &err), -EPROTO);
    cr_expect(strstr(err.text, "disable_tcp_service = false"), "%s", err.text);
    cr_expect_eq(cri_version(cri, MS, &version, NULL), -EPROTO);
    cri_destroy(cri);
    h2_server_stop(server);
}

/* --- the rest ------------------------------------------------------------- */

Test(cri, a_command_is_run)
{
    static const char *const argv[] = {"cat", "/x"};
    struct place p;
    struct cri_exec e = {0};
    Cri__ExecSyncResponse r = CRI__EXEC_SYNC_RESPONSE__INIT;
    cleanup_free uint8_t *much = xcalloc(1, CRI_EXEC_OUTPUT_MAX + 1);
    place_init(&p);
    r.stdout_data = (ProtobufCBinaryData){5, (uint8_t *)text("a\0b\nc")};
    r.exit_code = 3;
    will_answer(&p, "ExecSync", &r.base);
    cr_assert_eq(cri_exec_sync(p.cri, ID, argv, 2, 10, MS, &e, &p.err), 0, "%s",
                 p.err.text);
    cr_expect_eq(e.exit_code, 3);
    cr_expect_eq(e.out.size, 5);
    cr_expect_arr_eq(e.out.data, "a\0b\nc", 5);
    cr_expect_eq(e.err.size, 0);
    str_fini(&e.out);
    str_fini(&e.err);
    r.stderr_data = (ProtobufCBinaryData){CRI_EXEC_OUTPUT_MAX + 1, much};
    will_answer(&p, "ExecSync", &r.base);
    cr_expect_eq(cri_exec_sync(p.cri, ID, argv, 2, 10, MS, &e, &p.err),
                 -EMSGSIZE);
    e.max = CRI_EXEC_OUTPUT_MAX + 1; /* the caller has room for more */
    will_answer(&p, "ExecSync", &r.base);
    cr_expect_eq(cri_exec_sync(p.cri, ID, argv, 2, 10, MS, &e, &p.err), 0, "%s",
                 p.err.text);
    cr_expect_eq(e.err.size, CRI_EXEC_OUTPUT_MAX + 1);
    str_fini(&e.out);
    str_fini(&e.err);
    place_fini(&p);
}

static int url_of(struct place *p, const char *method, char *ret_url)
{
    static const char *const argv[] = {"cat"};
    static const int32_t ports[] = {80, 8080};
    const struct cri_command cmd = {argv, 1, {.in = true, .tty = true}};
    const struct cri_ports two = {ports, 2};
    if (strcmp(method, "Exec") == 0)
        return cri_exec_url(p->cri, ID, &cmd, MS, ret_url, &p->err);
    if (strcmp(method, "Attach") == 0)
        return cri_attach_url(p->cri, ID, &cmd.streams, MS, ret_url, &p->err);
    return cri_forward_url(p->cri, ID, &two, MS, ret_url, &p->err);
}

Test(cri, says_where_something_is_streamed)
{
    static const char *const methods[] = {"Exec", "Attach", "PortForward"};
    static const char url[] = "http://127.0.0.1:40000/exec/a-b_c";
    char got[CRI_TEXT_MAX], much[CRI_TEXT_MAX + 1];
    struct place p;
    Cri__StreamResponse r = CRI__STREAM_RESPONSE__INIT;
    place_init(&p);
    memset(much, 'u', CRI_TEXT_MAX);
    much[CRI_TEXT_MAX] = '\0';
    const char *const bad[] = {"", "http://a/ b", "http://a/\n", much};
    for (size_t m = 0; m < ARRAY_LEN(methods); m++) {
        got[0] = '\0';
        r.url = text(url);
        will_answer(&p, methods[m], &r.base);
        cr_assert_eq(url_of(&p, methods[m], got), 0, "%s", p.err.text);
        cr_expect_str_eq(got, url);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            r.url = text(bad[i]);
            will_answer(&p, methods[m], &r.base);
            cr_expect_eq(url_of(&p, methods[m], got), -EPROTO, "%s", bad[i]);
            cr_expect(strstr(p.err.text, "url"), "%s", p.err.text);
        }
        cr_expect_str_eq(got, url);
    }
    place_fini(&p);
}

Test(cri, tells_what_containers_use)
{
    struct place p;
    struct cri_usages got = {0};
    Cri__ListContainerStatsResponse r =
        CRI__LIST_CONTAINER_STATS_RESPONSE__INIT;
    Cri__ContainerStats one = CRI__CONTAINER_STATS__INIT,
                        bare = CRI__CONTAINER_STATS__INIT;
    Cri__ContainerAttributes of = CRI__CONTAINER_ATTRIBUTES__INIT;
    Cri__CpuUsage cpu = CRI__CPU_USAGE__INIT;
    Cri__MemoryUsage memory = CRI__MEMORY_USAGE__INIT;
    Cri__UInt64Value used = CRI__UINT64_VALUE__INIT,
                     set = CRI__UINT64_VALUE__INIT;
    Cri__Pair pair = CRI__PAIR__INIT, *pairs[] = {&pair};
    Cri__ContainerStats *all[] = {&bare, &one};
    pair.key = text("k");
    pair.value = text("v");
    of.id = text(ID);
    of.labels = pairs;
    of.n_labels = 1;
    bare.attributes = one.attributes = &of;
    used.value = 5000000000;
    set.value = 1 << 20;
    cpu.timestamp = 77;
    cpu.usage_core_nano_seconds = &used;
    memory.working_set_bytes = &set;
    one.cpu = &cpu;
    one.memory = &memory;
    r.stats = all;
    r.n_stats = 2;
    place_init(&p);
    will_answer(&p, "ListContainerStats", &r.base);
    cr_assert_eq(cri_list_usage(p.cri, MS, &got, &p.err), 0, "%s", p.err.text);
    cr_assert_eq(got.n, 1); /* the other has just ended */
    cr_expect_str_eq(got.list[0].id, ID);
    cr_expect_eq(got.list[0].cpu_ns, 5000000000);
    cr_expect_eq(got.list[0].at_ns, 77);
    cr_expect_eq(got.list[0].memory, 1 << 20);
    cr_assert_eq(got.list[0].n_labels, 1);
    cr_expect_str_eq(got.list[0].labels[0].value, "v");
    cri_usages_fini(&got);
    of.id = text("no id");
    will_answer(&p, "ListContainerStats", &r.base);
    cr_expect_eq(cri_list_usage(p.cri, MS, &got, &p.err), -EPROTO);
    place_fini(&p);
}

static void expect_arch(struct place *p, Cri__ImageStatusResponse *r,
                        const char *info, const char *arch)
{
    struct cri_image image;
    Cri__Pair pair = CRI__PAIR__INIT, *pairs[] = {&pair};
    pair.key = text("info");
    pair.value = info ? text(info) : NULL;
    r->info = pairs;
    r->n_info = info ? 1 : 0;
    will_answer(p, "ImageStatus", &r->base);
    cr_assert_eq(cri_image_status(p->cri, "x", MS, &image, &p->err), 0, "%s",
                 p->err.text);
    cr_expect_str_eq(image.arch, arch, "%s", info ? info : "none");
    r->info = NULL;
    r->n_info = 0;
}

Test(cri, images)
{
    struct place p;
    struct cri_image image;
    Cri__Image i = CRI__IMAGE__INIT;
    Cri__ImageStatusResponse r = CRI__IMAGE_STATUS_RESPONSE__INIT;
    Cri__Int64Value uid = CRI__INT64_VALUE__INIT;
    place_init(&p);
    will_answer(&p, "ImageStatus", &r.base);
    cr_assert_eq(cri_image_status(p.cri, "x", MS, &image, &p.err), 0);
    cr_expect_not(image.present);
    i.id = text("sha256:12");
    i.size = 77;
    r.image = &i;
    will_answer(&p, "ImageStatus", &r.base);
    cr_assert_eq(cri_image_status(p.cri, "x", MS, &image, &p.err), 0);
    cr_expect(image.present);
    cr_expect_str_eq(image.id, "sha256:12");
    cr_expect_eq(image.size, 77);
    cr_expect_eq(image.uid, -1);
    cr_expect_str_empty(image.username);
    uid.value = 0;
    i.uid = &uid;
    i.username = text("nobody");
    will_answer(&p, "ImageStatus", &r.base);
    cr_assert_eq(cri_image_status(p.cri, "x", MS, &image, &p.err), 0);
    cr_expect_eq(image.uid, 0);
    cr_expect_str_eq(image.username, "nobody");
    expect_arch(&p, &r, NULL, "");
    expect_arch(&p, &r, "{\"imageSpec\":{\"architecture\":\"arm64\"}}",
                "arm64");
    expect_arch(&p, &r, "{\"imageSpec\":{\"architecture\":17}}", "");
    expect_arch(&p, &r, "{\"imageSpec\":[]}", "");
    expect_arch(&p, &r,
                "{\"imageSpec\":{\"architecture\":"
                "\"longer-than-any-architecture\"}}",
                "");
    expect_arch(&p, &r, "{", "");
    place_fini(&p);
}

struct watching {
    unsigned n, n_unknown;
    struct cri_event last;
    bool over;
    int code;
    struct error err;
};

static int watch_event(void *ctx, const struct cri_event *event, size_t size)
{
    struct watching *w = ctx;
    cr_expect_gt(size, 0);
    if (event)
        w->last = *event;
    else
        w->n_unknown++;
    w->n++;
    return 0;
}

static void watch_ended(void *ctx, int code, const struct error *err)
{
    struct watching *w = ctx;
    w->over = true;
    w->code = code;
    w->err = code ? *err : (struct error){0};
}

/* Until the stream has ended; how it did. */
static int watch(struct place *p, struct grpc_hub *hub, struct watching *w)
{
    const struct grpc_config config = {.endpoint = p->endpoint};
    const struct cri_watcher who = {
        .visit = watch_event, .ended = watch_ended, .ctx = w};
    struct cri_watch *made = NULL;
    *w = (struct watching){0};
    cr_assert_eq(cri_watch_open(hub, &config, &who, &made, &p->err), 0, "%s",
                 p->err.text);
    for (int64_t end = clock_ms() + MS; !w->over && clock_ms() < end;)
        grpc_hub_turn(hub, 100);
    cr_assert(w->over);
    return w->code;
}

Test(cri, events_are_watched)
{
    struct place p;
    struct watching w;
    Cri__PodSandboxStatus s = CRI__POD_SANDBOX_STATUS__INIT;
    Cri__PodSandboxMetadata m = CRI__POD_SANDBOX_METADATA__INIT;
    Cri__ContainerEventResponse e = CRI__CONTAINER_EVENT_RESPONSE__INIT;
    char longest[CRI_UID_MAX + 1];
    place_init(&p);
    struct grpc_hub *hub = grpc_hub_create();
    m.uid = text("0f1e-2");
    s.id = text("a1");
    s.metadata = &m;
    e.container_id = text("c1");
    e.container_event_type = CRI__CONTAINER_EVENT_TYPE__CONTAINER_DELETED_EVENT;
    e.pod_sandbox_status = &s;
    will_answer(&p, "GetContainerEvents", &e.base);
    h2_server_repeat(p.server, 3, 1);
    cr_expect_eq(watch(&p, hub, &w), 0, "%s", w.err.text);
    cr_expect_eq(w.n, 3);
    cr_expect_eq(w.last.kind, CRI_EVENT_DELETED);
    cr_expect_str_eq(w.last.container_id, "c1");
    cr_expect_str_eq(w.last.uid, "0f1e-2");
    memset(longest, 'u', sizeof longest);
    longest[CRI_UID_MAX] = '\0';
    m.uid = longest;
    will_answer(&p, "GetContainerEvents", &e.base);
    cr_expect_eq(watch(&p, hub, &w), 0, "%s", w.err.text);
    cr_expect_str_eq(w.last.uid, "");
    e.container_event_type = (Cri__ContainerEventType)9;
    will_answer(&p, "GetContainerEvents", &e.base);
    cr_expect_eq(watch(&p, hub, &w), 0);
    cr_expect_eq(w.n_unknown, 3);
    e.container_event_type = CRI__CONTAINER_EVENT_TYPE__CONTAINER_CREATED_EVENT;
    e.container_id = text("../x");
    will_answer(&p, "GetContainerEvents", &e.base);
    cr_expect_eq(watch(&p, hub, &w), -EPROTO);
    cr_expect(strstr(w.err.text, "GetContainerEvents"), "%s", w.err.text);
    cr_expect(strstr(w.err.text, p.endpoint), "%s", w.err.text);
    h2_server_status(p.server, "GetContainerEvents", GRPC_UNIMPLEMENTED, "");
    cr_expect_eq(watch(&p, hub, &w), -ENOSYS, "%s", w.err.text);
    grpc_hub_destroy(hub);
    place_fini(&p);
}
