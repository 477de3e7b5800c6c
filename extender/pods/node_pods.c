#include "extender/pods/node_pods.h"

#include <stdlib.h>
#include <string.h>

#include "extender/pods/pod_files.h"
#include "lib/base/hash.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "model/pod/podfeed.h"
#include "model/pod/prepare.h"

enum {
    PAIR_MAX = 64,     /* pods of a pair that are looked at */
    ENV_MAX = 4096,    /* bytes of one variable */
    LATER_MAX = 2048,  /* of an item without its spec: names and no more */
    ANSWER_HEAD = 256, /* what an answer has beside its items */
};

static bool is_over(const struct applied_pod *p)
{
    return p->deleting || p->ended != POD_STATE_PENDING;
}

/* Is a pod with this allocation to end where it is?  An xPU pod that has failed
 * stays as it is for as long as its host pod does not end: its place is that of
 * the pair. */
static bool is_to_stop(const struct pod_set *set, const struct snapshot *s,
                       const struct applied_pod *p, const struct allocation *a)
{
    const struct allocation *pair[PAIR_MAX];
    if (p->deleting || p->ended != POD_STATE_FAILED ||
        p->demand.role != ROLE_XPU)
        return is_over(p);
    size_t n = alloc_index_find_pair(s->allocations, a->pair_key, pair,
                                     PAIR_MAX);
    for (size_t i = 0; i < n && i < PAIR_MAX; i++) {
        const struct applied_pod *host =
            pair[i]->demand.role == ROLE_HOST && !pair[i]->held
                ? pod_set_find_uid(set, pair[i]->demand.uid)
                : NULL;
        if (host && !is_over(host))
            return false;
    }
    return true;
}

/* --- who is there ------------------------------------------------------- */

struct item {
    const struct applied_pod *pod;
    const struct allocation *allocation;
};

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->pod->uid,
                  ((const struct item *)b)->pod->uid);
}

/* Who came first stays first. */
static int compare_ages(const void *a, const void *b)
{
    uint64_t x = ((const struct item *)a)->allocation->number;
    uint64_t y = ((const struct item *)b)->allocation->number;
    return (x > y) - (x < y);
}

/* In the caller's array (free it). */
static struct item *list_items(const struct pod_set *set,
                               const struct snapshot *s, const char *node,
                               size_t *ret_n)
{
    size_t n_all, n = 0;
    cleanup_free const struct allocation **all =
        alloc_index_on_node(s->allocations, node, &n_all);
    struct item *items = xcalloc(n_all + 1, sizeof *items);
    for (size_t i = 0; i < n_all; i++) {
        const struct applied_pod *pod =
            all[i]->held ? NULL : pod_set_find_uid(set, all[i]->demand.uid);
        if (pod)
            items[n++] = (struct item){pod, all[i]};
    }
    if (n > PODFEED_PODS_MAX) {
        /* the others wait; what runs must not end for them */
        qsort(items, n, sizeof *items, compare_ages);
        n = PODFEED_PODS_MAX;
    }
    qsort(items, n, sizeof *items, compare_items);
    *ret_n = n;
    return items;
}

uint64_t node_pods_newest(const struct pod_set *set, const struct snapshot *s,
                          const char *node)
{
    size_t n;
    uint64_t newest = 0;
    cleanup_free struct item *items = list_items(set, s, node, &n);
    for (size_t i = 0; i < n; i++)
        if (items[i].allocation->number > newest)
            newest = items[i].allocation->number;
    return newest;
}

static const struct topo *topo_of(const struct snapshot *s, const char *node)
{
    int32_t index = snapshot_find(s, node, strlen(node));
    return index == NODE_NONE ? NULL : snapshot_node(s, (size_t)index)->topo;
}

static uint64_t sum_u64(uint64_t sum, uint64_t value)
{
    return hash_mix(sum ^ value, UINT64_C(0x9e3779b97f4a7c15)) + 1;
}

/* Of what it takes from, as it is now; 0 of what is not there. */
static uint64_t sum_sources(uint64_t sum, const struct pod_set *set,
                            const struct applied_pod *p)
{
    for (size_t i = 0; i < p->n_sources; i++) {
        const struct applied_config *c = pod_set_config(
            set, p->sources[i].secret, p->namespace, p->sources[i].name);
        sum = sum_u64(sum, c ? c->version + 1 : 0);
    }
    return sum;
}

