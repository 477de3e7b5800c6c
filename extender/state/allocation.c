#include "extender/state/allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "model/fabric/fabric.h"
#include "model/pod/demand_ident.h"

#define INT_MAX_EXACT INT64_C(9007199254740992) /* 2^53 */

/* What a job's size could be before jobs were planned; stores keep it. */
enum { OLD_SIZE_MAX = 1000000 };

struct allocation *allocation_create(const struct demand *demand,
                                     const char *node)
{
    struct allocation *a = xcalloc(1, sizeof *a);
    atomic_init(&a->refs, 1);
    a->demand = *demand;
    demand_pair_key(demand, a->pair_key);
    a->node = xstrdup(node);
    a->relation = RELATION_SYS;
    a->numa = -1;
    return a;
}

DEFINE_REF(allocation_ref, struct allocation)

void allocation_unref(struct allocation *a)
{
    if (!a || !refs_drop(&a->refs))
        return;
    free(a->node);
    free(a->cards);
    free(a->gpus);
    free(a->nics);
    free(a->card_pci);
    free(a->gpu_pci);
    free(a->nic_pci);
    free(a);
}

int allocation_compare_pod(const struct allocation *a,
                           const struct allocation *b)
{
    int order = strcmp(a->demand.namespace, b->demand.namespace);
    return order ? order : strcmp(a->demand.name, b->demand.name);
}

/* --- bits ------------------------------------------------------------- */

static uint16_t device_bits(const struct topo *topo, enum device_kind kind,
                            char (*ids)[TOPO_ID_MAX + 1], size_t n_ids)
{
    size_t considered[TOPO_KIND_MAX];
    size_t n = n_ids ? topo_considered(topo, kind, considered) : 0;
    uint16_t bits = 0;
    for (size_t i = 0, found = 0; i < n && found < n_ids; i++) {
        const char *id = topo_device(topo, considered[i])->id;
        for (size_t k = 0; k < n_ids; k++) {
            if (strcmp(ids[k], id) != 0)
                continue;
            bits |= (uint16_t)(1u << i);
            found++;
        }
    }
    return bits;
}

uint16_t allocation_cards(const struct topo *topo, const struct allocation *a)
{
    return device_bits(topo, DEVICE_CARD, a->cards, a->n_cards);
}

uint16_t allocation_gpus(const struct topo *topo, const struct allocation *a)
{
    return device_bits(topo, DEVICE_GPU, a->gpus, a->n_gpus);
}

uint16_t allocation_nics(const struct topo *topo, const struct allocation *a)
{
    return device_bits(topo, DEVICE_NIC, a->nics, a->n_nics);
}

/* --- JSON -------------------------------------------------------------- */

