/* Publishing to an API server, in virtual time, against simkube; after every
 * change of anything a reader looks at the pool. */
#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/publish/kube_objects.h"
#include "advertiser/publish/publish_kube.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/kworld.h"

#define SLICE KWORLD_SLICE
#define LEASE KWORLD_LEASE
#define NODE KWORLD_NODE

TestSuite(publish_kube, .init = kworld_begin, .fini = kworld_end);

Test(publish_kube, start_then_one_call_for_each_heartbeat)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    int64_t begun = kworld.now;
    kworld_run_until(f, begun + KUBE_TELL_MS - 1);
    cr_assert_str_eq(kworld_sent(0),
                     "GGOLO"); /* whoever watches sees it first */
    kworld_run_until(f, begun + KUBE_TELL_MS);
    cr_assert_str_eq(kworld_sent(0), "GGOLOA");
    cr_assert_eq(kworld_generation(), 1);
    kworld_assert_told();
    cr_assert_str_eq(kworld_holder(), "boot-1/a");
    cr_assert_eq(publisher_n_published(f), 1);
    const cJSON *slice = simkube_find(kworld.kube, SLICE, 0);
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(slice, "metadata");
    cleanup_free char *owners = cJSON_PrintUnformatted(
        cJSON_GetObjectItemCaseSensitive(meta, "ownerReferences"));
    cr_assert_str_eq(owners, "[{\"apiVersion\":\"v1\",\"kind\":\"Node\","
                             "\"name\":\"h\",\"uid\":\"uid-1\"}]");

    /* within one heartbeat the first, then each its pace */
    kworld_run_until(f, begun + 29000);
    cr_assert_eq(kworld.n_log, 9, "%s", kworld_sent(0));
    cr_assert_str_eq(kworld_sent(6), "PPP");
    cr_assert_leq(kworld.log[6].at, begun + 10001);
    cr_assert_eq(kworld.log[7].at - kworld.log[6].at, 10000);
    cr_assert_eq(kworld.log[8].at - kworld.log[7].at, 10000);
    publisher_destroy(f);
}

/* Many that start together do not go on together. */
Test(publish_kube, first_heartbeats_are_spread_evenly)
{
    enum { HOSTS = 500, BEAT_MS = 10000, BINS = 10 };
    int bins[BINS] = {0};
    for (int i = 0; i < HOSTS; i++) {
        kworld_end();
        kworld_begin();
        kworld.now += 7919 * i; /* another seed, as of another host */
        struct publisher *f = kworld_start(&kworld_config, 3, "a");
        int64_t begun = kworld.now;
        kworld_run_until(f, begun + BEAT_MS + 1);
        size_t n = 5; /* after GGOLO; a note on the Node is another's matter */
        while (n + 1 < kworld.n_log && kworld.log[n].method != 'P')
            n++;
        cr_assert_eq(kworld.log[n].method, 'P', "%s", kworld_sent(0));
        int64_t after = kworld.log[n].at - begun;
        bins[after * BINS / (BEAT_MS + 1)]++;
        publisher_destroy(f);
    }
    for (int i = 0; i < BINS; i++)
        cr_expect_leq(bins[i], 2 * HOSTS / BINS, "%d: %d", i, bins[i]);
}

Test(publish_kube, change_is_published_at_once_and_told)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + KUBE_TELL_MS);
    size_t before = kworld.n_log;
    kworld_update(f, 3, "a"); /* the same: nothing */
    kworld_run_until(f, kworld.now);
    cr_assert_eq(kworld.n_log, before);
    for (int i = 0; i < 5; i++) {
        char model[8];
        (void)snprintf(model, sizeof model, "m%d", i);
        before = kworld.n_log;
        kworld_update(f, 3, model);
        kworld_run_until(f, kworld.now);
        cr_assert_str_eq(kworld_sent(before), "PP");
        kworld_run_until(f, kworld.now + KUBE_TELL_MS);
        /* claimed in the Lease, written, told */
        cr_assert_str_eq(kworld_sent(before), "PPA");
        cr_assert_eq(kworld_generation(), 2 + i);
        kworld_assert_told();
    }
    publisher_destroy(f);
}

/* The reader looks after each step. */
Test(publish_kube, pools_grow_and_shrink_and_are_never_mixed)
{
    static const unsigned sizes[] = {3, 150, 150, 100, 3, 250, 65, 64, 0, 500};
    struct publisher *f = kworld_start(&kworld_config, 1, "start");
    kworld_run_until(f, kworld.now);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char model[8];
        (void)snprintf(model, sizeof model, "m%zu", i);
        kworld_update(f, sizes[i], model);
        kworld_run_until(f, kworld.now + KUBE_TELL_MS);
        cr_assert_eq(kworld_generation(), (int64_t)i + 2);
        cr_assert_eq(simkube_count(kworld.kube, SLICE),
                     sizes[i] ? (sizes[i] + 63) / 64 : 1);
        kworld_assert_told();
    }
    publisher_destroy(f);
}

