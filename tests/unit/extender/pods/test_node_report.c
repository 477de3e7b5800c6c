#include "extender/pods/node_report.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

static void refused(const char *json, const char *text)
{
    struct node_report *s = NULL;
    struct error err = {0};
    cr_expect_eq(node_report_parse(json, strlen(json), &s, &err), -EINVAL, "%s",
                 json);
    cr_expect_str_eq(err.text, text);
    cr_expect_null(s);
}

Test(node_report, reads_all)
{
    const char *json =
        "{\"boot\":\"b\",\"pods\":[{\"uid\":\"u2\",\"state\":\"failed\","
        "\"ready\":false,\"reason\":\"Error\",\"message\":\"see its log\","
        "\"attempt\":2,\"address\":\"::1\",\"containers\":[{\"name\":\"c\","
        "\"state\":\"exited\",\"exitCode\":-1,\"restarts\":3,\"reason\":"
        "\"OOMKilled\"}]},{\"uid\":\"u1\",\"state\":\"running\",\"ready\":true}"
        "],\"places\":[{\"name\":\"host\",\"health\":\"drained\",\"reason\":"
        "\"by hand\",\"runtime\":\"containerd 1.6\"}]}";
    cleanup_with(node_report) struct node_report *s = NULL;
    struct error err = {0};
    cr_assert_eq(node_report_parse(json, strlen(json), &s, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(s->boot, "b");
    cr_assert_eq(s->n_pods, 2);
    cr_expect_str_eq(s->pods[0].uid, "u1", "in the order of uids");
    cr_expect(s->pods[0].status->ready);
    const struct pod_status *p = s->pods[1].status;
    cr_expect_eq(p->state, POD_STATE_FAILED);
    cr_expect_str_eq(p->reason, "Error");
    cr_expect_str_eq(p->address, "::1");
    cr_assert_eq(p->n_containers, 1);
    cr_expect_eq(p->containers[0].exit_code, -1);
    cr_expect_eq(p->containers[0].restarts, 3);
    cr_assert_eq(s->n_places, 1);
    cr_expect_eq(s->places[0].health, PLACE_DRAINED);
    cr_expect_str_eq(s->places[0].runtime, "containerd 1.6");
}

Test(node_report, reads_what_is_used)
{
    const char *json =
        "{\"pods\":[{\"uid\":\"u\",\"state\":\"running\",\"usage\":{"
        "\"cpuMillicores\":1500,\"memoryMib\":77,\"at\":\"2026-01-02T03:04:05Z"
        "\",\"more\":1}},{\"uid\":\"v\",\"state\":\"running\"}],\"places\":["
        "{\"name\":\"host\",\"health\":\"ready\",\"usage\":{"
        "\"cpuMillicores\":0,\"memoryMib\":1}}]}";
    cleanup_with(node_report) struct node_report *s = NULL;
    struct error err = {0};
    cr_assert_eq(node_report_parse(json, strlen(json), &s, &err), 0, "%s",
                 err.text);
    cr_expect(s->pods[0].used.known);
    cr_expect_eq(s->pods[0].used.cpu_milli, 1500);
    cr_expect_eq(s->pods[0].used.memory_mib, 77);
    cr_expect_str_eq(s->pods[0].used.at, "2026-01-02T03:04:05Z");
    cr_expect_not(s->pods[1].used.known);
    cr_expect(s->used[0].known);
    cr_expect_eq(s->used[0].memory_mib, 1);
    refused("{\"pods\":[{\"uid\":\"u\",\"state\":\"running\",\"usage\":{"
            "\"cpuMillicores\":-1,\"memoryMib\":77}}]}",
            "pods[0].usage.cpuMillicores: is -1, must be 0 to "
            "1099511627776");
    refused("{\"pods\":[{\"uid\":\"u\",\"state\":\"running\",\"usage\":{"
            "\"cpuMillicores\":1}}]}",
            "pods[0].usage.memoryMib: required member missing");
}

Test(node_report, takes_what_newer_and_older_nodes_say)
{
    const char *json =
        "{\"boot\":\"b\",\"new\":1,\"pods\":[{\"uid\":\"u1\",\"state\":"
        "\"failed\",\"ran\":true,\"new\":{},\"containers\":[{\"name\":\"c\","
        "\"state\":\"exited\",\"new\":[]}]},{\"uid\":\"u2\",\"state\":"
        "\"failed\",\"ran\":false},{\"uid\":\"u3\",\"state\":\"failed\"}],"
        "\"places\":[{\"name\":\"host\",\"health\":\"ready\",\"new\":0}]}";
    cleanup_with(node_report) struct node_report *s = NULL;
    struct error err = {0};
    cr_assert_eq(node_report_parse(json, strlen(json), &s, &err), 0, "%s",
                 err.text);
    cr_assert_eq(s->n_pods, 3);
    cr_expect_eq(s->pods[0].status->ran, APPLIED_RAN_ONCE);
    cr_expect_eq(s->pods[1].status->ran, APPLIED_RAN_NEVER);
    cr_expect_eq(s->pods[2].status->ran, APPLIED_RAN_UNKNOWN);
    refused("{\"boot\":\"b\",\"pods\":[{\"uid\":\"u\",\"state\":\"gone\","
            "\"ran\":1}]}",
            "pods[0].ran: must be true or false");
}

Test(node_report, cuts_what_is_long)
{
    cleanup_str struct str json = STR_INIT(65536);
    cleanup_with(node_report) struct node_report *s = NULL;
    struct error err = {0};
    str_add(&json, "{\"boot\":\"b\",\"pods\":[{\"uid\":\"u\",\"state\":"
                   "\"running\",\"message\":\"x");
    for (int i = 0; i < 1000; i++)
        str_add(&json, "\xc3\xa4");
    str_add(&json, "\"}]}");
    cr_assert_eq(node_report_parse(json.data, json.size, &s, &err), 0, "%s",
                 err.text);
    cr_expect_eq(strlen(s->pods[0].status->message), APPLIED_MESSAGE_MAX - 1,
                 "between characters");
}

Test(node_report, refuses)
{
    refused("{\"boot\":\"b\",\"pods\":[{\"uid\":\"u\",\"state\":\"up\"}]}",
            "pods[0].state: is \"up\", must be one of wanted, preparing, "
            "pulling, creating, running, stopping, gone, failed");
    refused("{\"boot\":\"b\",\"pods\":[{\"uid\":\"u\",\"state\":\"gone\"},"
            "{\"uid\":\"u\",\"state\":\"gone\"}]}",
            "pods: uid \"u\" is there twice");
    refused("{\"boot\":\"b\",\"pods\":[],\"places\":[{\"name\":\"\","
            "\"health\":\"ready\"}]}",
            "places[0].name: must not be empty");
    refused("{\"boot\":\"b\",\"pods\":[],\"places\":[{\"name\":\"host\","
            "\"health\":\"well\"}]}",
            "places[0].health: is \"well\", must be one of ready, suspect, "
            "lost, drained");
    refused("{\"boot\":\"b\",\"pods\":[{\"uid\":\"u\",\"state\":\"gone\","
            "\"containers\":[{\"name\":\"c\",\"state\":\"running\","
            "\"restarts\":-1}]}]}",
            "pods[0].containers[0].restarts: is -1, must be 0 to 4294967295");
}
