#include "advertiser/act/card/log_pick.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/rfc3339.h"

#define AT(s) "2026-01-01T00:00:" s "Z "
static const char lines[] =
    AT("01.5") "stdout F one\n" AT("02") "stderr P tw\n" AT(
        "03") "stderr F o\nodd\n" AT("04") "stdout F \n" AT("05") "stdout P "
                                                                  "half";

static struct log_want want;

static void set_up(void)
{
    want = LOG_WANT_ALL;
}

TestSuite(log_pick, .init = set_up);

/* What is picked of them, given so many bytes at once, from a line's end to
 * another where there is one. */
static void expect(uint64_t skip, const char *wanted)
{
    cleanup_str struct str out = STR_INIT(4096);
    struct log_pick p = {.want = &want, .skip = skip};
    for (const char *at = lines; *at;) {
        const char *end = strchr(at, '\n');
        size_t n = end ? (size_t)(end + 1 - at) : strlen(at);
        log_pick_lines(&p, at, n, &out);
        at += n;
    }
    cr_expect_str_eq(str_text(&out), wanted);
    str_reset(&out);
    p = (struct log_pick){.want = &want, .skip = skip};
    log_pick_lines(&p, lines, sizeof lines - 1, &out);
    cr_expect_str_eq(str_text(&out), wanted, "at once");
}

Test(log_pick, all_lines_are_what_was_written)
{
    expect(0, "one\ntwo\nodd\n\nhalf");
}

Test(log_pick, the_first_lines_are_left_out)
{
    expect(1, "two\nodd\n\nhalf");
    expect(2, "odd\n\nhalf");
    expect(5, "");
}

Test(log_pick, each_line_has_its_time_once)
{
    want.timestamps = true;
    expect(0, AT("01.5") "one\n" AT("02") "two\nodd\n" AT("04") "\n" AT(
                  "05") "half");
}

Test(log_pick, lines_before_a_time_are_left_out)
{
    cr_assert(rfc3339_parse_ns("2026-01-01T00:00:02Z", 20, &want.since_ns));
    expect(0, "two\nodd\n\nhalf");
    want.since_ns++; /* the parts of a line go with its first one */
    expect(0, "odd\n\nhalf");
    want.since_ns += 2000000000;
    expect(0, "odd\nhalf"); /* when it was is not known */
}

Test(log_pick, no_more_bytes_are_given_than_wanted)
{
    want.limit_bytes = 6;
    expect(0, "one\ntw");
    want.limit_bytes = 0;
    expect(0, "");
    struct log_pick p = {.want = &want};
    cleanup_str struct str out = STR_INIT(64);
    log_pick_lines(&p, lines, sizeof lines - 1, &out);
    cr_expect(p.full);
}

Test(log_pick, lines_in_parts_count_once)
{
    cr_expect_eq(log_pick_count(lines, sizeof lines - 1), 5);
    cr_expect_eq(log_pick_count("", 0), 0);
}
