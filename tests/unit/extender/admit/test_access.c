#include "extender/admit/access.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "extender/admit/review.h"
#include "extender/serve/app.h"
#include "extender/server.h"
#include "lib/base/json.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "model/slice/slice.h"
#include "tests/lib/await.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/tlsclient.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/world.h"
#include "tests/lib/tmpdir.h"

#define TOKEN_A "alice-alice-alice"
#define TOKEN_B "bob-bob-bob-bob-bob"

/* --- an extender with files of its own ---------------------------------- */

struct place {
    char *dir;
    struct cert *authority;
    struct server *server;
};

static char *file(const struct place *p, const char *name, const char *suffix)
{
    return xasprintf("%s/%s%s", p->dir, name, suffix);
}

static void put(const struct place *p, const char *name,
                const struct cert_spec *spec)
{
    cleanup_free char *crt = file(p, name, ".crt");
    cleanup_free char *key = file(p, name, ".key");
    cert_issue(p->authority, spec, crt, key);
}

static void write_file(const struct place *p, const char *name,
                       const char *text)
{
    cleanup_free char *path = file(p, name, "");
    cert_write_text(text, path);
}

static struct server_config config_default(void)
{
    struct server_config config = world_config();
    config.connections = 400;
    return config;
}

static void start(struct place *p, const struct server_config *config)
{
    struct error err = {0};
    log_set_level(LOG_ERROR);
    cr_assert_eq(server_start(config, &p->server, &err), 0, "%s", err.text);
}

static void place_init(struct place *p)
{
    memset(p, 0, sizeof *p);
    p->dir = tmpdir_create();
}

static void place_fini(struct place *p)
{
    server_stop(p->server);
    cert_destroy(p->authority);
    tmpdir_remove(p->dir);
}

/* --- by certificate ----------------------------------------------------- */

static void start_tls(struct place *p, const char *scheduler_names)
{
    const struct cert_spec server = {.name = "extender", .local = true};
    const struct cert_spec others[] = {
        {.name = "system:kube-scheduler", .purposes = CERT_CLIENT},
        {.name = "system:node:h1", .purposes = CERT_CLIENT},
        {.name = "advertiser", .dns = {"h2"}, .purposes = CERT_CLIENT},
        {.name = "nobody", .purposes = CERT_CLIENT},
    };
    static const char *const names[] = {"scheduler", "h1", "h2", "nobody"};
    struct server_config config = config_default();
    place_init(p);
    p->authority = cert_authority("authority");
    cleanup_free char *ca = file(p, "ca", ".crt");
    cleanup_free char *crt = file(p, "extender", ".crt");
    cleanup_free char *key = file(p, "extender", ".key");
    cert_write(p->authority, ca);
    put(p, "extender", &server);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        put(p, names[i], &others[i]);
    config.tls_cert = crt;
    config.tls_key = key;
    config.client_ca = ca;
    config.scheduler_names = scheduler_names;
    start(p, &config);
}

/* One request as the client `who` (NULL: without a certificate). */
struct ask {
    const char *who;
    enum server_listener listener;
    const char *method, *path, *body;
};

static int call(const struct place *p, struct ask ask, struct str *ret_body)
{
    struct tls_client c;
    cleanup_free char *ca = file(p, "ca", ".crt");
    cleanup_free char *crt = ask.who ? file(p, ask.who, ".crt") : NULL;
    cleanup_free char *key = ask.who ? file(p, ask.who, ".key") : NULL;
    const struct tls_client_config how = {
        .port = server_port(p->server, ask.listener),
        .ca_file = ca,
        .cert_file = crt,
        .key_file = key};
    cr_assert(tls_client_open(&c, &how));
    int status = tls_client_call(&c, ask.method, ask.path, "", ask.body);
    str_reset(ret_body);
    str_add_n(ret_body, str_text(&c.body), c.body.size);
    tls_client_close(&c);
    return status;
}

static int filter(const struct place *p, const char *who, struct str *ret_body)
{
    const char *args = "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":"
                       "\"d\",\"uid\":\"u\"},\"spec\":{}},\"NodeNames\":[]}";
    return call(p,
                (struct ask){who, SERVER_SCHEDULER, "POST",
                             "/v1/scheduler/filter", args},
                ret_body);
}

