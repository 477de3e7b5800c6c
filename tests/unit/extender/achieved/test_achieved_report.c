#include "extender/achieved/achieved_report.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

static struct achieved_report *parse(const char *json)
{
    struct achieved_report *r = NULL;
    struct error err = {0};
    cr_assert_eq(achieved_report_parse(json, strlen(json), &r, &err), 0, "%s",
                 err.text);
    return r;
}

static void refused(const char *json, const char *text)
{
    struct achieved_report *r = NULL;
    struct error err = {0};
    cr_expect_eq(achieved_report_parse(json, strlen(json), &r, &err), -EINVAL,
                 "%s", json);
    cr_expect_str_eq(err.text, text);
    cr_expect_null(r);
}

static const struct achieved_facts *find(const struct achieved_report *r,
                                         const char *name, const char *uid)
{
    struct demand pod = {.namespace = "ns"};
    (void)snprintf(pod.name, sizeof pod.name, "%s", name);
    (void)snprintf(pod.uid, sizeof pod.uid, "%s", uid);
    return achieved_report_find(r, &pod);
}

Test(achieved_report, tells_what_is_none_from_what_is_not_told)
{
    cleanup_with(achieved_report) struct achieved_report *r = parse(
        "{\"node\":\"host0\",\"new\":1,\"pods\":[{\"namespace\":\"ns\","
        "\"name\":\"b\",\"gpus\":[],\"new\":{}},{\"namespace\":\"ns\","
        "\"name\":\"a\",\"uid\":\"u\",\"cards\":[\"0000:17:00.0\"],\"gpus\":["
        "\"0000:1c:00.0\",\"0000:1b:00.0\"],\"nics\":[\"0000:18:00.0\"],"
        "\"cpus\":\"0-7,32\",\"numa\":[1,0],\"memoryNuma\":[0]}]}");
    cr_expect_str_eq(r->node, "host0");
    cr_assert_eq(r->n_pods, 2);
    const struct achieved_facts *a = find(r, "a", "u"), *b = find(r, "b", "x");
    cr_assert_eq(a, &r->pods[0], "by name");
    cr_assert_eq(b, &r->pods[1], "whose uid is not told");
    cr_expect(a->cards.told && a->cards.n == 1 && a->nics.n == 1);
    cr_assert_eq(a->gpus.n, 2);
    cr_expect_eq(a->gpus.at[0].bus, 0x1b, "ascending");
    cr_expect_str_eq(a->cpus, "0-7,32");
    cr_expect_eq(a->n_cpus, 9);
    cr_assert_eq(a->numa.n, 2);
    cr_expect(a->numa.at[0] == 0 && a->numa.at[1] == 1);
    cr_expect(a->memory_numa.told && a->memory_numa.n == 1);
    cr_expect(b->gpus.told && b->gpus.n == 0, "none");
    cr_expect(!b->cards.told && !b->nics.told && !b->cpus && !b->numa.told &&
              !b->memory_numa.told);
}

Test(achieved_report, is_of_this_very_pod)
{
    cleanup_with(achieved_report) struct achieved_report *r = parse(
        "{\"node\":\"host0\",\"pods\":[{\"namespace\":\"ns\",\"name\":\"a\","
        "\"uid\":\"old\"}]}");
    cr_expect_null(find(r, "a", "new"));
    cr_expect_null(find(r, "b", "old"));
    cr_expect_null(find(NULL, "a", "old"));
}

#define POD "{\"node\":\"h\",\"pods\":[{\"namespace\":\"ns\",\"name\":\"a\","

Test(achieved_report, refuses_with_field_and_value)
{
    refused("{\"pods\":[]}", "node: required member missing");
    refused("{\"node\":\"\",\"pods\":[]}", "node: must not be empty");
    refused("{\"node\":\"h\"}", "pods: required member missing");
    refused("{\"node\":\"h\",\"pods\":[{\"namespace\":\"ns\"}]}",
            "pods[0].name: required member missing");
    refused(POD "\"gpus\":[\"1b\"]}]}",
            "pods[0].gpus: has \"1b\", must be addresses such as "
            "\"0000:17:00.0\"");
    refused(POD "\"cards\":[7]}]}",
            "pods[0].cards: has \"(no text)\", must be addresses such as "
            "\"0000:17:00.0\"");
    refused(POD "\"nics\":[\"0000:18:00.0\",\"18:00.0\"]}]}",
            "pods[0].nics: names one twice");
    refused(POD "\"numa\":[0,-1]}]}",
            "pods[0].numa: must be whole numbers from 0 to 65535");
    refused(POD "\"memoryNuma\":[2,2]}]}",
            "pods[0].memoryNuma: names one twice");
    refused(POD "\"cpus\":\"0-3;8\"}]}",
            "pods[0].cpus: is \"0-3;8\", must be as in \"0-7,32\"");
    refused(POD "\"cpus\":[0]}]}", "pods[0].cpus: must be a string");
    refused(POD "\"x\":1},{\"namespace\":\"ns\",\"name\":\"a\"}]}",
            "pods: ns/a is there twice");
}

Test(achieved_report, keeps_to_its_caps)
{
    cleanup_str struct str json = STR_INIT(4 << 20);
    struct error err = {0};
    struct achieved_report *r = NULL;
    str_add(&json, "{\"node\":\"h\",\"pods\":[");
    for (int i = 0; i <= ACHIEVED_PODS_MAX; i++)
        str_addf(&json, "%s{\"namespace\":\"ns\",\"name\":\"p%d\"}",
                 i ? "," : "", i);
    str_add(&json, "]}");
    cr_expect_eq(achieved_report_parse(json.data, json.size, &r, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "pods"), "%s", err.text);
    cr_expect(strstr(err.text, "512"), "%s", err.text);
    while (json.size <= ACHIEVED_BODY_MAX)
        str_add_c(&json, ' ');
    cr_expect_eq(achieved_report_parse(json.data, json.size, &r, &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "has 524289 bytes, at most 524288 are allowed");
}
