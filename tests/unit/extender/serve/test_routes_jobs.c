#include "extender/serve/routes_private.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/serve/routes_ask.h"
#include "extender/serve/routes_read.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"

static struct test_extender x;
static struct raw_reply reply;

static void start_with(const struct httpd_route *routes, size_t n)
{
    test_extender_start(&x, routes, n, NULL);
    for (int i = 0; i < 3; i++) {
        char node[8];
        (void)snprintf(node, sizeof node, "n%d", i);
        cr_assert_eq(sim_publish(x.app.writer, node, 2, "boot", 1), 0);
    }
}

static void start(void)
{
    start_with(read_routes, n_read_routes);
}

static void start_asking(void)
{
    start_with(ask_routes, n_ask_routes);
}

static void stop(void)
{
    test_extender_stop(&x);
    raw_reply_fini(&reply);
}

TestSuite(jobs, .init = start, .fini = stop);
TestSuite(jobs_why, .init = start_asking, .fini = stop);

static int get(const char *target)
{
    return raw_call(x.port, "GET", target, "", NULL, &reply);
}

static int get_text(const char *target)
{
    return raw_call(x.port, "GET", target, "Accept: text/plain\r\n", NULL,
                    &reply);
}

static void expect_body(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "no %s in %s", part,
              str_text(&reply.body));
}

/* The whole answer is JSON. */
static void expect_json(void)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error err;
    cr_expect_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s in %s", err.text, reply.body.data);
}

/* A host pod of a job of `size` pairs. */
static void bind_pair(const char *job, int pair, int size, const char *node)
{
    char name[64];
    struct error err;
    (void)snprintf(name, sizeof name, "%s-%d", job, pair);
    struct demand d = sim_pod(name, ROLE_HOST, job, pair);
    d.size = size;
    cr_assert_eq(sim_bind(x.app.writer, &d, node, NULL, &err), 0, "%s",
                 err.text);
}

/* Members bound one by one, as when their size was not told. */
static void bind_ring(void)
{
    bind_pair("ring", 0, 1, "n0");
    bind_pair("ring", 1, 1, "n0");
    bind_pair("ring", 2, 1, "n2");
}

Test(jobs, are_listed)
{
    cr_assert_eq(get("/v1/jobs"), 200);
    expect_body("\"items\":[]");
    bind_ring();
    bind_pair("solo", 0, 1, "n1");
    cr_assert_eq(get("/v1/jobs"), 200);
    expect_json();
    expect_body("{\"namespace\":\"ns\",\"name\":\"ring\",\"size\":3,"
                "\"pairs\":{\"bound\":3,\"held\":0,\"missing\":0},\"nodes\":2,"
                "\"score\":{\"unaligned\":0,\"tier\":null,\"leaves\":2,"
                "\"crossings\":1},\"state\":\"Planned\",\"reason\":\"\","
                "\"placed\":3,\"running\":0,\"ready\":0,"
                "\"relation\":\"NODE\",\"leaves\":2}");
    expect_body("\"name\":\"solo\"");
    expect_body("\"tier\":\"leaf\"");
    cr_assert_eq(get("/v1/jobs?namespace=other"), 200);
    expect_body("\"items\":[]");
}

Test(jobs, come_in_pages)
{
    bind_pair("a", 0, 1, "n0");
    bind_pair("b", 0, 1, "n1");
    bind_pair("c", 0, 1, "n2");
    cr_assert_eq(get("/v1/jobs?limit=1"), 200);
    expect_body("\"name\":\"a\"");
    expect_body("\"continue\":\"ns/a\"");
    cr_assert_eq(get("/v1/jobs?limit=1&continue=ns/a"), 200);
    expect_body("\"name\":\"b\"");
    expect_body("\"continue\":\"ns/b\"");
    cr_assert_eq(get("/v1/jobs?limit=1&continue=ns/b"), 200);
    expect_body("\"name\":\"c\"");
    cr_expect_null(strstr(reply.body.data, "continue"));
    cr_assert_eq(get_text("/v1/jobs?limit=2"), 200);
    expect_body("and more: continue=ns/b\n");
    cr_assert_eq(get("/v1/jobs?limit=0"), 400);
    cr_assert_eq(get("/v1/jobs?jobs=1"), 400);
}

Test(jobs, are_kept_until_the_next_snapshot)
{
    char etag[128], header[256];
    bind_ring();
    cr_assert_eq(get("/v1/jobs"), 200);
    (void)raw_header(&reply, "ETag", etag, sizeof etag);
    (void)snprintf(header, sizeof header, "If-None-Match: %s\r\n", etag);
    cr_assert_eq(raw_call(x.port, "GET", "/v1/jobs", header, NULL, &reply),
                 304);
    bind_pair("solo", 0, 1, "n1");
    cr_assert_eq(raw_call(x.port, "GET", "/v1/jobs", header, NULL, &reply),
                 200);
}

