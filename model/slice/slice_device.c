/* What the attributes and capacities of one device of a slice mean. */
#include "model/slice/slice_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/topo/card_rights.h"
#include "model/topo/cpulist.h"
#include "model/topo/device_set.h"

#define fail_text(v, id, fmt, ...)                                          \
    slice_fail(v, "attributes", slice_attributes[id].name, ".string: " fmt, \
               __VA_ARGS__)

static const char *text_of(const struct slice_values *v, enum attribute_id id)
{
    return v->parts[id][0] ? v->parts[id][0] : "";
}

static int read_kind(struct slice_values *v, struct device *d)
{
    const char *text = text_of(v, ATTRIBUTE_KIND);
    if (!v->present[ATTRIBUTE_KIND])
        return slice_fail(v, "attributes",
                          slice_attributes[ATTRIBUTE_KIND].name,
                          ": required member missing");
    for (enum device_kind k = DEVICE_CARD; k <= DEVICE_NUMA; k++)
        if (strcmp(text, device_kind_name(k)) == 0) {
            d->kind = v->kind = k;
            return 0;
        }
    return fail_text(v, ATTRIBUTE_KIND,
                     "is \"%.64s\", must be card, gpu, nic or numa", text);
}

/* Nothing may be said that has no meaning for this kind of device. */
static int check_kinds(const struct slice_values *v)
{
    const char *kind = device_kind_name(v->kind);
    for (enum attribute_id id = 0; id < ATTRIBUTE_COUNT; id++)
        if (v->present[id] && !(slice_attributes[id].kinds & 1u << v->kind))
            return slice_fail(v, "attributes", slice_attributes[id].name,
                              ": a device of kind %s does not have it", kind);
    for (enum capacity_id id = 0; id < CAPACITY_COUNT; id++)
        if (v->capacity[id] && !(slice_capacities[id].kinds & 1u << v->kind))
            return slice_fail(v, "capacity", slice_capacities[id].name,
                              ": a device of kind %s does not have it", kind);
    return 0;
}

/* "pci0000:16", as the first component below /sys/devices. */
static int read_root(const struct slice_values *v, struct device *d)
{
    const char *text = text_of(v, ATTRIBUTE_ROOT);
    if (!v->present[ATTRIBUTE_ROOT]) {
        d->root_domain = TOPO_ROOT_NONE;
        return 0;
    }
    size_t n = strncmp(text, "pci", 3) == 0
                   ? strspn(text + 3, "0123456789abcdef")
                   : 0;
    const char *bus = text + 3 + n + 1;
    if (n < 4 || n > 8 || (n > 4 && text[3] == '0') || text[3 + n] != ':' ||
        strspn(bus, "0123456789abcdef") != 2 || bus[2] != '\0')
        return fail_text(v, ATTRIBUTE_ROOT,
                         "is \"%.64s\", must be like \"pci0000:16\"", text);
    d->root_domain = (uint32_t)strtoul(text + 3, NULL, 16);
    d->root_bus = (uint8_t)strtoul(bus, NULL, 16);
    return 0;
}

/* One address as it is written in canonical form: nothing else names a
 * device in two ways. */
static bool read_addr(const char *text, struct pci_addr *ret_addr)
{
    char again[PCI_ADDR_TEXT_MAX];
    struct error ignored;
    if (pci_addr_parse(text, ret_addr, &ignored) < 0)
        return false;
    pci_addr_format(ret_addr, again);
    return strcmp(text, again) == 0;
}

static int read_address(const struct slice_values *v, struct device *d)
{
    bool standard = v->present[ATTRIBUTE_BUS_ID];
    enum attribute_id id = standard ? ATTRIBUTE_BUS_ID : ATTRIBUTE_ADDRESS;
    const char *text = text_of(v, id);
    if (standard && v->present[ATTRIBUTE_ADDRESS])
        return slice_fail(
            v, "attributes", slice_attributes[ATTRIBUTE_ADDRESS].name,
            ": must be absent beside %s", slice_attributes[id].name);
    if (!read_addr(text, &d->pci) || (d->pci.domain > 0xffff) == standard)
        return fail_text(v, id,
                         "is \"%.64s\", must be a PCI address like "
                         "\"%s:17:00.0\" in lower case",
                         text, standard ? "0000" : "10000");
    d->has_pci = true;
    return 0;
}

