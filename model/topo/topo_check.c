/* What a device of a topology may be. */
#include <string.h>

#include "lib/base/utf8.h"
#include "model/topo/card_rights.h"
#include "model/topo/cpulist.h"
#include "model/topo/device_set.h"
#include "model/topo/topo_private.h"

#define MEMORY_MIB_MAX ((uint64_t)INT64_MAX >> 20)

enum { NUMA_INDEX_MAX = 32767 };

/* [a-z0-9]([-a-z0-9]*[a-z0-9])?, of `size` bytes. */
bool topo_is_label(const char *text, size_t size)
{
    if (size == 0 || size > TOPO_ID_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!alnum && (c != '-' || i == 0 || i == size - 1))
            return false;
    }
    return true;
}

static int text_check(const char *name, const char *text, size_t max,
                      struct error *err)
{
    size_t size = strlen(text);
    if (size > max)
        return error_set(err, EINVAL, "%s: has %zu bytes, at most %zu allowed",
                         name, size, max);
    for (size_t i = 0, n; i < size; i += n) {
        n = utf8_sequence(text + i, size - i);
        if (n == 0)
            return error_set(err, EINVAL, "%s: is no valid UTF-8 at byte %zu",
                             name, i);
    }
    return 0;
}

static int texts_check(const struct device *d, const struct identity *own,
                       struct error *err)
{
    const struct {
        const char *name, *text;
    } texts[] = {
        {"vendor", d->vendor},       {"model", d->model},
        {"serial", own->serial},     {"interface", d->interface},
        {"rdma", d->rdma},           {"arch", d->arch},
        {"endpoint", own->endpoint}, {"fabric port", own->fabric_port},
        {"guid", own->guid},         {"CPU list", d->cpu_list},
        {"health", d->health},       {"link", d->link},
        {"mode", d->mode},           {"devices", d->devices},
        {"rights", d->rights},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (text_check(texts[i].name, texts[i].text, TOPO_TEXT_MAX, err) < 0)
            return -EINVAL;
    return text_check("barred", d->barred, TOPO_BARRED_MAX, err);
}

static int devices_check(const struct device *d, struct error *err)
{
    struct device_sets sets;
    if (!*d->devices)
        return 0;
    if (d->kind != DEVICE_CARD)
        return error_set(err, EINVAL, "devices: a device of kind %s has none",
                         device_kind_name(d->kind));
    if (device_sets_parse(d->devices, ' ', &sets, err) < 0)
        return error_wrap(err, "devices");
    if (strcmp(sets.text, d->devices) == 0)
        return 0;
    return error_set(err, EINVAL, "devices: is \"%s\", must be \"%s\"",
                     d->devices, sets.text);
}

static int rights_check(const struct device *d, struct error *err)
{
    uint64_t rights;
    if (!*d->rights)
        return 0;
    if (d->kind != DEVICE_CARD)
        return error_set(err, EINVAL, "rights: a device of kind %s has none",
                         device_kind_name(d->kind));
    return card_rights_parse(d->rights, &rights)
               ? 0
               : error_set(err, EINVAL,
                           "rights: is \"%s\", must be 16 hexadecimal digits",
                           d->rights);
}

static int cpus_check(const struct device *d, struct error *err)
{
    struct cpulist list;
    if (!*d->cpu_list)
        return 0;
    if (d->kind != DEVICE_NUMA)
        return error_set(err, EINVAL, "CPU list: a device of kind %s has none",
                         device_kind_name(d->kind));
    if (cpulist_parse(d->cpu_list, &list, err) < 0)
        return error_wrap(err, "CPU list");
    if (list.n_cpus == d->cpus)
        return 0;
    return error_set(err, EINVAL,
                     "CPU list: is \"%s\", which are %d CPUs, must be %u",
                     d->cpu_list, list.n_cpus, d->cpus);
}

static int functions_check(const struct device *d, struct error *err)
{
    if (d->n_functions > TOPO_FUNCTIONS_MAX)
        return error_set(err, EINVAL, "functions: has %d, at most %d allowed",
                         d->n_functions, TOPO_FUNCTIONS_MAX);
    for (unsigned i = 0; i < d->n_functions; i++) {
        char text[PCI_ADDR_TEXT_MAX];
        if (d->functions[i].domain != d->pci.domain)
            return error_set(err, EINVAL,
                             "functions: must be in the device's PCI domain");
        if (i == 0 ||
            pci_addr_compare(&d->functions[i - 1], &d->functions[i]) != 0)
            continue;
        pci_addr_format(&d->functions[i], text);
        return error_set(err, EINVAL, "functions: has %s twice", text);
    }
    return 0;
}

/* In bytes it is a quantity of Kubernetes: an int64. */
static int memory_check(const struct device *d, struct error *err)
{
    uint64_t mib = d->kind == DEVICE_NUMA ? d->numa_memory_mib : d->memory_mib;
    if (mib <= MEMORY_MIB_MAX)
        return 0;
    return error_set(err, EINVAL, "memory: is %ju MiB, at most %ju allowed",
                     (uintmax_t)mib, (uintmax_t)MEMORY_MIB_MAX);
}

int topo_check_device(const struct device *d, const struct identity *own,
                      struct error *err)
{
    if (!topo_is_label(d->id, strlen(d->id)))
        return error_set(err, EINVAL,
                         "device id: is \"%.64s\", must be a DNS label", d->id);
    int rc = texts_check(d, own, err);
    if (rc == 0 && (unsigned)d->kind >= TOPO_KINDS)
        rc = error_set(err, EINVAL, "kind: is %d", (int)d->kind);
    if (rc == 0 && d->n_path > TOPO_PATH_MAX)
        rc = error_set(err, EINVAL, "path: has %d bridges, at most %d allowed",
                       d->n_path, TOPO_PATH_MAX);
    if (rc == 0)
        rc = functions_check(d, err);
    if (rc == 0)
        rc = memory_check(d, err);
    int least = d->kind == DEVICE_NUMA ? 0 : -1;
    if (rc == 0 && (d->numa < least || d->numa > NUMA_INDEX_MAX))
        rc = error_set(err, EINVAL, "NUMA node: is %d, must be %d to %d",
                       d->numa, least, NUMA_INDEX_MAX);
    if (rc == 0 && d->package < -1)
        rc = error_set(err, EINVAL, "package: is %d, must be -1 or more",
                       d->package);
    if (rc == 0)
        rc = cpus_check(d, err);
    if (rc == 0)
        rc = devices_check(d, err);
    if (rc == 0)
        rc = rights_check(d, err);
    return rc < 0 ? error_wrap(err, "device %s", d->id) : 0;
}
