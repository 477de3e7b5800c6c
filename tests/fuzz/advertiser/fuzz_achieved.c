/* What a kubelet says its pods were given, what the kernel says of a cpuset, the
 * names of control groups and folders of logs, and what NVIDIA's driver says of
 * a GPU: what is taken obeys the caps, and what is told of it is JSON. */
#include <assert.h>
#include <string.h>

#include "advertiser/achieved/given_facts.h"
#include "lib/base/json.h"
#include "model/topo/topo_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct topo *make_topo(void)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h");
    const struct device devices[] = {
        {.kind = DEVICE_GPU,
         .id = "gpu-0000-1b-00-0",
         .numa = -1,
         .package = -1,
         .has_pci = true,
         .pci = {.bus = 0x1b},
         .root_domain = TOPO_ROOT_NONE},
        {.kind = DEVICE_NUMA,
         .id = "numa-0",
         .package = -1,
         .cpus = 4,
         .cpu_list = "0-3"},
    };
    struct topo *topo = NULL;
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        topo_builder_add(b, &devices[i], NULL);
    assert(topo_build(b, &topo, NULL) == 0);
    return topo;
}

static void check_report(const struct given_pods *given)
{
    cleanup_with(topo) struct topo *topo = make_topo();
    cleanup_with(json) cJSON *tree = NULL;
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    static const struct device_uuids uuids;
    static const struct pod_uids uids;
    const struct host_seen seen = {.places = {topo, "/nonexistent", &uuids},
                                   .uids = &uids};
    struct facts facts = {0};
    struct error err = {0};
    given_facts_add(given, &seen, &facts);
    facts_sort(&facts);
    size_t left_out = facts_write(&facts, topo, &out);
    assert(!out.overflow && left_out <= facts.n);
    assert(json_parse(str_text(&out), out.size, &tree, &err) == 0);
    facts_fini(&facts);
}

static int try_list(const char *data, size_t size, struct error *err)
{
    cleanup_with(given_pods) struct given_pods *given = NULL;
    int e = pod_resources_read((struct proto_bytes){data, size}, &given, err);
    if (e < 0)
        return e;
    assert(given->n <= POD_RESOURCES_PODS_MAX);
    for (size_t i = 0; i < given->n; i++) {
        const struct given_pod *p = &given->pods[i];
        assert(strlen(p->name) <= POD_RESOURCES_TEXT_MAX);
        assert(p->n_devices <= POD_RESOURCES_DEVICES_MAX);
        assert(p->n_claims <= POD_RESOURCES_DEVICES_MAX);
    }
    check_report(given);
    return 0;
}

static int try_set(const char *data, size_t size, struct error *err)
{
    struct index_set set, again;
    cleanup_str struct str out = STR_INIT(2 * INDEX_SET_TEXT_MAX);
    int e = index_set_parse(data, size, &set, err);
    if (e < 0)
        return e;
    index_set_format(&set, &out);
    e = index_set_parse(str_text(&out), out.size, &again, err);
    assert(e == 0 && index_set_equal(&set, &again));
    return 0;
}

static int try_names(const char *data, size_t size, struct error *err)
{
    char uid[CGROUPS_UID_MAX + 1], id[CGROUPS_ID_MAX + 1];
    struct pod_uid pod;
    cleanup_free char *name = xstrndup(data, size);
    (void)err;
    if (cgroups_pod_uid(name, uid))
        assert(strlen(uid) == 32 || strlen(uid) == 36);
    if (cgroups_container_id(name, id))
        assert(strlen(id) == CGROUPS_ID_MAX && strstr(name, id));
    if (pod_uid_read(name, &pod))
        assert(strlen(pod.pod) + 1 + strlen(pod.uid) == strlen(name));
    return 0;
}

static int try_gpu(const char *data, size_t size, struct error *err)
{
    char uuid[DEVICE_UUID_MAX + 1];
    (void)err;
    if (device_uuid_read(data, size, uuid))
        assert(strncmp(uuid, "GPU-", 4) == 0 && !strchr(uuid, '\n'));
    return 0;
}

/* The first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const all[])(const char *, size_t, struct error *) = {
        try_list, try_set, try_names, try_gpu};
    struct error err = {0};
    if (size < 1)
        return 0;
    int e = all[data[0] % ARRAY_LEN(all)]((const char *)data + 1, size - 1,
                                          &err);
    assert(e == 0 || e == -EINVAL || e == -EPROTO || e == -E2BIG);
    assert(e == 0 || (err.code == -e && err.text[0]));
    return 0;
}
