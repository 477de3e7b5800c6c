/* Replays: small ones whose outcome is known by hand, and what has to hold
 * of any. */
#include <criterion/criterion.h>
#include <string.h>

#include "bench/replay/costs_text.h"
#include "bench/replay/report.h"
#include "lib/base/json.h"

#define cleanup_trace __attribute__((__cleanup__(trace_cleanup_p)))

static void make_fleet_of(const char *shape, size_t hosts, const char *fabric,
                          struct replay_fleet *f)
{
    const struct fleet_config config = {
        .hosts = hosts, .cards = 8, .shapes = shape, .fabric = fabric};
    struct error err = {0};
    cr_assert_eq(replay_fleet_init(f, &config, &err), 0, "%s", err.text);
}

static void make_fleet(size_t hosts, const char *fabric, struct replay_fleet *f)
{
    make_fleet_of("dell-xe9680-bf3", hosts, fabric, f);
}

static struct costs_model read_costs(void)
{
    struct costs_model m;
    struct error err = {0};
    cr_assert_eq(costs_read("costs", replay_costs_text,
                            strlen(replay_costs_text), &m, &err),
                 0, "%s", err.text);
    return m;
}

/* --- the fleet ---------------------------------------------------------- */

Test(fleet, has_the_cards_that_are_asked_for)
{
    struct replay_fleet f;
    make_fleet(10, "leaf=4,spine=2", &f);
    cr_assert_eq(f.n, 10);
    cr_assert_eq(f.n_cards, 80); /* the ninth, of a model of its own, is out */
    cr_assert_eq(f.n_gpus, 80);
    cr_assert_eq(f.n_leaves, 3);
    cr_assert_eq(snapshot_leaf(f.idle, 0), snapshot_leaf(f.idle, 3));
    cr_assert_neq(snapshot_leaf(f.idle, 3), snapshot_leaf(f.idle, 4));
    for (unsigned c = 0; c < 8; c++) /* each beside a GPU of its own */
        cr_assert_eq(f.kinds[0].shape->card_gpu[c][c], RELATION_PIX);
    replay_fleet_fini(&f);
}

