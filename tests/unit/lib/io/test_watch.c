/* Files that are read again when they have changed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/watch.h"

static char folder[64];
static char path[96], other[96];

static void put(const char *to, const char *text)
{
    cleanup_file FILE *f = fopen(to, "w");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(text, f), 0);
}

static void set_up(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/biga-watch-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a", folder);
    (void)snprintf(other, sizeof other, "%s/b", folder);
}

static void tear_down(void)
{
    (void)unlink(path);
    (void)unlink(other);
    (void)rmdir(folder);
}

TestSuite(watch, .init = set_up, .fini = tear_down);

Test(watch, reads_once_per_change)
{
    struct watched_file f;
    cleanup_str struct str text = STR_INIT(64);
    struct error err = {0};
    put(path, "one");
    watch_init(&f, path, 16);
    cr_assert_eq(watch_poll(&f, &text, &err), 1, "%s", err.text);
    cr_expect_str_eq(str_text(&text), "one");
    cr_expect_eq(watch_poll(&f, &text, &err), 0);

    put(other, "two");
    cr_assert_eq(rename(other, path), 0);
    cr_assert_eq(watch_poll(&f, &text, &err), 1, "%s", err.text);
    cr_expect_str_eq(str_text(&text), "two", "the rest of one is gone");
    cr_expect_eq(watch_poll(&f, &text, &err), 0);

    put(path, "three");
    cr_assert_eq(watch_poll(&f, &text, &err), 1, "written in place");
    cr_expect_str_eq(str_text(&text), "three");
    watch_fini(&f);
}

Test(watch, tells_a_fault_once)
{
    struct watched_file f;
    cleanup_str struct str text = STR_INIT(64);
    struct error err = {0};
    watch_init(&f, path, 4);
    cr_expect_eq(watch_poll(&f, &text, &err), -ENOENT);
    cr_expect_not_null(strstr(err.text, path), "%s", err.text);
    cr_expect_eq(watch_poll(&f, &text, &err), 0, "still not there");

    put(path, "long!");
    cr_expect_eq(watch_poll(&f, &text, &err), -EFBIG);
    cr_expect_not_null(strstr(err.text, "more than 4 bytes"), "%s", err.text);
    cr_expect_eq(watch_poll(&f, &text, &err), 0);

    put(path, "fits");
    cr_expect_eq(watch_poll(&f, &text, &err), 1);
    cr_expect_str_eq(str_text(&text), "fits");
    cr_assert_eq(unlink(path), 0);
    cr_expect_eq(watch_poll(&f, &text, &err), -ENOENT, "gone again");
    watch_fini(&f);
}

Test(watch, refuses_a_folder)
{
    struct watched_file f;
    cleanup_str struct str text = STR_INIT(64);
    struct error err = {0};
    watch_init(&f, folder, 4);
    cr_expect_eq(watch_poll(&f, &text, &err), -EISDIR);
    watch_fini(&f);
}
