/* What a pod asks. In the texts below ' stands for ". */
#include <criterion/criterion.h>
#include <dirent.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"
#include "model/topo/card_rights.h"
#include "tests/lib/podtext.h"
#include "tests/lib/testdata.h"

Test(demand, a_refused_pod_is_named)
{
    struct demand d;
    struct error err = {0};
    const char *text =
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u-1\","
        "\"labels\":{\"biga.dev/role\":\"card\"}}}";
    cr_assert_eq(pod_read_bytes(text, strlen(text), &d, &err), -EDOM);
    cr_expect_str_eq(d.name, "p");
    cr_expect_str_eq(d.namespace, "ns");
    cr_expect_str_eq(d.uid, "u-1");
}

Test(demand, defaults)
{
    struct demand d = pod_read_ok(POD("host", "", "", ""));
    cr_assert_str_eq(d.name, "p");
    cr_assert_str_eq(d.namespace, "ns");
    cr_assert_str_eq(d.uid, "u-1");
    cr_assert_eq(d.role, ROLE_HOST);
    cr_assert_str_eq(d.job, "");
    cr_assert_eq(d.pair, 0);
    cr_assert_eq(d.size, 1);
    cr_assert_eq(d.cards, 1);
    cr_assert_eq(d.pair_cards, 1);
    cr_assert_eq(d.gpus, 0);
    cr_assert_eq(d.align, RELATION_SYS);
    cr_assert(!d.exclusive && !d.has_card_need);
    cr_assert_str_eq(d.arch, "");
    cr_assert_eq(d.priority, 0);
}

Test(demand, no_role_is_not_ours)
{
    cr_assert_eq(pod_read_ok("{}").role, ROLE_NONE);
    cr_assert_eq(pod_read_ok("{'metadata':null,'spec':null}").role, ROLE_NONE);
    cr_assert_eq(pod_read_ok("{'metadata':{'labels':null,'annotations':null},"
                             "'spec':{'containers':null}}")
                     .role,
                 ROLE_NONE);
    /* what is wrong does not matter then */
    struct demand d = pod_read_ok(
        "{'metadata':{'name':'p','annotations':{'biga.dev/cards':'x'}},'spec':"
        "{" REQUESTS("'biga.dev/card':'-1'") "}}");
    cr_assert_eq(d.role, ROLE_NONE);
    cr_assert_eq(d.cards, 0);
    cr_assert_str_eq(d.namespace, "default");
    d = pod_read_ok("{'metadata':{'name':'a b','namespace':'n'}}");
    cr_assert_eq(d.role, ROLE_NONE);
    cr_assert_str_eq(d.name, "");
}

Test(demand, everything_stated)
{
    struct demand d = pod_read_ok(
        POD("xpu", ",'biga.dev/job':'ring','biga.dev/pair':'12'",
            "'biga.dev/size':'16','biga.dev/cards':'2','biga.dev/align':'pxb',"
            "'biga.dev/exclusive':'true','biga.dev/arch':'arm64',"
            "'biga.dev/devices':'snap, rdma'",
            "'priority':-5," REQUESTS("'biga.dev/card':'1',"
                                      "'biga.dev/card-cores':'4',"
                                      "'biga.dev/card-memory-mib':'2k'")));
    cr_assert_eq(d.role, ROLE_XPU);
    cr_assert_str_eq(d.job, "ring");
    cr_assert_eq(d.pair, 12);
    cr_assert_eq(d.size, 16);
    cr_assert_eq(d.cards, 1);
    cr_assert_eq(d.pair_cards, 2);
    cr_assert_eq(d.align, RELATION_PXB);
    cr_assert(d.exclusive && d.has_card_need);
    cr_assert_eq(d.card_cores, 4);
    cr_assert_eq(d.card_memory_mib, 2000);
    cr_assert_str_eq(d.arch, "arm64");
    cr_assert_str_eq(d.devices.text, "rdma snap");
    cr_assert_eq(d.priority, -5);
    cr_assert_eq(pod_read_ok(POD("service", "", "", "")).role, ROLE_SERVICE);
}

