#include "model/slice/slice.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "model/slice/slice_private.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/roundtrip.h"
#include "tests/lib/testdata.h"

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
        "",
        "mlx5_0",
        "a \"quoted\" \\ text",
        "\x01\x02 control",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8e",
        "tcp://[fe80::1%eth0]:2376",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    const char *text = texts[below(ARRAY_LEN(texts))];
    return arena_strndup(a, text, strlen(text));
}

static uint32_t some_domain(void)
{
    static const uint32_t domains[] = {0,     0,      0,       1,
                                       0x101, 0xffff, 0x10000, 0xfffffffe};
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

static void random_card(struct device *d, struct identity *own, struct arena *a)
{
    d->arch = some_text(a);
    own->fabric_port = some_text(a);
    own->endpoint = some_text(a);
    static const char *const words[] = {"", "ready", "suspect", "lost",
                                        "drained"};
    d->unhealthy = below(4) == 0;
    d->runs_pods = below(2);
    d->by_claims = below(2);
    /* one whose attributes are all in use has no room for it */
    d->health = d->n_path < 8 ? words[below(5)] : "";
    static const char *const sets[] = {"", "rdma", "hugepages rdma snap"};
    d->devices = d->n_path < 8 ? sets[below(3)] : "";
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
    if (d->n_path >= 4 || n > 4)
        return; /* there may be no room for these */
    static const char *const rights[] = {"0000000000000000",
                                         "e001000000005000"};
    d->rights = below(2) ? rights[below(2)] : "";
    d->link = below(2) ? "up" : "";
    d->link_mbps = below(2) ? below(800000) : 0;
    d->mode = below(2) ? "switchdev" : "";
    d->vfs_max = (uint16_t)(below(2) ? below(4097) : 0);
    d->vfs = (uint16_t)below(d->vfs_max + 1u);
}

static void random_device(struct topo_builder *b, enum device_kind kind,
                          unsigned serial)
{
    struct arena a = {0};
    char id[32];
    (void)snprintf(id, sizeof id, "%s-%u", device_kind_name(kind), serial);
    struct device d = {.kind = kind, .id = id};
    struct identity own = {0};
    d.numa = (int)below(6) - 1;
    d.package = (int)below(3) - 1;
    if (kind == DEVICE_NUMA) {
        d.numa = (int)serial * (serial > 3 ? 500 : 1);
        d.cpus = below(200);
        if (d.cpus > 1 && below(2)) {
            char *list = arena_alloc(&a, 24);
            (void)snprintf(list, 24, "%u-%u", serial, serial + d.cpus - 1);
            d.cpu_list = list;
        }
        d.numa_memory_mib = below(1 << 24);
    } else {
        if (below(8))
            random_pci(&d, &a, serial);
        d.vendor_id = (uint16_t)below(65536);
        d.device_id = (uint16_t)(below(3) ? below(65536) : 0);
        d.vendor = some_text(&a);
        d.model = some_text(&a);
        own.serial = some_text(&a);
        d.interface = some_text(&a);
        d.rdma = some_text(&a);
        own.guid = some_text(&a);
    }
    if (kind == DEVICE_CARD)
        random_card(&d, &own, &a);
    topo_builder_add(b, &d, &own);
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
    topo_builder_runs(b, (enum topo_runs)below(3));
    bool huge = below(8) == 0;
    for (int i = 0; i < (int)numas && below(4); i++)
        for (int j = 0; j < (int)numas; j++)
            if (below(20))
                topo_builder_distance(
                    b, i * (i > 3 ? 500 : 1), j * (j > 3 ? 500 : 1),
                    huge ? UINT32_MAX - below(9) : 10 + below(90));
    struct topo *topo;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    return topo;
}

static const struct slice_epoch epoch = {"2c1f7a2e-boot", 7};

/* --- the properties ------------------------------------------------------ */

Test(slice, decode_is_the_inverse_of_encode)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        cleanup_with(topo) struct topo *topo = random_topo(seed);
        cr_assert(roundtrip(topo), "seed %llu", (unsigned long long)seed);
    }
}

/* What DRA's own validation would say of each slice. */
static void assert_limits(const cJSON *slice)
{
    const cJSON *spec = cJSON_GetObjectItem(slice, "spec"), *d, *a;
    const cJSON *devices = cJSON_GetObjectItem(spec, "devices");
    cr_assert_leq(cJSON_GetArraySize(devices), 64); /* as there are taints */
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
    struct device d = {.kind = DEVICE_CARD,
                       .id = "card-0",
                       .numa = 32767,
                       .package = 2147483647,
                       .has_pci = true,
                       .pci = {0x10000, 0xff, 0, 0},
                       .root_domain = 0xfffffff0,
                       .root_bus = 255,
                       .n_path = TOPO_PATH_MAX,
                       .path = path,
                       .vendor_id = 1,
                       .device_id = 2,
                       .interface = wide,
                       .rdma = wide,
                       .n_functions = TOPO_FUNCTIONS_MAX,
                       .functions = functions,
                       .arch = wide,
                       .cores = UINT32_MAX,
                       .memory_mib = UINT32_MAX,
                       .unhealthy = true,
                       .by_claims = true};
    struct identity own = {
        .serial = wide, .fabric_port = wide, .endpoint = wide};
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h");
    topo_builder_add(b, &d, &own);
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    cr_assert(roundtrip(topo));

    /* there is no room for these, and all else stays */
    d.vendor = d.model = own.guid = wide;
    cleanup_with(topo_builder) struct topo_builder *b2 =
        topo_builder_create("h");
    cleanup_with(topo) struct topo *fuller = NULL;
    topo_builder_add(b2, &d, &own);
    cr_assert_eq(topo_build(b2, &fuller, &err), 0, "%s", err.text);
    cleanup_str struct str with = STR_INIT(1 << 20);
    cleanup_str struct str without = STR_INIT(1 << 20);
    slice_encode(fuller, &epoch, 0, &with);
    slice_encode(topo, &epoch, 0, &without);
    cr_expect_str_eq(str_text(&with), str_text(&without));
}

