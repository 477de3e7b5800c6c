/* The description of the interface against the server: every operation of it
 * is called in each wrong way that it names. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/operations.h"

TestSuite(openapi_wrong, .init = ops_start, .fini = ops_stop, .timeout = 300);

static const char *text(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Calls with one query parameter more. */
static void ask_with(const struct operation *op, const struct example *e,
                     const char *name, const char *value)
{
    cleanup_str struct str target = STR_INIT(4096), what = STR_INIT(4096);
    str_addf(&target, "%s%c%s=%s", example_target(e),
             strchr(example_target(e), '?') ? '&' : '?', name, value);
    (void)ops_send(op, str_text(&target), e->body ? OPS_JSON : "",
                   example_body(e));
    str_addf(&what, "with %s=%s", name, value);
    ops_expect_described(op, str_text(&what));
}

static void expect_refused(const struct operation *op, const char *name,
                           const char *value)
{
    cr_expect_eq(ops_reply.status, 400, "%s %s with %s=%s: %d", op->method,
                 op->path, name, value, ops_reply.status);
    cr_expect(strstr(str_text(&ops_reply.body), name) &&
                  strstr(str_text(&ops_reply.body), value),
              "%s=%s: %s", name, value, str_text(&ops_reply.body));
}

static void check_enum(const struct operation *op, const struct example *e,
                       const char *name, const cJSON *list)
{
    const cJSON *x;
    ask_with(op, e, name, "nonsense");
    expect_refused(op, name, "nonsense");
    cJSON_ArrayForEach(x, list)
    {
        cr_expect(strstr(str_text(&ops_reply.body), x->valuestring), "%s: %s",
                  name, str_text(&ops_reply.body));
    }
    cJSON_ArrayForEach(x, list)
    {
        ask_with(op, e, name, x->valuestring);
        cr_expect_neq(ops_reply.status, 400, "%s: %s=%s", op->path, name,
                      x->valuestring);
    }
}

static void check_integer(const struct operation *op, const struct example *e,
                          const cJSON *parameter, const char *name)
{
    static const char *const wrong[] = {"x", "1.5", "1x",
                                        "99999999999999999999"};
    const cJSON *least = openapi_constraint(op, parameter, "minimum");
    const cJSON *most = openapi_constraint(op, parameter, "maximum");
    char value[32];
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        ask_with(op, e, name, wrong[i]);
        expect_refused(op, name, wrong[i]);
    }
    cr_expect(least, "%s: %s: no minimum", op->path, name);
    if (least) {
        (void)snprintf(value, sizeof value, "%.0f", least->valuedouble - 1);
        ask_with(op, e, name, value);
        expect_refused(op, name, value);
        (void)snprintf(value, sizeof value, "%.0f", least->valuedouble);
        ask_with(op, e, name, value);
        cr_expect_neq(ops_reply.status, 400, "%s: %s=%s", op->path, name,
                      value);
    }
    if (most) {
        (void)snprintf(value, sizeof value, "%.0f", most->valuedouble + 1);
        ask_with(op, e, name, value);
        expect_refused(op, name, value);
    }
}

