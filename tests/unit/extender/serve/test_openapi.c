/* The description of the interface against the server: every operation of it
 * answers as it says, and there are no others. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "extender/serve/routes_ask.h"
#include "extender/serve/routes_nodes.h"
#include "extender/serve/routes_pods.h"
#include "extender/serve/routes_publish.h"
#include "extender/serve/routes_read.h"
#include "extender/serve/routes_scheduler.h"
#include "extender/serve/routes_streams.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/operations.h"
#include "tests/lib/sim/simapp.h"

TestSuite(openapi, .init = ops_start, .fini = ops_stop, .timeout = 300);

/* Does an answer of this kind stand in the document? */
static const cJSON *described(const struct operation *op, const char *status)
{
    return openapi_resolve(
        ops_document,
        cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(op->json, "responses"), status));
}

static bool is_read_only(const struct operation *op)
{
    return strcmp(op->method, "get") == 0;
}

static void check_text(const struct operation *op, const char *target)
{
    char type[64];
    bool has = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(described(op, "200"), "content"),
        "text/plain");
    cr_expect_eq(ops_send(op, target, "Accept: text/plain\r\n", NULL), 200);
    ops_expect_described(op, "as text");
    (void)raw_header(&ops_reply, "Content-Type", type, sizeof type);
    has = has &&
          !strstr(target, "/maps"); /* each file is a text, all are not */
    has = has || strstr(target, "format=");
    cr_expect_eq(strncmp(type, "text/plain", 10) == 0, has, "%s: %s", target,
                 type);
    cr_expect_eq(ops_send(op, target, "Accept: image/png\r\n", NULL), 200);
    ops_expect_described(op, "as a picture");
}

static void check_head(const struct operation *op, const char *target)
{
    int fd = raw_connect(ops_port(op));
    cleanup_free char *head = xasprintf("HEAD %s HTTP/1.1\r\nHost: x\r\n\r\n",
                                        target);
    (void)raw_send(fd, head);
    cr_expect_eq(raw_read(fd, true, &ops_reply), 200, "HEAD %s", target);
    (void)close(fd);
}

static void check_unchanged(const struct operation *op, const char *target)
{
    char etag[128], header[192];
    history_settle(server_app(simapp_server)->history);
    (void)ops_send(op, target, "", NULL);
    (void)raw_header(&ops_reply, "ETag", etag, sizeof etag);
    cr_expect_eq(*etag != '\0', described(op, "304") != NULL, "%s: ETag %s",
                 target, etag);
    if (!*etag)
        return;
    (void)snprintf(header, sizeof header, "If-None-Match: %s\r\n", etag);
    cr_expect_eq(ops_send(op, target, header, NULL), 304, "%s: %d", target,
                 ops_reply.status);
    ops_expect_described(op, "unchanged");
}

Test(openapi, every_operation_answers_as_it_is_described)
{
    for (size_t i = 0; i < ops_n_examples; i++) {
        const struct example *e = &ops_examples[i];
        struct operation op;
        cr_assert(example_operation(e, &op), "no %s %s", e->method, e->path);
        cr_expect_eq(ops_send(&op, example_target(e), e->body ? OPS_JSON : "",
                              example_body(e)),
                     e->status, "%s %s: %d %s", e->method, example_target(e),
                     ops_reply.status, str_text(&ops_reply.body));
        ops_expect_described(&op, example_target(e));
        if (!is_read_only(&op)) /* what a pod that is applied sets in motion */
            runner_settle(simapp_runner());
        if (!is_read_only(&op) || e->status != 200)
            continue;
        check_text(&op, example_target(e));
        check_head(&op, example_target(e));
        check_unchanged(&op, example_target(e));
    }
}

/* A node has to come for it, tests/unit/extender/relay. */
static bool is_stream(const struct operation *op)
{
    static const char *const ends[] = {"/log", "/exec", "/attach",
                                       "/portforward", "/streams/{id}"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(op->path), k = strlen(ends[i]);
        if (n > k && strcmp(op->path + n - k, ends[i]) == 0)
            return true;
    }
    return false;
}

