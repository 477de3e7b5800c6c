/* What a pod asks for its pair and its job. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"
#include "tests/lib/podtext.h"

/* What a pod says of its pair and of its job. */
Test(demand_job, wishes_of_the_job)
{
    struct demand d = pod_read_ok(POD("host", "", "", ""));
    cr_assert_eq(d.within, DEMAND_ANYWHERE);
    cr_assert_eq(d.prefer_within, DEMAND_ANYWHERE);
    cr_assert_eq(d.prefer_align, RELATION_PIX);
    d = pod_read_ok(POD("xpu", "",
                        "'biga.dev/within':'Spine','biga.dev/prefer-within':"
                        "'tier-0','biga.dev/prefer-align':'SYS'",
                        ""));
    cr_assert_eq(d.within, 1);
    cr_assert_eq(d.prefer_within, 0);
    cr_assert_eq(d.prefer_align, RELATION_SYS);
    cr_assert_eq(
        pod_read_ok(POD("host", "", "'biga.dev/within':'tier-7'", "")).within,
        7);
    pod_refused(EDOM, POD("host", "", "'biga.dev/within':'rack'", ""),
                "metadata.annotations['biga.dev/within']: is 'rack', must be "
                "'leaf', 'spine', 'core' or 'tier-N' with N from 0 to 7");
    pod_refused(EDOM, POD("host", "", "'biga.dev/prefer-within':'tier-8'", ""),
                "metadata.annotations['biga.dev/prefer-within']: is 'tier-8'");
    pod_refused(
        EDOM, POD("host", "", "'biga.dev/prefer-align':'best'", ""),
        "metadata.annotations['biga.dev/prefer-align']: is 'best', must "
        "be 'pix', 'pxb'");
}

Test(demand_job, gpus_and_cpus_of_the_pair)
{
    struct demand d =
        pod_read_ok(POD("xpu", "", "'biga.dev/gpus':'2','biga.dev/cpus':'1.5'",
                        REQUESTS("'cpu':'9','nvidia.com/gpu':'3'")));
    cr_assert_eq(d.gpus, 0);
    cr_assert_eq(d.pair_gpus, 2);
    cr_assert_eq(d.cpu_milli, 1500);
    cr_assert(demand_is_planned(&d));
    d = pod_read_ok(POD("host", "", "'biga.dev/gpus':'2','biga.dev/cpus':'4'",
                        REQUESTS("'cpu':'4000m','nvidia.com/gpu':'2'")));
    cr_assert_eq(d.gpus, 2);
    cr_assert_eq(d.pair_gpus, 2);
    cr_assert_eq(d.cpu_milli, 4000);
    cr_assert(!demand_is_planned(&d));
    d = pod_read_ok(
        POD("host", "", "'biga.dev/gpus':'2','biga.dev/cpus':'500m'", ""));
    cr_assert_eq(d.gpus, 2);
    cr_assert_eq(d.cpu_milli, 500);
    d = pod_read_ok(POD("service", "",
                        "'biga.dev/gpus':'2','biga.dev/cpus':'1'",
                        REQUESTS("'cpu':'9'")));
    cr_assert_eq(d.pair_gpus + d.gpus + d.cpu_milli, 0);
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/gpus':'0'",
                    REQUESTS("'nvidia.com/gpu':'2'")),
                "metadata.annotations['biga.dev/gpus']: is 0, but sum of GPU "
                "resources over all containers: is 2; both must be the same");
    pod_refused(
        EDOM, POD("host", "", "'biga.dev/cpus':'2'", REQUESTS("'cpu':'2500m'")),
        "metadata.annotations['biga.dev/cpus']: is 2000m, but "
        "resources['cpu'] over all containers: is 2500m; both");
    pod_refused(EDOM, POD("xpu", "", "'biga.dev/gpus':'17'", ""),
                "from 0 to 16");
    pod_refused(
        EDOM, POD("xpu", "", "'biga.dev/cpus':'many'", ""),
        "metadata.annotations['biga.dev/cpus']: is 'many', must be CPUs "
        "such as 2, 1.5 or 500m");
}

