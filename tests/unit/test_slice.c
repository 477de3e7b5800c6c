#include "model/slice.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/base/mem.h"

/* --- random topologies --------------------------------------------------- */

static uint64_t random_state;

static unsigned below(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % n;
}

static const char *some_text(struct arena *a)
{
    static const char *const texts[] = {
        "", "mlx5_0", "a \"quoted\" \\ text", "\x01\x02 control",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8e", "tcp://[fe80::1%eth0]:2376",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    const char *text = texts[below(ARRAY_LEN(texts))];
    return arena_strndup(a, text, strlen(text));
}

static uint32_t some_domain(void)
{
    static const uint32_t domains[] = {0, 0, 0, 1, 0x101, 0xffff, 0x10000,
                                       0xfffffffe};
    return domains[below(ARRAY_LEN(domains))];
}

static struct pci_addr some_addr(uint32_t domain)
{
    return (struct pci_addr){domain, (uint8_t)below(256), (uint8_t)below(32),
                             (uint8_t)below(8)};
}

static void random_pci(struct device *d, struct arena *a, unsigned serial)
{
    d->has_pci = true;
    d->pci = some_addr(some_domain());
    d->pci.bus = (uint8_t)serial; /* unique */
    bool rooted = below(8) != 0;
    d->root_domain = rooted ? (below(4) ? d->pci.domain : some_domain())
                            : TOPO_ROOT_NONE;
    d->root_bus = rooted ? (uint8_t)below(2) : 0;
    unsigned n = below(4) ? below(4) : below(TOPO_PATH_MAX + 1);
    struct pci_addr *path = arena_alloc(a, (n + 1) * sizeof *path);
    for (unsigned i = 0; i < n; i++) {
        /* few different bridges, so that paths meet */
        path[i] = (struct pci_addr){below(8) ? d->pci.domain : some_domain(),
                                    (uint8_t)i, (uint8_t)below(2), 0};
    }
    d->n_path = (uint8_t)n;
    d->path = path;
}

static void random_card(struct device *d, struct arena *a)
{
    d->arch = some_text(a);
    d->fabric_port = some_text(a);
    d->endpoint = some_text(a);
    d->unhealthy = below(4) == 0;
    d->cores = below(3) ? below(1000) : 0;
    d->memory_mib = below(3) ? (uint64_t)below(1 << 20) << below(20) : 0;
    if (!d->has_pci)
        return;
    unsigned n = below(3) ? below(3) : below(TOPO_FUNCTIONS_MAX + 1);
    struct pci_addr *functions = arena_alloc(a, (n + 1) * sizeof *functions);
    for (unsigned i = 0; i < n; i++) {
        unsigned rid = i * 7u;
        functions[i] = (struct pci_addr){d->pci.domain, (uint8_t)(rid >> 8),
                                         (uint8_t)(rid >> 3 & 31),
                                         (uint8_t)(rid & 7)};
    }
    d->functions = functions;
    d->n_functions = (uint8_t)n;
}

static void random_device(struct topo_builder *b, enum device_kind kind,
                          unsigned serial)
{
    struct arena a = {0};
    char id[32];
    (void)snprintf(id, sizeof id, "%s-%u", device_kind_name(kind), serial);
    struct device d = {.kind = kind, .id = id};
    d.numa = (int)below(6) - 1;
    d.package = (int)below(3) - 1;
    if (kind == DEVICE_NUMA) {
        d.numa = (int)serial * (serial > 3 ? 500 : 1);
        d.cpus = below(200);
        d.numa_memory_mib = below(1 << 24);
    } else {
        if (below(8))
            random_pci(&d, &a, serial);
        d.vendor_id = (uint16_t)below(65536);
        d.device_id = (uint16_t)(below(3) ? below(65536) : 0);
        d.vendor = some_text(&a);
        d.model = some_text(&a);
        d.serial = some_text(&a);
        d.interface = some_text(&a);
        d.rdma = some_text(&a);
    }
    if (kind == DEVICE_CARD)
        random_card(&d, &a);
    topo_builder_add(b, &d);
    arena_fini(&a);
}

static struct topo *random_topo(uint64_t seed)
{
    random_state = seed * 2654435761u + 88172645463325252u;
    (void)below(1);
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("rack1-host7.example.org");
    unsigned cards = below(TOPO_CARDS_MAX + 1), gpus = below(9);
    unsigned nics = below(10) ? below(6) : below(500);
    unsigned numas = below(10) ? below(5) : below(TOPO_NUMAS_MAX + 1);
    for (unsigned i = 0; i < cards; i++)
        random_device(b, DEVICE_CARD, i);
    for (unsigned i = 0; i < gpus; i++)
        random_device(b, DEVICE_GPU, i);
    for (unsigned i = 0; i < nics; i++)
        random_device(b, DEVICE_NIC, i);
    for (unsigned i = 0; i < numas; i++)
        random_device(b, DEVICE_NUMA, i);
    bool huge = below(8) == 0;
    for (int i = 0; i < (int)numas && below(4); i++)
        for (int j = 0; j < (int)numas; j++)
            if (below(20))
                topo_builder_distance(b, i * (i > 3 ? 500 : 1),
                                      j * (j > 3 ? 500 : 1),
                                      huge ? UINT32_MAX - below(9)
                                           : 10 + below(90));
    struct topo *topo;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    return topo;
}

/* --- comparing ----------------------------------------------------------- */

static void assert_addrs(const struct pci_addr *a, unsigned n_a,
                         const struct pci_addr *b, unsigned n_b)
{
    cr_assert_eq(n_a, n_b);
    for (unsigned i = 0; i < n_a; i++)
        cr_assert_eq(pci_addr_compare(&a[i], &b[i]), 0);
}

static void assert_same_device(const struct device *a, const struct device *b)
{
    cr_assert_eq(a->kind, b->kind);
    cr_assert_str_eq(a->id, b->id);
    cr_assert_eq(a->numa, b->numa);
    cr_assert_eq(a->package, b->package);
    cr_assert_eq(a->has_pci, b->has_pci);
    if (a->has_pci) {
        cr_assert_eq(pci_addr_compare(&a->pci, &b->pci), 0);
        cr_assert_eq(a->root_domain, b->root_domain);
        cr_assert_eq(a->root_bus, b->root_bus);
    }
    assert_addrs(a->path, a->n_path, b->path, b->n_path);
    assert_addrs(a->functions, a->n_functions, b->functions, b->n_functions);
    cr_assert_eq(a->vendor_id, b->vendor_id);
    cr_assert_eq(a->device_id, b->device_id);
    cr_assert_str_eq(a->vendor, b->vendor);
    cr_assert_str_eq(a->model, b->model);
    cr_assert_str_eq(a->serial, b->serial);
    cr_assert_str_eq(a->interface, b->interface);
    cr_assert_str_eq(a->rdma, b->rdma);
    cr_assert_str_eq(a->arch, b->arch);
    cr_assert_eq(a->cores, b->cores);
    cr_assert_eq(a->memory_mib, b->memory_mib);
    cr_assert_str_eq(a->fabric_port, b->fabric_port);
    cr_assert_str_eq(a->endpoint, b->endpoint);
    cr_assert_eq(a->unhealthy, b->unhealthy);
    cr_assert_eq(a->cpus, b->cpus);
    cr_assert_eq(a->numa_memory_mib, b->numa_memory_mib);
}

static void assert_same_topo(const struct topo *a, const struct topo *b)
{
    cr_assert_str_eq(topo_node(a), topo_node(b));
    cr_assert_eq(topo_n_devices(a), topo_n_devices(b));
    size_t n = topo_n_devices(a), first;
    for (size_t i = 0; i < n; i++) {
        assert_same_device(topo_device(a, i), topo_device(b, i));
        for (size_t j = 0; j < n; j++)
            if (topo_relation(a, i, j) != topo_relation(b, i, j))
                cr_assert_fail("relation %zu %zu differs", i, j);
    }
    size_t numas = topo_count(a, DEVICE_NUMA, &first);
    for (size_t i = 0; i < numas; i++)
        for (size_t j = 0; j < numas; j++) {
            int x = topo_device(a, first + i)->numa;
            int y = topo_device(a, first + j)->numa;
            if (topo_distance(a, x, y) != topo_distance(b, x, y))
                cr_assert_fail("distance %d %d differs", x, y);
        }
}

static const struct slice_epoch epoch = {"2c1f7a2e-boot", 7};

/* Through all slices, joined in reverse. */
static struct topo *round_trip(const struct topo *topo)
{
    struct slice *slices[SLICE_POOL_SLICES_MAX];
    size_t n = slice_count(topo);
    struct error err;
    for (size_t i = 0; i < n; i++) {
        cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
        slice_encode(topo, &epoch, i, &text);
        cr_assert_not(text.overflow);
        int r = slice_decode(text.data, text.size, &slices[n - 1 - i], &err);
        cr_assert_eq(r, 0, "%s", err.text);
    }
    struct topo *back;
    cr_assert_eq(slice_join(slices, n, &back, &err), 0, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        slice_unref(slices[i]);
    return back;
}

/* --- the properties ------------------------------------------------------ */

Test(slice, decode_is_the_inverse_of_encode)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        cleanup_with(topo) struct topo *topo = random_topo(seed);
        cleanup_with(topo) struct topo *back = round_trip(topo);
        assert_same_topo(topo, back);
        char a[17], b[17];
        slice_content_hash(topo, a);
        slice_content_hash(back, b);
        cr_assert_str_eq(a, b);
    }
}

