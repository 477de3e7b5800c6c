/* biga demo: first fit, its fabric and pods, and its verdict. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/demo/demo_fabric.h"
#include "cli/demo/demo_pods.h"
#include "cli/demo/demo_report.h"
#include "cli/demo/firstfit.h"
#include "cli/verb/host.h"
#include "model/pod/demand.h"
#include "tests/lib/hosttext.h"

/* --- first fit and the verdict -------------------------------------------- */

Test(firstfit, takes_what_comes_first)
{
    struct host h[2] = {0};
    struct placement at[5];
    bool taken[2][8] = {{false}};
    bool *const all[] = {taken[0], taken[1]};
    struct publisher fleet = {h, 2, all};
    make_host(HOST("n1"), &h[0]);
    make_host(HOST("n2"), &h[1]);
    firstfit(&fleet, 5, at);
    for (size_t i = 0; i < 4; i++) {
        cr_assert(at[i].placed);
        cr_assert_eq(at[i].host, i / 2);
        cr_assert_eq(at[i].card, i % 2);
        cr_assert_eq(at[i].gpu, 2 + i % 2);
        cr_assert_eq(at[i].relation, RELATION_SYS);
    }
    cr_assert_not(at[4].placed);
    host_fini(&h[0]);
    host_fini(&h[1]);
}

Test(firstfit, the_best_there_is)
{
    struct host h[2] = {0};
    enum relation best[5];
    bool taken[2][8] = {{false}};
    bool *const all[] = {taken[0], taken[1]};
    struct publisher fleet = {h, 2, all};
    make_host(HOST("n1"), &h[0]);
    make_host(HOST("n2"), &h[1]);
    cr_assert_eq(best_relations(&fleet, 5, best), 4);
    cr_assert_eq(best[0], RELATION_PIX);
    cr_assert_eq(best[1], RELATION_PIX);
    cr_assert_eq(best[2], RELATION_PXB);
    cr_assert_eq(best[3], RELATION_PXB);
    cr_assert_eq(best_relations(&fleet, 1, best), 1);
    host_fini(&h[0]);
    host_fini(&h[1]);
}

struct member {
    const char *role;
    int pair;
    const char *card, *gpu; /* gpu NULL: none */
};

/* The answer of /v1/allocations with these members, ended by a NULL role. */
static cJSON *allocations(const struct member *members)
{
    cleanup_str struct str text = STR_INIT(65536);
    str_add(&text, "{\"items\":[");
    for (const struct member *m = members; m->role; m++) {
        str_addf(&text,
                 "%s{\"pod\":{\"namespace\":\"demo\",\"name\":\"p\","
                 "\"role\":\"%s\",\"job\":\"%s\",\"pair\":%d},"
                 "\"node\":\"n1\",\"alignment\":{\"relation\":\"PXB\"},"
                 "\"cards\":[{\"id\":\"%s\"}],\"gpus\":[",
                 m == members ? "" : ",", m->role,
                 strcmp(m->role, "service") == 0 ? "" : "allreduce", m->pair,
                 m->card);
        if (m->gpu)
            str_addf(&text, "{\"id\":\"%s\"}", m->gpu);
        str_add(&text, "],\"numa\":0}");
    }
    str_add(&text, "]}");
    return parse(str_text(&text));
}

static bool verdict(cJSON *json, struct str *text)
{
    cleanup_host struct host h = {0};
    struct demo_report r;
    make_host(HOST("n1"), &h);
    demo_report_init(&r, &h, 1, 2, json);
    demo_report_pairs(&r, false, text);
    demo_report_summary(&r, text);
    demo_report_picture(&r, json, false, text);
    bool good = demo_report_check(&r, text);
    demo_report_fini(&r);
    cJSON_Delete(json);
    return good;
}

Test(report, a_job_that_got_the_best)
{
    static const struct member members[] = {
        {"xpu", 0, "card-0", NULL},     {"host", 0, "card-0", "gpu-1"},
        {"host", 1, "card-1", "gpu-0"}, {"xpu", 1, "card-1", NULL},
        {"service", 0, "card-1", NULL}, {0},
    };
    cleanup_str struct str text = STR_INIT(16384);
    cr_assert(verdict(allocations(members), &text), "%s", str_text(&text));
    static const char *const parts[] = {
        ("   0  n1    0000:10:00.0  0000:11:00.0  PIX          0  same     "
         "| n1 SYS"),
        "Biga:       2 of 2 pairs aligned",
        "First fit:  0 of 2 pairs aligned",
        "2 across NUMA nodes",
        "service runs on 1 cards",
        "◀ pair 0 xPU",
        "◀ pair 1 host, PXB",
        "◀ pair 1 xPU, p\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        cr_assert_not_null(strstr(str_text(&text), parts[i]), "%s\nin\n%s",
                           parts[i], str_text(&text));
}

static void assert_told(const struct member *members, const char *what)
{
    cleanup_str struct str text = STR_INIT(16384);
    cr_assert_not(verdict(allocations(members), &text), "%s", what);
    cr_assert_not_null(strstr(str_text(&text), what), "%s\nin\n%s", what,
                       str_text(&text));
}

