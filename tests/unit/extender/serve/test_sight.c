/* What a token of one namespace is shown: over every route that reads, no name
 * of another one's pods, jobs, files or events. */
#include "extender/admit/sight.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include "extender/admit/reach.h"
#include "extender/console/routes_console.h"
#include "extender/operate/operate.h"
#include "extender/serve/app.h"
#include "extender/serve/routes_ask.h"
#include "extender/serve/routes_cluster.h"
#include "extender/serve/routes_pods.h"
#include "extender/serve/routes_read.h"
#include "extender/server.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/rfc3339.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/world.h"
#include "tests/lib/tmpdir.h"

#define ADMIN "admin-admin-admin"
#define MINE "mine-mine-mine-mine"
/* Begins every name of the other namespace, and stands nowhere else. */
#define MARK "zzq"
#define QUOTA(namespace) "{\"namespace\":\"" namespace "\",\"cards\":64}"

static char *dir, *tokens, *policy;
static struct server *server;
static struct raw_reply reply;

static int call_as(const char *token, const char *method, const char *path,
                   const char *accept, const char *body)
{
    cleanup_free char *headers = xasprintf(
        "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
        "Accept: %s\r\n",
        token, accept);
    return raw_call(server_port(server, SERVER_READ), method, path, headers,
                    body, &reply);
}

static int get_as(const char *token, const char *path)
{
    return call_as(token, "GET", path, "application/json", NULL);
}

static bool has(const char *text)
{
    return strstr(str_text(&reply.body), text) != NULL;
}

/* A pod of a job of its own that has a card, or waits for more than there are. */
static void apply(const char *namespace, const char *name, int cards)
{
    cleanup_free char *body = xasprintf(
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
        "\"labels\":{\"biga.dev/role\":\"xpu\",\"biga.dev/job\":\"%s-job\"},"
        "\"annotations\":{\"biga.dev/cards\":\"%d\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{"
        "\"requests\":{\"biga.dev/card\":\"%d\"},\"limits\":{"
        "\"biga.dev/card\":\"%d\"}}}]}}",
        name, namespace, name, cards, cards, cards);
    cr_assert_eq(call_as(ADMIN, "POST", "/v1/pods", "*/*", body), 200, "%s",
                 str_text(&reply.body));
}

static void apply_map(const char *namespace, const char *name)
{
    cleanup_free char *body = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
        "\"name\":\"%s\",\"namespace\":\"%s\"},\"data\":{\"k\":\"v\"}}",
        name, namespace);
    cr_assert_eq(call_as(ADMIN, "POST", "/v1/pods", "*/*", body), 200, "%s",
                 str_text(&reply.body));
}

/* Until there is such a thing. */
static void await(const char *path)
{
    int64_t end_ms = clock_ms() + RAW_PATIENCE_MS;
    while (get_as(ADMIN, path) != 200) {
        cr_assert(clock_ms() < end_ms, "nothing at %s", path);
        (void)usleep(2000);
    }
}

/* Until its pods have, or lack, their places, and that is remembered. */
static void await_pods(const char *namespace, const char *placed,
                       const char *waits)
{
    cleanup_free char *a = xasprintf("/v1/history/pod/%s/%s", namespace,
                                     placed);
    cleanup_free char *b = xasprintf("/v1/history/pod/%s/%s", namespace, waits);
    cleanup_free char *c = xasprintf("/v1/allocations/%s/%s", namespace,
                                     placed);
    await(c);
    await(a);
    await(b);
}

static void start(void)
{
    struct server_config config = world_config();
    struct error err = {0};
    log_set_level(LOG_ERROR);
    dir = tmpdir_create();
    tokens = xasprintf("%s/tokens", dir);
    cert_write_text(ADMIN ",admin\n" MINE ",tenant,log:mine\n", tokens);
    policy = xasprintf("%s/policy", dir);
    cert_write_text("{\"quotas\":[" QUOTA(MARK "-ns") "," QUOTA("mine") "]}",
                    policy);
    config.connections = 400;
    config.token_file = tokens;
    config.policy = policy;
    config.state_dir = dir;
    cr_assert_eq(server_start(&config, &server, &err), 0, "%s", err.text);
    world_publish(server, 2, 2);
    apply(MARK "-ns", MARK "-placed", 1);
    apply(MARK "-ns", MARK "-waits", 16);
    apply_map(MARK "-ns", MARK "-map");
    await_pods(MARK "-ns", MARK "-placed", MARK "-waits");
    apply("mine", "placed", 1);
    apply("mine", "waits", 16);
    apply_map("mine", "map");
    await_pods("mine", "placed", "waits");
}

