/* When pods are judged and woken, in virtual time. */
#include "extender/pace.h"

#include <criterion/criterion.h>

/* The first change begins the grace; while somebody else leads nothing is
 * done. */
Test(pace, grace_and_idleness)
{
    struct pace p;
    int64_t due_ms;
    pace_init(&p);
    cr_expect_eq(pace_next(&p, 1000, &due_ms), PACE_WAIT);
    cr_expect_eq(due_ms, INT64_MAX);
    pace_hear(&p, 1000);
    pace_hear(&p, 1100);
    cr_expect_eq(pace_next(&p, 1100, &due_ms), PACE_WAIT);
    cr_expect_eq(due_ms, 1000 + PACE_GRACE_MS);
    cr_expect_eq(pace_next(&p, due_ms, &due_ms), PACE_BEGIN);
    pace_idle(&p, 3000);
    cr_expect_eq(pace_next(&p, 2999, &due_ms), PACE_WAIT);
    cr_expect_eq(due_ms, 3000);
    cr_expect_eq(pace_next(&p, 3000, &due_ms), PACE_BEGIN);
}
