/* The extender as kube-scheduler, advertisers and people meet it: over
 * HTTP. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "tests/lib/badjson.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/world.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

static int call(struct server *s, enum server_listener l, const char *method,
                const char *path, const struct str *body,
                struct raw_reply *ret_reply)
{
    struct jtext text = {body ? str_text(body) : "", body ? body->size : 0,
                         false};
    return world_call(s, l, method, path, text, ret_reply);
}

/* The answer to a scheduler verb as JSON; 200 is asserted. */
static cJSON *ask(struct server *s, const char *verb, const struct str *body)
{
    struct raw_reply reply = {0};
    struct error err = {0};
    cJSON *json = NULL;
    cleanup_free char *path = xasprintf("/v1/scheduler/%s", verb);
    int status = call(s, SERVER_SCHEDULER, "POST", path, body, &reply);
    cr_assert_eq(status, 200, "%s: %d %s", verb, status, str_text(&reply.body));
    cr_assert_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s", err.text);
    raw_reply_fini(&reply);
    return json;
}

/* How many nodes filter leaves, and the name of the first. */
static int filter(struct server *s, const struct world_pod *pod,
                  unsigned n_nodes, char ret_first[64])
{
    cleanup_str struct str body = STR_INIT(1 << 20);
    world_args_json(pod, n_nodes, &body);
    cleanup_with(json) cJSON *r = ask(s, "filter", &body);
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(r, "NodeNames");
    cr_assert(cJSON_IsArray(names));
    int n = cJSON_GetArraySize(names);
    if (n > 0)
        (void)snprintf(ret_first, 64, "%s",
                       cJSON_GetArrayItem(names, 0)->valuestring);
    return n;
}

static void bind_pod(struct server *s, const struct world_pod *pod,
                     const char *node, char ret_error[256])
{
    cleanup_str struct str body = STR_INIT(4096);
    str_addf(&body,
             "{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":"
             "\"uid-%s\",\"Node\":\"%s\"}",
             pod->name, pod->name, node);
    cleanup_with(json) cJSON *r = ask(s, "bind", &body);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(r, "Error");
    cr_assert(cJSON_IsString(error));
    (void)snprintf(ret_error, 256, "%s", error->valuestring);
}

static void expect_part(const struct raw_reply *reply, const char *part)
{
    cr_expect(strstr(str_text(&reply->body), part), "no %s in %s", part,
              str_text(&reply->body));
}

