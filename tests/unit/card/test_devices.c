/* Of this machine's own /dev, which has /dev/null, /dev/zero and links. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/card.h"
#include "lib/base/mem.h"

static int look(const char *dev, const char *const *patterns, int n,
                char ret_text[8192], struct error *err)
{
    cleanup_fd int out = memfd_create("out", MFD_CLOEXEC);
    int rc = card_devices(dev, n, patterns, out, err);
    ssize_t size = pread(out, ret_text, 8191, 0);
    cr_assert_geq(size, 0);
    ret_text[size] = '\0';
    return rc;
}

static void expect(const char *dev, const char *const *patterns, int n,
                   const char *lines)
{
    char text[8192];
    struct error err = {0};
    cr_expect_eq(look(dev, patterns, n, text, &err), 0, "%s", err.text);
    cr_expect_str_eq(text, lines);
}

Test(devices, those_that_match_come_in_order_and_once)
{
    static const char *const patterns[] = {"/dev/zer[a-o]", "/dev/nul?",
                                           "/dev/null", "/dev/[!a-y]ero"};
    expect("/dev", patterns, ARRAY_LEN(patterns), "/dev/null\n/dev/zero\n");
}

Test(devices, folders_are_gone_through_as_deep_as_the_pattern)
{
    static const char *const deep[] = {"/dev/d[e]v/nul*"};
    static const char *const flat[] = {"/dev/nul*"};
    expect("/", deep, 1, "/dev/dev/null\n");
    expect("/", flat, 1, "");
}

Test(devices, links_and_folders_are_none)
{
    static const char *const patterns[] = {"/dev/std*", "/dev/fd", "/dev/shm",
                                           "/dev/fd/*", "/dev/none/*"};
    expect("/dev", patterns, ARRAY_LEN(patterns), "");
}

Test(devices, nothing_is_looked_for_elsewhere)
{
    static const char *const bad[] = {
        "/etc/*", "/dev", "/dev/", "null", "/dev/../dev/null", "/dev//null"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[8192];
        struct error err = {0};
        cr_expect_eq(look("/dev", &bad[i], 1, text, &err), -EINVAL, "%s",
                     bad[i]);
        cr_expect(strstr(err.text, bad[i]), "%s", err.text);
        cr_expect_str_eq(text, "");
    }
    char text[8192];
    struct error err = {0};
    static const char *const fine[] = {"/dev/null"};
    cr_expect_eq(look("/nowhere/at/all", fine, 1, text, &err), -ENOENT);
}