/* Paths of which the document says that they take any parameter. */
static bool takes_any(const struct operation *op)
{
    static const char *const paths[] = {"/metrics",
                                        "/healthz",
                                        "/readyz",
                                        "/openapi.yaml",
                                        "/api",
                                        "/version",
                                        "/apis",
                                        "/apis/resource.k8s.io",
                                        "/apis/resource.k8s.io/v1"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (strcmp(op->path, paths[i]) == 0)
            return true;
    return ops_listener(op) == SERVER_SCHEDULER;
}

static void check_parameters(const struct operation *op,
                             const struct example *e)
{
    const cJSON *p;
    for (size_t n = 0; (p = openapi_parameter(op, n)); n++) {
        const cJSON *list = openapi_constraint(op, p, "enum");
        const char *type =
            cJSON_GetStringValue(openapi_constraint(op, p, "type"));
        if (strcmp(text(p, "in"), "query") != 0)
            continue;
        if (list)
            check_enum(op, e, text(p, "name"), list);
        if (type && strcmp(type, "integer") == 0)
            check_integer(op, e, p, text(p, "name"));
    }
    ask_with(op, e, "frobnicate", "1");
    cr_expect_eq(ops_reply.status == 400 &&
                     strstr(str_text(&ops_reply.body), "frobnicate"),
                 !takes_any(op), "%s %s?frobnicate=1: %d %s", op->method,
                 op->path, ops_reply.status, str_text(&ops_reply.body));
}

Test(openapi_wrong, every_wrong_parameter_is_refused_and_named)
{
    struct operation op;
    for (size_t n = 0; openapi_operation(ops_document, n, &op); n++) {
        const struct example *e = example_next(&op, NULL);
        if (e && e->status < 500 && strcmp(op.path, "/v1/cluster") != 0 &&
            strcmp(op.path, "/v1/changes") != 0)
            check_parameters(&op, e);
    }
}

static void send_huge(const struct operation *op, const char *target)
{
    char method[8];
    cleanup_str struct str head = STR_INIT(4096);
    int fd = raw_connect(ops_port(op));
    str_addf(&head,
             "%s %s HTTP/1.1\r\nHost: x\r\n" OPS_JSON
             "Content-Length: 99999999999\r\n\r\n",
             ops_upper(op->method, method), target);
    (void)raw_send(fd, str_text(&head));
    (void)raw_read(fd, false, &ops_reply);
    (void)close(fd);
}

Test(openapi_wrong, every_wrong_body_is_refused)
{
    static const char *const bodies[] = {"",      "[]", "null",
                                         "\"x\"", "{}", "{\"a\":1}",
                                         "[1]",   "7",  "{\"items\":1}"};
    struct operation op;
    for (size_t n = 0; openapi_operation(ops_document, n, &op); n++) {
        const struct example *e = example_next(&op, NULL);
        if (!cJSON_GetObjectItemCaseSensitive(op.json, "requestBody") || !e)
            continue;
        (void)ops_send(&op, example_target(e), OPS_JSON, "{");
        cr_expect_eq(ops_reply.status, 400, "%s: %d", op.path,
                     ops_reply.status);
        ops_expect_described(&op, "with {");
        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
            (void)ops_send(&op, example_target(e), OPS_JSON, bodies[i]);
            ops_expect_described(&op, bodies[i]);
        }
        (void)ops_send(&op, example_target(e), "Content-Type: text/plain\r\n",
                       example_body(e));
        ops_expect_described(&op, "with text");
        send_huge(&op, example_target(e));
        cr_expect_eq(ops_reply.status, 413, "%s: %d", op.path,
                     ops_reply.status);
        ops_expect_described(&op, "with too much");
    }
}

/* The path with one of its variables replaced, the others as in `target`. */
static void replace(const char *path, const char *target, unsigned which,
                    const char *value, struct str *out)
{
    cleanup_free char *a = xstrdup(path), *b = xstrdup(target);
    char *p = a + 1, *t = b + 1, *segment;
    b[strcspn(b, "?")] = '\0';
    while ((segment = strsep(&p, "/"))) {
        const char *own = strsep(&t, "/");
        str_addf(out, "/%s",
                 *segment == '{' && which-- == 0 ? value
                 : own                           ? own
                                                 : "");
    }
}

/* What it asks, and how, is looked at before the pod is. */
static bool is_upgrade(const struct operation *op)
{
    return cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(op->json, "responses"), "101");
}

Test(openapi_wrong, every_wrong_name_is_answered_as_it_is_described)
{
    char longest[301];
    memset(longest, 'a', sizeof longest - 1);
    longest[300] = '\0';
    const char *const names[] = {"no-such-thing", "a%20b", "%c3%a4",
                                 "a%2Fb",         "..",    longest,
                                 "A_B",           "%27"};
    struct operation op;
    for (size_t n = 0; openapi_operation(ops_document, n, &op); n++) {
        const struct example *e = example_next(&op, NULL);
        unsigned n_variables = 0;
        for (const char *p = op.path; e && *p; p++)
            n_variables += *p == '{';
        for (unsigned v = 0; v < n_variables; v++)
            for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                cleanup_str struct str target = STR_INIT(4096);
                replace(op.path, example_target(e), v, names[i], &target);
                (void)ops_send(&op, str_text(&target), e->body ? OPS_JSON : "",
                               example_body(e));
                ops_expect_described(&op, str_text(&target));
                if (i == 0 && ops_listener(&op) == SERVER_READ &&
                    !is_upgrade(&op))
                    cr_expect_eq(ops_reply.status, 404, "%s: %d",
                                 str_text(&target), ops_reply.status);
            }
    }
}
