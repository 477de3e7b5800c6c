#include "tests/lib/sim/simclaims.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

static void add_attribute(struct str *out, const char *name, const char *value)
{
    jwrite_object(out, name);
    jwrite_text(out, "string", value);
    jwrite_end_object(out);
}

static void add_place(struct str *out, const struct device *d)
{
    char pci[PCI_ADDR_TEXT_MAX], root[32];
    pci_addr_format(&d->pci, pci);
    (void)snprintf(root, sizeof root, "pci%04x:%02x", (unsigned)d->root_domain,
                   d->root_bus);
    add_attribute(out, "resource.kubernetes.io/pciBusID", pci);
    add_attribute(out, "resource.kubernetes.io/pcieRoot", root);
    str_addf(out, ",\"resource.kubernetes.io/numaNode\":{\"int\":%d}", d->numa);
}

static void add_capacity(struct str *out, const struct device *d)
{
    jwrite_bool(out, "allowMultipleAllocations", true);
    str_addf(out,
             ",\"capacity\":{\"biga.dev/cores\":{\"value\":\"%" PRIu32
             "\",\"requestPolicy\":{\"default\":\"%" PRIu32
             "\",\"validRange\":{\"min\":\"1\",\"step\":\"1\"}}},"
             "\"biga.dev/memory\":{\"value\":\"%" PRIu64
             "Mi\",\"requestPolicy\":{\"default\":\"%" PRIu64
             "Mi\",\"validRange\":{\"min\":\"1Mi\",\"step\":\"1Mi\"}}}}",
             d->cores, d->cores, d->memory_mib, d->memory_mib);
}

static void add_device(struct str *out, const struct topo *topo,
                       const struct device *d, const char *name, bool tainted)
{
    bool card = d->kind == DEVICE_CARD;
    jwrite_object(out, NULL);
    jwrite_text(out, "name", name);
    jwrite_object(out, "attributes");
    if (card) {
        add_attribute(out, "biga.dev/kind", "card");
        add_attribute(out, "biga.dev/node", topo_node(topo));
        str_add(out, ",\"biga.dev/claims\":{\"bool\":true}");
        add_attribute(out, "biga.dev/switch", d->root_bus < 0x20 ? "a" : "b");
    }
    add_place(out, d);
    jwrite_end_object(out);
    if (card)
        add_capacity(out, d);
    if (tainted)
        str_add(out, ",\"taints\":[{\"key\":\"lost\",\"value\":\"x\","
                     "\"effect\":\"NoSchedule\"}]");
    jwrite_end_object(out);
}

static char *make_slice(const struct topo *topo, enum device_kind kind,
                        const char *driver, int64_t generation,
                        const char *tainted)
{
    struct str out = STR_INIT(1 << 20);
    size_t first, n = topo_count(topo, kind, &first);
    str_addf(&out,
             "{\"metadata\":{\"name\":\"%s-%s\"},\"spec\":{\"driver\":\"%s\","
             "\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":"
             "%" PRId64 ",\"resourceSliceCount\":1}",
             topo_node(topo), driver, driver, topo_node(topo), topo_node(topo),
             generation);
    jwrite_array(&out, "devices");
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(topo, first + i);
        char name[TOPO_ID_MAX + 1];
        if (kind == DEVICE_CARD)
            (void)snprintf(name, sizeof name, "%s", d->id);
        else
            (void)snprintf(name, sizeof name, "gpu-%zu", i);
        add_device(&out, topo, d, name, strcmp(name, tainted) == 0);
    }
    str_add(&out, "]}}");
    return str_steal(&out);
}

char *simclaims_cards(const struct topo *topo, int64_t generation,
                      const char *tainted)
{
    return make_slice(topo, DEVICE_CARD, "xpu.biga.dev", generation, tainted);
}

char *simclaims_gpus(const struct topo *topo, int64_t generation,
                     const char *tainted)
{
    return make_slice(topo, DEVICE_GPU, "gpu.example.com", generation, tainted);
}

char *simclaims_class(const char *name, const char *cel)
{
    struct str out = STR_INIT(1 << 20);
    str_addf(&out,
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"selectors\":[{"
             "\"cel\":{\"expression\":",
             name);
    str_add_json(&out, cel);
    str_add(&out, "}}]}}");
    return str_steal(&out);
}

char *simclaims_template(const char *name, const char *requests,
                         const char *constraints)
{
    return xasprintf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\","
                     "\"uid\":\"uid-of-%s\"},\"spec\":{\"spec\":{\"devices\":{"
                     "\"requests\":[%s],\"constraints\":%s}}}}",
                     name, name, requests, constraints);
}

char *simclaims_claim(const char *name, unsigned version, const char *pod_uid,
                      const char *results)
{
    cleanup_free char *owner =
        *pod_uid ? xasprintf(",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                             "\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"%s\","
                             "\"controller\":true}]",
                             pod_uid)
                 : xstrdup("");
    cleanup_free char *reserved =
        *pod_uid ? xasprintf(",\"reservedFor\":[{\"resource\":\"pods\","
                             "\"name\":\"p\",\"uid\":\"%s\"}]",
                             pod_uid)
                 : xstrdup("");
    cleanup_free char *status =
        *results ? xasprintf("{\"allocation\":{\"devices\":{\"results\":[%s]}}"
                             "%s}",
                             results, reserved)
                 : xstrdup("{}");
    return xasprintf(
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":"
        "\"uid-of-%s\",\"resourceVersion\":\"%u\",\"annotations\":{"
        "\"resource.kubernetes.io/pod-claim-name\":\"pair\"}%s},\"spec\":{"
        "\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{"
        "\"deviceClassName\":\"gpu.example.com\"}}]}},\"status\":%s}",
        name, name, version, owner, status);
}

char *simclaims_pod(const char *name, const char *claims)
{
    return xasprintf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\","
                     "\"uid\":\"uid-%s\"},\"spec\":{\"resourceClaims\":[%s],"
                     "\"containers\":[{\"name\":\"c\"}]}}",
                     name, name, claims);
}