Test(demand, rights_beyond_what_every_pod_has)
{
    static const struct {
        const char *spec;
        uint64_t rights;
    } cases[] = {
        {"'hostPID':true,'hostIPC':false", CARD_RIGHTS_HOST_PID},
        {"'hostIPC':true,'hostPID':null", CARD_RIGHTS_HOST_IPC},
        {"'initContainers':[{'securityContext':{'privileged':true}}]",
         CARD_RIGHTS_PRIVILEGED},
        {"'containers':[{'securityContext':{'privileged':false,"
         "'capabilities':{'drop':['SYS_ADMIN'],'add':['CAP_IPC_LOCK','KILL']}"
         "}},{'securityContext':null},{'securityContext':{'capabilities':{"
         "'add':null}}}]",
         CARD_RIGHTS_IPC_LOCK},
        {"'containers':[{'securityContext':{'capabilities':{'add':"
         "['NEW_ONE',7]}}}]",
         CARD_RIGHTS_ANY_CAPABILITY},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *xpu = xasprintf(
            "{'metadata':{'name':'p','namespace':'n','uid':'u','labels':{"
            "'biga.dev/role':'xpu'}},'spec':{%s}}",
            cases[i].spec);
        cleanup_free char *host = xasprintf(
            "{'metadata':{'name':'p','namespace':'n','uid':'u','labels':{"
            "'biga.dev/role':'host'}},'spec':{%s}}",
            cases[i].spec);
        cr_expect_eq(pod_read_ok(xpu).rights, cases[i].rights, "%s",
                     cases[i].spec);
        cr_expect_eq(pod_read_ok(host).rights, 0u, "on its host");
    }
}

Test(demand, members_in_any_order_and_escaped)
{
    struct demand d = pod_read_ok("{'spec':{" REQUESTS(
        "'biga.dev\\/card-cores':'\\u0034'") ",'schedulingGroup':{'"
                                             "podGroupName':'pg'}},'status':{'"
                                             "a':[1,{}]},"
                                             "'metadata':{'annotations':{'biga."
                                             "dev/\\u0063ards':'\\u0033'},"
                                             "'labels':{'x':'y','biga.dev/"
                                             "role':'ho\\u0073t'},'name':'"
                                             "p\\u002da'}"
                                             "}");
    cr_assert_eq(d.role, ROLE_HOST);
    cr_assert_str_eq(d.name, "p-a");
    cr_assert_str_eq(d.job, "pg");
    cr_assert_eq(d.cards, 3);
    cr_assert_eq(d.card_cores, 4);
    cr_assert(d.has_card_need);
}

Test(demand, job_and_pair_by_preference)
{
#define BATCH                              \
    ",'batch.kubernetes.io/job-name':'b'," \
    "'batch.kubernetes.io/job-completion-index':'7'"
    struct demand d = pod_read_ok(POD("host", BATCH, "", ""));
    cr_assert_str_eq(d.job, "b");
    cr_assert_eq(d.pair, 7);
    cr_assert_not(d.grouped);
    d = pod_read_ok(POD("host", BATCH,
                        "'batch.kubernetes.io/job-completion-index':'8'",
                        "'schedulingGroup':{'podGroupName':'pg.1'}"));
    cr_assert_str_eq(d.job, "pg.1");
    cr_assert_eq(d.pair, 8);
    d = pod_read_ok(POD("host", BATCH ",'biga.dev/job':'j','biga.dev/pair':'9'",
                        "'batch.kubernetes.io/job-completion-index':'8'",
                        "'schedulingGroup':{'podGroupName':'pg'}"));
    cr_assert_str_eq(d.job, "j");
    cr_assert_eq(d.pair, 9);
    cr_assert(d.grouped);
    char key[DEMAND_PAIR_KEY_MAX];
    demand_pair_key(&d, key);
    cr_assert_str_eq(key, "ns/j/9");
    d = pod_read_ok(POD("host", "", "", ""));
    demand_pair_key(&d, key);
    cr_assert_str_eq(key, "ns/p");
}

