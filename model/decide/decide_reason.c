/* reason - why a demand does not fit a node, and what would help. */
#include "model/decide/decide.h"

#include <string.h>

#include "lib/base/mem.h"
#include "model/decide/bits.h"
#include "model/decide/decide_private.h"

const char *reason_word(enum reason reason)
{
    static const char *const words[REASON_COUNT] = {
        [REASON_NONE] = "fits",
        [REASON_UNKNOWN_NODE] = "unknown-node",
        [REASON_STALE] = "stale",
        [REASON_INCOMPLETE] = "incomplete",
        [REASON_LOST] = "lost",
        [REASON_DOUBTFUL] = "doubtful",
        [REASON_NO_CARD] = "no-card",
        [REASON_TOO_FEW_CARDS] = "too-few-cards",
        [REASON_UNHEALTHY] = "unhealthy",
        [REASON_DRAINED] = "drained",
        [REASON_ARCH] = "arch",
        [REASON_NO_DEVICES] = "no-devices",
        [REASON_NO_RIGHTS] = "no-rights",
        [REASON_BY_CLAIMS] = "by-claims",
        [REASON_BY_ALLOCATIONS] = "by-allocations",
        [REASON_RUNS_NO_PODS] = "runs-no-pods",
        [REASON_NO_RUNTIME] = "no-runtime",
        [REASON_CARD_TOO_SMALL] = "card-too-small",
        [REASON_CARDS_RESERVED] = "cards-reserved",
        [REASON_TOO_FEW_GPUS] = "too-few-gpus",
        [REASON_TOO_FEW_NICS] = "too-few-nics",
        [REASON_ALIGNMENT_NEVER] = "alignment-never",
        [REASON_PAIR_ELSEWHERE] = "pair-elsewhere",
        [REASON_PAIR_CARDS] = "pair-cards",
        [REASON_CARDS_BUSY] = "cards-busy",
        [REASON_CARD_CORES] = "card-cores",
        [REASON_CARD_MEMORY] = "card-memory",
        [REASON_GPUS_BUSY] = "gpus-busy",
        [REASON_NICS_BUSY] = "nics-busy",
        [REASON_NUMA_CPUS] = "numa-cpus",
        [REASON_ALIGNMENT] = "alignment",
        [REASON_QUOTA] = "quota",
        [REASON_NOT_ALLOWED] = "not-allowed",
        [REASON_JOB_ELSEWHERE] = "job-elsewhere",
        [REASON_HOST_ROOM] = "host-room",
        [REASON_LEASED] = "leased",
        [REASON_FABRIC_TIER] = "fabric-tier",
        [REASON_JOB_ROOM] = "job-room",
    };
    return (unsigned)reason < REASON_COUNT ? words[reason] : "?";
}

bool reason_resolvable(enum reason reason)
{
    return reason == REASON_NONE ||
           (reason >= REASON_CARDS_BUSY && reason < REASON_COUNT);
}

/* --- finding it --------------------------------------------------------- */

/* Those that the demand may be about, in whatever state. */
static unsigned cards_meant(const struct node_state *state,
                            const struct demand *demand)
{
    return decide_cards_of_arch(state->shape, demand) &
           decide_cards_with_devices(state->shape, demand) &
           decide_cards_letting(state->shape, demand) &
           decide_cards_by(state, demand) & decide_cards_running(state, demand);
}

/* The same node with nothing on it. */
static struct node_state idle_state(const struct node_state *state)
{
    struct node_state idle = *state;
    memcpy(idle.free_cores, idle.cores, sizeof idle.cores);
    memcpy(idle.free_memory_mib, idle.memory_mib, sizeof idle.memory_mib);
    idle.closed = idle.occupied = idle.gpus_used = idle.nics_used = 0;
    idle.shared = idle.reserved;
    decide_idle_cpus(idle.shape, idle.free_cpu_milli);
    return idle;
}

