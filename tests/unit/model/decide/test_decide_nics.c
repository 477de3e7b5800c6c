/* NICs on boards as vendors wire them, by eye.  Eight GPUs, eight compute NICs
 * and two cards: GPU i and NIC i are behind switch i, the cards behind the
 * first switch of each package (switches 0 and 4). */
#include <criterion/criterion.h>
#include <string.h>

#include "model/decide/decide.h"
#include "tests/lib/sim/simhost.h"

struct host {
    struct topo *topo;
    struct shape *shape;
    struct node_state state;
    struct demand demand;
    struct choice choice;
};

static void host_init(struct host *h, unsigned per_switch, unsigned n_cards)
{
    memset(h, 0, sizeof *h);
    h->topo = simhost_board("n1", per_switch, n_cards);
    h->shape = shape_create(h->topo);
    node_state_init(&h->state, h->topo, h->shape);
    h->demand.role = ROLE_HOST;
    h->demand.align = RELATION_SYS;
    h->demand.has_card_need = true;
    h->demand.card_cores = 1;
}

static void host_fini(struct host *h)
{
    shape_destroy(h->shape);
    topo_unref(h->topo);
}

static enum reason ask(struct host *h, unsigned cards, unsigned gpus,
                       unsigned nics)
{
    h->demand.cards = h->demand.pair_cards = (uint8_t)cards;
    h->demand.gpus = h->demand.pair_gpus = (uint8_t)gpus;
    h->demand.nics = h->demand.pair_nics = (uint8_t)nics;
    return decide(&h->state, &h->demand, 0, UINT16_MAX, &h->choice);
}

static void chosen(const struct host *h, unsigned cards, unsigned gpus,
                   unsigned nics, enum relation nic_relation)
{
    cr_expect_eq(h->choice.cards, cards, "cards %x", h->choice.cards);
    cr_expect_eq(h->choice.gpus, gpus, "gpus %x", h->choice.gpus);
    cr_expect_eq(h->choice.nics, nics, "nics %x", h->choice.nics);
    cr_expect_eq(h->choice.nic_relation, nic_relation, "%s",
                 relation_name((enum relation)h->choice.nic_relation));
}

Test(decide_nics, every_gpu_has_the_nic_of_its_switch)
{
    struct host h;
    host_init(&h, 1, 1);
    cr_assert_eq(h.shape->n_nics, 8, "those without RDMA do not count");
    cr_assert_eq(ask(&h, 1, 1, 1), REASON_NONE);
    chosen(&h, 0x1, 0x01, 0x01, RELATION_PIX);
    cr_assert_eq(ask(&h, 1, 4, 4), REASON_NONE);
    chosen(&h, 0x1, 0x0f, 0x0f, RELATION_PIX);
    cr_assert_eq(ask(&h, 2, 8, 8), REASON_NONE);
    chosen(&h, 0x3, 0xff, 0xff, RELATION_PIX);
    host_fini(&h);
}

/* Pairs of one card and four GPUs fill the board, a package each. */
Test(decide_nics, one_pair_after_the_other)
{
    struct host h;
    host_init(&h, 1, 1);
    h.demand.exclusive = true;
    cr_assert_eq(ask(&h, 1, 4, 4), REASON_NONE);
    node_state_take(&h.state, &h.demand, &h.choice);
    cr_assert_eq(ask(&h, 1, 4, 4), REASON_NONE);
    chosen(&h, 0x2, 0xf0, 0xf0, RELATION_PIX);
    node_state_take(&h.state, &h.demand, &h.choice);
    cr_assert_eq(ask(&h, 1, 1, 1), REASON_CARDS_BUSY);
    host_fini(&h);
}

/* All GPUs of a package are equally far from its card, but for the first; the
 * one whose NIC is free is taken. */
Test(decide_nics, gpus_are_chosen_for_their_nics)
{
    struct host h;
    host_init(&h, 1, 1);
    h.state.gpus_used = 0x01;
    h.state.nics_used = 0x02;
    cr_assert_eq(ask(&h, 1, 1, 0), REASON_NONE);
    chosen(&h, 0x2, 0x10, 0, RELATION_PIX);
    h.state.gpus_used = 0x11;
    cr_assert_eq(ask(&h, 1, 1, 0), REASON_NONE);
    chosen(&h, 0x1, 0x02, 0, RELATION_PIX);
    cr_assert_eq(ask(&h, 1, 1, 1), REASON_NONE);
    chosen(&h, 0x1, 0x04, 0x04, RELATION_PIX);
    cr_assert_eq(ask(&h, 1, 2, 2), REASON_NONE);
    chosen(&h, 0x1, 0x0c, 0x0c, RELATION_PIX);
    host_fini(&h);
}

