#include "tests/lib/sim/operations.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "extender/serve/app.h"
#include "extender/view/openapi.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/tmpdir.h"

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"

cJSON *ops_document;
struct raw_reply ops_reply;
static char *state_dir;
static char *slice;          /* a stored one, as it is */
static char slice_path[256]; /* where it is */
static char card_path[256];  /* a card's */
static char *other;          /* the same slice by another name */

/* --- an extender with something of everything -------------------------------- */

enum server_listener ops_listener(const struct operation *op)
{
    const cJSON *tag = cJSON_GetArrayItem(
        cJSON_GetObjectItemCaseSensitive(op->json, "tags"), 0);
    return strcmp(tag->valuestring, "scheduler") == 0 ? SERVER_SCHEDULER
           : strcmp(tag->valuestring, "publish") == 0 ? SERVER_PUBLISH
                                                      : SERVER_READ;
}

static int call(enum server_listener at, const char *method, const char *target,
                const char *headers, const char *body)
{
    return raw_call(server_port(simapp_server, at), method, target, headers,
                    body, &ops_reply);
}

/* The first of a list, for the caller to delete. */
static cJSON *first_item(enum server_listener at, const char *list)
{
    cJSON *json = NULL;
    struct error err;
    cr_assert_eq(call(at, "GET", list, "", NULL), 200, "%s", list);
    cr_assert_eq(
        json_parse(ops_reply.body.data, ops_reply.body.size, &json, &err), 0);
    cJSON *item = cJSON_DetachItemFromArray(
        cJSON_GetObjectItemCaseSensitive(json, "items"), 0);
    cr_assert_not_null(item, "%s is empty", list);
    cJSON_Delete(json);
    return item;
}

