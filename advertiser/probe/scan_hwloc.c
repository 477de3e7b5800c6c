/* scan_hwloc - from hwloc's tree of objects to the flat records of a scan. */
#include "advertiser/probe/scan.h"

#include <hwloc.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/describe/card_models.h"
#include "advertiser/probe/vpd.h"
#include "lib/base/mem.h"
#include "model/topo/cpulist.h"

static void scan_fail(struct scan *scan, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void scan_fail(struct scan *scan, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(scan->text, sizeof(scan->text), fmt, args);
    va_end(args);
    scan->code = code ? code : EINVAL;
}

/* One look at one topology. */
struct look {
    hwloc_topology_t topology;
    struct scan *scan;
    const struct scan_source *source;
    const char *sysroot; /* of the /sys behind it, "" for /; or NULL */
};

/* --- loading ------------------------------------------------------------ */

/* hwloc is steered by its environment: what the caller's says about the
 * source is dropped, and complaints are kept for the error text. */
static void environment_set(const struct scan_source *source)
{
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_XMLFILE");
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_CPUID_PATH");
    unsetenv("HWLOC_THISSYSTEM");
    unsetenv("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES");
    setenv("HWLOC_HIDE_ERRORS", "2", 1);
    if (source->fsroot) {
        setenv("HWLOC_FSROOT", source->fsroot, 1);
        setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    } else if (source->xml) {
        setenv("HWLOC_XML_VERBOSE", "1", 1);
        unsetenv("HWLOC_COMPONENTS");
    }
}

static hwloc_topology_t topology_load(const struct scan_source *source,
                                      struct scan *scan)
{
    environment_set(source);
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) < 0) {
        scan_fail(scan, errno, "hwloc cannot start");
        return NULL;
    }
    int rc = 0;
    if (source->xml)
        rc = hwloc_topology_set_xmlbuffer(topology, source->xml,
                                          (int)source->xml_size);
    if (rc == 0)
        /* does not go from CPU to CPU to ask each, where jobs run */
        rc = hwloc_topology_set_flags(
            topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                          HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
    if (rc == 0)
        rc = hwloc_topology_set_io_types_filter(topology,
                                                HWLOC_TYPE_FILTER_KEEP_ALL);
    if (rc == 0)
        rc = hwloc_topology_load(topology);
    if (rc < 0) {
        scan_fail(scan, EINVAL, "hwloc cannot read it as a topology");
        return NULL;
    }
    if ((source->xml || source->fsroot) &&
        hwloc_topology_is_thissystem(topology)) {
        scan_fail(scan, EINVAL, "hwloc fell back to this host");
        return NULL;
    }
    return topology;
}

/* --- where things are --------------------------------------------------- */

static int32_t os_index_of(hwloc_obj_t obj)
{
    unsigned index = obj->os_index;
    if (index == HWLOC_UNKNOWN_INDEX)
        index = obj->logical_index;
    return index > INT32_MAX ? -1 : (int32_t)index;
}

/* False when the kernel says that the node has no CPUs.  hwloc gives a node
 * without CPUs (HBM, a GPU's or a CXL memory) those of the nearest one. */
static bool kernel_gives_cpus(const char *sysroot, unsigned os_index)
{
    char path[PATH_MAX], first = '\0';
    snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u/cpulist",
             sysroot, os_index);
    cleanup_file FILE *f = fopen(path, "re");
    return !f || (fread(&first, 1, 1, f) == 1 && first != '\n');
}

/* The value of an attribute within one XML tag, up to its closing quote;
 * "" when it is absent. */
static const char *xml_attribute(const char *tag, size_t size, const char *name)
{
    const char *at = memmem(tag, size, name, strlen(name));
    return at ? at + strlen(name) : "";
}

