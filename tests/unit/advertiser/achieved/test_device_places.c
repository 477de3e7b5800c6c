/* Ids of device plugins, and where their devices are. */
#include "advertiser/achieved/device_places.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/describe/hostfile.h"
#include "tests/lib/tmpdir.h"

#define GPU_UUID "GPU-6b0c0001-1111-2222-3333-444455556666"

static const char host[] =
    "package 0\n"
    "  numa 0 cpus=4 memory=16GiB\n"
    "    root 0000:00\n"
    "      bridge 0000:00:01.0\n"
    "        card 0000:17:00.0 id=15b3:a2dc functions=2\n"
    "        gpu 0000:1b:00.0 id=10de:2330\n"
    "        gpu 0000:1c:00.0 id=10de:2330\n"
    "        nic 0000:18:00.0 id=15b3:1021 rdma=mlx5_7\n";

static void make_above(const char *path)
{
    cleanup_free char *above = xstrdup(path);
    for (char *slash = above; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        (void)mkdir(above, 0755); /* it may be there */
        *slash = '/';
    }
}

static void put(const char *root, const char *path, const char *text)
{
    cleanup_free char *whole = xasprintf("%s/%s", root, path);
    make_above(whole);
    FILE *f = fopen(whole, "we");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void put_link(const char *root, const char *path, const char *to)
{
    cleanup_free char *whole = xasprintf("%s/%s", root, path);
    make_above(whole);
    cr_assert_eq(symlink(to, whole), 0, "%s", path);
}

/* A PCI device below a bridge, a virtual function of the NIC, an RDMA device
 * of that, a subfunction, and the files of NVIDIA's driver. */
static char *make_sysroot(void)
{
#define DEVICES "sys/devices/pci0000:00/0000:00:01.0/"
    char *root = tmpdir_create();
    put(root, DEVICES "0000:18:00.0/infiniband/mlx5_0/x", "");
    put(root, DEVICES "0000:18:00.2/infiniband/mlx5_2/x", "");
    put(root, DEVICES "0000:17:00.0/mlx5_core.sf.4/x", "");
    put_link(root, DEVICES "0000:18:00.0/infiniband/mlx5_0/device",
             "../../../0000:18:00.0");
    put_link(root, DEVICES "0000:18:00.2/infiniband/mlx5_2/device",
             "../../../0000:18:00.2");
    put_link(root, DEVICES "0000:18:00.2/physfn", "../0000:18:00.0");
    put_link(root, "sys/class/infiniband/mlx5_0",
             "../../devices/pci0000:00/0000:00:01.0/0000:18:00.0/infiniband/"
             "mlx5_0");
    put_link(root, "sys/class/infiniband/mlx5_2",
             "../../devices/pci0000:00/0000:00:01.0/0000:18:00.2/infiniband/"
             "mlx5_2");
    put_link(root, "sys/bus/pci/devices/0000:18:00.2",
             "../../../devices/pci0000:00/0000:00:01.0/0000:18:00.2");
    put_link(root, "sys/bus/auxiliary/devices/mlx5_core.sf.4",
             "../../../devices/pci0000:00/0000:00:01.0/0000:17:00.0/"
             "mlx5_core.sf.4");
    put(root, "proc/driver/nvidia/gpus/0000:1c:00.0/information",
        "Model: \t\t NVIDIA H100\nIRQ:   \t\t 18\nGPU UUID: \t " GPU_UUID
        "\nBus Location: \t 0000:1c:00.0\n");
    put(root, "proc/driver/nvidia/gpus/0000:1b:00.0/information",
        "GPU UUID: \t GPU-???????\n");
    return root;
}

struct rig {
    char *root;
    struct topo *topo;
    struct device_uuids uuids;
    struct device_places places;
};

static void rig_init(struct rig *r)
{
    struct error err = {0};
    r->root = make_sysroot();
    cr_assert_eq(hostfile_read(host, strlen(host), "h", &r->topo, &err), 0,
                 "%s", err.text);
    device_uuids_look(r->root, &r->uuids);
    r->places = (struct device_places){r->topo, r->root, &r->uuids};
}

static void rig_fini(struct rig *r)
{
    topo_unref(r->topo);
    tmpdir_remove(r->root);
}

Test(device_places, are_found_by_any_id_that_is_certain)
{
    static const struct {
        const char *id, *addr;
    } ids[] = {
        {"0000:1b:00.0", "0000:1b:00.0"},
        {"00000000:1B:00.0", "0000:1b:00.0"},
        {GPU_UUID, "0000:1c:00.0"},
        {GPU_UUID "::3", "0000:1c:00.0"},
        {"mlx5_0", "0000:18:00.0"},
        {"mlx5_2", "0000:18:00.2"},
        {"mlx5_7", "0000:18:00.0"},
        {"mlx5_core.sf.4", "0000:17:00.0"},
        {"MIG-6b0c0001-1111-2222-3333-444455556666", NULL},
        {"GPU-???????", NULL},
        {"GPU-00000000-1111-2222-3333-444455556666", NULL},
        {"mlx5_9", NULL},
        {"0", NULL},
        {"", NULL},
        {"::1", NULL},
        {"../infiniband/mlx5_0", NULL},
        {"..", NULL},
    };
    struct rig r;
    rig_init(&r);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct pci_addr addr = {0};
        char text[PCI_ADDR_TEXT_MAX] = "";
        bool found = device_places_find(&r.places, ids[i].id, &addr);
        cr_expect_eq(found, ids[i].addr != NULL, "%s", ids[i].id);
        if (!found || !ids[i].addr)
            continue;
        pci_addr_format(&addr, text);
        cr_expect_str_eq(text, ids[i].addr, "%s", ids[i].id);
    }
    rig_fini(&r);
}

