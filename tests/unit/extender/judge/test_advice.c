#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/judge/advice.h"
#include "extender/state/draft.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simfleet.h"

/* --- random small clusters ---------------------------------------------- */

enum {
    ROUNDS = ROUNDS_OF(5000),
    NODES_MAX = 4,
    CARDS_MAX = 4,
    APPLIED_MAX = 14
};

static struct demand pod(unsigned number)
{
    struct demand d = {.role = odds(50) ? ROLE_HOST : ROLE_XPU,
                       .size = 1,
                       .cards = 1,
                       .align = RELATION_SYS,
                       .within = DEMAND_ANYWHERE,
                       .prefer_within = DEMAND_ANYWHERE};
    (void)snprintf(d.name, sizeof d.name, "p%u", number);
    (void)snprintf(d.namespace, sizeof d.namespace, "ns");
    (void)snprintf(d.uid, sizeof d.uid, "uid-%u", number);
    if (odds(80)) {
        d.has_card_need = true;
        d.card_cores = roll(17);
        d.card_memory_mib = odds(30) ? 1024 * roll(33) : 0;
    }
    d.cards = (uint8_t)(1 + (odds(40) ? roll(CARDS_MAX) : 0));
    d.pair_cards = d.cards;
    if (d.role == ROLE_HOST && odds(40))
        d.gpus = d.pair_gpus = (uint8_t)(1 + roll(2));
    if (odds(40))
        d.align = (uint8_t)roll(RELATION_COUNT);
    d.exclusive = odds(15);
    return d;
}

/* Bind what fits of some pods. */
static struct snapshot *crowd(struct snapshot *s, unsigned n_pods)
{
    for (unsigned i = 0; i < n_pods; i++) {
        struct schedule sc;
        struct choice choice;
        struct demand d = pod(i);
        int32_t node = (int32_t)roll((uint32_t)s->n_nodes);
        schedule_init(&sc, s, &d);
        if (schedule_choose(&sc, node, &choice) != REASON_NONE)
            continue;
        struct draft *draft = draft_create(s);
        draft_allocate(draft, schedule_allocation(&sc, node, &choice));
        struct snapshot *next = draft_commit(draft);
        snapshot_unref(s);
        s = next;
    }
    return s;
}

static bool fits_on(const struct snapshot *s, const struct demand *d,
                    int32_t node)
{
    struct schedule sc;
    struct choice ignored;
    schedule_init(&sc, s, d);
    return schedule_choose(&sc, node, &ignored) == REASON_NONE;
}

static bool fits(const struct snapshot *s, const struct demand *d)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        if (fits_on(s, d, (int32_t)i))
            return true;
    return false;
}

/* The node with more free, and less of everything that the change says: all
 * amounts less `by` (of cores) on the first card that has some. */
static bool fits_freed(const struct snapshot *s, const struct demand *d,
                       const struct change *c, unsigned cores_by,
                       unsigned memory_by)
{
    struct node_state state = snapshot_node(s, (size_t)c->node)->state;
    struct choice ignored;
    for (unsigned i = 0; i < TOPO_CARDS_MAX; i++) {
        unsigned less = c->cores[i] < cores_by ? c->cores[i] : cores_by;
        state.free_cores[i] += c->cores[i] - less;
        cores_by -= less;
        less = c->memory_mib[i] < memory_by ? c->memory_mib[i] : memory_by;
        state.free_memory_mib[i] += c->memory_mib[i] - less;
        memory_by -= less;
    }
    return decide(&state, d, 0, UINT16_MAX, &ignored) == REASON_NONE;
}

static void check_free(const struct snapshot *s, const struct demand *d,
                       const struct change *c)
{
    uint64_t cores = 0, memory = 0;
    for (unsigned i = 0; i < TOPO_CARDS_MAX; i++) {
        cores += c->cores[i];
        memory += c->memory_mib[i];
        if (!(c->cards & 1u << i))
            cr_assert(c->cores[i] == 0 && c->memory_mib[i] == 0);
    }
    cr_assert(cores + memory > 0);
    cr_assert(fits_freed(s, d, c, 0, 0), "freed, and it does not fit");
    if (cores)
        cr_assert_not(fits_freed(s, d, c, 1, 0), "one core less would do");
    if (memory)
        cr_assert_not(fits_freed(s, d, c, 0, 1), "one MiB less would do");
}

/* No amount on one card alone, smaller than the change, would do: by trying
 * every card of every node. */
static void check_free_is_least(const struct snapshot *s,
                                const struct demand *d, const struct change *c)
{
    unsigned card = (unsigned)__builtin_ctz(c->cards);
    if (c->cards & (c->cards - 1) || c->memory_mib[card])
        return;
    for (size_t n = 0; n < s->n_nodes; n++) {
        const struct node_state *state = &snapshot_node(s, n)->state;
        for (unsigned i = 0; i < state->shape->n_cards; i++) {
            struct change less = {.node = (int32_t)n};
            uint32_t used = state->cores[i] - state->free_cores[i];
            uint32_t most = c->cores[card] - 1;
            less.cores[i] = most < used ? most : used;
            cr_assert_not(fits_freed(s, d, &less, 0, 0),
                          "%u cores would do on another card", less.cores[i]);
        }
    }
}

