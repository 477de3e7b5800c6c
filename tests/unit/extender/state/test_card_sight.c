#include "extender/state/card_sight.h"

#include <criterion/criterion.h>

#include "advertiser/places.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static enum card_sight see(struct writer *w, const char *uid,
                           char ret_card[TOPO_ID_MAX + 1])
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    return card_sight_of(s, uid, ret_card);
}

/* The one slice of a host, with how one of its cards fares. */
static void publish(struct writer *w, unsigned n_cards, const char *id,
                    enum act_health health, int64_t generation)
{
    struct act_place_status view = {.health = health};
    struct slice_epoch epoch = {.boot_id = "boot", .generation = generation};
    struct error err = {0};
    char name[SLICE_NAME_MAX + 1];
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    cleanup_with(topo) struct topo *topo = simhost_topo("n1", n_cards);
    cleanup_with(topo) struct topo *marked = NULL;
    (void)snprintf(view.name, sizeof view.name, "%s", id);
    cr_assert_eq(places_mark(topo, TOPO_RUNS_UNTOLD, &view, 1, &marked, &err),
                 0, "%s", err.text);
    slice_encode(marked, &epoch, 0, &json);
    slice_name("n1", 0, name);
    struct writer_op op = {.kind = WRITER_PUT_SLICE,
                           .name = name,
                           .body = json.data,
                           .body_size = json.size};
    cr_assert_eq(writer_run(w, &op), 0, "%s", op.error.text);
}

Test(card_sight, follows_the_slices_of_a_node_that_is_ready)
{
    char card[TOPO_ID_MAX + 1];
    struct writer *w = sim_writer(NULL);
    struct demand d = sim_pod("p", ROLE_SERVICE, "", 0);
    d.cards = d.pair_cards = 4;
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(see(w, "uid-p", card), CARD_SIGHT_NONE, "it is not placed");
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    cr_assert_eq(see(w, "uid-p", card), CARD_SIGHT_THERE);
    cr_assert_str_eq(card, "");
    cleanup_with(topo) struct topo *topo = simhost_topo("n1", 4);
    const char *id = topo_device(topo, 2)->id;

    publish(w, 4, id, ACT_LOST, 2);
    cr_assert_eq(see(w, "uid-p", card), CARD_SIGHT_LOST);
    cr_assert_str_eq(card, id);
    struct writer_op lost = {.kind = WRITER_LOST, .node = "n1", .gone = true};
    cr_assert_eq(writer_run(w, &lost), 0);
    cr_assert_eq(see(w, "uid-p", card), CARD_SIGHT_NONE, "nor is its node");
    lost.gone = false;
    cr_assert_eq(writer_run(w, &lost), 0);
    cr_assert_eq(see(w, "uid-p", card), CARD_SIGHT_LOST);

    publish(w, 4, id, ACT_DRAINED, 3);
    cr_assert_eq(see(w, "uid-p", card), CARD_SIGHT_THERE, "drained, it runs");
    publish(w, 2, id, ACT_READY, 4);
    cr_assert_eq(see(w, "uid-p", card), CARD_SIGHT_GONE);
    cr_assert_str_eq(card, id);
    writer_stop(w);
}