/* The same for an XML: what it says itself, before hwloc lends CPUs. */
static bool xml_gives_cpus(const struct scan_source *source, unsigned os_index)
{
    static const char numa[] = "<object type=\"NUMANode\"";
    const char *p = source->xml, *end = p + source->xml_size;
    while ((p = memmem(p, (size_t)(end - p), numa, sizeof(numa) - 1))) {
        const char *close = memchr(p, '>', (size_t)(end - p));
        if (!close)
            break;
        size_t size = (size_t)(close - p);
        const char *index = xml_attribute(p, size, " os_index=\"");
        const char *cpus = xml_attribute(p, size, " cpuset=\"");
        if (strtoul(index, NULL, 10) == os_index &&
            strncmp(cpus, "0x0\"", 4) == 0)
            return false;
        p = close;
    }
    return true;
}

static bool numa_has_cpus(const struct look *look, hwloc_obj_t numa)
{
    if (!numa->cpuset || hwloc_bitmap_iszero(numa->cpuset) ||
        (numa->subtype && strcmp(numa->subtype, "GPUMemory") == 0))
        return false;
    return look->sysroot ? kernel_gives_cpus(look->sysroot, numa->os_index)
                         : xml_gives_cpus(look->source, numa->os_index);
}

static int numa_column(const struct scan *scan, int32_t os_index)
{
    for (uint32_t i = 0; i < scan->n_numas; i++)
        if (scan->numas[i].os_index == os_index)
            return (int)i;
    return -1;
}

/* The one NUMA node with CPUs near `obj`, or -1 when there are several or
 * none. */
static int32_t numa_of(const struct look *look, hwloc_obj_t obj)
{
    int32_t found = -1;
    hwloc_obj_t numa = NULL;
    while ((numa = hwloc_get_next_obj_by_type(look->topology,
                                              HWLOC_OBJ_NUMANODE, numa))) {
        /* by the node's own set: in files that other tools wrote, its bit
         * need not be its os index */
        if (numa_column(look->scan, os_index_of(numa)) < 0 || !obj->nodeset ||
            !numa->nodeset ||
            !hwloc_bitmap_intersects(obj->nodeset, numa->nodeset))
            continue;
        if (found >= 0)
            return -1;
        found = os_index_of(numa);
    }
    return found;
}

static int32_t package_of(const struct look *look, hwloc_obj_t obj)
{
    if (!obj->cpuset || hwloc_bitmap_iszero(obj->cpuset))
        return -1;
    hwloc_obj_t package = NULL;
    while ((package = hwloc_get_next_obj_by_type(look->topology,
                                                 HWLOC_OBJ_PACKAGE, package)))
        if (hwloc_bitmap_isincluded(obj->cpuset, package->cpuset))
            return os_index_of(package);
    return -1;
}

static struct pci_addr addr_of(const struct hwloc_pcidev_attr_s *pci)
{
    return (struct pci_addr){.domain = (uint32_t)pci->domain,
                             .bus = pci->bus,
                             .device = pci->dev,
                             .function = pci->func};
}

static bool same_bus(hwloc_obj_t a, hwloc_obj_t b)
{
    const struct hwloc_bridge_attr_s *pa = &a->attr->bridge;
    const struct hwloc_bridge_attr_s *pb = &b->attr->bridge;
    return pa->upstream_type == pb->upstream_type &&
           pa->downstream.pci.domain == pb->downstream.pci.domain &&
           pa->downstream.pci.secondary_bus == pb->downstream.pci.secondary_bus;
}

/* A host bridge is known by its bus.  Files that other tools wrote may give
 * all of them one placeholder; then each is known by the bus of the first
 * PCI function below it. */
static void root_set(const struct look *look, hwloc_obj_t root,
                     struct scan_function *f)
{
    f->root_domain = (uint32_t)root->attr->bridge.downstream.pci.domain;
    f->root_bus = root->attr->bridge.downstream.pci.secondary_bus;
    hwloc_obj_t other = NULL;
    while ((other = hwloc_get_next_bridge(look->topology, other)))
        if (other != root && same_bus(other, root))
            break;
    hwloc_obj_t child = root;
    while (other && child && child->type == HWLOC_OBJ_BRIDGE)
        child = child->io_first_child;
    if (!other || !child || child->type != HWLOC_OBJ_PCI_DEVICE)
        return;
    f->root_domain = (uint32_t)child->attr->pcidev.domain;
    f->root_bus = child->attr->pcidev.bus;
}