/* Not even the idle node would do. */
static enum reason reason_never(const struct node_state *state,
                                const struct demand *demand)
{
    unsigned asked = demand->cards;
    unsigned cards = decide_cards_of_arch(state->shape, demand);
    if (state->shape->n_cards == 0)
        return REASON_NO_CARD;
    if (state->shape->n_cards < asked)
        return REASON_TOO_FEW_CARDS;
    if (count_bits(cards) < asked)
        return REASON_ARCH;
    cards &= decide_cards_with_devices(state->shape, demand);
    if (count_bits(cards) < asked)
        return REASON_NO_DEVICES;
    cards &= decide_cards_letting(state->shape, demand);
    if (count_bits(cards) < asked)
        return REASON_NO_RIGHTS;
    cards &= decide_cards_by(state, demand);
    if (count_bits(cards) < asked)
        return demand->by_claim ? REASON_BY_ALLOCATIONS : REASON_BY_CLAIMS;
    if (demand->runs && state->passive)
        return REASON_RUNS_NO_PODS;
    cards &= decide_cards_running(state, demand);
    if (count_bits(cards) < asked)
        return REASON_NO_RUNTIME;
    if (count_bits(cards & (state->usable | state->drained)) < asked)
        return REASON_UNHEALTHY;
    cards &= state->usable;
    if (count_bits(cards) < asked)
        return REASON_DRAINED;
    cards &= decide_cards_with(state->cores, state->memory_mib,
                               decide_need(demand));
    if (count_bits(cards) < asked)
        return REASON_CARD_TOO_SMALL;
    if (demand->exclusive)
        cards &= ~(unsigned)state->reserved;
    if (count_bits(cards) < asked)
        return REASON_CARDS_RESERVED;
    if (state->shape->n_gpus < demand->gpus)
        return REASON_TOO_FEW_GPUS;
    if (state->shape->n_nics < demand->nics)
        return REASON_TOO_FEW_NICS;
    return REASON_ALIGNMENT_NEVER;
}

/* Are the cards enough, and the ones that have to be there among them? */
static bool are_enough(const struct demand *demand, unsigned cards,
                       unsigned must)
{
    return count_bits(cards) >= demand->cards && (must & ~cards) == 0;
}

/* With `cpu_milli` instead of the CPUs that it asks, would it fit? */
static bool fits_with_cpus(const struct node_state *state,
                           const struct demand *demand, uint32_t cpu_milli,
                           uint16_t must, uint16_t within)
{
    struct demand other = *demand;
    struct choice ignored;
    other.cpu_milli = cpu_milli;
    return decide_search(state, &other, must, within, &ignored);
}

/* Is it for its CPUs alone that it does not fit? */
static bool lacks_cpus(const struct node_state *state,
                       const struct demand *demand, uint16_t must,
                       uint16_t within)
{
    return decide_cpus(demand) &&
           fits_with_cpus(state, demand, 0, must, within);
}

/* The idle node would do; this one does not. */
static enum reason reason_busy(const struct node_state *state,
                               const struct demand *demand, uint16_t must,
                               uint16_t within)
{
    struct card_need cores = decide_need(demand), memory = cores;
    cores.memory_mib = 0;
    memory.cores = 0;
    unsigned cards = within & cards_meant(state, demand) &
                     decide_cards_open(state, demand);
    if (!are_enough(demand, cards, must))
        return REASON_CARDS_BUSY;
    cards &= decide_cards_with(state->free_cores, state->free_memory_mib,
                               cores);
    if (!are_enough(demand, cards, must))
        return REASON_CARD_CORES;
    cards &= decide_cards_with(state->free_cores, state->free_memory_mib,
                               memory);
    if (!are_enough(demand, cards, must))
        return REASON_CARD_MEMORY;
    unsigned gpus_free = ((1u << state->shape->n_gpus) - 1) &
                         ~(unsigned)state->gpus_used;
    if (count_bits(gpus_free) < demand->gpus)
        return REASON_GPUS_BUSY;
    if (count_bits(decide_nics_free(state)) < demand->nics)
        return REASON_NICS_BUSY;
    return lacks_cpus(state, demand, must, within) ? REASON_NUMA_CPUS
                                                   : REASON_ALIGNMENT;
}

