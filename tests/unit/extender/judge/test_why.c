/* /v1/why and /v1/simulate over HTTP: whole jobs, and the way out. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/world.h"

static cJSON *call(struct server *s, const char *method, const char *path,
                   const char *body, int want)
{
    enum server_listener listener = strncmp(path, "/v1/scheduler/", 14) == 0
                                        ? SERVER_SCHEDULER
                                        : SERVER_READ;
    struct raw_reply reply = {0};
    struct error err = {0};
    cJSON *json = NULL;
    struct jtext text = {body, strlen(body), false};
    int status = world_call(s, listener, method, path, text, &reply);
    cr_assert_eq(status, want, "%s: %d %s", path, status,
                 str_text(&reply.body));
    cr_assert_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s", err.text);
    raw_reply_fini(&reply);
    return json;
}

/* A pair's host pod of a job that shares no card. */
static void add_pod(const char *job, int rank, int size, struct str *out)
{
    str_addf(out,
             "{\"metadata\":{\"name\":\"%s-%d\",\"namespace\":\"default\","
             "\"uid\":\"uid-%s-%d\",\"labels\":{\"biga.dev/role\":\"host\","
             "\"biga.dev/job\":\"%s\",\"biga.dev/pair\":\"%d\"},"
             "\"annotations\":{\"biga.dev/size\":\"%d\","
             "\"biga.dev/exclusive\":\"true\"}},\"spec\":{}}",
             job, rank, job, rank, job, rank, size);
}

static void filter(struct server *s, const char *job, int size,
                   unsigned n_nodes)
{
    cleanup_str struct str body = STR_INIT(65536);
    str_add(&body, "{\"Pod\":");
    add_pod(job, 0, size, &body);
    str_add(&body, ",\"Nodes\":null,\"NodeNames\":[");
    for (unsigned i = 0; i < n_nodes; i++)
        str_addf(&body, "%s\"node%03u\"", i ? "," : "", i);
    str_add(&body, "]}");
    cJSON_Delete(call(s, "POST", "/v1/scheduler/filter", str_text(&body), 200));
}

static const cJSON *member(const cJSON *json, const char *name)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(json, name);
    cr_assert_not_null(x, "no member %s", name);
    return x;
}

static const cJSON *change(const cJSON *why, const char *kind)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, member(why, "changes"))
    {
        cr_expect(cJSON_IsTrue(member(x, "verified")));
        if (strcmp(member(x, "kind")->valuestring, kind) == 0)
            return x;
    }
    return NULL;
}

Test(why, a_job_without_room_is_told_what_would_fit)
{
    cleanup_with(server) struct server *s = world_start();
    world_publish(s, 3, 2);
    filter(s, "ring", 8, 3);
    cleanup_with(json)
        cJSON *why = call(s, "GET", "/v1/why?job=default/ring", "", 200);
    cr_expect_str_eq(member(why, "state")->valuestring, "pending");
    cr_expect(cJSON_IsFalse(member(why, "sample")));
    const cJSON *lack = member(why, "lack");
    cr_expect_str_eq(member(lack, "what")->valuestring, "room");
    cr_expect_eq(member(lack, "asked")->valueint, 8);
    cr_expect_eq(member(lack, "room")->valueint, 6);
    const cJSON *pairs = change(why, "pairs");
    cr_assert_not_null(pairs);
    cr_expect_eq(member(pairs, "value")->valueint, 6);
    cr_expect(strstr(member(why, "summary")->valuestring,
                     "its job needs 8 pairs; there is room for 6"),
              "%s", member(why, "summary")->valuestring);
    /* by its name alone, too */
    cJSON_Delete(call(s, "GET", "/v1/why?pod=default/ring", "", 200));
    cJSON_Delete(call(s, "GET", "/v1/why?job=default/no", "", 404));
    cJSON_Delete(call(s, "GET", "/v1/why?job=a/b&pod=a/c", "", 400));
}

/* There is no room for it anywhere, and less of it within one leaf. */
Test(why, a_job_is_told_how_many_pairs_its_tier_holds)
{
    cleanup_with(server) struct server *s = world_start();
    cleanup_str struct str pod = STR_INIT(4096), body = STR_INIT(8192);
    world_publish(s, 3, 2);
    add_pod("near", 0, 8, &pod);
    const char *rest = strstr(str_text(&pod), "\"biga.dev/size\"");
    str_add(&body, "{\"Pod\":");
    str_add_n(&body, str_text(&pod), (size_t)(rest - str_text(&pod)));
    str_addf(&body, "\"biga.dev/within\":\"leaf\",%s", rest);
    str_add(&body, ",\"Nodes\":null,\"NodeNames\":[\"node000\",\"node001\","
                   "\"node002\"]}");
    cJSON_Delete(call(s, "POST", "/v1/scheduler/filter", str_text(&body), 200));
    cleanup_with(json)
        cJSON *why = call(s, "GET", "/v1/why?job=default/near", "", 200);
    cr_expect_eq(member(member(why, "lack"), "room")->valueint, 6);
    const cJSON *pairs = change(why, "pairs");
    cr_assert_not_null(pairs);
    cr_expect_eq(member(pairs, "value")->valueint, 2);
}