Test(serving, a_pair_lands_together_and_leaves)
{
    cleanup_with(server) struct server *s = world_start();
    char first[64] = "", error[256];
    world_publish(s, 20, 4);
    const struct world_pod host = {"h", "host", "solver", 0, 1, 1, 0, 0, "pix"};
    const struct world_pod xpu = {"x", "xpu", "solver", 0, 1, 0, 8, 1024, NULL};
    cr_assert_eq(filter(s, &host, 20, first), 16); /* of 20 that fit */
    bind_pod(s, &host, "node007", error);
    cr_assert_str_eq(error, "");
    cr_assert_eq(filter(s, &xpu, 20, first), 1);
    cr_assert_str_eq(first, "node007");
    bind_pod(s, &xpu, "node003", error);
    cr_assert_not_null(strstr(error, "node007"), "%s", error);
    bind_pod(s, &xpu, "node007", error);
    cr_assert_str_eq(error, "");
    bind_pod(s, &xpu, "node007", error); /* the answer was lost: again */
    cr_assert_str_eq(error, "");

    struct raw_reply reply = {0};
    cr_assert_eq(
        call(s, SERVER_READ, "GET", "/v1/why?pod=default/x", NULL, &reply),
        200);
    cr_assert_not_null(strstr(str_text(&reply.body), "\"allocated\""));
    cr_assert_not_null(strstr(str_text(&reply.body), "node007"));
    expect_part(&reply, ": NODE to NUMA node 0, PIX to the GPU of its host pod "
                        "h\"");
    expect_part(&reply,
                "\"alignment\":{\"relation\":\"NODE\",\"to\":\"numa\"}");
    cr_assert_eq(
        call(s, SERVER_READ, "GET", "/v1/why?pod=default/h", NULL, &reply),
        200);
    expect_part(&reply, ": PIX to gpu-0000-12-01-0\"");
    cr_assert_eq(call(s, SERVER_READ, "GET", "/v1/allocations", NULL, &reply),
                 200);
    expect_part(&reply, "\"alignment\":{\"relation\":\"PIX\",\"to\":\"gpus\"}");
    expect_part(&reply,
                "\"alignment\":{\"relation\":\"NODE\",\"to\":\"numa\"}");
    cr_assert_eq(call(s, SERVER_READ, "GET", "/", NULL, &reply), 200);
    expect_part(&reply, "<dt>Pods placed</dt><dd>2</dd>");
    cr_assert_eq(call(s, SERVER_READ, "GET", "/metrics", NULL, &reply), 200);
    expect_part(&reply, "\nbiga_bind_wait_seconds_count{role=\"host\"} 1\n");
    expect_part(&reply, "\nbiga_bind_wait_seconds_count{role=\"xpu\"} 1\n");
    cr_assert_eq(call(s, SERVER_READ, "GET", "/v1/nodes/node007", NULL, &reply),
                 200);
    expect_part(&reply,
                "\"alignment\":{\"relation\":\"NODE\",\"to\":\"numa\"}");
    cr_assert_eq(call(s, SERVER_READ, "DELETE", "/v1/allocations/default/x",
                      NULL, &reply),
                 200);
    cr_assert_eq(call(s, SERVER_READ, "DELETE", "/v1/allocations/default/x",
                      NULL, &reply),
                 404);
    raw_reply_fini(&reply);
}

Test(serving, why_knows_a_pod_that_breaks_the_contract)
{
    cleanup_with(server) struct server *s = world_start();
    cleanup_str struct str body = STR_INIT(1 << 20);
    const struct world_pod bad = {"b", "host", "b", 0, 1, 0, 0, 0, "near"};
    struct raw_reply reply = {0};
    world_publish(s, 1, 1);
    world_args_json(&bad, 1, &body);
    cleanup_with(json) cJSON *r = ask(s, "filter", &body);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(r, "Error");
    cr_assert_not_null(strstr(error->valuestring, "biga.dev/align"));
    cr_assert_eq(
        call(s, SERVER_READ, "GET", "/v1/why?pod=default/b", NULL, &reply),
        200);
    cr_expect_not_null(strstr(str_text(&reply.body), "\"refused\""));
    cr_expect_not_null(strstr(str_text(&reply.body), "is \\\"near\\\""));
    raw_reply_fini(&reply);
}

Test(serving, refusals_say_why_and_whether_preemption_helps)
{
    cleanup_with(server) struct server *s = world_start();
    char error[256], first[64];
    world_publish(s, 2, 1);
    const struct world_pod a = {"a", "host", "a", 0, 1, 0, 4, 64, NULL};
    const struct world_pod big = {"b", "host", "b", 0, 1, 0, 14, 64, NULL};
    cr_assert_eq(filter(s, &a, 2, first), 2);
    bind_pod(s, &a, "node000", error);
    cleanup_str struct str body = STR_INIT(1 << 20);
    world_args_json(&big, 1, &body); /* node000 alone */
    cleanup_with(json) cJSON *r = ask(s, "filter", &body);
    const cJSON *failed = cJSON_GetObjectItemCaseSensitive(r, "FailedNodes");
    const cJSON *why = cJSON_GetObjectItemCaseSensitive(failed, "node000");
    cr_assert(cJSON_IsString(why));
    cr_assert_str_eq(why->valuestring,
                     "too few free cores on the cards (14 asked of each)");

    const struct world_pod never = {"n", "host", "n", 0, 1, 0, 99, 64, NULL};
    str_reset(&body);
    world_args_json(&never, 3, &body); /* node002 is unknown */
    cleanup_with(json) cJSON *q = ask(s, "filter", &body);
    const cJSON *final =
        cJSON_GetObjectItemCaseSensitive(q, "FailedAndUnresolvableNodes");
    cr_assert_eq(cJSON_GetArraySize(final), 3);
    cr_assert_str_eq(
        cJSON_GetObjectItemCaseSensitive(final, "node002")->valuestring,
        "no topology published");
}

