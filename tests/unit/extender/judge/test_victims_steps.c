/* What the search for victims takes at most, where no two nodes are alike:
 * filter is answered by the same thread. */
#include <criterion/criterion.h>
#include <time.h>

#include "extender/judge/schedule.h"
#include "extender/judge/victims.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/simstate.h"

enum {
    N_NODES = 400,
    N_CARDS = 16,
    SECONDS_MAX = 8, /* on a slow machine, under a sanitizer */
};

/* Pods that take any cards they like, a part of each. */
static void load_node(struct draft *draft, const struct node *base, unsigned i)
{
    unsigned n = 4 + roll(8);
    for (unsigned k = 0; k < n; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "pod-%u-%u", i, k);
        const struct node *node = draft_node(draft, base->name);
        struct demand d = sim_need(sim_pod(name, ROLE_HOST, "", 0),
                                   2 + roll(14), 512);
        d.cards = d.pair_cards = (uint8_t)(1 + roll(3));
        d.priority = roll(5);
        struct choice choice;
        uint16_t within = (uint16_t)(roll(65536) | roll(65536));
        if (decide(&node->state, &d, 0, within, &choice) == REASON_NONE)
            draft_allocate(draft, schedule_place(&d, node, &choice));
    }
}

static struct snapshot *load_all(struct writer *w)
{
    for (unsigned i = 0; i < N_NODES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "node%03u", i);
        cr_assert_eq(sim_publish(w, name, N_CARDS, "boot", 1), 0);
    }
    cleanup_with(snapshot) struct snapshot *idle = writer_snapshot(w);
    struct draft *draft = draft_create(idle);
    for (unsigned i = 0; i < N_NODES; i++)
        load_node(draft, snapshot_node(idle, i), i);
    return draft_commit(draft);
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

Test(victims_steps, a_large_job_is_answered_soon)
{
    struct victims_ask asks[N_NODES];
    struct victims victims[N_NODES] = {0};
    (void)chance_init();
    log_set_level(LOG_ERROR);
    struct writer *w = sim_writer(NULL);
    struct snapshot *s = load_all(w);
    struct demand d = sim_need(sim_member("big-0", ROLE_HOST, "big", 0, 30000),
                               5, 512);
    d.cards = d.pair_cards = 2;
    d.priority = 10;
    for (int32_t i = 0; i < N_NODES; i++)
        asks[i] = (struct victims_ask){.node = i};
    double begin = seconds();
    victims_find(s, &d, asks, N_NODES, victims);
    double took = seconds() - begin;
    cr_expect_lt(took, SECONDS_MAX, "%.1f s", took);
    for (size_t i = 0; i < N_NODES; i++)
        victims_fini(&victims[i]);
    snapshot_unref(s);
    writer_stop(w);
}
