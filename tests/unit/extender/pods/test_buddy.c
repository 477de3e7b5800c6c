#include <criterion/criterion.h>
#include <string.h>

#include "extender/pods/buddy.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"

#define HOST                                                                   \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"solver-3\",\"uid\":"       \
    "\"hu\",\"labels\":{\"biga.dev/role\":\"host\","                           \
    "\"batch.kubernetes.io/job-name\":\"solver\"},\"annotations\":{"           \
    "\"batch.kubernetes.io/job-completion-index\":\"3\","                      \
    "\"biga.dev/size\":\"16\",\"biga.dev/align\":\"pix\","                     \
    "\"biga.dev/prefer-within\":\"leaf\",\"biga.dev/buddy\":\"worker\","       \
    "\"biga.dev/allocation\":\"{}\",\"other\":\"x\"}},\"spec\":{"              \
    "\"schedulerName\":\"mine\",\"containers\":[{\"resources\":{\"requests\":" \
    "{\"cpu\":\"1500m\",\"memory\":\"3Gi\",\"nvidia.com/gpu\":\"2\","          \
    "\"biga.dev/card\":\"2\"}}}]}}"

#define TEMPLATE(metadata, spec)                                    \
    "{\"kind\":\"PodTemplate\",\"metadata\":{\"name\":\"worker\"}," \
    "\"template\":{\"metadata\":" metadata ",\"spec\":" spec "}}"

#define SPEC                                                         \
    "{\"runtimeClassName\":\"xpu\",\"containers\":[{\"name\":\"w\"," \
    "\"resources\":{\"limits\":{\"biga.dev/card\":\"1\","            \
    "\"biga.dev/card-cores\":\"4\"}}}]}"

static int compose(const char *host, const char *template, struct str *out,
                   struct error *err)
{
    struct demand_config config;
    struct kube_pod pod;
    demand_config_default(&config);
    cr_assert_eq(kube_pod_read(host, strlen(host), &config, &pod, err), 0);
    cr_assert_not(pod.broken, "%s", pod.why.text);
    const struct buddy_input in = {.host = host,
                                   .host_size = strlen(host),
                                   .pod = &pod,
                                   .template = template,
                                   .template_size = strlen(template),
                                   .name = "solver-3-xpu",
                                   .in_cluster = true};
    return buddy_compose(&in, out, err);
}

/* What the scheduler is then told of both must be one pair. */
Test(buddy, is_of_the_pair)
{
    struct demand_config config;
    struct kube_pod host, xpu;
    struct error err = {0};
    struct demand whole, of_xpu;
    char key[DEMAND_PAIR_KEY_MAX], other[DEMAND_PAIR_KEY_MAX];
    cleanup_str struct str out = STR_INIT(1 << 16);
    demand_config_default(&config);
    cr_assert_eq(compose(HOST,
                         TEMPLATE("{\"labels\":{\"app\":\"w\",\"biga.dev/job\":"
                                  "\"not this\"},\"annotations\":{\"a\":\"b\","
                                  "\"biga.dev/allocation\":\"{}\","
                                  "\"biga.dev/buddy\":\"me\"},"
                                  "\"uid\":\"t\",\"finalizers\":[\"x\"]}",
                                  SPEC),
                         &out, &err),
                 0, "%s", err.text);
    cr_assert_eq(kube_pod_read(HOST, strlen(HOST), &config, &host, &err), 0);
    /* an API server gives it a uid */
    cleanup_free char *text = xstrdup(str_text(&out));
    cleanup_free char *given = xasprintf("{\"metadata\":{\"uid\":\"xu\",%s",
                                         strstr(text, "{") + 13);
    cr_assert(strncmp(text, "{\"metadata\":{", 13) == 0, "%s", text);
    cr_assert_eq(kube_pod_read(given, strlen(given), &config, &xpu, &err), 0,
                 "%s: %s", err.text, given);
    cr_assert_not(xpu.broken, "%s", xpu.why.text);
    demand_pair_key(&host.demand, key);
    demand_pair_key(&xpu.demand, other);
    cr_assert_str_eq(key, "ns/solver/3");
    cr_assert_str_eq(other, key);
    cr_assert_eq(xpu.demand.role, ROLE_XPU);
    cr_assert_eq(xpu.demand.cards, 1);
    cr_assert_str_eq(xpu.owner_uid, "hu");
    cr_assert_str_eq(xpu.owner_name, "solver-3");
    cr_assert_str_eq(xpu.scheduler, "mine");
    cr_assert_str_eq(xpu.buddy, "");
    cr_assert_null(xpu.allocation.data);
    demand_pair(&host.demand, 3, &whole);
    demand_pair(&xpu.demand, 3, &of_xpu);
    cr_assert_eq(of_xpu.cards, 2);
    cr_assert_eq(of_xpu.gpus, whole.gpus);
    cr_assert_eq(of_xpu.cpu_milli, whole.cpu_milli);
    cr_assert_eq(of_xpu.memory_mib, whole.memory_mib);
    cr_assert_eq(of_xpu.size, 16);
    cr_assert_eq(of_xpu.align, whole.align);
    cr_assert_eq(of_xpu.prefer_within, whole.prefer_within);
    cr_assert_null(strstr(text, "finalizers"));
    cr_assert_null(strstr(text, "\"other\""));
    cr_assert_not_null(strstr(text, "\"app\":\"w\""));
    cr_assert_not_null(strstr(text, "\"runtimeClassName\":\"xpu\""));
}