/* As newer kube-schedulers do: a node that only we refused comes without
 * victims, and goes back with those that the cards need. */
Test(serving, preempt_names_the_victims)
{
    cleanup_with(server) struct server *s = world_start();
    char error[256], first[64];
    world_publish(s, 3, 1);
    for (unsigned i = 0; i < 2; i++) {
        char name[8], node[16];
        (void)snprintf(name, sizeof name, "low%u", i);
        (void)snprintf(node, sizeof node, "node%03u", i);
        const struct world_pod low = {name, "host", name, 0,   1,
                                      0,    16,     64,   NULL};
        cr_assert_eq(filter(s, &low, 3, first), 3 - (int)i);
        bind_pod(s, &low, node, error);
        cr_assert_str_eq(error, "");
    }
    cleanup_str struct str body = STR_INIT(1 << 20);
    str_add(&body,
            "{\"Pod\":{\"metadata\":{\"name\":\"high\",\"namespace\":\"ns\","
            "\"uid\":\"uid-high\",\"labels\":{\"biga.dev/role\":\"host\"}},"
            "\"spec\":{\"priority\":5,\"containers\":[{\"resources\":{"
            "\"requests\":{\"biga.dev/card-cores\":\"9\"}}}]}},"
            "\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{"
            "\"node000\":{\"Pods\":[],\"NumPDBViolations\":0},"
            "\"node001\":{\"Pods\":[{\"UID\":\"not-ours\"}],"
            "\"NumPDBViolations\":1},"
            "\"node002\":{\"Pods\":null,\"NumPDBViolations\":0}}}");
    cleanup_with(json) cJSON *r = ask(s, "preempt", &body);
    cleanup_free char *text = cJSON_PrintUnformatted(r);
    cleanup_free char *want = xasprintf(
        "{\"NodeNameToMetaVictims\":{\"node000\":{\"Pods\":[{\"UID\":\"%s\"}],"
        "\"NumPDBViolations\":0},\"node001\":{\"Pods\":[{\"UID\":\"not-ours\"},"
        "{\"UID\":\"%s\"}],\"NumPDBViolations\":1}}}",
        "uid-low0", "uid-low1");
    cr_assert_str_eq(text, want);
}

Test(serving, a_pod_that_breaks_its_contract_reads_so_in_its_events)
{
    cleanup_with(server) struct server *s = world_start();
    world_publish(s, 1, 1);
    const struct world_pod bad = {"b", "host", "b", 0, 1, 0, 0, 0, "pox"};
    cleanup_str struct str body = STR_INIT(1 << 20);
    world_args_json(&bad, 1, &body);
    cleanup_with(json) cJSON *r = ask(s, "filter", &body);
    const char *error =
        cJSON_GetObjectItemCaseSensitive(r, "Error")->valuestring;
    cr_assert_not_null(strstr(error, "biga.dev/align"), "%s", error);
    cr_assert_not_null(strstr(error, "pox"), "%s", error);
}

Test(serving, a_refused_pod_does_not_bring_another_back)
{
    cleanup_with(server) struct server *s = world_start();
    char first[64] = "", error[256];
    struct raw_reply reply = {0};
    world_publish(s, 1, 1);
    const struct world_pod good = {"g", "host", "g", 0, 1, 0, 0, 0, NULL};
    const struct world_pod bad = {"b", "host", "b", 0, 1, 0, 0, 0, "pox"};
    cr_assert_eq(filter(s, &good, 1, first), 1);
    bind_pod(s, &good, "node000", error);
    cr_assert_str_eq(error, "");
    cr_assert_eq(call(s, SERVER_READ, "DELETE", "/v1/allocations/default/g",
                      NULL, &reply),
                 200);
    cr_assert_eq(filter(s, &bad, 1, first), 0);
    bind_pod(s, &good, "node000", error);
    cr_expect_not_null(strstr(error, "not filtered"), "\"%s\"", error);
    raw_reply_fini(&reply);
}

