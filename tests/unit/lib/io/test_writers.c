/* Who still writes a file. */
#include "lib/io/writers.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/late_writer.h"
#include "tests/lib/tmpdir.h"

TestSuite(writers, .timeout = 60);

Test(writers, are_there_until_the_last_has_closed_it)
{
    char *top = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/a", top);
    int one = open(path, O_WRONLY | O_CREAT, 0600), two = open(path, O_RDWR);
    int fd = open(path, O_RDONLY);
    cr_assert(one >= 0 && two >= 0 && fd >= 0);
    cr_expect(!writers_are_gone(fd));
    close(one);
    cr_expect(!writers_are_gone(fd));
    cr_expect(!writers_await(fd, 0));
    close(two);
    cr_expect(writers_are_gone(fd));
    cr_expect(writers_await(fd, 0));
    cr_expect(writers_are_gone(fd), "the lease was given back");
    int again = open(path, O_WRONLY | O_NONBLOCK);
    cr_expect_geq(again, 0, "and is in nobody's way");
    close(again);
    close(fd);
    tmpdir_remove(top);
}

Test(writers, are_waited_for)
{
    char *top = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/a", top);
    struct late_writer late;
    char text[8] = "";
    late_writer_begin(&late, path, "last");
    int fd = open(path, O_RDONLY);
    cr_assert_geq(fd, 0);
    bool gone = writers_await(fd, WRITERS_WAIT_MS);
    ssize_t n = read(fd, text, sizeof text);
    late_writer_end(&late);
    cr_expect(gone);
    cr_expect(n == 4, "%zd: %s", n, text);
    close(fd);
    tmpdir_remove(top);
}