Test(access, scheduler_listener_takes_named_certificates)
{
    struct place p;
    struct str body = STR_INIT(1 << 20);
    static const struct {
        const char *who;
        int status;
        const char *text;
    } cases[] = {
        {"scheduler", 200, "NodeNames"},
        {"h1", 403, "system:node:h1"},
        {"nobody", 403, "no name of a scheduler"},
        {NULL, 403, "certificate is needed"},
    };
    start_tls(&p, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_expect_eq(filter(&p, cases[i].who, &body), cases[i].status,
                     "%zu: %s", i, str_text(&body));
        cr_expect(strstr(str_text(&body), cases[i].text), "%zu: %s", i,
                  str_text(&body));
    }
    place_fini(&p);
    start_tls(&p, "other,h2");
    cr_expect_eq(filter(&p, "h2", &body), 200, "a DNS name");
    cr_expect_eq(filter(&p, "scheduler", &body), 403);
    place_fini(&p);
    str_fini(&body);
}

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"

static void slice_of(const char *node, int64_t generation, struct str *json,
                     struct str *path)
{
    const struct slice_epoch epoch = {"boot-1", generation};
    char name[SLICE_NAME_MAX + 1];
    cleanup_with(topo) struct topo *topo = simhost_topo(node, 2);
    str_reset(json);
    str_reset(path);
    slice_encode(topo, &epoch, 0, json);
    slice_name(node, 0, name);
    str_addf(path, SLICES "/%s", name);
}

Test(access, publish_listener_believes_the_certificate)
{
    struct place p;
    struct str body = STR_INIT(1 << 20), path = STR_INIT(1024);
    struct str json = STR_INIT(SLICE_BODY_MAX);
    start_tls(&p, NULL);
    slice_of("h1", 1, &json, &path);
#define CALL(who, method, path, text) \
    call(&p, (struct ask){who, SERVER_PUBLISH, method, path, text}, &body)
    cr_expect_eq(CALL("h2", "PUT", path.data, json.data), 403);
    cr_expect(strstr(body.data, "h1") && strstr(body.data, "h2"), "%s",
              body.data);
    cr_expect_eq(CALL("h2", "POST", SLICES, json.data), 403);
    cr_expect_eq(CALL("nobody", "PUT", path.data, json.data), 403);
    cr_expect_eq(CALL(NULL, "PUT", path.data, json.data), 403);
    cr_expect_eq(CALL("h1", "GET", path.data, NULL), 404, "nothing was stored");
    cr_expect_eq(CALL("h1", "PUT", path.data, json.data), 201, "%s", body.data);
    cr_expect_eq(CALL("h1", "PUT", path.data, json.data), 200, "a heartbeat");
    cr_expect_eq(CALL("h2", "PUT", path.data, json.data), 403,
                 "nobody else's heartbeat");
    cr_expect_eq(CALL("h2", "DELETE", path.data, NULL), 403);
    cr_expect(strstr(body.data, "h1") && strstr(body.data, "h2"), "%s",
              body.data);
    cr_expect_eq(CALL("nobody", "DELETE", path.data, NULL), 403);
    cr_expect_eq(CALL("nobody", "GET", path.data, NULL), 200);
    cr_expect_eq(CALL("h2", "GET", SLICES, NULL), 200);
    cr_expect_eq(CALL(NULL, "GET", SLICES, NULL), 403);
    cr_expect_eq(CALL("h1", "DELETE", path.data, NULL), 200);
    slice_of("h2", 1, &json, &path);
    cr_expect_eq(CALL("h2", "PUT", path.data, json.data), 201, "a DNS name");
    const char *labels[] = {"publish", "node", NULL};
    cr_expect_eq(metrics_get(server_app(p.server)->listener.metrics,
                             APP_REFUSALS, labels),
                 6);
    place_fini(&p);
    str_fini(&body);
    str_fini(&path);
    str_fini(&json);
}

