#include "extender/serve/routes_read.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/serve/routes_ask.h"
#include "extender/serve/routes_pods.h"
#include "extender/serve/routes_publish.h"
#include "extender/serve/routes_scheduler.h"
#include "extender/view/openapi.h"
#include "lib/base/json.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static struct test_extender x;
static struct raw_reply reply;

static void start(void)
{
    test_extender_start(&x, read_routes, n_read_routes, NULL);
}

static void stop(void)
{
    test_extender_stop(&x);
    raw_reply_fini(&reply);
}

TestSuite(read, .init = start, .fini = stop);

static int get(const char *target)
{
    return raw_call(x.port, "GET", target, "", NULL, &reply);
}

static int get_text(const char *target)
{
    return raw_call(x.port, "GET", target, "Accept: text/plain\r\n", NULL,
                    &reply);
}

static const char *header(const char *name)
{
    static char value[256];
    return raw_header(&reply, name, value, sizeof value);
}

static cJSON *parsed(void)
{
    cJSON *json = NULL;
    struct error err;
    cr_assert_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s in %s", err.text, reply.body.data);
    return json;
}

static const cJSON *at(const cJSON *json, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(json, name);
}

static void expect_body(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "no %s in %s", part,
              str_text(&reply.body));
}

/* Nodes n0…, two cards each; pod "p" of namespace "ns" on n0. */
static void fill(int n_nodes)
{
    char node[16];
    for (int i = 0; i < n_nodes; i++) {
        (void)snprintf(node, sizeof node, "n%d", i);
        cr_assert_eq(sim_publish(x.app.writer, node, 2, "boot", 1), 0);
    }
    struct demand d = sim_need(sim_pod("p", ROLE_XPU, "", 0), 4, 1024);
    struct error err;
    cr_assert_eq(sim_bind(x.app.writer, &d, "n0", NULL, &err), 0, "%s",
                 err.text);
}

Test(read, shows_nodes)
{
    fill(3);
    cr_assert_eq(get("/v1/nodes"), 200);
    cleanup_with(json) cJSON *json = parsed();
    const cJSON *n0 = cJSON_GetArrayItem(at(json, "items"), 0);
    cr_expect_eq(cJSON_GetArraySize(at(json, "items")), 3);
    cr_expect_str_eq(at(n0, "name")->valuestring, "n0");
    cr_expect_str_eq(at(n0, "status")->valuestring, "ready");
    cr_expect_eq(at(at(n0, "cards"), "total")->valueint, 2);
    cr_expect_eq(at(at(n0, "cards"), "idle")->valueint, 1);
    cr_expect_eq(at(at(n0, "gpus"), "free")->valueint, 2);
    cr_expect_eq(at(n0, "allocations")->valueint, 1);
    cr_expect_null(at(json, "continue"));

    cr_assert_eq(get("/v1/nodes?status=stale"), 200);
    expect_body("\"items\":[]");
    cr_assert_eq(get("/v1/nodes/n0"), 200);
    expect_body("\"cardList\":[{\"node\":\"n0\"");
    expect_body("\"pods\":[{\"namespace\":\"ns\",\"name\":\"p\","
                "\"role\":\"xpu\"}]");
    expect_body("\"allocationList\":[{\"pod\":");
    expect_body("\"overfull\":[]");
    cr_assert_eq(get("/v1/nodes/none"), 404);
    expect_body("node \\\"none\\\" has not published");
}

/* A board has NICs behind its switches, and two without RDMA. */
Test(read, counts_compute_nics)
{
    cleanup_with(topo) struct topo *board = simhost_board("b0", 1, 1);
    size_t nics = topo_count(board, DEVICE_NIC, NULL);
    size_t considered[TOPO_KIND_MAX];
    size_t total = topo_considered(board, DEVICE_NIC, considered);
    struct demand d = sim_need(sim_pod("h", ROLE_HOST, "", 0), 1, 1);
    struct error err;
    d.gpus = d.pair_gpus = d.nics = d.pair_nics = 2;
    cr_assert_eq(sim_publish_topo(x.app.writer, board), 0);
    cr_assert_eq(sim_bind(x.app.writer, &d, "b0", NULL, &err), 0, "%s",
                 err.text);
    cr_assert_eq(get("/v1/nodes"), 200);
    cleanup_with(json) cJSON *json = parsed();
    const cJSON *b0 = cJSON_GetArrayItem(at(json, "items"), 0);
    const cJSON *counts = at(b0, "computeNics");
    cr_assert_lt(total, nics);
    cr_expect_eq(at(b0, "nics")->valueint, (int)nics);
    cr_expect_eq(at(counts, "total")->valueint, (int)total);
    cr_expect_eq(at(counts, "free")->valueint, (int)total - 2);
    cr_assert_eq(get("/v1/allocations"), 200);
    expect_body("\"nics\":[{\"id\":\"nic-");
}

