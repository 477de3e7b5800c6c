#include "lib/base/mem.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

Test(mem, copies)
{
    cleanup_free char *a = xstrdup("text");
    cleanup_free char *b = xstrndup("text", 2);
    cleanup_free char *c = xstrndup("text", 99);
    cleanup_free char *d = xmemdup("a\0b", 4);
    cleanup_free char *e = xasprintf("%d-%s", 7, "x");
    cr_expect_str_eq(a, "text");
    cr_expect_str_eq(b, "te");
    cr_expect_str_eq(c, "text");
    cr_expect_eq(memcmp(d, "a\0b", 4), 0);
    cr_expect_str_eq(e, "7-x");
}

Test(mem, what_cannot_be_had_leaves_all_as_it_was)
{
    enum { SIZE = 2 * TRY_LARGE };
    char *text = try_realloc(NULL, 0, 5);
    cr_assert_not_null(text);
    memcpy(text, "text", 5);
    cr_expect_null(try_realloc(text, 5, (size_t)1 << 50));
    cr_expect_null(try_realloc(text, 5, SIZE_MAX));
    cr_expect_str_eq(text, "text");
    text = try_realloc(text, 5, SIZE);
    cr_assert_not_null(text);
    cr_expect_str_eq(text, "text");
    text = try_realloc(text, SIZE, 5);
    cr_assert_not_null(text);
    cr_expect_str_eq(text, "text");
    free(text);
}

Test(mem, nothing_is_something)
{
    cleanup_free void *a = xmalloc(0);
    cleanup_free void *b = xcalloc(0, 8);
    cleanup_free void *c = xrealloc(NULL, 0, 8);
    cleanup_free void *d = xmemdup(NULL, 0);
    cr_expect(a && b && c && d);
}

Test(mem, an_overflow_aborts, .signal = SIGABRT)
{
    (void)xrealloc(NULL, SIZE_MAX / 2, 4);
}

Test(mem, too_much_aborts, .signal = SIGABRT)
{
    (void)xmalloc(SIZE_MAX / 2 - 1);
}

Test(mem, steal_leaves_null_behind)
{
    cleanup_free char *held = xstrdup("x");
    char *mine = steal(&held);
    cr_expect_null(held);
    cr_expect_str_eq(mine, "x");
    free(mine);
}

Test(mem, an_array_grows_and_keeps_what_it_had)
{
    cleanup_free uint64_t *list = NULL;
    size_t cap = 0;
    for (size_t n = 0; n < 1000; n++) {
        list = xgrow(list, n, &cap, sizeof *list);
        cr_assert_gt(cap, n);
        list[n] = n * n;
    }
    for (size_t i = 0; i < 1000; i++)
        cr_assert_eq(list[i], i * i);
}

Test(mem, arena_gives_zeroed_aligned_room)
{
    struct arena a = {0};
    for (size_t size = 0; size < 9000; size += 37) {
        unsigned char *p = arena_alloc(&a, size);
        cr_assert_eq((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            cr_assert_eq(p[i], 0);
        memset(p, 0xaa, size);
    }
    char *text = arena_strndup(&a, "abc", 2);
    cr_expect_str_eq(text, "ab");
    arena_fini(&a);
    cr_expect_null(a.blocks);
    cr_expect_not_null(arena_alloc(&a, 1), "usable again");
    arena_fini(&a);
}
