/* When a remote is listed again while nothing happens. */
#include <criterion/criterion.h>

#include "router/remote/remote_private.h"

enum { BEGUN_MS = 123456 * REMOTE_LIST_MS };

Test(remote_beat, is_one_for_all_remotes)
{
    int64_t beat = remote_next_beat(BEGUN_MS + 1);
    cr_expect_eq(beat, BEGUN_MS + REMOTE_LIST_MS);
    for (int64_t ms = 1; ms < REMOTE_LIST_MS; ms++)
        cr_assert_eq(remote_next_beat(BEGUN_MS + ms), beat);
}

Test(remote_beat, comes_within_the_time_between_lists)
{
    cr_expect_eq(remote_next_beat(BEGUN_MS), BEGUN_MS + REMOTE_LIST_MS);
    cr_expect_gt(remote_next_beat(BEGUN_MS + REMOTE_LIST_MS - 1),
                 BEGUN_MS + REMOTE_LIST_MS - 1);
}