Test(demand_job, nics_of_the_pair)
{
    struct demand d = pod_read_ok(POD("host", "", "'biga.dev/nics':'2'", ""));
    cr_expect_eq(d.nics, 2);
    cr_expect_eq(d.pair_nics, 2);
    cr_expect(!demand_is_planned(&d));
    d = pod_read_ok(POD("xpu", "", "'biga.dev/nics':'16'", ""));
    cr_expect_eq(d.nics, 0);
    cr_expect_eq(d.pair_nics, 16);
    cr_expect(demand_is_planned(&d));
    struct demand pair;
    demand_pair(&d, d.pair, &pair);
    cr_expect_eq(pair.nics, 16);
    d = pod_read_ok(POD("service", "", "'biga.dev/nics':'2'", ""));
    cr_expect_eq(d.nics + d.pair_nics, 0);
    pod_refused(EDOM, POD("host", "", "'biga.dev/nics':'17'", ""),
                "metadata.annotations['biga.dev/nics']: is '17', must be a "
                "whole number from 0 to 16");
    d = pod_read_ok(POD("host", ",'biga.dev/job':'j'",
                        "'biga.dev/size':'2',"
                        "'biga.dev/shapes':'0: nics=1; 1: nics=3'",
                        ""));
    cr_expect_eq(d.nics, 1);
    demand_pair(&d, 1, &pair);
    cr_expect_eq(pair.nics, 3);
    pod_refused(EDOM,
                POD("host", ",'biga.dev/job':'j'",
                    "'biga.dev/size':'2','biga.dev/nics':'2',"
                    "'biga.dev/shapes':'0: nics=1'",
                    ""),
                "metadata.annotations['biga.dev/nics']: is 2, but "
                "metadata.annotations['biga.dev/shapes'], nics of pair 0: is "
                "1; both must be the same");
}

