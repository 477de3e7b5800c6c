/* Jobs as people see them, from being applied to after their end. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/sim/world.h"

static void start(void)
{
    simapp_begin(NULL);
}

TestSuite(embedded_jobs, .init = start, .fini = simapp_end);

/* The answer, for the caller to delete. */
static cJSON *get(const char *path)
{
    struct raw_reply reply = {0};
    struct error err;
    cJSON *json = NULL;
    int status = world_call(simapp_server, SERVER_READ, "GET", path,
                            (struct jtext){"", 0, false}, &reply);
    cr_assert_eq(status, 200, "%s: %d: %s", path, status,
                 str_text(&reply.body));
    cr_assert_eq(
        json_parse(str_text(&reply.body), reply.body.size, &json, &err), 0,
        "%s", err.text);
    raw_reply_fini(&reply);
    return json;
}

static const char *text_of(const cJSON *json, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(json, name);
    return cJSON_IsString(m) ? m->valuestring : "";
}

static double number_of(const cJSON *json, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(json, name);
    return cJSON_IsNumber(m) ? m->valuedouble : -1;
}

/* The only job of the list, and the same by its name.  `reason` is part of its
 * reason; "": it has none; NULL: any. */
static void expect_job(const char *state, const char *reason, double placed,
                       double running)
{
    cleanup_with(json) cJSON *list = get("/v1/jobs");
    cleanup_with(json) cJSON *whole = get("/v1/jobs/ns/ring");
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(list, "items");
    cr_assert_eq(cJSON_GetArraySize(items), 1);
    const cJSON *both[] = {cJSON_GetArrayItem(items, 0), whole};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        cr_expect_str_eq(text_of(both[i], "name"), "ring");
        cr_expect_str_eq(text_of(both[i], "state"), state);
        const char *why = text_of(both[i], "reason");
        cr_expect(!reason || (*reason ? strstr(why, reason) != NULL : !*why),
                  "\"%s\" for \"%s\"", why, reason);
        cr_expect_eq(number_of(both[i], "size"), 2);
        cr_expect_eq(number_of(both[i], "placed"), placed);
        cr_expect_eq(number_of(both[i], "running"), running);
    }
}

static void expect_pending(int n, const char *reason)
{
    cleanup_with(json) cJSON *list = get("/v1/pending");
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(list, "items"), *x;
    cr_expect_eq(cJSON_GetArraySize(items), n);
    cJSON_ArrayForEach(x, items)
    {
        cr_expect_str_eq(text_of(x, "job"), "ring");
        cr_expect(strstr(text_of(x, "reason"), reason), "%s lacks %s",
                  text_of(x, "reason"), reason);
    }
}

Test(embedded_jobs, are_seen_from_the_first_pod_until_after_the_last)
{
    struct simapp_pod specs[16];
    char names[16][16];
    size_t n = simapp_job(specs, names, "ring", 2);
    cr_assert_eq(simapp_apply(specs, n - 1), 0);
    expect_job("Pending", NULL, 0, 0); /* at once */
    simapp_settle();
    expect_job("Pending", "JobIncomplete: ", 0, 0);
    expect_pending((int)n - 1, "JobIncomplete: ");
    cr_assert_eq(simapp_apply(&specs[n - 1], 1), 0);
    simapp_settle();
    expect_job("Running", "", 2, 2);
    expect_pending(0, "");
    simapp_delete_all(names, n);
    simapp_settle();
    expect_job("Failed", "Deleted: ", 0, 0);
}

Test(embedded_jobs, a_job_without_room_says_what_is_in_the_way)
{
    const struct simapp_pod specs[] = {
        {.name = "h0", .role = "host", .job = "ring", .size = 2},
        {.name = "x0", .role = "xpu", .job = "ring", .size = 2, .cores = 900},
        {.name = "h1", .role = "host", .job = "ring", .pair = 1, .size = 2},
        {.name = "x1",
         .role = "xpu",
         .job = "ring",
         .pair = 1,
         .size = 2,
         .cores = 900},
    };
    cr_assert_eq(simapp_apply(specs, 4), 0);
    simapp_settle();
    expect_job("Pending", "NoPlace: ", 0, 0);
    cleanup_with(json) cJSON *list = get("/v1/pending?limit=3");
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(list, "items"), *x;
    cr_expect_eq(cJSON_GetArraySize(items), 3);
    cr_expect_str_eq(text_of(list, "continue"), "ns/x0");
    cJSON_ArrayForEach(x, items)
    {
        const cJSON *why = cJSON_GetArrayItem(
            cJSON_GetObjectItemCaseSensitive(x, "refused"), 0);
        cr_expect_str_eq(text_of(why, "reason"), "card-too-small");
        cr_expect_eq(number_of(why, "nodes"), SIMAPP_NODES);
    }
    cleanup_with(json) cJSON *rest = get("/v1/pending?continue=ns/x0");
    cr_expect_eq(
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(rest, "items")), 1);
}