enum reason decide_reason(const struct node_state *state,
                          const struct demand *demand, uint16_t must,
                          uint16_t within)
{
    struct node_state idle = idle_state(state);
    struct choice ignored;
    if (decide_search(&idle, demand, must, within, &ignored))
        return reason_busy(state, demand, must, within);
    if ((must || within != UINT16_MAX) &&
        decide_search(&idle, demand, 0, UINT16_MAX, &ignored))
        return REASON_PAIR_CARDS;
    return reason_never(state, demand);
}

/* --- saying it ---------------------------------------------------------- */

/* "1 card", "2 cards". */
static void add_count(struct str *out, unsigned n, const char *noun)
{
    str_addf(out, "%u %s%s", n, noun, n == 1 ? "" : "s");
}

static void add_need(struct str *out, struct card_need need)
{
    if (need.cores)
        add_count(out, need.cores, "core");
    if (need.cores && need.memory_mib)
        str_add(out, " and ");
    if (need.memory_mib)
        str_addf(out, "%u MiB", need.memory_mib);
}

/* "the node has only 2 GPUs; 3 are needed". */
static void add_too_few(struct str *out, unsigned n, const char *noun,
                        unsigned needed)
{
    str_add(out, "the node has ");
    if (n == 0) {
        str_addf(out, "no %s", noun);
    } else {
        str_add(out, "only ");
        add_count(out, n, noun);
    }
    str_addf(out, "; %u %s needed", needed, needed == 1 ? "is" : "are");
}

/* "1 of 8 GPUs is free; 2 are needed". */
static void add_free(struct str *out, unsigned n, unsigned of, const char *noun,
                     unsigned needed)
{
    str_addf(out, "%u of ", n);
    add_count(out, of, noun);
    str_addf(out, " %s free; %u %s needed", n == 1 ? "is" : "are", needed,
             needed == 1 ? "is" : "are");
}

void decide_add_shortage(struct str *out, unsigned n, unsigned of,
                         const char *what, unsigned needed)
{
    str_addf(out, "%u of ", n);
    add_count(out, of, "card");
    str_addf(out, " %s; %u %s needed", what, needed,
             needed == 1 ? "is" : "are");
}

/* The least that has to become free on cards among `cards` so that `asked`
 * have `need` of what `free` counts: the next fullest one by one. */
static void add_way_out(struct str *out, const uint32_t *free_amounts,
                        unsigned cards, uint32_t need, unsigned asked)
{
    uint64_t lacking[TOPO_CARDS_MAX] = {0}, sum = 0;
    unsigned n = 0, n_more = 0;
    for (unsigned c = cards; c; c &= c - 1) {
        uint32_t has = free_amounts[__builtin_ctz(c)];
        uint64_t lack = has < need ? need - has : 0;
        unsigned i = n++;
        for (; i > 0 && lacking[i - 1] > lack; i--)
            lacking[i] = lacking[i - 1];
        lacking[i] = lack;
    }
    for (unsigned i = 0; i < asked && i < n; i++) {
        sum += lacking[i];
        n_more += lacking[i] > 0;
    }
    if (sum == 0)
        return;
    str_addf(out, "; it would fit with %llu more free on ",
             (unsigned long long)sum);
    add_count(out, n_more, "card");
}

static void explain_book(const struct node_state *state,
                         const struct demand *demand, struct str *out)
{
    unsigned of_arch = decide_cards_of_arch(state->shape, demand) &
                       decide_cards_with_devices(state->shape, demand) &
                       decide_cards_letting(state->shape, demand);
    unsigned n = count_bits(of_arch & decide_cards_by(state, demand));
    char what[64];
    (void)snprintf(what, sizeof what, "%s given by %s, the others by %s",
                   n == 1 ? "is" : "are",
                   demand->by_claim ? "ResourceClaims" : "Biga",
                   demand->by_claim ? "Biga" : "ResourceClaims");
    decide_add_shortage(out, n, count_bits(of_arch), what, demand->cards);
    str_add(out,
            demand->by_claim
                ? "; ask for biga.dev/card instead of a claim, or start the "
                  "node's biga-advertiser with --claims"
                : "; claim one of DeviceClass xpu.biga.dev instead, or start "
                  "the node's biga-advertiser without --claims");
}

