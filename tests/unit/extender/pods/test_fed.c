#include "extender/pods/fed.h"

#include <criterion/criterion.h>

Test(fed, is_known_once_it_is_committed)
{
    struct fed *f = fed_create();
    cr_expect_eq(fed_number(f, "a"), 0);
    fed_set_floor(f, 5);
    fed_load(f, "a", 9);
    fed_load(f, "b", 3);
    cr_expect_eq(fed_number(f, "a"), 9);
    cr_expect_eq(fed_number(f, "b"), 5, "all may know those");
    fed_raise(f, "b", 7);
    fed_raise(f, "b", 12);
    fed_raise(f, "a", 8);
    fed_raise(f, "c", 20);
    cr_expect_eq(fed_pending(f, "b"), 12);
    cr_expect_eq(fed_number(f, "b"), 5);
    cr_expect_eq(fed_pending(f, "a"), 9, "it never falls");
    fed_undo(f);
    cr_expect_eq(fed_pending(f, "b"), 5);
    cr_expect_eq(fed_pending(f, "c"), 5);
    fed_raise(f, "b", 12);
    fed_mark(f);
    fed_undo(f);
    cr_expect_eq(fed_number(f, "b"), 12);
    cr_expect_eq(fed_number(f, "c"), 5);
    fed_destroy(f);
    fed_destroy(NULL);
}