Test(read, shows_claims_of_others)
{
    cleanup_with(claim_use) struct claim_use *c = claim_use_create("team", "c",
                                                                   "n1");
    struct claim_card whole = {.id = "card-0000-12-00", .whole = true};
    struct claim_pci gpu = {.pci = {.bus = 0x12, .device = 1}};
    struct writer_op op = {.kind = WRITER_CLAIM, .claim = c};
    fill(2);
    cr_assert_eq(get("/v1/nodes/n1"), 200);
    cr_assert_null(strstr(reply.body.data, "claim"));
    claim_use_add_card(c, &whole);
    claim_use_add_pci(c, &gpu);
    cr_assert_eq(writer_run(x.app.writer, &op), 0);
    cr_assert_eq(get("/v1/nodes/n1"), 200);
    expect_body("\"claimList\":[{\"namespace\":\"team\",\"name\":\"c\","
                "\"cards\":[\"card-0000-12-00\"],\"gpus\":[\"gpu-");
    cr_assert_eq(get("/v1/cards?node=n1"), 200);
    expect_body("\"state\":\"held\"");
    expect_body("\"pods\":[],\"claims\":[{\"namespace\":\"team\","
                "\"name\":\"c\"}]");
    cr_assert_eq(get("/metrics"), 200);
    expect_body("biga_foreign_claims 1\n");
}

Test(read, says_what_hosts_have_left)
{
    struct writer_room room = {"n0", {2500, INT64_MAX, -3}};
    struct writer_op op = {.kind = WRITER_ROOMS, .rooms = &room, .n_rooms = 1};
    fill(2);
    cr_assert_eq(get("/v1/nodes/n0"), 200);
    cr_assert_null(strstr(reply.body.data, "\"room\""));
    cr_assert_eq(writer_run(x.app.writer, &op), 0);
    cr_assert_eq(get("/v1/nodes/n0"), 200);
    expect_body(",\"room\":{\"cpuMilli\":2500,\"pods\":-3},\"cardList\":[");
    cr_assert_eq(get("/v1/nodes/n1"), 200);
    cr_assert_null(strstr(reply.body.data, "\"room\""));
}

Test(read, draws_tables)
{
    fill(1);
    cr_assert_eq(get_text("/v1/nodes"), 200);
    cr_expect_str_eq(header("Content-Type"), "text/plain; charset=utf-8");
    cr_expect_str_eq(reply.body.data,
                     "NODE  STATUS  CARDS  IDLE  GPUS  FREE  PODS  GENERATION  "
                     "DRAINED\n"
                     "n0    ready   2      1     2     2     1     1           "
                     "0\n");
    cr_assert_eq(get_text("/v1/cards?limit=1"), 200);
    expect_body("12/16");
    expect_body("and more: continue=n0/card-");
    cr_assert_eq(get_text("/v1/allocations"), 200);
    expect_body("ns/p");
    cr_assert_eq(get_text("/v1/nodes/n0"), 200);
    expect_body("\n\nPOD ");
}

