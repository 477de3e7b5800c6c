#include "extender/judge/schedule.h"

#include "extender/state/usage.h"
#include "model/pod/rights.h"

enum { BARRED_TOLD_MAX = 2 }; /* cards of a node, each with its reason */

/* --- in a few words ----------------------------------------------------- */

/* A pod that follows its pair is judged with the place that it would get. */
static void explain_quota(const struct schedule *s, struct str *out)
{
    struct quota_verdict verdict = s->quota;
    struct node_state state;
    struct choice choice;
    uint16_t must, within;
    if (s->follows >= 0) {
        schedule_view(s, s->follows, &state, &must, &within);
        if (decide(&state, s->demand, must, within, &choice) == REASON_NONE) {
            struct allocation *a = schedule_allocation(s, s->follows, &choice);
            quota_judge_allocation(s->snapshot, a, s->former, &verdict);
            allocation_unref(a);
        }
    }
    quota_explain(s->demand->namespace, &verdict, out);
}

static void brief_too_small(const struct demand *d, struct str *out)
{
    str_add(out, "no card with ");
    if (!d->card_cores && !d->card_memory_mib)
        str_add(out, "cores and memory");
    if (d->card_cores)
        str_addf(out, "%u core%s", d->card_cores, d->card_cores > 1 ? "s" : "");
    if (d->card_cores && d->card_memory_mib)
        str_add(out, " and ");
    if (d->card_memory_mib)
        str_addf(out, "%u MiB", d->card_memory_mib);
    str_add(out, ", even idle");
}

/* How many pairs are asked, and for how many there is room.  A job of as many
 * as that, and the pairs that have a place already, would fit. */
static void brief_room(const struct plan_refusal *r, const struct demand *d,
                       struct str *out)
{
    bool more = r->asked < (uint32_t)d->size, within = d->within >= 0;
    const char *tier = within ? fabric_tier_name((unsigned)d->within) : "";
    const char *most = r->at_most ? "at most " : "";
    str_addf(out, "its job needs %u %s%s", r->asked, more ? "more " : "",
             r->asked == 1 ? "pair" : "pairs");
    if (within)
        str_addf(out, " within one %s", tier);
    if (r->lack == PLAN_LACK_ROOM)
        str_addf(out, "; there is room for %s%u", most, r->room);
    if (within)
        str_addf(out, "%s the best %s has room for %s%u",
                 r->lack == PLAN_LACK_ROOM ? " in all, and" : ";", tier, most,
                 r->room_within);
    if (r->lack == PLAN_LACK_ROOM && r->hosts)
        str_add(out, " (cards for all, but not the hosts' CPUs, memory and "
                     "pods)");
}

/* Why there is no plan of its job. */
static void brief_job(const struct schedule *s, struct str *out)
{
    const struct plan_refusal *r = s->refusal;
    const struct demand *d = s->demand;
    const char *tier = d->within >= 0 ? fabric_tier_name((unsigned)d->within)
                                      : "fabric";
    switch (r ? r->lack : PLAN_LACK_NOTHING) {
    case PLAN_LACK_TIER:
    case PLAN_LACK_ROOM:
        brief_room(r, d, out);
        return;
    case PLAN_LACK_FIXED:
        str_addf(out, "pairs of its job are bound where no one %s holds all",
                 tier);
        return;
    case PLAN_LACK_PIN:
        str_add(out, "the rest of its job does not fit around this pair here");
        return;
    case PLAN_LACK_COMING:
        str_addf(out, "room is being made for %u other pair%s of its job",
                 r->coming, r->coming == 1 ? "" : "s");
        return;
    default:
        str_addf(out, "no room for all %d pairs of its job", (int)d->size);
    }
}

/* What its pair's host pod needs of a host: "8 CPUs and 16384 MiB". */
static void brief_host(const struct demand *d, struct str *out)
{
    str_add(out, "host has not ");
    if (d->cpu_milli)
        str_addf(out, "%g CPUs", d->cpu_milli / 1000.0);
    if (d->cpu_milli && d->memory_mib)
        str_add(out, " and ");
    if (d->memory_mib)
        str_addf(out, "%u MiB", d->memory_mib);
    if (!d->cpu_milli && !d->memory_mib)
        str_add(out, "one pod");
    str_add(out, " left for the pair's host pod");
}

static double none_below_zero(int64_t amount)
{
    return amount > 0 ? (double)amount : 0;
}

static void explain_host(const struct schedule *s, int32_t index,
                         struct str *out)
{
    const struct demand *d = s->demand;
    struct host_room room = schedule_room(s, index);
    if (d->cpu_milli && room.cpu_milli < d->cpu_milli)
        str_addf(out, "host has %g CPUs left for pods, the pair here needs %g",
                 none_below_zero(room.cpu_milli) / 1000, d->cpu_milli / 1000.0);
    else if (d->memory_mib && room.memory_mib < d->memory_mib)
        str_addf(out,
                 "host has %.0f MiB left for pods, the pair here needs %u MiB",
                 none_below_zero(room.memory_mib), d->memory_mib);
    else
        str_add(out, "host may have no more pods");
}

