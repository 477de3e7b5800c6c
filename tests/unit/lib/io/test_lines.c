#include "lib/io/lines.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/mem.h"

static const char text[] = "one\ntwo\n\nthree\nfo";
enum { SIZE = sizeof text - 1 };

static void expect(struct lines_ask ask, const char *wanted, uint64_t next)
{
    struct lines lines;
    cleanup_fd int fd = memfd_create("lines", MFD_CLOEXEC);
    cr_assert(fd >= 0 && write(fd, text, SIZE) == SIZE);
    cr_assert_eq(lines_read(fd, &ask, &lines), 0);
    cr_expect(lines.size == strlen(wanted) &&
                  memcmp(lines.data, wanted, lines.size) == 0,
              "not \"%s\" but \"%.*s\"", wanted, (int)lines.size, lines.data);
    cr_expect_eq(lines.next, next, "%s: %llu", wanted,
                 (unsigned long long)lines.next);
    free(lines.data);
}

Test(lines, are_given_whole)
{
    expect((struct lines_ask){0, 100, false, false}, "one\ntwo\n\nthree\n", 15);
    expect((struct lines_ask){4, 6, false, false}, "two\n\n", 9);
    expect((struct lines_ask){15, 100, false, false}, "", 15);
    expect((struct lines_ask){SIZE, 100, false, false}, "", SIZE);
}

Test(lines, that_are_longer_than_what_is_wanted_come_in_parts)
{
    expect((struct lines_ask){9, 3, false, false}, "thr", 12);
    expect((struct lines_ask){12, 3, false, false}, "ee\n", 15);
}

Test(lines, of_a_file_that_was_replaced_are_read_from_its_beginning)
{
    expect((struct lines_ask){SIZE + 1, 4, false, false}, "one\n", 4);
}

Test(lines, of_its_end_begin_with_a_whole_one)
{
    expect((struct lines_ask){0, 9, true, false}, "three\n", 15);
    expect((struct lines_ask){0, 7, true, false}, "", 15);
    expect((struct lines_ask){0, 100, true, false}, "one\ntwo\n\nthree\n", 15);
}

Test(lines, may_lack_an_end_when_nobody_writes_any_more)
{
    expect((struct lines_ask){9, 100, false, true}, "three\nfo", SIZE);
    expect((struct lines_ask){0, 9, true, true}, "three\nfo", SIZE);
    expect((struct lines_ask){9, 6, false, true}, "three\n", 15);
}

Test(lines, of_no_file_are_an_error)
{
    struct lines lines;
    cr_expect_eq(lines_read(-1, &(struct lines_ask){.max = 1}, &lines), -EBADF);
}