/* What DRA's own validation would say of each slice. */
static void assert_limits(const cJSON *slice)
{
    const cJSON *spec = cJSON_GetObjectItem(slice, "spec"), *d, *a;
    const cJSON *devices = cJSON_GetObjectItem(spec, "devices");
    cr_assert_leq(cJSON_GetArraySize(devices), 128);
    cJSON_ArrayForEach(d, devices)
    {
        const cJSON *attributes = cJSON_GetObjectItem(d, "attributes");
        const cJSON *capacity = cJSON_GetObjectItem(d, "capacity");
        cr_assert_leq(cJSON_GetArraySize(attributes) +
                          (capacity ? cJSON_GetArraySize(capacity) : 0),
                      32);
        cJSON_ArrayForEach(a, attributes)
        {
            const char *slash = strchr(a->string, '/');
            cr_assert_not_null(slash);
            cr_assert_leq(strlen(slash + 1), 32);
            cr_assert_eq(cJSON_GetArraySize(a), 1);
            if (cJSON_IsString(a->child))
                cr_assert_leq(strlen(a->child->valuestring), 64);
        }
    }
}

Test(slice, stays_within_the_limits_of_dra)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        cleanup_with(topo) struct topo *topo = random_topo(seed);
        for (size_t i = 0; i < slice_count(topo); i++) {
            cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
            cleanup_with(json) cJSON *json = NULL;
            struct error err;
            slice_encode(topo, &epoch, i, &text);
            cr_assert_eq(json_parse(text.data, text.size, &json, &err), 0);
            assert_limits(json);
        }
    }
}