/* Those that need no numbers; NULL: the others. */
static const char *brief_plain(enum reason reason)
{
    static const char *const texts[] = {
        [REASON_NONE] = "fits",
        [REASON_UNKNOWN_NODE] = "no topology published",
        [REASON_STALE] = "stale topology: advertiser silent",
        [REASON_INCOMPLETE] = "incomplete topology",
        [REASON_LOST] = "node not ready or deleted",
        [REASON_DOUBTFUL] = "doubtful: it is not known what was given there",
        [REASON_NO_CARD] = "no card",
        [REASON_BY_CLAIMS] = "cards given by ResourceClaims: claim one",
        [REASON_BY_ALLOCATIONS] =
            "cards given by Biga, not by claims: ask for biga.dev/card",
        [REASON_RUNS_NO_PODS] =
            "runs no pods: start its biga-advertiser with --actuate",
        [REASON_NO_RUNTIME] =
            "runtime of the cards not known: name their endpoints in the "
            "card file of its biga-advertiser",
        [REASON_UNHEALTHY] = "card lost or barred",
        [REASON_DRAINED] = "card drained",
        [REASON_CARDS_RESERVED] = "services have shares of the cards",
        [REASON_PAIR_CARDS] = "the cards of its pair cannot take it",
        [REASON_JOB_ELSEWHERE] = "the plan of its job has it elsewhere",
        [REASON_LEASED] = "what is free is leased to another job",
    };
    return (unsigned)reason < ARRAY_LEN(texts) ? texts[reason] : NULL;
}

/* What the hardware lacks, or others have. */
static void brief_node(const struct demand *d, enum reason reason,
                       struct str *out)
{
    const char *cards = d->cards == 1 ? "card" : "cards";
    switch (reason) {
    case REASON_TOO_FEW_CARDS:
        str_addf(out, "fewer cards than the %u asked", d->cards);
        break;
    case REASON_ARCH:
        str_addf(out, "no card of architecture %s", d->arch);
        break;
    case REASON_NO_RIGHTS:
        str_add(out, "no card that lets pods have the rights ");
        rights_bits_add(d->rights, out);
        break;
    case REASON_NO_DEVICES:
        str_addf(out, "no card with the devices \"%s\"", d->devices.text);
        break;
    case REASON_CARD_TOO_SMALL:
        brief_too_small(d, out);
        break;
    case REASON_TOO_FEW_GPUS:
        str_addf(out, "fewer GPUs than the %u asked", d->gpus);
        break;
    case REASON_TOO_FEW_NICS:
        str_addf(out, "fewer compute NICs than the %u asked", d->nics);
        break;
    case REASON_ALIGNMENT_NEVER:
        str_addf(out, "hardware cannot align %u %s within %s%s", d->cards,
                 cards, relation_name(d->align),
                 d->every_gpu ? " with every GPU that a device plugin may give"
                              : "");
        break;
    case REASON_CARDS_BUSY:
        str_addf(out, "fewer than %u %s free", d->cards, cards);
        break;
    case REASON_CARD_CORES:
        str_addf(out, "too few free cores on the cards (%u asked of each)",
                 d->card_cores);
        break;
    case REASON_CARD_MEMORY:
        str_addf(out,
                 "too little free memory on the cards (%u MiB asked of each)",
                 d->card_memory_mib);
        break;
    case REASON_GPUS_BUSY:
        str_addf(out, "fewer than %u GPUs free", d->gpus);
        break;
    case REASON_NICS_BUSY:
        str_addf(out, "fewer than %u compute NICs free", d->nics);
        break;
    case REASON_ALIGNMENT:
        str_addf(out, "free cards are not within %s", relation_name(d->align));
        break;
    case REASON_NUMA_CPUS:
        str_addf(out, "no NUMA node near the cards has %u CPUs free",
                 (d->cpu_milli + 999) / 1000);
        break;
    default:
        str_add(out, reason_word(reason));
        break;
    }
}

void schedule_brief(const struct schedule *s, enum reason reason,
                    struct str *out)
{
    const char *plain = brief_plain(reason);
    if (plain)
        str_add(out, plain);
    else if (reason == REASON_PAIR_ELSEWHERE && s->unsettled)
        str_add(out, "kube-scheduler makes room for another pod of its pair, "
                     "and has not said yet on which node");
    else if (reason == REASON_PAIR_ELSEWHERE && s->nominated)
        str_addf(out,
                 "kube-scheduler makes room for another pod of its pair on "
                 "node %s, and it waits for that one",
                 s->follows_node);
    else if (reason == REASON_PAIR_ELSEWHERE)
        str_addf(out, "its pair is on node %s", s->follows_node);
    else if (reason == REASON_QUOTA || reason == REASON_NOT_ALLOWED)
        explain_quota(s, out);
    else if (reason == REASON_HOST_ROOM)
        brief_host(s->demand, out);
    else if (reason == REASON_FABRIC_TIER || reason == REASON_JOB_ROOM)
        brief_job(s, out);
    else
        brief_node(s->demand, reason, out);
}

