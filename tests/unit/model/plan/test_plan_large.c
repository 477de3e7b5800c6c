/* Jobs of more pairs than every plan is tried for: the fewest leaves on the
 * lowest tier, and the fewest crossings, by other means.
 *
 * Hosts have up to four cards of one kind and a pair takes one, so that what
 * a leaf holds is a number, and sets of leaves and ways along the ranks can
 * all be tried.  BIGA_TEST_SEED sets the seed, BIGA_TEST_ROUNDS the number of
 * clusters. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/plan/plan.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simhost.h"

enum {
    LEAVES = 4,
    HOSTS = 3,  /* of a leaf */
    CARDS = 4,  /* of a host */
    HOLDS = 12, /* a leaf */
    PAIRS_MAX = LEAVES * HOLDS + 9,
    NEVER = 1000,
};

struct trial {
    struct shape *shape;
    struct node_state states[LEAVES * HOSTS];
    const struct node_state *pointers[LEAVES * HOSTS];
    int32_t leaves[LEAVES * HOSTS];
    unsigned room[LEAVES];  /* pairs that may still come */
    int on[PAIRS_MAX];      /* by rank: leaf that it has already, or -1 */
    unsigned fixed[LEAVES]; /* pairs that have their place there */
    struct plan_fixed list[PAIRS_MAX];
    struct demand demand;
    struct plan_cluster cluster;
    struct plan_job job;
};

static void roll_hosts(struct trial *t, size_t leaves_of_spine)
{
    cleanup_with(topo) struct topo *topo = simhost_topo("host", CARDS);
    t->shape = shape_create(topo);
    for (size_t i = 0; i < LEAVES * HOSTS; i++) {
        node_state_init(&t->states[i], topo, t->shape);
        t->leaves[i] = (int32_t)(i / HOSTS);
        t->pointers[i] = odds(85) ? &t->states[i] : NULL;
        if (!t->pointers[i])
            continue;
        uint16_t taken = (uint16_t)(odds(50) ? roll(1 << CARDS) : 0);
        t->states[i].occupied = t->states[i].closed = taken;
        t->room[i / HOSTS] += CARDS - (unsigned)__builtin_popcount(taken);
    }
    t->cluster = (struct plan_cluster){
        .fabric = simfabric_create(LEAVES, &leaves_of_spine, 2),
        .n_nodes = LEAVES * HOSTS,
        .states = t->pointers,
        .leaves = t->leaves};
}

static void roll_job(struct trial *t)
{
    unsigned room = 0;
    for (unsigned l = 0; l < LEAVES; l++)
        room += t->room[l];
    t->demand = (struct demand){.role = ROLE_HOST,
                                .cards = 1,
                                .pair_cards = 1,
                                .align = RELATION_SYS,
                                .prefer_align = RELATION_SYS};
    t->job = (struct plan_job){.size = 9 + roll(room + 1),
                               .shapes = &t->demand,
                               .n_shapes = 1,
                               .fixed = t->list,
                               .within = PLAN_ANYWHERE,
                               .prefer_within = PLAN_ANYWHERE,
                               .pin_rank = -1,
                               .pin_node = -1};
    bool some = odds(50);
    for (uint32_t r = 0; r < t->job.size; r++) {
        t->on[r] = -1;
        if (!some || !odds(15))
            continue;
        int32_t node = (int32_t)roll(LEAVES * HOSTS);
        t->on[r] = t->leaves[node];
        t->fixed[t->on[r]]++;
        t->list[t->job.n_fixed++] = (struct plan_fixed){(int32_t)r, node,
                                                        t->leaves[node], false};
    }
}

/* The fewest crossings when nothing but `room` may be used: all ways along
 * the ranks. */
struct ways {
    const struct trial *t;
    uint16_t *known; /* by rank, leaf of the one before and what is left */
    size_t span[LEAVES + 1];
};

static unsigned fewest_from(struct ways *w, uint32_t r, unsigned last,
                            unsigned left[LEAVES])
{
    unsigned best = NEVER;
    size_t at = r * (LEAVES + 1u) + last;
    if (r == w->t->job.size)
        return 0;
    for (unsigned l = 0; l < LEAVES; l++)
        at = at * w->span[l] + left[l];
    if (w->known[at])
        return w->known[at] - 1u;
    for (unsigned l = 0; l < LEAVES; l++) {
        bool fixed = w->t->on[r] == (int)l;
        if ((w->t->on[r] >= 0 && !fixed) || (!fixed && left[l] == 0))
            continue;
        left[l] -= !fixed;
        unsigned n = fewest_from(w, r + 1, l, left);
        left[l] += !fixed;
        n += r > 0 && l != last;
        best = n < best ? n : best;
    }
    w->known[at] = (uint16_t)(best + 1);
    return best;
}

static unsigned fewest_crossings(const struct trial *t, unsigned set)
{
    struct ways w = {.t = t};
    unsigned left[LEAVES];
    size_t n = (t->job.size + 1u) * (LEAVES + 1u);
    for (unsigned l = 0; l < LEAVES; l++) {
        left[l] = set >> l & 1 ? t->room[l] : 0;
        w.span[l] = left[l] + 1;
        n *= w.span[l];
    }
    w.known = xcalloc(n, sizeof *w.known);
    unsigned fewest = fewest_from(&w, 0, LEAVES, left);
    free(w.known);
    return fewest;
}