Test(slice, equal_input_gives_equal_bytes)
{
    cleanup_with(topo) struct topo *a = random_topo(42);
    cleanup_with(topo) struct topo *b = random_topo(42);
    cleanup_str struct str x = STR_INIT(SLICE_BODY_MAX);
    cleanup_str struct str y = STR_INIT(SLICE_BODY_MAX);
    slice_encode(a, &epoch, 0, &x);
    slice_encode(b, &epoch, 0, &y);
    cr_assert_eq(x.size, y.size);
    cr_assert_eq(memcmp(x.data, y.data, x.size), 0);
}

/* The biggest card there may be still fits into 32 attributes. */
Test(slice, widest_card_fits)
{
    static const char *wide =
        "0123456789012345678901234567890123456789012345678901234567890123";
    struct pci_addr path[TOPO_PATH_MAX], functions[TOPO_FUNCTIONS_MAX];
    for (unsigned i = 0; i < TOPO_PATH_MAX; i++)
        path[i] = (struct pci_addr){0xfffffff0, (uint8_t)i, 31, 7};
    for (unsigned i = 0; i < TOPO_FUNCTIONS_MAX; i++)
        functions[i] = (struct pci_addr){0x10000, 0xff, (uint8_t)(i / 8),
                                         (uint8_t)(i % 8)};
    struct device d = {.kind = DEVICE_CARD, .id = "card-0", .numa = 32767,
                       .package = 2147483647, .has_pci = true,
                       .pci = {0x10000, 0xff, 0, 0},
                       .root_domain = 0xfffffff0, .root_bus = 255,
                       .n_path = TOPO_PATH_MAX, .path = path,
                       .vendor_id = 1, .device_id = 2, .vendor = wide,
                       .model = wide, .serial = wide, .interface = wide,
                       .rdma = wide, .n_functions = TOPO_FUNCTIONS_MAX,
                       .functions = functions, .arch = wide,
                       .cores = UINT32_MAX, .memory_mib = UINT32_MAX,
                       .fabric_port = wide, .endpoint = wide,
                       .unhealthy = true};
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h");
    topo_builder_add(b, &d);
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    cleanup_with(topo) struct topo *back = round_trip(topo);
    assert_same_topo(topo, back);
}

