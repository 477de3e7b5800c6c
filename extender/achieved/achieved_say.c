/* What was achieved, in words. */
#include <string.h>

#include "extender/achieved/achieved_private.h"

/* --- parts -------------------------------------------------------------- */

static void begin(struct str *out)
{
    str_add(out, out->size ? "; " : "");
}

static void add_promised(struct str *out, const char *kind,
                         char (*ids)[TOPO_ID_MAX + 1],
                         char (*pci)[PCI_ADDR_TEXT_MAX], size_t n)
{
    str_addf(out, "%s%s", kind, n == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++)
        str_addf(out, " %s", pci && pci[i][0] ? pci[i] : ids[i]);
}

static void add_promised_cards(struct str *out, const struct allocation *a)
{
    add_promised(out, "card", a->cards, a->card_pci, a->n_cards);
}

static void add_told(struct str *out, const struct achieved_devices *told)
{
    for (size_t i = 0; i < told->n; i++) {
        char text[PCI_ADDR_TEXT_MAX];
        pci_addr_format(&told->at[i], text);
        str_addf(out, "%s%s", i ? " " : "", text);
    }
}

static void add_numas(struct str *out, const struct achieved_numas *told)
{
    str_addf(out, "NUMA node%s", told->n == 1 ? "" : "s");
    for (size_t i = 0; i < told->n; i++)
        str_addf(out, "%s%u", i ? "," : " ", told->at[i]);
}

static void add_relation(struct str *out, enum relation r)
{
    if (r < RELATION_COUNT)
        str_addf(out, " (%s)", relation_name(r));
}

/* Why being so far costs. */
static const char *cost_of(enum relation promised, enum relation r)
{
    static const char *const costs[RELATION_COUNT] = {
        [RELATION_PIX] = "",
        [RELATION_PXB] = "each transfer passes several PCIe switches",
        [RELATION_PHB] = "each transfer passes the CPU's host bridge",
        [RELATION_NODE] = "each transfer crosses between host bridges",
        [RELATION_SOCKET] = "each transfer crosses between NUMA nodes",
        [RELATION_SYS] = "each transfer crosses the socket link",
    };
    if (r >= RELATION_COUNT)
        return "how far that is from its card is not known";
    return r > promised ? costs[r]
                        : "not farther than promised, but not its own: what "
                          "others were promised may be gone";
}

/* --- devices ------------------------------------------------------------ */

static void say_gpus(const struct judged *j, struct str *out)
{
    const struct allocation *a = j->allocation;
    const struct achieved_devices *told = &j->facts->gpus;
    begin(out);
    str_add(out, "promised ");
    add_promised(out, "GPU", a->gpus, a->gpu_pci, a->n_gpus);
    str_addf(out, " (%s to ", relation_name(a->relation));
    add_promised_cards(out, a);
    str_add(out, "), has ");
    if (told->n == 0) {
        str_add(out, "none");
    } else {
        add_told(out, told);
        add_relation(out, j->relation);
        str_addf(out, ": %s", cost_of(a->relation, j->relation));
    }
    str_add(out, "; claim GPUs to pin them");
}

static void say_nics(const struct judged *j, struct str *out)
{
    const struct allocation *a = j->allocation;
    const struct achieved_devices *told = &j->facts->nics;
    begin(out);
    str_add(out, "promised ");
    add_promised(out, "NIC", a->nics, a->nic_pci, a->n_nics);
    str_addf(out, " (%s), has ", relation_name(a->nic_relation));
    if (told->n == 0) {
        str_add(out, "none");
    } else {
        add_told(out, told);
        add_relation(out, j->nic_relation);
        if (j->nic_relation < RELATION_COUNT)
            str_addf(out, ": %s", cost_of(a->nic_relation, j->nic_relation));
    }
    str_add(out, "; claim NICs to pin them");
}

static void say_cards(const struct judged *j, struct str *out)
{
    const struct allocation *a = j->allocation;
    bool host = a->demand.role == ROLE_HOST;
    begin(out);
    str_add(out, "promised ");
    add_promised_cards(out, a);
    if (j->facts->cards.n == 0) {
        str_add(out, ", is on none");
        return;
    }
    str_add(out, host ? ", has functions of " : ", is on ");
    add_told(out, &j->facts->cards);
    add_relation(out, j->relation);
    str_addf(out, ": %s", cost_of(a->relation, j->relation));
}

static void say_elsewhere(const struct judged *j, struct str *out)
{
    const struct allocation *a = j->allocation;
    begin(out);
    str_add(out, "promised ");
    add_promised_cards(out, a);
    str_addf(out, " (%s), the xPU pods of its pair are on",
             relation_name(a->relation));
    for (unsigned i = 0; i < j->pair_cards.n; i++)
        str_addf(out, " %s", topo_device(j->topo, j->pair_cards.at[i])->id);
    add_relation(out, j->relation);
    str_addf(out, ": %s", cost_of(a->relation, j->relation));
}

/* --- NUMA nodes --------------------------------------------------------- */

static void say_cpus(const struct judged *j, struct str *out)
{
    const struct allocation *a = j->allocation;
    const struct achieved_facts *f = j->facts;
    begin(out);
    str_addf(out, "promised CPUs of NUMA node %d", (int)a->numa);
    if (a->n_gpus == 0)
        str_addf(out, " (%s)", relation_name(a->relation));
    str_addf(out, ", has %s%sthose of ", f->cpus ? f->cpus : "",
             f->cpus ? ", " : "");
    add_numas(out, &f->numa);
    if (a->n_gpus == 0)
        add_relation(out, j->relation);
    if (a->n_gpus == 0 && j->relation < RELATION_COUNT)
        str_addf(out, ": %s", cost_of(a->relation, j->relation));
    else
        str_add(out, ": what they compute is far from its card");
    str_add(out, "; the kubelet's CPU manager chose them");
}

static void say_memory(const struct judged *j, struct str *out)
{
    begin(out);
    str_addf(out, "promised NUMA node %d, its memory is of ",
             (int)j->allocation->numa);
    add_numas(out, &j->facts->memory_numa);
    str_add(out, ": each access crosses between NUMA nodes");
}

/* --- what is not known -------------------------------------------------- */

static void say_unknown(enum fit fit, const char *what, struct str *out)
{
    if (fit <= FIT_NONE)
        return;
    begin(out);
    if (fit == FIT_LOOSE)
        str_add(out, "its CPUs are not pinned to one NUMA node: where it runs "
                     "is the kernel's choice");
    else if (fit == FIT_ODD)
        str_addf(out, "it has %s that its node has not published", what);
    else
        str_addf(out, "its node does not tell which %s it has", what);
}

static bool is_lost(enum fit fit)
{
    return fit == FIT_OTHER || fit == FIT_NONE;
}

void achieved_say(const struct judged *j, struct str *out)
{
    if (!j->facts) {
        str_addf(out, "node %s has not told what it has", j->allocation->node);
        return;
    }
    if (is_lost(j->gpus))
        say_gpus(j, out);
    if (is_lost(j->cards))
        say_cards(j, out);
    else if (j->elsewhere)
        say_elsewhere(j, out);
    if (is_lost(j->nics))
        say_nics(j, out);
    if (is_lost(j->cpus))
        say_cpus(j, out);
    if (is_lost(j->memory))
        say_memory(j, out);
    say_unknown(j->gpus, "GPUs", out);
    say_unknown(j->cards, "cards", out);
    say_unknown(j->nics, "NICs", out);
    say_unknown(j->cpus, "CPUs", out);
}
