#include "extender/serve/routes_pods.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/run/embedded.h"
#include "lib/base/json.h"
#include "lib/io/log.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"

static struct test_extender x;
static struct raw_reply reply;

static void start(void)
{
    log_set_level(LOG_ERROR + 1);
    test_extender_start(&x, pods_routes, n_pods_routes, NULL);
}

static void stop(void)
{
    test_extender_stop(&x);
    raw_reply_fini(&reply);
}

TestSuite(routes_pods, .init = start, .fini = stop);

static int get(const char *target)
{
    return raw_call(x.port, "GET", target, "", NULL, &reply);
}

static int get_text(const char *target)
{
    return raw_call(x.port, "GET", target, "Accept: text/plain\r\n", NULL,
                    &reply);
}

static int post(const char *body)
{
    return raw_call(x.port, "POST", "/v1/pods",
                    "Content-Type: application/json\r\n", body, &reply);
}

static int delete (const char *target)
{
    return raw_call(x.port, "DELETE", target, "", NULL, &reply);
}

static void expect_body(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "no %s in %s", part,
              str_text(&reply.body));
}

static void expect_json(void)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error err;
    cr_expect_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s in %s", err.text, reply.body.data);
}

#define POD(name, image)                                                 \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"labels\":{" \
    "\"biga.dev/role\":\"xpu\",\"biga.dev/job\":\"j\"}},\"spec\":{"      \
    "\"containers\":[{\"name\":\"c\",\"image\":\"" image "\",\"env\":[{" \
    "\"name\":\"X\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s\","    \
    "\"key\":\"k\"}}}]}]}}"
#define SECRET                                                           \
    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":" \
    "\"s\"},\"stringData\":{\"k\":\"hush-hush\"}}"
#define MAP                                                                 \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":" \
    "\"m\"},\"data\":{\"k\":\"loud\"}}"

Test(routes_pods, applies_all_or_nothing)
{
    cr_expect_eq(post(POD("a", "i:1")), 200);
    expect_body("\"name\":\"a\",\"result\":\"created\",\"uid\":\"");
    expect_body("\"warning\":\"spec.containers[0].env[0]");
    expect_body("namespace default has no Secret of that name");
    cr_expect_eq(post(SECRET "\n" POD("a", "i:1")), 200);
    expect_body("\"name\":\"s\",\"result\":\"created\"");
    expect_body("\"name\":\"a\",\"result\":\"unchanged\"");
    cr_assert_null(strstr(reply.body.data, "warning"));
    cr_expect_eq(post(POD("b", "i:1") POD("a", "i:2")), 409);
    expect_body("delete it first (biga delete default/a)");
    expect_body("nothing was applied");
    cr_expect_eq(get("/v1/pods/default/b"), 404);
    cr_expect_eq(post(POD("b", "")), 400);
    expect_body("document 1 (Pod default/b): spec.containers[0].image");
    cr_expect_eq(post("{"), 400);
    cr_expect_eq(raw_call(x.port, "POST", "/v1/pods",
                          "Content-Type: text/plain\r\n", POD("b", "i:1"),
                          &reply),
                 415);
}

#define NOTED(name, labels, note, template)               \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name    \
    "\",\"labels\":{" labels "},\"annotations\":{\"" note \
    "\":\"pix\"}},\"spec\":{"                             \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"}]}}" template
#define ROLE(role) "\"biga.dev/role\":\"" role "\""

Test(routes_pods, refuses_keys_that_are_none)
{
    cr_expect_eq(post(NOTED("a", ROLE("xpu"), "biga.dev/aling", "")), 400);
    expect_body("document 1 (Pod default/a): metadata.annotations["
                "\\\"biga.dev/aling\\\"]: is no key of Biga; did you mean "
                "biga.dev/align?; nothing was applied");
    cr_expect_eq(
        post(NOTED("a", "\"biga.dev/rol\":\"xpu\"", "biga.dev/align", "")),
        400);
    expect_body("labels[\\\"biga.dev/rol\\\"]: is no key of Biga; did you mean "
                "biga.dev/role?");
    cr_expect_eq(post(NOTED("a", ROLE("xpu"), "biga.dev/job", "")), 400);
    expect_body("is a label, not an annotation");
    cr_expect_eq(get("/v1/pods/default/a"), 404);
    cr_expect_eq(post(NOTED("a", ROLE("xpu"), "example.biga.dev/aling", "")),
                 200);
}

