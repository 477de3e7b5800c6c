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
