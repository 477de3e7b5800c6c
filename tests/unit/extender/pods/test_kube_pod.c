#include "extender/pods/kube_pod.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/testdata.h"

static struct kube_pod read_text(const char *json, size_t size)
{
    struct kube_pod pod;
    struct demand_config config;
    struct error err = {0};
    demand_config_default(&config);
    cr_assert_eq(kube_pod_read(json, size, &config, &pod, &err), 0, "%s",
                 err.text);
    return pod;
}

#define NAMES "\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"}"

static struct kube_pod read_spec(const char *spec)
{
    cleanup_free char *json = xasprintf("{" NAMES ",\"spec\":{%s}}", spec);
    struct kube_pod pod = read_text(json, strlen(json));
    pod.allocation.data = NULL; /* the JSON ends here */
    return pod;
}

Test(kube_pod, a_running_pod)
{
    size_t size;
    cleanup_free char *json =
        testdata_read("tests/fuzz/corpus/kube_pod/bound.json", &size);
    struct kube_pod pod = read_text(json, size);
    cr_expect_not(pod.broken, "%s", pod.why.text);
    cr_expect_eq(pod.demand.role, ROLE_HOST);
    cr_expect_str_eq(pod.demand.name, "train-0-host");
    cr_expect_str_eq(pod.demand.namespace, "ml");
    cr_expect_eq(pod.demand.cards, 2);
    cr_expect_eq(pod.demand.gpus, 2);
    cr_expect_str_eq(pod.node, "n1");
    cr_expect_eq(pod.phase, POD_RUNNING);
    cr_expect_not(pod.deleting);
    cr_expect_not(pod.gated);
    cr_expect(pod.ready);
    cr_expect_eq(pod.restarts, 3);
    cr_expect_str_eq(pod.buddy, "train-card");
    cr_expect_str_eq(pod.owner_uid, "", "a Job is no Pod");
    cr_expect_str_eq(pod.scheduler, "default-scheduler");
    char text[64];
    cr_assert(pod.allocation.escaped && pod.allocation.size < sizeof text);
    (void)jtext_decode(&pod.allocation, text);
    cr_expect_str_eq(text, "{\"node\":\"n1\"}");
    /* the third init container beside the sidecar: 3.9 + 0.25 > 4 and > 3.35;
     * memory of the containers and the sidecar */
    cr_expect_eq(pod.cpu_milli, 4150 + 50);
    int64_t bytes = (INT64_C(8) << 30) + 100000000 + (128 << 20) + (64 << 20);
    cr_expect_eq(pod.memory_kib, (bytes + 1023) / 1024);
    cr_expect_not(kube_pod_is_finished(&pod));
}

static struct kube_pod read_gates(const char *gates, const char *rest)
{
    cleanup_free char *spec = xasprintf("\"schedulingGates\":[%s]%s", gates,
                                        rest);
    return read_spec(spec);
}

Test(kube_pod, gates)
{
    struct kube_pod pod = read_gates("{\"name\":\"biga.dev/place\"}", "");
    cr_expect(pod.gated && pod.place_gate);
    cr_expect_str_eq(pod.other_gate, "");
    pod = read_gates("{\"name\":\"kueue.x-k8s.io/admission\"},"
                     "{\"name\":\"biga.dev/place\"},{\"name\":\"c.d/e\"}",
                     "");
    cr_expect(pod.gated && pod.place_gate);
    cr_expect_str_eq(pod.other_gate, "kueue.x-k8s.io/admission");
    pod = read_gates("", "");
    cr_expect_not(pod.gated || pod.place_gate);
}

static struct kube_pod read_allocated(const char *spec)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
        "\"annotations\":{\"biga.dev/allocation\":\"{}\"},"
        "\"ownerReferences\":[{\"kind\":\"Job\",\"controller\":true}]},"
        "\"spec\":{%s}}",
        spec);
    return read_text(json, strlen(json));
}

