#include "extender/judge/advice.h"

#include <stdlib.h>
#include <string.h>

#include "extender/judge/advice_private.h"
#include "lib/base/jwrite.h"
#include "lib/base/text.h"

enum { MILLI = 1000 };

const char *change_kind_word(enum change_kind kind)
{
    static const char *const words[CHANGE_KINDS] = {
        [CHANGE_LEASE] = "lease",
        [CHANGE_FREE] = "free",
        [CHANGE_FREE_CPUS] = "free-cpus",
        [CHANGE_WITHIN] = "within",
        [CHANGE_ALIGN] = "align",
        [CHANGE_EXCLUSIVE] = "exclusive",
        [CHANGE_CARD_CORES] = "card-cores",
        [CHANGE_CARD_MEMORY] = "card-memory",
        [CHANGE_CPUS] = "cpus",
        [CHANGE_MEMORY] = "memory",
        [CHANGE_NICS] = "nics",
        [CHANGE_GPUS] = "gpus",
        [CHANGE_CARDS] = "cards",
        [CHANGE_PAIRS] = "pairs",
        [CHANGE_QUOTA] = "quota",
        [CHANGE_RELEASE] = "release",
        [CHANGE_JOB_END] = "job-end",
    };
    return (unsigned)kind < CHANGE_KINDS ? words[kind] : "?";
}

void advice_add(struct advice *advice, const struct change *change)
{
    advice->changes[advice->n_changes++] = *change;
}

/* --- in words ----------------------------------------------------------- */

static void add_count(struct str *out, uint64_t n, const char *noun)
{
    str_addf(out, "%llu %s%s", (unsigned long long)n, noun, n == 1 ? "" : "s");
}

/* "12" or "1.5". */
static void add_cpus(struct str *out, uint64_t milli)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%llu.%03u",
                     (unsigned long long)(milli / MILLI),
                     (unsigned)(milli % MILLI));
    while (n > 0 && text[n - 1] == '0')
        text[--n] = '\0';
    if (n > 0 && text[n - 1] == '.')
        text[--n] = '\0';
    str_add(out, text);
}

static const char *node_name(const struct schedule *s, int32_t node)
{
    return node >= 0 ? snapshot_node(s->snapshot, (size_t)node)->name : "";
}

static const struct device *node_card(const struct schedule *s, int32_t node,
                                      unsigned card)
{
    const struct topo *topo = snapshot_node(s->snapshot, (size_t)node)->topo;
    size_t first = 0;
    (void)topo_count(topo, DEVICE_CARD, &first);
    return topo_device(topo, first + card);
}

/* A card by its PCI address, or its id when it has none. */
static void add_card(struct str *out, const struct device *card)
{
    char pci[PCI_ADDR_TEXT_MAX];
    if (card->has_pci)
        pci_addr_format(&card->pci, pci);
    str_add(out, card->has_pci ? pci : card->id);
}

static void text_free(const struct schedule *s, const struct change *change,
                      struct str *out)
{
    bool first = true;
    str_add(out, "free ");
    for (unsigned cards = change->cards; cards; cards &= cards - 1) {
        unsigned c = (unsigned)__builtin_ctz(cards);
        if (!first)
            str_add(out, (cards & (cards - 1)) ? ", " : " and ");
        first = false;
        if (change->cores[c])
            add_count(out, change->cores[c], "core");
        if (change->cores[c] && change->memory_mib[c])
            str_add(out, " and ");
        if (change->memory_mib[c])
            str_addf(out, "%u MiB", change->memory_mib[c]);
        str_add(out, " on card ");
        add_card(out, node_card(s, change->node, c));
    }
    str_addf(out, " of %s", node_name(s, change->node));
}

static int pod_order(const void *a, const void *b)
{
    const struct demand *x = &(*(const struct allocation *const *)a)->demand;
    const struct demand *y = &(*(const struct allocation *const *)b)->demand;
    int order = text_order(x->namespace, y->namespace);
    return order ? order : text_order(x->name, y->name);
}

