#include "extender/pods/applied_uid.h"

#include <criterion/criterion.h>
#include <string.h>

Test(applied_uid, tells_when_it_was_made)
{
    char uid[APPLIED_UID_SIZE], other[APPLIED_UID_SIZE];
    const int64_t times_s[] = {0, 1, 1767323045, 4102444800};
    for (size_t i = 0; i < sizeof times_s / sizeof *times_s; i++) {
        applied_uid_create(times_s[i] * 1000 + 999, uid);
        cr_expect_eq(applied_uid_time_ms(uid), times_s[i] * 1000 + 999, "%s",
                     uid);
        cr_expect_eq(applied_uid_time_s(uid), times_s[i], "%s", uid);
    }
    applied_uid_create(1767323045678, uid);
    applied_uid_create(1767323045678, other);
    cr_assert_eq(strlen(uid), APPLIED_UID_SIZE - 1);
    cr_expect_eq(memcmp(uid, "019b7ca9-8f2e-7", 15), 0, "%s", uid);
    cr_expect(strchr("89ab", uid[19]), "%s", uid);
    cr_expect_str_neq(uid, other);
}

/* Those of pods that were applied to an older extender, too. */
Test(applied_uid, others_do_not_tell)
{
    const char *const uids[] = {"",
                                "019b7cd1",
                                "b5a3cf3c-7b0e-4a4e-9d5f-0242ac120002",
                                "019b7cd1-2b6e-4000-8000-000000000000",
                                "019b7cdz-2b6e-7000-8000-000000000000",
                                "019b7cd1-2b6g-7000-8000-000000000000",
                                "019b7cd1 2b6e-7000-8000-000000000000",
                                " 19b7cd1-0x6e-7000-8000-000000000000"};
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++)
        cr_expect_eq(applied_uid_time_s(uids[i]), 0, "%s", uids[i]);
}
