/* The past of an embedded extender over HTTP: pods that were applied, run, wait
 * and end, over a restart; and what is refused. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "extender/serve/app.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/sim/world.h"
#include "tests/lib/tmpdir.h"

static char *dir;
static struct raw_reply reply;

static void set_up(void)
{
    dir = tmpdir_create();
    simapp_begin(dir);
}

static void tear_down(void)
{
    simapp_end();
    raw_reply_fini(&reply);
    tmpdir_remove(dir);
}

TestSuite(routes_history, .init = set_up, .fini = tear_down);

static int get(const char *path)
{
    history_settle(server_app(simapp_server)->history);
    return world_call(simapp_server, SERVER_READ, "GET", path,
                      (struct jtext){"", 0, false}, &reply);
}

/* The reasons of a pod's events, in order, with a space behind each. */
static void expect_reasons(const char *pod, const char *reasons)
{
    cleanup_with(json) cJSON *json = NULL;
    cleanup_str struct str got = STR_INIT(65536);
    cleanup_free char *path = xasprintf("/v1/events?kind=pod&namespace=ns&name="
                                        "%s",
                                        pod);
    struct error err = {0};
    const cJSON *x;
    cr_assert_eq(get(path), 200, "%s", str_text(&reply.body));
    cr_assert_eq(
        json_parse(str_text(&reply.body), reply.body.size, &json, &err), 0,
        "%s", err.text);
    cJSON_ArrayForEach(x, cJSON_GetObjectItemCaseSensitive(json, "items"))
    {
        str_addf(&got, "%s ",
                 cJSON_GetStringValue(
                     cJSON_GetObjectItemCaseSensitive(x, "reason")));
    }
    cr_expect_str_eq(str_text(&got), reasons, "%s: %s", pod,
                     str_text(&reply.body));
}

static void expect_in(const char *path, const char *part)
{
    cr_expect_eq(get(path), 200, "%s: %s", path, str_text(&reply.body));
    cr_expect(strstr(str_text(&reply.body), part), "%s: no %s in %s", path,
              part, str_text(&reply.body));
}

static void set_stale(const char *name, bool stale)
{
    struct simnode_pod *p = simapp_find(name);
    p->stale = stale;
    p->changed = true;
    simapp_settle();
}

static void restart(void)
{
    simapp_restart(dir);
    simapp_settle();
}

Test(routes_history, a_pod_is_told_of_from_place_to_end)
{
    const struct simapp_pod pod = {.name = "alone", .role = "xpu"};
    cr_assert_eq(simapp_apply(&pod, 1), 0);
    simapp_settle();
    expect_reasons("alone", "Bound Started ");
    expect_in("/v1/history/pod/ns/alone", "\"place\":{\"namespace\":\"ns\"");
    restart();
    expect_reasons("alone", "Bound Started "); /* nothing twice */
    cr_assert_eq(simapp_delete("alone"), 0);
    simapp_settle();
    cr_expect_not(simapp_has("alone"));
    expect_reasons("alone", "Bound Started Released Ended ");
    expect_in("/v1/history/pod/ns/alone", "\"place\":null");
}

Test(routes_history, a_pod_whose_card_is_lost_is_told_of)
{
    const struct simapp_pod pod = {.name = "alone", .role = "xpu"};
    cr_assert_eq(simapp_apply(&pod, 1), 0);
    simapp_settle();
    set_stale("alone", true);
    expect_reasons("alone", "Bound Started Lost ");
    restart();
    expect_reasons("alone", "Bound Started Lost ");
    set_stale("alone", false);
    expect_reasons("alone", "Bound Started Lost Recovered ");
    restart();
    expect_reasons("alone", "Bound Started Lost Recovered ");
}

