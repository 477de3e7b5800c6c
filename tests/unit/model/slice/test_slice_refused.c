/* What slice_decode and slice_join refuse, and in which words. */
#include "model/slice/slice.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

/* --- what is refused ----------------------------------------------------- */

#define META                                                                \
    "\"metadata\":{\"name\":\"h-0\",\"annotations\":{\"biga.dev/boot-id\":" \
    "\"b1\"}}"
#define HEAD                                                                  \
    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\"," META \
    ",\"spec\":{\"driver\":\"xpu.biga.dev\",\"nodeName\":\"h\","              \
    "\"pool\":{\"name\":\"h\",\"generation\":1,\"resourceSliceCount\":1}"
#define DEVICE(attributes) \
    HEAD ",\"devices\":[{\"name\":\"a\",\"attributes\":{" attributes "}}]}}"
#define WITH_CAPACITY(attributes, capacity)                          \
    HEAD ",\"devices\":[{\"name\":\"a\",\"attributes\":{" attributes \
         "},\"capacity\":{" capacity "}}]}}"
#define CARD "\"biga.dev/kind\":{\"string\":\"card\"}"
#define NUMA                                   \
    "\"biga.dev/kind\":{\"string\":\"numa\"}," \
    "\"resource.kubernetes.io/numaNode\":{\"int\":0}"
#define BUS "\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:17:00.0\"}"