Test(fleet, refuses_what_it_does_not_know)
{
    static const struct fleet_config wrong[] = {
        {.hosts = 1, .shapes = "no-such-host", .fabric = "none"},
        {.hosts = 1, .shapes = "nvidia-dgx-h100", .fabric = "none"},
        {.hosts = 1, .shapes = "dell-xe9680-bf3", .fabric = "leaf=0"},
        {.hosts = 1, .shapes = "./no-such.host", .fabric = "none"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct replay_fleet f;
        struct error err = {0};
        cr_assert_lt(replay_fleet_init(&f, &wrong[i], &err), 0);
        cr_assert(err.text[0]);
    }
}

static unsigned worst_by_definition(const struct topo *topo, unsigned cards,
                                    unsigned gpus)
{
    size_t first_card, first_gpu;
    size_t n_cards = topo_count(topo, DEVICE_CARD, &first_card);
    size_t n_gpus = topo_count(topo, DEVICE_GPU, &first_gpu);
    unsigned worst = 0;
    for (size_t side = 0; side < 2; side++)
        for (size_t a = 0; a < (side ? n_gpus : n_cards); a++) {
            unsigned best = RELATION_COUNT;
            if (!((side ? gpus : cards) >> a & 1))
                continue;
            for (size_t b = 0; b < (side ? n_cards : n_gpus); b++) {
                size_t card = first_card + (side ? b : a);
                size_t gpu = first_gpu + (side ? a : b);
                if (!((side ? cards : gpus) >> b & 1))
                    continue;
                unsigned r = topo_relation(topo, card, gpu);
                best = r < best ? r : best;
            }
            worst = best > worst ? best : worst;
        }
    return worst;
}

Test(fleet, rates_devices_by_definition)
{
    struct replay_fleet f;
    uint64_t random = 5;
    make_fleet(1, "none", &f);
    for (int i = 0; i < 500; i++) {
        uint16_t cards = (uint16_t)(random_below(&random, 255) + 1);
        uint16_t gpus = (uint16_t)(random_below(&random, 255) + 1);
        struct choice choice;
        kind_rate(&f.kinds[0], cards, gpus, &choice);
        cr_assert_eq(choice.relation,
                     worst_by_definition(f.kinds[0].topo, cards, gpus));
    }
    replay_fleet_fini(&f);
}

Test(fleet, rates_as_the_decision_does)
{
    struct replay_fleet f;
    uint64_t random = 6;
    make_fleet(1, "none", &f);
    const struct host_kind *k = &f.kinds[0];
    for (int i = 0; i < 500; i++) {
        struct node_state state = k->idle;
        struct choice choice, rated;
        uint8_t n = (uint8_t)(random_below(&random, 4) + 1);
        struct demand d = {.role = ROLE_HOST,
                           .cards = n,
                           .pair_cards = n,
                           .gpus = random_below(&random, 2) ? n : 0,
                           .align = RELATION_SYS};
        state.usable &= (uint16_t)random_u64(&random);
        state.gpus_used = (uint16_t)(random_u64(&random) & k->gpus);
        if (decide(&state, &d, 0, UINT16_MAX, &choice) != REASON_NONE)
            continue;
        kind_rate(k, choice.cards, choice.gpus, &rated);
        cr_assert_eq(rated.relation, choice.relation);
        cr_assert_eq(rated.numa, choice.numa);
    }
    replay_fleet_fini(&f);
}

/* --- policies ----------------------------------------------------------- */

/* Nothing is given twice, and each pair gets what it asks for. */
static void check_spots(const struct replay_fleet *f,
                        const struct replay_job *job, const struct spot *spots)
{
    cleanup_free uint16_t *cards = xcalloc(f->n, sizeof *cards);
    cleanup_free uint16_t *gpus = xcalloc(f->n, sizeof *gpus);
    for (uint32_t r = 0; r < job->pairs; r++) {
        int32_t node = spots[r].node;
        cr_assert(node >= 0 && (size_t)node < f->n);
        cr_assert_eq(__builtin_popcount(spots[r].cards), job->cards);
        cr_assert_eq(__builtin_popcount(spots[r].gpus), job->cards);
        cr_assert_eq(cards[node] & spots[r].cards, 0);
        cr_assert_eq(gpus[node] & spots[r].gpus, 0);
        cards[node] |= spots[r].cards;
        gpus[node] |= spots[r].gpus;
    }
}

Test(policy, all_place_all_pairs_or_none)
{
    struct replay_fleet f;
    make_fleet(6, "leaf=2,spine=2", &f);
    for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
        struct spot spots[64];
        struct chooser c;
        const struct replay_job jobs[] = {
            {.pairs = 48, .cards = 1}, {.pairs = 24, .cards = 2},
            {.pairs = 6, .cards = 8},  {.pairs = 1, .cards = 3},
            {.pairs = 12, .cards = 4},
        };
        const struct replay_job too_much = {.pairs = 7, .cards = 8};
        chooser_init(&c, (enum replay_policy)policy, &f, true, 1);
        for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
            /* cards of three do not fill a host, and chance may not fill it
             * either, but here each size divides eight */
            cr_assert(chooser_place(&c, f.idle, &jobs[i], i, spots), "%s",
                      replay_policy_name(policy));
            check_spots(&f, &jobs[i], spots);
        }
        cr_assert_not(chooser_place(&c, f.idle, &too_much, 9, spots));
        chooser_fini(&c);
    }
    replay_fleet_fini(&f);
}

Test(policy, first_fit_takes_the_first)
{
    struct replay_fleet f;
    struct spot spots[9];
    struct chooser c;
    const struct replay_job job = {.pairs = 9, .cards = 1};
    make_fleet(2, "none", &f);
    chooser_init(&c, POLICY_FIRST_FIT, &f, true, 1);
    cr_assert(chooser_place(&c, f.idle, &job, 0, spots));
    for (unsigned r = 0; r < 9; r++) {
        cr_assert_eq(spots[r].node, r / 8);
        cr_assert_eq(spots[r].cards, 1u << r % 8);
        cr_assert_eq(spots[r].gpus, 1u << r % 8);
    }
    chooser_fini(&c);
    replay_fleet_fini(&f);
}

Test(policy, names_are_read)
{
    unsigned bits = 0;
    struct error err = {0};
    cr_assert_eq(replay_policies_parse("biga,random", &bits, &err), 0);
    cr_assert_eq(bits, 1u << POLICY_BIGA | 1u << POLICY_RANDOM);
    cr_assert_eq(replay_policies_parse("all", &bits, &err), 0);
    cr_assert_eq(bits, (1u << POLICY_COUNT) - 1);
    cr_assert_lt(replay_policies_parse("biga,best", &bits, &err), 0);
    cr_assert(
        strstr(err.text, "--policies: has \"best\", may have all, random"),
        "%s", err.text);
}

/* --- time --------------------------------------------------------------- */

#define S 1000000