/* What operators would have to let pods have; false: it is not about that. */
static bool explain_allowed(enum reason reason, const struct node_state *state,
                            const struct demand *demand, struct str *out)
{
    if (reason == REASON_NO_DEVICES)
        decide_explain_devices(state, demand, out);
    else if (reason == REASON_NO_RIGHTS)
        decide_explain_rights(state, demand, out);
    else
        return false;
    return true;
}

static void explain_never(enum reason reason, const struct node_state *state,
                          const struct demand *demand, struct str *out)
{
    const struct shape *shape = state->shape;
    unsigned of_arch = decide_cards_of_arch(shape, demand);
    unsigned given = of_arch & decide_cards_by(state, demand) &
                     decide_cards_with_devices(shape, demand) &
                     decide_cards_letting(shape, demand);
    unsigned all = given & decide_cards_running(state, demand);
    char what[64];
    switch (reason) {
    case REASON_BY_CLAIMS:
    case REASON_BY_ALLOCATIONS:
        explain_book(state, demand, out);
        break;
    case REASON_TOO_FEW_CARDS:
        add_too_few(out, shape->n_cards, "card", demand->cards);
        break;
    case REASON_ARCH:
        (void)snprintf(what, sizeof what, "%s of architecture %s",
                       count_bits(of_arch) == 1 ? "is" : "are", demand->arch);
        decide_add_shortage(out, count_bits(of_arch), shape->n_cards, what,
                            demand->cards);
        break;
    case REASON_NO_RUNTIME:
        decide_add_shortage(
            out, count_bits(all), count_bits(given),
            "can run pods, the runtime of the others is not known to "
            "the node's biga-advertiser: name their endpoints in its "
            "card file",
            demand->cards);
        break;
    case REASON_UNHEALTHY:
        decide_add_shortage(
            out, count_bits(all & state->usable), count_bits(all),
            "can be used, the others are withdrawn", demand->cards);
        if (all & state->drained)
            str_addf(out, "; %u of those drained (biga card undrain)",
                     count_bits(all & state->drained));
        break;
    case REASON_DRAINED:
        decide_add_shortage(
            out, count_bits(all & state->usable), count_bits(all),
            "can be used, the others are drained or lost", demand->cards);
        str_add(out, "; biga card undrain gives drained ones back");
        break;
    case REASON_CARDS_RESERVED:
        decide_add_shortage(
            out, count_bits(all & ~(unsigned)state->reserved), count_bits(all),
            "can be had alone, services have shares of the others",
            demand->cards);
        break;
    case REASON_TOO_FEW_GPUS:
        add_too_few(out, shape->n_gpus, "GPU", demand->gpus);
        break;
    case REASON_TOO_FEW_NICS:
        add_too_few(out, shape->n_nics, "compute NIC", demand->nics);
        str_add(out, "; those with an RDMA device count");
        break;
    default:
        str_add(out, "the node has no card");
        break;
    }
}

static void explain_size(const struct node_state *state,
                         const struct demand *demand, struct str *out)
{
    unsigned cards = cards_meant(state, demand) & state->usable;
    uint32_t cores = 0, memory = 0;
    for (unsigned c = cards; c; c &= c - 1) {
        unsigned i = (unsigned)__builtin_ctz(c);
        if (state->cores[i] > cores)
            cores = state->cores[i];
        if (state->memory_mib[i] > memory)
            memory = state->memory_mib[i];
    }
    cards &= decide_cards_with(state->cores, state->memory_mib,
                               decide_need(demand));
    str_add(out, "even idle, only ");
    str_addf(out, "%u of ", count_bits(cards));
    add_count(out, state->shape->n_cards, "card");
    str_add(out, " could hold ");
    add_need(out, decide_need(demand));
    str_addf(out, "; %u %s needed, and the most that a card here has is ",
             demand->cards, demand->cards == 1 ? "is" : "are");
    add_need(out, (struct card_need){cores, memory});
}