/* Kubeflow's operators label the workers of an MPIJob so. */
Test(demand, job_and_pair_of_an_mpijob)
{
#define MPIJOB                                       \
    ",'training.kubeflow.org/job-name':'solver',"    \
    "'training.kubeflow.org/replica-type':'worker'," \
    "'training.kubeflow.org/replica-index':'3'"
    struct demand d =
        pod_read_ok(POD("host", MPIJOB, "'biga.dev/size':'4'", ""));
    cr_assert_str_eq(d.job, "solver");
    cr_assert_eq(d.pair, 3);
    d = pod_read_ok(POD("host",
                        MPIJOB ",'batch.kubernetes.io/job-name':'b',"
                               "'batch.kubernetes.io/job-completion-index':'7'",
                        "", ""));
    cr_assert_str_eq(d.job, "b");
    cr_assert_eq(d.pair, 7);
    pod_refused(EDOM, POD("host", MPIJOB, "'biga.dev/size':'3'", ""),
                "metadata.labels['training.kubeflow.org/replica-index']: is "
                "'3', but");
}

/* A pod with a buddy has a job that both can name. */
Test(demand, job_of_a_buddy)
{
    struct demand d = pod_read_ok(POD("host", "", "'biga.dev/buddy':'t'", ""));
    cr_assert_str_eq(d.job, "p");
    d = pod_read_ok(
        POD("host", ",'biga.dev/job':'j'", "'biga.dev/buddy':'t'", ""));
    cr_assert_str_eq(d.job, "j");
    d = pod_read_ok(POD("xpu", "", "'biga.dev/buddy':'t'", ""));
    cr_assert_str_eq(d.job, "");
    pod_refused(EDOM, POD("host", "", "'biga.dev/buddy':'-'", ""),
                "metadata.annotations['biga.dev/buddy']: is '-'");
    pod_refused(
        EDOM,
        "{'metadata':{'namespace':'ns','name':'p0123456789012345678901"
        "234567890123456789012345678901234567890123456789','labels':{"
        "'biga.dev/role':'host'},'annotations':{'biga.dev/buddy':'t'}}}",
        "metadata.labels['biga.dev/job']: is missing");
}

/* It decides no place, but what is none is refused. */
Test(demand, patience_with_a_lost_card)
{
    (void)pod_read_ok(POD("service", "", "'biga.dev/card-lost':'5m'", ""));
    (void)pod_read_ok(POD("xpu", "", "'biga.dev/card-lost':'never'", ""));
    pod_refused(EDOM, POD("xpu", "", "'biga.dev/card-lost':'5 min'", ""),
                "metadata.annotations['biga.dev/card-lost']: is '5 min', must");
}

/* The annotation speaks of the pair, the resource of the pod. */
Test(demand, cards_of_pair_and_pod)
{
    static const struct {
        const char *role, *annotation, *resource;
        unsigned cards, pair_cards;
    } cases[] = {
        {"host", "", "", 1, 1},
        {"host", "'biga.dev/cards':'2'", "", 2, 2},
        {"host", "", "'biga.dev/card':'2'", 2, 2},
        {"host", "'biga.dev/cards':'2'", "'biga.dev/card':'2'", 2, 2},
        {"xpu", "", "'biga.dev/card':'2'", 2, 2},
        {"xpu", "'biga.dev/cards':'2'", "", 2, 2},
        {"xpu", "'biga.dev/cards':'2'", "'biga.dev/card':'1'", 1, 2},
        {"xpu", "'biga.dev/cards':'16'", "'biga.dev/card':'0'", 16, 16},
        {"service", "", "'biga.dev/card':'16'", 16, 16},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text =
            xasprintf("{'metadata':{'name':'p','labels':{'biga.dev/role':'%s'},"
                      "'annotations':{%s}},'spec':{" REQUESTS("%s") "}}",
                      cases[i].role, cases[i].annotation, cases[i].resource);
        struct demand d = pod_read_ok(text);
        cr_assert_eq(d.cards, cases[i].cards, "%s", text);
        cr_assert_eq(d.pair_cards, cases[i].pair_cards, "%s", text);
    }
    const char *one = "metadata.annotations['biga.dev/cards']: is '1', but "
                      "the containers ask for 2 of resource biga.dev/card";
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/cards':'1'",
                    REQUESTS("'biga.dev/card':'2'")),
                one);
    pod_refused(
        EDOM,
        POD("xpu", "", "'biga.dev/cards':'1'", REQUESTS("'biga.dev/card':'2'")),
        one);
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/cards':'3'",
                    REQUESTS("'biga.dev/card':'2'")),
                "must be as many");
    pod_refused(EDOM,
                POD("service", "", "'biga.dev/cards':'3'",
                    REQUESTS("'biga.dev/card':'2'")),
                "must be as many");
    pod_refused(EDOM, POD("xpu", "", "", REQUESTS("'biga.dev/card':'17'")),
                "is 17 over all containers, must be at most 16");
}