Test(serving, a_bind_names_the_pod_of_its_uid)
{
    cleanup_with(server) struct server *s = world_start();
    char first[64] = "";
    cleanup_str struct str body = STR_INIT(4096);
    world_publish(s, 1, 1);
    const struct world_pod pod = {"p", "host", "p", 0, 1, 0, 0, 0, NULL};
    cr_assert_eq(filter(s, &pod, 1, first), 1);
    str_add(&body, "{\"PodName\":\"other\",\"PodNamespace\":\"default\","
                   "\"PodUID\":\"uid-p\",\"Node\":\"node000\"}");
    cleanup_with(json) cJSON *r = ask(s, "bind", &body);
    const char *error =
        cJSON_GetObjectItemCaseSensitive(r, "Error")->valuestring;
    cr_expect_str_eq(error, "PodUID: \"uid-p\" is that of pod default/p, not "
                            "of default/other");
}

Test(serving, same_request_same_bytes_even_after_a_restart)
{
    char *dir = tmpdir_create();
    cleanup_str struct str body = STR_INIT(1 << 20), first = STR_INIT(1 << 20);
    struct raw_reply reply = {0};
    const struct world_pod pod = {"p", "host", "p", 0, 2, 2, 4, 64, NULL};
    char error[256], node[64];
    world_args_json(&pod, 40, &body);
    for (int life = 0; life < 2; life++) {
        cleanup_with(server) struct server *s = world_start_in(dir);
        if (life == 0) {
            const struct world_pod other = {"o", "host", "o", 0,   1,
                                            1,   4,      64,  NULL};
            world_publish(s, 40, 8);
            cr_assert_gt(filter(s, &other, 40, node), 0);
            bind_pod(s, &other, "node011", error);
            cr_assert_str_eq(error, "");
        }
        for (int i = 0; i < 2000; i++) {
            const char *verb = i % 2 ? "/v1/scheduler/prioritize"
                                     : "/v1/scheduler/filter";
            cr_assert_eq(call(s, SERVER_SCHEDULER, "POST", verb, &body, &reply),
                         200);
            if (life == 0 && i < 2)
                str_add_n(&first, reply.body.data, reply.body.size);
            else
                cr_assert_not_null(strstr(first.data, str_text(&reply.body)),
                                   "%s", str_text(&reply.body));
        }
    }
    raw_reply_fini(&reply);
    tmpdir_remove(dir);
}

Test(serving, a_crowd_of_readers_takes_no_descriptor_of_the_scheduler)
{
    struct rlimit files;
    int crowd[600];
    char first[64] = "";
    const struct world_pod pod = {"p", "host", "p", 0, 1, 0, 0, 0, NULL};
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = 400; /* the crowd's own ends are in this process, too */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    cleanup_with(server) struct server *s = world_start();
    world_publish(s, 1, 1);
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        crowd[i] = raw_connect(server_port(s, SERVER_READ));
    cr_expect_eq(filter(s, &pod, 1, first), 1);
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        close(crowd[i]);
}