/* One host: a job that fills it, then a small one, then one that fills it,
 * then one card. */
static struct replay_job by_hand[] = {
    {.arrival_us = 0, .duration_us = 10 * S, .pairs = 8, .cards = 1},
    {.arrival_us = 1 * S, .duration_us = 5 * S, .pairs = 1, .cards = 2},
    {.arrival_us = 2 * S, .duration_us = 10 * S, .pairs = 8, .cards = 1},
    {.arrival_us = 3 * S, .duration_us = 1 * S, .pairs = 1, .cards = 1},
};

static void run(struct replay_config *config, const struct trace *trace,
                enum replay_policy policy, struct replay_result *r)
{
    static struct costs_model costs;
    static struct profile profile;
    costs = read_costs();
    profile_default(&profile);
    config->trace = trace;
    config->costs = &costs;
    config->profile = &profile;
    config->want_gpus = true;
    replay_run(config, policy, r);
}

static void run_by_hand(bool loss, bool backfill, enum replay_policy policy,
                        struct replay_result *r)
{
    struct replay_fleet f;
    struct trace trace = {.jobs = by_hand, .n = ARRAY_LEN(by_hand)};
    make_fleet(1, "none", &f);
    struct replay_config config = {
        .fleet = &f, .loss = loss, .backfill = backfill};
    run(&config, &trace, policy, r);
    replay_fleet_fini(&f);
}

Test(replay, first_come_first_served)
{
    for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
        struct replay_result r;
        run_by_hand(false, false, (enum replay_policy)policy, &r);
        /* 0 to 10, 10 to 15, 15 to 25, 25 to 26: waits of 0, 9, 13, 22 */
        cr_assert_eq(r.started, 4);
        cr_assert_eq(r.makespan_us, 26 * S);
        cr_assert_eq(r.wait_p50_us, 9 * S);
        cr_assert_float_eq(r.wait_mean_us, 11 * S, 1);
        cr_assert_float_eq(r.utilisation, 1, 1e-9);
        cr_assert_eq(r.pairs, 18);
        cr_assert_eq(r.by_cards[1].started, 3);
        cr_assert_eq(r.by_cards[2].started, 1);
        replay_result_fini(&r);
    }
}

Test(replay, backfill_lets_small_jobs_pass)
{
    struct replay_result r;
    run_by_hand(false, true, POLICY_BIGA, &r);
    /* the last starts with the second, at 10: waits of 0, 9, 13, 7 */
    cr_assert_eq(r.makespan_us, 25 * S);
    cr_assert_float_eq(r.wait_mean_us, 7.25 * S, 1);
    replay_result_fini(&r);
}

Test(replay, loss_turns_away)
{
    struct replay_result r;
    run_by_hand(true, false, POLICY_BIGA, &r);
    cr_assert_eq(r.started, 1);
    cr_assert_eq(r.rejected, 3);
    cr_assert_eq(r.makespan_us, 10 * S);
    cr_assert_eq(r.pairs, 8);
    cr_assert_eq(r.aligned, 8);
    cr_assert_eq(r.by_relation[RELATION_PIX], 8);
    cr_assert_eq(r.leaves, 1);
    cr_assert_eq(r.crossings, 0);
    cr_assert_eq(r.by_tier[COST_NODE], 1);
    replay_result_fini(&r);
}

Test(replay, what_never_fits_is_given_up)
{
    struct replay_fleet f;
    struct replay_job jobs[] = {
        {.arrival_us = 0, .duration_us = S, .pairs = 9, .cards = 1},
        {.arrival_us = 0, .duration_us = S, .pairs = 1, .cards = 8},
        {.arrival_us = 0, .duration_us = S, .pairs = 1, .cards = 9},
        {.arrival_us = 5 * S, .duration_us = S, .pairs = 1, .cards = 1},
    };
    struct trace trace = {.jobs = jobs, .n = ARRAY_LEN(jobs)};
    make_fleet(1, "none", &f);
    for (unsigned policy = 0; policy < POLICY_COUNT; policy++) {
        struct replay_config config = {.fleet = &f};
        struct replay_result r;
        run(&config, &trace, (enum replay_policy)policy, &r);
        cr_assert_eq(r.started, 2);
        cr_assert_eq(r.impossible, 2);
        cr_assert_eq(r.makespan_us, 6 * S);
        replay_result_fini(&r);
    }
    replay_fleet_fini(&f);
}

