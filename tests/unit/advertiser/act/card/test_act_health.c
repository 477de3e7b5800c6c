/* What the answers of a place make of it. */
#include <criterion/criterion.h>

#include "advertiser/act/card/health.h"

/* A place that answers when `up` says so; an answer takes no time, none at
 * all takes the deadline, a refusal none. */
typedef bool up_f(int64_t now);

struct outcome {
    int64_t suspect_ms, lost_ms, ready_ms; /* first time after `from`; -1 */
    unsigned n_ready;                      /* times it became ready */
};

static struct outcome play(struct health *h, up_f *up, bool refuses,
                           int64_t from, int64_t to)
{
    struct outcome o = {-1, -1, -1, 0};
    int64_t now = from;
    while (now < to) {
        enum act_health was = h->now;
        int64_t sent = h->due_ms > now ? h->due_ms : now;
        if (sent >= to)
            break;
        now = sent;
        if (up(sent)) {
            (void)health_good(h, now);
        } else {
            now += refuses ? 0 : health_deadline_ms(h);
            (void)health_bad(h, sent, now);
        }
        if (h->now == was)
            continue;
        if (h->now == ACT_READY) {
            o.n_ready++;
            o.ready_ms = o.ready_ms < 0 ? now : o.ready_ms;
        } else if (h->now == ACT_SUSPECT) {
            o.suspect_ms = o.suspect_ms < 0 ? now : o.suspect_ms;
        } else {
            o.lost_ms = o.lost_ms < 0 ? now : o.lost_ms;
        }
    }
    return o;
}

static bool always(int64_t now)
{
    (void)now;
    return true;
}

static bool never(int64_t now)
{
    (void)now;
    return false;
}

static bool flaps(int64_t now)
{
    return now / 500 % 2;
}

static bool misses_one(int64_t now)
{
    return now < 21000 || now >= 22600;
}

static struct health ready_one(void)
{
    struct health h;
    health_init(&h, 0, 0, 0);
    struct outcome o = play(&h, always, false, 0, 20000);
    cr_assert_eq(h.now, ACT_READY);
    cr_assert_eq(o.ready_ms, 0, "the first answer is enough at the start");
    return h;
}

Test(act_health, silence_is_lost_in_four_seconds)
{
    for (int64_t at = 20000; at < 21000; at += 97) {
        struct health h = ready_one();
        h.due_ms = h.good_ms + h.probe_ms;
        int64_t good = h.good_ms;
        struct outcome o = play(&h, never, false, at, at + 20000);
        cr_assert_geq(o.suspect_ms, good);
        cr_assert_leq(o.lost_ms - good, 4500, "%lld after the last answer",
                      (long long)(o.lost_ms - good));
        cr_assert_eq(o.n_ready, 0);
    }
}

Test(act_health, refusal_is_lost_no_sooner)
{
    struct health h = ready_one();
    int64_t good = h.good_ms;
    struct outcome o = play(&h, never, true, 20000, 40000);
    cr_assert_geq(o.lost_ms - good, 4000);
    cr_assert_leq(o.lost_ms - good, 4500);
}

Test(act_health, one_miss_is_not_lost)
{
    struct health h = ready_one();
    struct outcome o = play(&h, misses_one, false, 20000, 40000);
    cr_assert_gt(o.suspect_ms, 0);
    cr_assert_eq(o.lost_ms, -1);
    cr_assert_eq(h.now, ACT_READY);
}

Test(act_health, comes_back_after_three_answers)
{
    struct health h = ready_one();
    (void)play(&h, never, false, 20000, 100000);
    cr_assert_eq(h.now, ACT_LOST);
    struct outcome o = play(&h, always, false, 100000, 120000);
    cr_assert_eq(h.now, ACT_READY);
    cr_assert_geq(o.ready_ms, 100000 + HEALTH_PROBE_MS);
    cr_assert_leq(o.ready_ms,
                  100000 + HEALTH_RETRY_MAX_MS + 3 * HEALTH_PROBE_MS);
}

Test(act_health, flapping_stays_lost)
{
    for (int refuses = 0; refuses < 2; refuses++) {
        struct health h = ready_one();
        struct outcome o = play(&h, flaps, refuses, 20000, 140000);
        cr_assert_gt(o.lost_ms, 0);
        cr_assert_leq(o.n_ready, 3, "%u times", o.n_ready);
        cr_assert_eq(h.now, ACT_LOST);
    }
}

Test(act_health, lost_is_asked_less_often)
{
    struct health h = ready_one();
    (void)play(&h, never, true, 20000, 60000);
    (void)health_bad(&h, 60000, 60000);
    cr_assert_eq(h.due_ms, 60000 + HEALTH_RETRY_MAX_MS);
}

Test(act_health, drained_is_shown_but_not_over_lost)
{
    struct health h = ready_one();
    cr_assert_eq(health_shown(&h, false), ACT_READY);
    cr_assert_eq(health_shown(&h, true), ACT_DRAINED);
    (void)play(&h, never, true, 20000, 60000);
    cr_assert_eq(health_shown(&h, true), ACT_LOST);
    cr_assert_str_eq(act_health_name(ACT_DRAINED), "drained");
}