static void refused(const char *template, const char *word)
{
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(1 << 16);
    cr_assert_eq(compose(HOST, template, &out, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, word), "%s", err.text);
}

Test(buddy, templates_that_cannot_be_used)
{
    refused("{}", "template: must be an object");
    refused("[1", "PodTemplate");
    refused(TEMPLATE("{}", "{}"), "template.spec.containers");
    refused(TEMPLATE("[]", SPEC), "template.metadata: must be an object");
    refused(TEMPLATE("{\"labels\":{\"biga.dev/role\":\"host\"}}", SPEC),
            "biga.dev/role");
    refused(TEMPLATE("{}", "{\"nodeName\":\"n\",\"containers\":[{}]}"),
            "template.spec.nodeName");
}

Test(buddy, keeps_the_scheduler_of_the_template)
{
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(1 << 16);
    cr_assert_eq(compose(HOST,
                         TEMPLATE("null", "{\"schedulerName\":\"theirs\","
                                          "\"containers\":[{}]}"),
                         &out, &err),
                 0, "%s", err.text);
    cr_assert_not_null(strstr(str_text(&out), "\"schedulerName\":\"theirs\""));
}

/* The pairs of a job without a size are placed one by one, whatever their
 * index. */
Test(buddy, is_of_a_job_without_a_size)
{
    static const char host[] =
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"h-3\",\"uid\":\"hu\","
        "\"labels\":{\"biga.dev/role\":\"host\",\"biga.dev/job\":\"j\","
        "\"biga.dev/pair\":\"3\"},\"annotations\":{\"biga.dev/buddy\":\"t\"}},"
        "\"spec\":{\"containers\":[{}]}}";
    struct error err = {0};
    struct demand_config config;
    struct kube_pod xpu;
    cleanup_str struct str out = STR_INIT(1 << 16);
    demand_config_default(&config);
    cr_assert_eq(compose(host,
                         TEMPLATE("{\"uid\":\"x\",\"annotations\":{"
                                  "\"biga.dev/size\":\"2\"}}",
                                  SPEC),
                         &out, &err),
                 0, "%s", err.text);
    cleanup_free char *given = xasprintf("{\"metadata\":{\"uid\":\"xu\",%s",
                                         str_text(&out) + 13);
    cr_assert_eq(kube_pod_read(given, strlen(given), &config, &xpu, &err), 0);
    cr_assert_not(xpu.broken, "%s", xpu.why.text);
    cr_expect_eq(xpu.demand.pair, 3);
    cr_expect_eq(xpu.demand.size, 1);
}

/* --- its door --------------------------------------------------------------- */

/* A host pod with these annotations, members of its spec and resources. */
static char *host_of(const char *annotations, const char *spec,
                     const char *resources)
{
    return xasprintf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"h\","
                     "\"uid\":\"hu\",\"labels\":{\"biga.dev/role\":\"host\"},"
                     "\"annotations\":{\"biga.dev/buddy\":\"worker\"%s}},"
                     "\"spec\":{%s\"containers\":[{\"resources\":{%s}}]}}",
                     annotations, spec, resources);
}

