#include "extender/pods/node_pods.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/applied_private.h"
#include "extender/state/draft.h"
#include "lib/base/json.h"
#include "model/pod/podfeed.h"
#include "tests/lib/sim/simhost.h"

enum {
    LARGE = 1000000, /* bytes of a spec */
    PODS = 75,       /* more than an answer has room for */
};

/* What there is to say of node "n0". */
static struct pod_set *set;
static struct draft *draft;

static void start(void)
{
    cleanup_with(snapshot) struct snapshot *empty = snapshot_create_empty();
    set = xcalloc(1, sizeof *set);
    atomic_init(&set->refs, 1);
    draft = draft_create(empty);
}

static void stop(void)
{
    pod_set_unref(set);
}

TestSuite(node_pods, .init = start, .fini = stop);

/* Pod "pI", which has its place there as the number-th. */
static void add_pod(unsigned i, uint64_t number, const char *annotation,
                    const char *volumes)
{
    char uid[APPLIED_UID_SIZE];
    struct demand_config config;
    struct error err = {0};
    demand_config_default(&config);
    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-9000-%012u", i);
    cleanup_with(applied_pod) struct applied_pod *p = NULL;
    cleanup_free char *json = xasprintf(
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%u\",\"namespace\":"
        "\"ns\",\"uid\":\"%s\",\"annotations\":{\"a\":\"%s\"},\"labels\":{"
        "\"biga.dev/role\":\"host\"}},\"spec\":{\"volumes\":[%s],"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
        i, uid, annotation, volumes);
    cr_assert_eq(applied_pod_create(json, strlen(json), uid, &config, &p, &err),
                 0, "%s", err.text);
    pod_set_put(set, p);
    struct allocation *a = allocation_create(&p->demand, "n0");
    a->number = number;
    draft_allocate(draft, a);
}

static char *large_text(size_t size)
{
    char *text = xcalloc(1, size + 1);
    memset(text, 'x', size);
    return text;
}

/* Which items one answer has whole. */
static void read_items(const struct str *text, bool whole[PODS],
                       size_t *ret_whole)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    const cJSON *item;
    cr_assert_eq(json_parse(text->data, text->size, &json, &err), 0, "%s",
                 err.text);
    cr_expect_eq(cJSON_GetArraySize(json), PODS, "nobody is left out");
    *ret_whole = 0;
    cJSON_ArrayForEach(item, json)
    {
        const char *name = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(item, "name"));
        bool has = cJSON_HasObjectItem(item, "spec");
        cr_expect_neq(has, cJSON_HasObjectItem(item, "later"));
        whole[strtoul(name + 1, NULL, 10) % PODS] |= has;
        *ret_whole += has;
    }
}

Test(node_pods, never_says_more_than_a_node_takes)
{
    bool whole[PODS] = {false};
    char next[APPLIED_UID_SIZE] = "";
    size_t n = 0, n_whole;
    cleanup_free char *large = large_text(LARGE);
    for (unsigned i = 0; i < PODS; i++)
        add_pod(i, i + 1, large, "");
    cleanup_with(snapshot) struct snapshot *s = draft_commit(draft);
    for (unsigned round = 0; round < 2; round++) {
        struct str out = STR_INIT(STR_MAX_DEFAULT);
        node_pods_write(set, s, "n0", next, &out, next);
        cr_expect_lt(out.size, (size_t)PODFEED_ANSWER_MAX);
        cr_expect_str_neq(next, "");
        read_items(&out, whole, &n_whole);
        cr_expect_geq(n_whole, (size_t)PODS * 2 / 3);
        str_fini(&out);
    }
    for (unsigned i = 0; i < PODS; i++)
        n += whole[i];
    cr_expect_eq(n, PODS, "two answers have all of them");
}