static void encode_devices(struct str *out, const char *key,
                           char (*ids)[TOPO_ID_MAX + 1],
                           char (*pci)[PCI_ADDR_TEXT_MAX], size_t n)
{
    jwrite_array(out, key);
    for (size_t i = 0; i < n; i++) {
        jwrite_object(out, NULL);
        jwrite_text(out, "id", ids[i]);
        jwrite_known_text(out, "pci", pci ? pci[i] : "");
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

void allocation_encode_devices(const struct allocation *a, struct str *out)
{
    static const struct allocation none;
    a = a ? a : &none;
    encode_devices(out, "cards", a->cards, a->card_pci, a->n_cards);
    encode_devices(out, "gpus", a->gpus, a->gpu_pci, a->n_gpus);
    if (a->n_nics)
        encode_devices(out, "nics", a->nics, a->nic_pci, a->n_nics);
}

static void encode_pod(const struct demand *d, struct str *out)
{
    const struct demand_ident ident = demand_ident_of(d);
    jwrite_object(out, "pod");
    demand_ident_write(&ident, out);
    jwrite_int(out, "size", d->size);
    jwrite_int(out, "priority", d->priority);
    jwrite_end_object(out);
}

/* Absent when they are the default. */
static void encode_wishes(const struct demand *d, struct str *out)
{
    if (d->pair_gpus != d->gpus)
        jwrite_uint(out, "pairGpus", d->pair_gpus);
    jwrite_known(out, "nics", d->nics);
    if (d->pair_nics != d->nics)
        jwrite_uint(out, "pairNics", d->pair_nics);
    jwrite_known(out, "cpuMilli", d->cpu_milli);
    jwrite_known(out, "hostMemoryMiB", d->memory_mib);
    if (d->prefer_align != RELATION_PIX)
        jwrite_text(out, "preferAlign",
                    relation_name((enum relation)d->prefer_align));
    if (d->within >= 0)
        jwrite_text(out, "within", fabric_tier_name((unsigned)d->within));
    if (d->prefer_within >= 0)
        jwrite_text(out, "preferWithin",
                    fabric_tier_name((unsigned)d->prefer_within));
}

static void encode_card_need(bool has, uint32_t cores, uint32_t memory_mib,
                             struct str *out)
{
    if (!has)
        return;
    jwrite_uint(out, "cores", cores);
    jwrite_uint(out, "memoryMiB", memory_mib);
}

static void encode_shapes(const struct demand *d, struct str *out)
{
    if (!d->n_shapes)
        return;
    jwrite_array(out, "shapes");
    for (unsigned i = 0; i < d->n_shapes; i++) {
        const struct pair_shape *s = &d->shapes[i];
        jwrite_object(out, NULL);
        jwrite_int(out, "first", s->first);
        jwrite_int(out, "last", s->last);
        jwrite_uint(out, "cards", s->cards);
        jwrite_uint(out, "gpus", s->gpus);
        jwrite_known(out, "nics", s->nics);
        jwrite_uint(out, "cpuMilli", s->cpu_milli);
        jwrite_text(out, "align", relation_name((enum relation)s->align));
        encode_card_need(s->has_card_need, s->card_cores, s->card_memory_mib,
                         out);
        jwrite_known(out, "hostMemoryMiB", s->memory_mib);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

static void encode_need(const struct demand *d, struct str *out)
{
    jwrite_object(out, "need");
    jwrite_uint(out, "cards", d->cards);
    jwrite_uint(out, "pairCards", d->pair_cards);
    jwrite_uint(out, "gpus", d->gpus);
    jwrite_text(out, "align", relation_name((enum relation)d->align));
    jwrite_bool(out, "exclusive", d->exclusive);
    if (d->by_claim)
        jwrite_bool(out, "claims", true);
    encode_card_need(d->has_card_need, d->card_cores, d->card_memory_mib, out);
    jwrite_known_text(out, "arch", d->arch);
    jwrite_known_text(out, "devices", d->devices.text);
    encode_wishes(d, out);
    encode_shapes(d, out);
    jwrite_end_object(out);
}

void allocation_encode(const struct allocation *a, struct str *out)
{
    jwrite_object(out, NULL);
    encode_pod(&a->demand, out);
    jwrite_text(out, "node", a->node);
    allocation_encode_devices(a, out);
    jwrite_int(out, "numa", a->numa);
    jwrite_text(out, "relation", relation_name(a->relation));
    if (a->n_nics)
        jwrite_text(out, "nicRelation", relation_name(a->nic_relation));
    jwrite_object(out, "epoch");
    jwrite_text(out, "bootId", a->epoch.boot_id);
    jwrite_int(out, "generation", a->epoch.generation);
    jwrite_end_object(out);
    jwrite_uint(out, "number", a->number);
    if (a->held)
        jwrite_bool(out, "held", true);
    encode_need(&a->demand, out);
    jwrite_end_object(out);
}

/* Copies a text that the reader has already limited. */
static void copy_text(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text ? text : "");
}

static enum pod_role read_role(struct reader *r)
{
    const char *word = reader_string(r, "role", 15);
    for (int role = ROLE_HOST; word && role <= ROLE_SERVICE; role++)
        if (strcmp(word, pod_role_name((enum pod_role)role)) == 0)
            return (enum pod_role)role;
    if (word)
        (void)reader_fail(r, "role", "is \"%s\", must be host, xpu or service",
                          word);
    return ROLE_NONE;
}

static enum relation read_relation(struct reader *r, const char *name)
{
    const char *word = reader_string(r, name, 15);
    for (int i = 0; word && i < RELATION_COUNT; i++)
        if (strcmp(word, relation_name((enum relation)i)) == 0)
            return (enum relation)i;
    if (word)
        (void)reader_fail(r, name,
                          "is \"%s\", must be PIX, PXB, PHB, NODE, SOCKET "
                          "or SYS",
                          word);
    return RELATION_SYS;
}

static int decode_pod(const cJSON *json, struct demand *d, struct error *err)
{
    struct reader r;
    reader_init(&r, json, "pod", err);
    copy_text(d->namespace, sizeof d->namespace,
              reader_string(&r, "namespace", DEMAND_NAMESPACE_MAX));
    copy_text(d->name, sizeof d->name,
              reader_string(&r, "name", DEMAND_NAME_MAX));
    copy_text(d->uid, sizeof d->uid,
              reader_opt_string(&r, "uid", DEMAND_UID_MAX));
    d->role = read_role(&r);
    copy_text(d->job, sizeof d->job,
              reader_opt_string(&r, "job", DEMAND_NAME_MAX));
    d->pair = (int32_t)reader_int(&r, "pair", 0, DEMAND_PAIR_MAX);
    d->size = (int32_t)reader_int(&r, "size", 1, OLD_SIZE_MAX);
    if (d->size > DEMAND_SIZE_MAX)
        d->size = DEMAND_SIZE_MAX;
    d->priority = reader_int(&r, "priority", -INT_MAX_EXACT, INT_MAX_EXACT);
    return reader_finish_strict(&r);
}

static void read_devices(struct reader *r, struct demand *d)
{
    struct error why;
    const char *text = reader_opt_string(r, "devices", DEVICE_SETS_TEXT_MAX);
    if (text && device_sets_parse(text, ' ', &d->devices, &why) < 0)
        (void)reader_fail(r, "devices", "%s", why.text);
}

/* Cores and MiB of each card come together, or neither is stated. */
static bool read_card_need(struct reader *r, uint32_t *ret_cores,
                           uint32_t *ret_memory_mib)
{
    int64_t cores = reader_opt_int(r, "cores", 0, UINT32_MAX, -1);
    int64_t memory = reader_opt_int(r, "memoryMiB", 0, UINT32_MAX, -1);
    if ((cores < 0) != (memory < 0))
        (void)reader_fail(r, cores < 0 ? "cores" : "memoryMiB",
                          "cores and memoryMiB come together");
    if (cores < 0 || memory < 0)
        return false;
    *ret_cores = (uint32_t)cores;
    *ret_memory_mib = (uint32_t)memory;
    return true;
}

static int8_t read_tier(struct reader *r, const char *name)
{
    const char *word = reader_opt_string(r, name, 15);
    struct error err;
    int tier = word ? fabric_tier_parse(word, &err) : DEMAND_ANYWHERE;
    if (word && tier < 0) {
        (void)reader_fail(r, name, "%s", err.text);
        tier = DEMAND_ANYWHERE;
    }
    return (int8_t)tier;
}

static int decode_shape(const cJSON *json, struct demand *d, struct error *err)
{
    struct reader r;
    char path[32];
    struct pair_shape *s = &d->shapes[d->n_shapes];
    int64_t after = d->n_shapes ? s[-1].last + 1 : 0;
    (void)snprintf(path, sizeof path, "need.shapes[%u]", (unsigned)d->n_shapes);
    d->n_shapes++;
    reader_init(&r, json, path, err);
    s->first = (int32_t)reader_int(&r, "first", after, DEMAND_SIZE_MAX - 1);
    s->last = (int32_t)reader_int(&r, "last", s->first, DEMAND_SIZE_MAX - 1);
    s->cards = (uint8_t)reader_int(&r, "cards", 1, TOPO_CARDS_MAX);
    s->gpus = (uint8_t)reader_int(&r, "gpus", 0, TOPO_GPUS_MAX);
    s->nics = (uint8_t)reader_opt_int(&r, "nics", 0, TOPO_NICS_MAX, 0);
    s->cpu_milli = (uint32_t)reader_int(&r, "cpuMilli", 0, UINT32_MAX);
    s->memory_mib = (uint32_t)reader_opt_int(&r, "hostMemoryMiB", 0, UINT32_MAX,
                                             0);
    s->align = (uint8_t)read_relation(&r, "align");
    s->has_card_need = read_card_need(&r, &s->card_cores, &s->card_memory_mib);
    return reader_finish_strict(&r);
}

static int decode_need(const cJSON *json, struct demand *d, struct error *err)
{
    struct reader r;
    reader_init(&r, json, "need", err);
    d->cards = (uint8_t)reader_int(&r, "cards", 0, TOPO_CARDS_MAX);
    d->pair_cards = (uint8_t)reader_int(&r, "pairCards", 0, TOPO_CARDS_MAX);
    d->gpus = (uint8_t)reader_int(&r, "gpus", 0, UINT8_MAX);
    d->pair_gpus = (uint8_t)reader_opt_int(&r, "pairGpus", 0, UINT8_MAX,
                                           d->gpus);
    d->nics = (uint8_t)reader_opt_int(&r, "nics", 0, TOPO_NICS_MAX, 0);
    d->pair_nics = (uint8_t)reader_opt_int(&r, "pairNics", 0, TOPO_NICS_MAX,
                                           d->nics);
    d->cpu_milli = (uint32_t)reader_opt_int(&r, "cpuMilli", 0, UINT32_MAX, 0);
    d->memory_mib = (uint32_t)reader_opt_int(&r, "hostMemoryMiB", 0, UINT32_MAX,
                                             0);
    d->align = (uint8_t)read_relation(&r, "align");
    if (cJSON_GetObjectItemCaseSensitive(json, "preferAlign"))
        d->prefer_align = (uint8_t)read_relation(&r, "preferAlign");
    d->within = read_tier(&r, "within");
    d->prefer_within = read_tier(&r, "preferWithin");
    d->exclusive = reader_bool(&r, "exclusive");
    d->by_claim = reader_opt_bool(&r, "claims", false);
    d->has_card_need = read_card_need(&r, &d->card_cores, &d->card_memory_mib);
    copy_text(d->arch, sizeof d->arch,
              reader_opt_string(&r, "arch", DEMAND_ARCH_MAX));
    read_devices(&r, d);
    const cJSON *each, *shapes = NULL;
    if (cJSON_GetObjectItemCaseSensitive(json, "shapes"))
        shapes = reader_array(&r, "shapes", DEMAND_SHAPES_MAX);
    int e = reader_finish_strict(&r);
    cJSON_ArrayForEach(each, shapes)
    {
        if (e == 0)
            e = decode_shape(each, d, err);
    }
    return e;
}

static int decode_epoch(const cJSON *json, struct slice_epoch *epoch,
                        struct error *err)
{
    struct reader r;
    reader_init(&r, json, "epoch", err);
    copy_text(epoch->boot_id, sizeof epoch->boot_id,
              reader_opt_string(&r, "bootId", SLICE_BOOT_ID_MAX));
    epoch->generation = reader_int(&r, "generation", 0, INT_MAX_EXACT);
    return reader_finish_strict(&r);
}

/* The lists of one kind of device, as they are read. */
struct devices {
    uint8_t n;
    char (*ids)[TOPO_ID_MAX + 1];
    char (*pci)[PCI_ADDR_TEXT_MAX];
};

static int decode_device(const cJSON *json, const char *path,
                         struct devices *list, struct error *err)
{
    struct reader r;
    struct pci_addr addr;
    char text[PCI_ADDR_TEXT_MAX] = "";
    reader_init(&r, json, path, err);
    const char *id = reader_string(&r, "id", TOPO_ID_MAX);
    const char *pci = reader_opt_string(&r, "pci", PCI_ADDR_TEXT_MAX - 1);
    if (pci && pci_addr_parse(pci, &addr, NULL) == 0)
        pci_addr_format(&addr, text);
    if (pci && strcmp(pci, text) != 0)
        (void)reader_fail(&r, "pci", "is \"%s\", must be like 0000:17:00.0",
                          pci);
    copy_text(list->ids[list->n], TOPO_ID_MAX + 1, id);
    copy_text(list->pci[list->n++], PCI_ADDR_TEXT_MAX, pci);
    return reader_finish_strict(&r);
}

static int decode_devices(const cJSON *json, const char *key,
                          struct devices *ret_list, struct error *err)
{
    size_t n = (size_t)cJSON_GetArraySize(json);
    cleanup_free char(*ids)[TOPO_ID_MAX + 1] = xcalloc(n + 1, sizeof *ids);
    cleanup_free char(*pci)[PCI_ADDR_TEXT_MAX] = xcalloc(n + 1, sizeof *pci);
    struct devices list = {0, ids, pci};
    const cJSON *each;
    cJSON_ArrayForEach(each, json)
    {
        char path[32];
        (void)snprintf(path, sizeof path, "%s[%u]", key, (unsigned)list.n);
        int r = decode_device(each, path, &list, err);
        if (r < 0)
            return r;
    }
    *ret_list = (struct devices){list.n, steal(&ids), steal(&pci)};
    return 0;
}

static int decode_parts(struct reader *r, struct allocation *a,
                        struct error *err)
{
    const cJSON *cards = reader_array(r, "cards", TOPO_CARDS_MAX);
    const cJSON *gpus = reader_array(r, "gpus", TOPO_GPUS_MAX);
    const cJSON *nics = reader_opt_array(r, "nics", TOPO_NICS_MAX);
    if (nics)
        a->nic_relation = read_relation(r, "nicRelation");
    const cJSON *epoch = reader_object(r, "epoch");
    a->numa = (int32_t)reader_int(r, "numa", -1, INT32_MAX);
    a->relation = read_relation(r, "relation");
    a->number = (uint64_t)reader_int(r, "number", 0, INT_MAX_EXACT);
    a->held = reader_opt_bool(r, "held", false);
    int e = reader_finish_strict(r);
    struct devices list = {0};
    if (e == 0)
        e = decode_devices(cards, "cards", &list, err);
    if (e == 0) {
        a->n_cards = list.n;
        a->cards = list.ids;
        a->card_pci = list.pci;
        e = decode_devices(gpus, "gpus", &list, err);
    }
    if (e == 0) {
        a->n_gpus = list.n;
        a->gpus = list.ids;
        a->gpu_pci = list.pci;
    }
    if (e == 0 && nics)
        e = decode_devices(nics, "nics", &list, err);
    if (e == 0 && nics) {
        a->n_nics = list.n;
        a->nics = list.ids;
        a->nic_pci = list.pci;
    }
    if (e == 0)
        e = decode_epoch(epoch, &a->epoch, err);
    return e;
}

int allocation_decode(const char *json, size_t size,
                      struct allocation **ret_allocation, struct error *err)
{
    cleanup_with(json) cJSON *tree = NULL;
    int e = json_parse(json, size, &tree, err);
    if (e < 0)
        return e;

    struct reader r;
    struct demand demand = {0};
    reader_init(&r, tree, "", err);
    const cJSON *pod = reader_object(&r, "pod");
    const cJSON *need = reader_object(&r, "need");
    const char *node = reader_string(&r, "node", DEMAND_NAME_MAX);
    e = reader_finish_lenient(&r);
    if (e == 0)
        e = decode_pod(pod, &demand, err);
    if (e == 0)
        e = decode_need(need, &demand, err);
    if (e < 0)
        return e;

    cleanup_with(allocation) struct allocation *a = allocation_create(&demand,
                                                                      node);
    e = decode_parts(&r, a, err);
    if (e < 0)
        return e;
    *ret_allocation = steal(&a);
    return 0;
}

/* --- sorting by pods -------------------------------------------------------- */

enum {
    KEY_MAX = DEMAND_NAMESPACE_MAX + 1 + DEMAND_NAME_MAX + 1,
    AHEAD = 16,
};

/* The first bytes of a key behind those that all keys begin with, as numbers in
 * the same order. */
struct pod_head {
    uint64_t high, low;
    const struct allocation *a;
};

/* "NAMESPACE\0NAME\0": in the order of bytes they are as the pods are. */
static size_t pod_key_of(const struct allocation *a, char ret[KEY_MAX])
{
    size_t n = strlen(a->demand.namespace) + 1;
    size_t m = strlen(a->demand.name) + 1;
    memcpy(ret, a->demand.namespace, n);
    memcpy(ret + n, a->demand.name, m);
    return n + m;
}

static void fetch_pod(const struct allocation *const *list, size_t i, size_t n)
{
    if (i + AHEAD >= n)
        return;
    __builtin_prefetch(list[i + AHEAD]->demand.namespace);
    __builtin_prefetch(list[i + AHEAD]->demand.name);
}

/* How many bytes all keys begin with. */
static size_t pod_common(const struct allocation *const *list, size_t n)
{
    char first[KEY_MAX], key[KEY_MAX];
    size_t common = pod_key_of(list[0], first);
    for (size_t i = 1; i < n; i++) {
        fetch_pod(list, i, n);
        size_t size = pod_key_of(list[i], key), same = 0;
        while (same < common && same < size && key[same] == first[same])
            same++;
        common = same;
    }
    return common;
}

static uint64_t bytes_number(const unsigned char *bytes)
{
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof n; i++)
        n = n << 8 | bytes[i];
    return n;
}

static struct pod_head pod_head_of(const struct allocation *a, size_t common)
{
    char key[KEY_MAX];
    unsigned char bytes[2 * sizeof(uint64_t)] = {0};
    size_t rest = pod_key_of(a, key) - common;
    memcpy(bytes, key + common, rest < sizeof bytes ? rest : sizeof bytes);
    return (struct pod_head){bytes_number(bytes),
                             bytes_number(bytes + sizeof(uint64_t)), a};
}

static int compare_heads(const void *pa, const void *pb)
{
    const struct pod_head *a = pa, *b = pb;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return allocation_compare_pod(a->a, b->a);
}

void allocation_sort_pods(const struct allocation **list, size_t n)
{
    if (n < 2)
        return;
    size_t common = pod_common(list, n);
    cleanup_free struct pod_head *heads = xmalloc(n * sizeof *heads);
    for (size_t i = 0; i < n; i++) {
        fetch_pod(list, i, n);
        heads[i] = pod_head_of(list[i], common);
    }
    qsort(heads, n, sizeof *heads, compare_heads);
    for (size_t i = 0; i < n; i++)
        list[i] = heads[i].a;
}