Test(routes_pods, refuses_keys_of_a_template_that_are_none)
{
    cr_expect_eq(
        post(NOTED("h", ROLE("host"), "biga.dev/buddy",
                   "{\"kind\":\"PodTemplate\",\"metadata\":{\"name\":\"pix\"},"
                   "\"template\":{\"metadata\":{\"labels\":{"
                   "\"biga.dev/arch\":\"arm64\"}},\"spec\":{\"containers\":[{"
                   "\"name\":\"c\",\"image\":\"i:1\"}]}}}")),
        400);
    expect_body("PodTemplate default/pix for pod h: metadata.labels["
                "\\\"biga.dev/arch\\\"]: is an annotation, not a label");
}

Test(routes_pods, keeps_what_is_immutable)
{
#define FIXED(value)                                                     \
    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":" \
    "\"fixed\"},\"immutable\":true,\"stringData\":{\"k\":\"" value "\"}}"
    cr_assert_eq(post(FIXED("hush")), 200);
    cr_expect_eq(post(FIXED("hush")), 200);
    cr_expect_eq(post(MAP FIXED("loud")), 409);
    expect_body("Secret default/fixed: data: key \\\"k\\\" differs");
    cr_expect_null(strstr(reply.body.data, "loud"));
    cr_expect_eq(get("/v1/configmaps/default/m"), 404, "all or nothing");
}

#define LARGE_VOLUME(name) \
    "{\"name\":\"" name "\",\"configMap\":{\"name\":\"" name "\"}}"

/* Each is as large as Kubernetes lets it be; a pod can have one of them. */
Test(routes_pods, refuses_more_files_than_a_node_takes)
{
    enum { LARGE = 1000000 };
    static const char *const names[] = {"m0", "m1", "m2"};
    cleanup_str struct str body = STR_INIT(STR_MAX_DEFAULT);
    cleanup_free char *large = xcalloc(1, LARGE + 1);
    memset(large, 'x', LARGE);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        str_addf(&body,
                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":"
                 "{\"name\":\"%s\"},\"data\":{\"k\":\"%s\"}}",
                 names[i], large);
    str_add(&body,
            "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"labels\":{"
            "\"biga.dev/role\":\"xpu\"}},\"spec\":{\"containers\":[{"
            "\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[" LARGE_VOLUME(
                "m0") "," LARGE_VOLUME("m1") "," LARGE_VOLUME("m2") "]}"
                                                                    "}");
    cr_expect_eq(post(str_text(&body)), 400);
    expect_body("Pod default/p: spec.volumes[1].configMap: with \\\"k\\\" the "
                "pod's volumes have 2000000 bytes, the limit is 1048576");
    expect_body("nothing was applied");
    cr_expect_eq(get("/v1/configmaps/default/m0"), 404);
}