Test(kube_pod, is_opened_once_its_gate_is_and_until_it_is_bound)
{
    struct kube_pod pod = read_allocated("");
    cr_expect(kube_pod_is_opened(&pod) && pod.controlled);
    pod = read_allocated("\"nodeName\":\"n\"");
    cr_expect_not(kube_pod_is_opened(&pod));
    pod = read_allocated("\"schedulingGates\":[{\"name\":\"biga.dev/place\"}]");
    cr_expect_not(kube_pod_is_opened(&pod));
    pod = read_spec("");
    cr_expect_not(kube_pod_is_opened(&pod) || pod.controlled);
}

Test(kube_pod, has_the_allocation_of_its_annotation)
{
    struct demand d = sim_pod("a", ROLE_HOST, "", 0);
    struct kube_pod pod = {.demand.gpus_by_plugin = true};
    struct error err = {0};
    struct allocation *a = NULL;
    cr_expect_eq(kube_pod_allocation(&pod, &a, &err), -ENOENT);

    cleanup_str struct str json = STR_INIT(1 << 20);
    cleanup_with(allocation) struct allocation *written =
        allocation_create(&d, "n1");
    allocation_encode(written, &json);
    pod.allocation = (struct jtext){.data = json.data, .size = json.size};
    cr_assert_eq(kube_pod_allocation(&pod, &a, &err), 0, "%s", err.text);
    cr_expect_str_eq(a->node, "n1");
    cr_expect_str_eq(a->demand.uid, d.uid);
    cr_expect(a->demand.gpus_by_plugin, "as the pod says");
    allocation_unref(steal(&a));

    pod.allocation.size = 2;
    cr_expect_eq(kube_pod_allocation(&pod, &a, &err), -EINVAL);
    cr_expect(strstr(err.text, "biga.dev/allocation: "), "%s", err.text);
    while (json.size <= 1 << 19)
        str_add_c(&json, ' ');
    pod.allocation = (struct jtext){.data = json.data, .size = json.size};
    cr_expect_eq(kube_pod_allocation(&pod, &a, &err), -EINVAL);
    cr_expect(strstr(err.text, "the limit is 262144"), "%s", err.text);
    cr_expect_null(a);
}

Test(kube_pod, a_pending_pod)
{
    size_t size;
    cleanup_free char *json =
        testdata_read("tests/fuzz/corpus/kube_pod/pending.json", &size);
    struct kube_pod pod = read_text(json, size);
    cr_expect_not(pod.broken, "%s", pod.why.text);
    cr_expect_eq(pod.demand.role, ROLE_XPU);
    cr_expect_str_eq(pod.node, "");
    cr_expect_eq(pod.phase, POD_PENDING);
    cr_expect(pod.deleting);
    cr_expect(pod.gated);
    cr_expect_not(pod.ready);
    cr_expect_str_eq(pod.owner_name, "train-0-host");
    cr_expect_str_eq(pod.owner_uid, "5f0c1a3e-92d4-4c17-8d1e-0a6b7c8d9e0f");
    cr_expect_str_eq(pod.scheduler, "biga");
    cr_expect_eq(pod.cpu_milli, 8000);
    cr_expect_eq(pod.memory_kib, 0);
    cr_expect_null(pod.allocation.data);
}

Test(kube_pod, a_pod_that_breaks_the_contract_keeps_its_names)
{
    size_t size;
    cleanup_free char *json =
        testdata_read("tests/fuzz/corpus/kube_pod/broken.json", &size);
    struct kube_pod pod = read_text(json, size);
    cr_expect(pod.broken);
    cr_expect(strstr(pod.why.text, "memory"), "%s", pod.why.text);
    cr_expect_str_eq(pod.demand.name, "a");
    cr_expect_str_eq(pod.demand.namespace, "b");
    cr_expect_str_eq(pod.demand.uid, "c");
    cr_expect_eq(pod.demand.role, ROLE_NONE);
    cr_expect(kube_pod_is_finished(&pod));
    cr_expect_eq(pod.cpu_milli, 2000, "what the pod states as a whole");
    cr_expect_eq(pod.memory_kib, INT64_C(9007199254741), "capped");
}

