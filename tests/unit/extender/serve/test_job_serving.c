/* A whole job as kube-scheduler meets it: over HTTP. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/world.h"

enum { NAME_ROOM = 64 };

static cJSON *ask(struct server *s, enum server_listener listener,
                  const char *method, const char *path, const struct str *body)
{
    struct raw_reply reply = {0};
    struct error err = {0};
    cJSON *json = NULL;
    struct jtext text = {body ? str_text(body) : "", body ? body->size : 0,
                         false};
    cr_assert_eq(world_call(s, listener, method, path, text, &reply), 200, "%s",
                 str_text(&reply.body));
    cr_assert_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s", err.text);
    raw_reply_fini(&reply);
    return json;
}

/* A request about a pod of job `job`, naming nodes first … last. */
struct question {
    const char *job, *role;
    int pair, size;
    unsigned first, last;
};

static void write_args(const struct question *q, struct str *out)
{
    str_addf(out,
             "{\"Pod\":{\"metadata\":{\"name\":\"%s-%s-%d\",\"namespace\":"
             "\"default\",\"uid\":\"uid-%s-%s-%d\",\"labels\":{"
             "\"biga.dev/role\":\"%s\",\"biga.dev/job\":\"%s\","
             "\"biga.dev/pair\":\"%d\"},\"annotations\":{\"biga.dev/size\":"
             "\"%d\"}},\"spec\":{\"containers\":[]}},\"Nodes\":null,"
             "\"NodeNames\":[",
             q->job, q->role, q->pair, q->job, q->role, q->pair, q->role,
             q->job, q->pair, q->size);
    for (unsigned i = q->first; i <= q->last; i++)
        str_addf(out, "%s\"node%03u\"", i > q->first ? "," : "", i);
    str_add(out, "]}");
}

/* The one node that filter leaves, or why none is left. */
static bool filter(struct server *s, const struct question *q,
                   char ret_node[NAME_ROOM], struct str *why)
{
    cleanup_str struct str body = STR_INIT(1 << 20);
    write_args(q, &body);
    cleanup_with(json) cJSON *r = ask(s, SERVER_SCHEDULER, "POST",
                                      "/v1/scheduler/filter", &body);
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(r, "NodeNames");
    const cJSON *failed = cJSON_GetObjectItemCaseSensitive(r, "FailedNodes");
    if (cJSON_GetArraySize(names) == 0) {
        if (why && failed->child)
            str_add(why, failed->child->valuestring);
        return false;
    }
    cr_assert_eq(cJSON_GetArraySize(names), 1);
    (void)snprintf(ret_node, NAME_ROOM, "%s",
                   cJSON_GetArrayItem(names, 0)->valuestring);
    return true;
}

static void bind(struct server *s, const struct question *q, const char *node,
                 struct str *ret_error)
{
    cleanup_str struct str body = STR_INIT(4096);
    str_addf(&body,
             "{\"PodName\":\"%s-%s-%d\",\"PodNamespace\":\"default\","
             "\"PodUID\":\"uid-%s-%s-%d\",\"Node\":\"%s\"}",
             q->job, q->role, q->pair, q->job, q->role, q->pair, node);
    cleanup_with(json) cJSON *r = ask(s, SERVER_SCHEDULER, "POST",
                                      "/v1/scheduler/bind", &body);
    str_add(ret_error,
            cJSON_GetObjectItemCaseSensitive(r, "Error")->valuestring);
}

static int score(struct server *s, const struct question *q, const char *node)
{
    cleanup_str struct str body = STR_INIT(1 << 20);
    write_args(q, &body);
    cleanup_with(json) cJSON *r = ask(s, SERVER_SCHEDULER, "POST",
                                      "/v1/scheduler/prioritize", &body);
    const cJSON *each;
    cJSON_ArrayForEach(each, r)
    {
        const cJSON *host = cJSON_GetObjectItemCaseSensitive(each, "Host");
        if (strcmp(host->valuestring, node) == 0)
            return cJSON_GetObjectItemCaseSensitive(each, "Score")->valueint;
    }
    return -1;
}

static size_t count_items(struct server *s, const char *path)
{
    cleanup_with(json) cJSON *r = ask(s, SERVER_READ, "GET", path, NULL);
    return (size_t)cJSON_GetArraySize(
        cJSON_GetObjectItemCaseSensitive(r, "items"));
}

