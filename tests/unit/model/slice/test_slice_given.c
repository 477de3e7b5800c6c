/* How DRA may give devices: what is written, and what of it counts. */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "model/topo/topo_builder.h"

#define ALLOCATED          \
    "{\"key\":\"biga.dev/" \
    "allocated\",\"value\":\"pods\",\"effect\":\"NoSchedule\"}"
#define LOST               \
    "{\"key\":\"biga.dev/" \
    "lost\",\"value\":\"runtime\",\"effect\":\"NoSchedule\"}"

static const struct slice_epoch epoch = {"b1", 1};

static struct topo *of(const struct device *device)
{
    struct topo *topo = NULL;
    struct device d = *device;
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h");
    d.id = "d-0";
    d.package = -1;
    d.root_domain = TOPO_ROOT_NONE;
    topo_builder_add(b, &d, NULL);
    cr_assert_eq(topo_build(b, &topo, NULL), 0);
    return topo;
}

/* What follows "devices": of the only slice. */
static char *devices(const struct device *device)
{
    cleanup_with(topo) struct topo *topo = of(device);
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    slice_encode(topo, &epoch, 0, &text);
    return xstrdup(strstr(str_text(&text), "\"devices\":"));
}

static uint64_t given(const char *json)
{
    cleanup_with(slice) struct slice *slice = NULL;
    struct error err = {0};
    cr_assert_eq(slice_decode(json, strlen(json), &slice, &err), 0, "%s\n%s",
                 err.text, json);
    return slice_get_given(slice);
}

/* --- what is written ------------------------------------------------------ */