Test(publish_kube, change_in_the_middle_of_a_round)
{
    for (int steps = 0; steps < 14; steps++) {
        struct publisher *f = kworld_start(&kworld_config, 150, "a");
        for (int i = 0; i < steps; i++)
            (void)publisher_step(f, kworld.now);
        kworld_update(f, steps % 2 ? 200 : 66, "b");
        kworld_run_until(f, kworld.now + KUBE_TELL_MS);
        kworld_assert_told();
        cr_assert_eq(simkube_count(kworld.kube, SLICE), steps % 2 ? 4 : 2);
        publisher_stop(f, true, kworld.now);
        kworld_run_until(f, kworld.now);
        cr_assert_eq(simkube_count(kworld.kube, SLICE), 0);
        cr_assert_eq(simkube_count(kworld.kube, LEASE), 0);
        publisher_destroy(f);
    }
}

Test(publish_kube, restart_keeps_or_raises_the_generation)
{
    static const struct {
        unsigned n_nics;
        const char *boot_id;
        bool raised;
    } starts[] = {{3, "boot-1", true},   {3, "boot-1", false},
                  {150, "boot-1", true}, {150, "boot-1", false},
                  {150, "boot-2", true}, {150, "boot-2", false},
                  {3, "boot-1", true}};
    int64_t last = 0;
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        char instance[8];
        struct publish_config c = kworld_config;
        (void)snprintf(instance, sizeof instance, "i%zu", i);
        c.boot_id = starts[i].boot_id;
        c.instance = instance;
        struct publisher *f = kworld_start(&c, starts[i].n_nics, "a");
        kworld_run_until(f, kworld.now + KUBE_TELL_MS);
        cr_expect_eq(kworld_generation() > last, starts[i].raised, "start %zu",
                     i);
        last = kworld_generation();
        cr_assert_str_eq(kworld_annotation(SLICE, SLICE_ANNOTATION_BOOT_ID),
                         starts[i].boot_id);
        kworld_assert_told();
        publisher_destroy(f); /* a kill: nothing is withdrawn */
    }
}

/* --- what others do to it ----------------------------------------------- */

Test(publish_kube, deleted_slices_are_back_and_told)
{
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_run_until(f, kworld.now + 5000);
    for (int i = 0; i < 3; i++) {
        simkube_delete(kworld.kube, i == 2 ? SLICE : SLICE "xpu.biga.dev-1");
        cleanup_free char *told =
            xstrdup(kworld_annotation(NODE, KUBE_OBJECTS_PUBLISHED));
        kworld_run_until(f, kworld.now + 60000);
        cr_assert_eq(simkube_count(kworld.kube, SLICE), 3);
        cr_assert_eq(kworld_generation(), i == 2 ? 2 : 1,
                     "the content is the same");
        cr_assert_str_neq(kworld_annotation(NODE, KUBE_OBJECTS_PUBLISHED),
                          told);
    }
    publisher_destroy(f);
}

Test(publish_kube, foreign_edits_are_healed_under_a_new_generation)
{
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_run_until(f, kworld.now + 5000);
    for (int64_t i = 0; i < 3; i++) {
        kworld_edit_spec(SLICE, (size_t)i);
        kworld_run_until(f, kworld.now + 60000);
        kworld.foreign = false;
        kworld_look(NULL);
        cr_assert_eq(kworld_generation(), 2 + i);
        kworld_assert_told();
    }
    /* the owner is put right in place */
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(
        simkube_find(kworld.kube, SLICE, 0), "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(meta, "ownerReferences");
    simkube_touch(kworld.kube, SLICE, 0);
    kworld_run_until(f, kworld.now + 60000);
    cr_assert_eq(kworld_generation(), 4);
    for (size_t i = 0; i < 3; i++)
        cr_assert_not_null(cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(
                simkube_find(kworld.kube, SLICE, i), "metadata"),
            "ownerReferences"));
    publisher_destroy(f);
}

