#include "advertiser/act/log/log_reader.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/rfc3339.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/tmpdir.h"

enum { HANGS = 60000, LOOK_US = 1000 };
#define AT(s) "2026-01-01T00:00:" s "Z stdout "

static struct actrig r;
static char *dir;
static struct error err;

static void write_log(unsigned attempt, const char *text)
{
    cleanup_free char *path = xasprintf("%s/a-%u.log", dir, attempt);
    FILE *f = fopen(path, "we");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
}

/* All that there is now; -errno. */
static int read_all(const struct act_log_ask *more, struct log_want want,
                    struct str *out)
{
    struct act_log_ask ask = *more;
    struct log_reader reader;
    int e;
    ask.namespace = "lab";
    ask.name = "x";
    ask.container = "a";
    log_reader_init(&reader, &ask, &want);
    str_reset(out);
    do {
        e = log_reader_next(&reader, r.a, out, &err);
    } while (e == 0 && reader.news && !reader.ended);
    return e;
}

static void expect(struct log_want want, const char *wanted)
{
    cleanup_str struct str got = STR_INIT(8 << 20);
    cr_assert_eq(read_all(&(struct act_log_ask){0}, want, &got), 0, "%s",
                 err.text);
    cr_expect_str_eq(str_text(&got), wanted);
}

static void begin(void)
{
    cleanup_str struct str got = STR_INIT(8 << 20);
    dir = tmpdir_create();
    actrig_init(&r, 1);
    r.config.helper_image = "helper";
    r.config.lost_ms = 240000;
    cardserver_take(r.cards[0], &(struct cardserver_times){0});
    cardserver_logs(r.cards[0], dir);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, "biga-helper-card-0", 2));
    /* the helper is known to run once it was listed */
    for (int i = 0; i < HANGS &&
                    read_all(&(struct act_log_ask){0}, LOG_WANT_ALL, &got) != 0;
         i++)
        (void)usleep(LOOK_US);
}

static void end(void)
{
    actrig_fini(&r);
    tmpdir_remove(dir);
}

TestSuite(log_reader, .init = begin, .fini = end, .timeout = 180);

Test(log_reader, gives_the_lines_that_are_wanted)
{
    struct log_want want = LOG_WANT_ALL;
    write_log(1, AT("01") "F one\n" AT("02") "P tw\n" AT("02") "F o\n" AT(
                     "03") "F three\n");
    expect(want, "one\ntwo\nthree\n");
    want.tail_lines = 2;
    expect(want, "two\nthree\n");
    want.timestamps = true;
    expect(want, "2026-01-01T00:00:02Z two\n2026-01-01T00:00:03Z three\n");
    want.limit_bytes = 24;
    expect(want, "2026-01-01T00:00:02Z two");
    want = LOG_WANT_ALL;
    cr_assert(rfc3339_parse_ns("2026-01-01T00:00:03Z", 20, &want.since_ns));
    expect(want, "three\n");
    want.tail_lines = 0;
    expect(want, "");
}

/* Of more than is looked at for the last ones. */
Test(log_reader, finds_any_number_of_last_lines)
{
    enum { LINES = 40000 };
    cleanup_str struct str log = STR_INIT(8 << 20), wanted = STR_INIT(8 << 20);
    struct log_want want = LOG_WANT_ALL;
    static const unsigned tails[] = {1, 100, LINES - 1, LINES, LINES + 1};
    for (unsigned i = 0; i < LINES; i++)
        str_addf(&log, AT("01") "F line %06u\n", i);
    cr_assert(log.size > CRI_EXEC_OUTPUT_MAX);
    write_log(1, str_text(&log));
    for (size_t t = 0; t < ARRAY_LEN(tails); t++) {
        str_reset(&wanted);
        for (unsigned i = tails[t] < LINES ? LINES - tails[t] : 0; i < LINES;
             i++)
            str_addf(&wanted, "line %06u\n", i);
        want.tail_lines = tails[t];
        expect(want, str_text(&wanted));
    }
}

Test(log_reader, gives_the_log_of_the_life_before)
{
    const struct act_log_ask previous = {.previous = true};
    cleanup_str struct str got = STR_INIT(4096);
    struct act_pod_status pod = {0};
    write_log(1, AT("01") "F first\n" AT("02") "F and last\n");
    cr_expect_eq(read_all(&previous, LOG_WANT_ALL, &got), -ENOENT);
    cr_expect(strstr(err.text, "was not begun before"), "%s", err.text);
    write_log(2, AT("03") "F second\n");
    cr_assert_eq(cardserver_exit(r.cards[0], "x"), 1);
    for (int i = 0; i < HANGS; i++) {
        cr_assert_eq(actuator_find(r.a, "lab", "x", &pod), 0);
        if (pod.state == ACT_RUNNING && pod.containers[0].restarts == 1)
            break;
        (void)usleep(LOOK_US);
    }
    cr_assert_eq(pod.containers[0].restarts, 1);
    expect(LOG_WANT_ALL, "second\n");
    cr_expect_eq(read_all(&previous, LOG_WANT_ALL, &got), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&got), "first\nand last\n");
    struct log_want last = LOG_WANT_ALL;
    last.tail_lines = 1;
    cr_expect_eq(read_all(&previous, last, &got), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&got), "and last\n");
}

/* One that is made again under its name is another. */
Test(log_reader, gives_the_log_of_the_pod_that_was_meant)
{
    const struct act_log_ask first = {.uid = "x"}, second = {.uid = "x-2"};
    const struct act_pod again = {.name = "x", .uid = "x-2", .place = "card-0"};
    cleanup_str struct str got = STR_INIT(4096);
    write_log(1, AT("01") "F of the first\n");
    cr_expect_eq(read_all(&first, LOG_WANT_ALL, &got), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&got), "of the first\n");
    cr_expect_eq(read_all(&second, LOG_WANT_ALL, &got), -ENOENT);
    /* of biga-card's tail, when it is over */
    cardserver_exec(r.cards[0], 0, "of the first\n", "next=40\n");
    cr_assert_eq(actuator_end(r.a, "x", 0, &err), 0, "%s", err.text);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cr_assert_eq(actrig_want_as(&r, again), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    write_log(1, AT("02") "F of the second\n");
    for (int i = 0; i < HANGS && read_all(&second, LOG_WANT_ALL, &got) != 0;
         i++)
        (void)usleep(LOOK_US);
    cr_expect_str_eq(str_text(&got), "of the second\n");
    cr_expect_eq(read_all(&first, LOG_WANT_ALL, &got), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&got), "of the first\n", "what was kept of it");
}

Test(log_reader, says_when_the_helper_is_too_old)
{
    cleanup_str struct str got = STR_INIT(4096);
    cardserver_logs_max(r.cards[0], 1);
    cr_expect_eq(read_all(&(struct act_log_ask){0}, LOG_WANT_ALL, &got),
                 -ENOTSUP);
    cr_expect(strstr(err.text, "update its image"), "%s", err.text);
}