Test(node_pods, has_those_that_came_first)
{
    char next[APPLIED_UID_SIZE];
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    for (unsigned i = 0; i < PODFEED_PODS_MAX + 2; i++)
        add_pod(i, i < 2 ? 100000 + i : i, "", "");
    cleanup_with(snapshot) struct snapshot *s = draft_commit(draft);
    node_pods_write(set, s, "n0", "", &out, next);
    cr_expect_str_eq(next, "");
    cr_expect_null(strstr(str_text(&out), "\"name\":\"p0\""));
    cr_expect_null(strstr(str_text(&out), "\"name\":\"p1\""));
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    cr_assert_eq(json_parse(out.data, out.size, &json, &err), 0, "%s",
                 err.text);
    cr_expect_eq(cJSON_GetArraySize(json), PODFEED_PODS_MAX);
}

/* The variables of a pod whose place has a card and two NICs of a board. */
Test(node_pods, tells_the_devices_of_a_pod)
{
    char next[APPLIED_UID_SIZE];
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    cleanup_with(topo) struct topo *topo = simhost_board("n0", 1, 1);
    draft_put_node(draft, &(struct node_update){.name = "n0",
                                                .status = NODE_READY,
                                                .hash = "0123456789abcdef",
                                                .n_slices = 1,
                                                .pool_count = 1,
                                                .topo = topo});
    add_pod(0, 1, "", "");
    struct demand d = {.role = ROLE_HOST};
    (void)snprintf(d.name, sizeof d.name, "p0");
    (void)snprintf(d.namespace, sizeof d.namespace, "ns");
    (void)snprintf(d.uid, sizeof d.uid, "00000000-0000-4000-9000-000000000000");
    struct allocation *a = allocation_create(&d, "n0");
    a->number = 1;
    a->nics = xcalloc(2, sizeof *a->nics);
    a->n_nics = 2;
    (void)snprintf(a->nics[0], sizeof *a->nics, "nic-0000-12-00-0");
    (void)snprintf(a->nics[1], sizeof *a->nics, "nic-0000-32-00-0");
    a->gpus = xcalloc(1, sizeof *a->gpus);
    a->n_gpus = 1;
    size_t first;
    cr_assert_gt(topo_count(topo, DEVICE_GPU, &first), 0u);
    const struct device *gpu = topo_device(topo, first);
    char pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(&gpu->pci, pci);
    (void)snprintf(a->gpus[0], sizeof *a->gpus, "%s", gpu->id);
    cleanup_free char *said = xasprintf("\"BIGA_GPU_PCI\":\"%s\"", pci);
    draft_allocate(draft, a);
    cleanup_with(snapshot) struct snapshot *s = draft_commit(draft);
    node_pods_write(set, s, "n0", "", &out, next);
    cr_expect(strstr(str_text(&out),
                     "\"BIGA_NIC_PCI\":\"0000:12:00.0,0000:32:00.0\""),
              "%s", str_text(&out));
    cr_expect(strstr(str_text(&out), said), "%s", str_text(&out));
    cr_expect(strstr(str_text(&out), "\"BIGA_NIC_DEVICE\":\"mlx5_0,mlx5_2\""),
              "%s", str_text(&out));
}

/* It grew after the pod was placed. */
Test(node_pods, says_why_a_pod_cannot_have_its_files)
{
    char next[APPLIED_UID_SIZE];
    struct applied_config *c = NULL;
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    cleanup_free char *large = large_text(LARGE);
    cleanup_free char *json = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
        "\"m\",\"namespace\":\"ns\"},\"data\":{\"k\":\"%s\"}}",
        large);
    cr_assert_eq(applied_config_create(json, strlen(json), &c, &err), 0, "%s",
                 err.text);
    pod_set_put_config(set, c);
    applied_config_unref(c);
    add_pod(0, 1, "",
            "{\"name\":\"a\",\"configMap\":{\"name\":\"m\"}},{\"name\":\"b\","
            "\"configMap\":{\"name\":\"m\"}}");
    cleanup_with(snapshot) struct snapshot *s = draft_commit(draft);
    node_pods_write(set, s, "n0", "", &out, next);
    cr_expect(strstr(str_text(&out),
                     "\"files\":[],\"fault\":\"spec.volumes[1].configMap: "),
              "%s", str_text(&out));
    cr_expect(strstr(str_text(&out), "have 2000000 bytes, the limit is "
                                     "1048576"));
}

