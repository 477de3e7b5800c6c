#include "tests/lib/sim/world.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "model/slice/slice.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simhost.h"

struct server *world_start(void)
{
    return world_start_in(NULL);
}

struct server_config world_config(void)
{
    struct server_config config = {
        .listen = {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
        .max_candidates = 16,
        .fresh_ms = 3600000,
        .sweep_ms = 1000,
        .connections = 256,
        .request_ms = 60000,
    };
    demand_config_default(&config.demand);
    return config;
}

struct server *world_start_in(const char *dir)
{
    struct server_config config = world_config();
    struct error err = {0};
    struct server *s = NULL;
    log_set_level(LOG_ERROR);
    config.state_dir = dir;
    cr_assert_eq(server_start(&config, &s, &err), 0, "%s", err.text);
    return s;
}

static void put_slice(struct server *s, const struct topo *topo,
                      const struct slice_epoch *epoch, size_t index)
{
    char name[SLICE_NAME_MAX + 1];
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    cleanup_str struct str path = STR_INIT(1024);
    struct raw_reply reply = {0};
    slice_encode(topo, epoch, index, &json);
    slice_name(topo_node(topo), index, name);
    str_addf(&path, "/apis/resource.k8s.io/v1/resourceslices/%s", name);
    int status = world_call(s, SERVER_PUBLISH, "PUT", str_text(&path),
                            (struct jtext){json.data, json.size, false},
                            &reply);
    cr_assert(status == 200 || status == 201, "%d: %s", status,
              str_text(&reply.body));
    raw_reply_fini(&reply);
}

void world_publish_topo(struct server *s, const struct topo *topo,
                        int64_t generation)
{
    const struct slice_epoch epoch = {"boot-1", generation};
    for (size_t i = 0; i < slice_count(topo); i++)
        put_slice(s, topo, &epoch, i);
}

void world_publish(struct server *s, unsigned n_nodes, unsigned n_cards)
{
    for (unsigned i = 0; i < n_nodes; i++) {
        char node[16];
        (void)snprintf(node, sizeof node, "node%03u", i);
        cleanup_with(topo) struct topo *topo = simhost_topo(node, n_cards);
        world_publish_topo(s, topo, 1);
    }
}

int world_call(struct server *s, enum server_listener listener,
               const char *method, const char *path, struct jtext body,
               struct raw_reply *ret_reply)
{
    cleanup_fd int fd = raw_connect(server_port(s, listener));
    cleanup_str struct str head = STR_INIT(8192);
    str_addf(&head,
             "%s %s HTTP/1.1\r\nHost: localhost\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             method, path, body.size);
    (void)raw_send_n(fd, head.data, head.size);
    (void)raw_send_n(fd, body.data, body.size); /* refused: see the reply */
    return raw_read(fd, false, ret_reply);
}

void world_pod_json(const struct world_pod *pod, struct str *out)
{
    str_addf(out,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\","
             "\"uid\":\"uid-%s\",\"labels\":{",
             pod->name, pod->name);
    if (pod->role)
        str_addf(out, "\"biga.dev/role\":\"%s\",", pod->role);
    if (pod->job)
        str_addf(out, "\"biga.dev/job\":\"%s\",\"biga.dev/pair\":\"%d\",",
                 pod->job, pod->pair);
    str_add(out, "\"app\":\"mpi\"},\"annotations\":{");
    if (pod->align)
        str_addf(out, "\"biga.dev/align\":\"%s\",", pod->align);
    str_addf(out,
             "\"biga.dev/cards\":\"%d\"}},\"spec\":{\"containers\":[{"
             "\"name\":\"main\",\"resources\":{\"requests\":{",
             pod->cards ? pod->cards : 1);
    if (pod->cores)
        str_addf(out, "\"biga.dev/card-cores\":\"%d\",", pod->cores);
    if (pod->memory_mib)
        str_addf(out, "\"biga.dev/card-memory-mib\":\"%d\",", pod->memory_mib);
    if (pod->gpus)
        str_addf(out, "\"nvidia.com/gpu\":\"%d\",", pod->gpus);
    str_addf(out, "\"biga.dev/card\":\"%d\"}}}]},\"status\":{}}",
             pod->cards ? pod->cards : 1);
}

void world_args_json(const struct world_pod *pod, unsigned n_nodes,
                     struct str *out)
{
    str_add(out, "{\"Pod\":");
    world_pod_json(pod, out);
    str_add(out, ",\"Nodes\":null,\"NodeNames\":[");
    for (unsigned i = 0; i < n_nodes; i++)
        str_addf(out, "%s\"node%03u\"", i ? "," : "", i);
    str_add(out, "]}");
}
