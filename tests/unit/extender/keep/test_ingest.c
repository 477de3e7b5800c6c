#include "extender/keep/ingest.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "model/topo/topo_hardware.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

/* More devices than one slice may list: 16 cards, 16 GPUs, 100 nics. */
enum { NICS = 50 };

static int64_t now_ms;
static struct ingest *x;
static struct draft *d;

static void set_up(void)
{
    struct snapshot *empty = snapshot_create_empty();
    now_ms = 7;
    x = ingest_create();
    d = draft_create(empty);
    snapshot_unref(empty);
}

static void tear_down(void)
{
    ingest_destroy(x);
    draft_destroy(d);
}

TestSuite(ingest, .init = set_up, .fini = tear_down);

static int put_json(const char *json, struct ingest_result *ret_result,
                    struct error *err)
{
    cleanup_with(slice) struct slice *slice = NULL;
    cr_assert_eq(slice_decode(json, strlen(json), &slice, err), 0, "%s",
                 err->text);
    return ingest_put(x, slice, now_ms, d, ret_result, err);
}

static int put_expect(const char *node, unsigned n_cards, const char *boot,
                      int64_t generation, struct ingest_result *ret_result)
{
    struct error err = {0};
    cleanup_free char *json = sim_slice(node, n_cards, boot, generation, 0);
    int e = put_json(json, ret_result, &err);
    cr_expect(e == 0 || (err.code == -e && strstr(err.text, node)), "%s",
              err.text);
    return e;
}

static int put(const char *node, unsigned n_cards, const char *boot,
               int64_t generation)
{
    struct ingest_result r = {0};
    int e = put_expect(node, n_cards, boot, generation, &r);
    ingest_result_fini(&r);
    return e;
}

static int delete_slice(const char *node, size_t index)
{
    char name[SLICE_NAME_MAX + 1];
    struct error err = {0};
    slice_name(node, index, name);
    return ingest_delete(x, name, d, &err);
}

Test(ingest, takes_the_newest_generation)
{
    cr_expect_eq(put("n1", 2, "boot", 5), 0);
    cr_expect_eq(put("n1", 2, "boot", 4), -ESTALE);
    cr_expect_eq(put("n1", 2, "boot", 5), 0, "the same again");
    cr_expect_eq(put("n1", 4, "boot", 5), -ESTALE, "other content");
    cr_expect_eq(draft_node(d, "n1")->shape->n_cards, 2);
    cr_expect_eq(put("n1", 4, "boot", 6), 0);
    cr_expect_eq(draft_node(d, "n1")->shape->n_cards, 4);
    cr_expect_eq(draft_node(d, "n1")->status, NODE_READY);
    cr_expect_eq(draft_node(d, "n1")->liveness->heard_ms, 7);
}

Test(ingest, never_goes_back_to_a_boot_that_was_left)
{
    struct ingest_result r = {0};
    cr_expect_eq(put("n1", 2, "a", 9), 0);
    cr_expect_eq(put_expect("n1", 2, "b", 1, &r), 0);
    cr_assert(r.retired_boot);
    cr_expect_str_eq(r.retired_boot, "a");
    cr_expect_eq(r.n_dropped, 0, "the slice of that name is replaced");
    ingest_result_fini(&r);
    cr_expect_eq(put("n1", 2, "a", 10), -ESTALE);
    cr_expect_eq(put("n1", 2, "c", 1), 0);
    cr_expect_eq(put("n1", 2, "b", 2), -ESTALE);
    cr_expect_str_eq(draft_node(d, "n1")->epoch.boot_id, "c");
}

Test(ingest, knows_retired_boots_from_before)
{
    ingest_retired(x, "n1", "old");
    cr_expect_eq(put("n1", 2, "new", 1), 0);
    cr_expect_eq(put("n1", 2, "old", 1), -ESTALE);
    cr_expect_eq(put("n2", 2, "old", 1), 0, "another node's business");
}

/* A second advertiser with another boot id, tried and stopped, must not lock
 * the host's own one out. */
Test(ingest, takes_back_a_boot_after_a_withdrawal)
{
    cr_expect_eq(put("n1", 2, "own", 3), 0);
    cr_expect_eq(put("n1", 2, "tried", 1), 0);
    cr_expect_eq(put("n1", 2, "own", 3), -ESTALE);
    cr_expect_eq(delete_slice("n1", 0), 0);
    cr_expect_eq(put("n1", 2, "own", 3), 0);
    cr_expect_eq(put("n1", 2, "own", 3), 0, "and its heartbeat");
    cr_expect_eq(put("n1", 2, "own", 2), -ESTALE);
    cr_expect_eq(put("n1", 2, "tried", 2), 0, "the newest wins");
    cr_expect_eq(put("n1", 2, "own", 4), -ESTALE);
}