static struct demand of_containers(const char *spec)
{
    cleanup_free char *text =
        xasprintf("{'metadata':{'name':'p','labels':{'biga.dev/role':'xpu'}},"
                  "'spec':{%s}}",
                  spec);
    return pod_read_ok(text);
}

#define CORES(n) "{'resources':{'requests':{'biga.dev/card-cores':'" n "'}}}"
#define SIDECAR(n)                                        \
    "{'restartPolicy':'Always','resources':{'requests':{" \
    "'biga.dev/card-cores':'" n "'}}}"

/* As Kubernetes computes effective requests. */
Test(demand, resources_over_containers)
{
    cr_assert_eq(of_containers("'containers':[" CORES("2") "," CORES("3") "]")
                     .card_cores,
                 5);
    cr_assert_eq(of_containers("'initContainers':[" CORES(
                                   "9") "],"
                                        "'containers':[" CORES("2") "]")
                     .card_cores,
                 9);
    cr_assert_eq(of_containers("'containers':[" CORES(
                                   "2") "],"
                                        "'initContainers':[" CORES("1") "]")
                     .card_cores,
                 2);
    /* a sidecar stays: before the init container after it, and beside the
     * containers */
    cr_assert_eq(of_containers("'initContainers':[" SIDECAR("4") "," CORES(
                                   "5") "],'containers':[" CORES("2") "]")
                     .card_cores,
                 9);
    cr_assert_eq(of_containers("'initContainers':[" CORES("5") "," SIDECAR(
                                   "4") "],'containers':[" CORES("2") "]")
                     .card_cores,
                 6);
    /* a request, or else the limit */
    cr_assert_eq(of_containers("'containers':[{'resources':{'limits':{"
                               "'biga.dev/card-cores':3}}}]")
                     .card_cores,
                 3);
    cr_assert_eq(of_containers("'containers':[{'resources':{'limits':{"
                               "'biga.dev/card-cores':'3'},'requests':{"
                               "'biga.dev/card-cores':'2'}}}]")
                     .card_cores,
                 2);
    cr_assert_eq(of_containers("'containers':[{'resources':{'limits':null,"
                               "'requests':{'biga.dev/card-cores':null}}},"
                               "null,{'resources':null},{}]")
                     .has_card_need,
                 false);
}