/* They may hold Secrets. */
Test(access, nodes_see_their_own_pods_alone)
{
    struct place p;
    struct str body = STR_INIT(1 << 20);
    const char *status = "{\"boot\":\"b\",\"pods\":[],\"places\":[]}";
    start_tls(&p, NULL);
    cr_expect_eq(CALL("h1", "GET", "/v1/nodes/h1/pods", NULL), 200, "%s",
                 body.data);
    cr_expect_eq(CALL("h2", "GET", "/v1/nodes/h2/pods", NULL), 200);
    cr_expect_eq(CALL("h2", "GET", "/v1/nodes/h1/pods", NULL), 403);
    cr_expect(strstr(body.data, "h1") && strstr(body.data, "h2"), "%s",
              body.data);
    cr_expect_eq(CALL("nobody", "GET", "/v1/nodes/h1/pods", NULL), 403);
    cr_expect(strstr(body.data, "speaks for no node"), "%s", body.data);
    cr_expect_eq(CALL(NULL, "GET", "/v1/nodes/h1/pods", NULL), 403);
    cr_expect_eq(CALL("h2", "POST", "/v1/nodes/h1/status", status), 403);
    cr_expect_eq(CALL("h1", "POST", "/v1/nodes/h1/status", status), 204);
    cr_expect_eq(CALL("h1", "POST", "/v1/nodes/h1/status", "{\"pods\":[{}]}"),
                 400);
    cr_expect(strstr(body.data, "pods[0].uid"), "%s", body.data);
    cr_expect_eq(CALL("h1", "GET", "/v1/nodes/h1/pods?wait=31", NULL), 400);
    place_fini(&p);
    str_fini(&body);
}

/* --- by a cookie --------------------------------------------------------- */

Test(access, cookies_let_read_and_only_for_pages_of_ours)
{
    static const struct {
        const char *method, *path, *header;
        int status;
    } cases[] = {
        {"GET", "/v1/nodes", "", 200},
        {"GET", "/v1/nodes", "Sec-Fetch-Site: none\r\n", 200},
        {"GET", "/v1/nodes", "Sec-Fetch-Site: same-origin\r\n", 200},
        {"GET", "/v1/nodes", "Sec-Fetch-Site: same-site\r\n", 403},
        {"GET", "/v1/nodes", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"GET", "/v1/nodes", "Upgrade: websocket\r\n", 403},
        {"DELETE", "/v1/allocations/a/b", "Sec-Fetch-Site: same-origin\r\n",
         403},
        {"GET", "/v1/pods/a/b/log", "", 403},
        {"GET", "/v1/pods/a/b/%6cog", "", 403},
        {"GET", "/v1/pods/a/b/log", "Sec-Fetch-Site: none\r\n", 403},
        {"GET", "/v1/pods/a/b/log", "Sec-Fetch-Site: same-origin\r\n", 404},
    };
    struct place p;
    struct raw_reply reply = {0};
    struct server_config config = config_default();
    place_init(&p);
    cleanup_free char *tokens = file(&p, "tokens", "");
    write_file(&p, "tokens", TOKEN_A ",alice\n");
    config.token_file = tokens;
    start(&p, &config);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *header = xasprintf("Cookie: biga=" TOKEN_A "\r\n%s",
                                              cases[i].header);
        int status = raw_call(server_port(p.server, SERVER_READ),
                              cases[i].method, cases[i].path, header, NULL,
                              &reply);
        cr_expect_eq(status, cases[i].status, "%s %s %s: %d", cases[i].method,
                     cases[i].path, cases[i].header, status);
    }
    raw_reply_fini(&reply);
    place_fini(&p);
}

/* --- by token, of a file ------------------------------------------------ */

static int read_as(const struct place *p, const char *method, const char *path,
                   const char *token, struct raw_reply *reply)
{
    cleanup_free char *header =
        token ? xasprintf("Authorization: Bearer %s\r\n", token) : xstrdup("");
    return raw_call(server_port(p->server, SERVER_READ), method, path, header,
                    NULL, reply);
}

/* Who drains is who the token says, whatever else is claimed. */
static void expect_drainer(const struct place *p, const char *token,
                           const char *part)
{
    struct raw_reply reply = {0};
    cleanup_free char *header = xasprintf(
        "Authorization: Bearer %s\r\nContent-Type: application/json\r\n",
        token);
    world_publish(p->server, 1, 1);
    cr_expect_eq(raw_call(server_port(p->server, SERVER_READ), "POST",
                          "/v1/nodes/node000/drain", header,
                          "{\"reason\":\"r\",\"by\":\"mallory\"}", &reply),
                 200);
    cr_expect(strstr(str_text(&reply.body), part), "%s", str_text(&reply.body));
    raw_reply_fini(&reply);
}