/* Climb from a PCI function to the first object that is no I/O; the bridges
 * passed on the way are its path, the topmost first. */
static int place_set(const struct look *look, hwloc_obj_t obj,
                     struct scan_function *f)
{
    f->root_domain = TOPO_ROOT_NONE;
    hwloc_obj_t up = obj->parent;
    for (; up && hwloc_obj_type_is_io(up->type); up = up->parent) {
        if (up->type != HWLOC_OBJ_BRIDGE)
            continue;
        const struct hwloc_bridge_attr_s *bridge = &up->attr->bridge;
        if (bridge->upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
            root_set(look, up, f);
            continue;
        }
        if (f->n_path == TOPO_PATH_MAX) {
            char text[PCI_ADDR_TEXT_MAX];
            pci_addr_format(&f->addr, text);
            scan_fail(look->scan, E2BIG,
                      "PCI function %s has more than %d bridges above it", text,
                      TOPO_PATH_MAX);
            return -1;
        }
        memmove(&f->path[1], &f->path[0], f->n_path * sizeof(f->path[0]));
        f->path[0] = addr_of(&bridge->upstream.pci);
        f->n_path++;
        f->n_foreign++;
        if (bridge->upstream.pci.vendor_id == f->vendor_id)
            f->n_foreign = 0;
    }
    f->numa = up ? numa_of(look, up) : -1;
    f->package = up ? package_of(look, up) : -1;
    return 0;
}

/* --- what things are ---------------------------------------------------- */

static bool name_ends(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

static uint64_t number_of(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    return errno || end == text ? 0 : value;
}

static void text_keep(char text[SCAN_TEXT_SIZE], const char *value)
{
    if (!text[0])
        scan_text(text, value);
}

/* A co-processor tells its cores and memory (KiB) in its own words, such as
 * VectorEngineCores and MICActiveCores. */
static void coprocessor_info(const struct hwloc_info_s *info,
                             struct scan_function *f)
{
    if (name_ends(info->name, "Cores")) {
        uint64_t cores = number_of(info->value);
        if (f->cores == 0 && cores <= UINT32_MAX)
            f->cores = (uint32_t)cores;
    } else if (name_ends(info->name, "MemorySize") && f->memory_mib == 0) {
        f->memory_mib = number_of(info->value) / 1024;
    }
}

/* An adapter that has none shows zeros. */
static void guid_keep(struct scan_function *f, const char *guid)
{
    if (strspn(guid, "0:x") < strlen(guid))
        text_keep(f->guid, guid);
}

static void osdev_set(hwloc_obj_t obj, struct scan_function *f)
{
    const hwloc_obj_osdev_type_t type = obj->attr->osdev.type;
    if (type == HWLOC_OBJ_OSDEV_NETWORK)
        text_keep(f->interface, obj->name);
    if (type == HWLOC_OBJ_OSDEV_OPENFABRICS)
        text_keep(f->rdma, obj->name);
    if (type == HWLOC_OBJ_OSDEV_BLOCK)
        return; /* its serial number is the disk's */
    for (unsigned i = 0; i < obj->infos_count; i++) {
        const struct hwloc_info_s *info = &obj->infos[i];
        if (strcmp(info->name, "GPUModel") == 0)
            scan_text(f->model, info->value);
        else if (strcmp(info->name, "GPUVendor") == 0)
            scan_text(f->vendor, info->value);
        else if (strcmp(info->name, "NodeGUID") == 0)
            guid_keep(f, info->value);
        else if (name_ends(info->name, "SerialNumber") ||
                 strcmp(info->name, "NVIDIASerial") == 0)
            text_keep(f->serial, info->value);
        else if (type == HWLOC_OBJ_OSDEV_COPROC)
            coprocessor_info(info, f);
    }
}

static void osdevs_set(hwloc_obj_t obj, struct scan_function *f)
{
    for (hwloc_obj_t child = obj->io_first_child; child;
         child = child->next_sibling)
        if (child->type == HWLOC_OBJ_OS_DEVICE) {
            osdev_set(child, f);
            osdevs_set(child, f);
        }
}

/* A card tells its serial number in its Vital Product Data, to root. */
static void vpd_read(const struct look *look, struct scan_function *f)
{
    char path[PATH_MAX], pci[PCI_ADDR_TEXT_MAX], serial[VPD_VALUE_MAX + 1];
    if (!look->sysroot || f->serial[0] ||
        !card_model_find(f->vendor_id, f->device_id))
        return;
    pci_addr_format(&f->addr, pci);
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/vpd", look->sysroot,
             pci);
    cleanup_file FILE *file = fopen(path, "re");
    cleanup_free unsigned char *data = file ? xmalloc(VPD_SIZE_MAX) : NULL;
    size_t size = file ? fread(data, 1, VPD_SIZE_MAX, file) : 0;
    if (size > 0 && vpd_find(data, size, "SN", serial) == 0)
        scan_text(f->serial, serial);
}