Test(demand, quantities)
{
    static const struct {
        const char *text;
        int64_t value; /* -1: refused */
    } cases[] = {
        {"'0'", 0},
        {"'4'", 4},
        {"7", 7},
        {"'4k'", 4000},
        {"'4M'", 4000000},
        {"'1G'", 1000000000},
        {"'2Ki'", 2048},
        {"'2Mi'", 2097152},
        {"'2Gi'", INT64_C(2147483648)},
        {"'4294967295'", UINT32_MAX},
        {"'007'", 7},
        {"'4294967296'", -1},
        {"'4Gi'", -1},
        {"'99999999999999999999'", -1},
        {"''", -1},
        {"'k'", -1},
        {"'-1'", -1},
        {"'+1'", -1},
        {"'1.5'", -1},
        {"1.5", -1},
        {"-1", -1},
        {"1e3", -1},
        {"'1e3'", -1},
        {"'500m'", -1},
        {"' 1'", -1},
        {"'1 '", -1},
        {"'1K'", -1},
        {"'1kk'", -1},
        {"'1T'", -1},
        {"true", -1},
        {"[]", -1},
        {"{'a':1}", -1},
        {"'111111111111111111111111111111111111111111111111111111111111"
         "11111111111111111111'",
         -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = xasprintf(
            "{'metadata':{'name':'p','labels':{'biga.dev/role':'xpu'}},"
            "'spec':{'containers':[{},"
            "{'resources':{'requests':{"
            "'biga.dev/card-memory-mib':%s}}}]}}",
            cases[i].text);
        if (cases[i].value >= 0)
            cr_assert_eq(pod_read_ok(text).card_memory_mib, cases[i].value,
                         "%s", text);
        else
            pod_refused(EDOM, text,
                        "spec.containers[1].resources.requests["
                        "'biga.dev/card-memory-mib']: is ");
    }
    pod_refused(
        EDOM,
        POD("xpu", "", "", "'containers':[" CORES("3G") "," CORES("3G") "]"),
        "more than 4294967295 over all containers");
}

Test(demand, gpus_of_the_host_pod_alone)
{
    const char *gpus = REQUESTS("'nvidia.com/gpu':'2','amd.com/gpu':1,"
                                "'example.com/gpu':'4'");
    cleanup_free char *host =
        xasprintf("{'metadata':{'name':'p','labels':{'biga.dev/role':'host'}},"
                  "'spec':{%s}}",
                  gpus);
    cr_assert_eq(pod_read_ok(host).gpus, 3);
    cr_assert_eq(
        pod_read_ok(POD("xpu", "", "", REQUESTS("'nvidia.com/gpu':'2'"))).gpus,
        0);
    cr_assert_eq(
        pod_read_ok(POD("host", "", "", REQUESTS("'nvidia.com/gpu':'3k'")))
            .gpus,
        UINT8_MAX);
    pod_refused(EDOM, POD("host", "", "", REQUESTS("'amd.com/gpu':'1m'")),
                "spec.containers[0].resources.requests['amd.com/gpu']");
}

Test(demand, wrong_values_name_path_value_and_what_is_allowed)
{
    pod_refused(EDOM, POD("card", "", "", ""),
                "metadata.labels['biga.dev/role']: is 'card', must be 'host', "
                "'xpu' or 'service'");
    pod_refused(EDOM, POD("", "", "", ""), "is ''");
    pod_refused(EDOM, POD("HOST", "", "", ""), "is 'HOST'");
    pod_refused(
        EDOM, POD("host", "", "'biga.dev/cards':'x'", ""),
        "metadata.annotations['biga.dev/cards']: is 'x', must be a whole "
        "number from 1 to 16");
    pod_refused(EDOM, POD("host", "", "'biga.dev/cards':'0'", ""), "1 to 16");
    pod_refused(EDOM, POD("host", "", "'biga.dev/cards':'17'", ""), "1 to 16");
    pod_refused(EDOM, POD("host", "", "'biga.dev/cards':'02'", ""), "1 to 16");
    pod_refused(EDOM, POD("host", "", "'biga.dev/size':'0'", ""),
                "from 1 to 65536");
    pod_refused(EDOM, POD("host", "", "'biga.dev/size':'99999999999'", ""),
                "from 1 to 65536");
    pod_refused(EDOM, POD("host", ",'biga.dev/pair':'-1'", "", ""),
                "metadata.labels['biga.dev/pair']: is '-1', must be a whole "
                "number from 0 to 999999");
    pod_refused(EDOM, POD("host", ",'biga.dev/job':'a/b'", "", ""),
                "metadata.labels['biga.dev/job']: is 'a/b'");
    pod_refused(EDOM, POD("host", ",'biga.dev/job':''", "", ""), "is ''");
    pod_refused(EDOM,
                POD("host", "", "",
                    "'schedulingGroup':{'podGroupName':"
                    "'-a'}"),
                "spec.schedulingGroup.podGroupName: is '-a'");
    pod_refused(EDOM, POD("host", "", "'biga.dev/align':'near'", ""),
                "must be 'pix', 'pxb', 'phb', 'node', 'socket' or 'sys'");
    pod_refused(EDOM, POD("host", "", "'biga.dev/exclusive':'yes'", ""),
                "must be 'true' or 'false'");
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/arch':'a very long arch.'", ""),
                "metadata.annotations['biga.dev/arch']");
    pod_refused(EDOM, "{'metadata':{'labels':{'biga.dev/role':'host'}}}",
                "metadata.name: missing");
    pod_refused(EDOM,
                "{'metadata':{'name':'','labels':{'biga.dev/role':'host'}}}",
                "metadata.name: is ''");
    pod_refused(EDOM,
                "{'metadata':{'name':'a b','labels':{'biga.dev/role':"
                "'host'}}}",
                "metadata.name: is 'a b'");
}