Test(embedded_jobs, are_found_by_their_state)
{
    const struct simapp_pod specs[] = {
        {.name = "h",
         .role = "host",
         .job = "done",
         .notes = ",\"test/ends\":\"1\""},
        {.name = "hx", .role = "xpu", .job = "done"},
        {.name = "i", .role = "host", .job = "ring"},
        {.name = "ix", .role = "xpu", .job = "ring"},
    };
    static const struct {
        const char *path;
        const char *job;
    } cases[] = {{"/v1/jobs?state=Running", "ring"},
                 {"/v1/jobs?state=Succeeded", "done"},
                 {"/v1/jobs?state=Pending", ""}};
    cr_assert_eq(simapp_apply(specs, 4), 0);
    simapp_settle();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(json) cJSON *list = get(cases[i].path);
        const cJSON *items = cJSON_GetObjectItemCaseSensitive(list, "items");
        cr_expect_eq(cJSON_GetArraySize(items), *cases[i].job ? 1 : 0);
        cr_expect_str_eq(text_of(cJSON_GetArrayItem(items, 0), "name"),
                         cases[i].job);
    }
}

/* --- Jobs of Kubernetes ----------------------------------------------------- */

#define JOB(note)                                                              \
    "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":"    \
    "\"ring\",\"namespace\":\"ns\"},\"spec\":{\"completionMode\":\"Indexed\"," \
    "\"completions\":2,\"parallelism\":2,\"template\":{\"metadata\":{"         \
    "\"labels\":{\"biga.dev/role\":\"host\"},\"annotations\":{"                \
    "\"biga.dev/buddy\":\"worker\"" note                                       \
    "}},\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":"      \
    "\"c\",\"image\":\"i\"}]}}}}"                                              \
    "{\"kind\":\"PodTemplate\",\"metadata\":{\"name\":\"worker\","             \
    "\"namespace\":\"ns\"},\"template\":{\"spec\":{\"containers\":[{"          \
    "\"name\":\"w\",\"image\":\"i\"}]}}}"

static void post(const char *body)
{
    struct raw_reply reply = {0};
    int status = world_call(simapp_server, SERVER_READ, "POST", "/v1/pods",
                            (struct jtext){body, strlen(body), false}, &reply);
    cr_assert_eq(status, 200, "%d: %s", status, str_text(&reply.body));
    raw_reply_fini(&reply);
}

Test(embedded_jobs, a_job_of_kubernetes_runs_in_pairs_and_ends)
{
    post(JOB(""));
    simapp_settle();
    expect_job("Running", "", 2, 2);
    cr_expect(strstr(simapp_find("ring-1")->env, "\"BIGA_JOB\":\"ring\""));
    cleanup_with(json) cJSON *job = get("/v1/jobs/ns/ring");
    cr_expect_eq(strlen(text_of(job, "submitted")), 20);
    cr_expect_eq(strlen(text_of(job, "started")), 20);
}

Test(embedded_jobs, a_job_of_kubernetes_ends_with_its_pods)
{
    post(JOB(",\"biga.dev/size\":\"2\",\"test/ends\":\"1\""));
    simapp_settle();
    expect_job("Succeeded", "", 0, 0);
    cleanup_with(json) cJSON *job = get("/v1/jobs/ns/ring");
    cr_expect_eq(strlen(text_of(job, "ended")), 20);
}

Test(embedded_jobs, a_job_of_kubernetes_fails_whole)
{
    struct simapp_pod other = {.name = "h",
                               .role = "host",
                               .job = "ring",
                               .notes = ",\"test/breaks\":\"1\""};
    post(JOB(""));
    simapp_settle();
    expect_job("Running", "", 2, 2);
    other.pair = 1; /* one of that job by its own label fails alone */
    cr_assert_eq(simapp_apply(&other, 1), 0);
    simapp_settle();
    simapp_expect("h", POD_STATE_FAILED, "Error", "");
    simapp_expect("ring-0", POD_STATE_RUNNING, "", "");
    cr_assert_eq(simapp_delete("h"), 0);
    cr_assert_eq(simapp_delete("ring-0"), 0);
    cr_assert_eq(simapp_delete("ring-1"), 0);
    simapp_settle();
    post(JOB(",\"test/breaks\":\"1\""));
    simapp_settle();
    expect_job("Failed", "Error", 0, 0);
    simapp_expect("ring-0-xpu", POD_STATE_FAILED, "JobFailed",
                  "of the job has failed: Error");
    cr_expect_eq(simapp_allocations(), 0);
}