/* As one that was edited by hand, which nobody repeats. */
Test(ingest, believes_whoever_speaks_when_it_was_silent)
{
    cr_expect_eq(put("n1", 2, "boot-a", 5), 0);
    cr_expect_eq(put("n1", 4, "boot-a", 9), 0);
    now_ms += INGEST_SILENCE_MS;
    draft_set_status(d, "n1", NODE_STALE);
    cr_expect_eq(put("n1", 2, "boot-a", 5), -ESTALE, "it may be heard yet");
    now_ms++;
    cr_expect_eq(put("n1", 2, "boot-a", 5), 0);
    cr_expect_eq(draft_node(d, "n1")->epoch.generation, 5);
    cr_expect_eq(draft_node(d, "n1")->status, NODE_READY);
    cr_expect_eq(put("n1", 2, "boot-a", 4), -ESTALE, "it was just heard");
    cr_expect_eq(put("n1", 4, "boot-a", 6), 0, "and goes on from there");

    cr_expect_eq(put("n1", 4, "boot-b", 1), 0);
    cr_expect_eq(put("n1", 4, "boot-a", 6), -ESTALE);
    now_ms += INGEST_SILENCE_MS + 1;
    cr_expect_eq(put("n1", 4, "boot-a", 6), -ESTALE, "it is not stale yet");
    draft_set_status(d, "n1", NODE_STALE);
    cr_expect_eq(put("n1", 4, "boot-a", 6), 0);
}

Test(ingest, forgets_the_oldest_of_many_boots)
{
    for (int i = 0; i < 20; i++) {
        char boot[16];
        (void)snprintf(boot, sizeof boot, "boot-%d", i);
        cr_assert_eq(put("n1", 2, boot, 1), 0);
    }
    cr_expect_eq(put("n1", 2, "boot-3", 1), -ESTALE);
    cr_expect_eq(put("n1", 2, "boot-2", 1), 0, "16 are remembered");
}