Test(demand, edges_of_values)
{
    cr_assert(!pod_read_ok(POD("host", "", "'biga.dev/exclusive':'false'", ""))
                   .exclusive);
    cr_assert_eq(
        pod_read_ok(POD("host", "", "'biga.dev/align':'Socket'", "")).align,
        RELATION_SOCKET);
    cr_assert_eq(pod_read_ok(POD("host", ",'biga.dev/pair':'0'", "", "")).pair,
                 0);
    cr_assert_eq(
        pod_read_ok(POD("host", ",'biga.dev/pair':'999999'", "", "")).pair,
        999999);
    cr_assert_eq(pod_read_ok(POD("host", ",'biga.dev/pair':'65535'",
                                 "'biga.dev/size':'65536'", ""))
                     .size,
                 DEMAND_SIZE_MAX);
    pod_refused(EDOM, POD("host", "", "'biga.dev/size':'65537'", ""), "65536");
    pod_refused(
        EDOM, POD("xpu", ",'biga.dev/pair':'4'", "'biga.dev/size':'4'", ""),
        "metadata.labels['biga.dev/pair']: is '4', but "
        "metadata.annotations['biga.dev/size'] is '4'; must be from 0 to "
        "3");
    pod_refused(
        EDOM,
        POD("host", "",
            "'biga.dev/size':'1',"
            "'batch.kubernetes.io/job-completion-index':'1'",
            ""),
        "metadata.annotations['batch.kubernetes.io/job-completion-index']: "
        "is '1', but");
    pod_refused(EDOM, POD("host", ",'biga.dev/pair':'00'", "", ""), "is '00'");
    pod_refused(EDOM, POD("host", ",'biga.dev/pair':'1:'", "", ""), "is '1:'");
    pod_refused(EDOM, POD("host", ",'biga.dev/pair':''", "", ""), "is ''");
    pod_refused(EDOM, POD("host", ",'biga.dev/pair':'1000000'", "", ""),
                "999999");
    pod_refused(EDOM, POD("host", "", "'biga.dev/exclusive':'TRUE'", ""),
                "TRUE");
    pod_refused(EDOM,
                POD("host", "", "'biga.dev/exclusive':'true, or false'", ""),
                "is 'true, or false'");
    pod_refused(EDOM, POD("host", "", "'biga.dev/align':'closer than pix'", ""),
                "is 'closer than pix'");
}

