/* What others do to the slices of an advertiser that has a watch, in virtual
 * time. */
#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/publish/publish_kube.h"
#include "tests/lib/sim/kworld.h"

#define SLICE KWORLD_SLICE

TestSuite(publish_kube_heal, .init = kworld_begin, .fini = kworld_end);

/* From the notice to the last call, and what was sent. */
static void assert_healed(struct publisher *f, const char *calls)
{
    size_t before = kworld.n_log;
    kworld_run_until(f, kworld.now + KUBE_HEAL_MS);
    cr_assert_str_eq(kworld_sent(before), calls);
    kworld.foreign = false;
    kworld_look(NULL);
    (void)kworld_generation(); /* it is whole */
}

Test(publish_kube_heal, what_others_do_is_put_right_at_once)
{
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_watch();
    kworld_run_until(f, kworld.now + 5000);
    simkube_delete(kworld.kube, SLICE); /* as a kubelet that starts */
    assert_healed(f, "GLPOOO");
    kworld_run_until(f, kworld.now + KUBE_TELL_MS);
    kworld_assert_told();
    kworld_run_until(
        f, kworld.now + 400000); /* heartbeats, checks; then it is a new one */

    simkube_delete(kworld.kube, SLICE "xpu.biga.dev-1");
    assert_healed(f, "GLO");
    kworld_run_until(f, kworld.now + 400000);
    kworld_edit_spec(SLICE, 1);
    assert_healed(f, "GLPPPP");
    kworld_run_until(f, kworld.now + 400000);
    kworld_set_generation(SLICE, 77);
    assert_healed(f, "GLPPPP");
    cr_assert_eq(kworld_generation(), 78);
    kworld_run_until(f, kworld.now + 400000);
    kworld_add_foreign("old-1");
    assert_healed(f, "GLD");
    kworld_run_until(f, kworld.now + KUBE_TELL_MS);
    kworld_assert_told();
    publisher_destroy(f);
}

/* What an advertiser writes itself is no news to it. */
Test(publish_kube_heal, its_own_writes_are_not_checked)
{
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_watch();
    for (unsigned i = 0; i < 4; i++) {
        size_t before = kworld.n_log;
        kworld_update(f, 150 - 50 * i, i % 2 ? "a" : "b");
        kworld_run_until(f, kworld.now + 3000);
        for (size_t j = before; i && j < kworld.n_log; j++)
            cr_expect_neq(kworld.log[j].method, 'L', "%s", kworld_sent(before));
    }
    publisher_destroy(f);
}

/* It happens while the slices are being written. */
Test(publish_kube_heal, what_is_noticed_during_a_round_is_checked_after_it)
{
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_watch();
    kworld_run_until(f, kworld.now + 5000);
    kworld_update(f, 150, "b");
    for (int i = 0; i < 3; i++) /* claimed, and two of them are written */
        cr_assert(publisher_step(f, kworld.now));
    simkube_delete(kworld.kube, SLICE "xpu.biga.dev-0");
    kworld_deliver(f);
    size_t before = kworld.n_log;
    kworld_run_until(f, kworld.now + KUBE_HEAL_MS);
    cr_assert_str_eq(kworld_sent(before), "PGLO");
    cr_assert_eq(simkube_count(kworld.kube, SLICE), 3);
    (void)kworld_generation();
    publisher_destroy(f);
}

/* After a gap of the watch nothing is sure. */
Test(publish_kube_heal, a_gap_is_looked_into)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 5000);
    simkube_delete(kworld.kube, SLICE);
    publisher_notice(f, 0, &(struct publish_notice){.name = "", .version = ""},
                     kworld.now);
    assert_healed(f, "GLPO");
    publisher_destroy(f);
}

/* How many lists there were since. */
static size_t n_lists(size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < kworld.n_log; i++)
        n += kworld.log[i].method == 'L';
    return n;
}

/* Somebody edits in a loop: it is put right again and again, but as often as
 * a heartbeat, and again at once when it has been quiet. */
Test(publish_kube_heal, a_fight_is_no_storm)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_watch();
    kworld_run_until(f, kworld.now + 5000);
    size_t before = kworld.n_log;
    for (int i = 0; i < 6000; i++) { /* ten minutes */
        kworld_edit_spec(SLICE, 0);
        kworld_run_until(f, kworld.now + 100);
    }
    cr_expect_geq(n_lists(before), 50, "it gives up");
    cr_expect_leq(n_lists(before), 150, "%s", kworld_sent(before));
    cr_expect_leq(kworld.n_log - before, 900, "%zu", kworld.n_log - before);
    kworld_run_until(f, kworld.now + 400000);
    for (int i = 0; i < 2; i++) { /* quick again, also the second time */
        kworld_edit_spec(SLICE, 0);
        assert_healed(f, "GLPP");
        kworld_run_until(f, kworld.now + 600);
    }
    publisher_destroy(f);
}