Test(routes_pods, shows_pods)
{
    char etag[128], headers[160];
    struct error err;
    cr_assert_eq(post(POD("a", "i") POD("b", "i") POD("c", "i")), 200);
    cr_assert_eq(sim_publish(x.app.writer, "n0", 2, "boot", 1), 0);
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(x.embedded->store.applied);
    struct demand d = pod_set_find(set, "default", "b")->demand;
    cr_assert_eq(sim_bind(x.app.writer, &d, "n0", NULL, &err), 0, "%s",
                 err.text);
    cr_assert_eq(get("/v1/pods?limit=2"), 200);
    expect_json();
    expect_body("\"name\":\"a\",\"uid\":\"");
    expect_body("\"node\":null,\"cards\":[]");
    expect_body("\"node\":\"n0\",\"cards\":[{\"id\":\"");
    expect_body("\"continue\":\"default/b\"");
    cr_assert_eq(get("/v1/pods?limit=2&continue=default/b"), 200);
    expect_body("\"name\":\"c\"");
    cr_assert_null(strstr(reply.body.data, "\"name\":\"b\""));
    cr_assert_eq(get("/v1/pods?node=n0&state=wanted&namespace=default&job=j"),
                 200);
    expect_body("\"name\":\"b\"");
    cr_assert_null(strstr(reply.body.data, "\"name\":\"a\""));
    cr_assert_eq(get("/v1/pods?state=happy"), 400);
    cr_assert_eq(get("/v1/pods?frob=1"), 400);

    cr_assert_eq(get("/v1/pods/default/b"), 200);
    expect_json();
    expect_body("\"pod\":{\"kind\":\"Pod\"");
    cr_assert_eq(get_text("/v1/pods"), 200);
    expect_body("POD        ROLE  NODE  CARDS");
    expect_body("pending  no     0         -\n");
    cr_assert_eq(get_text("/v1/pods/default/a"), 200);

    cr_assert_eq(get("/v1/pods"), 200);
    (void)raw_header(&reply, "ETag", etag, sizeof etag);
    (void)snprintf(headers, sizeof headers, "If-None-Match: %s\r\n", etag);
    cr_expect_eq(raw_call(x.port, "GET", "/v1/pods", headers, NULL, &reply),
                 304);
    cleanup_with(pod_status) struct pod_status *s = pod_status_create(0);
    s->state = POD_STATE_RUNNING;
    cr_assert_eq(applied_set_status(x.embedded->store.applied, d.uid, s), 0);
    cr_expect_eq(raw_call(x.port, "GET", "/v1/pods", headers, NULL, &reply),
                 200, "a status is news");
    expect_body("\"state\":\"running\"");
    (void)raw_header(&reply, "ETag", etag, sizeof etag);
    (void)snprintf(headers, sizeof headers, "If-None-Match: %s\r\n", etag);
    cr_assert_eq(sim_withdraw(x.app.writer, "n0"), 0);
    cr_expect_eq(raw_call(x.port, "GET", "/v1/pods", headers, NULL, &reply),
                 200, "its node's silence is news");
    expect_body("\"reason\":\"NodeSilent\",\"message\":\"nothing is heard from "
                "node n0");
    cr_assert_eq(get_text("/v1/pods/default/b"), 200);
    expect_body("no     0         NodeSilent");
}

Test(routes_pods, never_shows_what_a_secret_holds)
{
    static const char *const paths[] = {"/v1/configs", "/v1/secrets/default/s",
                                        "/v1/pods/default/a", "/v1/pods"};
    cr_assert_eq(post(SECRET MAP POD("a", "i")), 200);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cr_expect_eq(get(paths[i]), 200);
        expect_json();
        cr_expect_null(strstr(reply.body.data, "hush"), "%s", paths[i]);
        cr_expect_null(strstr(reply.body.data, "aHVz"), "%s", paths[i]);
    }
    cr_expect_eq(get("/v1/configmaps/default/m"), 200);
    expect_body("loud");
    cr_expect_eq(get_text("/v1/configs?limit=1"), 200);
    expect_body("ConfigMap  default/m  1     4\nand more: continue=default/cm");
    cr_expect_eq(get_text("/v1/configs?continue=default/cm"), 200);
    expect_body("Secret  default/s");
    cr_expect_eq(delete ("/v1/secrets/default/s"), 200);
    cr_expect_eq(get("/v1/secrets/default/s"), 404);
    cr_expect_eq(delete ("/v1/secrets/default/s"), 404);
    cr_expect_eq(delete ("/v1/configmaps/default/m"), 200);
}