Test(slice_given, taints_follow_from_the_device)
{
    static const struct {
        struct device device;
        const char *taints; /* NULL: none */
    } cases[] = {
        {{.kind = DEVICE_CARD}, "[" ALLOCATED "]"},
        {{.kind = DEVICE_CARD, .by_claims = true}, NULL},
        {{.kind = DEVICE_CARD, .by_claims = true, .health = "ready"}, NULL},
        {{.kind = DEVICE_CARD, .unhealthy = true, .health = "lost"},
         "[" ALLOCATED "," LOST "]"},
        {{.kind = DEVICE_CARD, .by_claims = true, .health = "lost"},
         "[" LOST "]"},
        {{.kind = DEVICE_CARD,
          .by_claims = true,
          .unhealthy = true,
          .health = "drained"},
         "[{\"key\":\"biga.dev/drained\",\"value\":\"operator\",\"effect\":"
         "\"NoSchedule\"}]"},
        {{.kind = DEVICE_CARD, .by_claims = true, .unhealthy = true},
         "[{\"key\":\"biga.dev/unhealthy\",\"value\":\"withdrawn\",\"effect\":"
         "\"NoSchedule\"}]"},
        {{.kind = DEVICE_GPU, .numa = -1},
         "[{\"key\":\"biga.dev/not-given\",\"value\":\"topology\",\"effect\":"
         "\"NoSchedule\"}]"},
        {{.kind = DEVICE_NUMA},
         "[{\"key\":\"biga.dev/not-given\",\"value\":\"topology\",\"effect\":"
         "\"NoSchedule\"}]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_free char *text = devices(&cases[i].device);
        const char *at = strstr(text, "\"taints\":");
        if (cases[i].taints)
            cr_expect(at && strncmp(at + 9, cases[i].taints,
                                    strlen(cases[i].taints)) == 0,
                      "%zu: %s", i, text);
        else
            cr_expect_null(at, "%zu: %s", i, text);
    }
}

Test(slice_given, a_card_by_claims_is_shared_when_its_size_is_known)
{
    struct device d = {.kind = DEVICE_CARD,
                       .by_claims = true,
                       .cores = 16,
                       .memory_mib = 32768};
    cleanup_free char *text = devices(&d);
    cr_expect(
        strstr(text,
               "\"capacity\":{\"biga.dev/cores\":{\"value\":\"16\","
               "\"requestPolicy\":{\"default\":\"16\",\"validRange\":{\"min\":"
               "\"1\",\"step\":\"1\"}}},\"biga.dev/memory\":{\"value\":"
               "\"32Gi\",\"requestPolicy\":{\"default\":\"32Gi\","
               "\"validRange\":{\"min\":\"1Mi\",\"step\":\"1Mi\"}}}},"
               "\"allowMultipleAllocations\":true}"),
        "%s", text);

    d.memory_mib = d.cores = 1; /* a step would not fit */
    cleanup_free char *least = devices(&d);
    cr_expect_null(strstr(least, "step"), "%s", least);
    cr_expect(strstr(least, "\"min\":\"1Mi\""), "%s", least);

    d.cores = 0;
    cleanup_free char *unsized = devices(&d);
    d.cores = 16;
    d.by_claims = false;
    cleanup_free char *allocated = devices(&d);
    cr_expect_null(strstr(unsized, "equestPolicy"), "%s", unsized);
    cr_expect_null(strstr(unsized, "allowMultiple"), "%s", unsized);
    cr_expect_null(strstr(allocated, "equestPolicy"), "%s", allocated);
    cr_expect_null(strstr(allocated, "allowMultiple"), "%s", allocated);
}

Test(slice_given, a_long_node_name_is_cut)
{
    char text[SLICE_NODE_TEXT_MAX + 1], other[SLICE_NODE_TEXT_MAX + 1];
    char node[SLICE_NAME_MAX + 1];
    slice_node_text("rack1.example.org", text);
    cr_expect_str_eq(text, "rack1.example.org");
    memset(node, 'a', sizeof node);
    node[64] = '\0';
    slice_node_text(node, text);
    cr_expect_str_eq(text, node);
    node[64] = 'a';
    node[65] = '\0';
    slice_node_text(node, text);
    node[64] = 'b';
    slice_node_text(node, other);
    cr_expect_eq(strlen(text), 64);
    cr_expect_eq(text[47], '-');
    cr_expect_str_neq(text, other);
}

/* --- what counts ---------------------------------------------------------- */

#define SLICE(device)                                                        \
    "{\"metadata\":{\"name\":\"h-0\",\"annotations\":{\"biga.dev/boot-id\":" \
    "\"b1\"}},\"spec\":{\"driver\":\"xpu.biga.dev\",\"nodeName\":\"h\","     \
    "\"pool\":{\"name\":\"h\",\"generation\":1,\"resourceSliceCount\":1},"   \
    "\"devices\":[{\"name\":\"c\",\"attributes\":{\"biga.dev/kind\":{"       \
    "\"string\":\"card\"}}" device "}]}}"
#define CORES(policy) \
    ",\"capacity\":{\"biga.dev/cores\":{\"value\":\"1k\"" policy "}}"

/* Texts of one group say the same, those of different groups do not. */
Test(slice_given, sees_what_others_change_and_not_what_the_server_adds)
{
    static const struct {
        int group;
        const char *json;
    } cases[] = {
        {0, SLICE("")},
        {0, SLICE(",\"taints\":[]")},
        {0, SLICE(",\"taints\":null,\"allowMultipleAllocations\":false")},
        {0, SLICE(CORES(""))},
        {1, SLICE(",\"taints\":[" ALLOCATED "]")},
        {1, SLICE(",\"taints\":[{\"effect\":\"NoSchedule\",\"timeAdded\":"
                  "\"2026-01-01T00:00:00Z\",\"key\":\"biga.dev/allocated\","
                  "\"value\":\"pods\"}]")},
        {2, SLICE(",\"taints\":[{\"key\":\"biga.dev/allocated\",\"value\":"
                  "\"pods\",\"effect\":\"None\"}]")},
        {3, SLICE(",\"taints\":[{\"key\":\"biga.dev/allocated\",\"value\":"
                  "\"\",\"effect\":\"NoSchedule\"}]")},
        {4, SLICE(",\"taints\":[" ALLOCATED "," LOST "]")},
        {5, SLICE(",\"allowMultipleAllocations\":true")},
        {6, SLICE(CORES(",\"requestPolicy\":{\"default\":\"1000\","
                        "\"validRange\":{\"min\":\"1\",\"step\":\"1\"}}"))},
        {6, SLICE(CORES(",\"requestPolicy\":{\"validRange\":{\"step\":\"1\","
                        "\"min\":\"1\"},\"default\":\"1k\"}"))},
        {7, SLICE(CORES(",\"requestPolicy\":{\"default\":\"1\","
                        "\"validRange\":{\"min\":\"1\",\"step\":\"1\"}}"))},
        {8, SLICE(CORES(",\"requestPolicy\":{\"default\":\"1k\"}"))},
        {9, SLICE(CORES(",\"requestPolicy\":{\"default\":\"1k\","
                        "\"validValues\":[\"1k\"]}"))},
        {10, SLICE(CORES(",\"requestPolicy\":{\"default\":\"1500m\"}"))},
        {11, SLICE(CORES(",\"requestPolicy\":{\"default\":5}"))},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < i; k++)
            cr_expect_eq(given(cases[i].json) == given(cases[k].json),
                         cases[i].group == cases[k].group, "%s\n%s",
                         cases[i].json, cases[k].json);
}

Test(slice_given, is_not_part_of_the_content)
{
    cleanup_with(topo) struct topo *topo =
        of(&(struct device){.kind = DEVICE_CARD, .cores = 8});
    cleanup_with(topo) struct topo *claimed = of(
        &(struct device){.kind = DEVICE_CARD, .cores = 8, .by_claims = true});
    char a[17], b[17];
    slice_content_hash(topo, a);
    slice_content_hash(claimed, b);
    cr_expect_str_neq(a, b); /* whose book it is in, is */
    cr_expect_neq(slice_given(topo, 0), slice_given(claimed, 0));
    cr_expect_neq(slice_given(topo, 0), 0);
}