Test(report, a_worse_relation_is_told)
{
    static const struct member members[] = {
        {"host", 0, "card-0", "gpu-0"},
        {"xpu", 0, "card-0", NULL},
        {"host", 1, "card-1", "gpu-1"},
        {"xpu", 1, "card-1", NULL},
        {0},
    };
    assert_told(members, "could be");
}

Test(report, an_xpu_pod_elsewhere_is_told)
{
    static const struct member members[] = {
        {"host", 0, "card-0", "gpu-1"},
        {"xpu", 0, "card-1", NULL},
        {"host", 1, "card-1", "gpu-0"},
        {"xpu", 1, "card-1", NULL},
        {0},
    };
    assert_told(members, "Pair 0: its xPU pod is not on its card");
}

Test(report, a_missing_pair_is_told)
{
    static const struct member members[] = {
        {"host", 0, "card-0", "gpu-1"},
        {"xpu", 0, "card-0", NULL},
        {0},
    };
    static const struct member none[] = {{0}};
    assert_told(members, "Pair 1: its host pod");
    assert_told(none, "Pair 0: its host pod");
}

Test(demo_fabric, hangs_every_host_on_a_leaf)
{
    cleanup_str struct str out = STR_INIT(65536);
    demo_fabric_write(9, &out);
    cJSON *json = parse(str_text(&out));
    cr_expect_eq(cJSON_GetArraySize(json_list(json, "hosts")), 9);
    cr_expect_eq(cJSON_GetArraySize(json_list(json, "switches")), 4);
    cr_expect_not_null(
        strstr(str_text(&out), "{\"name\":\"host9\",\"leaf\":\"leaf1\"}"));
    cJSON_Delete(json);
    cr_expect_eq(demo_n_leaves(64), 10);
    cr_expect_eq(demo_n_leaves(1), 1);
}

Test(report, draws_the_leaves)
{
    static const struct member members[] = {
        {"host", 0, "card-0", "gpu-1"},
        {"host", 1, "card-0", "gpu-0"},
        {0},
    };
    cleanup_host struct host h = {0};
    cleanup_str struct str text = STR_INIT(4096);
    cJSON *json = allocations(members);
    struct demo_report r;
    make_host(HOST("n1"), &h);
    demo_report_init(&r, &h, 1, 2, json);
    demo_report_leaves(&r, false, &text);
    cr_expect_str_eq(str_text(&text), "LEAF   BIGA   | FIRST FIT\n"
                                      "leaf1  n1 ■□  | n1 □□\n");
    cJSON *job = parse("{\"score\":{\"leaves\":1,\"crossings\":0}}");
    cr_expect(demo_report_agrees(&r, job, &text));
    cJSON_Delete(job);
    job = parse("{\"score\":{\"leaves\":2,\"crossings\":0}}");
    cr_expect_not(demo_report_agrees(&r, job, &text));
    cJSON_Delete(job);
    demo_report_fini(&r);
    cJSON_Delete(json);
}

/* --- the demo's pods ------------------------------------------------------ */

static void read_pod(const struct pod_spec *pod, struct demand *ret_demand)
{
    cleanup_str struct str text = STR_INIT(65536);
    struct demand_config config;
    struct error err = {0};
    struct jscan s;
    pod_encode(pod, &text);
    cr_assert_eq(json_check(text.data, text.size, &err), 0, "%s", err.text);
    demand_config_default(&config);
    jscan_init(&s, text.data, text.size);
    cr_assert_eq(demand_read(&s, &config, ret_demand, &err), 0, "%s", err.text);
    cr_assert(jscan_end(&s));
}

Test(pods, follow_the_pod_contract)
{
    struct demand host, xpu, service;
    char host_key[DEMAND_PAIR_KEY_MAX], xpu_key[DEMAND_PAIR_KEY_MAX];
    read_pod(&(struct pod_spec){POD_HOST, 3, 16}, &host);
    read_pod(&(struct pod_spec){POD_XPU, 3, 16}, &xpu);
    read_pod(&(struct pod_spec){POD_SERVICE, 3, 0}, &service);
    cr_assert_eq(host.role, ROLE_HOST);
    cr_assert_eq(xpu.role, ROLE_XPU);
    cr_assert_eq(service.role, ROLE_SERVICE);
    cr_assert_str_eq(host.name, "allreduce-host-3");
    cr_assert_str_eq(service.name, "hbn-3");
    cr_assert_eq(host.gpus, 1);
    cr_assert_eq(xpu.gpus, 0);
    cr_assert_eq(host.size, 16);
    cr_assert_eq(xpu.card_cores, 4);
    cr_assert_eq(service.card_cores, 2);
    cr_assert_str_eq(service.arch, "arm64");
    cr_assert_str_eq(host.arch, "arm64");
    demand_pair_key(&host, host_key);
    demand_pair_key(&xpu, xpu_key);
    cr_assert_str_eq(host_key, xpu_key);
    cr_assert_str_neq(host.uid, xpu.uid);
    cr_assert_str_neq(service.uid, xpu.uid);
}
