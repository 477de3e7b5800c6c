#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "extender/leader/card_losses.h"
#include "lib/io/clock.h"
#include "model/pod/patience.h"

#define S INT64_C(1000)
enum { START_S = 1700000000 };

/* Two pods, "a" and "b", on a card each, and what is seen of those. */
struct world {
    struct card_losses *c;
    struct kube_pod pods[2];
    enum card_sight sight[2];
    int64_t now_s;
};

static enum card_sight look(void *ctx, const char *uid,
                            char ret_card[TOPO_ID_MAX + 1])
{
    const struct world *w = ctx;
    (void)snprintf(ret_card, TOPO_ID_MAX + 1, "card-%s", uid);
    return w->sight[uid[0] - 'a'];
}

static struct kube_pod pod(const char *uid)
{
    struct kube_pod p = {
        .phase = POD_RUNNING, .card_lost = -1, .patience_s = -1};
    p.demand.role = ROLE_SERVICE;
    (void)snprintf(p.demand.namespace, sizeof p.demand.namespace, "ns");
    (void)snprintf(p.demand.name, sizeof p.demand.name, "pod-%s", uid);
    (void)snprintf(p.demand.uid, sizeof p.demand.uid, "%s", uid);
    (void)snprintf(p.node, sizeof p.node, "n1");
    return p;
}

static void world_init(struct world *w, int64_t patience_s)
{
    *w = (struct world){.c = card_losses_create(patience_s),
                        .pods = {pod("a"), pod("b")},
                        .sight = {CARD_SIGHT_THERE, CARD_SIGHT_THERE},
                        .now_s = START_S};
    card_losses_put(w->c, &w->pods[0], 0);
    card_losses_put(w->c, &w->pods[1], 0);
}

static int64_t now_ms(const struct world *w)
{
    return (w->now_s - START_S) * S;
}

static bool step(struct world *w, struct card_losses_action *ret_action,
                 int64_t *ret_due_ms)
{
    const struct card_losses_view v = {look, w, now_ms(w), w->now_s};
    return card_losses_next(w->c, &v, ret_action, ret_due_ms);
}

static struct card_losses_action
next(struct world *w, enum card_losses_kind kind, const char *uid)
{
    struct card_losses_action a;
    int64_t due_ms;
    /* it may have been passed in this round */
    cr_assert(step(w, &a, &due_ms) || step(w, &a, &due_ms),
              "nothing is to be done, until %lld", (long long)due_ms);
    cr_assert_eq(a.kind, kind, "%d: %s", (int)a.kind, a.text);
    cr_assert_str_eq(a.uid, uid);
    return a;
}

/* Nothing is to be done; the seconds until something is, -1: never. */
static int64_t quiet(struct world *w)
{
    struct card_losses_action a;
    int64_t due_ms = 0;
    /* the first round after a change says "now" */
    for (int i = 0; i < 2; i++)
        cr_assert_not(step(w, &a, &due_ms), "%s", a.text);
    return due_ms == INT64_MAX ? -1 : due_ms / S - (w->now_s - START_S);
}

static void done(struct world *w, const struct card_losses_action *a,
                 int result)
{
    card_losses_report(w->c, a, result, now_ms(w));
}

/* As the watch shows what was written. */
static void shown(struct world *w, size_t i, const struct card_losses_action *a)
{
    w->pods[i].card_lost = a->kind == CARD_LOSSES_LOST;
    clock_format_utc(a->at_s, w->pods[i].card_since);
    card_losses_put(w->c, &w->pods[i], now_ms(w));
}

static void lose(struct world *w, size_t i)
{
    static const char *const uids[] = {"a", "b"};
    w->sight[i] = CARD_SIGHT_LOST;
    struct card_losses_action a = next(w, CARD_LOSSES_LOST, uids[i]);
    cr_assert_str_eq(a.reason, "CardLost");
    cr_assert_eq(a.at_s, w->now_s);
    done(w, &a, 0);
    shown(w, i, &a);
}

Test(card_losses, a_pod_is_told_and_evicted_after_its_patience)
{
    struct world w;
    world_init(&w, 300);
    cr_assert_eq(quiet(&w), -1);
    lose(&w, 0);
    cr_assert_eq(card_losses_n_lost(w.c), 1);
    cr_assert_eq(quiet(&w), 300);
    w.now_s += 299;
    cr_assert_eq(quiet(&w), 1);
    w.now_s += 1;
    struct card_losses_action a = next(&w, CARD_LOSSES_EVICT, "a");
    cr_assert_str_eq(a.namespace, "ns");
    cr_assert_str_eq(a.name, "pod-a");
    cr_assert(strstr(a.text, "card-a on n1 does not answer"), "%s", a.text);
    done(&w, &a, 0);
    quiet(&w);
    w.pods[0].deleting = true;
    card_losses_put(w.c, &w.pods[0], now_ms(&w));
    cr_assert_eq(quiet(&w), -1);
    cr_assert_eq(card_losses_n_pods(w.c), 1);
    card_losses_destroy(w.c);
}

Test(card_losses, a_card_that_comes_back_keeps_its_pod)
{
    struct world w;
    world_init(&w, 300);
    lose(&w, 1);
    w.now_s += 299;
    w.sight[1] = CARD_SIGHT_THERE;
    struct card_losses_action a = next(&w, CARD_LOSSES_BACK, "b");
    cr_assert_str_eq(a.reason, "CardAnswers");
    done(&w, &a, 0);
    shown(&w, 1, &a);
    w.now_s += 1000;
    cr_assert_eq(quiet(&w), -1);
    cr_assert_eq(card_losses_n_lost(w.c), 0);
    lose(&w, 1); /* and the time begins anew */
    cr_assert_eq(quiet(&w), 300);
    card_losses_destroy(w.c);
}