Test(routes_pods, deletes)
{
    cr_assert_eq(post(POD("a", "i")), 200);
    cr_expect_eq(delete ("/v1/pods/default/a?grace=x"), 400);
    cr_expect_eq(delete ("/v1/pods/default/a?grace=86401"), 400);
    cr_expect_eq(delete ("/v1/pods/default/a?grace=7"), 200);
    expect_body("\"result\":\"deleted\"");
    cr_expect_eq(delete ("/v1/pods/default/a?grace=7"), 200);
    expect_body("\"result\":\"unchanged\"");
    cr_expect_eq(delete ("/v1/pods/default/b"), 404);
    cr_expect_eq(get("/v1/pods"), 200);
    expect_body("\"labels\":{\"biga.dev/job\":\"j\",");
    expect_body("\"submitted\":\"2");
    cr_expect_eq(get("/v1/pods/default/a"), 200);
    expect_body("\"deleting\":true");
    expect_body("\"graceSeconds\":7");
    cr_expect_eq(post(POD("a", "i")), 409);
    expect_body("is ending");
}

/* What looks at pods there is in routes_cluster.c. */
Test(routes_pods, are_the_api_servers_in_a_cluster)
{
    test_extender_stop(&x);
    test_extender_start(&x, pods_elsewhere_routes, n_pods_elsewhere_routes,
                        NULL);
    cr_expect_eq(post(POD("a", "i")), 404);
    expect_body("use kubectl");
    cr_expect_eq(delete ("/v1/pods/default/a"), 404);
    cr_expect_eq(get("/v1/configs"), 404);
    cr_expect_eq(get("/v1/secrets/default/a"), 404);
}

/* --- whole jobs ------------------------------------------------------------ */

enum { JOB_PODS = APPLIED_CHANGES_MAX + 3 };

/* Pods of the job "big", the first of which is a host pod. */
static void apply_job(int from, int to)
{
    cleanup_str struct str body = STR_INIT(8 << 20);
    for (int i = from; i < to; i++)
        str_addf(&body,
                 "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"big-%05d\","
                 "\"labels\":{\"biga.dev/role\":\"%s\",\"biga.dev/job\":"
                 "\"big\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
                 "\"image\":\"i\"}]}}",
                 i, i == 0 ? "host" : "xpu");
    cr_assert_eq(post(str_text(&body)), 200, "%s", str_text(&reply.body));
}

static const char *item_name(const cJSON *items, int i)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(items, i), "name"));
}

Test(routes_pods, delete_all_of_a_job)
{
    struct error err;
    cleanup_with(json) cJSON *json = NULL;
    cr_assert_eq(post(SECRET POD("other", "i")), 200);
    apply_job(0, JOB_PODS / 2);
    apply_job(JOB_PODS / 2, JOB_PODS);
    cr_expect_eq(delete ("/v1/jobs/default/big?grace=x"), 400);
    cr_assert_eq(delete ("/v1/jobs/default/big?grace=7"), 200, "%s",
                 str_text(&reply.body));
    cr_assert_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0);
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(json, "items");
    cr_expect_eq(cJSON_GetArraySize(items), JOB_PODS);
    cr_expect_str_eq(item_name(items, 0), "big-00001");
    cr_expect_str_eq(item_name(items, JOB_PODS - 1), "big-00000",
                     "host pods last");
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(x.embedded->store.applied);
    cr_assert_eq(set->n_pods, JOB_PODS + 1);
    for (size_t i = 0; i < set->n_pods; i++) {
        const struct applied_pod *p = set->pods[i];
        bool of_it = strcmp(p->demand.job, "big") == 0;
        cr_assert_eq(p->deleting, of_it, "%s", p->name);
        cr_assert(!of_it || p->grace_s == 7, "%s", p->name);
    }
    cr_expect_eq(delete ("/v1/jobs/default/none"), 404);
    expect_body("job default/none: has no pods");
    cr_expect_eq(delete ("/v1/jobs/elsewhere/big"), 404);
}