/* The next item of a list that goes on over its parts, into `ret_item`;
 * false at its end. */
struct cursor {
    const char *const *parts;
    unsigned part;
    const char *p;
};

static bool next_item(struct cursor *c, char ret_item[SLICE_TEXT_MAX + 1])
{
    while (c->part < SLICE_PARTS_MAX) {
        if (!c->p)
            c->p = c->parts[c->part];
        if (c->p && *c->p == ' ')
            c->p++;
        size_t size = c->p ? strcspn(c->p, " ") : 0;
        if (size > 0) {
            memcpy(ret_item, c->p, size);
            ret_item[size] = '\0';
            c->p += size;
            return true;
        }
        if (c->p && *c->p == ' ') { /* two spaces: an empty item */
            ret_item[0] = '\0';
            return true;
        }
        c->p = NULL;
        c->part++;
    }
    return false;
}

static int read_addr_list(const struct slice_values *v, enum attribute_id id,
                          uint32_t usual_domain,
                          const struct pci_addr **ret_list, uint8_t *ret_n)
{
    struct cursor c = {.parts = v->parts[id]};
    char item[SLICE_TEXT_MAX + 1], whole[SLICE_TEXT_MAX + 16];
    unsigned max = id == ATTRIBUTE_PATH ? TOPO_PATH_MAX : TOPO_FUNCTIONS_MAX;
    struct pci_addr *list = NULL;
    unsigned n = 0;
    for (; next_item(&c, item); n++) {
        if (n == max)
            return fail_text(v, id, "has more than %u addresses", max);
        if (!list)
            list = arena_alloc(&v->slice->arena, max * sizeof *list);
        const char *colon = strchr(item, ':');
        bool brief = colon && !strchr(colon + 1, ':');
        (void)snprintf(whole, sizeof whole, "%s%s", brief ? "0000:" : "", item);
        if (!read_addr(whole, &list[n]))
            return fail_text(v, id,
                             "has \"%s\", must be PCI addresses like "
                             "\"17:00.0\" with a space between",
                             item);
        if (brief)
            list[n].domain = usual_domain;
    }
    *ret_list = list;
    *ret_n = (uint8_t)n;
    return 0;
}

static bool same_addr(const struct pci_addr *a, const struct pci_addr *b)
{
    return pci_addr_compare(a, b) == 0;
}

static int check_switch(const struct slice_values *v, const struct device *d)
{
    const char *text = text_of(v, ATTRIBUTE_SWITCH);
    const struct pci_addr *top = slice_switch(d);
    struct pci_addr given;
    if (!v->present[ATTRIBUTE_SWITCH])
        return 0;
    if (!read_addr(text, &given))
        return fail_text(v, ATTRIBUTE_SWITCH,
                         "is \"%.64s\", must be a PCI address like "
                         "\"0000:17:00.0\"",
                         text);
    if (!top || !same_addr(top, &given)) {
        char want[PCI_ADDR_TEXT_MAX] = "absent";
        if (top)
            pci_addr_format(top, want);
        return fail_text(v, ATTRIBUTE_SWITCH,
                         "is \"%.64s\", by %s it must be %s", text,
                         slice_attributes[ATTRIBUTE_PATH].name, want);
    }
    return 0;
}

static int read_pci(const struct slice_values *v, struct device *d)
{
    static const enum attribute_id below[] = {
        ATTRIBUTE_ROOT, ATTRIBUTE_PATH, ATTRIBUTE_SWITCH, ATTRIBUTE_FUNCTIONS};
    if (!v->present[ATTRIBUTE_BUS_ID] && !v->present[ATTRIBUTE_ADDRESS]) {
        for (size_t i = 0; i < ARRAY_LEN(below); i++)
            if (v->present[below[i]])
                return slice_fail(
                    v, "attributes", slice_attributes[ATTRIBUTE_BUS_ID].name,
                    ": required beside %s", slice_attributes[below[i]].name);
        return 0;
    }
    int r = read_address(v, d);
    if (r == 0)
        r = read_root(v, d);
    if (r == 0)
        r = read_addr_list(v, ATTRIBUTE_PATH, d->pci.domain, &d->path,
                           &d->n_path);
    return r < 0 ? r : check_switch(v, d);
}

