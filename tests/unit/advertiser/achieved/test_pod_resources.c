/* The kubelet's list of what its pods were given, byte by byte. */
#include "advertiser/achieved/pod_resources.h"

#include <criterion/criterion.h>
#include <string.h>

static struct proto_bytes bytes(const struct str *s)
{
    return (struct proto_bytes){str_text(s), s->size};
}

static int read_all(const struct str *m, struct given_pods **ret,
                    struct error *err)
{
    return pod_resources_read(bytes(m), ret, err);
}

static void add_device(struct str *m, const char *resource, const char *id)
{
    size_t d = proto_open(m, 2);
    proto_add_text(m, 1, resource);
    proto_add_text(m, 2, id);
    proto_close(m, d);
}

static void add_memory(struct str *m, uint32_t number, unsigned node)
{
    size_t block = proto_open(m, number);
    proto_add_text(m, 1, "memory");
    proto_add_varint(m, 2, 4096);
    size_t topology = proto_open(m, 3), at = proto_open(m, 1);
    if (node)
        proto_add_varint(m, 1, node);
    proto_close(m, at);
    proto_close(m, topology);
    proto_close(m, block);
}

static void add_claim(struct str *m, const char *device)
{
    size_t dynamic = proto_open(m, 5);
    proto_add_text(m, 2, "pair-0-card");
    proto_add_text(m, 3, "default");
    size_t given = proto_open(m, 4), cdi = proto_open(m, 1);
    proto_add_text(m, 1, "xpu.biga.dev/card=u-card-0000-17-00");
    proto_close(m, cdi);
    proto_add_text(m, 2, "xpu.biga.dev");
    proto_add_text(m, 3, "host0");
    proto_add_text(m, 4, device);
    proto_close(m, given);
    proto_close(m, dynamic);
}

Test(pod_resources, reads_all_that_a_pod_has)
{
    cleanup_str struct str m = STR_INIT(1 << 20);
    cleanup_with(given_pods) struct given_pods *all = NULL;
    struct error err = {0};
    size_t pod = proto_open(&m, 1);
    proto_add_text(&m, 1, "pair-0");
    proto_add_text(&m, 2, "default");
    size_t container = proto_open(&m, 3);
    proto_add_text(&m, 1, "main");
    add_device(&m, "nvidia.com/gpu", "0000:1b:00.0");
    add_device(&m, "nvidia.com/gpu", "0000:1c:00.0");
    proto_add_bytes(&m, 3, (struct proto_bytes){"\x01\x80\x01", 3});
    add_memory(&m, 4, 0);
    add_memory(&m, 4, 3);
    add_claim(&m, "card-0000-17-00");
    proto_add_text(&m, 77, "of a newer kubelet");
    proto_close(&m, container);
    container = proto_open(&m, 3);
    proto_add_varint(&m, 3, 7); /* not packed */
    proto_close(&m, container);
    proto_add_bytes(&m, 4, (struct proto_bytes){"\x09", 1});
    add_memory(&m, 5, 1);
    proto_close(&m, pod);
    pod = proto_open(&m, 1);
    proto_add_text(&m, 1, "bare");
    proto_close(&m, pod);

    cr_assert_eq(read_all(&m, &all, &err), 0, "%s", err.text);
    cr_assert_eq(all->n, 2u);
    const struct given_pod *p = &all->pods[0];
    cleanup_str struct str cpus = STR_INIT(64), memory = STR_INIT(64);
    index_set_format(&p->cpus, &cpus);
    index_set_format(&p->memory, &memory);
    cr_expect_str_eq(p->namespace, "default");
    cr_expect_str_eq(p->name, "pair-0");
    cr_assert_eq(p->n_devices, 2u);
    cr_expect_str_eq(p->devices[1].resource, "nvidia.com/gpu");
    cr_expect_str_eq(p->devices[1].id, "0000:1c:00.0");
    cr_assert_eq(p->n_claims, 1u);
    cr_expect_str_eq(p->claims[0].driver, "xpu.biga.dev");
    cr_expect_str_eq(p->claims[0].pool, "host0");
    cr_expect_str_eq(p->claims[0].device, "card-0000-17-00");
    cr_expect_str_eq(str_text(&cpus), "1,7,9,128");
    cr_expect_str_eq(str_text(&memory), "0-1,3");
    cr_expect(!p->strange);
    cr_expect_str_eq(all->pods[1].name, "bare");
    cr_expect(index_set_is_empty(&all->pods[1].cpus));
}

static void one_pod(struct str *m, void fill(struct str *))
{
    size_t pod = proto_open(m, 1), container = proto_open(m, 3);
    fill(m);
    proto_close(m, container);
    proto_close(m, pod);
}

static void cut_number(struct str *m)
{
    proto_add_bytes(m, 3, (struct proto_bytes){"\x80", 1});
}

static void long_number(struct str *m)
{
    proto_add_bytes(m, 3,
                    (struct proto_bytes){
                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11});
}

static void no_text(struct str *m)
{
    add_device(m, "a\xff", "x");
}

static void many_devices(struct str *m)
{
    for (int i = 0; i <= POD_RESOURCES_DEVICES_MAX; i++)
        add_device(m, "a.b/c", "x");
}

static void long_id(struct str *m)
{
    char id[POD_RESOURCES_TEXT_MAX + 2];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    add_device(m, "a.b/c", id);
}

Test(pod_resources, refuses_what_is_malformed_or_too_much)
{
    static const struct {
        void (*fill)(struct str *);
        int code;
        const char *text;
    } bad[] = {
        {cut_number, EPROTO,
         "PodResources: pod_resources[0]: cpu_ids: ends within a number"},
        {long_number, EPROTO,
         "PodResources: pod_resources[0]: cpu_ids: a number is too long"},
        {no_text, EPROTO,
         "PodResources: pod_resources[0]: resource_name: is no text"},
        {many_devices, E2BIG,
         "PodResources: pod_resources[0]: device_ids: are more than 1024 of "
         "one pod"},
        {long_id, E2BIG,
         "PodResources: pod_resources[0]: device_ids: has 254 bytes, at most "
         "253 allowed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str m = STR_INIT(1 << 20);
        struct given_pods *all = NULL;
        struct error err = {0};
        one_pod(&m, bad[i].fill);
        cr_expect_eq(read_all(&m, &all, &err), -bad[i].code);
        cr_expect_str_eq(err.text, bad[i].text);
        cr_expect_null(all);
    }
}

static void strange_cpu(struct str *m)
{
    proto_add_varint(m, 3, INDEX_SET_MAX);
}

Test(pod_resources, says_when_a_cpu_is_beyond_what_it_holds)
{
    cleanup_str struct str m = STR_INIT(1 << 20);
    cleanup_with(given_pods) struct given_pods *all = NULL;
    one_pod(&m, strange_cpu);
    cr_assert_eq(read_all(&m, &all, NULL), 0);
    cr_expect(all->pods[0].strange);
}

Test(pod_resources, takes_so_many_pods_and_no_more)
{
    cleanup_str struct str m = STR_INIT(1 << 20);
    struct given_pods *all = NULL;
    struct error err = {0};
    for (int i = 0; i < POD_RESOURCES_PODS_MAX; i++)
        proto_close(&m, proto_open(&m, 1));
    cr_assert_eq(read_all(&m, &all, &err), 0, "%s", err.text);
    cr_expect_eq(all->n, (size_t)POD_RESOURCES_PODS_MAX);
    given_pods_destroy(all);
    proto_close(&m, proto_open(&m, 1));
    cr_expect_eq(read_all(&m, &all, &err), -E2BIG);
}
