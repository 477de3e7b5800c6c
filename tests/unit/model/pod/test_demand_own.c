/* What a pod asks of cards by annotations in place of resources. */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/pod/demand.h"
#include "tests/lib/podtext.h"

Test(demand_own, annotations_say_what_resources_would)
{
    static const char *const roles[] = {"host", "xpu", "service"};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        cleanup_free char *by_resources = xasprintf(
            "{'metadata':{'name':'p','labels':{'biga.dev/role':'%s'}},'spec':{"
            "'containers':[{'resources':{'limits':{'biga.dev/card':'2',"
            "'biga.dev/card-cores':'4','biga.dev/card-memory-mib':'2Ki'}}}]}}",
            roles[i]);
        cleanup_free char *by_annotations = xasprintf(
            "{'metadata':{'name':'p','labels':{'biga.dev/role':'%s'},"
            "'annotations':{'biga.dev/card':'2','biga.dev/card-cores':'4',"
            "'biga.dev/card-memory-mib':'2Ki'}},'spec':{'containers':[{}]}}",
            roles[i]);
        struct demand a = pod_read_ok(by_resources);
        struct demand b = pod_read_ok(by_annotations);
        cr_assert_eq(b.cards, 2);
        cr_assert_eq(b.card_cores, 4);
        cr_assert_eq(b.card_memory_mib, 2048);
        cr_assert(b.has_card_need);
        cr_assert_eq(memcmp(&a, &b, sizeof a), 0, "%s", roles[i]);
    }
}

Test(demand_own, cards_of_the_pod_and_of_its_pair)
{
    struct demand d = pod_read_ok(
        POD("xpu", "", "'biga.dev/cards':'2','biga.dev/card':'1'", ""));
    cr_assert_eq(d.cards, 1);
    cr_assert_eq(d.pair_cards, 2);
    d = pod_read_ok(POD("xpu", "", "'biga.dev/card':'0'", ""));
    cr_assert_eq(d.cards, 1);
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/cards':'2','biga.dev/card':'1'", ""),
                "metadata.annotations['biga.dev/cards']: is '2', but "
                "metadata.annotations['biga.dev/card'] is 1; must be as many");
    pod_refused(EDOM,
                POD("xpu", "", "'biga.dev/cards':'1','biga.dev/card':'2'", ""),
                "['biga.dev/card'] is 2; must be at least as many");
    pod_refused(EDOM, POD("xpu", "", "'biga.dev/card':'17'", ""),
                "metadata.annotations['biga.dev/card']: is 17, must be at most "
                "16");
}

Test(demand_own, what_both_say_must_be_the_same)
{
    struct demand d = pod_read_ok(
        POD("xpu", "", "'biga.dev/card':'1','biga.dev/card-cores':'5'",
            "'containers':[{'resources':{'requests':{'biga.dev/card':'1',"
            "'biga.dev/card-cores':'2'}}},{'resources':{'requests':{"
            "'biga.dev/card-cores':'3'}}}]"));
    cr_assert_eq(d.cards, 1);
    cr_assert_eq(d.card_cores, 5);
    pod_refused(
        EDOM,
        POD("xpu", "", "'biga.dev/card':'1'", REQUESTS("'biga.dev/card':'2'")),
        "metadata.annotations['biga.dev/card']: is 1, but "
        "resources['biga.dev/card'] over all containers: is 2; both "
        "must be the same");
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/card-cores':'0'",
                    REQUESTS("'biga.dev/card-cores':'2'")),
                "metadata.annotations['biga.dev/card-cores']: is 0, but "
                "resources['biga.dev/card-cores'] over all containers: is 2");
    pod_refused(EDOM,
                POD("xpu", "", "'biga.dev/card-memory-mib':'1k'",
                    REQUESTS("'biga.dev/card-memory-mib':'1Ki'")),
                "metadata.annotations['biga.dev/card-memory-mib']: is 1000, "
                "but resources['biga.dev/card-memory-mib'] over all "
                "containers: is 1024");
}

Test(demand_own, quantities_are_those_of_resources)
{
    static const char *const wrong[] = {"",
                                        "-1",
                                        "1.5",
                                        "500m",
                                        "two",
                                        "1 ",
                                        "4294967296",
                                        "1T",
                                        "1e3",
                                        "+1",
                                        "0x10",
                                        "Ki",
                                        "1ki",
                                        "é",
                                        ("12345678901234567890"
                                         "123456789012")};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        cleanup_free char *text = xasprintf(
            "{'metadata':{'name':'p','labels':{'biga.dev/role':'xpu'},"
            "'annotations':{'biga.dev/card-cores':'%s'}}}",
            wrong[i]);
        cleanup_free char *want = xasprintf(
            "metadata.annotations['biga.dev/card-cores']: is '%s', must be a "
            "whole number of at most 4294967295, with or without one of k, M, "
            "G, Ki, Mi, Gi",
            wrong[i]);
        pod_refused(EDOM, text, want);
    }
    cr_assert_eq(
        pod_read_ok(POD("xpu", "", "'biga.dev/card-cores':'4294967295'", ""))
            .card_cores,
        UINT32_MAX);
}

Test(demand_own, beside_shapes)
{
    struct demand d = pod_read_ok(
        POD("xpu", "",
            "'biga.dev/shapes':'0: cards=2 cores=4','biga.dev/card':'1',"
            "'biga.dev/card-cores':'3'",
            ""));
    cr_assert_eq(d.cards, 1);
    cr_assert_eq(d.card_cores, 3);
    pod_refused(EDOM,
                POD("host", "",
                    "'biga.dev/shapes':'0: cores=4','biga.dev/card-cores':'3'",
                    ""),
                "cores of pair 0: is 4, but metadata.annotations["
                "'biga.dev/card-cores']: is 3; both must be the same");
    pod_refused(
        EDOM,
        POD("host", "", "'biga.dev/shapes':'0: cards=2','biga.dev/card':'1'",
            ""),
        "cards of pair 0: is '2', but metadata.annotations['biga.dev/card'] "
        "is 1; must be as many");
}

/* Resources are a device plugin's where there are some; an annotation says
 * nothing of who gives. */
Test(demand_own, a_device_plugin_chooses_gpus_of_resources)
{
    static const struct {
        const char *pod;
        bool plugin;
    } cases[] = {
        {POD("host", "", "", REQUESTS("'nvidia.com/gpu':'2'")), true},
        {POD("host", "", "'biga.dev/gpus':'2'", ""), false},
        {POD("xpu", "", "'biga.dev/gpus':'2'", ""), false},
        {POD("host", "", "", ""), false},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        cleanup_free char *json = pod_quoted(cases[i / 2].pod);
        struct demand_config config;
        struct demand d;
        struct jscan s;
        struct error err = {0};
        demand_config_default(&config);
        cr_assert_not(config.device_plugins);
        config.device_plugins = i % 2;
        config.every_gpu = i % 4 < 2;
        jscan_init(&s, json, strlen(json));
        cr_assert_eq(demand_read(&s, &config, &d, &err), 0, "%s", err.text);
        cr_expect_eq(d.gpus_by_plugin, i % 2 && cases[i / 2].plugin, "%zu", i);
        cr_expect_eq(d.every_gpu, d.gpus_by_plugin && config.every_gpu);
    }
}