/* Of what may be a card, or a NIC: one that is known, or whatever has a network
 * or an RDMA device. */
static void setup_read(const struct look *look, struct scan_function *f)
{
    char pci[PCI_ADDR_TEXT_MAX];
    if (!look->sysroot || (!f->interface[0] && !f->rdma[0] &&
                           !card_model_find(f->vendor_id, f->device_id)))
        return;
    pci_addr_format(&f->addr, pci);
    pci_function_read(look->sysroot, pci, f->interface, &f->look);
}

static int function_add(const struct look *look, hwloc_obj_t obj)
{
    struct scan *scan = look->scan;
    if (scan->n_functions == SCAN_FUNCTIONS_MAX) {
        scan->n_left_out++;
        return 0;
    }
    const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
    struct scan_function *f = &scan->functions[scan->n_functions];
    f->addr = addr_of(pci);
    f->class_id = pci->class_id;
    f->vendor_id = pci->vendor_id;
    f->device_id = pci->device_id;
    if (place_set(look, obj, f) < 0)
        return -1;
    scan_text(f->vendor, hwloc_obj_get_info_by_name(obj, "PCIVendor"));
    scan_text(f->model, hwloc_obj_get_info_by_name(obj, "PCIDevice"));
    osdevs_set(obj, f);
    vpd_read(look, f);
    setup_read(look, f);
    scan->n_functions++;
    return 0;
}

/* --- NUMA nodes --------------------------------------------------------- */

/* The CPUs of `set` as rows of the threads of its cores: cores with many
 * threads first.  A CPU outside of any known core is one by itself. */
struct cores {
    uint16_t (*threads)[CPULIST_ROWS_MAX]; /* of each core */
    uint8_t *n_threads;
    size_t n;
    bool overflow;
};

static void core_add(struct cores *c, hwloc_const_bitmap_t cpus)
{
    size_t i = c->n++, k = 0;
    for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0;
         cpu = hwloc_bitmap_next(cpus, cpu)) {
        if (k == CPULIST_ROWS_MAX || cpu > CPULIST_INDEX_MAX) {
            c->overflow = true;
            break;
        }
        c->threads[i][k++] = (uint16_t)cpu;
    }
    c->n_threads[i] = (uint8_t)k;
}

static void cores_find(const struct look *look, hwloc_const_bitmap_t set,
                       struct cores *c)
{
    hwloc_bitmap_t rest = hwloc_bitmap_dup(set), own = hwloc_bitmap_alloc();
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_type(look->topology, HWLOC_OBJ_CORE,
                                              core))) {
        hwloc_bitmap_and(own, core->cpuset, rest);
        if (hwloc_bitmap_iszero(own))
            continue;
        core_add(c, own);
        hwloc_bitmap_andnot(rest, rest, own);
    }
    for (int cpu = hwloc_bitmap_first(rest); cpu >= 0;
         cpu = hwloc_bitmap_next(rest, cpu)) {
        hwloc_bitmap_only(own, (unsigned)cpu);
        core_add(c, own);
    }
    hwloc_bitmap_free(rest);
    hwloc_bitmap_free(own);
}