Test(slice, node_without_devices_is_published)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("empty");
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0);
    cr_assert_eq(slice_count(topo), 1);
    cr_assert(roundtrip(topo));
}

Test(slice, as_an_object_it_has_an_owner_and_a_version)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("empty");
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0);
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    const struct slice_meta meta = {.owner_uid = "u-1",
                                    .resource_version = "42"};
    slice_encode_object(topo, &epoch, 0, &meta, &text);
    cleanup_with(json) cJSON *json = NULL;
    cr_assert_eq(json_parse(text.data, text.size, &json, &err), 0, "%s",
                 err.text);
    cleanup_free char *metadata = cJSON_PrintUnformatted(
        cJSON_GetObjectItemCaseSensitive(json, "metadata"));
    cr_assert(
        strstr(metadata,
               "\"resourceVersion\":\"42\",\"ownerReferences\":[{"
               "\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"empty\","
               "\"uid\":\"u-1\"}],\"annotations\":{"),
        "%s", metadata);
}

/* A host with two cards, `runs` of which run pods (bits). */
static struct topo *runner(enum topo_runs runs, unsigned cards)
{
    struct topo *topo = NULL;
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h");
    static const char *const ids[] = {"card-0", "card-01"};
    for (unsigned i = 0; i < ARRAY_LEN(ids); i++)
        topo_builder_add(b,
                         &(struct device){.kind = DEVICE_CARD,
                                          .id = ids[i],
                                          .numa = -1,
                                          .package = -1,
                                          .root_domain = TOPO_ROOT_NONE,
                                          .runs_pods = cards >> i & 1},
                         NULL);
    topo_builder_runs(b, runs);
    cr_assert_eq(topo_build(b, &topo, NULL), 0);
    return topo;
}

/* Who does not say what it runs publishes what older advertisers do. */
Test(slice, says_where_pods_run)
{
    static const struct {
        enum topo_runs runs;
        unsigned cards;
        const char *text;
    } cases[] = {
        {TOPO_RUNS_UNTOLD, 3, NULL},
        {TOPO_RUNS_NONE, 3, "\"biga.dev/runs-pods\":\"none\""},
        {TOPO_RUNS_PODS, 0, "\"biga.dev/runs-pods\":\"host\""},
        {TOPO_RUNS_PODS, 1, "\"biga.dev/runs-pods\":\"host card-0\""},
        {TOPO_RUNS_PODS, 2, "\"biga.dev/runs-pods\":\"host card-01\""},
    };
    char hashes[ARRAY_LEN(cases)][17];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(topo) struct topo *topo = runner(cases[i].runs,
                                                      cases[i].cards);
        cleanup_str struct str out = STR_INIT(SLICE_BODY_MAX);
        slice_encode(topo, &epoch, 0, &out);
        const char *said = strstr(str_text(&out), "runs-pods");
        cr_assert(cases[i].text ? strstr(str_text(&out), cases[i].text) != NULL
                                : said == NULL,
                  "%s", str_text(&out));
        cr_assert(roundtrip(topo));
        slice_content_hash(topo, hashes[i]);
        for (size_t k = 0; k < i; k++)
            cr_assert_str_neq(hashes[k], hashes[i], "%zu, %zu", k, i);
    }
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
            topo_builder_add(b,
                             &(struct device){.kind = DEVICE_NUMA,
                                              .id = id,
                                              .numa = n,
                                              .cpus = i == 1 ? 9 : 8},
                             NULL);
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

/* The page that is the home of the names has them all. */
Test(slice, every_name_is_in_the_schema)
{
    cleanup_free char *page = testdata_read("schema/slice.md", NULL);
    for (unsigned i = 0; i < ATTRIBUTE_COUNT + CAPACITY_COUNT; i++) {
        const char *name = i < ATTRIBUTE_COUNT
                               ? slice_attributes[i].name
                               : slice_capacities[i - ATTRIBUTE_COUNT].name;
        cleanup_free char *quoted = xasprintf("`%s`", name);
        cr_expect_not_null(strstr(page, quoted), "%s", name);
    }
}

Test(slice, a_brief_one_says_whose_it_is)
{
    static const struct slice_epoch when = {"boot-1", 7};
    cleanup_with(topo) struct topo *topo = random_topo(3);
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    cleanup_with(slice) struct slice *slice = NULL;
    struct error err = {0};
    slice_encode(topo, &when, 0, &text);
    cr_assert_eq(slice_decode(text.data, text.size, &slice, &err), 0, "%s",
                 err.text);
    cleanup_with(slice) struct slice *brief = slice_brief(slice);
    cr_expect_str_eq(slice_get_name(brief), slice_get_name(slice));
    cr_expect_str_eq(slice_get_node(brief), topo_node(topo));
    cr_expect_str_eq(slice_get_hash(brief), slice_get_hash(slice));
    cr_expect_eq(slice_get_given(brief), slice_get_given(slice));
    cr_expect_eq(slice_get_pool_count(brief), slice_count(topo));
    cr_expect_str_eq(slice_get_epoch(brief)->boot_id, "boot-1");
    cr_expect_eq(slice_get_epoch(brief)->generation, 7);
}
