#include "extender/serve/routes_publish.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/view/kube.h"
#include "lib/base/json.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define TABLE                                               \
    "Accept: application/json;as=Table;v=v1;g=meta.k8s.io," \
    "application/json\r\n"

static struct test_extender x;
static struct raw_reply reply;

static void start(void)
{
    test_extender_start(&x, publish_routes, n_publish_routes, kube_write_error);
}

static void stop(void)
{
    test_extender_stop(&x);
    raw_reply_fini(&reply);
}

TestSuite(publish, .init = start, .fini = stop);

static int call(const char *method, const char *target, const char *body)
{
    return raw_call(x.port, method, target, "", body, &reply);
}

/* Publish the one slice of a host of two cards. */
static int put(const char *node, const char *boot, int64_t generation)
{
    cleanup_free char *body = sim_slice(node, 2, boot, generation, 0);
    char target[256];
    (void)snprintf(target, sizeof target, SLICES "/%s-xpu.biga.dev-0", node);
    return call("PUT", target, body);
}

/* The reply as JSON; the caller deletes it. */
static cJSON *parsed(void)
{
    cJSON *json = NULL;
    struct error err;
    cr_assert_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s in %s", err.text, reply.body.data);
    return json;
}

static const char *text_at(const cJSON *json, const char *a, const char *b)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(json, a);
    v = b ? cJSON_GetObjectItemCaseSensitive(v, b) : v;
    return cJSON_IsString(v) ? v->valuestring : "(none)";
}

static void expect_status(int code, const char *reason, const char *part)
{
    cleanup_with(json) cJSON *json = parsed();
    cr_expect_eq(reply.status, code, "%d: %s", reply.status, reply.body.data);
    cr_expect_str_eq(text_at(json, "kind", NULL), "Status");
    cr_expect_str_eq(text_at(json, "status", NULL), "Failure");
    cr_expect_str_eq(text_at(json, "reason", NULL), reason);
    cr_expect(strstr(text_at(json, "message", NULL), part), "%s",
              reply.body.data);
}

static int64_t counted(enum app_metric metric, const char *label)
{
    return metrics_get(x.app.listener.metrics, metric, &label);
}

Test(publish, puts_reads_and_deletes)
{
    cr_assert_eq(put("n1", "boot", 1), 201);
    cr_assert_eq(put("n1", "boot", 1), 200, "a heartbeat");
    cr_assert_eq(put("n1", "boot", 2), 200, "a change");
    cr_expect_eq(counted(APP_SLICES_ACCEPTED, "created"), 1);
    cr_expect_eq(counted(APP_SLICES_ACCEPTED, "heartbeat"), 1);
    cr_expect_eq(counted(APP_SLICES_ACCEPTED, "changed"), 1);

    cr_assert_eq(call("GET", SLICES "/n1-xpu.biga.dev-0", NULL), 200);
    cleanup_with(json) cJSON *json = parsed();
    cr_expect_str_eq(text_at(json, "kind", NULL), "ResourceSlice");
    cr_expect_str_eq(text_at(json, "spec", "nodeName"), "n1");
    cr_expect_str_neq(text_at(json, "metadata", "resourceVersion"), "(none)");

    cr_assert_eq(call("DELETE", SLICES "/n1-xpu.biga.dev-0",
                      "{\"propagationPolicy\":\"Background\"}"),
                 200);
    cr_expect(strstr(reply.body.data, "\"status\":\"Success\""));
    cr_assert_eq(call("DELETE", SLICES "/n1-xpu.biga.dev-0", NULL), 404);
    expect_status(404, "NotFound", "n1-xpu.biga.dev-0");
    (void)call("GET", SLICES "/n1-xpu.biga.dev-0", NULL);
    expect_status(404, "NotFound", "not found");
}

Test(publish, refuses_what_is_older_or_wrong)
{
    cleanup_free char *other = sim_slice("n2", 2, "boot", 1, 0);
    cr_assert_eq(put("n1", "boot", 5), 201);
    (void)put("n1", "boot", 4);
    expect_status(409, "Conflict", "generation");
    (void)call("PUT", SLICES "/n1-xpu.biga.dev-0", other);
    expect_status(400, "BadRequest", "metadata.name");
    (void)call("PUT", SLICES "/n1-xpu.biga.dev-0", "{\"a\":01}");
    expect_status(400, "BadRequest", "line 1 column 6");
    (void)call("PUT", SLICES "/n1-xpu.biga.dev-0", NULL);
    expect_status(400, "BadRequest", "");
    (void)call("PUT", SLICES "/n1-xpu.biga.dev-0?dryRun=All", other);
    expect_status(400, "BadRequest", "dryRun");
    (void)call("PATCH", SLICES "/n1-xpu.biga.dev-0", "{}");
    expect_status(405, "MethodNotAllowed", "PATCH");
    cr_expect_eq(counted(APP_SLICES_REJECTED, "stale"), 1);
    cr_expect_eq(counted(APP_SLICES_REJECTED, "invalid"), 3);

    cleanup_free char *long_name = xcalloc(1, 400);
    (void)snprintf(long_name, 400, SLICES "/%0300d", 0);
    (void)call("PUT", long_name, other);
    expect_status(400, "BadRequest", "at most 253");
    cleanup_free char *large = xcalloc(1, SLICE_BODY_MAX + 2);
    memset(large, ' ', SLICE_BODY_MAX + 1);
    (void)call("PUT", SLICES "/n1-xpu.biga.dev-0", large);
    expect_status(413, "RequestEntityTooLarge", "1048576");
}

