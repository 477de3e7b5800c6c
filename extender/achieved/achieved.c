#include "extender/achieved/achieved.h"

#include <string.h>

#include "extender/achieved/achieved_private.h"

enum { MEMBERS_MAX = 64 };

const char *achieved_state_name(enum achieved_state state)
{
    static const char *const names[ACHIEVED_STATES] = {"unknown", "kept",
                                                       "lost"};
    return (unsigned)state < ACHIEVED_STATES ? names[state] : "?";
}

const char *achieved_word(const struct achieved *x)
{
    return x->relation < RELATION_COUNT ? relation_name(x->relation)
                                        : "unknown";
}

bool achieved_counts(const struct allocation *a)
{
    return !a->held &&
           (a->demand.role == ROLE_HOST || a->demand.role == ROLE_XPU) &&
           (a->n_gpus > 0 || a->numa >= 0);
}

/* --- devices ------------------------------------------------------------ */

static bool is_at(const struct device *d, const struct pci_addr *at)
{
    if (!d->has_pci)
        return false;
    for (size_t i = 0; i < d->n_functions; i++)
        if (pci_addr_compare(&d->functions[i], at) == 0)
            return true;
    return pci_addr_compare(&d->pci, at) == 0;
}

static void add_device(struct devices *to, size_t index)
{
    for (unsigned i = 0; i < to->n; i++)
        if (to->at[i] == index)
            return;
    if (to->n < ACHIEVED_DEVICES_MAX)
        to->at[to->n++] = index;
}

/* Devices of what was told; not known when one is not published. */
static struct devices told_devices(const struct topo *topo,
                                   enum device_kind kind,
                                   const struct achieved_devices *told)
{
    struct devices all = {.known = topo && told->told};
    size_t first, n = topo ? topo_count(topo, kind, &first) : 0;
    for (size_t i = 0; i < told->n; i++) {
        size_t k = 0;
        while (k < n && !is_at(topo_device(topo, first + k), &told->at[i]))
            k++;
        if (k < n)
            add_device(&all, first + k);
        else
            all.known = false;
    }
    return all;
}

static bool has_id(const struct topo *topo, const struct devices *all,
                   const char *id)
{
    for (unsigned i = 0; i < all->n; i++)
        if (strcmp(topo_device(topo, all->at[i])->id, id) == 0)
            return true;
    return false;
}

/* What was promised, of one kind. */
struct promise {
    enum device_kind kind;
    char (*ids)[TOPO_ID_MAX + 1];
    size_t n;
};

static bool is_promised(const struct promise *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->ids[i], id) == 0)
            return true;
    return false;
}

static enum fit fit_devices(const struct topo *topo, const struct promise *p,
                            const struct achieved_devices *told)
{
    struct devices all = told_devices(topo, p->kind, told);
    size_t n_kept = 0;
    if (p->n == 0)
        return FIT_FREE;
    if (!told->told)
        return FIT_UNTOLD;
    if (told->n == 0)
        return FIT_NONE;
    if (!topo)
        return FIT_ODD;
    for (size_t i = 0; i < p->n; i++)
        n_kept += has_id(topo, &all, p->ids[i]);
    return n_kept == p->n ? FIT_SAME : all.known ? FIT_OTHER : FIT_ODD;
}

/* Those that count: of more than was promised only that. */
static struct devices used_devices(const struct topo *topo,
                                   const struct promise *p,
                                   const struct achieved_devices *told,
                                   enum fit fit)
{
    struct devices all = told_devices(topo, p->kind, told), used = {0};
    if (fit != FIT_SAME)
        return all;
    for (unsigned i = 0; i < all.n; i++)
        if (is_promised(p, topo_device(topo, all.at[i])->id))
            add_device(&used, all.at[i]);
    used.known = true;
    return used;
}

/* Not known when its node does not publish one any more. */
static struct devices promised_devices(const struct topo *topo,
                                       const struct promise *p)
{
    struct devices all = {.known = topo != NULL};
    size_t first, n = topo ? topo_count(topo, p->kind, &first) : 0;
    for (size_t i = 0; i < n; i++)
        if (is_promised(p, topo_device(topo, first + i)->id))
            add_device(&all, first + i);
    all.known = all.known && all.n == p->n;
    return all;
}

static struct promise promised_cards(const struct allocation *a)
{
    return (struct promise){DEVICE_CARD, a->cards, a->n_cards};
}

static struct promise promised_gpus(const struct allocation *a)
{
    return (struct promise){DEVICE_GPU, a->gpus, a->n_gpus};
}

static struct promise promised_nics(const struct allocation *a)
{
    return (struct promise){DEVICE_NIC, a->nics, a->n_nics};
}

/* --- NUMA nodes --------------------------------------------------------- */

static bool has_numa(const struct achieved_numas *told, int numa)
{
    for (size_t i = 0; i < told->n; i++)
        if (told->at[i] == numa)
            return true;
    return false;
}