Test(demand_job, cpus_of_the_host_pod)
{
    static const struct {
        const char *text;
        int64_t milli; /* -1: refused */
    } cases[] = {
        {"'2'", 2000},
        {"3", 3000},
        {"1.5", 1500},
        {"'0.1'", 100},
        {"'.5'", 500},
        {"'1.'", 1000},
        {"'500m'", 500},
        {"'1.5m'", 2},
        {"'1u'", 1},
        {"'1500000n'", 2},
        {"'1k'", 1000000},
        {"'1e3'", 1000000},
        {"'25E-1'", 2500},
        {"'1e+1'", 10000},
        {"0", 0},
        {"'0.0001'", 1},
        {"'4294967'", 4294967000},
        {"'4294968'", -1},
        {"'1e9'", -1},
        {"'1.2.3'", -1},
        {"''", -1},
        {"'.'", -1},
        {"'m'", -1},
        {"'-1'", -1},
        {"'1 '", -1},
        {"'1e'", -1},
        {"'1e10'", -1},
        {"'1ee1'", -1},
        {"'1Ki'", -1},
        {"'1234567890123456789'", -1},
        {"true", -1},
        {"'0.00000000000000001'", 1},
        {"'1e-'", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = xasprintf(
            "{'metadata':{'name':'p','labels':{'biga.dev/role':'host'}},"
            "'spec':{'containers':[{'resources':{'requests':{'cpu':%s}}}]}}",
            cases[i].text);
        if (cases[i].milli >= 0)
            cr_assert_eq(pod_read_ok(text).cpu_milli, cases[i].milli, "%s",
                         text);
        else
            pod_refused(EDOM, text,
                        "spec.containers[0].resources.requests['cpu']: is ");
    }
}

Test(demand_job, cpus_of_all_containers)
{
    cr_assert_eq(
        pod_read_ok(POD("host", "", "",
                        "'containers':[{'resources':{'limits':{'cpu':"
                        "'250m'}}},{'resources':{'requests':{'cpu':1}}}],"
                        "'initContainers':[{'restartPolicy':'Always',"
                        "'resources':{'requests':{'cpu':'1m'}}}]"))
            .cpu_milli,
        1251);
    pod_refused(
        EDOM,
        POD("host", "", "",
            "'containers':[{'resources':{'requests':{'cpu':'4294967'}}},"
            "{'resources':{'requests':{'cpu':'1'}}}]"),
        "resources['cpu']: more than 4294967 over all containers");
}

Test(demand_job, memory_of_the_pair)
{
    static const struct {
        const char *text;
        int64_t mib; /* -1: refused */
    } cases[] = {
        {"'0'", 0},
        {"'1'", 1},
        {"1048577", 2},
        {"'16Gi'", 16384},
        {"'1.5Gi'", 1536},
        {"'1e9'", 954},
        {"'1G'", 954},
        {"'1000M'", 954},
        {"'123456789e-3'", 1},
        {"'128974848000m'", 123},
        {"'4095Ti'", 4095LL << 20},
        {"'4294967295Mi'", 4294967295},
        {"'4294967295.1Mi'", -1},
        {"'4Pi'", -1},
        {"'1Ei'", -1},
        {"'1E'", -1},
        {"'1e99'", -1},
        {"'0e99'", 0},
        {"'1e-99'", 1},
        {"'1KiB'", -1},
        {"'1e1.5'", -1},
        {"'Gi'", -1},
        {"'-1'", -1},
        {"false", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = xasprintf(
            "{'metadata':{'name':'p','labels':{'biga.dev/role':'host'}},"
            "'spec':{'containers':[{'resources':{'requests':{'memory':%s}}}]}}",
            cases[i].text);
        if (cases[i].mib >= 0)
            cr_assert_eq(pod_read_ok(text).memory_mib, cases[i].mib, "%s",
                         text);
        else
            pod_refused(EDOM, text,
                        "spec.containers[0].resources.requests['memory']: is ");
    }
}

Test(demand_job, memory_is_said_once)
{
    struct demand d = pod_read_ok(POD("xpu", "", "'biga.dev/memory-mib':'2048'",
                                      REQUESTS("'memory':'9Gi'")));
    cr_assert_eq(d.memory_mib, 2048);
    cr_assert(demand_is_planned(&d));
    d = pod_read_ok(POD("host", "", "'biga.dev/memory-mib':'2048'",
                        REQUESTS("'memory':'2Gi'")));
    cr_assert_eq(d.memory_mib, 2048);
    d = pod_read_ok(POD("service", "", "'biga.dev/memory-mib':'2048'",
                        REQUESTS("'memory':'2Gi'")));
    cr_assert_eq(d.memory_mib, 0);
    /* two halves of a MiB are one */
    d = pod_read_ok(POD("host", "", "",
                        "'containers':[{'resources':{'limits':{'memory':"
                        "'512Ki'}}},{'resources':{'requests':{'memory':"
                        "'512Ki'}}}]"));
    cr_assert_eq(d.memory_mib, 1);
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/memory-mib':'2048'",
                    REQUESTS("'memory':'2049Mi'")),
                "metadata.annotations['biga.dev/memory-mib']: is 2048, but "
                "resources['memory'] over all containers, in MiB: is 2049; "
                "both must be the same");
    pod_refused(EDOM, POD("xpu", "", "'biga.dev/memory-mib':'2Gi'", ""),
                "metadata.annotations['biga.dev/memory-mib']: is '2Gi', must "
                "be a whole number from 0 to 4294967295");
    pod_refused(EDOM,
                POD("host", "", "",
                    "'containers':[{'resources':{'requests':{'memory':"
                    "'4294967295Mi'}}},{'resources':{'requests':{'memory':"
                    "'1'}}}]"),
                "resources['memory']: more than 4294967295Mi over all "
                "containers");
}

