#include "router/volume/volume_quiet.h"

#include <criterion/criterion.h>

Test(volume_quiet, changes_that_come_together_are_told_once)
{
    struct volume_quiet q = {0};
    uint64_t ids[4];
    cr_expect_eq(volume_quiet_due(&q), INT64_MAX);
    volume_quiet_note(&q, 7, 1000);
    volume_quiet_note(&q, 7, 1040);
    cr_expect_eq(volume_quiet_due(&q), 1090);
    cr_expect_eq(volume_quiet_take(&q, 1089, ids, 4), 0);
    cr_expect_eq(volume_quiet_take(&q, 1090, ids, 4), 1);
    cr_expect_eq(ids[0], 7);
    cr_expect_eq(volume_quiet_take(&q, 9000, ids, 4), 0);
    volume_quiet_fini(&q);
}

Test(volume_quiet, what_never_rests_is_told_all_the_same)
{
    struct volume_quiet q = {0};
    uint64_t ids[4];
    for (int64_t now = 0; now < VOLUME_LATE_MS; now += 10) {
        volume_quiet_note(&q, 7, now);
        cr_expect_eq(volume_quiet_take(&q, now, ids, 4), 0);
    }
    cr_expect_eq(volume_quiet_take(&q, VOLUME_LATE_MS, ids, 4), 1);
    volume_quiet_fini(&q);
}

Test(volume_quiet, the_rest_is_told_by_the_next_call)
{
    struct volume_quiet q = {0};
    uint64_t ids[2];
    for (uint64_t id = 1; id <= 3; id++)
        volume_quiet_note(&q, id, 0);
    volume_quiet_drop(&q, 2);
    volume_quiet_note(&q, 4, 0);
    cr_expect_eq(volume_quiet_take(&q, 60, ids, 2), 2);
    cr_expect_eq(volume_quiet_take(&q, 60, ids, 2), 1);
    cr_expect_eq(volume_quiet_take(&q, 60, ids, 2), 0);
    volume_quiet_fini(&q);
}
