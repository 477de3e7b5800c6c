/* GET /v1/fabric, and the files behind it. */
#include "extender/serve/routes_private.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "extender/app/fabric_files.h"
#include "extender/serve/routes_read.h"
#include "lib/base/json.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static struct test_extender x;
static struct raw_reply reply;
static char *dir;
static char path[2][256], list[600];

static void put(const char *to, const char *text)
{
    cleanup_file FILE *f = fopen(to, "w");
    cr_assert_not_null(f, "%s", to);
    cr_assert_geq(fputs(text, f), 0);
}

static const char tree[] = "SwitchName=l1 Nodes=n[0-1]\n"
                           "SwitchName=l2 Nodes=n2\n"
                           "SwitchName=s Switches=l[1-2]\n";

static void start(void)
{
    dir = tmpdir_create();
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(path[i], sizeof path[i], "%s/fabric%zu", dir, i);
    (void)snprintf(list, sizeof list, "%s,%s", path[0], path[1]);
    put(path[0], tree);
    put(path[1], "# none yet\n");
    test_extender_start(&x, read_routes, n_read_routes, NULL);
}

static void stop(void)
{
    test_extender_stop(&x);
    fabric_files_close(x.app.fabric);
    raw_reply_fini(&reply);
    tmpdir_remove(dir);
}

TestSuite(routes_fabric, .init = start, .fini = stop);

static void open_files(void)
{
    cleanup_with(fabric) struct fabric *f = NULL;
    struct error err = {0};
    cr_assert_eq(fabric_files_open(list, "", &x.app.fabric, &f, &err), 0, "%s",
                 err.text);
    struct writer_op op = {.kind = WRITER_SET_FABRIC, .fabric = f};
    (void)writer_run(x.app.writer, &op);
    fabric_files_serve(x.app.fabric, x.app.writer, x.app.listener.metrics);
}

static int get(const char *target, const char *headers)
{
    return raw_call(x.port, "GET", target, headers, NULL, &reply);
}

static void expect_body(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "no %s in %s", part,
              str_text(&reply.body));
}

static void fill(void)
{
    static const char *const nodes[] = {"n0", "n1", "n9"};
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        cr_assert_eq(sim_publish(x.app.writer, nodes[i], 2, "boot", 1), 0);
    struct demand d = sim_need(sim_pod("p", ROLE_XPU, "", 0), 4, 1024);
    struct error err;
    cr_assert_eq(sim_bind(x.app.writer, &d, "n0", NULL, &err), 0, "%s",
                 err.text);
}

Test(routes_fabric, shows_nothing_where_nothing_is_known)
{
    fill();
    cr_assert_eq(get("/v1/fabric", ""), 200);
    expect_body("\"tiers\":[],\"files\":[],\"error\":null,\"unknown\":{"
                "\"nodes\":3,\"cards\":{\"total\":6,\"idle\":5}},"
                "\"domains\":[],\"items\":[{\"name\":\"n0\",\"leaf\":null,"
                "\"published\":true,\"cards\":{\"total\":2,\"idle\":1},"
                "\"ports\":[]}");
    cr_assert_eq(get("/v1/fabric", "Accept: text/plain\r\n"), 200);
    cr_expect_str_eq(str_text(&reply.body),
                     "no fabric is known\n"
                     "unknown  3 published, 5/6 cards idle\n"
                     "  n0  1/2 cards idle\n"
                     "  n1  2/2 cards idle\n"
                     "  n9  2/2 cards idle\n");
}

Test(routes_fabric, shows_domains_hosts_and_nodes)
{
    fill();
    open_files();
    cr_assert_eq(get("/v1/fabric", ""), 200);
    expect_body("\"tiers\":[\"leaf\",\"spine\"]");
    expect_body("{\"id\":0,\"name\":\"l1\",\"tier\":\"leaf\",\"parent\":2,"
                "\"switches\":1,\"hosts\":2,\"nodes\":2,"
                "\"cards\":{\"total\":4,\"idle\":3}}");
    expect_body("{\"id\":2,\"name\":\"s\",\"tier\":\"spine\",\"parent\":null,"
                "\"switches\":2,\"hosts\":3,\"nodes\":2,"
                "\"cards\":{\"total\":4,\"idle\":3}}");
    expect_body("{\"name\":\"n2\",\"leaf\":1,\"published\":false,\"ports\":["
                "{\"rail\":0,\"leaf\":\"l2\"}]}");
    expect_body("\"unknown\":{\"nodes\":1,");
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    cr_expect_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s", err.text);

    cr_assert_eq(get("/v1/fabric?limit=2", "Accept: text/plain\r\n"), 200);
    cr_expect_str_eq(
        str_text(&reply.body),
        "spine s  2 leaf switches, 3 hosts, 2 published, 3/4 cards idle\n"
        "  leaf l1  2 hosts, 2 published, 3/4 cards idle\n"
        "    n0  1/2 cards idle\n"
        "    n1  2/2 cards idle\n"
        "  leaf l2  1 host\n"
        "    and 1 more\n"
        "unknown  1 published, 2/2 cards idle\n"
        "  and 1 more\n");
}