/* "8", "1.5". */
static void add_cpus(struct str *out, uint32_t milli)
{
    char text[16];
    size_t n = (size_t)snprintf(text, sizeof text, "%u.%03u", milli / 1000,
                                milli % 1000);
    while (text[n - 1] == '0')
        n--;
    str_addf(out, "%.*s CPU%s", (int)(text[n - 1] == '.' ? n - 1 : n), text,
             milli == 1000 ? "" : "s");
}

/* The most CPUs with which it would fit. */
static uint32_t most_cpus(const struct node_state *state,
                          const struct demand *demand)
{
    uint32_t below = demand->cpu_milli, most;
    do {
        most = 0;
        for (unsigned n = 0; n < state->shape->n_numas; n++)
            if (state->free_cpu_milli[n] < below &&
                state->free_cpu_milli[n] > most)
                most = state->free_cpu_milli[n];
        below = most;
    } while (most && !fits_with_cpus(state, demand, most, 0, UINT16_MAX));
    return most;
}

/* "biga.dev/align asks for NODE, but no NUMA node near free cards has 8 CPUs
 * free (at most 6); …". */
static void explain_cpus(bool never, const struct node_state *state,
                         const struct demand *demand, struct str *out)
{
    struct node_state idle = idle_state(state);
    struct demand any = *demand;
    struct choice choice;
    enum relation enough = demand->gpus ? RELATION_SOCKET : RELATION_SYS;
    if (never)
        state = &idle;
    uint32_t most = most_cpus(state, demand);
    str_addf(out, "biga.dev/align asks for %s, but ",
             relation_name(decide_align(demand)));
    str_add(out, never ? "even idle no NUMA node near the cards has "
                       : "no NUMA node near free cards has ");
    add_cpus(out, demand->cpu_milli);
    str_add(out, never ? " (at most " : " free (at most ");
    add_cpus(out, most);
    str_add(out, "); it would fit with ");
    if (!never) {
        add_cpus(out, demand->cpu_milli - most);
        str_add(out, " more free there, or with ");
    }
    any.align = RELATION_SYS;
    if (!demand->gpus && decide_search(state, &any, 0, UINT16_MAX, &choice))
        enough = (enum relation)choice.relation;
    str_addf(out, "biga.dev/align %s", relation_name(enough));
}

/* Would it fit if it got the GPUs that are planned?  Then what it could ask
 * for as it is. */
static bool explain_every_gpu(const struct node_state *state,
                              const struct demand *demand, struct str *out)
{
    struct demand other = *demand;
    struct choice ignored;
    other.every_gpu = false;
    if (!demand->every_gpu ||
        !decide_search(state, &other, 0, UINT16_MAX, &ignored))
        return false;
    other = *demand;
    while (other.align < RELATION_SYS &&
           !decide_search(state, &other, 0, UINT16_MAX, &ignored))
        other.align++;
    str_addf(out,
             "biga.dev/align asks for %s, and a device plugin chooses among "
             "all %u GPUs of the node, not all of which are so close: let the "
             "pod claim its GPUs, which pins them, or ask for %s",
             relation_name(decide_align(demand)),
             (unsigned)state->shape->n_gpus,
             relation_name((enum relation)other.align));
    return true;
}

/* What could be had instead of the relation that is asked. */
static void explain_alignment(bool never, const struct node_state *state,
                              const struct demand *demand, struct str *out)
{
    struct node_state idle = idle_state(state);
    struct demand any = *demand;
    struct choice choice;
    bool found;
    if (lacks_cpus(never ? &idle : state, demand, 0, UINT16_MAX)) {
        explain_cpus(never, state, demand, out);
        return;
    }
    if (explain_every_gpu(never ? &idle : state, demand, out))
        return;
    any.align = RELATION_SYS;
    found = decide_search(never ? &idle : state, &any, 0, UINT16_MAX, &choice);
    str_addf(out, "biga.dev/align asks for %s",
             relation_name(decide_align(demand)));
    if (!found)
        return;
    const char *closest = relation_name((enum relation)choice.relation);
    str_add(out,
            never ? ", but even idle the closest " : ", but the closest free ");
    add_count(out, demand->cards, "card");
    str_add(out, " and ");
    if (demand->gpus)
        add_count(out, demand->gpus, "GPU");
    else
        str_add(out, "NUMA node");
    str_addf(out, " are %s; it would fit with biga.dev/align %s", closest,
             closest);
}