static void text_release(const struct schedule *s, const struct change *change,
                         struct str *out)
{
    const struct allocation *gone[ADVICE_GONE_MAX];
    memcpy(gone, change->gone, change->n_gone * sizeof *gone);
    qsort(gone, change->n_gone, sizeof *gone, pod_order);
    str_add(out, change->n_gone == 1 ? "delete pod " : "delete pods ");
    for (size_t i = 0; i < change->n_gone; i++) {
        const struct demand *d = &gone[i]->demand;
        if (i)
            str_add(out, i + 1 == change->n_gone ? " and " : ", ");
        str_addf(out, "%s/%s", d->namespace, d->name);
    }
    str_addf(out, " on %s", node_name(s, change->node));
}

static void text_quota(const struct schedule *s, const struct change *change,
                       struct str *out)
{
    const struct namespace_use *more = &change->quota;
    bool first = true;
    str_addf(out, "raise the quota of namespace %s by ", s->demand->namespace);
    if (more->cards) {
        add_count(out, more->cards, "card");
        first = false;
    }
    if (more->cores) {
        str_add(out, first ? "" : " and ");
        add_count(out, more->cores, "core");
        first = false;
    }
    if (more->memory_mib)
        str_addf(out, "%s%llu MiB", first ? "" : " and ",
                 (unsigned long long)more->memory_mib);
}

/* What is asked for less of, on the pod or on the pair. */
static void text_less(const struct change *change, struct str *out)
{
    unsigned long long value = change->value;
    str_add(out, "ask for ");
    switch (change->kind) {
    case CHANGE_CARD_CORES:
        add_count(out, value, "core");
        str_add(out, " of each card (biga.dev/card-cores)");
        break;
    case CHANGE_CARD_MEMORY:
        str_addf(out, "%llu MiB of each card (biga.dev/card-memory-mib)",
                 value);
        break;
    case CHANGE_CPUS:
        add_cpus(out, value);
        str_add(out, value == MILLI ? " CPU" : " CPUs");
        break;
    case CHANGE_MEMORY:
        str_addf(out, "%llu MiB of memory", value);
        break;
    case CHANGE_NICS:
        if (value == 0)
            str_add(out, "no compute NIC");
        else
            add_count(out, value, "compute NIC");
        str_add(out, " (biga.dev/nics)");
        break;
    case CHANGE_GPUS:
        if (value == 0)
            str_add(out, "no GPU");
        else
            add_count(out, value, "GPU");
        break;
    default:
        add_count(out, value, "card");
        break;
    }
}

/* "biga.dev/align=node": annotations are in lower case. */
static void text_align(const struct change *change, struct str *out)
{
    str_add(out, "allow biga.dev/align=");
    for (const char *p = relation_name((enum relation)change->value); *p; p++)
        str_add_c(out, *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p);
}

void change_text(const struct schedule *s, const struct change *change,
                 struct str *out)
{
    switch (change->kind) {
    case CHANGE_LEASE:
        if (change->job[0])
            str_addf(out, "wait for the lease of job %s to end", change->job);
        else
            str_add(out, "wait for the leases of the other jobs to end");
        break;
    case CHANGE_FREE:
        text_free(s, change, out);
        break;
    case CHANGE_FREE_CPUS:
        str_add(out, "free ");
        add_cpus(out, change->value);
        str_addf(out, "%s on NUMA node %d of %s",
                 change->value == MILLI ? " CPU" : " CPUs", change->numa,
                 node_name(s, change->node));
        break;
    case CHANGE_WITHIN:
        if (change->value == FABRIC_APART)
            str_add(out, "allow any place: no biga.dev/within");
        else
            str_addf(out, "allow biga.dev/within=%s",
                     fabric_tier_name((unsigned)change->value));
        break;
    case CHANGE_ALIGN:
        text_align(change, out);
        break;
    case CHANGE_EXCLUSIVE:
        str_add(out, "share its cards: no biga.dev/exclusive");
        break;
    case CHANGE_PAIRS:
        str_add(out, "a job of ");
        add_count(out, change->value, "pair");
        str_add(out, " would fit now");
        break;
    case CHANGE_QUOTA:
        text_quota(s, change, out);
        break;
    case CHANGE_RELEASE:
        text_release(s, change, out);
        break;
    case CHANGE_JOB_END:
        str_addf(out, "wait for job %s to end, or delete it", change->job);
        break;
    default:
        text_less(change, out);
        break;
    }
}

/* --- as JSON ------------------------------------------------------------ */