Test(publish, posts_only_what_is_new)
{
    cleanup_free char *body = sim_slice("n1", 2, "boot", 1, 0);
    cr_assert_eq(call("POST", SLICES, body), 201, "%s", reply.body.data);
    (void)call("POST", SLICES, body);
    expect_status(409, "Conflict", "already exists");
    (void)call("POST", SLICES, "{}");
    expect_status(400, "BadRequest", "");
    (void)call("POST", SLICES, "{\"metadata\":{\"name\":\"x\"}} x");
    expect_status(400, "BadRequest", "line 1");
}

static size_t count_items(const cJSON *json, const char *list)
{
    return (size_t)cJSON_GetArraySize(
        cJSON_GetObjectItemCaseSensitive(json, list));
}

Test(publish, lists_in_pages)
{
    char node[16], target[512] = SLICES "?limit=3", token[300] = "";
    size_t n = 0, pages = 0;
    for (int i = 0; i < 10; i++) {
        (void)snprintf(node, sizeof node, "n%02d", i);
        cr_assert_eq(put(node, "boot", 1), 201);
    }
    do {
        cr_assert_eq(call("GET", target, NULL), 200);
        cleanup_with(json) cJSON *json = parsed();
        cr_expect_str_eq(text_at(json, "kind", NULL), "ResourceSliceList");
        cr_expect_str_eq(text_at(json, "apiVersion", NULL),
                         "resource.k8s.io/v1");
        n += count_items(json, "items");
        pages++;
        (void)snprintf(token, sizeof token, "%s",
                       text_at(json, "metadata", "continue"));
        (void)snprintf(target, sizeof target, SLICES "?limit=3&continue=%s",
                       token);
    } while (strcmp(token, "(none)") != 0 && pages < 10);
    cr_expect_eq(n, 10);
    cr_expect_eq(pages, 4);
}

Test(publish, selects_by_field)
{
    static const struct {
        const char *query;
        size_t n;
    } cases[] = {
        {"?fieldSelector=spec.nodeName%3Dn1", 1},
        {"?fieldSelector=spec.nodeName%3Dnone", 0},
        {"?fieldSelector=spec.driver%3Dxpu.biga.dev", 2},
        {"?fieldSelector=spec.driver%3D%3Dother.example", 0},
        {"?fieldSelector=metadata.name%3Dn2-xpu.biga.dev-0", 1},
        {"?fieldSelector=metadata.name%3Dn3-xpu.biga.dev-0", 0},
        {"?fieldSelector=spec.nodeName%3Dn1,spec.driver%3Dxpu.biga.dev", 1},
        {"?fieldSelector=metadata.name%3Dx,spec.driver%3Dy", 0},
        {"?fieldSelector=&limit=0&watch=false&labelSelector=", 2},
    };
    static const char *const bad[] = {
        "?fieldSelector=spec.nodeName!%3Dn1",
        "?fieldSelector=spec.pool%3Dn1",
        "?fieldSelector=nonsense",
        "?labelSelector=a%3Db",
        "?limit=x",
        "?limit=-1",
        "?unknown=1",
    };
    char target[256];
    cr_assert_eq(put("n1", "boot", 1), 201);
    cr_assert_eq(put("n2", "boot", 1), 201);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        (void)snprintf(target, sizeof target, SLICES "%s", cases[i].query);
        cr_assert_eq(call("GET", target, NULL), 200, "%s", target);
        cleanup_with(json) cJSON *json = parsed();
        cr_expect_eq(count_items(json, "items"), cases[i].n, "%s: %s", target,
                     reply.body.data);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        (void)snprintf(target, sizeof target, SLICES "%s", bad[i]);
        (void)call("GET", target, NULL);
        expect_status(400, "BadRequest", "");
    }
    (void)call("GET", SLICES "?watch=true", NULL);
    expect_status(405, "MethodNotAllowed", "watching");
}

Test(publish, draws_tables)
{
    cr_assert_eq(put("n1", "boot", 7), 201);
    static const char *const targets[] = {
        SLICES "?limit=500", SLICES "/n1-xpu.biga.dev-0",
        SLICES "?fieldSelector=metadata.name%3Dn1-xpu.biga.dev-0"};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        cr_assert_eq(raw_call(x.port, "GET", targets[i], TABLE, NULL, &reply),
                     200);
        cleanup_with(json) cJSON *json = parsed();
        cr_expect_str_eq(text_at(json, "kind", NULL), "Table");
        cr_expect_eq(count_items(json, "rows"), 1);
        cr_expect_eq(count_items(json, "columnDefinitions"), 7);
        cr_expect(strstr(reply.body.data,
                         "\"cells\":[\"n1-xpu.biga.dev-0\",\"n1\","
                         "\"xpu.biga.dev\",\"n1\",7,6,2]"),
                  "%s", reply.body.data);
        cr_expect(strstr(reply.body.data, "\"PartialObjectMetadata\""));
    }
    cr_assert_eq(raw_call(x.port, "GET", SLICES "?includeObject=Object", TABLE,
                          NULL, &reply),
                 200);
    cr_expect(strstr(reply.body.data, "\"object\":{\"apiVersion\":"));
    (void)raw_call(x.port, "GET", SLICES "/none", TABLE, NULL, &reply);
    expect_status(404, "NotFound", "none");
}

Test(publish, can_be_discovered)
{
    static const char *const paths[] = {"/api", "/apis",
                                        "/apis/resource.k8s.io",
                                        "/apis/resource.k8s.io/v1", "/version"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cr_expect_eq(call("GET", paths[i], NULL), 200, "%s", paths[i]);
        cJSON_Delete(parsed());
    }
    (void)call("GET", "/openapi/v2", NULL);
    expect_status(404, "NotFound", "/openapi/v2");
}