/* The time is on the pod, so that it goes on under another leader. */
Test(card_losses, another_leader_goes_on_counting)
{
    struct world w;
    world_init(&w, 300);
    lose(&w, 0);
    card_losses_destroy(w.c);
    w.c = card_losses_create(300);
    w.now_s += 200;
    card_losses_put(w.c, &w.pods[0], now_ms(&w));
    cr_assert_eq(quiet(&w), 100);
    w.now_s += 150;
    (void)next(&w, CARD_LOSSES_EVICT, "a");
    card_losses_destroy(w.c);
}

Test(card_losses, a_pod_says_how_long)
{
    struct world w;
    world_init(&w, 300);
    w.pods[0].patience_s = 5;
    w.pods[1].patience_s = PATIENCE_NEVER;
    card_losses_put(w.c, &w.pods[0], 0);
    card_losses_put(w.c, &w.pods[1], 0);
    lose(&w, 0);
    lose(&w, 1);
    cr_assert_eq(quiet(&w), 5);
    w.now_s += 86400;
    struct card_losses_action a = next(&w, CARD_LOSSES_EVICT, "a");
    done(&w, &a, -ENOENT);
    card_losses_gone(w.c, "a");
    cr_assert_eq(quiet(&w), -1);
    card_losses_destroy(w.c);
}

/* A node that nobody speaks for is the node controller's. */
Test(card_losses, nothing_is_done_while_nobody_says)
{
    struct world w;
    world_init(&w, 300);
    w.sight[0] = CARD_SIGHT_NONE;
    cr_assert_eq(quiet(&w), -1);
    lose(&w, 0);
    w.sight[0] = CARD_SIGHT_NONE;
    w.now_s += 1000;
    cr_assert_eq(quiet(&w), -1);
    w.sight[0] = CARD_SIGHT_LOST;
    (void)next(&w, CARD_LOSSES_EVICT, "a");
    card_losses_destroy(w.c);
}

/* A budget says no: later and later, and no more once the card is back. */
Test(card_losses, a_refused_eviction_is_tried_again)
{
    struct world w;
    world_init(&w, 0);
    lose(&w, 0);
    for (int64_t wait_s = 5; wait_s <= 40; wait_s *= 2) {
        struct card_losses_action a = next(&w, CARD_LOSSES_EVICT, "a");
        done(&w, &a, -EAGAIN);
        cr_assert_eq(quiet(&w), wait_s);
        w.now_s += wait_s;
    }
    struct card_losses_action a = next(&w, CARD_LOSSES_EVICT, "a");
    done(&w, &a, -EAGAIN);
    cr_assert_eq(quiet(&w), 60);
    w.sight[0] = CARD_SIGHT_THERE;
    (void)next(&w, CARD_LOSSES_BACK, "a");
    card_losses_destroy(w.c);
}

/* What the watch shows late does not undo what was written. */
Test(card_losses, what_was_written_is_believed_for_a_while)
{
    struct world w;
    world_init(&w, 300);
    w.sight[0] = CARD_SIGHT_LOST;
    struct card_losses_action a = next(&w, CARD_LOSSES_LOST, "a");
    done(&w, &a, 0);
    card_losses_put(w.c, &w.pods[0], now_ms(&w)); /* from before */
    cr_assert_eq(quiet(&w), 300);
    w.now_s += CARD_LOSSES_SHOWN_MS / 1000;
    card_losses_put(w.c, &w.pods[0], now_ms(&w));
    (void)next(&w, CARD_LOSSES_LOST, "a"); /* somebody took it off */
    card_losses_destroy(w.c);
}

Test(card_losses, a_time_that_is_none_begins_anew)
{
    struct world w;
    world_init(&w, 300);
    w.pods[0].card_lost = 1;
    (void)snprintf(w.pods[0].card_since, sizeof w.pods[0].card_since, "soon");
    w.sight[0] = CARD_SIGHT_LOST;
    card_losses_put(w.c, &w.pods[0], 0);
    struct card_losses_action a = next(&w, CARD_LOSSES_LOST, "a");
    done(&w, &a, 0);
    shown(&w, 0, &a);
    cr_assert_eq(quiet(&w), 300);
    card_losses_destroy(w.c);
}

/* Host pods, pods without a node, and those that have ended. */
Test(card_losses, others_are_passed_over)
{
    struct world w;
    world_init(&w, 0);
    w.sight[0] = w.sight[1] = CARD_SIGHT_GONE;
    w.pods[0].demand.role = ROLE_HOST;
    w.pods[1].phase = POD_FAILED;
    card_losses_put(w.c, &w.pods[0], 0);
    card_losses_put(w.c, &w.pods[1], 0);
    cr_assert_eq(card_losses_n_pods(w.c), 0);
    cr_assert_eq(quiet(&w), -1);
    w.pods[1].phase = POD_RUNNING;
    card_losses_put(w.c, &w.pods[1], 0);
    struct card_losses_action a = next(&w, CARD_LOSSES_LOST, "b");
    cr_assert_str_eq(a.reason, "NoSuchCard");
    card_losses_destroy(w.c);
}