static void explain_busy(enum reason reason, const struct node_state *state,
                         const struct demand *demand, struct str *out)
{
    struct card_need need = decide_need(demand);
    unsigned all = cards_meant(state, demand) & state->usable;
    unsigned open = all & decide_cards_open(state, demand), cards = open;
    char what[64];
    if (reason == REASON_CARDS_BUSY) {
        decide_add_shortage(out, count_bits(open), count_bits(all),
                            demand->exclusive ? "unshared"
                                              : "not held by others",
                            demand->cards);
        if (count_bits(open) < demand->cards) {
            str_add(out, "; it would fit with ");
            add_count(out, demand->cards - count_bits(open), "more card");
            str_add(out, " freed");
        }
        return;
    }
    bool memory = reason == REASON_CARD_MEMORY;
    const uint32_t *amounts = memory ? state->free_memory_mib
                                     : state->free_cores;
    uint32_t each = memory ? need.memory_mib : need.cores;
    if (memory)
        open &= decide_cards_with(state->free_cores, state->free_memory_mib,
                                  (struct card_need){need.cores, 0});
    cards = open & decide_cards_with(memory ? amounts : state->free_cores,
                                     state->free_memory_mib,
                                     memory ? (struct card_need){0, each}
                                            : (struct card_need){each, 0});
    (void)snprintf(what, sizeof what, "have %u %s free", each,
                   memory      ? "MiB"
                   : each == 1 ? "core"
                               : "cores");
    decide_add_shortage(out, count_bits(cards), count_bits(open), what,
                        demand->cards);
    add_way_out(out, amounts, open, each, demand->cards);
}

/* Reasons that need no numbers. */
static const char *plain_text(enum reason reason)
{
    static const char *const texts[] = {
        [REASON_NONE] = "it fits",
        [REASON_UNKNOWN_NODE] = "no advertiser has published this node",
        [REASON_STALE] =
            "its advertiser went silent; what its cards hold is not known",
        [REASON_INCOMPLETE] =
            "its advertiser has not yet published all slices of its pool",
        [REASON_LOST] =
            "the cluster says that the node is not ready or deleted",
        [REASON_DOUBTFUL] =
            "what was given there may have been lost with a damaged state",
        [REASON_NO_CARD] = "the node has no card",
        [REASON_RUNS_NO_PODS] =
            "the node runs no pods that were applied: start its "
            "biga-advertiser with --actuate",
        [REASON_PAIR_ELSEWHERE] =
            "another pod of its pair is on another node, and a pair stays "
            "together",
        [REASON_PAIR_CARDS] =
            "the cards that its pair already has cannot take it",
    };
    return (unsigned)reason < ARRAY_LEN(texts) ? texts[reason] : NULL;
}

void reason_explain(enum reason reason, const struct node_state *state,
                    const struct demand *demand, struct str *out)
{
    const char *text = plain_text(reason);
    if (text || !state || !state->shape) {
        str_add(out, text ? text : reason_word(reason));
        return;
    }
    switch (reason) {
    case REASON_CARD_TOO_SMALL:
        explain_size(state, demand, out);
        break;
    case REASON_ALIGNMENT_NEVER:
    case REASON_ALIGNMENT:
    case REASON_NUMA_CPUS:
        explain_alignment(reason == REASON_ALIGNMENT_NEVER, state, demand, out);
        break;
    case REASON_GPUS_BUSY:
        add_free(out, state->shape->n_gpus - count_bits(state->gpus_used),
                 state->shape->n_gpus, "GPU", demand->gpus);
        break;
    case REASON_NICS_BUSY:
        add_free(out, count_bits(decide_nics_free(state)), state->shape->n_nics,
                 "compute NIC", demand->nics);
        break;
    case REASON_CARDS_BUSY:
    case REASON_CARD_CORES:
    case REASON_CARD_MEMORY:
        explain_busy(reason, state, demand, out);
        break;
    default:
        if (!explain_allowed(reason, state, demand, out))
            explain_never(reason, state, demand, out);
        break;
    }
}
