#include "tests/lib/walker.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walker {
    hwloc_topology_t topology;
};

/* NUMA nodes that the file itself says have no CPUs: hwloc lends them some
 * on import, and then it cannot be told any more.  One object a line. */
static bool lent[4096];

static void lent_read(const char *xml)
{
    char *line = NULL;
    size_t cap = 0;
    memset(lent, 0, sizeof(lent));
    FILE *f = xml ? fopen(xml, "re") : NULL;
    while (f && getline(&line, &cap, f) > 0) {
        const char *index = strstr(line, "os_index=\"");
        if (!strstr(line, "type=\"NUMANode\"") || !index ||
            !strstr(line, " cpuset=\"0x0\""))
            continue;
        unsigned long n = strtoul(index + strlen("os_index=\""), NULL, 10);
        if (n < sizeof(lent))
            lent[n] = true;
    }
    free(line);
    if (f)
        fclose(f);
}

struct walker *walker_create(const char *xml, const char *fsroot)
{
    struct walker *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    setenv("HWLOC_HIDE_ERRORS", "2", 1);
    if (fsroot) {
        setenv("HWLOC_FSROOT", fsroot, 1);
        setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    }
    int rc = hwloc_topology_init(&w->topology);
    if (rc == 0 && xml)
        rc = hwloc_topology_set_xml(w->topology, xml);
    if (rc == 0)
        rc = hwloc_topology_set_flags(w->topology,
                                      HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (rc == 0)
        rc = hwloc_topology_set_io_types_filter(w->topology,
                                                HWLOC_TYPE_FILTER_KEEP_ALL);
    if (rc == 0)
        rc = hwloc_topology_load(w->topology);
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_COMPONENTS");
    lent_read(xml);
    if (rc == 0)
        return w;
    free(w);
    return NULL;
}

void walker_destroy(struct walker *w)
{
    if (!w)
        return;
    hwloc_topology_destroy(w->topology);
    free(w);
}

static hwloc_obj_t thing_find(const struct walker *w, const char *thing)
{
    hwloc_obj_t obj = NULL;
    if (strncmp(thing, "numa-", 5) == 0) {
        unsigned index = (unsigned)strtoul(thing + 5, NULL, 10);
        while ((obj = hwloc_get_next_obj_by_type(w->topology,
                                                 HWLOC_OBJ_NUMANODE, obj)))
            if (obj->os_index == index)
                return obj;
        return NULL;
    }
    while ((obj = hwloc_get_next_pcidev(w->topology, obj))) {
        const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
        char text[64];
        snprintf(text, sizeof(text), "%04x:%02x:%02x.%x/%04x:%04x",
                 (unsigned)pci->domain, pci->bus, pci->dev, (unsigned)pci->func,
                 pci->vendor_id, pci->device_id);
        if (strncmp(text, thing, strlen(thing)) == 0)
            return obj;
    }
    return NULL;
}

/* The first ancestor that is neither a bridge nor a device. */
static hwloc_obj_t outside_io(hwloc_obj_t obj)
{
    while (obj &&
           (obj->type == HWLOC_OBJ_PCI_DEVICE ||
            obj->type == HWLOC_OBJ_BRIDGE || obj->type == HWLOC_OBJ_OS_DEVICE))
        obj = obj->parent;
    return obj;
}

/* --- NUMA nodes, as memory children up and down the tree ---------------- */

struct numas {
    int n, last;
};

static bool has_cpus(hwloc_obj_t numa)
{
    return hwloc_bitmap_first(numa->cpuset) >= 0 &&
           !(numa->os_index < sizeof(lent) && lent[numa->os_index]);
}

static void memory_collect(hwloc_obj_t memory, struct numas *found)
{
    for (; memory; memory = memory->next_sibling) {
        if (memory->type == HWLOC_OBJ_NUMANODE && has_cpus(memory)) {
            found->n++;
            found->last = (int)memory->os_index;
        }
        memory_collect(memory->memory_first_child, found);
    }
}

static void below_collect(hwloc_obj_t obj, struct numas *found)
{
    memory_collect(obj->memory_first_child, found);
    for (hwloc_obj_t child = obj->first_child; child;
         child = child->next_sibling)
        below_collect(child, found);
}

static int numa_near(hwloc_obj_t obj)
{
    struct numas found = {0};
    if (obj->type == HWLOC_OBJ_NUMANODE)
        return (int)obj->os_index;
    below_collect(obj, &found);
    for (hwloc_obj_t up = obj->parent; up; up = up->parent)
        memory_collect(up->memory_first_child, &found);
    return found.n == 1 ? found.last : -1;
}

int walker_numa(const struct walker *w, const char *thing)
{
    hwloc_obj_t obj = thing_find(w, thing);
    return obj ? numa_near(outside_io(obj)) : -2;
}

/* --- packages, by the ancestors of single PUs --------------------------- */

static hwloc_obj_t package_above(hwloc_obj_t obj)
{
    while (obj && obj->type != HWLOC_OBJ_PACKAGE)
        obj = obj->parent;
    return obj;
}

/* The package of all PUs in the set of `obj`, or NULL. */
static hwloc_obj_t package_near(const struct walker *w, hwloc_obj_t obj)
{
    hwloc_obj_t package = NULL, pu = NULL;
    bool any = false;
    while ((pu = hwloc_get_next_obj_by_type(w->topology, HWLOC_OBJ_PU, pu))) {
        if (!hwloc_bitmap_isset(obj->cpuset, pu->os_index))
            continue;
        hwloc_obj_t of_pu = package_above(pu);
        if (any && of_pu != package)
            return NULL;
        package = of_pu;
        any = true;
    }
    return package;
}

int walker_package(const struct walker *w, const char *thing)
{
    hwloc_obj_t obj = thing_find(w, thing);
    if (!obj)
        return -2;
    hwloc_obj_t package = package_near(w, outside_io(obj));
    return package ? (int)package->os_index : -1;
}

/* --- relations ---------------------------------------------------------- */

static bool is_above(hwloc_obj_t upper, hwloc_obj_t obj)
{
    for (obj = obj->parent; obj; obj = obj->parent)
        if (obj == upper)
            return true;
    return false;
}

static int bridges_between(hwloc_obj_t upper, hwloc_obj_t obj)
{
    int n = 0;
    for (obj = obj->parent; obj != upper; obj = obj->parent)
        n += obj->type == HWLOC_OBJ_BRIDGE;
    return n;
}

const char *walker_relation(const struct walker *w, const char *name_a,
                            const char *name_b)
{
    hwloc_obj_t a = thing_find(w, name_a), b = thing_find(w, name_b);
    if (!a || !b)
        return NULL;
    hwloc_obj_t common = a->parent;
    while (common && !is_above(common, b))
        common = common->parent;
    if (common && common->type == HWLOC_OBJ_BRIDGE) {
        if (common->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
            return "PHB";
        return bridges_between(common, a) <= 1 &&
                       bridges_between(common, b) <= 1
                   ? "PIX"
                   : "PXB";
    }
    int numa = numa_near(outside_io(a));
    if (numa >= 0 && numa == numa_near(outside_io(b)))
        return "NODE";
    hwloc_obj_t package = package_near(w, outside_io(a));
    if (package && package == package_near(w, outside_io(b)))
        return "SOCKET";
    return "SYS";
}

size_t walker_count_class(const struct walker *w, unsigned class_id,
                          unsigned mask)
{
    size_t n = 0;
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_pcidev(w->topology, obj)))
        n += (obj->attr->pcidev.class_id & mask) == class_id;
    return n;
}

size_t walker_count_numas(const struct walker *w)
{
    struct numas found = {0};
    below_collect(hwloc_get_root_obj(w->topology), &found);
    return (size_t)found.n;
}