static void check_release(struct snapshot *s, const struct demand *d,
                          const struct change *c)
{
    cr_assert_gt(c->n_gone, 0);
    for (size_t skip = 0; skip <= c->n_gone; skip++) {
        struct draft *draft = draft_create(s);
        for (size_t i = 0; i < c->n_gone; i++)
            if (i != skip)
                cr_assert(draft_release(draft, c->gone[i]->demand.namespace,
                                        c->gone[i]->demand.name));
        struct snapshot *after = draft_commit(draft);
        if (skip == c->n_gone)
            cr_assert(fits_on(after, d, c->node), "released in vain");
        else
            cr_assert_not(fits(after, d), "not all need to go");
        snapshot_unref(after);
    }
}

static struct demand changed(const struct demand *d, const struct change *c,
                             int64_t by)
{
    struct demand e = *d;
    uint64_t value = (uint64_t)((int64_t)c->value + by);
    switch (c->kind) {
    case CHANGE_ALIGN:
        e.align = (uint8_t)value;
        break;
    case CHANGE_EXCLUSIVE:
        e.exclusive = false;
        break;
    case CHANGE_CARD_CORES:
        e.card_cores = (uint32_t)value;
        break;
    case CHANGE_CARD_MEMORY:
        e.card_memory_mib = (uint32_t)value;
        break;
    case CHANGE_GPUS:
        e.gpus = e.pair_gpus = (uint8_t)value;
        break;
    case CHANGE_CARDS:
        e.cards = e.pair_cards = (uint8_t)value;
        break;
    default:
        cr_assert_fail("kind %s", change_kind_word(c->kind));
    }
    return e;
}

static void check_less(const struct snapshot *s, const struct demand *d,
                       const struct change *c)
{
    struct demand e = changed(d, c, 0);
    cr_assert(fits(s, &e), "%s does not help", change_kind_word(c->kind));
    if (c->kind == CHANGE_EXCLUSIVE)
        return;
    e = changed(d, c, c->kind == CHANGE_ALIGN ? -1 : 1);
    cr_assert_not(fits(s, &e), "less of %s would do",
                  change_kind_word(c->kind));
}

static void check_change(struct snapshot *s, const struct demand *d,
                         const struct change *c)
{
    switch (c->kind) {
    case CHANGE_FREE:
        check_free(s, d, c);
        check_free_is_least(s, d, c);
        break;
    case CHANGE_RELEASE:
        check_release(s, d, c);
        break;
    default:
        check_less(s, d, c);
        break;
    }
}

Test(advice, every_change_makes_the_pod_fit_and_none_is_too_large)
{
    unsigned said[CHANGE_KINDS] = {0};
    printf("seed %llu\n", (unsigned long long)chance_init());
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct snapshot *s =
            crowd(simfleet_create(1 + roll(NODES_MAX), 1 + roll(CARDS_MAX)),
                  roll(APPLIED_MAX));
        struct demand d = pod(1000);
        struct schedule sc;
        struct advice advice;
        schedule_init(&sc, s, &d);
        if (!fits(s, &d)) {
            advise_pod(&sc, &advice);
            cr_assert(advice.n_nearest > 0);
            for (size_t i = 0; i < advice.n_changes; i++) {
                cr_assert(i == 0 ||
                          advice.changes[i - 1].kind < advice.changes[i].kind);
                check_change(s, &d, &advice.changes[i]);
                said[advice.changes[i].kind]++;
            }
        }
        snapshot_unref(s);
    }
    for (enum change_kind k = 0; k < CHANGE_KINDS; k++)
        printf("%s: %u\n", change_kind_word(k), said[k]);
    cr_expect_gt(said[CHANGE_FREE], ROUNDS_OF(50));
    cr_expect_gt(said[CHANGE_RELEASE], ROUNDS_OF(50));
    cr_expect_gt(said[CHANGE_ALIGN], ROUNDS_OF(50));
    cr_expect_gt(said[CHANGE_EXCLUSIVE], ROUNDS_OF(10));
    cr_expect_gt(said[CHANGE_CARD_CORES], ROUNDS_OF(50));
    cr_expect_gt(said[CHANGE_CARD_MEMORY], ROUNDS_OF(5));
    cr_expect_gt(said[CHANGE_GPUS], ROUNDS_OF(10));
    cr_expect_gt(said[CHANGE_CARDS], ROUNDS_OF(50));
}

/* --- the words ---------------------------------------------------------- */

static void bind_to(struct snapshot **s, const struct demand *d, int32_t node)
{
    struct schedule sc;
    struct choice choice;
    schedule_init(&sc, *s, d);
    cr_assert_eq(schedule_choose(&sc, node, &choice), REASON_NONE);
    struct draft *draft = draft_create(*s);
    draft_allocate(draft, schedule_allocation(&sc, node, &choice));
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(*s);
    *s = next;
}

