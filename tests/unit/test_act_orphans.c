/* What nobody wrote down goes, after its grace and not before. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/orphans.h"

static void saw(struct orphans *o, const char *id, bool sandbox, int64_t now)
{
    struct orphan found = {.sandbox = sandbox, .running = true};
    (void)snprintf(found.id, sizeof found.id, "%s", id);
    orphans_saw(o, &found, now, 30000);
}

Test(act_orphans, grace_counts_from_the_first_sight)
{
    struct orphans o = {0};
    struct orphan due;
    for (int64_t now = 1000; now < 31000; now += 2000) {
        orphans_begin(&o);
        saw(&o, "aa", false, now);
        saw(&o, "bb", true, now);
        orphans_end(&o);
        cr_assert_not(orphans_take(&o, now, &due));
    }
    cr_assert_eq(orphans_due(&o), 31000);
    cr_assert(orphans_take(&o, 31000, &due));
    cr_assert(due.sandbox, "its containers go with it");
    cr_assert_str_eq(due.id, "bb");
    orphans_removed(&o, "bb");
    cr_assert(orphans_take(&o, 31000, &due));
    cr_assert_str_eq(due.id, "aa");
    orphans_fini(&o);
}

Test(act_orphans, one_that_stays_is_tried_again_later)
{
    struct orphans o = {0};
    struct orphan due;
    saw(&o, "aa", true, 0);
    cr_assert(orphans_take(&o, 30000, &due));
    cr_assert_not(orphans_take(&o, 30001, &due));
    cr_assert(orphans_take(&o, 30000 + ORPHANS_RETRY_MS, &due));
    orphans_fini(&o);
}

Test(act_orphans, one_that_was_claimed_is_left_alone)
{
    struct orphans o = {0};
    struct orphan due;
    saw(&o, "aa", true, 0);
    orphans_begin(&o); /* a list without it */
    orphans_end(&o);
    cr_assert_eq(o.n, 0);
    cr_assert_eq(orphans_due(&o), INT64_MAX);
    orphans_begin(&o);
    saw(&o, "aa", true, 20000);
    orphans_end(&o);
    cr_assert_not(orphans_take(&o, 49999, &due), "its grace begins anew");
    cr_assert(orphans_take(&o, 50000, &due));
    orphans_fini(&o);
}