Test(access, read_listener_asks_for_tokens_of_a_file)
{
    struct place p;
    struct raw_reply reply = {0};
    char value[64];
    struct server_config config = config_default();
    place_init(&p);
    cleanup_free char *tokens = file(&p, "tokens", "");
    write_file(&p, "tokens", TOKEN_A ",alice\n");
    config.token_file = tokens;
    start(&p, &config);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", NULL, &reply), 401);
    cr_expect_str_eq(
        raw_header(&reply, "WWW-Authenticate", value, sizeof value), "Bearer");
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_B, &reply), 401);
    cr_expect_null(strstr(reply.body.data, TOKEN_B));
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 200);
    cr_expect_eq(read_as(&p, "GET", "/", NULL, &reply), 401);
    cr_expect_eq(read_as(&p, "GET", "/metrics", NULL, &reply), 401);
    cr_expect_eq(read_as(&p, "GET", "/healthz", NULL, &reply), 200);
    cr_expect_eq(read_as(&p, "GET", "/readyz", NULL, &reply), 200);
    cr_expect_eq(read_as(&p, "GET", "/openapi.yaml", NULL, &reply), 200);
    cr_expect_eq(read_as(&p, "GET", "/%68ealthz", NULL, &reply), 401);
    cr_expect_eq(read_as(&p, "DELETE", "/v1/allocations/a/b", NULL, &reply),
                 401);
    expect_drainer(&p, TOKEN_A, "\"by\":\"alice\"");
    struct access *a = server_app(p.server)->listener.access;
    write_file(&p, "tokens", "half");
    access_poll(a);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 200,
                 "what was is in force");
    write_file(&p, "tokens", TOKEN_B ",bob\n");
    access_poll(a);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 401);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_B, &reply), 200);
    raw_reply_fini(&reply);
    place_fini(&p);
}

/* --- by token, of the API server ---------------------------------------- */

/* Knows alice, who may read all but /v1/policy and the past, and bob, who may
 * nothing. */
struct api {
    struct httpd *httpd;
    atomic_uint n_tokens, n_access;
    atomic_bool down, slow, hides_events;
    _Atomic(struct httpd_request *) held;
};

static void on_token(struct httpd_request *rq, void *ctx)
{
    struct api *api = ctx;
    size_t size;
    const char *body = httpd_body(rq, &size);
    const char *user = strstr(body, "\"" TOKEN_A "\"")   ? "alice"
                       : strstr(body, "\"" TOKEN_B "\"") ? "bob"
                                                         : NULL;
    atomic_fetch_add(&api->n_tokens, 1);
    if (atomic_load(&api->down)) {
        httpd_fail(rq, 503, "down");
        return;
    }
    httpd_status(rq, 201);
    str_add(httpd_reply(rq), "{\"kind\":\"TokenReview\",\"status\":{");
    if (user)
        str_addf(httpd_reply(rq),
                 "\"authenticated\":true,\"user\":{\"username\":\"%s\","
                 "\"uid\":\"7\",\"groups\":[\"g\",\"system:authenticated\"],"
                 "\"extra\":{\"k\":[\"v\"]}}",
                 user);
    str_add(httpd_reply(rq), "}}");
    if (atomic_load(&api->slow)) {
        httpd_suspend(rq);
        atomic_store(&api->held, rq);
    }
}

static void on_access(struct httpd_request *rq, void *ctx)
{
    struct api *api = ctx;
    size_t size;
    const char *body = httpd_body(rq, &size);
    cleanup_with(json) cJSON *json = NULL;
    struct error err;
    atomic_fetch_add(&api->n_access, 1);
    cr_assert_eq(json_parse(body, size, &json, &err), 0, "%s", err.text);
    cr_expect(strstr(body, "\"groups\":[\"g\",\"system:authenticated\"]") &&
                  strstr(body, "\"extra\":{\"k\":[\"v\"]}") &&
                  strstr(body, "\"uid\":\"7\""),
              "%s", body);
    if (strstr(body, "\"resource\":\"pods\"")) {
        cr_expect(strstr(body, "\"namespace\":\"team-a\"") &&
                      strstr(body, "\"name\":\"one\"") &&
                      (strstr(body, "\"subresource\":\"log\"") ||
                       strstr(body, "\"subresource\":\"exec\"")) &&
                      !strstr(body, "\"path\""),
                  "%s", body);
    }
    bool allowed = strstr(body, "\"user\":\"alice\"") &&
                   strstr(body, "\"verb\":\"get\"") &&
                   !strstr(body, "\"path\":\"/v1/policy\"") &&
                   !strstr(body, "\"path\":\"/v1/topology\"") &&
                   !strstr(body, "\"path\":\"/v1/history/") &&
                   !(atomic_load(&api->hides_events) &&
                     strstr(body, "\"path\":\"/v1/events\""));
    httpd_status(rq, 201);
    str_addf(httpd_reply(rq),
             "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":%s}}",
             allowed ? "true" : "false");
}