Test(replay, counts_the_room_that_is_left)
{
    struct replay_fleet f;
    struct replay_job jobs[] = {
        {.arrival_us = 0, .duration_us = 99 * S, .pairs = 1, .cards = 4},
        {.arrival_us = 0, .duration_us = 99 * S, .pairs = 1, .cards = 8},
        {.arrival_us = 10 * S, .duration_us = S, .pairs = 1, .cards = 1},
    };
    struct trace trace = {.jobs = jobs, .n = ARRAY_LEN(jobs)};
    struct replay_config config = {.fleet = &f};
    struct replay_result r;
    make_fleet(4, "leaf=2", &f);
    run(&config, &trace, POLICY_BIGA, &r);
    cr_assert_eq(r.n_samples, REPLAY_SAMPLES);
    for (size_t i = 0; i < r.n_samples; i++) {
        /* 20 cards: 4 and 16 below the two leaves, or 12 and 8 */
        cr_assert_eq(r.samples[i].pairs, 20);
        cr_assert_eq(r.samples[i].jobs, 2);
        cr_assert_eq(r.samples[i].hosts, 2);
        cr_assert_float_eq(r.samples[i].used, 12 / 32.0, 1e-9);
    }
    replay_result_fini(&r);
    replay_fleet_fini(&f);
}

/* --- what is achieved ---------------------------------------------------- */

/* Eight cards and GPUs, two of each behind a switch, two switches to a NUMA
 * node. */
#define TWO_PER_SWITCH "bench/replay/two-per-switch.host"

/* One card at 0 s and one for long; the first is gone when two pairs of two
 * cards come.  They are promised a whole switch each; the plugin has the
 * first one's GPU left to give them, and those of the first NUMA node. */
static struct replay_job left_over[] = {
    {.arrival_us = 0, .duration_us = 2 * S, .pairs = 1, .cards = 1},
    {.arrival_us = 1 * S, .duration_us = 99 * S, .pairs = 1, .cards = 1},
    {.arrival_us = 3 * S, .duration_us = 10 * S, .pairs = 2, .cards = 2},
};

static void run_left_over(enum gpus_by by, struct replay_result *r)
{
    struct replay_fleet f;
    struct trace trace = {.jobs = left_over, .n = ARRAY_LEN(left_over)};
    struct replay_config config = {.fleet = &f, .gpus_by = by};
    make_fleet_of(TWO_PER_SWITCH, 1, "none", &f);
    run(&config, &trace, POLICY_BIGA, r);
    replay_fleet_fini(&f);
}

Test(achieved, a_plugin_gives_the_gpus_of_another_switch)
{
    struct replay_result r;
    run_left_over(GPUS_BY_PLUGIN, &r);
    cr_assert_eq(r.by_relation[RELATION_PIX], 4);
    /* their cards are on the second NUMA node, all but one of the GPUs that
     * the plugin gives are on the first */
    cr_assert_eq(r.achieved_by_relation[RELATION_PIX], 2);
    cr_assert_eq(r.achieved_by_relation[RELATION_SYS], 2);
    cr_assert_float_eq(replay_bandwidth_ratio(&r), (1 + 25000 / 46590.0) / 2,
                       1e-12);
    cr_assert_eq(r.farther, 2);
    cr_assert_eq(r.nearer, 0);
    cr_assert_eq(r.achieved_aligned, r.aligned - 2);
    cr_assert_eq(r.achieved_comm_s[0], 0);
    cr_assert_gt(r.achieved_comm_s[2], r.comm_s[2]);
    cr_assert_float_eq(replay_achieved_ratio(&r, 3),
                       r.achieved_comm_s[2] / r.comm_s[2], 1e-12);
    replay_result_fini(&r);
}

Test(achieved, claims_pin_them)
{
    struct replay_result r;
    run_left_over(GPUS_BY_CLAIMS, &r);
    cr_assert_eq(r.achieved_by_relation[RELATION_PIX], 4);
    cr_assert_eq(r.farther + r.nearer, 0);
    cr_assert_eq(r.achieved_aligned, r.aligned);
    cr_assert_eq(replay_bandwidth_ratio(&r), 1);
    cr_assert_eq(replay_achieved_ratio(&r, 3), 1);
    replay_result_fini(&r);
}

static void run_busy(const struct replay_fleet *f, const struct trace *trace,
                     enum gpus_by by, enum replay_policy policy,
                     struct replay_result *r)
{
    struct replay_config config = {
        .fleet = f, .backfill = true, .gpus_by = by, .seed = 3};
    run(&config, trace, policy, r);
}

