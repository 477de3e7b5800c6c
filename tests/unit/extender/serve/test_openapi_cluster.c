/* The description of the interface against an extender in a cluster, whose API
 * server lists one pod that is bound without an allocation. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/view/openapi.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/http/fakeapi.h"
#include "tests/lib/sim/operations.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/sim/world.h"
#include "tests/lib/tmpdir.h"

#define LIST(items)                                                          \
    "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":" \
    "[" items "]}"
#define BOUND                                                               \
    "{\"metadata\":{\"name\":\"lost\",\"namespace\":\"ns\",\"uid\":\"u\","  \
    "\"resourceVersion\":\"1\",\"labels\":{\"biga.dev/role\":\"xpu\"},"     \
    "\"annotations\":{\"biga.dev/aling\":\"pix\"}},\"spec\":{\"nodeName\":" \
    "\"node000\",\"containers\":[]},\"status\":{\"phase\":\"Running\"}}"
#define SLICES "/apis/resource.k8s.io/v1/resourceslices?"
#define BEATS "/apis/coordination.k8s.io/v1/namespaces/beats/leases?"
#define NODES "/api/v1/nodes?"
#define PODS "/api/v1/pods?labelSelector=biga.dev%2Frole&"
#define OTHERS "/api/v1/pods?labelSelector=%21biga.dev%2Frole&"

/* Watches, and all else, are held. */
static const struct fakeapi_answer script[] = {
    {.path = SLICES, .body = LIST("")}, {.path = BEATS, .body = LIST("")},
    {.path = NODES, .body = LIST("")},  {.path = PODS, .body = LIST(BOUND)},
    {.path = OTHERS, .body = LIST("")},
};

static struct fakeapi *api;
static char *dir;

static void start(void)
{
    struct error err = {0};
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
    api = fakeapi_start(script, ARRAY_LEN(script));
    cleanup_free char *path = xasprintf("%s/config", dir);
    cleanup_file FILE *f = fopen(path, "we");
    cr_assert_not_null(f);
    fprintf(f,
            "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\","
            "\"context\":{\"cluster\":\"k\",\"user\":\"u\"}}],\"users\":[{"
            "\"name\":\"u\",\"user\":{}}],\"clusters\":[{\"name\":\"k\","
            "\"cluster\":{\"server\":\"%s\"}}]}",
            fakeapi_config(api)->server);
    (void)fflush(f);
    struct server_config config = world_config();
    config.store = STORE_KUBERNETES;
    config.kubeconfig = path;
    config.namespace = "system";
    config.heartbeats = "beats";
    cr_assert_eq(server_start(&config, &simapp_server, &err), 0, "%s",
                 err.text);
    ops_document = openapi_read(openapi_yaml);
}

static void stop(void)
{
    server_stop(simapp_server);
    fakeapi_stop(api);
    tmpdir_remove(dir);
    cJSON_Delete(ops_document);
    raw_reply_fini(&ops_reply);
}

TestSuite(openapi_cluster, .init = start, .fini = stop, .timeout = 120);

static const struct example cluster = {"get", "/v1/cluster", NULL, NULL, 200};

static const struct example all_pods = {"get", "/v1/pods", NULL, NULL, 200};

/* Until this shows the pod of the watch; each part of the extender learns of it
 * by itself.  The timeout of the suite ends it. */
static void wait_for_pod(const struct example *where, struct operation *op)
{
    cr_assert(example_operation(where, op));
    do
        cr_assert_eq(ops_send(op, where->path, "", NULL), 200);
    while (!strstr(str_text(&ops_reply.body), "\"lost\""));
}

Test(openapi_cluster, the_state_is_as_it_is_described)
{
    struct operation op;
    wait_for_pod(&cluster, &op);
    ops_expect_described(&op, "with a pod that is not accounted for");
    cr_expect_eq(ops_send(&op, "/v1/cluster", "Accept: text/plain\r\n", NULL),
                 200);
    ops_expect_described(&op, "as text");
    cr_expect_eq(ops_send(&op, "/v1/cluster?frobnicate=1", "", NULL), 400);
    ops_expect_described(&op, "with frobnicate");
}

Test(openapi_cluster, why_warns_of_a_key_that_is_none)
{
    const struct example why = {"get", "/v1/why", NULL, NULL, 200};
    struct operation op;
    wait_for_pod(&cluster, &op);
    cr_assert(example_operation(&why, &op));
    cr_expect_eq(ops_send(&op, "/v1/why?pod=ns/lost", "", NULL), 200);
    ops_expect_described(&op, "of that pod");
    cr_expect(strstr(str_text(&ops_reply.body), "did you mean biga.dev/align?"),
              "%s", str_text(&ops_reply.body));
}

static void expect_in(const char *word)
{
    cr_expect(strstr(str_text(&ops_reply.body), word), "%s in %s", word,
              str_text(&ops_reply.body));
}

Test(openapi_cluster, pods_are_shown_as_it_is_described)
{
    static const char *const accepts[] = {"", "Accept: text/plain\r\n"};
    const struct example one = {"get", "/v1/pods/{namespace}/{name}", NULL,
                                NULL, 200};
    struct operation op;
    wait_for_pod(&all_pods, &op);
    for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
        cr_assert(example_operation(&all_pods, &op));
        cr_expect_eq(ops_send(&op, "/v1/pods", accepts[i], NULL), 200);
        ops_expect_described(&op, "all");
        expect_in("lost");
        cr_expect_eq(ops_send(&op, "/v1/pods?node=no", accepts[i], NULL), 200);
        cr_expect_not(strstr(str_text(&ops_reply.body), "lost"));
        cr_assert(example_operation(&one, &op));
        cr_expect_eq(ops_send(&op, "/v1/pods/ns/lost", accepts[i], NULL), 200);
        ops_expect_described(&op, "one");
        expect_in("running");
        expect_in("node000");
    }
    cr_expect_eq(ops_send(&op, "/v1/pods/ns/other", "", NULL), 404);
    ops_expect_described(&op, "none");
}

/* Those of the publish listener are the API server's own here. */
Test(openapi_cluster, all_else_answers_as_it_is_described)
{
    for (size_t i = 0; i < ops_n_examples; i++) {
        const struct example *e = &ops_examples[i];
        const char *target = example_target(e);
        struct operation op;
        cr_assert(example_operation(e, &op));
        if (ops_listener(&op) == SERVER_PUBLISH || !*target)
            continue;
        (void)ops_send(&op, target, e->body ? OPS_JSON : "", example_body(e));
        ops_expect_described(&op, target);
    }
}