#define SHAPES(text) "'biga.dev/size':'6','biga.dev/shapes':'" text "'"

Test(demand_job, shapes_of_memory)
{
    struct demand d, pair;
    d = pod_read_ok(POD("host", ",'biga.dev/job':'j','biga.dev/pair':'1'",
                        SHAPES("0: cards=1; 1-5: host-memory-mib=1024"),
                        REQUESTS("'memory':'1Gi'")));
    demand_pair(&d, 2, &pair);
    cr_assert_eq(pair.memory_mib, 1024);
    demand_pair(&d, 0, &pair);
    cr_assert_eq(pair.memory_mib, 0);
    pod_refused(EDOM,
                POD("host", ",'biga.dev/job':'j','biga.dev/pair':'1'",
                    SHAPES("0-5: host-memory-mib=1024"),
                    REQUESTS("'memory':'2Gi'")),
                "metadata.annotations['biga.dev/shapes'], host-memory-mib of "
                "pair 1: is 1024, but resources['memory'] over all "
                "containers, in MiB: is 2048; both must be the same");
    /* what is left out is not counted, whoever of the job asks */
    d = pod_read_ok(POD("host", ",'biga.dev/job':'j','biga.dev/pair':'1'",
                        SHAPES("0-5: cards=1"), REQUESTS("'memory':'1Gi'")));
    cr_assert_eq(d.memory_mib, 1024);
    demand_pair(&d, 1, &pair);
    cr_assert_eq(pair.memory_mib, 0);
}

static void expect_nameless(const struct demand *pod, int32_t rank)
{
    struct demand pair, nameless;
    demand_pair(pod, rank, &pair);
    memset(&nameless, 'x', sizeof nameless);
    demand_pair_nameless(pod, rank, &nameless);
    cr_assert_eq(nameless.role, pair.role);
    cr_assert_arr_eq(&nameless.pair, &pair.pair,
                     offsetof(struct demand, n_shapes) -
                         offsetof(struct demand, pair));
    cr_assert_str_empty(nameless.name);
    cr_assert_str_empty(nameless.namespace);
    cr_assert_str_empty(nameless.uid);
    cr_assert_str_empty(nameless.job);
    cr_assert_eq(nameless.n_shapes, 0);
}

Test(demand_job, shapes)
{
    struct demand d = pod_read_ok(
        POD("xpu", ",'biga.dev/job':'j','biga.dev/pair':'5'",
            SHAPES("0: ; 1-4 :cards=2  gpus=1 cores=4 memory-mib=1024 cpus=1.5 "
                   "align=PXB"),
            ""));
    cr_assert_eq(d.n_shapes, 2);
    cr_assert_eq(d.shapes[0].first, 0);
    cr_assert_eq(d.shapes[0].last, 0);
    cr_assert_eq(d.shapes[0].cards, 1);
    cr_assert_eq(d.shapes[0].gpus, 0);
    cr_assert_eq(d.shapes[0].align, RELATION_SYS);
    cr_assert(!d.shapes[0].has_card_need);
    cr_assert_eq(d.shapes[0].cpu_milli, 0);
    cr_assert_eq(d.shapes[1].first, 1);
    cr_assert_eq(d.shapes[1].last, 4);
    cr_assert_eq(d.shapes[1].cards, 2);
    cr_assert_eq(d.shapes[1].gpus, 1);
    cr_assert_eq(d.shapes[1].align, RELATION_PXB);
    cr_assert(d.shapes[1].has_card_need);
    cr_assert_eq(d.shapes[1].card_cores, 4);
    cr_assert_eq(d.shapes[1].card_memory_mib, 1024);
    cr_assert_eq(d.shapes[1].cpu_milli, 1500);
    cr_assert_eq(d.pair_cards, 1); /* not listed: as it says itself */

    struct demand pair;
    demand_pair(&d, 3, &pair);
    cr_assert_eq(pair.role, ROLE_HOST);
    cr_assert_eq(pair.pair, 3);
    cr_assert_eq(pair.cards, 2);
    cr_assert_eq(pair.gpus, 1);
    cr_assert_eq(pair.cpu_milli, 1500);
    cr_assert_eq(pair.align, RELATION_PXB);
    cr_assert_eq(pair.card_cores, 4);
    demand_pair(&d, 5, &pair);
    cr_assert_eq(pair.cards, 1);
    cr_assert(!pair.has_card_need);
    for (int32_t rank = 0; rank < 6; rank++)
        expect_nameless(&d, rank);
}