Test(publish_kube, generations_of_others_are_gone_above)
{
    static const double values[] = {2,
                                    1000,
                                    2251799813685247.0,
                                    2251799813685248.0,
                                    4503599627370495.0,
                                    4503599627370496.0,
                                    3377699720527872.0};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct publisher *f = kworld_start(&kworld_config, 150, "a");
        kworld_run_until(f, kworld.now + 5000);
        kworld_set_generation(SLICE, values[i]);
        kworld_run_until(f, kworld.now + 120000);
        kworld.foreign = false;
        kworld_look(NULL);
        cr_assert_lt(kworld_generation(), (int64_t)1 << 53);
        kworld_assert_told();
        cr_assert_eq(simkube_count(kworld.kube, SLICE), 3);
        publisher_stop(f, true, kworld.now);
        kworld_run_until(f, kworld.now);
        publisher_destroy(f);
    }
}

/* Slices of our driver and node that nobody asked for. */
Test(publish_kube, foreign_slices_are_deleted)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 5000);
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "old-%u", i);
        kworld_add_foreign(name);
    }
    kworld_run_until(f, kworld.now + 61000);
    cr_assert_eq(simkube_count(kworld.kube, PUBLISH_COLLECTION), 1);
    kworld.foreign = false;
    kworld_look(NULL);
    kworld_assert_told();
    publisher_destroy(f);
}

Test(publish_kube, waits_for_its_node_and_follows_a_new_one)
{
    simkube_delete(kworld.kube, NODE);
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 100000);
    cr_assert_eq(simkube_count(kworld.kube, "/"), 0);
    cr_assert_lt(kworld.n_log, 20);
    simkube_add_node(kworld.kube, "h");
    kworld_run_until(f, kworld.now + 10000);
    kworld_assert_told();

    /* another Node of that name: with the collector, and without */
    for (int collect = 1; collect >= 0; collect--) {
        simkube_delete(kworld.kube, NODE);
        simkube_add_node(kworld.kube, "h");
        if (collect)
            simkube_collect(kworld.kube);
        kworld_run_until(f, kworld.now + 80000);
        size_t there = simkube_count(kworld.kube, "/");
        simkube_collect(kworld.kube); /* all have the right owner */
        cr_assert_eq(simkube_count(kworld.kube, "/"), there);
        cr_assert_eq(there, 3);
        kworld_assert_told();
    }
    publisher_destroy(f);
}

Test(publish_kube, lost_lease_is_written_again_and_told)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 15000);
    cleanup_free char *told =
        xstrdup(kworld_annotation(NODE, KUBE_OBJECTS_PUBLISHED));
    simkube_delete(kworld.kube, LEASE);
    kworld_run_until(f, kworld.now + 10000);
    cr_assert_str_eq(kworld_holder(), "boot-1/a");
    cr_assert_str_neq(kworld_annotation(NODE, KUBE_OBJECTS_PUBLISHED), told);
    cr_assert_eq(kworld_generation(), 1);
    publisher_destroy(f);
}

/* Whether its first Lease was written, nobody told it. */
Test(publish_kube, a_lease_that_was_taken_unheard_is_renewed)
{
    kworld.lost = 'O';
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 15000);
    cr_assert_eq(kworld.lost, 0);
    cr_assert_str_eq(kworld_holder(), "boot-1/a");
    size_t before = kworld.n_log, beats = 0;
    kworld_run_until(f, kworld.now + 200000);
    for (size_t i = before; i < kworld.n_log; i++)
        beats += kworld.log[i].method == 'P';
    cr_assert_eq(beats, 20, "%s", kworld_sent(before));
    publisher_destroy(f);
}

Test(publish_kube, outage_is_survived_and_the_return_is_told)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 30000);
    cleanup_free char *told =
        xstrdup(kworld_annotation(NODE, KUBE_OBJECTS_PUBLISHED));
    size_t before = kworld.n_log;
    kworld.down = true;
    kworld_run_until(f, kworld.now + 300000);
    cr_assert_leq(kworld.n_log - before, 60);
    cr_assert_geq(kworld.n_log - before, 30);
    kworld.down = false;
    kworld_run_until(f, kworld.now + 10000);
    cr_assert_str_neq(kworld_annotation(NODE, KUBE_OBJECTS_PUBLISHED), told);
    cr_assert_eq(kworld_generation(), 1);
    before = kworld.n_log;
    kworld_run_until(f, kworld.now + 200000);
    cr_assert_geq(kworld.n_log - before, 20 + 6);
    cr_assert_leq(kworld.n_log - before, 20 + 16, "%s", kworld_sent(before));
    publisher_destroy(f);
}

/* Whatever is refused is tried again, without haste, and works when it is
 * allowed. */
