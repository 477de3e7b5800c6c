#include "lib/db/dbmark.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io/log.h"
#include "tests/lib/smalldisk.h"
#include "tests/lib/tmpdir.h"

static char *dir, *path;

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
    path = xasprintf("%s/x.db-mark", dir);
}

static void tear_down(void)
{
    free(path);
    tmpdir_remove(dir);
}

TestSuite(dbmark, .init = set_up, .fini = tear_down);

static struct dbmark *must_open(void)
{
    struct dbmark *m = NULL;
    struct error err = {0};
    cr_assert_eq(dbmark_open(dir, "x.db", &m, &err), 0, "%s", err.text);
    return m;
}

static void set_to(uint64_t number)
{
    cleanup_with(dbmark) struct dbmark *m = must_open();
    dbmark_set(m, number);
}

static uint64_t found(void)
{
    cleanup_with(dbmark) struct dbmark *m = must_open();
    return dbmark_get(m);
}

static void spoil(off_t at)
{
    char c;
    int fd = open(path, O_RDWR);
    cr_assert_geq(fd, 0);
    cr_assert_eq(pread(fd, &c, 1, at), 1);
    c = (char)(c ^ 0x10);
    cr_assert_eq(pwrite(fd, &c, 1, at), 1);
    (void)close(fd);
}

Test(dbmark, says_what_was_set_last)
{
    struct stat st;
    cr_expect_eq(found(), 0);
    set_to(7);
    cr_expect_eq(found(), 7);
    set_to(8);
    set_to(9);
    cr_expect_eq(found(), 9);
    set_to(4);
    cr_expect_eq(found(), 9, "it never goes back");
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0600);
}

/* It is read as written also by who has not closed it: after a kill. */
Test(dbmark, needs_no_close)
{
    cleanup_with(dbmark) struct dbmark *m = must_open();
    for (uint64_t i = 1; i < 6; i++) {
        dbmark_set(m, i);
        cr_expect_eq(found(), i);
    }
}

Test(dbmark, is_the_older_one_when_a_slot_is_torn)
{
    for (int64_t byte = 0; byte < 24; byte++) {
        set_to((uint64_t)byte * 2 + 1);
        set_to((uint64_t)byte * 2 + 2);
        uint64_t before = found();
        cr_assert_eq(before, (uint64_t)byte * 2 + 2);
        spoil((off_t)(4096 + byte));
        uint64_t one = found();
        spoil((off_t)(4096 + byte));
        spoil((off_t)byte);
        uint64_t other = found();
        spoil((off_t)byte);
        cr_expect_eq(one + other, before * 2 - 1, "byte %d: %d, %d", (int)byte,
                     (int)one, (int)other);
    }
}

/* Nothing is known any more, and the next one is as good as ever. */
Test(dbmark, begins_anew_when_nothing_can_be_read)
{
    set_to(5);
    set_to(6);
    spoil(9);
    spoil(4096 + 9);
    cr_expect_eq(found(), 0);
    set_to(3);
    cr_expect_eq(found(), 3);
    cr_assert_eq(truncate(path, 0), 0);
    cr_expect_eq(found(), 0);
}

Test(dbmark, says_which_file_cannot_be_made)
{
    struct dbmark *m = NULL;
    struct error err = {0};
    cr_expect_eq(dbmark_open("/nowhere", "x.db", &m, &err), -ENOENT);
    cr_expect(strstr(err.text, "/nowhere/x.db-mark"), "%s", err.text);
}

/* There is none until the next start, and what is beside it can be read. */
Test(dbmark, does_without_room)
{
    if (!smalldisk_mount(dir))
        cr_skip_test("no file system can be mounted here");
    cleanup_free char *ballast = xasprintf("%s/ballast", dir);
    smalldisk_fill(ballast);
    struct dbmark *m = must_open();
    dbmark_set(m, 7);
    dbmark_sync(m);
    cr_expect_eq(dbmark_get(m), 0);
    dbmark_close(m);
    cr_assert_eq(unlink(ballast), 0);
    set_to(8);
    m = must_open();
    cr_expect_eq(dbmark_get(m), 8);
    dbmark_close(m);
    cr_assert_eq(unlink(path), 0);
    smalldisk_umount(dir);
}
