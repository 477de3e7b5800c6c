/* Drains as an operator makes them, where the extender runs the pods. */
#include <criterion/criterion.h>
#include <string.h>

#include "extender/serve/app.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/tmpdir.h"

static struct raw_reply reply;
static char *dir;

static void start(void)
{
    dir = tmpdir_create();
    simapp_begin(dir);
}

static void stop(void)
{
    simapp_end();
    tmpdir_remove(dir);
    raw_reply_fini(&reply);
}

TestSuite(drain, .init = start, .fini = stop);

static int call(const char *method, const char *target, const char *body)
{
    return raw_call(server_port(simapp_server, SERVER_READ), method, target,
                    body ? "Content-Type: application/json\r\n" : "", body,
                    &reply);
}

static void expect_body(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "no %s in %s", part,
              str_text(&reply.body));
}

static void expect(int status, const char *method, const char *target,
                   const char *body, const char *part)
{
    int got = call(method, target, body);
    cr_expect_eq(got, status, "%s %s: %d %s", method, target, got,
                 str_text(&reply.body));
    expect_body(part);
}

#define CARD "/v1/cards/node000/card-0000-12-00"
#define BY_PCI "/v1/cards/node000/0000:12:00.0"
#define WHY "{\"reason\":\"new <fw>\",\"by\":\"ann\"}"

Test(drain, a_card_is_drained_and_says_so)
{
    expect(200, "POST", BY_PCI "/drain", WHY,
           "{\"drained\":{\"node\":\"node000\",\"card\":\"card-0000-12-00\","
           "\"reason\":\"new <fw>\",\"since\":\"2");
    expect_body("\"by\":\"ann\",\"evict\":false},\"pods\":[]}");
    expect(200, "GET", CARD, NULL,
           "\"state\":\"drained\",\"drain\":{\"reason\":");
    expect_body("\"wholeNode\":false");
    expect(200, "GET", "/v1/nodes/node000", NULL, "\"drained\":1");
    expect(200, "GET", "/v1/nodes/node000/drawing", NULL,
           ">drained: new &lt;fw&gt;</text>");
    expect_body("\ndrained by ann since ");
    simapp_restart(dir);
    simapp_settle();
    expect(200, "GET", CARD, NULL, "\"state\":\"drained\"");
    expect(
        200, "DELETE", CARD "/drain", NULL,
        "{\"undrained\":{\"node\":\"node000\",\"card\":\"card-0000-12-00\"}");
    expect(200, "GET", CARD, NULL, "\"state\":\"idle\"");
    expect(404, "DELETE", CARD "/drain", NULL,
           "node000/card-0000-12-00 is not drained");
}

Test(drain, nothing_new_is_placed_there)
{
    const struct simapp_pod pod = {.name = "s", .role = "service"};
    expect(200, "POST", "/v1/nodes/node000/drain", WHY,
           "\"node\":\"node000\",\"r");
    expect(200, "POST", "/v1/nodes/node001/drain", WHY, "drained");
    expect(200, "GET", "/v1/nodes", NULL, "\"status\":\"ready\",\"drain\":{");
    cr_assert_eq(simapp_apply(&pod, 1), 0);
    simapp_settle();
    cr_expect_eq(simapp_allocations(), 0);
    expect(200, "GET", "/v1/why?pod=ns/s", NULL,
           "its node is drained by ann since ");
    expect(200, "DELETE", "/v1/nodes/node001/drain", NULL, "undrained");
    simapp_settle();
    cr_expect_eq(simapp_allocations(), 1);
}

Test(drain, what_runs_there_stays_unless_it_is_evicted)
{
    const struct simapp_pod pods[] = {{.name = "s", .role = "service"}};
    expect(200, "POST", "/v1/nodes/node001/drain", WHY, "drained");
    cr_assert_eq(simapp_apply(pods, 1), 0);
    simapp_settle();
    expect(200, "POST", "/v1/nodes/node000/drain", WHY,
           "\"pods\":[{\"namespace\":\"ns\",\"name\":\"s\"}]");
    simapp_settle();
    cr_expect_eq(simapp_allocations(), 1);
    for (int i = 0; i < 2; i++) /* and while it ends */
        expect(200, "POST", "/v1/nodes/node000/drain",
               "{\"reason\":\"r\",\"evict\":true}", "\"evict\":true");
    simapp_settle();
    cr_expect_eq(simapp_allocations(), 0);
    cr_expect_not(simapp_has("s"));
    history_settle(server_app(simapp_server)->history);
    expect(200, "GET", "/v1/events?kind=pod&reason=Evicted", NULL,
           "\"namespace\":\"ns\",\"name\":\"s\",\"node\":\"node000\",");
    expect_body("\"message\":\"evicted from node000: its node is drained "
                "since ");
    const char *once = strstr(str_text(&reply.body), "Evicted");
    cr_expect(once && !strstr(once + 1, "Evicted"), "%s",
              str_text(&reply.body));
}

Test(drain, bad_input_is_named)
{
    expect(404, "POST", "/v1/nodes/nowhere/drain", WHY, "nowhere");
    expect(404, "POST", "/v1/cards/node000/card-9/drain", WHY,
           "has no card \\\"card-9\\\"");
    expect(404, "POST", "/v1/cards/node000//drain", WHY, "");
    expect(400, "POST", CARD "/drain", "{}", "reason: required");
    expect(400, "POST", CARD "/drain", "{\"reason\":\"\"}",
           "reason: must not be empty");
    expect(400, "POST", CARD "/drain", "{\"reason\":\"r\",\"evicts\":1}",
           "evicts");
    expect(400, "POST", CARD "/drain", "{", "error");
    int status = raw_call(server_port(simapp_server, SERVER_READ), "POST",
                          CARD "/drain", "Content-Type: text/plain\r\n", WHY,
                          &reply);
    cr_expect_eq(status, 415);
    expect(200, "GET", CARD, NULL, "\"state\":\"idle\"");
}