uint64_t node_pods_sum(const struct pod_set *set, const struct snapshot *s,
                       const char *node)
{
    size_t n;
    cleanup_free struct item *items = list_items(set, s, node, &n);
    uint64_t sum = sum_u64(1, n);
    int32_t index = snapshot_find(s, node, strlen(node));
    /* it is to hear at once that it is asked for everything */
    if (index != NODE_NONE)
        sum = sum_u64(sum,
                      snapshot_node(s, (size_t)index)->status == NODE_DOUBTFUL);
    if (n == 0)
        return sum;
    for (size_t i = 0; i < n; i++) {
        const struct applied_pod *p = items[i].pod;
        sum = sum_u64(sum, hash_bytes(p->uid, strlen(p->uid)));
        sum = sum_u64(sum, items[i].allocation->number);
        sum = sum_u64(sum, is_to_stop(set, s, p, items[i].allocation));
        sum = sum_u64(sum, p->deleting ? 1 + (uint64_t)p->grace_s : 0);
        sum = sum_sources(sum, set, p);
    }
    if (index != NODE_NONE) {
        const char *hash = snapshot_node(s, (size_t)index)->hash;
        sum = sum_u64(sum, hash_bytes(hash, strlen(hash)));
    }
    return sum;
}

/* --- variables ---------------------------------------------------------- */

/* HOST of "tcp://HOST:PORT", without the brackets of an IPv6 address. */
static void endpoint_host(const char *endpoint, struct str *out)
{
    const char *host = strstr(endpoint, "://");
    if (!host)
        return;
    host += 3;
    const char *end = *host == '[' ? strchr(host, ']') : strrchr(host, ':');
    if (*host == '[')
        host++;
    str_add_n(out, host, end ? (size_t)(end - host) : strlen(host));
}

/* Some text of each of these devices, with commas between. */
static void each_device(const struct topo *topo, char (*ids)[TOPO_ID_MAX + 1],
                        size_t n,
                        void (*add)(const struct device *d, struct str *out),
                        struct str *out)
{
    for (size_t i = 0; topo && i < n; i++) {
        const struct device *d = topo_find(topo, ids[i]);
        size_t size = out->size;
        if (!d)
            continue;
        if (size)
            str_add_c(out, ',');
        add(d, out);
        if (size && out->size == size + 1) /* it has none */
            out->size = size;
    }
    if (out->data)
        out->data[out->size] = '\0';
}

static void add_pci(const struct device *card, struct str *out)
{
    char text[PCI_ADDR_TEXT_MAX];
    if (!card->has_pci)
        return;
    pci_addr_format(&card->pci, text);
    str_add(out, text);
}

static void add_rdma(const struct device *card, struct str *out)
{
    str_add(out, card->rdma);
}

static void add_numa(const struct device *card, struct str *out)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", card->numa);
    /* two cards of one NUMA node name it once */
    const char *at = out->size ? strstr(str_text(out), text) : NULL;
    size_t n = strlen(text);
    while (at && ((at != str_text(out) && at[-1] != ',') ||
                  (at[n] != ',' && at[n] != '\0')))
        at = strstr(at + 1, text);
    if (card->numa >= 0 && !at)
        str_add(out, text);
}

/* Where the other side of its pair is. */
static void add_peer(const struct pod_set *set, const struct snapshot *s,
                     const struct topo *topo, const struct allocation *a,
                     struct str *out)
{
    const struct allocation *pair[PAIR_MAX];
    const struct device *card = topo && a->n_cards
                                    ? topo_find(topo, a->cards[0])
                                    : NULL;
    if (a->demand.role == ROLE_HOST) {
        if (card)
            endpoint_host(topo_identity(topo, card).endpoint, out);
        return;
    }
    size_t n = a->demand.role == ROLE_XPU
                   ? alloc_index_find_pair(s->allocations, a->pair_key, pair,
                                           PAIR_MAX)
                   : 0;
    for (size_t i = 0; i < n && i < PAIR_MAX; i++) {
        const struct applied_pod *host =
            pair[i]->demand.role == ROLE_HOST && !pair[i]->held
                ? pod_set_find_uid(set, pair[i]->demand.uid)
                : NULL;
        if (host && host->status->address[0]) {
            str_add(out, host->status->address);
            return;
        }
    }
}

static void write_devices(const char *name, const struct topo *topo,
                          char (*ids)[TOPO_ID_MAX + 1], size_t n,
                          void (*add)(const struct device *d, struct str *out),
                          struct str *out)
{
    cleanup_str struct str text = STR_INIT(ENV_MAX);
    each_device(topo, ids, n, add, &text);
    jwrite_text(out, name, str_text(&text));
}

static void write_env(const struct pod_set *set, const struct snapshot *s,
                      const struct topo *topo, const struct item *item,
                      struct str *out)
{
    const struct allocation *a = item->allocation;
    const struct demand *d = &item->pod->demand;
    cleanup_str struct str text = STR_INIT(ENV_MAX);
    jwrite_object(out, "env");
    jwrite_text(out, "BIGA_JOB", d->job);
    str_addf(out, ",\"BIGA_RANK\":\"%d\",\"BIGA_SIZE\":\"%d\"", (int)d->pair,
             (int)d->size);
    write_devices("BIGA_CARD_PCI", topo, a->cards, a->n_cards, add_pci, out);
    write_devices("BIGA_RDMA_DEVICE", topo, a->cards, a->n_cards, add_rdma,
                  out);
    if (d->role == ROLE_HOST && a->numa >= 0)
        str_addf(&text, "%d", (int)a->numa);
    else
        each_device(topo, a->cards, a->n_cards, add_numa, &text);
    jwrite_text(out, "BIGA_NUMA_NODES", str_text(&text));
    if (a->n_nics) {
        write_devices("BIGA_NIC_DEVICE", topo, a->nics, a->n_nics, add_rdma,
                      out);
        write_devices("BIGA_NIC_PCI", topo, a->nics, a->n_nics, add_pci, out);
    }
    if (a->n_gpus)
        write_devices("BIGA_GPU_PCI", topo, a->gpus, a->n_gpus, add_pci, out);
    str_reset(&text);
    add_peer(set, s, topo, a, &text);
    jwrite_text(out, "BIGA_PEER_ADDRESS", str_text(&text));
    jwrite_end_object(out);
}