static struct demand plain(const char *name, uint32_t cores)
{
    struct demand d = {.role = ROLE_XPU,
                       .size = 1,
                       .cards = 1,
                       .pair_cards = 1,
                       .align = RELATION_SYS,
                       .within = DEMAND_ANYWHERE,
                       .prefer_within = DEMAND_ANYWHERE,
                       .has_card_need = true,
                       .card_cores = cores};
    (void)snprintf(d.name, sizeof d.name, "%s", name);
    (void)snprintf(d.namespace, sizeof d.namespace, "ns");
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s", name);
    return d;
}

Test(advice, names_card_node_and_amount)
{
    struct snapshot *s = simfleet_create(2, 1);
    struct demand a = plain("a", 12), b = plain("b", 9), c = plain("c", 6);
    struct schedule sc;
    struct advice advice;
    cleanup_str struct str text = STR_INIT(4096), json = STR_INIT(65536);
    bind_to(&s, &a, 0);
    bind_to(&s, &b, 1);
    c.card_cores = 8;
    schedule_init(&sc, s, &c);
    advise_pod(&sc, &advice);
    cr_assert_geq(advice.n_changes, 3);
    change_text(&sc, &advice.changes[0], &text);
    cr_expect_str_eq(str_text(&text),
                     "free 1 core on card 0000:12:00.0 of node001");
    str_reset(&text);
    change_text(&sc, &advice.changes[1], &text);
    cr_expect_str_eq(str_text(&text),
                     "ask for 7 cores of each card (biga.dev/card-cores)");
    str_reset(&text);
    change_text(&sc, &advice.changes[2], &text);
    cr_expect_str_eq(str_text(&text), "delete pod ns/a on node000");
    cr_expect_eq(advice.nearest[0].node, 1);
    cr_expect_eq(advice.nearest[1].node, 0);

    str_add_c(&json, '{');
    advice_write(&sc, &advice, &json);
    str_add_c(&json, '}');
    struct error err;
    cr_expect_eq(json_check(str_text(&json), json.size, &err), 0, "%s: %s",
                 err.text, str_text(&json));
    cr_expect(strstr(str_text(&json), "\"verified\":true"));
    snapshot_unref(s);
}

/* --- quotas, CPUs ------------------------------------------------------- */

static struct snapshot *with_policy(struct snapshot *s, struct policy *policy)
{
    struct draft *draft = draft_create(s);
    draft_set_policy(draft, policy);
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(s);
    return next;
}

Test(advice, a_quota_is_raised_by_what_is_missing)
{
    struct policy_quota quota = {.namespace = "ns",
                                 .cards = 1,
                                 .cores = 10,
                                 .memory_mib = POLICY_UNLIMITED};
    struct policy policy = {.refs = 16, .quotas = &quota, .n_quotas = 1};
    struct snapshot *s = with_policy(simfleet_create(2, 2), &policy);
    struct demand a = plain("a", 8), b = plain("b", 6);
    struct schedule sc;
    struct advice advice;
    bind_to(&s, &a, 0);
    schedule_init(&sc, s, &b);
    cr_assert_eq(sc.quota.kind, QUOTA_CARDS);
    advise_pod(&sc, &advice);
    cr_assert_geq(advice.n_changes, 1);
    const struct change *c = &advice.changes[0];
    cr_assert_eq(c->kind, CHANGE_QUOTA);
    cr_expect_eq(c->quota.cards, 1);
    cr_expect_eq(c->quota.cores, 4);
    cr_expect_eq(c->quota.memory_mib, 0);

    struct policy_quota raised = quota;
    raised.cards += c->quota.cards;
    raised.cores += c->quota.cores;
    struct policy more = {.refs = 16, .quotas = &raised, .n_quotas = 1};
    s = with_policy(s, &more);
    cr_expect(fits(s, &b), "raised in vain");
    raised.cores--;
    struct policy less = {.refs = 16, .quotas = &raised, .n_quotas = 1};
    s = with_policy(s, &less);
    cr_expect_not(fits(s, &b), "one core less would do");
    snapshot_unref(s);
}

Test(advice, cpus_are_freed_on_the_node_that_lacks_least)
{
    struct snapshot *s = simfleet_create(1, 2);
    struct snapshot *base = s;
    struct demand a = plain("a", 4), b = plain("b", 4);
    struct schedule sc;
    struct advice advice;
    cleanup_str struct str text = STR_INIT(4096);
    const struct node_state *state = &snapshot_node(base, 0)->state;
    uint32_t cpus = state->free_cpu_milli[0];
    a.role = b.role = ROLE_HOST;
    a.align = b.align = RELATION_NODE;
    cr_assert_neq(cpus, UINT32_MAX, "the host tells its CPUs");
    a.cpu_milli = cpus;
    b.cpu_milli = 1500;
    bind_to(&s, &a, 0);
    a.name[0] = 'c';
    bind_to(&s, &a, 0);
    schedule_init(&sc, s, &b);
    advise_pod(&sc, &advice);
    cr_assert_geq(advice.n_changes, 1);
    change_text(&sc, &advice.changes[0], &text);
    cr_expect_str_eq(str_text(&text),
                     "free 1.5 CPUs on NUMA node 0 of node000");
    snapshot_unref(s);
}