Test(demand_job, wrong_shapes)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "entry 1: '' must be FIRST[-LAST]: KEY=VALUE …"},
        {"0: cards=1;", "entry 2: '' must be FIRST[-LAST]"},
        {"0 cards=1", "entry 1: '0 cards=1' must be FIRST"},
        {"x: cards=1", "entry 1: 'x' must be the index of a pair"},
        {"00:", "entry 1: '00' must be"},
        {"2-1:", "entry 1: '2-1' must be the index"},
        {"1-:", "entry 1: '1-' must be"},
        {"-1:", "entry 1: '-1' must be"},
        {"99999999999:", "must be the index"},
        {"0:; 3-6: cards=1", "entry 2: '3-6' is beyond the last pair: "
                             "metadata.annotations['biga.dev/size'] is 6"},
        {"2:; 1:", "entry 2: '1' must come after 2, the last pair of"},
        {"0-2:; 2:", "entry 2: '2' must come after 2"},
        {"0: cards=0", "entry 1: cards is '0', must be a whole number from 1"},
        {"0: cards=17", "to 16"},
        {"0: cards=", "cards is '', must be"},
        {"0: cards", "entry 1: 'cards' must be KEY=VALUE, with KEY cards, "},
        {"0: card=1", "entry 1: 'card=…' must be KEY=VALUE"},
        {"0: cards=1 cards=1", "entry 1: cards is given twice"},
        {"0: gpus=+1", "gpus is '+1', must be a whole number from 0 to 16"},
        {"0: cores=4294967296", "cores is '4294967296', must be a whole"},
        {"0: memory-mib=1Gi", "memory-mib is '1Gi'"},
        {"0: cpus=x", "cpus is 'x', must be CPUs such as 2, 1.5 or 500m"},
        {"0: align=near", "align is 'near', must be pix, pxb, phb, node, "},
        {"0:\\u00e9", "at most 1024 printable ASCII characters"},
        {"0:;0:;0:;0:;0:;0:;0:;0:;0:", "must come after"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = xasprintf(
            "{'metadata':{'name':'p','labels':{'biga.dev/role':'host',"
            "'biga.dev/pair':'5'},'annotations':{'biga.dev/size':'6',"
            "'biga.dev/shapes':'%s'}}}",
            cases[i].text);
        pod_refused(EDOM, text, cases[i].want);
        pod_refused(EDOM, text, "metadata.annotations['biga.dev/shapes']: ");
    }
    pod_refused(EDOM,
                POD("host", ",'biga.dev/pair':'9'",
                    "'biga.dev/size':'10',"
                    "'biga.dev/shapes':'0:;1:;2:;3:;4:;5:;6:;7:;8:'",
                    ""),
                "metadata.annotations['biga.dev/shapes']: more than 8 entries");
    pod_refused(EDOM, POD("host", "", "'biga.dev/shapes':'1:'", ""),
                "entry 1: '1' is beyond the last pair");
    struct str s = STR_INIT(20000);
    str_add(&s, "{'metadata':{'name':'p','labels':{'biga.dev/role':'host'},"
                "'annotations':{'biga.dev/shapes':'0:");
    for (int i = 0; i < 1100; i++)
        str_add(&s, " ");
    str_add(&s, "'}}}");
    pod_refused(EDOM, str_text(&s), "at most 1024 printable ASCII");
    str_fini(&s);
}