static void stop(void)
{
    server_stop(server);
    raw_reply_fini(&reply);
    tmpdir_remove(dir);
    free(tokens);
    free(policy);
}

TestSuite(sight, .init = start, .fini = stop);

/* --- every route that reads -------------------------------------------------- */

static const struct {
    const struct httpd_route *routes;
    const size_t *n;
} tables[] = {
    {ask_routes, &n_ask_routes},
    {read_routes, &n_read_routes},
    {operate_routes, &n_operate_routes},
    {console_routes, &n_console_routes},
    {pods_routes, &n_pods_routes},
    {cluster_elsewhere_routes, &n_cluster_elsewhere_routes},
};

/* What the variable parts of routes are; those of others come first. */
static const struct {
    const char *route, *paths[4];
} parts[] = {
    {"/v1/allocations/:/:", {"/v1/allocations/mine/placed"}},
    {"/v1/cards/:/:",
     {"/v1/cards/node000/card-0000-12-00",
      "/v1/cards/node000/card-0000-13-00"}},
    {"/v1/configmaps/:/:", {"/v1/configmaps/mine/map"}},
    {"/v1/history/:/:",
     {"/v1/history/node/node000", "/v1/history/node/node001",
      "/v1/history/pod/mine%2Fplaced"}},
    {"/v1/history/:/:/:",
     {"/v1/history/pod/mine/placed", "/v1/history/pod/mine/waits"}},
    {"/v1/jobs/:/:", {"/v1/jobs/mine/placed-job", "/v1/jobs/mine/waits-job"}},
    {"/v1/jobs/:/:/drawing", {"/v1/jobs/mine/placed-job/drawing"}},
    {"/v1/jobs/:/:/maps", {"/v1/jobs/mine/placed-job/maps"}},
    {"/v1/nodes/:", {"/v1/nodes/node000", "/v1/nodes/node001"}},
    {"/v1/nodes/:/drawing",
     {"/v1/nodes/node000/drawing", "/v1/nodes/node001/drawing"}},
    {"/v1/pods/:/:", {"/v1/pods/mine/placed", "/v1/pods/mine/waits"}},
    {"/v1/secrets/:/:", {"/v1/secrets/mine/none"}},
    {"/v1/why",
     {"/v1/why?pod=mine/placed", "/v1/why?pod=mine/waits",
      "/v1/why?job=mine/waits-job"}},
    {"/ui/cards/:/:",
     {"/ui/cards/node000/card-0000-12-00",
      "/ui/cards/node001/card-0000-12-00"}},
    {"/ui/jobs/:/:", {"/ui/jobs/mine/placed-job", "/ui/jobs/mine/waits-job"}},
    {"/ui/leaves/:", {"/ui/leaves/none"}},
    {"/ui/nodes/:", {"/ui/nodes/node000", "/ui/nodes/node001"}},
    {"/ui/pods/:/:", {"/ui/pods/mine/placed", "/ui/pods/mine/waits"}},
    {"/ui/search",
     {"/ui/search?q=node", "/ui/search?q=placed", "/ui/search?q=waits"}},
};

/* Asked in each form that is had of it, by both: how often the admin was shown
 * what the tenant was not. */
static size_t compare(const char *path)
{
    static const char *const forms[] = {"application/json", "text/plain",
                                        "image/svg+xml"};
    size_t told = 0;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        int status = call_as(MINE, "GET", path, forms[i], NULL);
        cr_expect(status != 403 && status != 401, "%s: %d %s", path, status,
                  str_text(&reply.body));
        cr_expect(status == 200 || strstr(path, "none"), "%s: %d %s", path,
                  status, str_text(&reply.body));
        cr_expect_not(has(MARK), "%s as %s: %s", path, forms[i],
                      str_text(&reply.body));
        cr_expect_eq(call_as(ADMIN, "GET", path, forms[i], NULL), status, "%s",
                     path);
        told += has(MARK);
    }
    return told;
}

