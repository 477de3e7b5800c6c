/* What nodes tell that pods have, as advertisers and people meet it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/achieved/achieved_report.h"
#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/world.h"

static struct server *s;
static struct raw_reply reply;

static int call(enum server_listener l, const char *method, const char *path,
                const char *body)
{
    const struct jtext text = {body, strlen(body), false};
    return world_call(s, l, method, path, text, &reply);
}

static void expect_part(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "no %s in %s", part,
              str_text(&reply.body));
}

static void bind(const struct world_pod *pod)
{
    cleanup_str struct str args = STR_INIT(65536);
    world_args_json(pod, 1, &args);
    cr_assert_eq(
        call(SERVER_SCHEDULER, "POST", "/v1/scheduler/filter", str_text(&args)),
        200);
    cleanup_free char *body =
        xasprintf("{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":"
                  "\"uid-%s\",\"Node\":\"node000\"}",
                  pod->name, pod->name);
    cr_assert_eq(call(SERVER_SCHEDULER, "POST", "/v1/scheduler/bind", body),
                 200);
    expect_part("\"Error\":\"\"");
}

/* A pair on node000, promised card 12:00.0 and GPU 12:01.0. */
static void start(void)
{
    static const struct world_pod host = {"h", "host", "ring", 0,    1,
                                          1,   0,      0,      "pix"};
    static const struct world_pod xpu = {"x", "xpu", "ring", 0,   1,
                                         0,   8,     1024,   NULL};
    s = world_start();
    world_publish(s, 1, 4);
    bind(&host);
    bind(&xpu);
}

static void stop(void)
{
    server_stop(s);
    raw_reply_fini(&reply);
}

TestSuite(routes_achieved, .init = start, .fini = stop);

static int tell(const char *body)
{
    return call(SERVER_PUBLISH, "PUT", "/v1/nodes/node000/achieved", body);
}

static void has_gpu(const char *gpu)
{
    cleanup_free char *body = xasprintf(
        "{\"node\":\"node000\",\"pods\":[{\"namespace\":\"default\",\"name\":"
        "\"h\",\"uid\":\"uid-h\",\"gpus\":[\"%s\"],\"cpus\":\"0-63\","
        "\"numa\":[0,1]},{\"namespace\":\"default\",\"name\":\"x\",\"cards\":"
        "[\"0000:12:00.0\"]}]}",
        gpu);
    cr_assert_eq(tell(body), 204, "%s", str_text(&reply.body));
}

#define LOST                                                            \
    "promised GPU 0000:12:01.0 (PIX to card 0000:12:00.0), has "        \
    "0000:22:01.0 (SYS): each transfer crosses the socket link; claim " \
    "GPUs to pin them"

Test(routes_achieved, is_shown_beside_what_was_promised)
{
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/allocations", ""), 200);
    expect_part("\"achieved\":{\"state\":\"unknown\",\"relation\":null,"
                "\"text\":\"node node000 has not told what it has\"}");
    has_gpu("0000:22:01.0");
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/allocations", ""), 200);
    expect_part("\"achieved\":{\"state\":\"lost\",\"relation\":\"SYS\","
                "\"text\":\"" LOST "\",\"gpus\":[\"0000:22:01.0\"],\"cpus\":"
                "\"0-63\",\"numa\":[0,1]}");
    expect_part("\"achieved\":{\"state\":\"kept\",\"relation\":\"SYS\","
                "\"cards\":[\"0000:12:00.0\"]}");
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/allocations/default/h", ""),
                 200);
    expect_part("\"state\":\"lost\"");
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/jobs/default/ring", ""), 200);
    expect_part("\"achieved\":{\"state\":\"lost\",\"relation\":\"SYS\"");
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/why?pod=default/h", ""), 200);
    expect_part("; achieved: SYS, lost: " LOST "\"");
    cr_assert_eq(call(SERVER_READ, "GET", "/ui/jobs/default/ring", ""), 200);
    expect_part(">SYS</span> lost</td>");
}

