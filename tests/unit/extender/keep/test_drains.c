/* Drains: as they change what is given, and over restarts. */
#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static char *dir;
static struct writer *w;

static void start(void)
{
    dir = tmpdir_create();
    w = sim_writer(dir);
}

static void stop(void)
{
    writer_stop(w);
    tmpdir_remove(dir);
}

TestSuite(drains, .init = start, .fini = stop);

static struct card_bars *bars_of(const char *card, const char *reason)
{
    struct card_bars *b = card_bars_create(1);
    b->items[0] = (struct card_bar){.drains = true, .evict = true};
    (void)snprintf(b->items[0].card, sizeof b->items[0].card, "%s", card);
    (void)snprintf(b->items[0].reason, sizeof b->items[0].reason, "%s", reason);
    (void)snprintf(b->items[0].by, sizeof b->items[0].by, "ann");
    (void)snprintf(b->items[0].since, sizeof b->items[0].since,
                   "2026-01-02T03:04:05Z");
    card_drain_explain(&b->items[0]);
    return b;
}

static int drain(const char *node, const char *card, bool gone)
{
    cleanup_with(card_bars) struct card_bars *b = bars_of(card, "new <fw>");
    struct writer_op op = {
        .kind = WRITER_DRAIN, .node = node, .bars = b, .gone = gone};
    return writer_run(w, &op);
}

static int bar(const char *node, const char *serial)
{
    cleanup_with(card_bars) struct card_bars *b = NULL;
    if (serial) {
        b = card_bars_create(1);
        (void)snprintf(b->items[0].serial, sizeof b->items[0].serial, "%s",
                       serial);
        (void)snprintf(b->items[0].why, sizeof b->items[0].why, "not ready");
        b->items[0].has_pci = true;
        b->items[0].pci.bus = 0x13;
    }
    struct writer_op op = {.kind = WRITER_BARS, .node = node, .bars = b};
    return writer_run(w, &op);
}

/* Why card `i` of a node takes no pod, "" it does. */
static const char *why(const char *node, size_t i)
{
    static char text[TOPO_BARRED_MAX + 1];
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t at = snapshot_find(s, node, strlen(node));
    cr_assert_neq(at, NODE_NONE);
    const struct device *d = topo_device(snapshot_node(s, (size_t)at)->topo, i);
    cr_expect_eq(d->unhealthy, *d->barred != '\0');
    (void)snprintf(text, sizeof text, "%s", d->barred);
    return text;
}

static void restart(void)
{
    writer_stop(w);
    w = sim_writer(dir);
}

#define CARD "card-0000-12-00"
#define WHY "drained by ann since 2026-01-02T03:04:05Z: new <fw>"

Test(drains, a_card_takes_no_new_pod_until_it_is_undrained)
{
    struct demand d = sim_pod("p", ROLE_HOST, "", 0);
    struct error err = {0};
    cr_assert_eq(sim_publish(w, "n", 1, "boot", 1), 0);
    cr_assert_eq(drain("n", CARD, true), -ENOENT);
    cr_assert_eq(drain("n", CARD, false), 0);
    cr_expect_str_eq(why("n", 0), WHY);
    cr_expect_eq(sim_bind(w, &d, "n", NULL, &err), -EBUSY);
    restart();
    cr_expect_str_eq(why("n", 0), WHY);
    cr_assert_eq(sim_publish(w, "n", 1, "boot2", 1), 0);
    cr_expect_str_eq(why("n", 0), WHY);
    cr_assert_eq(drain("n", CARD, true), 0);
    cr_expect_str_eq(why("n", 0), "");
    cr_expect_eq(sim_bind(w, &d, "n", NULL, &err), 0, "%s", err.text);
    restart();
    cr_expect_str_eq(why("n", 0), "");
}

Test(drains, are_of_a_node_that_comes_later)
{
    cr_assert_eq(drain("n", "", false), 0);
    cr_assert_eq(sim_publish(w, "n", 2, "boot", 1), 0);
    cr_expect_str_eq(why("n", 0), "its node is " WHY);
    cr_expect_str_eq(why("n", 1), "its node is " WHY);
    restart();
    cr_expect_str_eq(why("n", 1), "its node is " WHY);
    cr_assert_eq(sim_withdraw(w, "n"), 0);
    cr_assert_eq(drain("n", "", true), 0);
    cr_assert_eq(sim_publish(w, "n", 2, "boot", 2), 0);
    cr_expect_str_eq(why("n", 1), "");
}