static const char *text(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static void find_names(void)
{
    cleanup_with(json) cJSON *card = first_item(SERVER_READ, "/v1/cards");
    cleanup_with(json) cJSON *s = first_item(SERVER_PUBLISH, SLICES);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(s, "metadata");
    (void)snprintf(card_path, sizeof card_path, "/v1/cards/%s/%s",
                   text(card, "node"), text(card, "id"));
    (void)snprintf(slice_path, sizeof slice_path, SLICES "/%s",
                   text(metadata, "name"));
    cJSON_DeleteItemFromObject(metadata, "resourceVersion");
    cJSON_DeleteItemFromObject(metadata, "uid");
    cJSON_DeleteItemFromObject(metadata, "creationTimestamp");
    slice = cJSON_PrintUnformatted(s);
    cJSON_Delete(cJSON_DetachItemFromObject(metadata, "name"));
    cJSON_AddStringToObject(metadata, "name", "another");
    other = cJSON_PrintUnformatted(s);
}

static const char files[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
    "\"m\"},"
    "\"data\":{\"k\":\"v\"}}{\"apiVersion\":\"v1\",\"kind\":\"Secret\","
    "\"metadata\":{\"name\":\"s\"},\"stringData\":{\"k\":\"v\"}}";

void ops_start(void)
{
    struct simapp_pod pods[4] = {{.name = "alone", .role = "xpu"},
                                 {.name = "agent", .role = "service"}};
    char names[8][16];
    log_set_level(LOG_ERROR + 1);
    ops_document = openapi_read(openapi_yaml);
    state_dir = tmpdir_create();
    simapp_begin(state_dir);
    cr_assert_eq(simapp_apply(pods, 2), 0);
    struct simapp_pod job[8];
    size_t n = simapp_job(job, names, "ring", 2);
    cr_assert_eq(simapp_apply(job, n), 0);
    simapp_settle();
    cr_assert_eq(call(SERVER_READ, "POST", "/v1/pods", OPS_JSON, files), 200);
    find_names();
    history_settle(server_app(simapp_server)->history);
}

void ops_stop(void)
{
    simapp_end();
    tmpdir_remove(state_dir);
    cJSON_Delete(ops_document);
    raw_reply_fini(&ops_reply);
    free(slice);
    free(other);
}

/* --- how each operation is called -------------------------------------------- */

#define ARGS                                                           \
    "{\"Pod\":{\"metadata\":{\"name\":\"bound\",\"namespace\":\"ns\"," \
    "\"uid\":\"uid-bound\",\"labels\":{\"biga.dev/role\":\"xpu\"}},"   \
    "\"spec\":{}},\"Nodes\":null,\"NodeNames\":[\"node000\",\"node001\"]}"
#define SOLO                                                            \
    "{\"Pod\":{\"metadata\":{\"name\":\"solo\",\"namespace\":\"ns\","   \
    "\"uid\":\"uid-solo\",\"labels\":{\"biga.dev/role\":\"xpu\","       \
    "\"biga.dev/job\":\"solo\",\"biga.dev/pair\":\"0\"}},\"spec\":{}}," \
    "\"Nodes\":null,\"NodeNames\":[\"node000\",\"node001\"]}"
#define POD                                                                  \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"new\",\"namespace\":\"ns\"," \
    "\"labels\":{\"biga.dev/role\":\"xpu\"}},\"spec\":{\"containers\":[{"    \
    "\"name\":\"c\",\"image\":\"i\"}]}}"

const struct example ops_examples[] = {
    {"get", "/", NULL, NULL, 200},
    {"get", "/v1/changes", "/v1/changes?version=1", NULL, 400},
    {"get", "/v1/nodes", NULL, NULL, 200},
    {"get", "/v1/nodes", "/v1/nodes?limit=1&status=ready", NULL, 200},
    {"get", "/v1/nodes/{node}", "/v1/nodes/node000", NULL, 200},
    {"get", "/v1/nodes/{node}/drawing", "/v1/nodes/node000/drawing", NULL, 200},
    {"get", "/v1/cards", NULL, NULL, 200},
    {"get", "/v1/cards", "/v1/cards?state=held&node=node000&limit=1", NULL,
     200},
    {"get", "/v1/cards/{node}/{card}", card_path, NULL, 200},
    {"post", "/v1/cards/{node}/{card}/drain",
     "/v1/cards/node000/0000:12:00.0/drain",
     "{\"reason\":\"new firmware\",\"by\":\"ann\"}", 200},
    {"delete", "/v1/cards/{node}/{card}/drain",
     "/v1/cards/node000/0000:12:00.0/drain", NULL, 200},
    {"post", "/v1/nodes/{node}/drain", "/v1/nodes/node000/drain",
     "{\"reason\":\"a new rack\",\"evict\":false}", 200},
    {"delete", "/v1/nodes/{node}/drain", "/v1/nodes/node000/drain", NULL, 200},
    {"get", "/v1/topology", NULL, NULL, 200},
    {"get", "/v1/topology", "/v1/topology?node=node000", NULL, 200},
    {"get", "/v1/usage", NULL, NULL, 200},
    {"get", "/v1/usage", "/v1/usage?node=node000&limit=1", NULL, 200},
    {"get", "/v1/fabric", NULL, NULL, 200},
    {"get", "/v1/policy", NULL, NULL, 200},
    {"get", "/v1/allocations", NULL, NULL, 200},
    {"get", "/v1/allocations", "/v1/allocations?namespace=ns&limit=1", NULL,
     200},
    {"get", "/v1/allocations/{namespace}/{pod}", "/v1/allocations/ns/alone",
     NULL, 200},
    {"delete", "/v1/allocations/{namespace}/{pod}", "/v1/allocations/ns/alone",
     NULL, 409},
    {"get", "/v1/pods", NULL, NULL, 200},
    {"get", "/v1/pods", "/v1/pods?namespace=ns&state=running&limit=1", NULL,
     200},
    {"get", "/v1/pods/{namespace}/{name}", "/v1/pods/ns/alone", NULL, 200},
    {"get", "/v1/pods/{namespace}/{name}/log", "/v1/pods/ns/gone/log", NULL,
     404},
    {"get", "/v1/pods/{namespace}/{name}/log",
     "/v1/pods/ns/alone/log?container=No", NULL, 400},
    {"get", "/v1/pods/{namespace}/{name}/exec",
     "/v1/pods/ns/alone/exec?command=sh&command=-i&stdout=true", NULL, 426},
    {"get", "/v1/pods/{namespace}/{name}/attach",
     "/v1/pods/ns/alone/attach?stdout=true", NULL, 426},
    {"get", "/v1/pods/{namespace}/{name}/portforward",
     "/v1/pods/ns/alone/portforward?ports=80", NULL, 426},
    {"post", "/v1/pods", NULL, POD, 200},
    {"get", "/v1/configs", NULL, NULL, 200},
    {"get", "/v1/configmaps/{namespace}/{name}", "/v1/configmaps/default/m",
     NULL, 200},
    {"get", "/v1/secrets/{namespace}/{name}", "/v1/secrets/default/s", NULL,
     200},
    {"get", "/v1/jobs", NULL, NULL, 200},
    {"get", "/v1/jobs", "/v1/jobs?state=Planned&limit=1", NULL, 200},
    {"get", "/v1/pending", NULL, NULL, 200},
    {"get", "/v1/pending", "/v1/pending?namespace=ns&limit=1", NULL, 200},
    {"get", "/v1/jobs/{namespace}/{job}", "/v1/jobs/ns/ring", NULL, 200},
    {"delete", "/v1/jobs/{namespace}/{job}/allocations",
     "/v1/jobs/ns/ring/allocations", NULL, 409}, /* its pods are to run */
    {"get", "/v1/jobs/{namespace}/{job}/drawing", "/v1/jobs/ns/ring/drawing",
     NULL, 200},
    {"get", "/v1/jobs/{namespace}/{job}/maps", "/v1/jobs/ns/ring/maps", NULL,
     200},
    {"get", "/v1/jobs/{namespace}/{job}/maps",
     "/v1/jobs/ns/ring/maps?format=hostfile", NULL, 200},
    {"get", "/v1/why", "/v1/why?pod=ns/alone", NULL, 200},
    {"get", "/v1/why", "/v1/why?job=ns/ring", NULL, 200},
    {"post", "/v1/simulate", NULL, POD, 200},
    {"post", "/v1/simulate", NULL, "[" POD "," POD "]", 200},
    {"post", "/v1/simulate", NULL, ARGS, 200},
    {"get", "/v1/topology", "/v1/topology?at=2126-01-01T00:00:00Z&limit=1",
     NULL, 200},
    {"get", "/v1/events", NULL, NULL, 200},
    {"get", "/v1/events",
     "/v1/events?kind=node&name=node000&order=desc&limit=1", NULL, 200},
    {"get", "/v1/history/{kind}/{name}", "/v1/history/node/node000", NULL, 200},
    {"get", "/v1/history/{kind}/{namespace}/{name}", "/v1/history/pod/ns/alone",
     NULL, 200},
    {"get", "/v1/history/{kind}/{namespace}/{name}",
     "/v1/history/job/ns/ring?at=2126-01-01T00:00:00Z", NULL, 200},
    {"get", "/metrics", NULL, NULL, 200},
    {"get", "/healthz", NULL, NULL, 200},
    {"get", "/v1/cluster", NULL, NULL, 404},  /* it is in none */
    {"delete", "/v1/doubt", NULL, NULL, 404}, /* there is none (test_doubt) */
    {"delete", "/v1/doubt/{node}", "/v1/doubt/node000", NULL, 404},
    {"get", "/readyz", NULL, NULL, 200},
    {"get", "/openapi.yaml", NULL, NULL, 200},
    {"post", "/v1/scheduler/filter", NULL, ARGS, 200},
    {"post", "/v1/scheduler/prioritize", NULL, ARGS, 200},
    {"post", "/v1/scheduler/preempt", NULL, ARGS, 200},
    {"post", "/v1/scheduler/bind", NULL,
     "{\"PodName\":\"bound\",\"PodNamespace\":\"ns\",\"PodUID\":\"uid-bound\","
     "\"Node\":\"node001\"}",
     200},
    {"get", "/v1/why", "/v1/why?pod=ns/bound", NULL, 200},
    {"delete", "/v1/allocations/{namespace}/{pod}", "/v1/allocations/ns/bound",
     NULL, 200},
    {"post", "/v1/scheduler/filter", NULL, SOLO, 200},
    {"post", "/v1/scheduler/bind", NULL,
     "{\"PodName\":\"solo\",\"PodNamespace\":\"ns\",\"PodUID\":\"uid-solo\","
     "\"Node\":\"node001\"}",
     200},
    {"delete", "/v1/jobs/{namespace}/{job}/allocations",
     "/v1/jobs/ns/solo/allocations", NULL, 200},
    {"get", "/v1/nodes/{node}/pods", "/v1/nodes/node000/pods", NULL, 200},
    {"get", "/v1/nodes/{node}/streams", "/v1/nodes/node000/streams", NULL, 200},
    {"get", "/v1/nodes/{node}/streams/{id}", "/v1/nodes/node000/streams/0123",
     NULL, 426},
    {"post", "/v1/nodes/{node}/status", "/v1/nodes/node000/status",
     "{\"pods\":[]}", 204},
    {"put", "/v1/nodes/{node}/achieved", "/v1/nodes/node000/achieved",
     "{\"node\":\"node000\",\"pods\":[]}", 204},
    {"get", SLICES, NULL, NULL, 200},
    {"get", SLICES "/{name}", slice_path, NULL, 200},
    {"put", SLICES "/{name}", slice_path, "SLICE", 200},
    {"post", SLICES, NULL, "SLICE", 409},
    {"post", SLICES, NULL, "OTHER", 400}, /* the node has it whole */
    {"delete", SLICES "/{name}", slice_path, NULL, 200},
    {"post", SLICES, NULL, "SLICE", 201},
    {"delete", SLICES "/{name}", slice_path, NULL, 200},
    {"put", SLICES "/{name}", slice_path, "SLICE", 201},
    {"get", "/api", NULL, NULL, 200},
    {"get", "/apis", NULL, NULL, 200},
    {"get", "/apis/resource.k8s.io", NULL, NULL, 200},
    {"get", "/apis/resource.k8s.io/v1", NULL, NULL, 200},
    {"get", "/version", NULL, NULL, 200},
    {"delete", "/v1/configmaps/{namespace}/{name}", "/v1/configmaps/default/m",
     NULL, 200},
    {"delete", "/v1/secrets/{namespace}/{name}", "/v1/secrets/default/s", NULL,
     200},
    {"delete", "/v1/pods/{namespace}/{name}", "/v1/pods/ns/new", NULL, 200},
    {"delete", "/v1/jobs/{namespace}/{job}", "/v1/jobs/ns/ring", NULL, 200},
};

const size_t ops_n_examples = ARRAY_LEN(ops_examples);

const char *example_target(const struct example *e)
{
    return e->target ? e->target : e->path;
}

const char *example_body(const struct example *e)
{
    if (e->body && strcmp(e->body, "SLICE") == 0)
        return slice;
    return e->body && strcmp(e->body, "OTHER") == 0 ? other : e->body;
}

const char *ops_upper(const char *method, char out[8])
{
    size_t n = 0;
    for (; method[n] && n < 7; n++)
        out[n] = (char)toupper((unsigned char)method[n]);
    out[n] = '\0';
    return out;
}

int ops_send(const struct operation *op, const char *target,
             const char *headers, const char *body)
{
    char method[8];
    return call(ops_listener(op), ops_upper(op->method, method), target,
                headers, body);
}

/* Asserts that the answer is one of those that are described. */
void ops_expect_described(const struct operation *op, const char *what)
{
    cleanup_str struct str why = STR_INIT(65536);
    cr_expect(openapi_answers(op, &ops_reply, &why), "%s %s %s: %d: %s",
              op->method, op->path, what, ops_reply.status, str_text(&why));
}

/* The next example of an operation. */
const struct example *example_next(const struct operation *op,
                                   const struct example *after)
{
    const struct example *e = after ? after + 1 : ops_examples;
    for (; e < ops_examples + ops_n_examples; e++)
        if (strcmp(e->method, op->method) == 0 &&
            strcmp(e->path, op->path) == 0)
            return e;
    return NULL;
}

bool example_operation(const struct example *e, struct operation *ret)
{
    for (size_t n = 0; openapi_operation(ops_document, n, ret); n++)
        if (strcmp(e->method, ret->method) == 0 &&
            strcmp(e->path, ret->path) == 0)
            return true;
    return false;
}

uint16_t ops_port(const struct operation *op)
{
    return server_port(simapp_server, ops_listener(op));
}
