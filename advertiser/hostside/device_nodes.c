#include "advertiser/hostside/device_nodes.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/mem.h"
#include "lib/io/file.h"

enum { NAMES_MAX = 64, NUMBER_TEXT_MAX = 31, INFORMATION_MAX = 4095 };

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

/* --- functions of a card ---------------------------------------------------- */

struct function {
    struct pci_addr addr;
    bool is_virtual;
};

struct functions {
    struct function list[DEVICE_FUNCTIONS_MAX];
    size_t n;
};

static void function_path(const char *sysroot, const struct pci_addr *addr,
                          char ret_path[PATH_MAX])
{
    char pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(addr, pci);
    (void)snprintf(ret_path, PATH_MAX, "%s/sys/bus/pci/devices/%s", sysroot,
                   pci);
}

static bool is_virtual(const char *function)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/physfn", function);
    return access(path, F_OK) == 0;
}

static void add_function(struct functions *f, const struct pci_addr *addr,
                         bool is_vf)
{
    for (size_t i = 0; i < f->n; i++)
        if (pci_addr_compare(&f->list[i].addr, addr) == 0)
            return;
    if (f->n < DEVICE_FUNCTIONS_MAX)
        f->list[f->n++] = (struct function){*addr, is_vf};
}

/* Its virtual functions of now: they may be newer than the last look at the
 * host. */
static void add_virtual(struct functions *f, const char *dir)
{
    char link[PATH_MAX + 32], name[64];
    struct pci_addr addr;
    for (size_t i = 0; i < DEVICE_FUNCTIONS_MAX; i++) {
        struct error ignored;
        (void)snprintf(link, sizeof link, "%s/virtfn%zu", dir, i);
        if (!file_link_name(link, name, sizeof name))
            return;
        if (pci_addr_parse(name, &addr, &ignored) == 0)
            add_function(f, &addr, true);
    }
}

static int by_address(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    return pci_addr_compare(&x->addr, &y->addr);
}

/* A NIC is one function. */
static void list_functions(const char *sysroot, const struct device *d,
                           struct functions *ret)
{
    char dir[PATH_MAX];
    ret->n = 0;
    if (d->n_functions == 0)
        add_function(ret, &d->pci, false);
    if (d->kind != DEVICE_CARD)
        return;
    for (size_t i = 0; i < d->n_functions; i++) {
        function_path(sysroot, &d->functions[i], dir);
        add_function(ret, &d->functions[i], is_virtual(dir));
    }
    for (size_t i = 0, n = ret->n; i < n; i++) {
        function_path(sysroot, &ret->list[i].addr, dir);
        if (!ret->list[i].is_virtual)
            add_virtual(ret, dir);
    }
    qsort(ret->list, ret->n, sizeof ret->list[0], by_address);
}

