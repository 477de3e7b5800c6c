/* What pairs ask of hosts and of shared cards: charged by every policy, and
 * never more than there is. */
#include <criterion/criterion.h>
#include <string.h>

#include "bench/replay/costs_text.h"
#include "bench/replay/engine.h"

enum { HOSTS = 2, CARDS = 8, CORES = 8, CPUS = 224, MOST = 64 };

static void make_fleet(struct replay_fleet *f)
{
    const struct fleet_config config = {.hosts = HOSTS,
                                        .cards = CARDS,
                                        .shapes = "dell-xe9680-bf3",
                                        .fabric = "leaf=1,spine=2"};
    struct error err = {0};
    cr_assert_eq(replay_fleet_init(f, &config, &err), 0, "%s", err.text);
    cr_assert_eq(f->card_cores, CORES);
}

/* Every policy places as many pairs as there is room for, and not one more. */
static void check_room(const struct replay_fleet *f, struct replay_job job,
                       bool gpus, uint32_t room, struct spot *ret_last)
{
    for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
        struct chooser c;
        chooser_init(&c, (enum replay_policy)policy, f, gpus, 1);
        job.pairs = room;
        cr_assert(chooser_place(&c, f->idle, &job, 0, ret_last), "%s",
                  replay_policy_name(policy));
        job.pairs = room + 1;
        cr_assert_not(chooser_place(&c, f->idle, &job, 1, ret_last), "%s",
                      replay_policy_name(policy));
        chooser_fini(&c);
    }
}

Test(left, cpus_of_hosts_are_charged)
{
    struct replay_fleet f;
    struct spot spots[MOST];
    struct replay_job job = {.cards = 1, .cpu_milli = 60000};
    make_fleet(&f);
    check_room(&f, job, true, HOSTS * CARDS, spots); /* nobody knows of them */
    replay_fleet_charge_hosts(&f);
    check_room(&f, job, true, HOSTS * (CPUS / 60), spots);
    job = (struct replay_job){.cards = 1, .memory_mib = 512 << 10};
    check_room(&f, job, true, HOSTS * 4, spots); /* of 2 TiB */
    replay_fleet_fini(&f);
}

Test(left, cards_are_shared_by_cores_and_memory)
{
    struct replay_fleet f;
    struct spot spots[MOST];
    make_fleet(&f);
    struct replay_job job = {.cards = 1, .card_cores = 3};
    check_room(&f, job, false, HOSTS * CARDS * (CORES / 3), spots);
    job.card_memory_mib = 16 << 10; /* all of it */
    check_room(&f, job, false, HOSTS * CARDS, spots);
    job.card_cores = CORES + 1;
    for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
        struct chooser c;
        chooser_init(&c, (enum replay_policy)policy, &f, false, 1);
        job.pairs = 1;
        cr_assert_not(chooser_place(&c, f.idle, &job, 0, spots));
        chooser_fini(&c);
    }
    replay_fleet_fini(&f);
}

Test(left, pairs_of_one_job_fill_a_card)
{
    struct replay_fleet f;
    struct spot spots[MOST];
    const struct replay_job job = {.pairs = 2, .cards = 1, .card_cores = 4};
    struct chooser c;
    make_fleet(&f);
    chooser_init(&c, POLICY_FIRST_FIT, &f, false, 1);
    cr_assert(chooser_place(&c, f.idle, &job, 0, spots));
    cr_assert_eq(spots[0].node, 0);
    cr_assert_eq(spots[1].node, 0);
    cr_assert_eq(spots[0].cards, 1);
    cr_assert_eq(spots[1].cards, 1);
    chooser_fini(&c);
    replay_fleet_fini(&f);
}

/* --- over time ---------------------------------------------------------- */

static void replay(const struct replay_fleet *f, struct replay_job *jobs,
                   size_t n, enum replay_policy policy,
                   struct replay_result *ret_result)
{
    static struct costs_model costs;
    static struct profile profile;
    struct error err = {0};
    const struct trace trace = {.jobs = jobs, .n = n};
    cr_assert_eq(costs_read("costs", replay_costs_text,
                            strlen(replay_costs_text), &costs, &err),
                 0, "%s", err.text);
    profile_default(&profile);
    const struct replay_config config = {
        .fleet = f, .trace = &trace, .costs = &costs, .profile = &profile};
    replay_run(&config, policy, ret_result);
}

#define S 1000000

Test(left, shared_cards_are_full_when_their_cores_are)
{
    struct replay_fleet f;
    make_fleet(&f);
    /* 32 pairs of half a card, then one of a quarter, and one of a whole card,
     * which nobody shares */
    struct replay_job jobs[] = {
        {.duration_us = 10 * S, .pairs = 32, .cards = 1, .card_cores = 4},
        {.duration_us = 10 * S, .pairs = 1, .cards = 1, .card_cores = 2},
        {.duration_us = 10 * S, .pairs = 15, .cards = 1},
        {.arrival_us = 5 * S, .duration_us = S, .pairs = 1, .cards = 1},
    };
    for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
        struct replay_result r;
        replay(&f, jobs, 4, (enum replay_policy)policy, &r);
        cr_assert_eq(r.started, 4);
        cr_assert_eq(r.makespan_us, 21 * S, "%s: %ld",
                     replay_policy_name(policy), (long)r.makespan_us);
        cr_assert_float_eq(r.utilisation, 1, 1e-9); /* while jobs arrive */
        replay_result_fini(&r);
    }
    replay_fleet_fini(&f);
}

Test(left, cpus_come_back)
{
    struct replay_fleet f;
    make_fleet(&f);
    replay_fleet_charge_hosts(&f);
    struct replay_job jobs[] = {
        {.duration_us = 10 * S, .pairs = 2, .cards = 1, .cpu_milli = 200000},
        {.duration_us = 10 * S, .pairs = 2, .cards = 1, .cpu_milli = 24000},
        {.duration_us = 10 * S, .pairs = 1, .cards = 1, .cpu_milli = 1000},
        {.duration_us = 10 * S, .pairs = 1, .cards = 1, .cpu_milli = 225000},
    };
    for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
        struct replay_result r;
        replay(&f, jobs, 4, (enum replay_policy)policy, &r);
        cr_assert_eq(r.started, 3, "%s", replay_policy_name(policy));
        cr_assert_eq(r.impossible, 1);
        cr_assert_eq(r.makespan_us, 20 * S);
        replay_result_fini(&r);
    }
    replay_fleet_fini(&f);
}