/* The API server takes it in any text that has no rule. */
Test(kube_pod, a_nul_hides_no_pod)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
        "\"labels\":{\"biga.dev/role\":\"host\"},\"annotations\":"
        "{\"x\":\"\\u0000\",\"biga.dev/allocation\":\"\\u0000{}\"}},"
        "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"args\":"
        "[\"\\u0000\"]}]}}";
    struct kube_pod pod = read_text(json, sizeof json - 1);
    char text[16];
    cr_expect_eq(pod.demand.role, ROLE_HOST);
    cr_expect_str_eq(pod.node, "n1");
    cr_assert(pod.allocation.data);
    cr_expect_eq(jtext_decode(&pod.allocation, text), 5);
    cr_expect_str_eq(text, "\xef\xbf\xbd{}");
}

Test(kube_pod, requests)
{
    static const struct {
        const char *spec;
        int64_t cpu_milli, memory_kib;
    } cases[] = {
        {"", 0, 0},
        {"\"containers\":null,\"initContainers\":null,\"overhead\":null", 0, 0},
        {"\"containers\":[{\"resources\":{\"limits\":{\"cpu\":\"2\"}}}]", 0, 0},
        {"\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"}}},"
         "{\"resources\":{\"requests\":{\"cpu\":\"1500u\",\"memory\":\"1\"}}},"
         "{\"resources\":{\"requests\":{\"memory\":\"1023\"}}}]",
         1002, 1},
        /* an init container is the peak */
        {"\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":\"7\"}}}],"
         "\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]",
         7000, 0},
        /* a sidecar that starts after it does not count beside it */
        {"\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":\"7\"}}},"
         "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":"
         "{\"cpu\":\"1\"}}}],"
         "\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]",
         7000, 0},
        {"\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"2\"}}}],"
         "\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":"
         "{\"requests\":{\"cpu\":\"1\",\"memory\":\"1Mi\"}}}]",
         3000, 1024},
        /* pod-level requests win over the sum, overhead comes on top */
        {"\"resources\":{\"requests\":{\"cpu\":\"10\"}},\"overhead\":{\"cpu\":"
         "\"1\",\"memory\":\"1Ki\"},\"containers\":[{\"resources\":"
         "{\"requests\":{\"cpu\":\"2\",\"memory\":\"1Ki\"}}}]",
         11000, 2},
        {"\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"9E\"}}},"
         "{\"resources\":{\"requests\":{\"cpu\":\"9E\"}}}]",
         INT64_MAX, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_pod pod = read_spec(cases[i].spec);
        cr_expect_eq(pod.cpu_milli, cases[i].cpu_milli, "%s: %lld",
                     cases[i].spec, (long long)pod.cpu_milli);
        cr_expect_eq(pod.memory_kib, cases[i].memory_kib, "%s: %lld",
                     cases[i].spec, (long long)pod.memory_kib);
    }
}