/* A pod and the shape of its own pair. */
Test(demand_job, own_shape)
{
    /* what the pod leaves open */
    struct demand d = pod_read_ok(
        POD("host", "", SHAPES("0-5: cards=2 gpus=1 cores=4 cpus=2 align=node"),
            ""));
    cr_assert_eq(d.cards, 2);
    cr_assert_eq(d.gpus, 1);
    cr_assert_eq(d.card_cores, 4);
    cr_assert(d.has_card_need);
    cr_assert_eq(d.cpu_milli, 2000);
    cr_assert_eq(d.align, RELATION_NODE);
    /* an xPU pod takes a part of it */
    d = pod_read_ok(
        POD("xpu", "", SHAPES("0-5: cards=2 gpus=1 cores=4 cpus=2"),
            REQUESTS("'biga.dev/card':'1','biga.dev/card-cores':'3'")));
    cr_assert_eq(d.cards, 1);
    cr_assert_eq(d.pair_cards, 2);
    cr_assert_eq(d.gpus, 0);
    cr_assert_eq(d.pair_gpus, 1);
    cr_assert_eq(d.card_cores, 3);
    cr_assert_eq(d.cpu_milli, 2000);
    struct demand pair;
    demand_pair(&d, 0, &pair);
    cr_assert_eq(pair.cards, 2);
    cr_assert_eq(pair.gpus, 1);
    cr_assert_eq(pair.card_cores, 4);
    /* a service is in no pair */
    d = pod_read_ok(POD("service", "", SHAPES("0-5: cards=2"), ""));
    cr_assert_eq(d.cards, 1);
}

/* What the pod says beside must say the same. */
Test(demand_job, own_shape_is_not_contradicted)
{
    pod_refused(
        EDOM, POD("host", "", SHAPES("0: cards=2") ",'biga.dev/cards':'1'", ""),
        "metadata.annotations['biga.dev/cards']: is 1, but "
        "metadata.annotations['biga.dev/shapes'], cards of pair 0: is 2; "
        "both must be the same");
    pod_refused(
        EDOM,
        POD("host", "", SHAPES("0: cards=2"), REQUESTS("'biga.dev/card':'1'")),
        "metadata.annotations['biga.dev/shapes'], cards of pair 0: is "
        "'2', but the containers ask for 1 of resource biga.dev/card");
    pod_refused(
        EDOM,
        POD("host", "", SHAPES("0: cards=2"), REQUESTS("'nvidia.com/gpu':'1'")),
        "gpus of pair 0: is 0, but sum of GPU resources over all "
        "containers: is 1");
    pod_refused(EDOM,
                POD("host", "", SHAPES("0: cpus=2"), REQUESTS("'cpu':'1'")),
                "cpus of pair 0: is 2000m, but resources['cpu'] over all "
                "containers: is 1000m");
    pod_refused(
        EDOM,
        POD("host", "", SHAPES("0: cores=4"),
            REQUESTS("'biga.dev/card-cores':'3'")),
        "cores of pair 0: is 4, but resources['biga.dev/card-cores']: is "
        "3");
    pod_refused(EDOM,
                POD("xpu", "", SHAPES("0: memory-mib=4"),
                    REQUESTS("'biga.dev/card-memory-mib':'5'")),
                "memory-mib of pair 0: is 4, but "
                "resources['biga.dev/card-memory-mib']: is 5");
    pod_refused(
        EDOM,
        POD("host", "", SHAPES("0: align=pix") ",'biga.dev/align':'sys'", ""),
        "metadata.annotations['biga.dev/align']: is SYS, but "
        "metadata.annotations['biga.dev/shapes'], align of pair 0: is "
        "PIX");
}