static void add_count(unsigned n, const char *what, struct str *out)
{
    if (n)
        str_addf(out, "; %u %s %s", n, n == 1 ? "card is" : "cards are", what);
}

/* Cards that might help, were they not withdrawn. */
static void add_withdrawn(const struct topo *topo, uint16_t within,
                          struct str *out)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first);
    unsigned drained = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        const struct device *card = topo_device(topo, first + i);
        bool by_hand = strcmp(card->health, "drained") == 0;
        if (!card->unhealthy || *card->barred || !(within >> i & 1))
            continue;
        drained += by_hand;
        lost += !by_hand;
    }
    add_count(drained, "drained (biga card undrain)", out);
    add_count(lost, "lost", out);
}

/* Those that their managers have withdrawn; the first of them by name. */
static bool add_barred(const struct topo *topo, uint16_t within,
                       const char *before, struct str *out)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first), n_barred = 0;
    for (size_t i = 0; i < n; i++) {
        const struct device *card = topo_device(topo, first + i);
        if (!*card->barred || !(within >> i & 1))
            continue;
        if (n_barred < BARRED_TOLD_MAX)
            str_addf(out, "%s%s: %s", n_barred ? "; " : before, card->id,
                     card->barred);
        n_barred++;
    }
    if (n_barred > BARRED_TOLD_MAX)
        str_addf(out, "; and so %zu more", n_barred - BARRED_TOLD_MAX);
    return n_barred > 0;
}

bool schedule_tell_barred(const struct schedule *s, int32_t index,
                          enum reason reason, struct str *out)
{
    struct node_state state;
    uint16_t must, within;
    if (reason != REASON_UNHEALTHY)
        return false;
    schedule_view(s, index, &state, &must, &within);
    return add_barred(snapshot_node(s->snapshot, (size_t)index)->topo, within,
                      "", out);
}

/* --- with the node's own numbers ---------------------------------------- */

void schedule_explain(const struct schedule *s, int32_t index,
                      enum reason reason, struct str *out)
{
    switch (reason) {
    case REASON_UNKNOWN_NODE:
        str_add(out, "no topology was published for this node: run "
                     "biga-advertiser on it");
        return;
    case REASON_STALE:
        str_add(out, "its advertiser is silent, so its topology may no longer "
                     "be true: restart biga-advertiser there");
        return;
    case REASON_INCOMPLETE:
        str_add(out, "its pool of slices is incomplete: see the log of its "
                     "biga-advertiser");
        return;
    case REASON_LOST:
        str_add(out, "the cluster says that the node is not ready or deleted: "
                     "see kubectl describe node");
        return;
    case REASON_DOUBTFUL:
        str_add(out, "the state of the extender was found damaged, and what "
                     "was given there may have been lost: nothing is given "
                     "there before the node has told what runs, or you say "
                     "that all is known (biga trust)");
        return;
    case REASON_PAIR_ELSEWHERE:
    case REASON_PAIR_CARDS:
    case REASON_QUOTA:
    case REASON_NOT_ALLOWED:
    case REASON_LEASED:
    case REASON_FABRIC_TIER:
    case REASON_JOB_ROOM:
        schedule_brief(s, reason, out);
        return;
    case REASON_HOST_ROOM:
        explain_host(s, index, out);
        return;
    default:
        break;
    }
    struct node_state state;
    uint16_t must, within;
    schedule_view(s, index, &state, &must, &within);
    state.usable &= within; /* speak of its pair's cards only */
    state.drained &= within;
    reason_explain(reason, &state, s->demand, out);
    if (reason == REASON_CARD_TOO_SMALL && state.reserved)
        str_add(out, " besides the shares of services (biga policy)");
    const struct topo *topo = snapshot_node(s->snapshot, (size_t)index)->topo;
    if (reason >= REASON_CARDS_BUSY)
        add_withdrawn(topo, within, out);
    if (reason >= REASON_CARDS_BUSY || reason == REASON_UNHEALTHY ||
        reason == REASON_DRAINED)
        (void)add_barred(topo, within, "; ", out);
    unsigned unsized = (unsigned)__builtin_popcount(usage_unsized(topo));
    if (reason == REASON_CARD_TOO_SMALL && unsized)
        str_addf(out,
                 "; the size of %u %s is not known: say it in the card "
                 "file of its biga-advertiser",
                 unsized, unsized == 1 ? "card" : "cards");
}