static int read_functions(const struct slice_values *v, struct device *d)
{
    int r = read_addr_list(v, ATTRIBUTE_FUNCTIONS, d->pci.domain, &d->functions,
                           &d->n_functions);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < d->n_functions; i++)
        if (d->functions[i].domain != d->pci.domain)
            return fail_text(v, ATTRIBUTE_FUNCTIONS,
                             "\"%.64s\": must be in the card's PCI domain",
                             text_of(v, ATTRIBUTE_FUNCTIONS));
    for (unsigned i = 1; i < d->n_functions; i++)
        if (pci_addr_compare(&d->functions[i - 1], &d->functions[i]) >= 0)
            return fail_text(v, ATTRIBUTE_FUNCTIONS,
                             "\"%.64s\": must be in ascending order",
                             text_of(v, ATTRIBUTE_FUNCTIONS));
    return 0;
}

static int read_pci_id(const struct slice_values *v, struct device *d)
{
    const char *text = text_of(v, ATTRIBUTE_PCI_ID);
    const char *digits = "0123456789abcdef";
    if (!v->present[ATTRIBUTE_PCI_ID])
        return 0;
    if (strlen(text) != 9 || strspn(text, digits) != 4 || text[4] != ':' ||
        strspn(text + 5, digits) != 4)
        return fail_text(v, ATTRIBUTE_PCI_ID,
                         "is \"%.64s\", must be like \"15b3:a2dc\"", text);
    d->vendor_id = (uint16_t)strtoul(text, NULL, 16);
    d->device_id = (uint16_t)strtoul(text + 5, NULL, 16);
    return 0;
}

static int read_texts(const struct slice_values *v, struct device *d)
{
    struct slice_device *whole = &v->slice->devices[v->index];
    (void)d; /* and its identity */
    for (enum attribute_id id = 0; id < ATTRIBUTE_COUNT; id++) {
        size_t offset = slice_attributes[id].offset;
        if (offset == 0)
            continue;
        const char *text = text_of(v, id);
        const char *copy =
            *text ? arena_strndup(&v->slice->arena, text, strlen(text)) : "";
        memcpy((char *)whole + offset, &copy, sizeof copy);
    }
    return 0;
}

static int read_distances(const struct slice_values *v, struct device *d)
{
    struct slice_distances *row = &v->slice->distances[v->index];
    struct cursor c = {.parts = v->parts[ATTRIBUTE_DISTANCES]};
    char item[SLICE_TEXT_MAX + 1];
    unsigned *list = NULL;
    (void)d; /* they wait for the whole pool */
    while (next_item(&c, item)) {
        char *end;
        unsigned long long n = strtoull(item, &end, 10);
        if (!isdigit((unsigned char)item[0]) || *end || n > UINT32_MAX)
            return fail_text(v, ATTRIBUTE_DISTANCES,
                             "has \"%s\", must be numbers with a space "
                             "between",
                             item);
        if (row->n == TOPO_NUMAS_MAX)
            return fail_text(v, ATTRIBUTE_DISTANCES, "has more than %d numbers",
                             TOPO_NUMAS_MAX);
        if (!list)
            list = arena_alloc(&v->slice->arena, TOPO_NUMAS_MAX * sizeof *list);
        list[row->n++] = (unsigned)n;
    }
    row->list = list;
    return 0;
}

bool slice_parse_quantity(const char *text, uint64_t *ret_value)
{
    static const char *const binary[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const char *const decimal[] = {"k", "M", "G", "T", "P", "E"};
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 19)
        return false;
    uint64_t value = strtoull(text, NULL, 10), factor = 1;
    const char *suffix = text + digits;
    bool known = *suffix == '\0';
    for (unsigned i = 0; i < ARRAY_LEN(binary) && !known; i++) {
        bool is_binary = strcmp(suffix, binary[i]) == 0;
        known = is_binary || strcmp(suffix, decimal[i]) == 0;
        factor = 1;
        for (unsigned n = 0; n <= i; n++)
            factor *= is_binary ? 1024 : 1000;
    }
    return known && !__builtin_mul_overflow(value, factor, &value) &&
           value <= INT64_MAX && (*ret_value = value, true);
}

