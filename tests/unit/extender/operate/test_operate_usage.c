#include <criterion/criterion.h>
#include <string.h>

#include "extender/achieved/used_book.h"
#include "extender/serve/app.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simapp.h"

static struct raw_reply reply;

static void start(void)
{
    simapp_begin(NULL);
}

static void stop(void)
{
    simapp_end();
    raw_reply_fini(&reply);
}

TestSuite(usage, .init = start, .fini = stop);

static int get_as(const char *target, const char *headers)
{
    return raw_call(server_port(simapp_server, SERVER_READ), "GET", target,
                    headers, NULL, &reply);
}

static int get(const char *target)
{
    return get_as(target, "");
}

static void tell(const char *json)
{
    cr_assert_eq(raw_call(server_port(simapp_server, SERVER_PUBLISH), "POST",
                          "/v1/nodes/node000/status",
                          "Content-Type: application/json\r\n", json, &reply),
                 204, "%s", str_text(&reply.body));
}

static void expect_body(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "no %s in %s", part,
              str_text(&reply.body));
}

Test(usage, is_null_until_it_is_told)
{
    cr_assert_eq(get("/v1/usage?node=node000"), 200);
    expect_body("{\"node\":\"node000\",\"used\":{\"cpuMillicores\":null,"
                "\"memoryMiB\":null},\"given\":{\"cpuMillicores\":0,");
    expect_body("\"cards\":[{\"id\":\"card-0000-12-00\",\"pci\":"
                "\"0000:12:00.0\",\"used\":{\"cpuMillicores\":null");
    expect_body("\"given\":{\"cpuMillicores\":0,\"memoryMiB\":0},\"total\":{"
                "\"cpuMillicores\":16000,\"memoryMiB\":32768}}");
    tell("{\"pods\":[],\"places\":[{\"name\":\"host\",\"health\":\"ready\","
         "\"usage\":{\"cpuMillicores\":2500,\"memoryMib\":11}},{\"name\":"
         "\"card-0000-12-00\",\"health\":\"ready\",\"usage\":{"
         "\"cpuMillicores\":70,\"memoryMib\":12}}]}");
    cr_assert_eq(get("/v1/usage?node=node000"), 200);
    expect_body("\"used\":{\"cpuMillicores\":2500,\"memoryMiB\":11}");
    expect_body("\"used\":{\"cpuMillicores\":70,\"memoryMiB\":12}");
}

Test(usage, of_a_node_that_is_not_in_the_fleet_is_not_kept)
{
    struct used used;
    struct app *app = server_app(simapp_server);
    static const char report[] =
        "{\"pods\":[],\"places\":[{\"name\":\"host\",\"health\":\"ready\","
        "\"usage\":{\"cpuMillicores\":2500,\"memoryMib\":11}}]}";
    cr_assert_eq(raw_call(server_port(simapp_server, SERVER_PUBLISH), "POST",
                          "/v1/nodes/nowhere/status",
                          "Content-Type: application/json\r\n", report, &reply),
                 204, "%s", str_text(&reply.body));
    tell(report);
    cr_expect_not(
        used_book_place(app->used, "nowhere", "host", clock_ms(), &used));
    cr_expect(used_book_place(app->used, "node000", "host", clock_ms(), &used));
}

Test(usage, is_had_until_something_differs)
{
    char etag[96], have[128];
    tell("{\"pods\":[],\"places\":[{\"name\":\"host\",\"health\":\"ready\","
         "\"usage\":{\"cpuMillicores\":2500,\"memoryMib\":11}}]}");
    cr_assert_eq(get("/v1/usage"), 200);
    (void)raw_header(&reply, "ETag", etag, sizeof etag);
    (void)snprintf(have, sizeof have, "If-None-Match: %s\r\n", etag);
    cr_expect_eq(get_as("/v1/usage", have), 304);
    clock_set_fake(clock_ms() + USED_BOOK_OLD_MS + 2);
    cr_expect_eq(get_as("/v1/usage", have), 200);
    clock_set_fake(-1);
}

Test(usage, of_a_pod_is_beside_what_it_was_given)
{
    const struct simapp_pod pod = {.name = "s", .role = "service", .cores = 4};
    cr_assert_eq(simapp_apply(&pod, 1), 0);
    simapp_settle();
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(server_app(simapp_server)->writer);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", "s");
    cr_assert(a);
    cleanup_free char *json =
        xasprintf("{\"pods\":[{\"uid\":\"%s\",\"state\":\"running\",\"usage\":{"
                  "\"cpuMillicores\":1500,\"memoryMib\":77,\"at\":"
                  "\"2026-01-02T03:04:05Z\"}}]}",
                  a->demand.uid);
    cr_assert_eq(strcmp(a->node, "node000"), 0, "%s", a->node);
    tell(json);
    cr_assert_eq(get("/v1/usage"), 200);
    expect_body("{\"namespace\":\"ns\",\"name\":\"s\",\"role\":\"service\","
                "\"used\":{\"cpuMillicores\":1500,\"memoryMiB\":77,\"at\":"
                "\"2026-01-02T03:04:05Z\"},\"given\":{\"cpuMillicores\":4000,");
}

Test(usage, comes_in_pages)
{
    cr_assert_eq(get("/v1/usage?limit=1"), 200);
    expect_body("\"continue\":\"node000\"");
    cr_assert_eq(get("/v1/usage?limit=1&continue=node000"), 200);
    expect_body("\"items\":[{\"node\":\"node001\"");
    cr_expect_null(strstr(str_text(&reply.body), "continue"));
    cr_expect_eq(get("/v1/usage?node=nowhere"), 404);
    cr_expect_eq(get("/v1/usage?node=node000&x=1"), 400);
}