static void expect(const struct rig *r, const char *resource, const char *id,
                   const char *wanted)
{
    struct facts f = {0};
    struct pod_facts *p = facts_add(&f, "d", "p", "");
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    p->cards.known = p->gpus.known = p->nics.known = true;
    device_places_add(&r->places, resource, id, p);
    (void)facts_write(&f, r->topo, &out); /* it has room */
    cleanup_free char *whole = xasprintf(
        "{\"node\":\"h\",\"pods\":[{\"namespace\":\"d\",\"name\":\"p\"%s}]}",
        wanted);
    cr_expect_str_eq(str_text(&out), whole, "%s %s", resource, id);
    facts_fini(&f);
}

#define CARDS(list) ",\"cards\":[" list "]"
#define GPUS(list) ",\"gpus\":[" list "]"
#define NICS(list) ",\"nics\":[" list "]"

Test(device_places, are_those_of_the_topology)
{
    struct rig r;
    rig_init(&r);
    expect(&r, "nvidia.com/gpu", GPU_UUID,
           CARDS("") GPUS("\"0000:1c:00.0\"") NICS(""));
    expect(&r, "any.org/thing", "0000:1b:00.0",
           CARDS("") GPUS("\"0000:1b:00.0\"") NICS(""));
    /* functions of a card, and of a NIC */
    expect(&r, "nvidia.com/bf", "0000:17:00.1",
           CARDS("\"0000:17:00.0\"") GPUS("") NICS(""));
    expect(&r, "nvidia.com/vf", "0000:18:00.2",
           CARDS("") GPUS("") NICS("\"0000:18:00.0\""));
    /* what the topology lacks */
    expect(&r, "amd.com/gpu", "0000:99:00.0",
           CARDS("") GPUS("\"0000:99:00.0\"") NICS(""));
    expect(&r, "openshift.io/mlxnics", "0000:99:00.0",
           CARDS("") GPUS("") NICS("\"0000:99:00.0\""));
    expect(&r, "any.org/thing", "0000:99:00.0", CARDS("") GPUS("") NICS(""));
    rig_fini(&r);
}

Test(device_places, that_are_not_known_make_that_unknown_which_they_may_be)
{
    struct rig r;
    rig_init(&r);
    expect(&r, "nvidia.com/mig-1g.5gb", "MIG-1", CARDS("") NICS(""));
    expect(&r, "nvidia.com/gpu", "7", CARDS("") NICS(""));
    expect(&r, "rdma/hca", "4", GPUS(""));
    expect(&r, "any.org/thing", "4", "");
    expect(&r, "devices.kubevirt.io/kvm", "kvm3", CARDS("") GPUS("") NICS(""));
    rig_fini(&r);
}

Test(device_places, of_our_own_devices)
{
    struct rig r;
    rig_init(&r);
    struct pod_facts p = {.cards.known = true};
    device_places_add_ours(&r.places, "card-0000-17-00", &p);
    cr_expect(p.cards.known && p.cards.n == 1 && p.cards.items[0].bus == 0x17);
    device_places_add_ours(&r.places, "card-0000-99-00", &p);
    cr_expect(!p.cards.known);
    rig_fini(&r);
}