/* Of these only the text is for people: pages of JSON go by the bytes. */
Test(read, sorts_names_for_people)
{
    static const char *const texts[] = {"/v1/nodes", "/v1/cards"};
    fill(12);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cr_assert_eq(get_text(texts[i]), 200);
        const char *n9 = strstr(reply.body.data, "n9");
        const char *n10 = strstr(reply.body.data, "n10");
        cr_assert(n9 && n10 && n9 < n10, "%s: %s", texts[i], reply.body.data);
    }
    cr_assert_eq(get("/v1/nodes"), 200);
    cr_expect_lt(strstr(reply.body.data, "\"n10\""),
                 strstr(reply.body.data, "\"n9\""));
    for (int i = 9; i < 11; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "q%d", i);
        struct demand d = sim_need(sim_pod(name, ROLE_XPU, "", 0), 1, 64);
        cr_assert_eq(sim_bind(x.app.writer, &d, "n1", NULL, NULL), 0);
    }
    cr_assert_eq(get_text("/v1/allocations"), 200);
    cr_expect_lt(strstr(reply.body.data, "ns/q9"),
                 strstr(reply.body.data, "ns/q10"));
    cr_assert_eq(get_text("/v1/nodes/n1"), 200);
    cr_expect_lt(strstr(reply.body.data, "ns/q9"),
                 strstr(reply.body.data, "ns/q10"));
}

/* The same host, with its first card drained and its second lost. */
static void withdraw_cards(void)
{
    static const char *const words[] = {"drained", "lost"};
    cleanup_with(topo) struct topo *whole = simhost_topo("n0", 4);
    cleanup_with(topo) struct topo *topo = NULL;
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("n0");
    for (size_t i = 0; i < topo_n_devices(whole); i++) {
        struct device d = *topo_device(whole, i);
        d.unhealthy = i < ARRAY_LEN(words);
        d.health = i < ARRAY_LEN(words) ? words[i] : "";
        topo_builder_add(b, &d, NULL);
    }
    cr_assert_eq(topo_build(b, &topo, NULL), 0);
    const struct slice_epoch epoch = {"boot-1", 1};
    char name[SLICE_NAME_MAX + 1];
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    slice_encode(topo, &epoch, 0, &json);
    slice_name("n0", 0, name);
    struct writer_op op = {.kind = WRITER_PUT_SLICE,
                           .name = name,
                           .body = json.data,
                           .body_size = json.size};
    cr_assert_eq(writer_run(x.app.writer, &op), 0, "%s", op.error.text);
}

Test(read, drained_cards_are_not_lost_ones)
{
    withdraw_cards();
    cr_assert_eq(get("/v1/nodes/n0"), 200);
    expect_body("\"unhealthy\":1,\"drained\":1,\"unavailable\":0}");
    expect_body("\"health\":\"drained\"");
    expect_body("\"state\":\"drained\"");
    expect_body("\"state\":\"unhealthy\"");
    cr_assert_eq(get("/v1/cards?state=drained"), 200);
    expect_body("card-0000-12-00");
    cr_expect_null(strstr(reply.body.data, "card-0000-13-00"));
    cr_assert_eq(get_text("/v1/nodes"), 200);
    expect_body("n0    ready   4      2     4     4     0     1           1\n");
    cr_assert_eq(get_text("/v1/cards"), 200);
    expect_body("  drained    drained  0");
    cr_assert_eq(get("/metrics"), 200);
    expect_body("biga_cards{state=\"drained\"} 1");
}

/* Follow a list through its pages of two; the number of items. */
static size_t walk(const char *path)
{
    char target[512], token[300] = "";
    size_t n = 0;
    for (int page = 0; page < 20; page++) {
        (void)snprintf(target, sizeof target, "%s?limit=2%s%s", path,
                       *token ? "&continue=" : "", token);
        cr_assert_eq(get(target), 200, "%s: %s", target, reply.body.data);
        cleanup_with(json) cJSON *json = parsed();
        n += (size_t)cJSON_GetArraySize(at(json, "items"));
        if (!at(json, "continue"))
            return n;
        (void)snprintf(token, sizeof token, "%s",
                       at(json, "continue")->valuestring);
    }
    cr_assert_fail("%s never ends", path);
    return 0;
}

Test(read, pages_through_lists)
{
    fill(5);
    for (int i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "q%d", i);
        struct demand d = sim_need(sim_pod(name, ROLE_XPU, "", 0), 1, 64);
        cr_assert_eq(sim_bind(x.app.writer, &d, "n1", NULL, NULL), 0);
    }
    cr_expect_eq(walk("/v1/nodes"), 5);
    cr_expect_eq(walk("/v1/cards"), 10);
    cr_expect_eq(walk("/v1/topology"), 5);
    cr_expect_eq(walk("/v1/allocations"), 5);
    /* a token of something that has gone since */
    cr_assert_eq(get("/v1/nodes?continue=n2x"), 200);
    cleanup_with(json) cJSON *json = parsed();
    cr_expect_eq(cJSON_GetArraySize(at(json, "items")), 2);
}