/* What this extender has no success for: it is in no cluster, its state was
 * never damaged, its nodes have no containers, and what is followed has no
 * end. */
static bool needs_another(const struct operation *op)
{
    return is_stream(op) || strcmp(op->path, "/v1/cluster") == 0 ||
           strcmp(op->path, "/v1/changes") == 0 ||
           strncmp(op->path, "/v1/doubt", strlen("/v1/doubt")) == 0;
}

Test(openapi, every_operation_has_an_example)
{
    struct operation op;
    for (size_t n = 0; openapi_operation(ops_document, n, &op); n++) {
        int best = 600;
        for (const struct example *e = NULL; (e = example_next(&op, e));)
            best = e->status < best ? e->status : best;
        cr_expect(best < 300 || (best < 600 && needs_another(&op)),
                  "%s %s has no example that succeeds", op.method, op.path);
    }
}

/* --- the reverse ------------------------------------------------------------- */

static const char *const method_names[] = {"get", "put", "post", "delete",
                                           "patch"};

/* "/v1/nodes/{node}" is "/v1/nodes/:". */
static bool is_path(const char *route, const char *path)
{
    for (; *route; route++, path++) {
        if (*route == ':' && *path == '{')
            path += strcspn(path, "}");
        else if (*route != *path)
            return false;
    }
    return *path == '\0';
}

struct table {
    enum server_listener listener;
    const struct httpd_route *routes;
    size_t n;
};

#define TABLES                                                            \
    {                                                                     \
        {SERVER_READ, ask_routes, n_ask_routes},                          \
            {SERVER_READ, read_routes, n_read_routes},                    \
            {SERVER_READ, pods_routes, n_pods_routes},                    \
            {SERVER_READ, streams_routes, n_streams_routes},              \
            {SERVER_PUBLISH, node_streams_routes, n_node_streams_routes}, \
            {SERVER_SCHEDULER, scheduler_routes, n_scheduler_routes},     \
            {SERVER_PUBLISH, publish_routes, n_publish_routes},           \
        {                                                                 \
            SERVER_PUBLISH, node_routes, n_node_routes                    \
        }                                                                 \
    }

/* What the urlPrefix of a KubeSchedulerConfiguration may be, the document says
 * in words. */
static bool is_alias(const struct table *t, const struct httpd_route *r)
{
    return t->listener == SERVER_SCHEDULER && strncmp(r->path, "/v1/", 4) != 0;
}

static unsigned methods_described(const struct table *t,
                                  const struct httpd_route *r)
{
    unsigned found = 0;
    struct operation op;
    for (size_t n = 0; openapi_operation(ops_document, n, &op); n++)
        for (unsigned m = 0; m < ARRAY_LEN(method_names); m++)
            if (ops_listener(&op) == t->listener && is_path(r->path, op.path) &&
                strcmp(op.method, method_names[m]) == 0)
                found |= 1u << m;
    return found;
}

Test(openapi, every_route_is_described)
{
    const struct table tables[] = TABLES;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        for (size_t k = 0; k < tables[i].n; k++) {
            const struct httpd_route *r = &tables[i].routes[k];
            if (!is_alias(&tables[i], r))
                cr_expect_eq(r->methods & ~methods_described(&tables[i], r), 0,
                             "%s of %u is not described", r->path, r->methods);
        }
}

Test(openapi, no_other_method_is_served)
{
    struct operation op;
    for (size_t n = 0; openapi_operation(ops_document, n, &op); n++) {
        const struct example *e = example_next(&op, NULL);
        for (unsigned m = 0; e && m < ARRAY_LEN(method_names); m++) {
            char method[8];
            if (cJSON_GetObjectItemCaseSensitive(op.item, method_names[m]))
                continue;
            (void)raw_call(ops_port(&op), ops_upper(method_names[m], method),
                           example_target(e), OPS_JSON, "{}", &ops_reply);
            cr_expect_eq(ops_reply.status, 405, "%s %s: %d", method,
                         example_target(e), ops_reply.status);
        }
    }
}