static size_t compare_route(const char *route)
{
    size_t told = 0;
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (strcmp(parts[i].route, route) != 0)
            continue;
        found = true;
        for (size_t k = 0; k < ARRAY_LEN(parts[i].paths); k++)
            told += parts[i].paths[k] ? compare(parts[i].paths[k]) : 0;
    }
    cr_expect(found || !strchr(route, ':'), "%s: with which names?", route);
    return found ? told : compare(route);
}

/* Those that go on. */
static bool is_stream(const char *route)
{
    return strcmp(route, "/v1/changes") == 0;
}

Test(sight, of_a_namespace_shows_no_name_of_another)
{
    size_t n_routes = 0, n_told = 0;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        for (size_t i = 0; i < *tables[t].n; i++) {
            const struct httpd_route *r = &tables[t].routes[i];
            if (!(r->methods & HTTPD_GET) || is_stream(r->path) ||
                reach_of(HTTPD_GET, r->path) == REACH_NONE)
                continue;
            n_routes++;
            n_told += compare_route(r->path) > 0;
        }
    }
    cr_expect_gt(n_routes, 30);
    cr_expect_gt(n_told, 15, "only %zu routes show names at all", n_told);
}

Test(sight, of_the_past_shows_no_name_of_another)
{
    static const char *const paths[] = {
        "/v1/topology?at=%s", "/v1/history/node/node000?at=%s", "/?at=%s",
        "/ui/nodes/node000?at=%s", "/ui/cards/node000/card-0000-12-00?at=%s"};
    size_t told = 0;
    char at[RFC3339_SIZE];
    rfc3339_format(clock_wall_ns() / 1000000, at);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cleanup_free char *path = NULL;
        size_t head = strcspn(paths[i], "%");
        path = xasprintf("%.*s%s", (int)head, paths[i], at);
        told += compare(path);
    }
    cr_expect_gt(told, 0);
}

/* A file that is refused is so because of what is in it. */
Test(sight, of_a_policy_that_is_refused_says_not_why)
{
    int64_t end_ms = clock_ms() + RAW_PATIENCE_MS;
    cert_write_text(
        "{\"quotas\":[" QUOTA(MARK "-other") "," QUOTA(MARK "-other") "]}",
        policy);
    while (get_as(ADMIN, "/v1/policy") != 200 || !has(MARK "-other")) {
        cr_assert(clock_ms() < end_ms, "the policy is not read again");
        (void)usleep(2000);
    }
    cr_expect_gt(compare("/v1/policy"), 0);
    cr_expect_eq(get_as(MINE, "/v1/policy"), 200);
    cr_expect(has("it is refused"), "%s", str_text(&reply.body));
}

/* --- what is told as it happens ----------------------------------------------- */

Test(sight, of_events_that_are_followed_is_the_same)
{
    cleanup_str struct str heard = STR_INIT(1 << 20);
    char part[1024];
    cleanup_fd int fd = raw_connect(server_port(server, SERVER_READ));
    cr_assert(raw_send(fd,
                       "GET /v1/events?follow=true&since=2020-01-01T00:00:"
                       "00Z HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " MINE
                       "\r\n\r\n"));
    int64_t end_ms = clock_ms() + RAW_PATIENCE_MS;
    while (!strstr(str_text(&heard), "\"namespace\":\"mine\"")) {
        cr_assert(clock_ms() < end_ms, "after %s", str_text(&heard));
        ssize_t n = read(fd, part, sizeof part);
        cr_assert(n > 0, "the end, after %s", str_text(&heard));
        str_add_n(&heard, part, (size_t)n);
    }
    cr_expect_null(strstr(str_text(&heard), MARK), "%s", str_text(&heard));
}