Test(routes_history, what_else_was_told_of_a_pod_starts_it_no_second_time)
{
    const struct simapp_pod pod = {.name = "alone", .role = "xpu"};
    cr_assert_eq(simapp_apply(&pod, 1), 0);
    simapp_settle();
    expect_reasons("alone", "Bound Started ");
    struct history_event e = {.kind = HISTORY_POD,
                              .reason = HISTORY_DEGRADED,
                              .object = "ns/alone",
                              .pair = -1};
    history_post(server_app(simapp_server)->history, &e);
    e.kind = HISTORY_JOB; /* one of the same name */
    e.reason = HISTORY_BOUND;
    history_post(server_app(simapp_server)->history, &e);
    restart();
    expect_reasons("alone", "Bound Started Degraded ");
}

Test(routes_history, a_pod_that_waits_says_why)
{
    const struct simapp_pod pod = {
        .name = "big", .role = "xpu", .cores = 100000};
    cr_assert_eq(simapp_apply(&pod, 1), 0);
    simapp_settle();
    expect_reasons("big", "Refused ");
    expect_in("/v1/history/pod/ns/big", "\"refused\":{\"seq\":");
    restart();
    expect_reasons("big", "Refused "); /* it is the same, counted up */
}

Test(routes_history, pages_go_on_where_they_ended)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    expect_in("/v1/events?limit=1", "\"continue\":\"1\"");
    expect_in("/v1/events?limit=1&continue=1", "\"seq\":2");
    expect_in("/v1/events?order=desc&limit=1&continue=2", "\"seq\":1,");
    expect_in("/v1/events?continue=1000", "\"items\":[]}");
    expect_in("/v1/topology?at=2126-01-01T00:00:00Z&limit=1",
              "\"continue\":\"node000\"");
    cr_assert_eq(get("/v1/topology?at=2126-01-01T00:00:00Z&continue=node000"),
                 200);
    cr_assert_eq(
        json_parse(str_text(&reply.body), reply.body.size, &json, &err), 0);
    cr_expect_eq(
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "items")),
        SIMAPP_NODES - 1);
    expect_in("/v1/topology?at=1970-01-01T00:00:01Z", "\"items\":[]}");
}

Test(routes_history, what_is_wrong_is_named)
{
    static const struct {
        const char *path, *part;
        int status;
    } cases[] = {
        {"/v1/history/pod/ns/alnoe", "nothing is remembered of pod", 404},
        {"/v1/history/thing/x", "must be pod, job, node or card", 404},
        {"/v1/history/pod/x", "must be NAMESPACE/NAME", 400},
        {"/v1/history/node/a/b", "must be the name of a node", 400},
        {"/v1/history/node/node000?at=yesterday", "at: is \\\"yesterday", 400},
        {"/v1/events?name=x", "name: needs a kind", 400},
        {"/v1/events?kind=card&name=x", "needs a node", 400},
        {"/v1/events?since=14:05", "since: is \\\"14:05", 400},
        {"/v1/events?continue=x", "continue: is \\\"x", 400},
        {"/v1/events?follow=perhaps", "follow: is \\\"perhaps", 400},
        {"/v1/events?follow=true&order=desc", "has no end", 400},
        {"/v1/events?node=a%2Fb", "node: ", 400},
        {"/v1/events?limit=1001", "limit: ", 400},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_expect_eq(get(cases[i].path), cases[i].status, "%s: %d %s",
                     cases[i].path, reply.status, str_text(&reply.body));
        cr_expect(strstr(str_text(&reply.body), cases[i].part), "%s: %s",
                  cases[i].path, str_text(&reply.body));
    }
}

Test(routes_history, without_a_directory_there_is_none)
{
    simapp_end();
    simapp_begin(NULL);
    struct server *s = simapp_server;
    cr_expect_eq(server_app(s)->history, NULL);
    cr_expect_eq(world_call(s, SERVER_READ, "GET", "/v1/events",
                            (struct jtext){"", 0, false}, &reply),
                 501);
    cr_expect(strstr(str_text(&reply.body), "--history"), "%s",
              str_text(&reply.body));
}
