/* What a remote lists, and what of it is swept. */
#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "router/keep/sweep.h"

static bool add(struct seen *s, const char *id, const char *uid, bool sandbox)
{
    const struct cri_pair label = {ACT_LABEL_UID, uid};
    struct found f = {.name = "c", .labels = {&label, 1}, .kept = ""};
    (void)snprintf(f.id, sizeof f.id, "%s", id);
    return seen_add(s, &f, sandbox);
}

Test(seen, is_found_by_id)
{
    struct seen s = {0};
    cr_assert(add(&s, "bb", "u-1", true));
    cr_assert(add(&s, "aa", "u-1", false));
    seen_sort(&s);
    cr_assert_eq(seen_find(&s, "bb")->sandbox, true);
    cr_assert_str_eq(seen_find(&s, "aa")->uid, "u-1");
    cr_assert_null(seen_find(&s, "ab"));
    cr_assert_null(seen_find(&s, ""));
    cr_assert_not(s.partly);
    seen_fini(&s);
}

Test(seen, two_of_one_id_are_none)
{
    struct seen s = {0};
    cr_assert(add(&s, "aa", "u-1", true));
    cr_assert(add(&s, "bb", "u-1", true));
    cr_assert(add(&s, "aa", "u-2", false));
    seen_sort(&s);
    cr_assert_eq(s.n, 1);
    cr_assert_null(seen_find(&s, "aa"));
    cr_assert_not_null(seen_find(&s, "bb"));
    seen_fini(&s);
}

Test(seen, what_is_no_id_is_left_out)
{
    struct seen s = {0};
    cr_assert_not(add(&s, "../x", "u-1", true));
    cr_assert_not(add(&s, "", "u-1", true));
    cr_assert(s.partly);
    cr_assert_eq(s.n, 0);
    seen_fini(&s);
}

Test(sweep, takes_strays_when_their_grace_is_over)
{
    struct seen s = {0};
    struct sweep w = {0};
    struct orphan o;
    (void)add(&s, "aa", "u-1", true);
    (void)add(&s, "bb", "u-2", true);
    (void)add(&s, "cc", "biga-helper-x", true);
    seen_sort(&s);
    for (size_t i = 0; i < s.n; i++)
        s.list[i].stray = true;
    s.list[1].stray = false;
    for (int64_t now = 0; now < SWEEP_GRACE_MS; now += 1000) {
        sweep_update(&w, &s, "biga-helper-", now);
        cr_assert_not(sweep_take(&w, now, &o));
    }
    cr_assert_eq(sweep_due(&w), SWEEP_GRACE_MS);
    cr_assert(sweep_take(&w, SWEEP_GRACE_MS, &o));
    cr_assert_str_eq(o.id, "aa");
    sweep_removed(&w, "aa");
    cr_assert_eq(sweep_due(&w), INT64_MAX);
    sweep_fini(&w);
    seen_fini(&s);
}

Test(sweep, has_a_pace)
{
    struct seen s = {0};
    struct sweep w = {0};
    struct orphan o;
    (void)add(&s, "aa", "u-1", true);
    (void)add(&s, "bb", "u-2", true);
    s.list[0].stray = s.list[1].stray = true;
    sweep_update(&w, &s, NULL, 0);
    cr_assert(sweep_take(&w, SWEEP_GRACE_MS, &o));
    cr_assert_not(sweep_take(&w, SWEEP_GRACE_MS, &o));
    cr_assert_eq(sweep_due(&w), SWEEP_GRACE_MS + SWEEP_PACE_MS);
    cr_assert(sweep_take(&w, SWEEP_GRACE_MS + SWEEP_PACE_MS, &o));
    sweep_fini(&w);
    seen_fini(&s);
}