Test(publish_kube, refusals_are_tried_again)
{
    static const struct {
        const char *method, *part;
    } calls[] = {{"GET", NODE},
                 {"GET", LEASE},
                 {"POST", "/leases"},
                 {"PUT", LEASE},
                 {"GET", PUBLISH_COLLECTION "?"},
                 {"POST", PUBLISH_COLLECTION},
                 {"PATCH", NODE}};
    static const long statuses[] = {401, 403, 404, 409, 422, 429, 500, 503};
    for (size_t i = 0; i < ARRAY_LEN(calls) * ARRAY_LEN(statuses); i++) {
        size_t call = i / ARRAY_LEN(statuses);
        simkube_refuse(kworld.kube, calls[call].method, calls[call].part,
                       statuses[i % ARRAY_LEN(statuses)]);
        size_t before = kworld.n_log = 0;
        struct publisher *f = kworld_start(&kworld_config, 3, "a");
        kworld_run_until(f, kworld.now + 100000);
        cr_assert_leq(kworld.n_log - before, 150, "%s %s: %s",
                      calls[call].method, calls[call].part,
                      kworld_sent(before));
        simkube_refuse(kworld.kube, "", "", 0);
        kworld_run_until(f, kworld.now + 20000);
        kworld_assert_told();
        publisher_stop(f, true, kworld.now);
        kworld_run_until(f, kworld.now);
        cr_assert_eq(simkube_count(kworld.kube, "/"), 1, "only the Node");
        publisher_destroy(f);
    }
}

/* The slices are right: a heartbeat may say so, whatever else fails. */
Test(publish_kube, heartbeats_go_on_while_checks_and_notes_are_refused)
{
    static const char *const parts[] = {NODE, PUBLISH_COLLECTION "?"};
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 1000);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        simkube_refuse(kworld.kube, "", parts[i], 403);
        size_t before = kworld.n_log, beats = 0;
        kworld_run_until(f, kworld.now + 200000);
        for (size_t j = before; j < kworld.n_log; j++)
            beats += kworld.log[j].method == 'P';
        cr_assert_eq(beats, 20, "%s", kworld_sent(before));
        simkube_refuse(kworld.kube, "", "", 0);
    }
    publisher_destroy(f);
}

/* --- two of them -------------------------------------------------------- */

Test(publish_kube, newest_start_wins)
{
    struct publish_config other = kworld_config;
    other.instance = "b";
    other.boot_id = "boot-2";
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_run_until(f, kworld.now + 20000);
    struct publisher *g = kworld_start(&other, 100, "b");
    kworld_run_both(f, g, kworld.now + 200000);
    cr_assert_str_eq(kworld_holder(), "boot-2/b");
    cr_assert_eq(simkube_count(kworld.kube, SLICE), 2);
    kworld_assert_told();
    int64_t before = kworld_generation();
    kworld_update(f, 10, "c"); /* who was superseded writes nothing */
    kworld_run_both(f, g, kworld.now + 200000);
    cr_assert_eq(kworld_generation(), before);
    cr_assert_str_eq(kworld_annotation(SLICE, SLICE_ANNOTATION_BOOT_ID),
                     "boot-2");
    publisher_destroy(g); /* killed: 4 times 30 s later it is free */
    kworld_run_until(f, kworld.now + 90000);
    cr_assert_str_eq(kworld_holder(), "boot-2/b");
    kworld_run_until(f, kworld.now + 70000);
    cr_assert_str_eq(kworld_holder(), "boot-1/a");
    cr_assert_gt(kworld_generation(), before);
    cr_assert_eq(simkube_count(kworld.kube, SLICE), 1);
    kworld_assert_told();
    publisher_destroy(f);
}

/* A generation is claimed in the Lease first: that fails. */
Test(publish_kube, superseded_is_noticed_before_a_slice_is_written)
{
    struct publish_config other = kworld_config;
    other.instance = "b";
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_run_until(f, kworld.now + 1);
    kworld_update(f, 150, "b");
    kworld_run_until(f, kworld.now);
    struct publisher *g = kworld_start(&other, 150, "b");
    kworld_run_until(g, kworld.now);
    cr_assert_eq(kworld_generation(), 2, "nothing was to be written");
    size_t before = kworld.n_log;
    kworld_update(f, 150, "c");
    kworld_run_until(f, kworld.now);
    cr_assert_str_eq(kworld_sent(before), "PG");
    cr_assert(strstr(kworld.log[before].path, LEASE));
    cr_assert_eq(kworld_generation(), 2);
    publisher_destroy(f);
    publisher_destroy(g);
}

