#include "tests/lib/card/hostroot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/tmpdir.h"

#define PCI "sys/bus/pci/devices/"
enum { VERBS = 231, VERBS_FIRST = 192 };

static _Noreturn void die(const char *path)
{
    (void)fprintf(stderr, "hostroot: %s: %s\n", path, strerror(errno));
    abort();
}

/* The whole path, with the folders above it. */
static char *make_above(const char *root, const char *path)
{
    char *whole = xasprintf("%s/%s", root, path);
    for (char *p = whole + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        if (mkdir(whole, 0755) < 0 && errno != EEXIST)
            die(whole);
        *p = '/';
    }
    return whole;
}

void hostroot_file(const char *root, const char *path, const char *text)
{
    cleanup_free char *whole = make_above(root, path);
    FILE *f = fopen(whole, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        die(whole);
}

void hostroot_link(const char *root, const char *path, const char *target)
{
    cleanup_free char *whole = make_above(root, path);
    if (symlink(target, whole) < 0)
        die(whole);
}

static bool add_node(const char *root, const char *path, unsigned major,
                     unsigned minor)
{
    cleanup_free char *whole = make_above(root, path);
    return mknod(whole, S_IFCHR | 0666, makedev(major, minor)) == 0;
}

/* An RDMA device of that number, without its node. */
static void add_rdma(const char *root, const char *pci, unsigned n)
{
    cleanup_free char *device = xasprintf(PCI "%s/infiniband/mlx5_%u/x", pci,
                                          n);
    cleanup_free char *verbs = xasprintf(PCI "%s/infiniband_verbs/uverbs%u/dev",
                                         pci, n);
    cleanup_free char *net = xasprintf(PCI "%s/net/eth%u/x", pci, n);
    cleanup_free char *number = xasprintf("%d:%u\n", VERBS, VERBS_FIRST + n);
    hostroot_file(root, device, "");
    hostroot_file(root, verbs, number);
    hostroot_file(root, net, "");
}

static void add_vf(const char *root, const char *pf, unsigned n,
                   const char *pci)
{
    cleanup_free char *physfn = xasprintf(PCI "%s/physfn", pci);
    cleanup_free char *virtfn = xasprintf(PCI "%s/virtfn%u", pf, n);
    cleanup_free char *up = xasprintf("../%s", pf);
    cleanup_free char *down = xasprintf("../%s", pci);
    hostroot_link(root, physfn, up);
    hostroot_link(root, virtfn, down);
}

static void add_vfio(const char *root, const char *pci, const char *group)
{
    cleanup_free char *driver = xasprintf(PCI "%s/driver", pci);
    cleanup_free char *link = xasprintf(PCI "%s/iommu_group", pci);
    cleanup_free char *target = xasprintf("../kernel/iommu_groups/%s", group);
    hostroot_link(root, driver, "../../bus/pci/drivers/vfio-pci");
    hostroot_link(root, link, target);
}

static void add_gpus(const char *root)
{
    hostroot_file(root, PCI "0000:1b:00.0/drm/renderD128/dev", "226:128\n");
    hostroot_file(root, PCI "0000:1b:00.0/drm/card0/dev", "226:0\n");
    hostroot_link(root, PCI "0000:1b:00.0/driver", "../drivers/amdgpu");
    hostroot_file(root, "sys/class/kfd/kfd/dev", "508:0\n");
    hostroot_file(root, "proc/driver/nvidia/gpus/0000:1c:00.0/information",
                  "Model: \t\t A100\nDevice Minor: \t 1\n");
}

static bool add_nodes(const char *root)
{
    static const unsigned verbs[] = {0, 2, 3, 5, 8, 9};
    bool all = true;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        cleanup_free char *path = xasprintf("dev/infiniband/uverbs%u",
                                            verbs[i]);
        all &= add_node(root, path, VERBS, VERBS_FIRST + verbs[i]);
    }
    all &= add_node(root, "dev/infiniband/rdma_cm", 10, 122);
    all &= add_node(root, "dev/vfio/vfio", 10, 196);
    all &= add_node(root, "dev/vfio/41", 240, 0);
    all &= add_node(root, "dev/vfio/42", 240, 1);
    all &= add_node(root, "dev/dri/renderD128", 226, 128);
    all &= add_node(root, "dev/kfd", 508, 0);
    all &= add_node(root, "dev/nvidia1", 195, 1);
    return all & add_node(root, "dev/nvidiactl", 195, 255);
}

char *hostroot_create(bool *ret_nodes)
{
    char *root = tmpdir_create();
    add_rdma(root, "0000:17:00.0", 0);
    add_rdma(root, "0000:17:00.2", 2);
    add_rdma(root, "0000:17:00.3", 3);
    add_vf(root, "0000:17:00.0", 0, "0000:17:00.2");
    add_vf(root, "0000:17:00.0", 1, "0000:17:00.3");
    add_vf(root, "0000:17:00.0", 2, "0000:17:00.4");
    add_vfio(root, "0000:17:00.4", "41");
    add_rdma(root, "0000:18:00.0", 5);
    add_vfio(root, "0000:18:00.1", "42");
    add_rdma(root, "0000:3d:00.0", 8);
    add_rdma(root, "0000:3d:00.1", 9);
    add_vf(root, "0000:3d:00.0", 0, "0000:3d:00.1");
    add_gpus(root);
    hostroot_file(root, "sys/class/misc/rdma_cm/dev", "10:122\n");
    *ret_nodes = add_nodes(root);
    return root;
}

static void add_device(struct topo_builder *b, enum device_kind kind,
                       uint8_t bus, uint8_t n_functions)
{
    const struct pci_addr functions[] = {{.bus = bus},
                                         {.bus = bus, .function = 1}};
    char id[TOPO_ID_MAX + 1];
    const struct device d = {.kind = kind,
                             .id = id,
                             .numa = -1,
                             .package = -1,
                             .has_pci = true,
                             .pci = functions[0],
                             .root_domain = TOPO_ROOT_NONE,
                             .n_functions = n_functions,
                             .functions = functions};
    device_id_format(kind, &functions[0], id);
    topo_builder_add(b, &d, NULL);
}

struct topo *hostroot_topo(void)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("n1");
    struct topo *topo = NULL;
    add_device(b, DEVICE_CARD, 0x17, 1);
    add_device(b, DEVICE_CARD, 0x18, 2);
    add_device(b, DEVICE_NIC, 0x3d, 0);
    add_device(b, DEVICE_GPU, 0x1b, 0);
    add_device(b, DEVICE_GPU, 0x1c, 0);
    if (topo_build(b, &topo, NULL) < 0)
        abort();
    return topo;
}