/* An operator's object, and a drain of the same node. */
Test(drains, do_not_undo_what_others_bar)
{
    cr_assert_eq(sim_publish(w, "n", 2, "boot", 1), 0);
    cr_assert_eq(bar("n", "x"), 0);
    cr_expect_str_eq(why("n", 1), "not ready");
    cr_assert_eq(drain("n", CARD, false), 0);
    cr_expect_str_eq(why("n", 0), WHY);
    cr_expect_str_eq(why("n", 1), "not ready");
    cr_assert_eq(bar("n", NULL), 0);
    cr_expect_str_eq(why("n", 0), WHY);
    cr_expect_str_eq(why("n", 1), "");
    cr_assert_eq(bar("n", "x"), 0);
    cr_assert_eq(drain("n", CARD, true), 0);
    cr_expect_str_eq(why("n", 0), "");
    cr_expect_str_eq(why("n", 1), "not ready");
}

Test(drains, the_card_and_its_node)
{
    cr_assert_eq(sim_publish(w, "n", 2, "boot", 1), 0);
    cr_assert_eq(drain("n", CARD, false), 0);
    cr_assert_eq(drain("n", "", false), 0);
    cr_assert_eq(drain("n", CARD, true), 0);
    cr_expect_str_eq(why("n", 0), "its node is " WHY);
    cr_assert_eq(drain("n", "", true), 0);
    cr_expect_str_eq(why("n", 0), "");
}

/* --- a drain and a slice of its node at the same time ---------------------- */

static sem_t held, let_go, finished;

static void hold_writer(void *ctx)
{
    (void)ctx;
    (void)sem_post(&held);
    (void)sem_wait(&let_go);
}

static void on_done(struct writer_op *op)
{
    (void)op;
    (void)sem_post(&finished);
}

/* One batch, in this order; all but the last `n_refused` succeed. */
static void run_batch(struct writer_op *ops, size_t n, size_t n_refused)
{
    struct writer_op holds = {
        .kind = WRITER_CALL, .call = hold_writer, .done = on_done};
    (void)sem_init(&held, 0, 0);
    (void)sem_init(&let_go, 0, 0);
    (void)sem_init(&finished, 0, 0);
    writer_post(w, &holds);
    (void)sem_wait(&held);
    for (size_t i = 0; i < n; i++) {
        ops[i].done = on_done;
        writer_post(w, &ops[i]);
    }
    (void)sem_post(&let_go);
    for (size_t i = 0; i < n + 1; i++)
        (void)sem_wait(&finished);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(ops[i].result, i < n - n_refused ? 0 : -ENOENT, "%zu: %s",
                     i, ops[i].error.text);
    (void)sem_destroy(&held);
    (void)sem_destroy(&let_go);
    (void)sem_destroy(&finished);
}

static void drain_and_publish(const char *node, bool gone, const char *boot)
{
    cleanup_with(card_bars) struct card_bars *b = bars_of(CARD, "new <fw>");
    cleanup_free char *json = sim_slice(node, 1, boot, 1, 0);
    char name[SLICE_NAME_MAX + 1];
    slice_name(node, 0, name);
    struct writer_op ops[] = {
        {.kind = WRITER_DRAIN, .node = node, .bars = b, .gone = gone},
        {.kind = WRITER_PUT_SLICE,
         .name = name,
         .body = json,
         .body_size = strlen(json)}};
    run_batch(ops, ARRAY_LEN(ops), 0);
}

Test(drains, hold_when_a_slice_comes_at_the_same_time)
{
    drain_and_publish("n", false, "boot"); /* the node is new */
    cr_expect_str_eq(why("n", 0), WHY);
    drain_and_publish("n", true, "boot2");
    cr_expect_str_eq(why("n", 0), "");
    cr_assert_eq(bar("n", "x"), 0); /* something is known of it */
    drain_and_publish("n", false, "boot3");
    cr_expect_str_eq(why("n", 0), WHY);
}

/* Of a node that is not there yet, too. */
Test(drains, come_and_go_at_the_same_time)
{
    cleanup_with(card_bars) struct card_bars *card = bars_of(CARD, "new <fw>");
    cleanup_with(card_bars) struct card_bars *all = bars_of("", "new <fw>");
    for (int there = 0; there < 2; there++) {
        struct writer_op ops[] = {
            {.kind = WRITER_DRAIN, .node = "n", .bars = card},
            {.kind = WRITER_DRAIN, .node = "n", .bars = all},
            {.kind = WRITER_DRAIN, .node = "n", .bars = card, .gone = true},
            {.kind = WRITER_DRAIN, .node = "n", .bars = card, .gone = true}};
        run_batch(ops, ARRAY_LEN(ops), 1);
        if (!there)
            cr_assert_eq(sim_publish(w, "n", 1, "boot", 1), 0);
        cr_expect_str_eq(why("n", 0), "its node is " WHY);
        cr_assert_eq(drain("n", "", true), 0);
        cr_expect_str_eq(why("n", 0), "");
    }
}