Test(jobs, one_shows_its_pairs)
{
    bind_ring();
    cr_assert_eq(get("/v1/jobs/ns/ring"), 200);
    expect_json();
    expect_body("\"missing\":\"\",\"held\":\"\"");
    expect_body("\"pairList\":[{\"rank\":0,\"state\":\"bound\",\"node\":\"n0\","
                "\"leaf\":null,\"cards\":[{\"id\":\"card-");
    expect_body("\"aligned\":true,\"members\":[{\"name\":\"ring-2\","
                "\"role\":\"host\"}]}]}");
    cr_assert_eq(get_text("/v1/jobs/ns/ring"), 200);
    expect_body("ns/ring  Planned  3     3      0     0        0");
    expect_body("\nRANK  STATE  NODE");
    expect_body("  NICS  NUMA  RELATION  ACHIEVED  PODS\n");
    cr_assert_eq(get("/v1/jobs/ns/none"), 404);
    expect_body("job ns/none: no pod of it is known");
    cr_assert_eq(get("/v1/jobs/other/ring"), 404);
    cr_assert_eq(get("/v1/jobs/ns/ring?x=1"), 400);
}

Test(jobs, gaps_are_named)
{
    bind_pair("ring", 1, 1, "n0");
    bind_pair("ring", 4, 1, "n1");
    bind_pair("ring", 5, 1, "n2");
    cr_assert_eq(get("/v1/jobs/ns/ring"), 200);
    expect_body("\"size\":6,\"pairs\":{\"bound\":3,\"held\":0,\"missing\":3}");
    expect_body("\"missing\":\"0,2-3\"");
    cr_assert_eq(get("/v1/jobs/ns/ring/maps"), 409);
    expect_body("job ns/ring: 3 of 6 pairs are bound; missing: 0,2-3");
}

Test(jobs, maps_are_written)
{
    bind_ring();
    cr_assert_eq(get("/v1/jobs/ns/ring/maps?format=hostfile"), 200);
    cr_expect_str_eq(str_text(&reply.body), "n0 slots=2 max_slots=2\n"
                                            "n2 slots=1 max_slots=1\n");
    cr_assert_eq(get("/v1/jobs/ns/ring/maps?format=rankfile"), 200);
    expect_body("rank 0=n0 slot=");
    cr_assert_eq(get("/v1/jobs/ns/ring/maps"), 200);
    expect_json();
    expect_body("\"maps\":{\"hostfile\":\"n0 slots=2 max_slots=2\\nn2");
    cr_assert_eq(get("/v1/jobs/ns/ring/maps?format=csv"), 400);
    expect_body("format: is \\\"csv\\\", must be \\\"hostfile\\\"");
    cr_assert_eq(get("/v1/jobs/ns/none/maps"), 404);
}

/* simhost's cards have no RDMA device. */
Test(jobs, a_map_that_cannot_be_written_says_why)
{
    bind_ring();
    cr_assert_eq(get("/v1/jobs/ns/ring/maps?format=urom"), 409);
    expect_body("rank 0: card card-");
    expect_body("has no known RDMA device");
    cr_assert_eq(get("/v1/jobs/ns/ring/maps"), 200);
    expect_body("\"urom\":null");
    expect_body("\"errors\":{");
}

/* The first bind of a planned job holds the places of all its pairs. */
Test(jobs, held_places_are_told)
{
    bind_pair("ring", 1, 4, "n1");
    cr_assert_eq(get("/v1/jobs/ns/ring"), 200);
    expect_json();
    expect_body("\"size\":4,\"pairs\":{\"bound\":1,\"held\":3,\"missing\":0}");
    expect_body("\"missing\":\"\",\"held\":\"0,2-3\"");
    expect_body("{\"rank\":0,\"state\":\"held\",\"node\":");
    expect_body("\"members\":[]");
    expect_body("{\"rank\":1,\"state\":\"bound\",\"node\":\"n1\"");
    cr_assert_eq(get_text("/v1/jobs"), 200);
    expect_body("ns/ring  Planned  4     1      3     0        0");
    cr_assert_eq(get("/v1/jobs/ns/ring/maps?format=hostfile"), 409);
    expect_body("job ns/ring: 1 of 4 pairs are bound; only held: 0,2-3");
}

Test(jobs_why, an_xpu_pod_is_near_to_a_held_place)
{
    struct error err;
    struct demand d = sim_pod("x-2", ROLE_XPU, "ring", 2);
    d.size = 4;
    cr_assert_eq(sim_bind(x.app.writer, &d, "n1", NULL, &err), 0, "%s",
                 err.text);
    cr_assert_eq(get_text("/v1/why?pod=ns/x-2"), 200);
    expect_body(": NODE to NUMA node 0 of the place held for its host pod\n");
    bind_pair("ring", 2, 4, "n1");
    cr_assert_eq(get_text("/v1/why?pod=ns/x-2"), 200);
    expect_body(": NODE to NUMA node 0 of its host pod ring-2\n");
}