Test(read, filters_cards_and_allocations)
{
    fill(2);
    cr_assert_eq(get("/v1/cards?node=n0&state=used"), 200);
    cleanup_with(json) cJSON *used = parsed();
    cr_expect_eq(cJSON_GetArraySize(at(used, "items")), 1);
    const char *id =
        at(cJSON_GetArrayItem(at(used, "items"), 0), "id")->valuestring;
    char target[128];
    (void)snprintf(target, sizeof target, "/v1/cards/n0/%s", id);
    cr_assert_eq(get(target), 200);
    expect_body("\"state\":\"used\",\"freeCores\":12,"
                "\"freeMemoryMiB\":31744");
    cr_expect_eq(get("/v1/cards/n0/none"), 404);
    cr_expect_eq(get("/v1/cards/none/x"), 404);
    cr_expect_eq(get("/v1/cards?node=none"), 404);
    expect_body("none");
    cr_assert_eq(get("/v1/allocations?node=n1"), 200);
    expect_body("\"items\":[]");
    cr_assert_eq(get("/v1/allocations?namespace=ns"), 200);
    expect_body("\"name\":\"p\"");
}

Test(read, shows_topology)
{
    fill(1);
    cr_assert_eq(get("/v1/topology?node=n0"), 200);
    cleanup_with(json) cJSON *json = parsed();
    const cJSON *relations = at(json, "relations"), *row;
    int n = cJSON_GetArraySize(at(json, "devices"));
    cr_expect_eq(n, 6);
    cr_expect_eq(cJSON_GetArraySize(relations), n);
    cJSON_ArrayForEach(row, relations)
        cr_expect_eq(cJSON_GetArraySize(row), n - 1);
    cr_expect_eq(get("/v1/topology?node=none"), 404);
}

Test(read, answers_304_until_something_changes)
{
    static const char *const targets[] = {
        "/v1/nodes", "/v1/cards", "/v1/topology", "/v1/topology?node=n0",
        "/v1/allocations"};
    char have[256];
    fill(1);
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        cr_assert_eq(get(targets[i]), 200);
        (void)snprintf(have, sizeof have, "If-None-Match: %s\r\n",
                       header("ETag"));
        cr_expect_eq(raw_call(x.port, "GET", targets[i], have, NULL, &reply),
                     304, "%s", targets[i]);
    }
    cr_assert_eq(sim_release(x.app.writer, "p"), 0);
    cr_expect_eq(raw_call(x.port, "GET", "/v1/nodes", have, NULL, &reply), 200);
}

Test(read, releases_allocations)
{
    fill(1);
    cr_expect_eq(get("/v1/allocations/ns/p"), 200);
    cr_assert_eq(
        raw_call(x.port, "DELETE", "/v1/allocations/ns/p", "", NULL, &reply),
        200);
    expect_body("\"released\":{\"namespace\":\"ns\",\"name\":\"p\"}");
    cr_assert_eq(
        raw_call(x.port, "DELETE", "/v1/allocations/ns/p", "", NULL, &reply),
        404);
    expect_body("ns/p");
    cr_expect_eq(get("/v1/allocations/ns/p"), 404);
    const char *label = "released";
    cr_expect_eq(metrics_get(x.app.listener.metrics, APP_RELEASES, &label), 1);
}