/* Whoever follows so much that no more is granted harms nobody else. */
Test(sight, of_followers_has_a_cap)
{
    static const char *const paths[] = {"/v1/changes",
                                        "/v1/events?follow=true"};
    enum { CAP = 400 / 2 / 2 / 4 }; /* of 400 connections */
    int fds[CAP];
    for (int i = 0; i < CAP; i++) {
        cleanup_free char *text = xasprintf("GET %s HTTP/1.1\r\nHost: x\r\n"
                                            "Authorization: Bearer " MINE
                                            "\r\n\r\n",
                                            paths[i % 2]);
        char head[16] = "";
        fds[i] = raw_connect(server_port(server, SERVER_READ));
        cr_assert(raw_send(fds[i], text));
        cr_assert_gt(read(fds[i], head, sizeof head - 1), 12);
        cr_assert(strstr(head, " 200"), "%d: %s", i, head);
    }
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cr_expect_eq(get_as(MINE, paths[i]), 429, "%s", str_text(&reply.body));
        cr_expect(has("follows 25 lists"), "%s", str_text(&reply.body));
    }
    cr_expect_eq(get_as(MINE, "/v1/jobs"), 200);
    cleanup_fd int fd = raw_connect(server_port(server, SERVER_READ));
    char head[16] = "";
    cr_assert(raw_send(fd, "GET /v1/changes HTTP/1.1\r\nHost: x\r\n"
                           "Authorization: Bearer " ADMIN "\r\n\r\n"));
    cr_assert_gt(read(fd, head, sizeof head - 1), 12);
    cr_expect(strstr(head, " 200"), "%s", head);
    for (int i = 0; i < CAP; i++)
        (void)close(fds[i]);
}

/* --- what is out of reach ------------------------------------------------------ */

Test(sight, of_a_namespace_reaches_no_other)
{
    static const struct {
        const char *method, *path;
    } cases[] = {
        {"GET", "/v1/pods/" MARK "-ns/" MARK "-placed"},
        {"GET", "/v1/jobs/" MARK "-ns/" MARK "-placed-job"},
        {"GET", "/v1/allocations/" MARK "-ns/" MARK "-placed"},
        {"GET", "/v1/configmaps/" MARK "-ns/" MARK "-map"},
        {"GET", "/v1/why?pod=" MARK "-ns/" MARK "-placed"},
        {"GET", "/v1/why?job=" MARK "-ns/" MARK "-placed-job"},
        {"GET", "/v1/why?pod=placed"}, /* of namespace default */
        {"GET", "/v1/history/pod/" MARK "-ns/" MARK "-placed"},
        {"GET", "/v1/history/pod/" MARK "-ns%2F" MARK "-placed"},
        {"GET", "/v1/events?namespace=" MARK "-ns"},
        {"GET", "/ui/pods/" MARK "-ns/" MARK "-placed"},
        {"GET", "/ui/jobs/" MARK "-ns/" MARK "-placed-job"},
        {"GET", "/v1/pods/" MARK "-ns/" MARK "-placed/log"},
        {"DELETE", "/v1/pods/" MARK "-ns/" MARK "-placed"},
        {"DELETE", "/v1/allocations/" MARK "-ns/" MARK "-placed"},
        {"DELETE", "/v1/jobs/" MARK "-ns/" MARK "-placed-job"},
        {"DELETE", "/v1/jobs/" MARK "-ns/" MARK "-placed-job/allocations"},
        {"DELETE", "/v1/configmaps/" MARK "-ns/" MARK "-map"},
        {"DELETE", "/v1/doubt"},
        {"POST", "/v1/nodes/node000/drain"},
        {"GET", "/metrics"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(call_as(MINE, cases[i].method, cases[i].path, "*/*",
                             *cases[i].method == 'P' ? "{}" : NULL),
                     403, "%s %s: %s", cases[i].method, cases[i].path,
                     str_text(&reply.body));
    cr_expect_eq(get_as(MINE, "/v1/jobs/other/x"), 403);
    cr_expect(has("namespace mine alone"), "%s", str_text(&reply.body));
}

Test(sight, of_a_namespace_applies_nothing_to_another)
{
    static const char body[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
        "\"name\":\"x\",\"namespace\":\"other\"},\"data\":{}}";
    static const char own[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
        "\"name\":\"x\",\"namespace\":\"mine\"},\"data\":{}}";
    cr_expect_eq(call_as(MINE, "POST", "/v1/pods", "*/*", body), 403, "%s",
                 str_text(&reply.body));
    cr_expect(has("other") && has("nothing was applied"));
    cr_expect_eq(call_as(MINE, "POST", "/v1/pods", "*/*", own), 200, "%s",
                 str_text(&reply.body));
    cr_expect_eq(call_as(MINE, "DELETE", "/v1/pods/mine/waits", "*/*", NULL),
                 200, "%s", str_text(&reply.body));
}