Test(routes_achieved, gets_right_again)
{
    has_gpu("0000:22:01.0");
    has_gpu("0000:12:01.0");
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/allocations", ""), 200);
    expect_part("\"achieved\":{\"state\":\"kept\",\"relation\":\"PIX\"");
    cr_expect_null(strstr(str_text(&reply.body), "lost"));
    cr_assert_eq(tell("{\"node\":\"node000\",\"pods\":[]}"), 204);
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/allocations/default/h", ""),
                 200);
    expect_part("\"state\":\"unknown\"");
}

Test(routes_achieved, is_news)
{
    char etag[96], have[128];
    has_gpu("0000:12:01.0");
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/allocations", ""), 200);
    cr_assert_not_null(raw_header(&reply, "ETag", etag, sizeof etag));
    (void)snprintf(have, sizeof have, "If-None-Match: %s\r\n", etag);
    uint16_t port = server_port(s, SERVER_READ);
    cr_expect_eq(raw_call(port, "GET", "/v1/allocations", have, NULL, &reply),
                 304);
    has_gpu("0000:22:01.0");
    cr_expect_eq(raw_call(port, "GET", "/v1/allocations", have, NULL, &reply),
                 200);
}

Test(routes_achieved, is_counted)
{
    has_gpu("0000:22:01.0");
    cr_assert_eq(call(SERVER_READ, "GET", "/metrics", ""), 200);
    expect_part("\nbiga_alignment{promised=\"PIX\",achieved=\"SYS\"} 2\n");
    expect_part("\nbiga_alignment{promised=\"PIX\",achieved=\"PIX\"} 0\n");
    expect_part("\nbiga_achieved{state=\"lost\"} 1\n");
    expect_part("\nbiga_achieved{state=\"kept\"} 1\n");
    has_gpu("0000:12:01.0");
    cr_assert_eq(call(SERVER_READ, "GET", "/metrics", ""), 200);
    expect_part("\nbiga_alignment{promised=\"PIX\",achieved=\"SYS\"} 0\n");
    expect_part("\nbiga_alignment{promised=\"PIX\",achieved=\"PIX\"} 2\n");
    expect_part("\nbiga_achieved{state=\"lost\"} 0\n");
    cr_assert_eq(tell("{\"node\":\"node000\",\"pods\":[]}"), 204);
    cr_assert_eq(call(SERVER_READ, "GET", "/metrics", ""), 200);
    expect_part("\nbiga_alignment{promised=\"PIX\",achieved=\"unknown\"} 2\n");
    expect_part("\nbiga_achieved{state=\"unknown\"} 2\n");
}

Test(routes_achieved, refuses_what_is_none)
{
    cleanup_str struct str large = STR_INIT(4 << 20);
    has_gpu("0000:12:01.0");
    cr_expect_eq(tell("{\"node\":\"node001\",\"pods\":[]}"), 400);
    expect_part("node: is \\\"node001\\\", must be \\\"node000\\\"");
    cr_expect_eq(tell("{\"node\":\"node000\"}"), 400);
    expect_part("pods: required member missing");
    cr_expect_eq(tell("{\"node\":\"node000\",\"pods\":[{\"namespace\":\"a\","
                      "\"name\":\"b\",\"gpus\":[\"x\"]}]}"),
                 400);
    expect_part("pods[0].gpus: has \\\"x\\\"");
    while (large.size <= ACHIEVED_BODY_MAX)
        str_add(&large, "                                ");
    cr_expect_eq(tell(str_text(&large)), 413);
    cr_expect_eq(call(SERVER_PUBLISH, "PUT", "/v1/nodes/N/achieved", "{}"),
                 400);
    cr_assert_eq(call(SERVER_READ, "GET", "/v1/allocations", ""), 200);
    expect_part("\"state\":\"kept\",\"relation\":\"PIX\""); /* as before */
}