Test(job_serving, whole_job_comes_and_goes)
{
    cleanup_with(server) struct server *s = world_start();
    char node[NAME_ROOM], other[NAME_ROOM];
    cleanup_str struct str error = STR_INIT(4096);
    world_publish(s, 4, 4);
    for (int i = 0; i < 12; i++) {
        struct question host = {"a", "host", i / 2, 6, 0, 3};
        if (i % 2)
            host.role = "xpu";
        cr_assert(filter(s, &host, node, NULL));
        cr_assert(filter(s, &host, other, NULL));
        cr_assert_str_eq(node, other);
        cr_assert_eq(score(s, &host, node), 10);
        bind(s, &host, node, &error);
        cr_assert_str_eq(str_text(&error), "");
    }
    cr_assert_eq(count_items(s, "/v1/allocations"), 12);
    cJSON_Delete(
        ask(s, SERVER_READ, "DELETE", "/v1/allocations/default/a-xpu-5", NULL));
    cr_assert_eq(count_items(s, "/v1/allocations"), 11);
    cleanup_with(json) cJSON *gone =
        ask(s, SERVER_READ, "DELETE", "/v1/jobs/default/a/allocations", NULL);
    const cJSON *released = cJSON_GetObjectItemCaseSensitive(gone, "released");
    cr_expect_eq(
        cJSON_GetObjectItemCaseSensitive(released, "allocations")->valueint,
        11);
    cr_assert_eq(count_items(s, "/v1/allocations"), 0);
}

Test(job_serving, other_names_make_the_planned_node_move)
{
    cleanup_with(server) struct server *s = world_start();
    char node[NAME_ROOM];
    cleanup_str struct str error = STR_INIT(4096);
    struct question first = {"a", "host", 0, 4, 0, 1};
    struct question last = {"a", "host", 3, 4, 2, 2};
    world_publish(s, 3, 4);
    cr_assert(filter(s, &first, node, NULL));
    bind(s, &first, node, &error);
    cr_assert_str_eq(str_text(&error), "");
    cr_assert_eq(count_items(s, "/v1/allocations"), 4, "held ones listed");
    cr_assert(filter(s, &last, node, NULL));
    cr_assert_str_eq(node, "node002");
    bind(s, &last, node, &error);
    cr_assert_str_eq(str_text(&error), "");
    cr_assert_eq(count_items(s, "/v1/allocations"), 4);
}

Test(job_serving, refusals_speak_of_the_job)
{
    cleanup_with(server) struct server *s = world_start();
    char node[NAME_ROOM];
    cleanup_str struct str why = STR_INIT(4096);
    struct question large = {"a", "host", 0, 9, 0, 1};
    struct question whole = {"b", "host", 0, 8, 0, 1};
    struct question third = {"c", "host", 0, 2, 0, 1};
    world_publish(s, 2, 4);
    cr_assert_not(filter(s, &large, node, &why));
    cr_assert_str_eq(str_text(&why),
                     "its job needs 9 pairs; there is room for 8");
    str_reset(&why);
    cr_assert(filter(s, &whole, node, NULL));
    bind(s, &whole, node, &why);
    cr_assert_str_eq(str_text(&why), "");
    cr_assert_not(filter(s, &third, node, &why));
    cr_assert_str_eq(str_text(&why), "what is free is leased to another job");
    /* all that is held goes at once */
    cJSON_Delete(
        ask(s, SERVER_READ, "DELETE", "/v1/allocations/default/b%2F3", NULL));
    cr_assert(filter(s, &third, node, NULL));
}

Test(job_serving, two_jobs_of_the_same_room)
{
    cleanup_with(server) struct server *s = world_start();
    char node_a[NAME_ROOM], node_b[NAME_ROOM];
    cleanup_str struct str error = STR_INIT(4096);
    struct question a = {"a", "host", 0, 5, 0, 1};
    struct question b = {"b", "xpu", 4, 5, 0, 1};
    world_publish(s, 2, 4);
    cr_assert(filter(s, &a, node_a, NULL));
    cr_assert(filter(s, &b, node_b, NULL));
    bind(s, &b, node_b, &error);
    cr_assert_str_eq(str_text(&error), "");
    bind(s, &a, node_a, &error);
    cr_assert_not_null(strstr(str_text(&error), "does not fit node"));
    cr_assert_eq(count_items(s, "/v1/allocations"), 6, "b's xPU pod and holds");
}