/* --- the rest ----------------------------------------------------------- */

static void write_names(const struct pod_set *set, const struct snapshot *s,
                        const struct item *item, struct str *out)
{
    const struct applied_pod *p = item->pod;
    const struct allocation *a = item->allocation;
    enum pod_role role = a->demand.role; /* also of one we do not understand */
    bool host = role == ROLE_HOST;
    bool stop = is_to_stop(set, s, p, a);
    jwrite_object(out, NULL);
    jwrite_text(out, "uid", p->uid);
    jwrite_text(out, "namespace", p->namespace);
    jwrite_text(out, "name", p->name);
    jwrite_text(out, "place", host || !a->n_cards ? "host" : a->cards[0]);
    jwrite_text(out, "pairKey", role == ROLE_SERVICE ? "" : a->pair_key);
    jwrite_bool(out, "host", host);
    jwrite_bool(out, "stop", stop);
    jwrite_uint(out, "grace", p->grace_s);
    if (stop && !p->deleting)
        jwrite_bool(out, "keep", true);
}

/* What it runs with; one that is to end needs no files for that. */
static void write_spec(const struct pod_set *set, const struct snapshot *s,
                       const char *node, const struct item *item,
                       struct str *out)
{
    const struct applied_pod *p = item->pod;
    struct prepare prep = {.sriov_vfs = -1};
    struct error err = {0}, ignored; /* it was right when it was applied */
    if (p->demand.role != ROLE_HOST)
        (void)prepare_read(p->json, p->size, &prep, &ignored);
    write_env(set, s, topo_of(s, node), item, out);
    jwrite_int(out, "sriovVfs", prep.sriov_vfs);
    jwrite_text(out, "hook", prep.hook);
    jwrite_key(out, "files");
    if (is_to_stop(set, s, p, item->allocation)) {
        str_add(out, "[]");
    } else if (pod_files_write(set, p, node, out, &err) < 0) {
        str_add(out, "[]");
        jwrite_text(out, "fault", err.text);
    }
    jwrite_key(out, "spec");
    str_add_n(out, p->json, p->size);
}

void node_pods_write_kept(const struct pod_set *set, const char *uids,
                          struct str *out)
{
    size_t n = 0;
    str_add_c(out, '[');
    for (const char *at = uids; *at && n < PODFEED_KEPT_MAX;) {
        char uid[APPLIED_UID_SIZE];
        size_t size = strcspn(at, ",");
        (void)snprintf(uid, sizeof uid, "%.*s", (int)size, at);
        const struct applied_pod *pod = size < sizeof uid
                                            ? pod_set_find_uid(set, uid)
                                            : NULL;
        if (pod && !pod->deleting) {
            jwrite_text(out, NULL, uid);
            n++;
        }
        at += size + (at[size] == ',');
    }
    str_add_c(out, ']');
}

/* Back to what it was. */
static void cut(struct str *out, size_t size)
{
    out->size = size;
    out->data[size] = '\0';
}

_Static_assert((int)ERROR_TEXT_MAX <= (int)PODFEED_FAULT_MAX,
               "a node takes why its pod cannot be had");

void node_pods_write(const struct pod_set *set, const struct snapshot *s,
                     const char *node, const char *from, struct str *out,
                     char ret_next[APPLIED_UID_SIZE])
{
    size_t n, first = 0, start = out->size;
    cleanup_free struct item *items = list_items(set, s, node, &n);
    size_t max = PODFEED_ANSWER_MAX - ANSWER_HEAD - n * LATER_MAX;
    const struct item *next = NULL;
    while (first < n && strcmp(items[first].pod->uid, from) < 0)
        first++;
    str_add_c(out, '[');
    for (size_t i = 0; i < n; i++) {
        const struct item *item = &items[(first + i) % n];
        str_add(out, i ? ",\n" : "");
        write_names(set, s, item, out);
        size_t names = out->size;
        bool later = next || item->pod->fault;
        if (!later)
            write_spec(set, s, node, item, out);
        if (!later && out->size - start > max)
            next = item;
        if (next || later) {
            cut(out, names);
            jwrite_bool(out, "later", true);
        }
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    (void)snprintf(ret_next, APPLIED_UID_SIZE, "%s",
                   next ? next->pod->uid : "");
}