static const struct httpd_route api_routes[] = {
    {HTTPD_POST, "/apis/authentication.k8s.io/v1/tokenreviews", on_token, 65536,
     "token"},
    {HTTPD_POST, "/apis/authorization.k8s.io/v1/subjectaccessreviews",
     on_access, 65536, "access"},
};

static void start_with_api(struct place *p, struct api *api)
{
    struct error err = {0};
    struct server_config config = config_default();
    const struct httpd_config http = {.name = "api",
                                      .listen = "127.0.0.1:0",
                                      .routes = api_routes,
                                      .n_routes = ARRAY_LEN(api_routes),
                                      .ctx = api};
    memset(api, 0, sizeof *api);
    cr_assert_eq(httpd_start(&http, &api->httpd, &err), 0, "%s", err.text);
    place_init(p);
    cleanup_free char *kubeconfig = file(p, "kubeconfig", "");
    cleanup_free char *text = xasprintf(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
        "users: [{name: u, user: {}}]\n",
        httpd_port(api->httpd));
    write_file(p, "kubeconfig", text);
    config.token_file = "kubernetes";
    config.state_dir = p->dir;
    config.kubeconfig = kubeconfig;
    start(p, &config);
}

/* As the API server would ask itself; what it says of one is not taken for the
 * other. */
Test(access, streams_of_pods_need_rights_to_their_subresources)
{
    struct place p;
    struct api api;
    struct raw_reply reply = {0};
    start_with_api(&p, &api);
    cr_expect_eq(read_as(&p, "GET", "/v1/pods/team-a/one/log", TOKEN_A, &reply),
                 404, "there is none: %s", str_text(&reply.body));
    cr_expect_eq(
        read_as(&p, "GET", "/v1/pods/team-a/one/exec", TOKEN_A, &reply), 403);
    cr_expect(strstr(reply.body.data,
                     "may not create pods/exec in namespace \\\"team-a\\\""),
              "%s", reply.body.data);
    cr_expect_eq(
        read_as(&p, "GET", "/v1/pods/team-a/one/%65xec", TOKEN_A, &reply), 403);
    cr_expect_eq(read_as(&p, "GET", "/v1/pods/team-a/one/log", TOKEN_B, &reply),
                 403);
    raw_reply_fini(&reply);
    place_fini(&p);
    httpd_stop(api.httpd);
}

Test(access, pages_of_the_past_need_the_right_to_the_past)
{
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        {"/ui/nodes", 200},
        {"/ui/nodes/n?at=", 404},
        {"/ui/nodes/n?at=x", 403},
        {"/ui/cards/n/c?at=x", 403},
        {"/ui/jobs/a/b?at=x", 403},
        {"/ui/pods/a/b?at=x", 403},
        {"/?at=x", 403},
        {"/ui/jobs?at=x", 403},
        {"/ui/leaves/l?at=x", 403},
        {"/ui/pending?at=x", 403},
        {"/", 200},
    };
    static const struct {
        const char *path, *right;
    } escaped[] = {
        {"/ui/%65vents?at=x", "may not get /v1/events"},
        {"/%75i/%70ending?at=x", "may not get /v1/events"},
        {"/ui/%6eodes/n?at=x", "may not get /v1/history/node/n"},
        {"/%75i/cards/n/c?at=x", "may not get /v1/history/card/n/c"},
    };
    struct place p;
    struct api api;
    struct raw_reply reply = {0};
    start_with_api(&p, &api);
    atomic_store(&api.hides_events, true);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(read_as(&p, "GET", cases[i].path, TOKEN_A, &reply),
                     cases[i].status, "%s", cases[i].path);
    for (size_t i = 0; i < ARRAY_LEN(escaped); i++) {
        cr_expect_eq(read_as(&p, "GET", escaped[i].path, TOKEN_A, &reply), 403);
        cr_expect(strstr(reply.body.data, escaped[i].right), "%s: %s",
                  escaped[i].path, reply.body.data);
    }
    raw_reply_fini(&reply);
    place_fini(&p);
    httpd_stop(api.httpd);
}