/* CPUs that are as many as it asked for are its own, and all used; of more the
 * kernel chooses. */
static enum fit fit_cpus(const struct allocation *a,
                         const struct achieved_facts *f)
{
    uint64_t milli = UINT64_C(1000) * f->n_cpus;
    bool own = f->n_cpus && milli <= a->demand.cpu_milli;
    if (a->numa < 0)
        return FIT_FREE;
    if (!f->numa.told || f->numa.n == 0)
        return FIT_UNTOLD;
    if (!has_numa(&f->numa, a->numa))
        return FIT_OTHER;
    return f->numa.n == 1 ? FIT_SAME : own ? FIT_OTHER : FIT_LOOSE;
}

static enum fit fit_memory(const struct allocation *a,
                           const struct achieved_facts *f)
{
    if (a->numa < 0 || !f->memory_numa.told || f->memory_numa.n == 0)
        return FIT_FREE;
    return has_numa(&f->memory_numa, a->numa) ? FIT_SAME : FIT_OTHER;
}

static struct devices numa_devices(const struct topo *topo,
                                   const struct achieved_numas *told)
{
    struct devices all = {.known = topo && told->n > 0};
    size_t first, n = topo ? topo_count(topo, DEVICE_NUMA, &first) : 0;
    for (size_t i = 0; i < n; i++)
        if (has_numa(told, topo_device(topo, first + i)->numa))
            add_device(&all, first + i);
    all.known = all.known && all.n == told->n;
    return all;
}

/* --- relations ---------------------------------------------------------- */

/* Of each of `from` to the nearest of `to`, or to the farthest. */
static enum relation worst(const struct topo *topo, const struct devices *from,
                           const struct devices *to, bool nearest)
{
    enum relation worst = RELATION_PIX;
    for (unsigned i = 0; i < from->n; i++) {
        enum relation own = nearest ? RELATION_SYS : RELATION_PIX;
        for (unsigned k = 0; k < to->n; k++) {
            enum relation r = topo_relation(topo, from->at[i], to->at[k]);
            own = (r < own) == nearest ? r : own;
        }
        worst = own > worst ? own : worst;
    }
    return worst;
}

/* As line 1 and line 5 of the decision have it. */
static enum relation both_ways(const struct topo *topo, const struct devices *x,
                               const struct devices *y)
{
    if (!x->known || !y->known || !x->n || !y->n)
        return RELATION_COUNT;
    enum relation r = worst(topo, x, y, true), back = worst(topo, y, x, true);
    return r > back ? r : back;
}

/* --- the pair ----------------------------------------------------------- */

static size_t pair_of(const struct judged *j,
                      const struct allocation *ret[MEMBERS_MAX])
{
    size_t n = alloc_index_find_pair(j->snapshot->allocations,
                                     j->allocation->pair_key, ret, MEMBERS_MAX);
    return n < MEMBERS_MAX ? n : MEMBERS_MAX;
}

static bool has_other(const struct topo *topo, const struct devices *all,
                      const struct promise *p)
{
    for (unsigned i = 0; i < all->n; i++)
        if (!is_promised(p, topo_device(topo, all->at[i])->id))
            return true;
    return false;
}

/* The cards of a host pod's pair.  An xPU pod of which its node tells no card is
 * on that of its allocation: Biga runs it there or nowhere, and asks nobody who
 * could choose.  Unless some are seen elsewhere they are those promised. */
static struct devices cards_of_pair(const struct judged *j)
{
    const struct allocation *pair[MEMBERS_MAX];
    const struct promise p = promised_cards(j->allocation);
    struct devices all = {.known = j->topo != NULL};
    for (size_t i = 0, n = pair_of(j, pair); i < n && all.known; i++) {
        const struct allocation *m = pair[i];
        if (m->held || m->demand.role != ROLE_XPU ||
            strcmp(m->node, j->allocation->node) != 0)
            continue;
        const struct promise its = promised_cards(m);
        const struct achieved_facts *f = achieved_report_find(j->report,
                                                              &m->demand);
        struct devices own = f && f->cards.told
                                 ? told_devices(j->topo, DEVICE_CARD, &f->cards)
                                 : promised_devices(j->topo, &its);
        all.known = own.known;
        for (unsigned k = 0; k < own.n; k++)
            add_device(&all, own.at[k]);
    }
    return all.known && !has_other(j->topo, &all, &p)
               ? promised_devices(j->topo, &p)
               : all;
}

/* --- host pods ---------------------------------------------------------- */