Test(routes_fabric, comes_in_pages)
{
    char etag[64], header[128];
    fill();
    open_files();
    cr_assert_eq(get("/v1/fabric?limit=3", ""), 200);
    expect_body("\"continue\":\"n2\"");
    expect_body("\"domains\"");
    (void)raw_header(&reply, "ETag", etag, sizeof etag);
    (void)snprintf(header, sizeof header, "If-None-Match: %s\r\n", etag);
    cr_assert_eq(get("/v1/fabric?limit=3", header), 304);
    cr_assert_eq(get("/v1/fabric?limit=3&continue=n2", ""), 200);
    expect_body("\"items\":[{\"name\":\"n9\",");
    cr_expect_null(strstr(str_text(&reply.body), "\"domains\""));
    cr_expect_null(strstr(str_text(&reply.body), "\"continue\""));
    cr_expect_eq(get("/v1/fabric?limit=0", ""), 400);
    cr_expect_eq(get("/v1/fabric?depth=2", ""), 400);
}

Test(routes_fabric, follows_its_files)
{
    fill();
    open_files();
    put(path[1], "SwitchName=far Nodes=n[8-9]\n");
    fabric_files_poll(x.app.fabric);
    cr_assert_eq(get("/v1/fabric", ""), 200);
    expect_body("\"name\":\"far\"");
    expect_body("\"unknown\":{\"nodes\":0,");

    put(path[0], "SwitchName=l1 Nodes=n[7-1]\n");
    fabric_files_poll(x.app.fabric);
    fabric_files_poll(x.app.fabric);
    cr_assert_eq(get("/v1/fabric", ""), 200);
    expect_body("fabric0:1: Nodes: is \\\"n[7-1]\\\", must be ranges that go "
                "up");
    expect_body("\"name\":\"s\",\"tier\":\"spine\"");
    cr_assert_eq(get("/v1/fabric", "Accept: text/plain\r\n"), 200);
    expect_body("the files as they are now are not in force");

    /* the other one changes meanwhile: still not, and not forgotten */
    put(path[1], "SwitchName=nearer Nodes=n9\n");
    fabric_files_poll(x.app.fabric);
    cr_assert_eq(get("/v1/fabric", ""), 200);
    expect_body("\"name\":\"far\"");
    put(path[0], tree);
    fabric_files_poll(x.app.fabric);
    cr_assert_eq(get("/v1/fabric", ""), 200);
    expect_body("\"error\":null");
    expect_body("\"name\":\"nearer\"");

    cr_assert_eq(unlink(path[1]), 0);
    fabric_files_poll(x.app.fabric);
    cr_assert_eq(get("/v1/fabric", ""), 200);
    expect_body("fabric1: No such file");
    expect_body("\"name\":\"nearer\"");
}

Test(routes_fabric, a_wrong_start_is_none)
{
    static const struct {
        const char *list, *labels, *error;
    } cases[] = {
        {"/none/such", "", "/none/such: No such file"},
        {"a,,b", "", "fabric: \"a,,b\": a file's name is empty"},
        {"a,a,a,a,a,a,a,a,a", "", "fabric: more than 8 files"},
        {"a", "x y", "fabric-labels: \"x y\": must be"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fabric_files *files = NULL;
        struct fabric *f = NULL;
        struct error err = {0};
        cr_expect_lt(
            fabric_files_open(cases[i].list, cases[i].labels, &files, &f, &err),
            0);
        cr_expect_not_null(strstr(err.text, cases[i].error), "%s", err.text);
        cr_expect_null(files);
        cr_expect_null(f);
    }
}
