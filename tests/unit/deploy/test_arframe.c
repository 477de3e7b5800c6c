/* What ranks and workers of deploy/examples/allreduce say and read. */
#include "deploy/examples/allreduce/arframe.h"

#include <criterion/criterion.h>
#include <string.h>

#include "deploy/examples/allreduce/arhosts.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static int read_changed(size_t at, unsigned char value, const char *text)
{
    const struct ar_frame f = {AR_DATA, 3, 8, 7, 4096};
    unsigned char head[AR_HEAD];
    struct ar_frame got;
    struct error err = {0};
    arframe_write(&f, head);
    head[at] = value;
    int r = arframe_read(head, &got, &err);
    cr_expect(strstr(err.text, text), "not \"%s\" in: %s", text, err.text);
    return r;
}

Test(arframe, is_read_as_it_was_written)
{
    const struct ar_frame all[] = {
        {AR_HELLO, 0, 1, 0, AR_HELLO_MAX},
        {AR_JOIN, 255, 256, 0, 0},
        {AR_READY, 1, 2, 0, 0},
        {AR_DATA, 3, 8, UINT32_MAX, 8},
        {AR_DATA, 0, 1, 1, AR_DATA_MAX},
        {AR_ERROR, 0, 1, 0, AR_ERROR_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        unsigned char head[AR_HEAD];
        struct ar_frame got;
        struct error err = {0};
        arframe_write(&all[i], head);
        cr_assert_eq(arframe_read(head, &got, &err), 0, "%s", err.text);
        cr_expect_eq(arframe_expect(&got, &all[i], &err), 0, "%s", err.text);
    }
}

Test(arframe, of_somebody_else_or_too_large_is_refused)
{
    cr_expect_eq(read_changed(0, 'X', "another protocol"), -EPROTO);
    cr_expect_eq(read_changed(5, 2, "version 2, must be 1"), -EPROTO);
    cr_expect_eq(read_changed(4, 0, "kind 0"), -EPROTO);
    cr_expect_eq(read_changed(4, 6, "kind 6"), -EPROTO);
    cr_expect_eq(read_changed(8, 8, "rank 8 of 8"), -EPROTO);
    cr_expect_eq(read_changed(10, 0, "rank 3 of 0"), -EPROTO);
    cr_expect_eq(read_changed(11, 2, "1 to 256"), -EPROTO);
    cr_expect_eq(read_changed(20, 1, "the most is 268435456"), -EPROTO);
    cr_expect_eq(read_changed(4, AR_JOIN, "JOIN of 4096 bytes"), -EPROTO);
    cr_expect_eq(read_changed(4, AR_ERROR, "the most is 256"), -EPROTO);
}

Test(arframe, that_was_not_to_come_is_named)
{
    const struct ar_frame wanted = {AR_DATA, 3, 8, 7, 4096};
    const struct ar_frame lies[] = {
        {AR_JOIN, 3, 8, 7, 4096}, {AR_DATA, 2, 8, 7, 4096},
        {AR_DATA, 3, 9, 7, 4096}, {AR_DATA, 3, 8, 6, 4096},
        {AR_DATA, 3, 8, 7, 4088},
    };
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct error err = {0};
        cr_expect_eq(arframe_expect(&lies[i], &wanted, &err), -EPROTO);
        cr_expect(strstr(err.text, "must be a DATA of rank 3 of 8, step 7, "
                                   "4096 bytes"),
                  "%s", err.text);
    }
}

static void expect_bad(const char *text, const char *why)
{
    static struct ar_hosts hosts;
    struct error err = {0};
    cr_expect_eq(arhosts_read(text, strlen(text), &hosts, &err), -EINVAL, "%s",
                 text);
    cr_expect(strstr(err.text, why), "not \"%s\" in: %s", why, err.text);
}

Test(arhosts, each_slot_is_a_rank)
{
    static const char text[] = "# of biga job\n\n 10.0.0.1 slots=2 "
                               "max_slots=2\nfe80::1\t# one\nbf-a.x slots=1";
    static const char *const wanted[] = {"10.0.0.1", "10.0.0.1", "fe80::1",
                                         "bf-a.x"};
    static struct ar_hosts hosts;
    struct error err = {0};
    cr_assert_eq(arhosts_read(text, strlen(text), &hosts, &err), 0, "%s",
                 err.text);
    cr_assert_eq(hosts.n, ARRAY_LEN(wanted));
    for (size_t i = 0; i < hosts.n; i++)
        cr_expect_str_eq(hosts.of[i], wanted[i]);
}

Test(arhosts, what_is_no_hostfile_is_refused)
{
    cleanup_str struct str much = STR_INIT(1 << 20);
    expect_bad("", "has no host");
    expect_bad("# only this\n", "has no host");
    expect_bad("a\nb/c\n", "line 2: the host");
    expect_bad("a slots=0", "line 1: slots is 0, must be 1 to 256");
    expect_bad("a slots=257", "slots is 257");
    expect_bad("a slots=1x", "slots is no number");
    expect_bad("a slots=9999", "\"slots=9999\", must be slots=N");
    expect_bad("a cpus=1", "\"cpus=1\", must be slots=N");
    expect_bad("a slots=256\nb", "line 2: over 256 ranks");
    for (size_t i = 0; i <= AR_HOST_MAX; i++)
        str_add_c(&much, 'h');
    expect_bad(str_text(&much), "up to 253 bytes");
    while (much.size <= AR_HELLO_MAX)
        str_add_c(&much, '\n');
    expect_bad(str_text(&much), "over 65024 bytes");
}