Test(slice, node_without_devices_is_published)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("empty");
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0);
    cr_assert_eq(slice_count(topo), 1);
    cleanup_with(topo) struct topo *back = round_trip(topo);
    cr_assert_eq(topo_n_devices(back), 0);
    cr_assert_str_eq(topo_node(back), "empty");
}

Test(slice, content_hash_changes_with_the_content)
{
    char hashes[4][17];
    for (unsigned i = 0; i < 4; i++) {
        cleanup_with(topo_builder) struct topo_builder *b =
            topo_builder_create(i == 3 ? "other" : "host");
        for (int n = 0; n < 2; n++) {
            char id[8];
            (void)snprintf(id, sizeof id, "numa-%d", n);
            topo_builder_add(b, &(struct device){.kind = DEVICE_NUMA,
                                                 .id = id,
                                                 .numa = n,
                                                 .cpus = i == 1 ? 9 : 8});
        }
        if (i == 2)
            topo_builder_distance(b, 0, 1, 21);
        cleanup_with(topo) struct topo *topo = NULL;
        struct error err;
        cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
        slice_content_hash(topo, hashes[i]);
        for (unsigned j = 0; j < i; j++)
            cr_assert_str_neq(hashes[i], hashes[j]);
    }
}

Test(slice, names)
{
    char name[SLICE_NAME_MAX + 1], other[SLICE_NAME_MAX + 1], node[254];
    slice_name("h1", 3, name);
    cr_assert_str_eq(name, "h1-xpu.biga.dev-3");
    memset(node, 'a', 253);
    node[253] = '\0';
    memset(node + 195, '.', 40); /* whatever the cut meets */
    slice_name(node, 0, name);
    cr_assert_leq(strlen(name), 253);
    cr_assert_null(strstr(name, ".-"));
    node[252] = 'b';
    slice_name(node, 0, other);
    cr_assert_str_neq(name, other);
}

/* --- what is refused ----------------------------------------------------- */

#define META                                                               \
    "\"metadata\":{\"name\":\"h-0\",\"annotations\":{\"biga.dev/boot-id\":" \
    "\"b1\"}}"
#define HEAD                                                             \
    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\"," \
    META ",\"spec\":{\"driver\":\"xpu.biga.dev\",\"nodeName\":\"h\","    \
    "\"pool\":{\"name\":\"h\",\"generation\":1,\"resourceSliceCount\":1}"
#define DEVICE(attributes)                                              \
    HEAD ",\"devices\":[{\"name\":\"a\",\"attributes\":{" attributes "}}]}}"
#define WITH_CAPACITY(attributes, capacity)                            \
    HEAD ",\"devices\":[{\"name\":\"a\",\"attributes\":{" attributes   \
         "},\"capacity\":{" capacity "}}]}}"
#define CARD "\"biga.dev/kind\":{\"string\":\"card\"}"
#define NUMA                                 \
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
        cr_expect_eq(strncmp(err.text, refused[i].says,
                             strlen(refused[i].says)),
                     0, "got  %s\nwant %s", err.text, refused[i].says);
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
    cr_assert_str_eq(slice_get_pool(slice), "h");
    cr_assert_str_eq(slice_get_hash(slice), "");
    cr_assert_str_eq(slice_get_epoch(slice)->boot_id, "b1");
    cr_assert_eq(slice_get_epoch(slice)->generation, 3);
    cr_assert_eq(slice_n_devices(slice), 1);
    cr_assert_eq(slice_join(&slice, 1, &topo, &err), 0, "%s", err.text);
    cr_assert_eq(topo_device(topo, 0)->cores, 1000);
    cr_assert_eq(topo_device(topo, 0)->memory_mib, 32768);
    cr_assert_not(topo_device(topo, 0)->unhealthy);
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