/* A value that is too long for its field counts as unknown. */
static void cpu_list_set(const struct look *look, hwloc_const_bitmap_t set,
                         char ret_text[SCAN_TEXT_SIZE])
{
    int n_cpus = hwloc_bitmap_weight(set);
    struct cpulist list = {0};
    if (n_cpus <= 0 || n_cpus > CPULIST_CPUS_MAX)
        return;
    struct cores c = {.threads = xcalloc((size_t)n_cpus, sizeof *c.threads),
                      .n_threads = xcalloc((size_t)n_cpus, 1)};
    cores_find(look, set, &c);
    for (uint16_t row = 0; row < CPULIST_ROWS_MAX; row++) {
        uint16_t before = list.n_cpus;
        for (int threads = CPULIST_ROWS_MAX; threads > row; threads--)
            for (size_t i = 0; i < c.n; i++)
                if (c.n_threads[i] == threads)
                    list.cpus[list.n_cpus++] = c.threads[i][row];
        if (list.n_cpus == before)
            break;
        list.sizes[list.n_rows++] = (uint16_t)(list.n_cpus - before);
    }
    if (!c.overflow)
        (void)cpulist_format(&list, ret_text);
    free(c.threads);
    free(c.n_threads);
}

static int numas_add(const struct look *look)
{
    struct scan *scan = look->scan;
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_obj_by_type(look->topology, HWLOC_OBJ_NUMANODE,
                                             obj))) {
        if (!numa_has_cpus(look, obj))
            continue;
        if (scan->n_numas == TOPO_NUMAS_MAX) {
            scan_fail(scan, E2BIG,
                      "more than %d NUMA nodes with CPUs, which is the most "
                      "that can be described",
                      TOPO_NUMAS_MAX);
            return -1;
        }
        int cpus = hwloc_bitmap_weight(obj->cpuset);
        struct scan_numa *numa = &scan->numas[scan->n_numas++];
        *numa = (struct scan_numa){
            .os_index = os_index_of(obj),
            .package = package_of(look, obj),
            .cpus = cpus > 0 ? (uint32_t)cpus : 0,
            .memory_mib = obj->attr->numanode.local_memory >> 20,
        };
        cpu_list_set(look, obj->cpuset, numa->cpu_list);
    }
    return 0;
}

static void distances_set(const struct look *look)
{
    struct scan *scan = look->scan;
    struct hwloc_distances_s *d = NULL;
    unsigned n = 1;
    if (hwloc_distances_get_by_type(look->topology, HWLOC_OBJ_NUMANODE, &n, &d,
                                    HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                    0) < 0 ||
        n == 0 || !d)
        return;
    for (unsigned i = 0; i < d->nbobjs; i++)
        for (unsigned j = 0; j < d->nbobjs; j++) {
            int a = numa_column(scan, os_index_of(d->objs[i]));
            int b = numa_column(scan, os_index_of(d->objs[j]));
            uint64_t value = d->values[i * d->nbobjs + j];
            if (a >= 0 && b >= 0 && value <= UINT16_MAX)
                scan->distance[a][b] = (uint16_t)value;
        }
    hwloc_distances_release(look->topology, d);
}

void scan_hwloc(const struct scan_source *source, struct scan *scan)
{
    const struct look look = {
        .topology = topology_load(source, scan),
        .scan = scan,
        .source = source,
        .sysroot = source->xml      ? NULL
                   : source->fsroot ? source->fsroot
                                    : "",
    };
    if (!look.topology || numas_add(&look) < 0)
        return;
    distances_set(&look);
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_obj_by_type(look.topology,
                                             HWLOC_OBJ_PCI_DEVICE, obj)))
        if (function_add(&look, obj) < 0)
            return;
    hwloc_topology_destroy(look.topology);
}