static void relate_host(struct judged *j)
{
    const struct allocation *a = j->allocation;
    const struct promise cards = promised_cards(a), gpus = promised_gpus(a),
                         nics = promised_nics(a);
    struct devices own = {0};
    if (j->facts->cards.n)
        j->pair_cards = used_devices(j->topo, &cards, &j->facts->cards,
                                     j->cards);
    else
        j->pair_cards = cards_of_pair(j);
    if (a->n_gpus) {
        own = used_devices(j->topo, &gpus, &j->facts->gpus, j->gpus);
        j->relation = both_ways(j->topo, &own, &j->pair_cards);
    } else if (j->cpus != FIT_LOOSE) {
        struct devices numas = numa_devices(j->topo, &j->facts->numa);
        if (numas.known && j->pair_cards.known)
            j->relation = worst(j->topo, &j->pair_cards, &numas, false);
        own = j->pair_cards;
    }
    struct devices to = used_devices(j->topo, &nics, &j->facts->nics, j->nics);
    j->nic_relation = both_ways(j->topo, a->n_gpus ? &own : &j->pair_cards,
                                &to);
    j->elsewhere = j->relation < RELATION_COUNT && j->relation > a->relation &&
                   j->cards != FIT_OTHER &&
                   has_other(j->topo, &j->pair_cards, &cards);
}

static void judge_host(struct judged *j)
{
    const struct allocation *a = j->allocation;
    const struct achieved_facts *f = j->facts;
    const struct promise cards = promised_cards(a), gpus = promised_gpus(a),
                         nics = promised_nics(a);
    j->gpus = fit_devices(j->topo, &gpus, &f->gpus);
    j->nics = fit_devices(j->topo, &nics, &f->nics);
    /* none of its own is none of its business: its xPU pods are there */
    j->cards = f->cards.n ? fit_devices(j->topo, &cards, &f->cards) : FIT_FREE;
    j->cpus = fit_cpus(a, f);
    if (a->n_gpus && (j->cpus == FIT_LOOSE || j->cpus == FIT_UNTOLD))
        j->cpus = FIT_FREE; /* its GPUs are what the promise is about */
    j->memory = fit_memory(a, f);
    relate_host(j);
}

/* --- pods on cards ------------------------------------------------------ */

static void judge_on_card(struct judged *j)
{
    const struct allocation *pair[MEMBERS_MAX];
    const struct promise cards = promised_cards(j->allocation);
    j->cards = fit_devices(j->topo, &cards, &j->facts->cards);
    j->pair_cards = used_devices(j->topo, &cards, &j->facts->cards, j->cards);
    if (j->allocation->demand.role != ROLE_XPU || !j->pair_cards.known ||
        !j->pair_cards.n)
        return;
    for (size_t i = 0, n = pair_of(j, pair); i < n; i++) {
        const struct allocation *host = pair[i];
        const struct achieved_facts *f =
            host->held || host->demand.role != ROLE_HOST
                ? NULL
                : achieved_report_find(j->report, &host->demand);
        if (!f || strcmp(host->node, j->allocation->node) != 0)
            continue;
        const struct promise gpus = promised_gpus(host);
        struct devices to =
            host->n_gpus ? used_devices(j->topo, &gpus, &f->gpus,
                                        fit_devices(j->topo, &gpus, &f->gpus))
                         : numa_devices(j->topo, &f->numa);
        if (to.known && to.n &&
            (host->n_gpus || fit_cpus(host, f) != FIT_LOOSE))
            j->relation = worst(j->topo, &j->pair_cards, &to, host->n_gpus > 0);
    }
}

/* --- both --------------------------------------------------------------- */

static enum achieved_state conclude(const struct judged *j)
{
    const enum fit fits[] = {j->cards, j->gpus, j->nics, j->cpus, j->memory};
    enum achieved_state state = ACHIEVED_KEPT;
    if (j->elsewhere)
        return ACHIEVED_LOST;
    for (size_t i = 0; i < ARRAY_LEN(fits); i++) {
        if (fits[i] == FIT_OTHER || fits[i] == FIT_NONE)
            return ACHIEVED_LOST;
        if (fits[i] > FIT_NONE)
            state = ACHIEVED_UNKNOWN;
    }
    return j->facts ? state : ACHIEVED_UNKNOWN;
}

void achieved_judge(const struct snapshot *s, const struct allocation *a,
                    const struct achieved_report *report,
                    struct achieved *ret_achieved, struct str *why)
{
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    struct judged j = {
        .snapshot = s,
        .topo = index == NODE_NONE ? NULL
                                   : snapshot_node(s, (size_t)index)->topo,
        .allocation = a,
        .report = report,
        .facts = achieved_report_find(report, &a->demand),
        .relation = RELATION_COUNT,
        .nic_relation = RELATION_COUNT,
    };
    if (j.facts && a->demand.role == ROLE_HOST)
        judge_host(&j);
    else if (j.facts)
        judge_on_card(&j);
    *ret_achieved = (struct achieved){
        .state = conclude(&j), .relation = j.relation, .facts = j.facts};
    if (why)
        achieved_say(&j, why);
}