/* Somebody may still want to know why it failed. */
Test(node_pods, pods_that_are_over_are_kept_until_they_are_deleted)
{
    char next[APPLIED_UID_SIZE];
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str kept = STR_INIT(STR_MAX_DEFAULT);
    for (unsigned i = 0; i < 3; i++) {
        add_pod(i, i + 1, "", "");
        set->pods[i]->ended = i > 0 ? POD_STATE_FAILED : POD_STATE_PENDING;
        set->pods[i]->deleting = i == 2;
    }
    cleanup_with(snapshot) struct snapshot *s = draft_commit(draft);
    node_pods_write(set, s, "n0", "", &out, next);
    const char *one = strstr(str_text(&out), "\"name\":\"p1\"");
    const char *two = strstr(str_text(&out), "\"name\":\"p2\"");
    cr_assert(one && two);
    const char *keep = strstr(str_text(&out), "\"stop\":true,\"grace\":");
    cr_assert(keep > one && keep < two);
    keep = strstr(str_text(&out), "\"keep\":true");
    cr_assert(keep > one && keep < two, "%s", str_text(&out));
    cr_expect_null(strstr(keep + 1, "\"keep\""));
#define U(n) "00000000-0000-4000-9000-00000000000" n
    node_pods_write_kept(set, U("1") "," U("2") ",x,,\"," U("7") "," U("0"),
                         &kept);
    cr_expect_str_eq(str_text(&kept), "[\"" U("1") "\",\"" U("0") "\"]");
}

/* Of any data; it changes with its version. */
static void put_config(const char *kind, const char *namespace,
                       const char *name, uint64_t version)
{
    struct applied_config *c = NULL;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":"
        "\"%s\",\"namespace\":\"%s\"},\"data\":{\"k\":\"\"}}",
        kind, name, namespace);
    cr_assert_eq(applied_config_create(json, strlen(json), &c, &err), 0, "%s",
                 err.text);
    c->version = version;
    pod_set_put_config(set, c);
    applied_config_unref(c);
}

/* Else each node with pods would be told everything at each change. */
Test(node_pods, only_what_its_pods_take_from_concerns_a_node)
{
    static const struct {
        const char *kind, *namespace, *name;
        bool concerns;
    } cases[] = {
        {"ConfigMap", "ns", "m", true},
        {"ConfigMap", "ns", "m", true}, /* once more: it is another now */
        {"Secret", "ns", "s", true},
        {"Secret", "ns", "p", true},
        {"ConfigMap", "ns", "other", false},
        {"Secret", "ns", "m", false},
        {"ConfigMap", "ns", "s", false},
        {"ConfigMap", "elsewhere", "m", false},
        {"Secret", "ns", "s", true},
    };
    add_pod(0, 1, "",
            "{\"name\":\"a\",\"configMap\":{\"name\":\"m\"}},"
            "{\"name\":\"b\",\"secret\":{\"secretName\":\"s\","
            "\"optional\":true}}");
    add_pod(1, 2, "",
            "{\"name\":\"a\",\"projected\":{\"sources\":[{\"secret\":{"
            "\"name\":\"p\"}}]}}");
    cleanup_with(snapshot) struct snapshot *s = draft_commit(draft);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t before = node_pods_sum(set, s, "n0");
        put_config(cases[i].kind, cases[i].namespace, cases[i].name, i + 1);
        cr_expect_eq(node_pods_sum(set, s, "n0") != before, cases[i].concerns,
                     "case %zu", i);
    }
}