Test(read, releases_the_allocations_of_a_job)
{
    static const char job[] = "/v1/jobs/ns/j/allocations";
    fill(2);
    const char *label = "released";
    struct demand d = sim_member("j0", ROLE_HOST, "j", 0, 2);
    cr_assert_eq(sim_bind(x.app.writer, &d, "n1", NULL, NULL), 0);
    cr_assert_eq(get("/v1/allocations/ns/j%2F1"), 200, "it is held");
    cr_expect_eq(raw_call(x.port, "DELETE", "/v1/jobs/ns/j/allocations?x=1", "",
                          NULL, &reply),
                 400);
    cr_assert_eq(raw_call(x.port, "DELETE", job, "", NULL, &reply), 200);
    expect_body("{\"released\":{\"namespace\":\"ns\",\"name\":\"j\","
                "\"allocations\":2}}");
    cr_expect_eq(get("/v1/allocations/ns/j0"), 404);
    cr_expect_eq(get("/v1/allocations/ns/j%2F1"), 404);
    cr_expect_eq(get("/v1/allocations/ns/p"), 200, "it is of no job");
    cr_expect_eq(metrics_get(x.app.listener.metrics, APP_RELEASES, &label), 1,
                 "a held place is no pod's");
    cr_expect_eq(raw_call(x.port, "DELETE", job, "", NULL, &reply), 404);
    expect_body("job ns/j: nothing is allocated to it");
}

Test(read, refuses_unknown_parameters)
{
    static const char *const bad[] = {
        "/v1/nodes?limt=1",    "/v1/nodes/n0?x",
        "/v1/cards?pod=1",     "/v1/topology?name=n0",
        "/v1/allocations?a=b", "/v1/nodes?limit=0",
        "/v1/nodes?limit=x",   "/v1/nodes?limit=1000000",
        "/v1/nodes?limit=-1",  "/v1/topology?limit=1001"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_expect_eq(get(bad[i]), 400, "%s", bad[i]);
    cr_assert_eq(get("/v1/nodes?limt=1"), 400);
    expect_body("unknown query parameter \\\"limt\\\"");
}

Test(read, tells_its_health_and_metrics)
{
    cr_expect_eq(get("/healthz"), 200);
    cr_expect_eq(get("/readyz"), 503);
    atomic_store(&x.app.ready, true);
    cr_expect_eq(get("/readyz"), 200);
    fill(2);
    cr_assert_eq(get("/metrics"), 200);
    expect_body("\nbiga_nodes{status=\"ready\"} 2\n");
    expect_body("\nbiga_cards{state=\"idle\"} 3\n");
    expect_body("\nbiga_cards{state=\"used\"} 1\n");
    expect_body("\nbiga_allocations 1\n");
    expect_body("\nbiga_http_requests_total{listener=\"test\","
                "route=\"readyz\",code=\"503\"} 1\n");
}

Test(read, keeps_control_characters_from_terminals)
{
    struct demand d = sim_pod("a\x1b[31m\xc2\x9b\xc3\xa9", ROLE_XPU, "", 0);
    cr_assert_eq(sim_publish(x.app.writer, "n0", 2, "boot", 1), 0);
    cr_assert_eq(sim_bind(x.app.writer, &d, "n0", NULL, NULL), 0);
    cr_assert_eq(get_text("/v1/allocations"), 200);
    expect_body("ns/a?[31m?\xc3\xa9 ");
}

/* Is `path` (with ":" for a variable part) described? */
static bool is_described(const char *path)
{
    cleanup_str struct str line = STR_INIT(4096);
    const char *p = openapi_yaml;
    while (*p) {
        size_t size = strcspn(p, "\n");
        str_reset(&line);
        for (size_t i = 2;
             size > 3 && strncmp(p, "  /", 3) == 0 && i < size - 1; i++) {
            if (p[i] == '{') {
                str_add_c(&line, ':');
                i += strcspn(p + i, "}");
            } else {
                str_add_c(&line, p[i]);
            }
        }
        if (strcmp(str_text(&line), path) == 0)
            return true;
        p += size + (p[size] == '\n');
    }
    return false;
}

static void expect_described(const struct httpd_route *routes, size_t n,
                             const char *prefix)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(routes[i].path, prefix, strlen(prefix)) == 0)
            cr_expect(is_described(routes[i].path), "%s is not described",
                      routes[i].path);
}

Test(read, describes_every_route)
{
    cr_assert_eq(get("/openapi.yaml"), 200);
    cr_expect_eq(reply.body.size, strlen(openapi_yaml));
    cr_expect_not(is_described("/v1/nothing"));
    expect_described(read_routes, n_read_routes, "/");
    expect_described(ask_routes, n_ask_routes, "/");
    expect_described(pods_routes, n_pods_routes, "/");
    expect_described(publish_routes, n_publish_routes, "/");
    expect_described(scheduler_routes, n_scheduler_routes, "/v1/scheduler/");
}