Test(achieved, is_the_promise_with_claims_and_moves_nobody_with_a_plugin)
{
    struct replay_fleet f;
    cleanup_trace struct trace trace = {0};
    struct error err = {0};
    uint64_t farther = 0;
    make_fleet_of(TWO_PER_SWITCH, 12, "leaf=4,spine=2", &f);
    cr_assert_eq(trace_generate("mpi:jobs=150,load=0.9,sizes=1:1,2:1,4:1", 3,
                                f.n_cards, &trace, &err),
                 0, "%s", err.text);
    for (unsigned i = 0; i < POLICY_COUNT; i++) {
        struct replay_result pinned, given;
        size_t size = trace.n * sizeof *pinned.comm_s;
        run_busy(&f, &trace, GPUS_BY_CLAIMS, (enum replay_policy)i, &pinned);
        run_busy(&f, &trace, GPUS_BY_PLUGIN, (enum replay_policy)i, &given);
        cr_assert_arr_eq(pinned.achieved_by_relation, pinned.by_relation,
                         sizeof pinned.by_relation);
        cr_assert_arr_eq(pinned.achieved_comm_s, pinned.comm_s, size);
        cr_assert_eq(pinned.achieved_aligned, pinned.aligned);
        cr_assert_eq(pinned.farther + pinned.nearer, 0);
        cr_assert_arr_eq(given.by_relation, pinned.by_relation,
                         sizeof pinned.by_relation);
        cr_assert_arr_eq(given.comm_s, pinned.comm_s, size);
        cr_assert_eq(given.makespan_us, pinned.makespan_us);
        farther += given.farther;
        replay_result_fini(&pinned);
        replay_result_fini(&given);
    }
    cr_assert_gt(farther, 0, "else this says nothing");
    replay_fleet_fini(&f);
}

/* --- whole runs --------------------------------------------------------- */

static void replay_all(uint64_t seed, struct str *json, struct str *html)
{
    struct replay_fleet f;
    cleanup_trace struct trace trace = {0};
    struct replay_result results[POLICY_COUNT];
    struct error err = {0};
    struct replay_config config = {.fleet = &f, .seed = seed};
    make_fleet(40, "leaf=8,spine=2", &f);
    cr_assert_eq(
        trace_generate("mpi:jobs=60,load=0.9", seed, f.n_cards, &trace, &err),
        0);
    for (unsigned i = 0; i < POLICY_COUNT; i++)
        run(&config, &trace, (enum replay_policy)i, &results[i]);
    const struct replay_result *biga = &results[POLICY_BIGA];
    for (unsigned i = 0; i < POLICY_COUNT; i++) {
        const struct replay_result *r = &results[i];
        cr_assert_eq(r->started + r->impossible, 60);
        cr_assert_leq(r->aligned * biga->pairs, biga->aligned * r->pairs, "%s",
                      replay_policy_name(i));
        cr_assert_geq(r->crossings * biga->gangs, biga->crossings * r->gangs,
                      "%s", replay_policy_name(i));
    }
    const struct replay_report report = {.config = &config,
                                         .results = results,
                                         .n = POLICY_COUNT,
                                         .trace = "a<b>&\"c\"",
                                         .shapes = "dell-xe9680-bf3",
                                         .fabric = "leaf=8,spine=2",
                                         .profile = "own"};
    report_json(&report, json);
    report_html(&report, html);
    for (unsigned i = 0; i < POLICY_COUNT; i++)
        replay_result_fini(&results[i]);
    replay_fleet_fini(&f);
}

Test(replay, the_same_seed_gives_the_same_bytes)
{
    struct str json[3], html[3];
    for (unsigned i = 0; i < 3; i++) {
        json[i] = html[i] = STR_INIT(1 << 24);
        replay_all(i < 2 ? 4 : 5, &json[i], &html[i]);
    }
    cr_assert_str_eq(str_text(&json[0]), str_text(&json[1]));
    cr_assert_str_eq(str_text(&html[0]), str_text(&html[1]));
    cr_assert_str_neq(str_text(&json[0]), str_text(&json[2]));
    cJSON *parsed = NULL;
    struct error err = {0};
    cr_assert_eq(json_parse(str_text(&json[0]), json[0].size, &parsed, &err), 0,
                 "%s", err.text);
    cJSON_Delete(parsed);
    cr_assert(strstr(str_text(&html[0]), "a&lt;b&gt;&amp;&quot;c&quot;"));
    cr_assert_null(strstr(str_text(&html[0]), "http"));
    for (unsigned i = 0; i < 3; i++) {
        str_fini(&json[i]);
        str_fini(&html[i]);
    }
}