Test(why, a_job_that_fits_is_told_where)
{
    cleanup_with(server) struct server *s = world_start();
    world_publish(s, 3, 2);
    filter(s, "ring", 4, 3);
    cleanup_with(json)
        cJSON *why = call(s, "GET", "/v1/why?pod=default/ring-0", "", 200);
    const cJSON *plan = member(why, "plan");
    cr_expect_eq(member(plan, "pairs")->valueint, 4);
    cr_expect_eq(member(plan, "unaligned")->valueint, 0);
    cr_expect_eq(cJSON_GetArraySize(member(why, "best")), 1);
    cr_expect_eq(cJSON_GetArraySize(member(why, "changes")), 0);
}

Test(why, a_sample_is_called_one)
{
    cleanup_with(server) struct server *s = world_start();
    world_publish(s, 3, 2);
    filter(s, "ring", 6, 2);
    cleanup_with(json)
        cJSON *why = call(s, "GET", "/v1/why?job=default/ring", "", 200);
    cr_expect(cJSON_IsTrue(member(why, "sample")));
    cr_expect_eq(member(member(why, "lack"), "room")->valueint, 4);
}

Test(why, a_simulated_pod_with_a_key_that_is_none_is_refused)
{
    static const struct {
        const char *pod, *text;
    } cases[] = {
        {"{\"metadata\":{\"name\":\"a\",\"labels\":{\"biga.dev/"
         "role\":\"host\"},"
         "\"annotations\":{\"biga.dev/aling\":\"pix\"}},\"spec\":{}}",
         "pod 0 (default/a): metadata.annotations[\"biga.dev/aling\"]: is no "
         "key of Biga; did you mean biga.dev/align?"},
        {"[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\","
         "\"namespace\":\"ns\",\"labels\":{\"biga.dev/rol\":\"xpu\"}},"
         "\"spec\":{\"containers\":[]}}]",
         "pod 1 (ns/b): metadata.labels[\"biga.dev/rol\"]: is no key of Biga; "
         "did you mean biga.dev/role?"},
    };
    cleanup_with(server) struct server *s = world_start();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(json)
            cJSON *r = call(s, "POST", "/v1/simulate", cases[i].pod, 400);
        cr_expect_str_eq(member(r, "error")->valuestring, cases[i].text);
    }
}

/* There is no policy that could be changed for it. */
Test(why, a_pod_that_may_have_no_devices_is_told_so)
{
    static const char *const jobs[] = {"", ",\"biga.dev/size\":\"2\""};
    cleanup_with(server) struct server *s = world_start();
    world_publish(s, 3, 2);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        cleanup_free char *pod = xasprintf(
            "{\"metadata\":{\"name\":\"x\",\"labels\":{\"biga.dev/role\":"
            "\"xpu\",\"biga.dev/job\":\"ring\"},\"annotations\":{"
            "\"biga.dev/devices\":\"rdma\"%s}},\"spec\":{}}",
            jobs[i]);
        cleanup_with(json)
            cJSON *why = call(s, "POST", "/v1/simulate", pod, 200);
        cleanup_free char *text = cJSON_PrintUnformatted(why);
        cr_expect(strstr(text, "\"not-allowed\""), "%s", text);
        cr_expect(strstr(text, "namespace default may have no devices"), "%s",
                  text);
    }
}

Test(why, a_simulated_job_is_placed_whole)
{
    cleanup_with(server) struct server *s = world_start();
    cleanup_str struct str body = STR_INIT(65536);
    bool taken[3][2] = {{false}};
    world_publish(s, 3, 2);
    str_add_c(&body, '[');
    for (int i = 0; i < 7; i++) {
        str_add(&body, i ? "," : "");
        add_pod(i < 6 ? "ring" : "late", i % 6, i < 6 ? 6 : 2, &body);
    }
    str_add_c(&body, ']');
    cleanup_with(json)
        cJSON *r = call(s, "POST", "/v1/simulate", str_text(&body), 200);
    const cJSON *x;
    int n = 0;
    cJSON_ArrayForEach(x, member(r, "results"))
    {
        if (n++ == 6) {
            cr_expect_str_eq(member(x, "state")->valuestring, "refused");
            continue;
        }
        cr_expect_str_eq(member(x, "state")->valuestring, "placed");
        const cJSON *a = member(x, "allocation");
        const char *card = member(cJSON_GetArrayItem(member(a, "cards"), 0),
                                  "id")
                               ->valuestring;
        int node = member(a, "node")->valuestring[6] - '0';
        bool second = strcmp(card, "card-0000-12-00") != 0;
        cr_assert(node >= 0 && node < 3);
        cr_expect_not(taken[node][second], "%s twice", card);
        taken[node][second] = true;
    }
    cr_expect_eq(n, 7);
}