/* Every class of malformed JSON, on every path that takes JSON. */
Test(serving, malformed_json_is_400_with_a_position)
{
    static const struct {
        enum server_listener listener;
        const char *method, *path;
    } doors[] = {
        {SERVER_SCHEDULER, "POST", "/v1/scheduler/filter"},
        {SERVER_SCHEDULER, "POST", "/v1/scheduler/prioritize"},
        {SERVER_SCHEDULER, "POST", "/v1/scheduler/bind"},
        {SERVER_SCHEDULER, "POST", "/v1/scheduler/preempt"},
        {SERVER_PUBLISH, "PUT", "/apis/resource.k8s.io/v1/resourceslices/x"},
        {SERVER_READ, "POST", "/v1/simulate"},
    };
    cleanup_with(server) struct server *s = world_start();
    struct raw_reply reply = {0};
    size_t n;
    const struct badjson *bad = badjson_syntax(&n);
    cr_assert_geq(n, 100);
    for (size_t d = 0; d < ARRAY_LEN(doors); d++)
        for (size_t i = 0; i < n; i++) {
            /* as it stands, and as the value of a member that is skipped */
            cleanup_str struct str inner = STR_INIT(1 << 22);
            str_add(&inner, "{\"skipped\":");
            str_add_n(&inner, bad[i].data, bad[i].size);
            str_add_c(&inner, '}');
            const struct jtext bodies[2] = {{bad[i].data, bad[i].size, false},
                                            {inner.data, inner.size, false}};
            for (int k = 0; k < 2; k++) {
                int status = world_call(s, doors[d].listener, doors[d].method,
                                        doors[d].path, bodies[k], &reply);
                cr_assert_eq(status, 400, "%s %s: %d %s", doors[d].path,
                             bad[i].name, status, str_text(&reply.body));
                cr_assert_not_null(strstr(str_text(&reply.body), "byte "),
                                   "%s %s: %s", doors[d].path, bad[i].name,
                                   str_text(&reply.body));
            }
        }
    raw_reply_fini(&reply);
}

Test(serving, a_key_given_twice_is_400)
{
    static const char *const bodies[] = {
        "{\"Pod\":{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}},"
        "\"NodeNames\":[]}",
        "{\"Pod\":{\"metadata\":{\"labels\":{\"biga.dev/role\":\"host\","
        "\"biga.dev/role\":\"xpu\"}}},\"NodeNames\":[]}",
        "{\"Pod\":{\"metadata\":{},\"metadata\":{}},\"NodeNames\":[]}",
        "{\"Pod\":{\"spec\":{\"containers\":[],\"containers\":[]}},"
        "\"NodeNames\":[]}",
        "{\"Pod\":{},\"NodeNames\":[\"a\"],\"nodenames\":[\"b\"]}",
    };
    cleanup_with(server) struct server *s = world_start();
    struct raw_reply reply = {0};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct jtext body = {bodies[i], strlen(bodies[i]), false};
        int status = world_call(s, SERVER_SCHEDULER, "POST",
                                "/v1/scheduler/filter", body, &reply);
        cr_assert_eq(status, 400, "%s: %d %s", bodies[i], status,
                     str_text(&reply.body));
    }
    raw_reply_fini(&reply);
}