static void write_cards(const struct schedule *s, const struct change *change,
                        struct str *out)
{
    jwrite_array(out, "cards");
    for (unsigned cards = change->cards; cards; cards &= cards - 1) {
        unsigned c = (unsigned)__builtin_ctz(cards);
        const struct device *card = node_card(s, change->node, c);
        char pci[PCI_ADDR_TEXT_MAX] = "";
        if (card->has_pci)
            pci_addr_format(&card->pci, pci);
        jwrite_object(out, NULL);
        jwrite_text(out, "id", card->id);
        jwrite_text(out, "pci", pci);
        jwrite_uint(out, "cores", change->cores[c]);
        jwrite_uint(out, "memoryMiB", change->memory_mib[c]);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

static void write_pods(const struct change *change, struct str *out)
{
    jwrite_array(out, "pods");
    for (size_t i = 0; i < change->n_gone; i++) {
        const struct demand *d = &change->gone[i]->demand;
        jwrite_object(out, NULL);
        jwrite_text(out, "namespace", d->namespace);
        jwrite_text(out, "name", d->name);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

/* What the change sets its number or word to. */
static void write_value(const struct change *change, struct str *out)
{
    uint64_t value = change->value;
    switch (change->kind) {
    case CHANGE_WITHIN:
        jwrite_text(out, "value",
                    value == FABRIC_APART ? ""
                                          : fabric_tier_name((unsigned)value));
        break;
    case CHANGE_ALIGN:
        jwrite_text(out, "value", relation_name((enum relation)value));
        break;
    case CHANGE_EXCLUSIVE:
        jwrite_bool(out, "value", false);
        break;
    case CHANGE_CPUS:
    case CHANGE_FREE_CPUS:
        jwrite_uint(out, "milliCpus", value);
        break;
    case CHANGE_CARD_CORES:
    case CHANGE_CARD_MEMORY:
    case CHANGE_MEMORY:
    case CHANGE_NICS:
    case CHANGE_GPUS:
    case CHANGE_CARDS:
    case CHANGE_PAIRS:
        jwrite_uint(out, "value", value);
        break;
    default:
        break;
    }
}

static void write_change(const struct schedule *s, const struct change *change,
                         struct str *out)
{
    cleanup_str struct str text = STR_INIT(64 << 10);
    change_text(s, change, &text);
    jwrite_object(out, NULL);
    jwrite_text(out, "kind", change_kind_word(change->kind));
    jwrite_text(out, "text", str_text(&text));
    jwrite_bool(out, "verified", true);
    if (change->node != NODE_NONE)
        jwrite_text(out, "node", node_name(s, change->node));
    if (change->kind == CHANGE_FREE)
        write_cards(s, change, out);
    if (change->kind == CHANGE_FREE_CPUS)
        jwrite_int(out, "numa", change->numa);
    if (change->kind == CHANGE_RELEASE)
        write_pods(change, out);
    jwrite_known_text(out, "job", change->job);
    if (change->kind == CHANGE_QUOTA) {
        jwrite_uint(out, "cards", change->quota.cards);
        jwrite_uint(out, "cores", change->quota.cores);
        jwrite_uint(out, "memoryMiB", change->quota.memory_mib);
    }
    write_value(change, out);
    jwrite_end_object(out);
}

void advice_write(const struct schedule *s, const struct advice *advice,
                  struct str *out)
{
    cleanup_str struct str text = STR_INIT(4096);
    jwrite_array(out, "nearest");
    for (size_t i = 0; i < advice->n_nearest; i++) {
        const struct near_node *near = &advice->nearest[i];
        str_reset(&text);
        if (near->reason == REASON_JOB_ROOM ||
            near->reason == REASON_FABRIC_TIER)
            str_add(&text, "this pair fits, not all pairs of its job do");
        else
            schedule_explain(s, near->node, near->reason, &text);
        jwrite_object(out, NULL);
        jwrite_text(out, "node", node_name(s, near->node));
        jwrite_text(out, "reason", reason_word(near->reason));
        jwrite_text(out, "detail", str_text(&text));
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_array(out, "changes");
    for (size_t i = 0; i < advice->n_changes; i++)
        write_change(s, &advice->changes[i], out);
    jwrite_end_array(out);
}