static const struct {
    const char *json;
    const char *says; /* the whole error text, or its beginning */
} refused[] = {
    {"{", "unexpected end"},
    {"[]", "must be an object"},
    {"{\"apiVersion\":\"v1\"}", "apiVersion: is \"v1\", must be"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"Pod\"}",
     "kind: is \"Pod\""},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{},\"spec\":{\"driver\":\"dra.net\"}}",
     "spec.driver: is \"dra.net\", must be \"xpu.biga.dev\""},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{\"name\":\"h\"},\"spec\":{\"driver\":\"xpu.biga.dev\"}}",
     "metadata.annotations[\"biga.dev/boot-id\"]: required"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{\"name\":\"h\",\"annotations\":{\"biga.dev/boot-id\":"
     "\"a b\"}},\"spec\":{\"driver\":\"xpu.biga.dev\"}}",
     "metadata.annotations[\"biga.dev/boot-id\"]: is \"a b\""},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{\"name\":\"h\",\"annotations\":{\"biga.dev/boot-id\":"
     "\"b\",\"biga.dev/runs-pods\":\"all\"}},\"spec\":{\"driver\":"
     "\"xpu.biga.dev\"}}",
     "metadata.annotations[\"biga.dev/runs-pods\"]: is \"all\", must be"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{\"name\":\"h\",\"annotations\":{\"biga.dev/boot-id\":"
     "\"b\",\"biga.dev/runs-pods\":\"host  a\"}},\"spec\":{\"driver\":"
     "\"xpu.biga.dev\"}}",
     "metadata.annotations[\"biga.dev/runs-pods\"]: is \"host  a\", must be"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{\"name\":\"h\",\"annotations\":{\"biga.dev/boot-id\":"
     "\"b\",\"biga.dev/runs-pods\":\"none a\"}},\"spec\":{\"driver\":"
     "\"xpu.biga.dev\"}}",
     "metadata.annotations[\"biga.dev/runs-pods\"]: is \"none a\", must be"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{\"name\":\"h\",\"annotations\":{\"biga.dev/boot-id\":"
     "\"b\",\"biga.dev/runs-pods\":\"host A\"}},\"spec\":{\"driver\":"
     "\"xpu.biga.dev\"}}",
     "metadata.annotations[\"biga.dev/runs-pods\"]: is \"host A\", must be"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
     "\"metadata\":{\"name\":\"H_1\"},\"spec\":{\"driver\":"
     "\"xpu.biga.dev\"}}",
     "metadata.name: is \"H_1\", must be a DNS subdomain"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\"," META
     ",\"spec\":{\"driver\":\"xpu.biga.dev\",\"allNodes\":true}}",
     "spec.nodeName: required"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\"," META
     ",\"spec\":{\"driver\":\"xpu.biga.dev\",\"nodeName\":\"h\",\"pool\":"
     "{\"name\":\"x\",\"generation\":1,\"resourceSliceCount\":1}}}",
     "spec.pool.name: is \"x\", must be spec.nodeName"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\"," META
     ",\"spec\":{\"driver\":\"xpu.biga.dev\",\"nodeName\":\"h\",\"pool\":"
     "{\"name\":\"h\",\"generation\":0,\"resourceSliceCount\":1}}}",
     "spec.pool.generation: is 0, must be 1 to"},
    {"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\"," META
     ",\"spec\":{\"driver\":\"xpu.biga.dev\",\"nodeName\":\"h\",\"pool\":"
     "{\"name\":\"h\",\"generation\":1,\"resourceSliceCount\":17}}}",
     "spec.pool.resourceSliceCount: is 17, must be 1 to 16"},
    {HEAD ",\"sharedCounters\":[]}}", "spec.sharedCounters: must be absent"},
    {HEAD ",\"devices\":{}}}", "spec.devices: must be an array"},
    {HEAD ",\"devices\":[{\"attributes\":{}}]}}",
     "spec.devices[0].name: required"},
    {HEAD ",\"devices\":[{\"name\":\"A\",\"attributes\":{}}]}}",
     "spec.devices[0].name: is \"A\", must be a DNS label"},
    {HEAD ",\"devices\":[{\"name\":\"a\",\"attributes\":{" CARD
          "}},{\"name\":\"a\",\"attributes\":{" CARD "}}]}}",
     "spec.devices[1].name: is \"a\", as spec.devices[0].name is"},
    {DEVICE(""), "spec.devices[0].attributes[\"biga.dev/kind\"]: required"},
    {DEVICE("\"biga.dev/kind\":{\"string\":\"gpux\"}"),
     "spec.devices[0].attributes[\"biga.dev/kind\"].string: is \"gpux\", "
     "must be card, gpu, nic or numa"},
    {DEVICE("\"biga.dev/kind\":{\"int\":1}"),
     "spec.devices[0].attributes[\"biga.dev/kind\"]: is of type int"},
    {DEVICE(CARD ",\"biga.dev/devices\":{\"string\":\"a_b\"}"),
     "spec.devices[0].attributes[\"biga.dev/devices\"].string: \"a_b\" must "
     "be the name of a set of devices"},
    {DEVICE(CARD ",\"biga.dev/devices\":{\"string\":\"snap rdma\"}"),
     "spec.devices[0].attributes[\"biga.dev/devices\"].string: is \"snap "
     "rdma\", must be in order, \"rdma snap\""},
    {DEVICE(CARD ",\"biga.dev/rights\":{\"string\":\"4000\"}"),
     "spec.devices[0].attributes[\"biga.dev/rights\"].string: is \"4000\", "
     "must be 16 hexadecimal digits"},
    {DEVICE(CARD ",\"biga.dev/node\":{\"string\":\"other\"}"),
     "spec.devices[0].attributes[\"biga.dev/node\"].string: is \"other\", by "
     "spec.nodeName it must be \"h\""},
    {DEVICE(CARD ",\"biga.dev/claims\":{\"string\":\"yes\"}"),
     "spec.devices[0].attributes[\"biga.dev/claims\"]: is of type string"},
    {DEVICE(CARD "},\"taints\":{\"key\":\"x\""),
     "spec.devices[0].taints: must be an array"},
    {DEVICE(CARD "},\"taints\":[{\"key\":5}],\"x\":{"),
     "spec.devices[0].taints: must be objects with texts"},
    {DEVICE(CARD "},\"allowMultipleAllocations\":1,\"x\":{"),
     "spec.devices[0].allowMultipleAllocations: must be true or false"},
    {DEVICE("\"biga.dev/kind\":{}"),
     "spec.devices[0].attributes[\"biga.dev/kind\"]: must have one of"},
    {DEVICE("\"biga.dev/kind\":{\"string\":\"card\",\"bool\":true}"),
     "spec.devices[0].attributes[\"biga.dev/kind\"]: has both"},
    {DEVICE("\"biga.dev/kind\":{\"string\":5}"),
     "spec.devices[0].attributes[\"biga.dev/kind\"].string: has the wrong"},
    {DEVICE(CARD ",\"9x\":{\"int\":1}"),
     "spec.devices[0].attributes[\"9x\"]: must be a C identifier"},
    {DEVICE(CARD ",\"biga.dev/colour\":{\"string\":\"red\"}"),
     "spec.devices[0].attributes[\"biga.dev/colour\"]: no such attribute"},
    {DEVICE(CARD ",\"other.org/x\":{\"string\":\"01234567890123456789012345"
                 "678901234567890123456789012345678901234567890\"}"),
     "spec.devices[0].attributes[\"other.org/x\"].string: has 71 bytes"},
    {DEVICE(NUMA ",\"biga.dev/arch\":{\"string\":\"arm64\"}"),
     "spec.devices[0].attributes[\"biga.dev/arch\"]: a device of kind numa "
     "does not have it"},
    {DEVICE("\"biga.dev/kind\":{\"string\":\"numa\"}"),
     "spec.devices[0].attributes[\"resource.kubernetes.io/numaNode\"]: "
     "required"},
    {DEVICE(CARD ",\"resource.kubernetes.io/numaNode\":{\"int\":-1}"),
     "spec.devices[0].attributes[\"resource.kubernetes.io/numaNode\"].int: "
     "is -1"},
    {DEVICE(CARD ",\"biga.dev/package\":{\"int\":1.5}"),
     "spec.devices[0].attributes[\"biga.dev/package\"].int: is 1.5"},
    {DEVICE(CARD ",\"resource.kubernetes.io/pciBusID\":{\"string\":"
                 "\"0000:17:00.A\"}"),
     "spec.devices[0].attributes[\"resource.kubernetes.io/pciBusID\"]"},
    {DEVICE(CARD ",\"resource.kubernetes.io/pciBusID\":{\"string\":"
                 "\"10000:17:00.0\"}"),
     "spec.devices[0].attributes[\"resource.kubernetes.io/pciBusID\"]"},
    {DEVICE(CARD ",\"biga.dev/pciAddress\":{\"string\":\"0000:17:00.0\"}"),
     "spec.devices[0].attributes[\"biga.dev/pciAddress\"]"},
    {DEVICE(CARD "," BUS ",\"biga.dev/pciAddress\":{\"string\":"
                 "\"10000:17:00.0\"}"),
     "spec.devices[0].attributes[\"biga.dev/pciAddress\"]: must be absent"},
    {DEVICE(CARD "," BUS ",\"resource.kubernetes.io/pcieRoot\":{\"string\":"
                 "\"pci000:16\"}"),
     "spec.devices[0].attributes[\"resource.kubernetes.io/pcieRoot\"]"},
    {DEVICE(CARD ",\"biga.dev/pciePath\":{\"string\":\"16:01.0\"}"),
     "spec.devices[0].attributes[\"resource.kubernetes.io/pciBusID\"]: "
     "required beside biga.dev/pciePath"},
    {DEVICE(CARD "," BUS ",\"biga.dev/pciePath\":{\"string\":\"16:01\"}"),
     "spec.devices[0].attributes[\"biga.dev/pciePath\"].string: has "
     "\"16:01\""},
    {DEVICE(CARD "," BUS ",\"biga.dev/pciePath2\":{\"string\":\"16:01.0\"}"),
     "spec.devices[0].attributes[\"biga.dev/pciePath\"]: part 2 is there"},
    {DEVICE(CARD "," BUS ",\"biga.dev/pciePath7\":{\"string\":\"16:01.0\"}"),
     "spec.devices[0].attributes[\"biga.dev/pciePath7\"]: no such"},
    {DEVICE(CARD "," BUS ",\"biga.dev/pciePath\":{\"string\":\"16:01.0\"},"
                 "\"biga.dev/switch\":{\"string\":\"0000:15:00.0\"}"),
     "spec.devices[0].attributes[\"biga.dev/switch\"].string: is "
     "\"0000:15:00.0\", by biga.dev/pciePath it must be 0000:16:01.0"},
    {DEVICE(CARD "," BUS ",\"biga.dev/functions\":{\"string\":"
                 "\"17:00.1 17:00.0\"}"),
     "spec.devices[0].attributes[\"biga.dev/functions\"].string"},
    {DEVICE(CARD "," BUS ",\"biga.dev/functions\":{\"string\":"
                 "\"17:00.0 0001:17:00.1\"}"),
     "spec.devices[0].attributes[\"biga.dev/functions\"].string: \"17:00.0 "
     "0001:17:00.1\": must be in the card's PCI domain"},
    {DEVICE(CARD ",\"biga.dev/pciID\":{\"string\":\"15b3\"}"),
     "spec.devices[0].attributes[\"biga.dev/pciID\"].string: is \"15b3\""},
    {DEVICE(NUMA ",\"biga.dev/distances\":{\"string\":\"10 x\"}"),
     "spec.devices[0].attributes[\"biga.dev/distances\"].string: has \"x\""},
    {DEVICE(NUMA ",\"biga.dev/cpuList\":{\"string\":\"3-0\"}"),
     "spec.devices[0].attributes[\"biga.dev/cpuList\"].string: is \"3-0\", "
     "must be CPUs like"},
    {DEVICE(NUMA ",\"biga.dev/cpuList\":{\"string\":\"0-3\"}"),
     "spec.devices[0].attributes[\"biga.dev/cpuList\"].string: is \"0-3\", "
     "which are 4 CPUs, but biga.dev/cpus is 0"},
    {DEVICE(CARD ",\"biga.dev/cpuList\":{\"string\":\"0\"}"),
     "spec.devices[0].attributes[\"biga.dev/cpuList\"]: a device of kind card"},
    {WITH_CAPACITY(CARD, "\"biga.dev/cores\":{\"value\":\"1.5\"}"),
     "spec.devices[0].capacity[\"biga.dev/cores\"].value: is \"1.5\""},
    {WITH_CAPACITY(CARD, "\"biga.dev/cores\":{\"value\":16}"),
     "spec.devices[0].capacity[\"biga.dev/cores\"].value: must be a string"},
    {WITH_CAPACITY(CARD, "\"biga.dev/memory\":{\"value\":\"32G\"}"),
     "spec.devices[0].capacity[\"biga.dev/memory\"].value: is \"32G\", must "
     "be a whole number of Mi"},
    {WITH_CAPACITY(CARD, "\"biga.dev/memory\":{\"value\":\"9Ei\"}"),
     "spec.devices[0].capacity[\"biga.dev/memory\"].value: is \"9Ei\""},
    {WITH_CAPACITY(CARD, "\"biga.dev/cpus\":{\"value\":\"1\"}"),
     "spec.devices[0].capacity[\"biga.dev/cpus\"]: a device of kind card"},
    {WITH_CAPACITY(NUMA, "\"biga.dev/lanes\":{\"value\":\"1\"}"),
     "spec.devices[0].capacity[\"biga.dev/lanes\"]: no such capacity"},
};

Test(slice, refuses_and_names_the_field)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct slice *slice = NULL;
        struct error err = {0};
        int r = slice_decode(refused[i].json, strlen(refused[i].json), &slice,
                             &err);
        cr_assert_eq(r, -EINVAL, "%s", refused[i].says);
        cr_assert_null(slice);
        cr_expect_eq(
            strncmp(err.text, refused[i].says, strlen(refused[i].says)), 0,
            "got  %s\nwant %s", err.text, refused[i].says);
    }
}

Test(slice, refuses_too_many)
{
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    struct slice *slice;
    struct error err;
    str_add(&text, HEAD ",\"devices\":[");
    for (int i = 0; i < 129; i++)
        str_addf(&text, "%s{\"name\":\"d%d\",\"attributes\":{" CARD "}}",
                 i ? "," : "", i);
    str_add(&text, "]}}");
    cr_assert_eq(slice_decode(text.data, text.size, &slice, &err), -EINVAL);
    cr_assert_str_eq(err.text, "spec.devices: has 129 elements, the limit is "
                               "128");
    str_reset(&text);
    str_add(&text, HEAD ",\"devices\":[{\"name\":\"d\",\"attributes\":{" CARD);
    for (int i = 0; i < 32; i++)
        str_addf(&text, ",\"x%d\":{\"int\":1}", i);
    str_add(&text, "}}]}}");
    cr_assert_eq(slice_decode(text.data, text.size, &slice, &err), -EINVAL);
    cr_assert_str_eq(err.text, "spec.devices[0]: has 33 attributes and "
                               "capacities, the limit is 32");
}

/* What Kubernetes adds, now or later, and other people's attributes. */
Test(slice, takes_what_kubernetes_adds)
{
    const char *json =
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
        "\"metadata\":{\"name\":\"h-0\",\"uid\":\"x\",\"resourceVersion\":"
        "\"5\",\"annotations\":{\"biga.dev/boot-id\":\"b1\",\"other\":\"y\"},"
        "\"managedFields\":[{}]},\"spec\":{\"driver\":\"xpu.biga.dev\","
        "\"nodeName\":\"h\",\"allNodes\":null,\"pool\":{\"name\":\"h\","
        "\"generation\":3,\"resourceSliceCount\":1},\"devices\":[{\"name\":"
        "\"a\",\"taints\":[],\"attributes\":{" CARD
        ",\"list\":{\"ints\":[1,2]},\"dra.net/v\":{\"version\":\"1.2.3\"}},"
        "\"capacity\":{\"biga.dev/cores\":{\"value\":\"1k\","
        "\"requestPolicy\":{}},\"biga.dev/memory\":{\"value\":\"34359738368\""
        "},\"other.org/bandwidth\":{\"value\":\"100G\"}}}]}}";
    cleanup_with(slice) struct slice *slice = NULL;
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err;
    cr_assert_eq(slice_decode(json, strlen(json), &slice, &err), 0, "%s",
                 err.text);
    cr_assert_str_eq(slice_get_name(slice), "h-0");
    cr_assert_str_eq(slice_get_hash(slice), "");
    cr_assert_str_eq(slice_get_epoch(slice)->boot_id, "b1");
    cr_assert_eq(slice_get_epoch(slice)->generation, 3);
    cr_assert_eq(slice_join(&slice, 1, &topo, &err), 0, "%s", err.text);
    cr_assert_eq(topo_n_devices(topo), 1);
    cr_assert_eq(topo_device(topo, 0)->cores, 1000);
    cr_assert_eq(topo_device(topo, 0)->memory_mib, 32768);
    cr_assert_not(topo_device(topo, 0)->unhealthy);
}

/* The items of a list do not say what they are, as the list does. */
Test(slice, takes_an_item_of_a_list)
{
    const char *json =
        "{\"metadata\":{\"name\":\"h-0\",\"annotations\":{"
        "\"biga.dev/boot-id\":\"b1\"}},\"spec\":{\"driver\":\"xpu.biga.dev\","
        "\"nodeName\":\"h\",\"pool\":{\"name\":\"h\",\"generation\":1,"
        "\"resourceSliceCount\":1}}}";
    cleanup_with(slice) struct slice *slice = NULL;
    struct error err;
    cr_assert_eq(slice_decode(json, strlen(json), &slice, &err), 0, "%s",
                 err.text);
}

/* --- joining ------------------------------------------------------------- */

static struct slice *slice_of(const char *node, int generation, int count,
                              const char *name, const char *devices)
{
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    struct slice *slice = NULL;
    struct error err;
    str_addf(&text,
             "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":"
             "\"ResourceSlice\",\"metadata\":{\"name\":\"%s\",\"annotations\""
             ":{\"biga.dev/boot-id\":\"b\"}},\"spec\":{\"driver\":"
             "\"xpu.biga.dev\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\","
             "\"generation\":%d,\"resourceSliceCount\":%d},\"devices\":[%s]}}",
             name, node, node, generation, count, devices);
    cr_assert_eq(slice_decode(text.data, text.size, &slice, &err), 0, "%s",
                 err.text);
    return slice;
}

static void assert_join_fails(struct slice *a, struct slice *b,
                              const char *says)
{
    struct slice *both[] = {a, b};
    struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(slice_join(both, b ? 2 : 1, &topo, &err), -EINVAL);
    cr_assert_null(topo);
    cr_expect_not_null(strstr(err.text, says), "%s", err.text);
    slice_unref(b);
}

Test(slice, join_refuses_what_does_not_belong_together)
{
    const char *card = "{\"name\":\"a\",\"attributes\":{" CARD "}}";
    const char *odd = "{\"name\":\"n\",\"attributes\":{" NUMA
                      ",\"biga.dev/distances\":{\"string\":\"10 20\"}}}";
    cleanup_with(slice) struct slice *a = slice_of("h", 1, 2, "h-0", card);
    cleanup_with(slice) struct slice *one = slice_of("h", 1, 1, "h-0", odd);
    assert_join_fails(a, NULL, "resourceSliceCount of h-0 says 2");
    assert_join_fails(a, slice_of("x", 1, 2, "x-0", ""), "spec.nodeName");
    assert_join_fails(a, slice_of("h", 2, 2, "h-1", ""), "generation");
    assert_join_fails(a, slice_of("h", 1, 3, "h-1", ""), "resourceSliceCount");
    assert_join_fails(a, slice_of("h", 1, 2, "h-0", ""), "h-0 is there twice");
    assert_join_fails(a, slice_of("h", 1, 2, "h-1", card), "there twice");
    assert_join_fails(one, NULL, "has 2 numbers, the pool has 1 numa");
}