bool device_names_have(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        if (n == size && memcmp(at, name, n) == 0)
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

bool device_nodes_free_vf(const char *sysroot, const struct device *card,
                          const char *keep, const char *taken,
                          char ret_function[PCI_ADDR_TEXT_MAX])
{
    struct functions f;
    bool found = false;
    if (!sysroot || !card->has_pci)
        return false;
    list_functions(sysroot, card, &f);
    for (size_t i = 0; i < f.n; i++) {
        char pci[PCI_ADDR_TEXT_MAX];
        pci_addr_format(&f.list[i].addr, pci);
        if (!f.list[i].is_virtual || device_names_have(taken, pci))
            continue;
        bool kept = device_names_have(keep, pci);
        if (kept || !found)
            memcpy(ret_function, pci, sizeof pci);
        found = true;
        if (kept)
            break;
    }
    return found;
}

/* --- what a function has -------------------------------------------------- */

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

static void look_at(const char *sysroot, const struct function *f,
                    unsigned kinds, struct device_nodes *n)
{
    char dir[PATH_MAX];
    function_path(sysroot, &f->addr, dir);
    if (kinds & NODES_RDMA)
        each(n, dir, "infiniband_verbs", found_verbs);
    if (kinds & NODES_VFIO)
        look_at_vfio(n, dir);
}

static void take_names(const char *sysroot, const struct function *f,
                       struct device_nodes *n)
{
    char pci[PCI_ADDR_TEXT_MAX], dir[PATH_MAX];
    pci_addr_format(&f->addr, pci);
    function_path(sysroot, &f->addr, dir);
    each(n, dir, "infiniband", found_rdma);
    each(n, dir, "net", found_interface);
    if (f->is_virtual)
        add_name(&n->vfs, pci);
}

/* Whether the part has that function. */
static bool is_of(const struct device_part *part, const struct function *f,
                  bool has_vfs)
{
    char pci[PCI_ADDR_TEXT_MAX];
    if (!part->shared)
        return true;
    if (!*part->function)
        return !has_vfs;
    pci_addr_format(&f->addr, pci);
    return f->is_virtual && strcmp(pci, part->function) == 0;
}

static void add_manager(const char *sysroot, struct device_nodes *n)
{
    char dir[PATH_MAX];
    unsigned major, minor;
    (void)snprintf(dir, sizeof dir, "%s/sys/class/misc", sysroot);
    if (read_number(dir, "rdma_cm", &major, &minor))
        add_numbered(n, "/dev/infiniband", dir, "rdma_cm");
}

static bool has_verbs(const struct device_nodes *n, size_t from)
{
    bool has = false;
    for (size_t i = from; i < n->n; i++)
        has |= strncmp(n->nodes[i].path, "/dev/infiniband/uverbs", 22) == 0;
    return has;
}

static void look_at_functions(const char *sysroot, const struct device *d,
                              const struct device_part *part,
                              struct device_nodes *n)
{
    struct functions f;
    unsigned kinds = part->kinds;
    bool has_vfs = false;
    size_t before = n->n;
    list_functions(sysroot, d, &f);
    for (size_t i = 0; i < f.n; i++)
        has_vfs |= f.list[i].is_virtual;
    if (part->shared && !*part->function)
        kinds &= ~(unsigned)NODES_VFIO;
    for (size_t i = 0; i < f.n; i++) {
        if (!is_of(part, &f.list[i], has_vfs))
            continue;
        look_at(sysroot, &f.list[i], kinds, n);
        if (d->kind == DEVICE_CARD)
            take_names(sysroot, &f.list[i], n);
    }
    if (has_verbs(n, before))
        add_manager(sysroot, n);
}

/* --- GPUs ------------------------------------------------------------------- */

static void found_render(struct device_nodes *n, const char *dir,
                         const char *name)
{
    if (strncmp(name, "renderD", 7) == 0)
        add_numbered(n, "/dev/dri", dir, name);
}

/* "Device Minor: \t 0" is /dev/nvidia0. */
static void look_at_nvidia(const char *sysroot, const char *pci,
                           struct device_nodes *n)
{
    static const char key[] = "Device Minor:";
    char path[PATH_MAX], text[INFORMATION_MAX + 1];
    unsigned minor;
    (void)snprintf(path, sizeof path,
                   "%s/proc/driver/nvidia/gpus/%s/information", sysroot, pci);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, INFORMATION_MAX);
    if (size <= 0)
        return;
    text[size] = '\0';
    const char *at = strstr(text, key);
    if (!at || sscanf(at + sizeof key - 1, "%3u", &minor) != 1)
        return;
    (void)snprintf(path, sizeof path, "/dev/nvidia%u", minor);
    device_nodes_add(n, path);
    device_nodes_add(n, "/dev/nvidiactl");
    device_nodes_add(n, "/dev/nvidia-uvm");
}

static void look_at_gpu(const char *sysroot, const struct device *gpu,
                        struct device_nodes *n)
{
    char pci[PCI_ADDR_TEXT_MAX], dir[PATH_MAX], driver[64];
    pci_addr_format(&gpu->pci, pci);
    function_path(sysroot, &gpu->pci, dir);
    each(n, dir, "drm", found_render);
    look_at_nvidia(sysroot, pci, n);
    if (!read_link(dir, "driver", driver, sizeof driver) ||
        strcmp(driver, "amdgpu") != 0)
        return;
    /* which of the GPUs it opens follows from the render nodes */
    (void)snprintf(dir, sizeof dir, "%s/sys/class/kfd", sysroot);
    add_numbered(n, "/dev", dir, "kfd");
}

/* --- all of them ------------------------------------------------------------ */

void device_nodes_init(struct device_nodes *n)
{
    n->n = 0;
    n->rdma = n->interfaces = n->vfs = STR_INIT(DEVICE_NAMES_MAX);
}

void device_nodes_fini(struct device_nodes *n)
{
    str_fini(&n->rdma);
    str_fini(&n->interfaces);
    str_fini(&n->vfs);
}

void device_nodes_look(const char *sysroot, const struct device *device,
                       const struct device_part *part, struct device_nodes *n)
{
    if (!sysroot || !device->has_pci)
        return;
    if (device->kind != DEVICE_GPU)
        look_at_functions(sysroot, device, part, n);
    else if (part->kinds & NODES_GPU)
        look_at_gpu(sysroot, device, n);
}

static bool is_there(const char *sysroot, const struct device_node *node)
{
    char path[PATH_MAX];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s%s", sysroot, node->path);
    return lstat(path, &st) == 0 && S_ISCHR(st.st_mode) &&
           (!node->numbered || (major(st.st_rdev) == node->major &&
                                minor(st.st_rdev) == node->minor));
}

void device_nodes_check(const char *sysroot, struct device_nodes *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->n; i++)
        if (is_there(sysroot, &n->nodes[i]))
            n->nodes[kept++] = n->nodes[i];
    n->n = kept;
}