/* Who ends cleanly gives way at once; who was superseded deletes nothing. */
Test(publish_kube, clean_stop_gives_way)
{
    struct publish_config other = kworld_config;
    other.instance = "b";
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 20000);
    struct publisher *g = kworld_start(&other, 3, "a");
    kworld_run_both(f, g, kworld.now + 40000);
    cr_assert_str_eq(kworld_holder(), "boot-1/b");
    publisher_stop(g, true, kworld.now);
    kworld_run_until(g, kworld.now);
    cr_assert_eq(simkube_count(kworld.kube, "/"), 1);
    kworld_run_until(f, kworld.now + 30000);
    cr_assert_str_eq(kworld_holder(), "boot-1/a");
    kworld_assert_told();

    publisher_destroy(g);
    g = kworld_start(&other, 3, "a");
    kworld_run_until(g, kworld.now + 1000); /* f has not noticed yet */
    size_t before = simkube_count(kworld.kube, "/");
    publisher_stop(f, true, kworld.now);
    kworld_run_until(f, kworld.now);
    cr_assert_eq(simkube_count(kworld.kube, "/"), before);
    cr_assert_str_eq(kworld_holder(), "boot-1/b");
    cr_assert_not(publisher_left_slices(f));
    publisher_destroy(f);
    publisher_destroy(g);
}

/* --- stopping ----------------------------------------------------------- */

Test(publish_kube, stop_withdraws_the_first_slice_last_then_the_lease)
{
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_run_until(f, kworld.now + 1);
    size_t before = kworld.n_log;
    publisher_stop(f, true, kworld.now);
    kworld_run_until(f, kworld.now);
    cr_assert_str_eq(kworld_sent(before), "PDDDD");
    cr_assert(strstr(kworld.log[kworld.n_log - 2].path, "-0"));
    cr_assert(strstr(kworld.log[kworld.n_log - 1].path, LEASE));
    cr_assert_eq(simkube_count(kworld.kube, "/"), 1);
    cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
    cr_assert_not(publisher_left_slices(f));
    publisher_destroy(f);
}

Test(publish_kube, stop_during_an_outage_ends_and_says_so)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 1);
    kworld.down = true;
    publisher_stop(f, true, kworld.now);
    kworld_run_until(f, kworld.now);
    cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
    cr_assert(publisher_left_slices(f));
    publisher_destroy(f);

    f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 1000);
    publisher_stop(f, true, kworld.now); /* nothing was accepted yet */
    cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
    cr_assert_not(publisher_left_slices(f));
    publisher_destroy(f);
}

/* --- hints -------------------------------------------------------------- */

Test(publish_kube, hints_name_what_is_missing)
{
    static const struct {
        enum kube_state state;
        long status;
        const char *says;
    } rows[] = {
        {KUBE_NODE, 404, "--node"},
        {KUBE_NODE, 403, "get nodes"},
        {KUBE_TAKE, 404, "create the namespace biga-nodes"},
        {KUBE_BEAT, 403, "update leases"},
        {KUBE_LIST, 403, "list resourceslices"},
        {KUBE_LIST, 404, "1.34"},
        {KUBE_WRITE, 403, "create and update resourceslices"},
        {KUBE_PRUNE, 403, "delete resourceslices"},
        {KUBE_TELL, 403, "patch nodes"},
        {KUBE_LEASE, 401, "credentials"},
    };
    cleanup_str struct str text = STR_INIT(ERROR_TEXT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_machine k = {.config = &kworld_config,
                                 .state = rows[i].state};
        const struct publish_answer answer = {.status = rows[i].status};
        const char *hint = kube_hint(&k, &answer, &text);
        cr_assert_not_null(hint);
        cr_expect(strstr(hint, rows[i].says), "%s", hint);
    }
}

Test(publish_kube, hints_tell_of_credentials_of_another_node)
{
    cleanup_str struct str text = STR_INIT(ERROR_TEXT_MAX);
    cleanup_with(topo) struct topo *topo = kworld_make_topo(1, "x");
    const struct kube_machine k = {
        .config = &kworld_config, .state = KUBE_TAKE, .topo = topo};
    const struct publish_answer answer = {
        .status = 403,
        .error = "leases.coordination.k8s.io \"h\" is forbidden: "
                 "ValidatingAdmissionPolicy 'biga-advertiser' with binding "
                 "'biga-advertiser' denied request: an advertiser of node g "
                 "may only write the Lease biga-nodes/g"};
    const char *hint = kube_hint(&k, &answer, &text);
    cr_assert_not_null(hint);
    cr_expect(strstr(hint, "credentials of node h "), "%s", hint);
    cr_expect_null(strstr(hint, "allow us"), "%s", hint);
}