/* Of pods without a role demand_read() takes no name that is not sound. */
Test(kube_pod, names_are_always_set)
{
    static const char json[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":"
                               "\"b\",\"uid\":\"c&d\"}}";
    struct kube_pod pod = read_text(json, strlen(json));
    cr_expect_str_eq(pod.demand.name, "a");
    cr_expect_str_eq(pod.demand.namespace, "b");
    cr_expect_str_eq(pod.demand.uid, "c&d");
}

Test(kube_pod, what_is_no_pod)
{
    static const struct {
        const char *json, *word;
    } cases[] = {
        {"", "end"},
        {"[]", "must be an object"},
        {"{", "end"},
        {"{}", "metadata.name"},
        {"{\"metadata\":{\"name\":\"a\",\"uid\":\"c\"}}", "metadata.namespace"},
        {"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}", "metadata.uid"},
        {"{\"metadata\":{\"name\":1,\"namespace\":\"b\",\"uid\":\"c\"}}",
         "metadata.name"},
        {"{" NAMES ",\"spec\":{\"containers\":[{\"x\":01}]}}", "zero"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_pod pod;
        struct demand_config config;
        struct error err = {0};
        demand_config_default(&config);
        cr_expect_eq(kube_pod_read(cases[i].json, strlen(cases[i].json),
                                   &config, &pod, &err),
                     -EINVAL, "%s", cases[i].json);
        cr_expect(strstr(err.text, cases[i].word), "%s: %s", cases[i].json,
                  err.text);
    }
}

static uint64_t no_buddy(const char *condition)
{
    char json[1024];
    (void)snprintf(json, sizeof json,
                   "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":"
                   "\"c\"},\"status\":{\"conditions\":[{\"type\":"
                   "\"biga.dev/XpuReady\",%s}]}}",
                   condition);
    return read_text(json, strlen(json)).no_buddy;
}

/* The text that stands there is known again, whatever its escapes. */
Test(kube_pod, the_lack_of_a_buddy)
{
    const char *said = "no \"t\"";
    cr_expect_eq(no_buddy("\"status\":\"False\",\"reason\":\"BuddyFailed\","
                          "\"message\":\"no \\\"\\u0074\\\"\""),
                 hash_bytes(said, strlen(said)));
    cr_expect_eq(no_buddy("\"status\":\"False\",\"reason\":\"XpuPodGone\","
                          "\"message\":\"no\""),
                 0);
    cr_expect_neq(no_buddy("\"reason\":\"BuddyFailed\",\"status\":\"False\""),
                  0, "without a message");
}

/* As card_losses.h writes and reads it. */
Test(kube_pod, a_lost_card)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
        "\"annotations\":{\"biga.dev/card-lost\":\"1h\"}},\"status\":{"
        "\"conditions\":[{\"type\":\"biga.dev/CardLost\",\"status\":\"True\","
        "\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}";
    struct kube_pod pod = read_text(json, strlen(json));
    cr_expect_eq(pod.card_lost, 1);
    cr_expect_str_eq(pod.card_since, "2026-01-02T03:04:05Z");
    cr_expect_eq(pod.patience_s, 3600);
    static const char none[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"}}";
    pod = read_text(none, strlen(none));
    cr_expect_eq(pod.card_lost, -1);
    cr_expect_str_eq(pod.card_since, "");
    cr_expect_eq(pod.patience_s, -1);
}

static bool unschedulable(const char *condition)
{
    char json[1024];
    (void)snprintf(json, sizeof json,
                   "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":"
                   "\"c\"},\"status\":{\"conditions\":[{%s}]}}",
                   condition);
    return read_text(json, strlen(json)).unschedulable;
}

Test(kube_pod, where_room_is_made_for_it)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"},"
        "\"status\":{\"nominatedNodeName\":\"host1\",\"phase\":\"Pending\"}}";
    struct kube_pod pod = read_text(json, sizeof json - 1);
    cr_expect_str_eq(pod.nominated, "host1");
    cr_expect_eq(pod.phase, POD_PENDING);
}

Test(kube_pod, what_the_scheduler_has_put_aside)
{
    cr_expect(unschedulable("\"type\":\"PodScheduled\",\"status\":\"False\","
                            "\"reason\":\"Unschedulable\""));
    cr_expect_not(unschedulable("\"type\":\"PodScheduled\",\"status\":"
                                "\"False\",\"reason\":\"SchedulerError\""),
                  "it is tried again by itself");
    cr_expect_not(
        unschedulable("\"type\":\"PodScheduled\",\"status\":\"True\""));
    cr_expect_not(unschedulable("\"type\":\"Other\",\"status\":\"False\","
                                "\"reason\":\"Unschedulable\""));
}

Test(kube_pod, whether_it_preempts)
{
    cr_expect(read_spec("\"preemptionPolicy\":\"Never\"").never_preempts);
    cr_expect_not(read_spec("\"preemptionPolicy\":\"PreemptLowerPriority\"")
                      .never_preempts);
    cr_expect_not(read_spec("\"preemptionPolicy\":null").never_preempts);
    cr_expect_not(read_spec("\"containers\":[]").never_preempts);
}