/* How many `unit`s a capacity is; 0 when absent. */
static int read_capacity(const struct slice_values *v, enum capacity_id id,
                         uint64_t unit, uint64_t max, uint64_t *ret_n)
{
    const char *text = v->capacity[id];
    uint64_t value = 0;
    if (!text)
        return *ret_n = 0, 0;
    if (!slice_parse_quantity(text, &value) || value % unit != 0 ||
        value / unit > max)
        return slice_fail(
            v, "capacity", slice_capacities[id].name,
            ".value: is \"%.64s\", must be a whole number%s, such as "
            "\"%s\"",
            text, unit > 1 ? " of Mi" : "", unit > 1 ? "32Gi" : "16");
    *ret_n = value / unit;
    return 0;
}

static int read_capacities(const struct slice_values *v, struct device *d)
{
    const uint64_t mib = UINT64_C(1) << 20;
    uint64_t cores, cpus, memory;
    int r = read_capacity(v, CAPACITY_CORES, 1, UINT32_MAX, &cores);
    if (r == 0)
        r = read_capacity(v, CAPACITY_CPUS, 1, UINT32_MAX, &cpus);
    if (r == 0)
        r = read_capacity(v, CAPACITY_MEMORY, mib, UINT64_MAX, &memory);
    if (r < 0)
        return r;
    d->cores = (uint32_t)cores;
    d->cpus = (uint32_t)cpus;
    *(v->kind == DEVICE_NUMA ? &d->numa_memory_mib : &d->memory_mib) = memory;
    return 0;
}

/* After the capacities and the texts. */
static int check_cpu_list(const struct slice_values *v, struct device *d)
{
    struct cpulist list;
    struct error why;
    if (!v->present[ATTRIBUTE_CPU_LIST])
        return 0;
    if (cpulist_parse(d->cpu_list, &list, &why) < 0)
        return fail_text(v, ATTRIBUTE_CPU_LIST, "%s", why.text);
    if (list.n_cpus == d->cpus)
        return 0;
    return fail_text(v, ATTRIBUTE_CPU_LIST,
                     "is \"%.64s\", which are %d CPUs, but %s is %u",
                     d->cpu_list, list.n_cpus,
                     slice_capacities[CAPACITY_CPUS].name, d->cpus);
}

/* After the texts. */
static int check_health(const struct slice_values *v, struct device *d)
{
    static const char *const words[] = {"ready", "suspect", "lost", "drained"};
    if (!v->present[ATTRIBUTE_HEALTH])
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(d->health, words[i]) == 0)
            return 0;
    return fail_text(v, ATTRIBUTE_HEALTH,
                     "is \"%.64s\", must be ready, suspect, lost or drained",
                     d->health);
}

/* After the texts. */
static int check_devices(const struct slice_values *v, struct device *d)
{
    struct device_sets sets;
    struct error why;
    if (!v->present[ATTRIBUTE_DEVICES])
        return 0;
    if (device_sets_parse(d->devices, ' ', &sets, &why) < 0)
        return fail_text(v, ATTRIBUTE_DEVICES, "%s", why.text);
    if (strcmp(sets.text, d->devices) == 0)
        return 0;
    return fail_text(v, ATTRIBUTE_DEVICES,
                     "is \"%.64s\", must be in order, \"%s\"", d->devices,
                     sets.text);
}

static int check_rights(const struct slice_values *v, struct device *d)
{
    uint64_t rights;
    if (!v->present[ATTRIBUTE_RIGHTS] || card_rights_parse(d->rights, &rights))
        return 0;
    return fail_text(v, ATTRIBUTE_RIGHTS,
                     "is \"%.64s\", must be 16 hexadecimal digits", d->rights);
}

static int check_node(const struct slice_values *v, struct device *d)
{
    const char *text = text_of(v, ATTRIBUTE_NODE);
    char node[SLICE_NODE_TEXT_MAX + 1];
    (void)d; /* it is known where it is */
    slice_node_text(v->slice->node, node);
    if (!v->present[ATTRIBUTE_NODE] || strcmp(text, node) == 0)
        return 0;
    return fail_text(v, ATTRIBUTE_NODE,
                     "is \"%.64s\", by spec.nodeName it must be \"%s\"", text,
                     node);
}