/* Of what happened a page shows nothing to who may not read events, as often as
 * it is asked for again. */
Test(access, pages_have_events_for_those_who_may_read_them)
{
    static const char *const paths[] = {"/ui/nodes/node000",
                                        "/ui/nodes/node000?fragment=1",
                                        "/ui/cards/node000/card-0000-12-00"};
    struct place p;
    struct api api;
    struct raw_reply reply = {0};
    start_with_api(&p, &api);
    world_publish(p.server, 1, 1);
    history_settle(server_app(p.server)->history);
    for (int hidden = 0; hidden < 2; hidden++) {
        atomic_store(&api.hides_events, hidden);
        clock_set_fake(clock_ms() + REVIEW_ADMITTED_MS + 1000);
        for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
            cr_expect_eq(read_as(&p, "GET", paths[i], TOKEN_A, &reply), 200);
            bool told = strstr(reply.body.data,
                               i < 2 ? "NodeReady" : "Nothing is remember");
            cr_expect_eq(told, !hidden, "%s: %s", paths[i], reply.body.data);
            cr_expect_eq(strstr(reply.body.data, "<h2>History</h2>\n<p>What") !=
                             NULL,
                         hidden, "%s: %s", paths[i], reply.body.data);
        }
        cr_expect_eq(read_as(&p, "GET", "/ui/events", TOKEN_A, &reply),
                     hidden ? 403 : 200);
    }
    clock_set_fake(-1);
    raw_reply_fini(&reply);
    place_fini(&p);
    httpd_stop(api.httpd);
}

Test(access, read_listener_has_the_api_server_review_tokens)
{
    struct place p;
    struct api api;
    struct raw_reply reply = {0};
    start_with_api(&p, &api);
    clock_set_fake(clock_ms()); /* nothing is forgotten meanwhile */
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 200, "%s",
                 str_text(&reply.body));
    cr_expect_eq(read_as(&p, "GET", "/v1/policy", TOKEN_A, &reply), 403);
    cr_expect(strstr(reply.body.data, "may not get /v1/policy"), "%s",
              reply.body.data);
    cr_expect_eq(read_as(&p, "DELETE", "/v1/allocations/a/b", TOKEN_A, &reply),
                 403);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_B, &reply), 403);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", "whoever", &reply), 401);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", NULL, &reply), 401);
    cr_expect_eq(read_as(&p, "GET", "/readyz", NULL, &reply), 200);
    cr_expect_eq(atomic_load(&api.n_tokens), 3, "alice, bob, nobody");
    cr_expect_eq(atomic_load(&api.n_access), 4);
    /* all are remembered, and the query is no part of what is asked */
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes?limit=1", TOKEN_A, &reply), 200);
    cr_expect_eq(read_as(&p, "HEAD", "/v1/nodes", TOKEN_B, &reply), 403);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", "whoever", &reply), 401);
    cr_expect_eq(atomic_load(&api.n_tokens), 3);
    cr_expect_eq(atomic_load(&api.n_access), 4);
    clock_set_fake(-1);
    raw_reply_fini(&reply);
    place_fini(&p);
    httpd_stop(api.httpd);
}

Test(access, verdicts_are_forgotten)
{
    struct place p;
    struct api api;
    struct raw_reply reply = {0};
    start_with_api(&p, &api);
    int64_t now = clock_ms();
    clock_set_fake(now); /* nothing is forgotten meanwhile */
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 200);
    cr_expect_eq(read_as(&p, "GET", "/v1/policy", TOKEN_A, &reply), 403);
    clock_set_fake(now + REVIEW_REFUSED_MS + 1000);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 200);
    cr_expect_eq(atomic_load(&api.n_access), 2, "admitted for longer");
    cr_expect_eq(read_as(&p, "GET", "/v1/policy", TOKEN_A, &reply), 403);
    cr_expect_eq(atomic_load(&api.n_access), 3);
    clock_set_fake(now + REVIEW_ADMITTED_MS + 1000);
    atomic_store(&api.down, true);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 503);
    atomic_store(&api.down, false);
    cr_expect_eq(read_as(&p, "GET", "/v1/nodes", TOKEN_A, &reply), 200,
                 "a failure is not remembered");
    cr_expect_eq(atomic_load(&api.n_tokens), 3);
    clock_set_fake(-1);
    raw_reply_fini(&reply);
    place_fini(&p);
    httpd_stop(api.httpd);
}

