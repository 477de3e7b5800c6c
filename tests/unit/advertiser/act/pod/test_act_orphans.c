/* What nobody wrote down goes, after its grace and not before. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/pod/orphans.h"

enum { GRACE_MS = 30000 };

static struct orphan_seen seen_of(const char *uid, const char *id, bool sandbox)
{
    return (struct orphan_seen){
        .uid = uid, .id = id, .sandbox = sandbox, .running = true};
}

static void update(struct orphans *o, const struct orphan_seen *seen, size_t n,
                   int64_t now)
{
    for (size_t i = 1; i < n; i++)
        cr_assert_leq(orphan_order(&seen[i - 1], &seen[i]), 0);
    orphans_update(o, seen, n, now, GRACE_MS);
}

Test(act_orphans, grace_counts_from_the_first_sight)
{
    struct orphans o = {0};
    struct orphan due;
    const struct orphan_seen seen[] = {seen_of("u", "bb", true),
                                       seen_of("u", "aa", false)};
    for (int64_t now = 1000; now < 31000; now += 2000) {
        update(&o, seen, 2, now);
        cr_assert_not(orphans_take(&o, now, &due));
    }
    cr_assert_eq(orphans_due(&o), 31000);
    cr_assert(orphans_take(&o, 31000, &due));
    cr_assert(due.sandbox, "its containers go with it");
    cr_assert_str_eq(due.id, "bb");
    cr_assert_str_eq(due.uid, "u");
    orphans_removed(&o, "bb");
    cr_assert(orphans_take(&o, 31000, &due));
    cr_assert_str_eq(due.id, "aa");
    orphans_fini(&o);
}

Test(act_orphans, one_that_stays_is_tried_again_later)
{
    struct orphans o = {0};
    struct orphan due;
    const struct orphan_seen seen = seen_of("u", "aa", true);
    update(&o, &seen, 1, 0);
    cr_assert(orphans_take(&o, 30000, &due));
    cr_assert_not(orphans_take(&o, 30001, &due));
    update(&o, &seen, 1, 30001);
    cr_assert_not(orphans_take(&o, 30001, &due));
    cr_assert(orphans_take(&o, 30000 + ORPHANS_RETRY_MS, &due));
    orphans_fini(&o);
}

Test(act_orphans, what_an_end_left_has_no_grace)
{
    struct orphans o = {0};
    struct orphan due;
    struct orphan_seen seen = seen_of("u", "aa", true);
    update(&o, &seen, 1, 999);
    seen.over = true;
    update(&o, &seen, 1, 1000);
    cr_assert(orphans_take(&o, 1000, &due));
    update(&o, &seen, 1, 1001);
    cr_assert_not(orphans_take(&o, 1001, &due), "it is tried again later");
    orphans_fini(&o);
}

Test(act_orphans, one_that_was_claimed_is_left_alone)
{
    struct orphans o = {0};
    struct orphan due;
    struct orphan_seen seen = seen_of("u", "aa", true);
    update(&o, &seen, 1, 0);
    seen.known = true;
    update(&o, &seen, 1, 10000);
    cr_assert_eq(o.n, 0);
    cr_assert_eq(orphans_due(&o), INT64_MAX);
    seen.known = false;
    update(&o, &seen, 1, 20000);
    cr_assert_not(orphans_take(&o, 49999, &due), "its grace begins anew");
    cr_assert(orphans_take(&o, 50000, &due));
    orphans_fini(&o);
}

Test(act_orphans, whose_something_may_be_left)
{
    struct orphans o = {0};
    const struct orphan_seen seen[] = {seen_of("u", "1", false),
                                       seen_of("v", "2", false)};
    update(&o, seen, 2, 0);
    cr_assert(orphans_have(&o, "u"));
    cr_assert_not(orphans_have(&o, "w"));
    orphans_removed(&o, "1");
    cr_assert_not(orphans_have(&o, "u"));
    cr_assert(orphans_have(&o, "v"));
    orphans_fini(&o);
}

/* A card that lists thousands: those that are kept stay kept, and those that
 * are left out come in once there is room. */
Test(act_orphans, more_than_are_kept)
{
    enum { N = 4 * ORPHANS_MAX };
    static struct orphan_seen seen[N];
    static char ids[N][16];
    struct orphans o = {0};
    struct orphan due;
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%06x", i);
        seen[i] = seen_of("u", ids[i], true);
    }
    update(&o, seen + N / 2, N / 2, 0);
    cr_assert_eq(o.n, ORPHANS_MAX);
    cr_assert_eq(o.n_more, N / 2 - ORPHANS_MAX);
    cr_assert(orphans_have(&o, "x"), "who knows");
    update(&o, seen, N, 1000);
    cr_assert_eq(o.n, ORPHANS_MAX);
    cr_assert_eq(o.n_more, N - ORPHANS_MAX);
    cr_assert_str_eq(o.list[0].id, ids[N / 2], "those of before");
    cr_assert_eq(orphans_due(&o), GRACE_MS);
    for (unsigned i = 0; i < ORPHANS_MAX; i++)
        cr_assert(orphans_take(&o, GRACE_MS, &due));
    cr_assert_not(orphans_take(&o, GRACE_MS, &due));
    for (unsigned i = 0; i < ORPHANS_MAX / 2; i++)
        orphans_removed(&o, ids[N / 2 + i]);
    update(&o, seen, N / 2, GRACE_MS);
    cr_assert_eq(o.n, ORPHANS_MAX);
    cr_assert_str_eq(o.list[0].id, ids[0]);
    cr_assert_eq(orphans_due(&o), 2 * GRACE_MS, "with a grace of their own");
    update(&o, seen, 0, GRACE_MS);
    cr_assert_eq(o.n + o.n_more, 0);
    orphans_fini(&o);
}

Test(act_orphans, one_that_is_listed_often_is_one)
{
    static struct orphan_seen seen[2 * ORPHANS_MAX];
    struct orphans o = {0};
    for (size_t i = 0; i < 2 * ORPHANS_MAX; i++)
        seen[i] = seen_of("u", "1", true);
    for (int i = 0; i < 2; i++) {
        update(&o, seen, 2 * ORPHANS_MAX, 0);
        cr_assert_eq(o.n, 1);
        cr_assert_eq(o.n_more, 0);
    }
    orphans_fini(&o);
}
