/* Of this machine's own /dev, which has /dev/null, /dev/zero and links. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "card/card.h"
#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

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

/* A folder with the device "null" in itself and in a/b; NULL: we may not. */
static char *own_dev(void)
{
    static const char *const folders[] = {"a", "a/b"};
    static const char *const nodes[] = {"null", "a/b/null"};
    char *dev = tmpdir_create();
    bool may = true;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        cleanup_free char *path = xasprintf("%s/%s", dev, folders[i]);
        cr_assert_eq(mkdir(path, 0755), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(nodes) && may; i++) {
        cleanup_free char *path = xasprintf("%s/%s", dev, nodes[i]);
        may = mknod(path, S_IFCHR | 0600, makedev(1, 3)) == 0;
    }
    if (!may) {
        tmpdir_remove(dev);
        cr_skip_test("may not make device nodes");
    }
    return dev;
}

Test(devices, folders_are_gone_through_as_deep_as_the_pattern)
{
    static const char *const deep[] = {"/dev/[a]/?/nul*"};
    static const char *const flat[] = {"/dev/*ll", "/dev/a*"};
    char *dev = own_dev();
    expect(dev, deep, 1, "/dev/a/b/null\n");
    expect(dev, flat, 2, "/dev/null\n");
    tmpdir_remove(dev);
}

Test(devices, no_pattern_leads_up)
{
    static const char *const patterns[] = {"/dev/.*/null", "/dev/.*/b/null",
                                           "/dev/.?/b/null", "/dev/.?/null"};
    char *dev = own_dev();
    cleanup_free char *below = xasprintf("%s/a/b", dev);
    expect(below, patterns, ARRAY_LEN(patterns), "");
    tmpdir_remove(dev);
}

/* As /dev is one below /. */
Test(devices, other_file_systems_are_not_entered)
{
    static const char *const patterns[] = {"/dev/d[e]v/nul*", "/dev/dev/null"};
    struct stat top, dev;
    cr_assert_eq(stat("/", &top) | stat("/dev", &dev), 0);
    if (top.st_dev == dev.st_dev)
        cr_skip_test("/dev is no file system of its own");
    expect("/", patterns, ARRAY_LEN(patterns), "");
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