/* Who is superseded leaves it to the other. */
Test(publish_kube_heal, who_is_superseded_puts_nothing_right)
{
    struct publish_config other = kworld_config;
    other.instance = "b";
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 5000);
    struct publisher *g = kworld_start(&other, 3, "a");
    kworld_run_both(f, g, kworld.now + 30000);
    kworld_watch();
    kworld_edit_spec(SLICE, 0);
    size_t before = kworld.n_log;
    kworld_run_until(f, kworld.now + KUBE_HEAL_MS);
    cr_expect_str_eq(kworld_sent(before), "");
    publisher_destroy(f);
    publisher_destroy(g);
}

/* --- who may claim the devices ------------------------------------------- */

static cJSON *first_device(void)
{
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(
        simkube_find(kworld.kube, SLICE, 0), "spec");
    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(spec, "devices"),
                              0);
}

static bool is_tainted(void)
{
    return cJSON_GetObjectItemCaseSensitive(first_device(), "taints") != NULL;
}

/* A device that lost its taint may be given twice. */
Test(publish_kube_heal, a_taint_that_somebody_takes_away_is_put_back)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_watch();
    kworld_run_until(f, kworld.now + 5000);
    cr_assert(is_tainted());
    cJSON_DeleteItemFromObjectCaseSensitive(first_device(), "taints");
    simkube_touch(kworld.kube, SLICE, 0);
    assert_healed(f, "GLPP");
    cr_assert(is_tainted());
    publisher_destroy(f);
}

/* The API server gives each taint the time at which it was added. */
Test(publish_kube_heal, times_of_taints_are_no_edits)
{
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_watch();
    kworld_run_until(f, kworld.now + 5000);
    size_t before = kworld.n_log;
    simkube_touch(kworld.kube, SLICE, 0);
    assert_healed(f, "GL");
    kworld_run_until(f, kworld.now + 2 * KUBE_OFFER_MS);
    for (size_t i = before; i < kworld.n_log; i++)
        cr_assert_not(kworld.log[i].method == 'P' &&
                          strstr(kworld.log[i].path, SLICE),
                      "%s", kworld_sent(before));
    publisher_destroy(f);
}

/* How many slices were written since. */
static size_t n_written(size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < kworld.n_log; i++)
        n += strchr("PO", kworld.log[i].method) &&
             strstr(kworld.log[i].path, PUBLISH_COLLECTION);
    return n;
}

/* One whose feature gates are off keeps no taints: then there is nothing to
 * put right, but it is tried again, as it may be updated. */
Test(publish_kube_heal, what_the_server_leaves_out_is_offered_each_hour)
{
    simkube_set_given(kworld.kube, SIMKUBE_CUTS);
    struct publisher *f = kworld_start(&kworld_config, 150, "a");
    kworld_watch();
    kworld_run_until(f, kworld.now + 5000);
    cr_assert_eq(n_written(0), 3);
    kworld_run_until(f, kworld.now + KUBE_OFFER_MS - 100000);
    cr_assert_eq(n_written(0), 3);
    kworld_run_until(f, kworld.now + 200000);
    cr_assert_eq(n_written(0), 6);
    cr_assert_not(is_tainted());
    int64_t generation = kworld_generation();

    simkube_set_given(kworld.kube, SIMKUBE_KEEPS);
    kworld_run_until(f, kworld.now + KUBE_OFFER_MS + 100000);
    cr_assert(is_tainted());
    cr_assert_eq(n_written(0), 9);
    cr_assert_eq(kworld_generation(), generation);
    kworld_run_until(f, kworld.now + 3 * KUBE_OFFER_MS);
    cr_assert_eq(n_written(0), 9);
    publisher_destroy(f);
}

/* A new start knows nothing of what the server keeps: one write tells. */
Test(publish_kube_heal, a_start_where_things_are_left_out_settles)
{
    struct publish_config other = kworld_config;
    other.instance = "b";
    simkube_set_given(kworld.kube, SIMKUBE_CUTS);
    struct publisher *f = kworld_start(&kworld_config, 3, "a");
    kworld_run_until(f, kworld.now + 5000);
    publisher_stop(f, false, kworld.now);
    struct publisher *g = kworld_start(&other, 3, "a");
    size_t before = kworld.n_log;
    kworld_run_until(g, kworld.now + 200000);
    cr_assert_eq(n_written(before), 1, "%s", kworld_sent(before));
    (void)kworld_generation();
    publisher_destroy(f);
    publisher_destroy(g);
}