static size_t resident_kib(void)
{
    size_t total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    cr_assert_not_null(f);
    cr_assert_eq(fscanf(f, "%zu %zu", &total, &resident), 2);
    (void)fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

Test(serving, a_body_over_the_cap_is_413_and_costs_no_memory)
{
    cleanup_with(server) struct server *s = world_start();
    struct raw_reply reply = {0};
    cleanup_str struct str body = STR_INIT((size_t)128 << 20);
    while (body.size < (size_t)64 << 20)
        str_add(&body, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
    size_t before = resident_kib();
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(call(s, SERVER_PUBLISH, "PUT",
                          "/apis/resource.k8s.io/v1/resourceslices/x", &body,
                          &reply),
                     413);
        cr_assert_eq(call(s, SERVER_SCHEDULER, "POST", "/v1/scheduler/bind",
                          &body, &reply),
                     413);
        cr_assert_eq(
            call(s, SERVER_READ, "POST", "/v1/simulate", &body, &reply), 413);
    }
    cr_assert_lt(resident_kib(), before + 16384);
    raw_reply_fini(&reply);
}

/* --- a client that sends a byte now and then ------------------------------ */

enum { TRICKLERS = 8 }; /* at each listener */

struct trickle {
    uint16_t port;
    atomic_bool stop;
    atomic_uint n_sent; /* by each of them */
    unsigned n_open;    /* at the end */
};

static void *trickle_run(void *arg)
{
    struct trickle *t = arg;
    static const char text[] = "POST /v1/scheduler/filter HTTP/1.1\r\n"
                               "Host: x\r\nContent-Length: 1000\r\n\r\n{";
    int fds[TRICKLERS];
    for (int i = 0; i < TRICKLERS; i++) {
        fds[i] = raw_connect(t->port);
        /* some stop in the request line, some in the header or the body */
        (void)raw_send_n(fds[i], text, 5 + (size_t)i * 9);
    }
    while (!t->stop) {
        for (int i = 0; i < TRICKLERS; i++)
            (void)raw_send_n(fds[i], "x", 1);
        if (atomic_fetch_add(&t->n_sent, 1) > 300) /* of the body of 1000 */
            break;
        (void)raw_closed_within(fds[0], 10);
    }
    for (int i = 0; i < TRICKLERS; i++) {
        t->n_open += !raw_closed_within(fds[i], 1);
        (void)close(fds[i]);
    }
    return NULL;
}

/* Time is virtual and stands: the server cuts none of them off, and whoever
 * waited for one would wait for ever. */
Test(serving, trickling_clients_do_not_delay_the_scheduler, .timeout = 180)
{
    virtual_begin();
    struct server *s = world_start();
    struct trickle t[SERVER_LISTENERS];
    pthread_t threads[SERVER_LISTENERS];
    char first[64];
    world_publish(s, 4, 2);
    for (int i = 0; i < SERVER_LISTENERS; i++) {
        t[i] =
            (struct trickle){.port = server_port(s, (enum server_listener)i)};
        cr_assert_eq(pthread_create(&threads[i], NULL, trickle_run, &t[i]), 0);
    }
    const struct world_pod pod = {"p", "host", "p", 0, 1, 0, 0, 0, NULL};
    for (int i = 0; i < SERVER_LISTENERS; i++)
        for (unsigned n = 0; n < 20; n = atomic_load(&t[i].n_sent))
            cr_assert_eq(filter(s, &pod, 4, first), 4);
    for (int i = 0; i < SERVER_LISTENERS; i++) {
        t[i].stop = true;
        (void)pthread_join(threads[i], NULL);
        cr_expect_eq(t[i].n_open, TRICKLERS, "they are there to the end");
    }
    server_stop(s);
    virtual_end();
}

Test(serving, why_speaks_of_the_nodes_that_are_nearest)
{
    cleanup_with(server) struct server *s = world_start();
    char error[256], first[64];
    world_publish(s, 1, 1);
    const struct world_pod a = {"a", "host", "a", 0, 1, 0, 4, 64, NULL};
    const struct world_pod big = {"b", "host", "b", 0, 1, 0, 14, 64, NULL};
    struct raw_reply reply = {0};
    cr_assert_eq(filter(s, &a, 1, first), 1);
    bind_pod(s, &a, "node000", error);
    /* two hosts without a card are more, and further away */
    for (int i = 1; i < 3; i++) {
        const struct slice_epoch epoch = {"boot-1", 1};
        char node[16];
        (void)snprintf(node, sizeof node, "node00%d", i);
        cleanup_with(topo) struct topo *topo = simhost_topo(node, 0);
        cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
        cleanup_free char *path = xasprintf(
            "/apis/resource.k8s.io/v1/resourceslices/%s-xpu.biga.dev-0", node);
        slice_encode(topo, &epoch, 0, &json);
        cr_assert_eq(call(s, SERVER_PUBLISH, "PUT", path, &json, &reply), 201);
    }
    cr_assert_eq(filter(s, &big, 3, first), 0);
    cr_assert_eq(
        call(s, SERVER_READ, "GET", "/v1/why?pod=default/b", NULL, &reply),
        200);
    cr_assert_not_null(strstr(str_text(&reply.body),
                              "fits none of 3 nodes; 1: too few free cores"),
                       "%s", str_text(&reply.body));
    /* what fits and waits, waits for somebody else */
    const struct world_pod small = {"c", "host", "c", 0, 1, 0, 1, 64, NULL};
    cr_assert_eq(filter(s, &small, 3, first), 1);
    cr_assert_eq(
        call(s, SERVER_READ, "GET", "/v1/why?pod=default/c", NULL, &reply),
        200);
    cr_expect_not_null(strstr(str_text(&reply.body), "reasons of its own"),
                       "%s", str_text(&reply.body));
    raw_reply_fini(&reply);
}