/* NICs come after cards: the closer card wins, whatever its NICs. */
Test(decide_nics, cards_come_first)
{
    struct host h;
    host_init(&h, 1, 1);
    h.state.nics_used = 0x0f;
    cr_assert_eq(ask(&h, 1, 1, 1), REASON_NONE);
    chosen(&h, 0x2, 0x10, 0x10, RELATION_PIX);
    h.state.gpus_used = 0x10; /* the one beside card 1 */
    cr_assert_eq(ask(&h, 1, 1, 1), REASON_NONE);
    chosen(&h, 0x1, 0x01, 0x10, RELATION_SYS);
    host_fini(&h);
}

/* Without GPUs NICs are near the cards; fewer than GPUs serve several. */
Test(decide_nics, other_numbers)
{
    struct host h;
    host_init(&h, 1, 1);
    cr_assert_eq(ask(&h, 1, 0, 1), REASON_NONE);
    chosen(&h, 0x1, 0, 0x01, RELATION_PIX);
    cr_assert_eq(ask(&h, 2, 0, 2), REASON_NONE);
    chosen(&h, 0x3, 0, 0x11, RELATION_PIX);
    cr_assert_eq(ask(&h, 1, 4, 1), REASON_NONE);
    chosen(&h, 0x1, 0x0f, 0x01, RELATION_NODE);
    cr_assert_eq(ask(&h, 1, 1, 2), REASON_NONE);
    chosen(&h, 0x1, 0x01, 0x03, RELATION_NODE);
    host_fini(&h);
}

/* Sixteen GPUs, sixteen NICs, four cards: two of each behind a switch. */
Test(decide_nics, two_of_each_behind_a_switch)
{
    struct host h;
    host_init(&h, 2, 2);
    cr_assert_eq(h.shape->n_gpus, 16);
    cr_assert_eq(h.shape->n_nics, 16);
    cr_assert_eq(ask(&h, 1, 2, 2), REASON_NONE);
    chosen(&h, 0x1, 0x3, 0x3, RELATION_PIX);
    cr_assert_eq(ask(&h, 1, 2, 1), REASON_NONE);
    chosen(&h, 0x1, 0x3, 0x1, RELATION_PIX);
    cr_assert_eq(ask(&h, 2, 8, 8), REASON_NONE);
    chosen(&h, 0x3, 0x00ff, 0x00ff, RELATION_PIX);
    cr_assert_eq(ask(&h, 4, 16, 16), REASON_NONE);
    chosen(&h, 0xf, 0xffff, 0xffff, RELATION_PIX);
    h.state.gpus_used = 0x2; /* the switch of card 0 has one GPU left */
    h.state.nics_used = 0x8;
    cr_assert_eq(ask(&h, 2, 2, 2), REASON_NONE);
    chosen(&h, 0x3, 0x05, 0x05, RELATION_PIX);
    host_fini(&h);
}

static void expect_words(const struct host *h, enum reason got,
                         enum reason want, const char *words)
{
    struct str text = STR_INIT(4096);
    cr_assert_eq(got, want, "%s", reason_word(got));
    reason_explain(got, &h->state, &h->demand, &text);
    cr_expect_str_eq(str_text(&text), words);
    str_fini(&text);
}

Test(decide_nics, too_few)
{
    struct host h;
    host_init(&h, 1, 1);
    expect_words(&h, ask(&h, 1, 1, 9), REASON_TOO_FEW_NICS,
                 "the node has only 8 compute NICs; 9 are needed; those with "
                 "an RDMA device count");
    cr_expect(!reason_resolvable(REASON_TOO_FEW_NICS));
    h.state.nics_used = 0xfc;
    expect_words(&h, ask(&h, 1, 1, 3), REASON_NICS_BUSY,
                 "2 of 8 compute NICs are free; 3 are needed");
    cr_expect(reason_resolvable(REASON_NICS_BUSY));
    h.state.nics_used = 0xfe;
    expect_words(&h, ask(&h, 1, 1, 2), REASON_NICS_BUSY,
                 "1 of 8 compute NICs is free; 2 are needed");
    host_fini(&h);
}

/* What is taken is counted, and a class of its own. */
Test(decide_nics, taken_and_told_apart)
{
    struct host h;
    host_init(&h, 1, 1);
    cr_assert_eq(ask(&h, 1, 1, 2), REASON_NONE);
    node_state_take(&h.state, &h.demand, &h.choice);
    cr_expect_eq(h.state.nics_used, h.choice.nics);
    struct demand other = h.demand;
    other.nics = 1;
    cr_expect(!demand_same_class(&h.demand, &other));
    host_fini(&h);
}