/* By trying all sets of leaves; false when none holds the job. */
static bool best_score(const struct trial *t, struct plan_score *ret_best)
{
    unsigned asked = t->job.size - (uint32_t)t->job.n_fixed;
    bool found = false;
    for (unsigned set = 1; set < 1u << LEAVES; set++) {
        struct plan_score score = {0};
        unsigned room = 0, first = (unsigned)__builtin_ctz(set);
        bool all = true;
        for (unsigned l = 0; l < LEAVES; l++) {
            if (!(set >> l & 1)) {
                all &= t->fixed[l] == 0;
                continue;
            }
            room += t->room[l];
            unsigned tier = fabric_common_tier(t->cluster.fabric,
                                               (int32_t)first, (int32_t)l);
            score.tier = (uint8_t)(tier > score.tier ? tier : score.tier);
            score.leaves++;
        }
        if (!all || room < asked)
            continue;
        score.crossings = NEVER;
        if (found && plan_score_compare(&score, ret_best) > 0 &&
            (score.tier != ret_best->tier || score.leaves != ret_best->leaves))
            continue;
        score.crossings = fewest_crossings(t, set);
        if (!found || plan_score_compare(&score, ret_best) < 0)
            *ret_best = score;
        found = true;
    }
    return found;
}

struct counts {
    unsigned planned, refused, free, around, around_best, worst;
};

static void check(const struct trial *t, unsigned round, struct counts *n)
{
    cleanup_with(plan) struct plan *plan = NULL;
    struct plan_refusal no;
    struct plan_score best;
    bool found = best_score(t, &best);
    int rc = plan_make(&t->cluster, &t->job, &plan, &no);
    cr_assert_eq(rc, found ? 0 : -EBUSY, "round %u: %d", round, rc);
    n->refused += !found;
    if (!found)
        return;
    n->planned++;
    cr_assert_eq(plan->score.tier, best.tier, "round %u", round);
    cr_assert_eq(plan->score.leaves, best.leaves, "round %u", round);
    cr_assert_geq(plan->score.crossings, best.crossings, "round %u", round);
    unsigned more = plan->score.crossings - best.crossings;
    if (t->job.n_fixed == 0) {
        cr_assert_eq(more, 0, "round %u: %u more crossings", round, more);
        n->free++;
        return;
    }
    n->around++;
    n->around_best += more == 0;
    n->worst = more > n->worst ? more : n->worst;
}

Test(plan_large, leaves_and_crossings, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", 600);
    struct counts n = {0};
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned i = 0; i < rounds; i++) {
        struct trial t;
        memset(&t, 0, sizeof t);
        roll_hosts(&t, 1 + roll(3));
        roll_job(&t);
        check(&t, i, &n);
        shape_destroy(t.shape);
        fabric_unref((struct fabric *)t.cluster.fabric);
    }
    cr_log_info("%u planned, %u refused; %u free; %u around fixed pairs: %u "
                "with the fewest crossings, %u more at worst",
                n.planned, n.refused, n.free, n.around, n.around_best, n.worst);
    cr_assert(n.free > rounds / 10 && n.around > rounds / 10);
    cr_assert(n.around_best * 100 >= n.around * 45);
}

/* Hosts of four cards, of which `taken` are not free, on the leaves said. */
static struct plan_score score_of(const uint16_t *taken, const int32_t *leaves,
                                  size_t n, uint32_t size)
{
    cleanup_with(topo) struct topo *topo = simhost_topo("host", CARDS);
    struct shape *shape = shape_create(topo);
    const size_t per = 8;
    cleanup_with(fabric) struct fabric *fabric = simfabric_create(LEAVES, &per,
                                                                  2);
    struct node_state states[LEAVES * HOSTS];
    const struct node_state *pointers[LEAVES * HOSTS];
    for (size_t i = 0; i < n; i++) {
        node_state_init(&states[i], topo, shape);
        states[i].occupied = states[i].closed = taken[i];
        pointers[i] = &states[i];
    }
    struct demand demand = {.role = ROLE_HOST,
                            .cards = 1,
                            .pair_cards = 1,
                            .align = RELATION_SYS,
                            .prefer_align = RELATION_SYS};
    struct plan_cluster cluster = {
        .fabric = fabric, .n_nodes = n, .states = pointers, .leaves = leaves};
    struct plan_job job = {.size = size,
                           .shapes = &demand,
                           .n_shapes = 1,
                           .within = PLAN_ANYWHERE,
                           .prefer_within = PLAN_ANYWHERE,
                           .pin_rank = -1,
                           .pin_node = -1};
    cleanup_with(plan) struct plan *plan = NULL;
    struct plan_refusal no;
    cr_assert_eq(plan_make(&cluster, &job, &plan, &no), 0);
    struct plan_score score = plan->score;
    shape_destroy(shape);
    return score;
}

Test(plan_large, the_rest_goes_where_it_harms_least)
{
    struct plan_score s = score_of((const uint16_t[]){0, 0, 0, 7},
                                   (const int32_t[]){0, 0, 0, 0}, 4, 9);
    cr_expect_eq(s.damage, 0, "%u cards left useless", s.damage);
    cr_expect_eq(s.leaves, 1);
}

Test(plan_large, the_last_leaf_is_the_smallest_that_suffices)
{
    struct plan_score s = score_of((const uint16_t[]){0, 0, 0, 7},
                                   (const int32_t[]){0, 0, 1, 2}, 4, 9);
    cr_expect_eq(s.leaves, 2);
    cr_expect_eq(s.damage, 0);
    cr_expect_eq(s.idle_left, 0, "%u idle", (unsigned)s.idle_left);
}