Test(demand, edges_of_names)
{
    pod_refused(EDOM, POD("host", "", "'biga.dev/arch':'a{b'", ""), "is 'a{b'");
    pod_refused(EDOM, POD("xpu", "", "'biga.dev/devices':'rdma,a_b'", ""),
                "metadata.annotations['biga.dev/devices']: 'a_b' must be the "
                "name of a set of devices");
    pod_refused(EDOM, POD("host", ",'biga.dev/job':'a-'", "", ""), "is 'a-'");
    pod_refused(EDOM, POD("host", ",'biga.dev/job':'-a'", "", ""), "is '-a'");
    pod_refused(EDOM, POD("host", ",'biga.dev/job':'a@b'", "", ""), "is 'a@b'");
    pod_refused(EDOM,
                "{'metadata':{'name':'p','namespace':'a b','labels':{"
                "'biga.dev/role':'host'}}}",
                "metadata.namespace: is 'a b'");
    pod_refused(EDOM,
                "{'metadata':{'name':'p','uid':'a b','labels':{"
                "'biga.dev/role':'host'}}}",
                "metadata.uid: is 'a b'");
    struct demand d = pod_read_ok(
        "{'metadata':{'name':'p','namespace':'','uid':"
        "'','labels':{'biga.dev/role':'host'}}}");
    cr_assert_str_eq(d.namespace, "default");
    cr_assert_str_eq(d.uid, "");
    /* the first of two wrong quantities is told; others are not looked at */
    pod_refused(EDOM,
                POD("xpu", "", "",
                    "'containers':[{'resources':{'claims':[],"
                    "'limits':{'biga.dev/card':'x','biga.dev/card-cores':"
                    "'y'}}}]"),
                "limits['biga.dev/card']: is 'x'");
}

Test(demand, texts_are_capped)
{
    char name[400], text[900];
    for (size_t n = 250; n < 260; n++) {
        memset(name, 'a', n);
        name[n] = '\0';
        (void)snprintf(text, sizeof text,
                       "{'metadata':{'name':'%s','labels':{'biga.dev/role':"
                       "'host'}}}",
                       name);
        if (n <= DEMAND_NAME_MAX)
            cr_assert_eq(strlen(pod_read_ok(text).name), n);
        else
            pod_refused(EDOM, text, "aaaa…', must be 1 to 253 letters");
    }
    struct str s = STR_INIT(100000);
    str_add(&s, "{'metadata':{'name':'");
    for (int i = 0; i < 300; i++)
        str_add(&s, "\\u00e9");
    str_add(&s, "','labels':{'biga.dev/role':'host'}}}");
    pod_refused(EDOM, str_text(&s), "metadata.name");
    /* a long value is not cut within a character */
    str_reset(&s);
    str_add(&s, "{'metadata':{'name':'a");
    for (int i = 0; i < 40; i++)
        str_add(&s, "é");
    str_add(&s, "','labels':{'biga.dev/role':'host'}}}");
    pod_refused(EDOM, str_text(&s), "éé…', must be");
    str_fini(&s);
}

