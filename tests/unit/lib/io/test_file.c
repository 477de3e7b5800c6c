/* A file in place of another, and its end. */
#include "lib/io/file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

static char *dir;

static void begin(void)
{
    dir = tmpdir_create();
}

static void end(void)
{
    tmpdir_remove(dir);
}

TestSuite(file, .init = begin, .fini = end, .timeout = 60);

static void expect_text(const char *path, const char *expected)
{
    cleanup_free char *text = NULL;
    size_t size;
    struct error err = {0};
    cr_assert_eq(file_read(path, 64, &text, &size, &err), 0, "%s", err.text);
    cr_expect_str_eq(text, expected);
}

Test(file, is_replaced_whole_and_removed)
{
    struct error err = {0};
    struct stat st;
    cleanup_free char *path = xasprintf("%s/a", dir);
    cleanup_free char *fresh = xasprintf("%s/a.new", dir);
    cr_assert_eq(file_replace(path, 0600, "long text", 9, true, &err), 0, "%s",
                 err.text);
    expect_text(path, "long text");
    cr_assert_eq(file_replace(path, 0600, "b", 1, true, &err), 0);
    expect_text(path, "b");
    cr_expect_eq(access(fresh, F_OK), -1);
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0600);
    cr_assert_eq(file_remove(path, &err), 0);
    cr_expect_eq(access(path, F_OK), -1);
    cr_expect_eq(file_remove(path, &err), 0, "once more is a success");
}

Test(file, that_cannot_be_replaced_stays_as_it_was)
{
    struct error err = {0};
    cleanup_free char *path = xasprintf("%s/a", dir);
    cleanup_free char *fresh = xasprintf("%s/a.new", dir);
    cr_assert_eq(file_replace(path, 0600, "old", 3, false, &err), 0);
    cr_assert_eq(mkdir(fresh, 0700), 0);
    cr_expect_lt(file_replace(path, 0600, "new", 3, true, &err), 0);
    cr_expect(strstr(err.text, fresh), "%s", err.text);
    expect_text(path, "old");
    cleanup_free char *below = xasprintf("%s/none/a", dir);
    cr_expect_eq(file_replace(below, 0600, "x", 1, true, &err), -ENOENT);
    cr_expect_eq(file_remove(below, &err), -ENOENT);
}