struct stopper {
    pthread_t thread;
    struct server *server;
    atomic_bool stopped;
};

static void *stop_server(void *arg)
{
    struct stopper *s = arg;
    server_stop(s->server);
    atomic_store(&s->stopped, true);
    return NULL;
}

/* The first that has an answer; requests of several connections are taken in
 * any order. */
static int answered(const int *fds, nfds_t n)
{
    struct pollfd *p = xcalloc(n, sizeof *p);
    int fd = -1;
    for (nfds_t i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    cr_assert_gt(poll(p, n, -1), 0);
    for (nfds_t i = 0; i < n && fd < 0; i++)
        fd = p[i].revents ? p[i].fd : -1;
    free(p);
    return fd;
}

/* The API server hangs: beyond the queue requests are refused at once, others
 * are served, and the extender still ends within the deadline of one call. */
Test(access, hanging_api_server_blocks_nobody_else)
{
    enum { MANY = REVIEW_WAITING_MAX + 2 }; /* one is being asked about */
    struct place p;
    struct api api;
    struct raw_reply reply = {0};
    static int fds[MANY];
    struct stopper stopper = {0};
    start_with_api(&p, &api);
    atomic_store(&api.slow, true);
    for (int i = 0; i < MANY; i++) {
        fds[i] = raw_connect(server_port(p.server, SERVER_READ));
        cleanup_free char *text =
            xasprintf("GET /v1/nodes HTTP/1.1\r\nHost: x\r\n"
                      "Authorization: Bearer token-%d\r\n\r\n",
                      i);
        cr_assert(raw_send(fds[i], text));
        if (i == 0)
            AWAIT(atomic_load(&api.held));
    }
    cr_assert_not_null(atomic_load(&api.held));
    cr_expect_eq(raw_read(answered(fds + 1, MANY - 1), false, &reply), 503);
    cr_expect(strstr(reply.body.data, "too many"), "%s", reply.body.data);
    cr_expect_eq(read_as(&p, "GET", "/readyz", NULL, &reply), 200);
    stopper.server = steal(&p.server);
    cr_assert_eq(pthread_create(&stopper.thread, NULL, stop_server, &stopper),
                 0);
    cr_expect_eq(raw_read(fds[0], false, &reply), 503, "%s",
                 str_text(&reply.body));
    (void)pthread_join(stopper.thread, NULL);
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    raw_reply_fini(&reply);
    httpd_resume(atomic_load(&api.held));
    httpd_stop(api.httpd);
    place_fini(&p);
}

/* --- without TLS -------------------------------------------------------- */

Test(access, plain_http_stays_on_loopback)
{
    static const char *const outside[] = {"0.0.0.0:0", "[::]:0", ":0"};
    struct server_config config = config_default();
    struct server *s = NULL;
    struct error err = {0};
    log_set_level(LOG_ERROR);
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        config.listen[SERVER_READ] = outside[i];
        config.plain_anywhere = false;
        cr_expect_eq(server_start(&config, &s, &err), -EINVAL, "%zu", i);
        cr_expect(strstr(err.text, "read-listen") &&
                      strstr(err.text, "--tls-cert") &&
                      strstr(err.text, "--plain-http anywhere"),
                  "%s", err.text);
    }
    config.listen[SERVER_READ] = "127.7.7.7:0";
    cr_expect_eq(server_start(&config, &s, &err), 0, "%s", err.text);
    server_stop(s);
    config.listen[SERVER_READ] = outside[0];
    config.plain_anywhere = true;
    cr_expect_eq(server_start(&config, &s, &err), 0, "%s", err.text);
    server_stop(s);
}

Test(access, tls_needs_all_its_files)
{
    struct server_config config = config_default();
    struct server *s = NULL;
    struct error err = {0};
    log_set_level(LOG_ERROR);
    config.tls_cert = "/nowhere.crt";
    config.tls_key = "/nowhere.key";
    cr_expect_eq(server_start(&config, &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "without --client-ca"), "%s", err.text);
    config.tls_cert = NULL;
    config.tls_key = NULL;
    config.scheduler_names = "a,,b";
    cr_expect_eq(server_start(&config, &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "scheduler-names"), "%s", err.text);
}