/* A list may not have a hole: NAME, NAME3 without NAME2. */
static int check_parts(const struct slice_values *v)
{
    for (enum attribute_id id = 0; id < ATTRIBUTE_COUNT; id++)
        for (unsigned i = 1; i < slice_attributes[id].parts; i++)
            if (v->parts[id][i] && !v->parts[id][i - 1])
                return slice_fail(v, "attributes", slice_attributes[id].name,
                                  ": part %u is there, part %u is not", i + 1,
                                  i);
    return 0;
}

static int read_setup(const struct slice_values *v, struct device *d)
{
    static const enum attribute_id counts[] = {ATTRIBUTE_VFS,
                                               ATTRIBUTE_VFS_MAX};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (v->number[counts[i]] > UINT16_MAX)
            return slice_fail(v, "attributes", slice_attributes[counts[i]].name,
                              ".int: is %d, must be 0 to %d",
                              (int)v->number[counts[i]], UINT16_MAX);
    d->link_mbps = (uint32_t)v->number[ATTRIBUTE_LINK_SPEED];
    d->vfs = (uint16_t)v->number[ATTRIBUTE_VFS];
    d->vfs_max = (uint16_t)v->number[ATTRIBUTE_VFS_MAX];
    return 0;
}

static int read_meaning(struct slice_values *v, struct device *d)
{
    static int (*const parts[])(const struct slice_values *,
                                struct device *) = {
        read_pci,        read_functions, read_pci_id,  read_distances,
        read_capacities, read_setup,     read_texts,   check_cpu_list,
        check_health,    check_devices,  check_rights, check_node};
    int r = read_kind(v, d);
    if (r == 0)
        r = check_kinds(v);
    if (r == 0)
        r = check_parts(v);
    if (r < 0)
        return r;
    d->numa = v->present[ATTRIBUTE_NUMA] ? (int)v->number[ATTRIBUTE_NUMA] : -1;
    d->package = v->present[ATTRIBUTE_PACKAGE]
                     ? (int)v->number[ATTRIBUTE_PACKAGE]
                     : -1;
    d->by_claims = v->number[ATTRIBUTE_CLAIMS];
    d->set_aside = v->present[ATTRIBUTE_COMPUTE] &&
                   !v->number[ATTRIBUTE_COMPUTE];
    d->unhealthy = v->present[ATTRIBUTE_HEALTHY] &&
                   !v->number[ATTRIBUTE_HEALTHY];
    if (d->kind == DEVICE_NUMA && d->numa < 0)
        return slice_fail(v, "attributes",
                          slice_attributes[ATTRIBUTE_NUMA].name,
                          ": required member missing");
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++)
        r = parts[i](v, d);
    return r;
}

int slice_read_device(const cJSON *json, struct slice *s, struct error *err)
{
    struct reader r;
    struct slice_values v = {.slice = s, .index = s->n_devices, .err = err};
    struct device *d = &s->devices[s->n_devices].d;
    char path[READER_PATH_MAX];
    (void)snprintf(path, sizeof path, "spec.devices[%zu]", s->n_devices);
    reader_init(&r, json, path, err);
    const char *name = reader_string(&r, "name", TOPO_ID_MAX);
    const cJSON *attributes = reader_object(&r, "attributes");
    const cJSON *capacity = reader_opt_object(&r, "capacity");
    if (name && !slice_is_label(name, strlen(name)))
        (void)reader_fail(&r, "name",
                          "is \"%s\", must be a DNS label (lower-case "
                          "letters, digits and '-')",
                          name);
    int n = cJSON_GetArraySize(attributes) +
            (capacity ? cJSON_GetArraySize(capacity) : 0);
    if (n > SLICE_ATTRIBUTES_MAX)
        (void)reader_fail(&r, NULL,
                          "has %d attributes and capacities, the limit is %d",
                          n, SLICE_ATTRIBUTES_MAX);
    int status = reader_finish_lenient(&r);
    if (status == 0)
        status = slice_collect(&v, attributes, capacity);
    if (status == 0)
        status = read_meaning(&v, d);
    if (status < 0)
        return status;
    d->id = arena_strndup(&s->arena, name, strlen(name));
    return 0;
}