#define GIVEN ",\"biga.dev/allocation\":\"{}\""
#define GATES(names) "\"schedulingGates\":[" names "],"
#define GATE(name) "{\"name\":\"" name "\"}"
#define CARD "\"limits\":{\"biga.dev/card\":\"1\"}"
#define PLACE GATE("biga.dev/place")

Test(buddy, goes_through_the_door_of_its_host_pod)
{
    static const struct {
        const char *annotations, *spec, *resources, *template, *gates;
    } cases[] = {
        /* kube-scheduler asks about it */
        {"", "", CARD, "", NULL},
        {GIVEN, "\"nodeName\":\"n\",", CARD, "", NULL},
        {GIVEN, "\"nodeName\":\"n\",", CARD, GATES(PLACE), "[]"},
        /* it waits at the gate */
        {"", GATES(PLACE), "", "", "[" PLACE "]"},
        {"", GATES(GATE("kueue") "," PLACE), CARD, "", "[" PLACE "]"},
        {"", GATES(PLACE), "", GATES(PLACE), "[" PLACE "]"},
        {"", GATES(PLACE), "", GATES(GATE("x")), "[" GATE("x") "," PLACE "]"},
        {"", GATES(PLACE), "", "\"schedulingGates\":null,", "[" PLACE "]"},
        /* it has come through it */
        {GIVEN, "", "\"limits\":{\"cpu\":\"1\"}", "", "[" PLACE "]"},
        {GIVEN, "\"nodeName\":\"n\",", "", "", "[" PLACE "]"},
        /* others' gates are theirs; somebody has opened it */
        {"", GATES(GATE("kueue")), "", "", NULL},
        {"", "", "", "", NULL},
        {"", "", "", GATES(GATE("x")), "[" GATE("x") "]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        cleanup_str struct str out = STR_INIT(1 << 16);
        cleanup_with(json) cJSON *made = NULL;
        cleanup_free char *host = host_of(cases[i].annotations, cases[i].spec,
                                          cases[i].resources);
        cleanup_free char *template = xasprintf(
            TEMPLATE("{}", "{%s\"containers\":[{}]}"), cases[i].template);
        cr_assert_eq(compose(host, template, &out, &err), 0, "%zu: %s", i,
                     err.text);
        cr_assert_eq(json_parse(out.data, out.size, &made, &err), 0);
        const cJSON *gates = cJSON_GetObjectItem(
            cJSON_GetObjectItem(made, "spec"), "schedulingGates");
        cleanup_free char *text = gates ? cJSON_PrintUnformatted(gates) : NULL;
        if (cases[i].gates)
            cr_expect_str_eq(text ? text : "", cases[i].gates, "%zu", i);
        else
            cr_expect_null(text, "%zu", i);
    }
    refused(TEMPLATE("{}", "{\"schedulingGates\":{},\"containers\":[{}]}"),
            "template.spec.schedulingGates: must be a list");
}

/* What a pod asks of cards is its own, however it says it. */
Test(buddy, keeps_what_its_template_asks_of_cards)
{
    struct error err = {0};
    struct demand_config config;
    struct kube_pod xpu;
    cleanup_str struct str out = STR_INIT(1 << 16);
    demand_config_default(&config);
    cleanup_free char *host = host_of(",\"biga.dev/card\":\"2\","
                                      "\"biga.dev/card-cores\":\"8\"",
                                      GATES(PLACE), "");
    cr_assert_eq(compose(host,
                         TEMPLATE("{\"uid\":\"x\",\"annotations\":{"
                                  "\"biga.dev/card\":\"1\","
                                  "\"biga.dev/card-memory-mib\":\"64\"}}",
                                  "{\"containers\":[{}]}"),
                         &out, &err),
                 0, "%s", err.text);
    cleanup_free char *given = xasprintf("{\"metadata\":{\"uid\":\"xu\",%s",
                                         str_text(&out) + 13);
    cr_assert_eq(kube_pod_read(given, strlen(given), &config, &xpu, &err), 0);
    cr_assert_not(xpu.broken, "%s", xpu.why.text);
    cr_expect(xpu.gated);
    cr_expect_eq(xpu.demand.cards, 1);
    cr_expect_eq(xpu.demand.pair_cards, 2);
    cr_expect_eq(xpu.demand.card_cores, 0);
    cr_expect_eq(xpu.demand.card_memory_mib, 64);
}