/* The slice name of n1 under the name of another node. */
Test(ingest, refuses_a_slice_name_of_another_node)
{
    char from[SLICE_NAME_MAX + 1], to[SLICE_NAME_MAX + 1];
    struct ingest_result r = {0};
    struct error err = {0};
    slice_name("n2", 0, from);
    slice_name("n1", 0, to);
    cr_assert_eq(put("n1", 2, "boot", 1), 0);
    cleanup_free char *json = sim_slice("n2", 2, "boot", 1, 0);
    char *at = strstr(json, from);
    cr_assert(at && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    cr_expect_eq(put_json(json, &r, &err), -EEXIST);
    cr_expect(strstr(err.text, "n1"), "%s", err.text);
    cr_expect_null(draft_node(d, "n2"));
}

Test(ingest, removes_a_node_with_its_last_slice)
{
    cr_assert_eq(put("n1", 2, "boot", 3), 0);
    cr_expect_eq(delete_slice("n1", 0), 0);
    cr_expect_eq(delete_slice("n1", 0), -ENOENT);
    cr_expect_null(draft_node(d, "n1"));
    cr_expect_eq(put("n1", 2, "boot", 1), 0, "withdrawn, then back");
}

/* --- pools of several slices ------------------------------------------- */

static int put_big(const char *boot, int64_t generation, size_t index,
                   unsigned n_nics)
{
    cleanup_with(topo) struct topo *topo = simhost_nics("big", n_nics, NULL);
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    struct slice_epoch epoch = {.generation = generation};
    struct ingest_result r = {0};
    struct error err = {0};
    (void)snprintf(epoch.boot_id, sizeof epoch.boot_id, "%s", boot);
    slice_encode(topo, &epoch, index, &json);
    int e = put_json(json.data, &r, &err);
    ingest_result_fini(&r);
    return e;
}

static enum node_status status(void)
{
    return draft_node(d, "big")->status;
}

Test(ingest, never_uses_an_incomplete_pool)
{
    cr_assert_eq(put_big("boot", 1, 0, 3 * NICS), 0);
    cr_expect_eq(status(), NODE_INCOMPLETE);
    cr_expect_null(draft_node(d, "big")->topo);
    cr_assert_eq(put_big("boot", 1, 2, 3 * NICS), 0);
    cr_expect_eq(status(), NODE_INCOMPLETE);
    cr_assert_eq(put_big("boot", 1, 1, 3 * NICS), 0);
    cr_expect_eq(status(), NODE_READY);
    cr_expect_eq(topo_n_devices(draft_node(d, "big")->topo), 3 * NICS);

    /* the next generation, half of it */
    cr_assert_eq(put_big("boot", 2, 1, 2 * NICS), 0);
    cr_expect_eq(status(), NODE_INCOMPLETE);
    cr_expect_eq(topo_n_devices(draft_node(d, "big")->topo), 3 * NICS,
                 "the last whole one is kept to look at");
    cr_expect_eq(put_big("boot", 1, 0, 3 * NICS), -ESTALE);
    cr_assert_eq(put_big("boot", 2, 0, 2 * NICS), 0);
    cr_expect_eq(status(), NODE_READY);
    cr_expect_eq(topo_n_devices(draft_node(d, "big")->topo), 2 * NICS);
}

Test(ingest, names_the_slices_that_a_new_generation_drops)
{
    struct ingest_result r = {0};
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(put_big("boot", 1, i, 3 * NICS), 0);
    cr_assert_eq(put_expect("big", 2, "boot", 2, &r), 0);
    cr_expect_eq(r.n_dropped, 2);
    for (size_t i = 0; i < r.n_dropped; i++)
        cr_expect_null(ingest_owner(x, r.dropped[i]));
    ingest_result_fini(&r);
    cr_expect_eq(status(), NODE_READY);
}

Test(ingest, is_incomplete_when_one_slice_is_deleted)
{
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(put_big("boot", 1, i, 3 * NICS), 0);
    cr_expect_eq(delete_slice("big", 2), 0);
    cr_expect_eq(status(), NODE_INCOMPLETE);
    cr_expect_eq(put_big("boot", 1, 2, 3 * NICS - 1), -ESTALE,
                 "other content than that generation had");
    cr_expect_eq(put_big("boot", 1, 2, 3 * NICS), 0);
    cr_expect_eq(status(), NODE_READY);
}

Test(ingest, refuses_another_count_under_the_same_generation)
{
    cr_assert_eq(put_big("boot", 1, 0, 3 * NICS), 0);
    cr_expect_eq(put_big("boot", 1, 1, 2 * NICS), -ESTALE);
}

/* --- undo -------------------------------------------------------------- */

Test(ingest, undoes_all_since_the_mark)
{
    cr_assert_eq(put("n1", 2, "a", 1), 0);
    cr_assert_eq(put("n2", 2, "a", 1), 0);
    ingest_mark(x);

    cr_assert_eq(put("n1", 4, "b", 1), 0);
    cr_assert_eq(put("n3", 2, "a", 1), 0);
    cr_assert_eq(delete_slice("n2", 0), 0);
    ingest_undo(x);

    char name[SLICE_NAME_MAX + 1];
    slice_name("n3", 0, name);
    cr_expect_null(ingest_owner(x, name));
    slice_name("n2", 0, name);
    cr_expect_str_eq(ingest_owner(x, name), "n2");
    cr_expect_eq(put("n1", 2, "a", 2), 0, "its boot was not left");
    cr_expect_eq(put("n2", 2, "a", 0 + 1), 0);
    cr_expect_eq(delete_slice("n3", 0), -ENOENT);

    ingest_mark(x);
    ingest_undo(x);
    cr_expect_eq(put("n1", 2, "a", 1), -ESTALE, "the mark keeps it");
}

/* A failed commit any number of times leaves what a fresh start would. */
Test(ingest, undoes_anything_random)
{
    uint64_t random = 3;
    int64_t known[4] = {0};
    for (int round = 0; round < 500; round++) {
        int64_t now[4];
        bool undo = sim_random(&random) % 2;
        memcpy(now, known, sizeof now);
        for (int i = 0; i < 6; i++) {
            char node[8];
            unsigned n = sim_random(&random) % 4;
            (void)snprintf(node, sizeof node, "n%u", n);
            if (sim_random(&random) % 3 == 0) {
                int e = delete_slice(node, 0);
                cr_assert_eq(e, now[n] ? 0 : -ENOENT);
                now[n] = 0;
            } else {
                int64_t generation = 1 + sim_random(&random) % 9;
                int e = put(node, 1, "boot", generation);
                cr_assert_eq(e, generation < now[n] ? -ESTALE : 0);
                now[n] = e ? now[n] : generation;
            }
        }
        if (undo) {
            ingest_undo(x);
        } else {
            ingest_mark(x);
            memcpy(known, now, sizeof known);
        }
    }
}

/* A host of the bench: those of one shape differ in what is on their labels. */
static const struct topo *put_bench(const char *node, size_t index)
{
    static const struct slice_epoch epoch = {"boot", 1};
    cleanup_with(topo) struct topo *topo = benchhost_create(node, index);
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    struct ingest_result r = {0};
    struct error err = {0};
    slice_encode(topo, &epoch, 0, &json);
    cr_assert_eq(put_json(json.data, &r, &err), 0, "%s", err.text);
    ingest_result_fini(&r);
    return draft_node(d, node)->topo;
}

Test(ingest, nodes_of_one_model_share_their_hardware)
{
    const struct topo *a = put_bench("a", 0);
    const struct topo *b = put_bench("b", BENCHHOST_SHAPES);
    const struct topo *other = put_bench("other", 1);
    cr_expect_eq(topo_hardware(a), topo_hardware(b));
    cr_expect_neq(topo_hardware(a), topo_hardware(other));
    cr_expect_str_eq(topo_node(a), "a");
    cr_expect_str_eq(topo_node(b), "b");
    cr_expect_str_neq(topo_identity(a, topo_device(a, 0)).serial,
                      topo_identity(b, topo_device(b, 0)).serial);
}
