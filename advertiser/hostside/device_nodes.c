#include "advertiser/hostside/device_nodes.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/file.h"

enum { NAMES_MAX = 64, NUMBER_TEXT_MAX = 31 };

/* --- files of /sys -------------------------------------------------------- */

/* Names of /sys are of a driver, and go into texts of others. */
static bool is_plain(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t size = strspn(name, allowed);
    return size > 0 && size <= 32 && !name[size] && *name != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_wanted(const struct dirent *d)
{
    return is_plain(d->d_name);
}

/* "231:192" */
static bool read_number(const char *dir, const char *name, unsigned *ret_major,
                        unsigned *ret_minor)
{
    char path[PATH_MAX], text[NUMBER_TEXT_MAX + 1];
    (void)snprintf(path, sizeof path, "%s/%s/dev", dir, name);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, NUMBER_TEXT_MAX);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return sscanf(text, "%u:%u", ret_major, ret_minor) == 2;
}

/* The last part of where a link leads; false when there is none, or none that
 * may be part of a path. */
static bool read_link(const char *dir, const char *name, char *ret_name,
                      size_t room)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return file_link_name(path, ret_name, room) && is_plain(ret_name);
}

/* --- what is found -------------------------------------------------------- */

static struct device_node *add(struct device_nodes *n, const char *path)
{
    for (size_t i = 0; i < n->n; i++)
        if (strcmp(n->nodes[i].path, path) == 0)
            return NULL;
    if (n->n == DEVICE_NODES_MAX || strlen(path) > DEVICE_NODE_PATH_MAX)
        return NULL;
    struct device_node *node = &n->nodes[n->n++];
    memset(node, 0, sizeof *node);
    memcpy(node->path, path, strlen(path) + 1);
    return node;
}

void device_nodes_add(struct device_nodes *n, const char *path)
{
    (void)add(n, path); /* it is there, or there are too many */
}

static void add_numbered(struct device_nodes *n, const char *below,
                         const char *dir, const char *name)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", below, name);
    struct device_node *node = add(n, path);
    if (node)
        node->numbered = read_number(dir, name, &node->major, &node->minor);
}

static void add_name(struct str *list, const char *name)
{
    if (list->size > 0)
        str_add_c(list, ',');
    str_add(list, name);
}

typedef void found_f(struct device_nodes *n, const char *dir, const char *name);

static void found_rdma(struct device_nodes *n, const char *dir,
                       const char *name)
{
    (void)dir;
    add_name(&n->rdma, name);
}

static void found_interface(struct device_nodes *n, const char *dir,
                            const char *name)
{
    (void)dir;
    add_name(&n->interfaces, name);
}

static void found_verbs(struct device_nodes *n, const char *dir,
                        const char *name)
{
    if (strncmp(name, "uverbs", 6) == 0)
        add_numbered(n, "/dev/infiniband", dir, name);
}

/* Each plain name in a folder, in order. */
static void each(struct device_nodes *n, const char *function,
                 const char *folder, found_f *found)
{
    char dir[PATH_MAX];
    struct dirent **list = NULL;
    (void)snprintf(dir, sizeof dir, "%s/%s", function, folder);
    int count = scandir(dir, &list, is_wanted, by_name);
    for (int i = 0; i < count; i++) {
        if (i < NAMES_MAX)
            found(n, dir, list[i]->d_name);
        free(list[i]);
    }
    free(list);
}

static bool is_virtual(const char *function)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/physfn", function);
    return access(path, F_OK) == 0;
}

static void look_at_vfio(struct device_nodes *n, const char *function)
{
    char name[64], path[96];
    if (!read_link(function, "driver", name, sizeof name) ||
        strcmp(name, "vfio-pci") != 0 ||
        !read_link(function, "iommu_group", name, sizeof name))
        return;
    (void)snprintf(path, sizeof path, "/dev/vfio/%s", name);
    device_nodes_add(n, path);
    device_nodes_add(n, "/dev/vfio/vfio");
}

static void look_at(const char *sysroot, const struct pci_addr *addr,
                    struct device_nodes *n)
{
    char pci[PCI_ADDR_TEXT_MAX], function[PATH_MAX];
    pci_addr_format(addr, pci);
    (void)snprintf(function, sizeof function, "%s/sys/bus/pci/devices/%s",
                   sysroot, pci);
    each(n, function, "infiniband", found_rdma);
    each(n, function, "infiniband_verbs", found_verbs);
    each(n, function, "net", found_interface);
    if (is_virtual(function))
        add_name(&n->vfs, pci);
    look_at_vfio(n, function);
}

void device_nodes_look(const char *sysroot, const struct device *card,
                       struct device_nodes *ret_nodes)
{
    char dir[PATH_MAX];
    unsigned major, minor;
    struct device_nodes *n = ret_nodes;
    n->n = 0;
    n->rdma = n->interfaces = n->vfs = STR_INIT(DEVICE_NAMES_MAX);
    if (!sysroot || !card->has_pci)
        return;
    if (card->n_functions == 0)
        look_at(sysroot, &card->pci, n);
    for (size_t i = 0; i < card->n_functions; i++)
        look_at(sysroot, &card->functions[i], n);
    (void)snprintf(dir, sizeof dir, "%s/sys/class/misc", sysroot);
    if (n->rdma.size > 0 && read_number(dir, "rdma_cm", &major, &minor))
        add_numbered(n, "/dev/infiniband", dir, "rdma_cm");
}

void device_nodes_fini(struct device_nodes *n)
{
    str_fini(&n->rdma);
    str_fini(&n->interfaces);
    str_fini(&n->vfs);
}