/* The request's fault, not the pod's: with the path. */
Test(demand, wrong_types_and_duplicates)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"null", "the pod: must be an object"},
        {"[]", "the pod: must be an object"},
        {"{'metadata':[]}", "metadata: must be an object"},
        {"{'metadata':{'name':1}}", "metadata.name: must be a string"},
        {"{'metadata':{'labels':[]}}", "metadata.labels: must be an object"},
        {"{'metadata':{'labels':{'biga.dev/role':1}}}",
         "metadata.labels['biga.dev/role']: must be a string"},
        {"{'metadata':{'annotations':{'biga.dev/cards':2}}}",
         "metadata.annotations['biga.dev/cards']: must be a string"},
        {"{'spec':'x'}", "spec: must be an object"},
        {"{'spec':{'priority':'1'}}", "spec.priority: must be a whole number"},
        {"{'spec':{'priority':1.5}}", "spec.priority: is 1.5, must be"},
        {"{'spec':{'containers':{}}}", "spec.containers: must be a list"},
        {"{'spec':{'containers':[1]}}",
         "spec.containers[0]: must be an object"},
        {"{'spec':{'initContainers':[{},{'resources':[]}]}}",
         "spec.initContainers[1].resources: must be an object"},
        {"{'spec':{'containers':[{'resources':{'limits':1}}]}}",
         "spec.containers[0].resources.limits: must be an object"},
        {"{'spec':{'schedulingGroup':1}}", "spec.schedulingGroup: must be"},
        {"{'metadata':{},'metadata':{}}", "metadata: given twice"},
        {"{'spec':{},'spec':{}}", "spec: given twice"},
        {"{'metadata':{'uid':'a','uid':'a'}}", "metadata.uid: given twice"},
        {"{'metadata':{'labels':{},'labels':{}}}",
         "metadata.labels: given twice"},
        {"{'metadata':{'annotations':{},'\\u0061nnotations':{}}}",
         "metadata.annotations: given twice"},
        {"{'metadata':{'labels':{'biga.dev/role':'host','biga.dev/role':"
         "null}}}",
         "metadata.labels['biga.dev/role']: given twice"},
        {"{'spec':{'priority':1,'priority':1}}", "spec.priority: given twice"},
        {"{'spec':{'containers':[],'containers':[]}}",
         "spec.containers: given twice"},
        {"{'spec':{'containers':[{'resources':{},'resources':{}}]}}",
         "spec.containers[0].resources: given twice"},
        {"{'spec':{'containers':[{'resources':{'limits':{},'limits':{}}}]}}",
         "spec.containers[0].resources.limits: given twice"},
        {"{'spec':{'containers':[{'resources':{'limits':{"
         "'biga.dev/card':1,'biga.dev/card':1}}}]}}",
         "spec.containers[0].resources.limits['biga.dev/card']: given twice"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        pod_refused(EINVAL, cases[i].text, cases[i].want);
    /* members that are not read may come twice, and in other spellings */
    cr_assert_eq(pod_read_ok("{'status':1,'status':2,'Metadata':3}").role,
                 ROLE_NONE);
}

/* Cut anywhere, a pod is malformed and said to be so with the position. */
Test(demand, cut_short)
{
    cleanup_free char *json = pod_quoted(
        POD("xpu", ",'biga.dev/job':'j'", "'biga.dev/cards':'2'",
            "'priority':1,'initContainers':[" SIDECAR("1") "]," REQUESTS(
                "'biga.dev/card':'1','nvidia.com/gpu':2")));
    size_t size = strlen(json);
    for (size_t n = 0; n < size; n++) {
        cleanup_free char *cut = xmemdup(json, n ? n : 1);
        struct demand d;
        struct error err = {0};
        cr_assert_eq(pod_read_bytes(cut, n, &d, &err), -EINVAL, "%zu", n);
        cr_assert(strstr(err.text, "(byte "), "%s", err.text);
    }
}

Test(demand, names_of_roles)
{
    cr_assert_str_eq(pod_role_name(ROLE_NONE), "");
    cr_assert_str_eq(pod_role_name(ROLE_SERVICE), "service");
    cr_assert_str_eq(pod_role_name((enum pod_role)9), "");
}

/* Every pod that real kube-schedulers sent is read. */
Test(demand, captured_pods)
{
    const char *base = testdata_dir();
    if (!base)
        cr_skip_test("no test data: set BIGA_DATA");
    cleanup_free char *folder = xasprintf("%s/captures", base);
    DIR *dir = opendir(folder);
    unsigned n = 0;
    cr_assert_not_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".http") != 0)
            continue;
        size_t size;
        cleanup_free char *path = xasprintf("%s/%s", folder, e->d_name);
        cleanup_free char *data = testdata_read(path, &size);
        const char *pod = strstr(data, "{\"Pod\":");
        if (!pod)
            continue; /* a bind */
        struct demand_config config;
        struct demand d;
        struct error err = {0};
        struct jscan s;
        demand_config_default(&config);
        pod += strlen("{\"Pod\":");
        jscan_init(&s, pod, size - (size_t)(pod - data));
        cr_assert_eq(demand_read(&s, &config, &d, &err), 0, "%s: %s", e->d_name,
                     err.text);
        cr_assert(d.name[0] && d.namespace[0] && d.uid[0]);
        n++;
    }
    (void)closedir(dir);
    cr_assert(n > 20, "%u", n);
}
