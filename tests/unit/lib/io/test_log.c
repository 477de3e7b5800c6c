#include "lib/io/log.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/testdata.h"

/* What `act` writes on stderr; the caller frees. */
static char *stderr_of(void (*act)(void))
{
    char path[] = "/tmp/biga-log-XXXXXX";
    int fd = mkstemp(path), saved = dup(2);
    cr_assert(fd >= 0 && saved >= 0);
    (void)dup2(fd, 2);
    act();
    (void)dup2(saved, 2);
    (void)close(saved);
    (void)close(fd);
    char *text = testdata_read(path, NULL);
    (void)unlink(path);
    return text;
}

/* The line behind its time. */
static const char *body(const char *line)
{
    int y, mo, d, h, mi, s, ms, n = 0;
    cr_assert_eq(sscanf(line, "ts=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &y, &mo, &d,
                        &h, &mi, &s, &ms, &n),
                 7, "%s", line);
    cr_assert(y >= 1970 && mo >= 1 && mo <= 12 && h < 24 && s <= 60);
    return line + n;
}

static void act_pairs(void)
{
    log_event(LOG_INFO, "bound", "node", "h-1.x", "why", "a b", "q", "\"\\",
              "eq", "a=b", "none", NULL, NULL);
}

static void act_null(void)
{
    log_event(LOG_WARN, "x", "none", (const char *)NULL, "more", "1", NULL);
}

Test(log, one_event_is_one_line_of_pairs)
{
    cleanup_free char *text = stderr_of(act_pairs);
    cr_expect_str_eq(body(text),
                     "level=info event=bound node=h-1.x why=\"a b\" "
                     "q=\"\\\"\\\\\" eq=\"a=b\" none=\"\"\n");
    cleanup_free char *null = stderr_of(act_null);
    cr_expect_str_eq(body(null), "level=warn event=x none=\"\" more=1\n");
}

static void act_hostile(void)
{
    log_event(LOG_ERROR, "x", "v", "a\nts=0 level=info\x1b[2J\xff", NULL);
}

Test(log, a_value_cannot_forge_a_line)
{
    cleanup_free char *text = stderr_of(act_hostile);
    cr_expect_str_eq(body(text), "level=error event=x v=\"a\\nts=0 level=info"
                                 "\\u001b[2J\xef\xbf\xbd\"\n");
}

/* A C1 control, an override of direction, and a tag. */
static void act_hidden(void)
{
    log_event(LOG_WARN, "x", "v",
              "a\xc2\x9b"
              "2J\xe2\x80\xae"
              "b\xe2\x80\xa8",
              "w", "\xf3\xa0\x80\x81", "n", "é", NULL);
}

Test(log, a_value_hides_nothing)
{
    cleanup_free char *text = stderr_of(act_hidden);
    cr_expect_str_eq(body(text),
                     "level=warn event=x v=\"a\\u009b2J\\u202eb\\u2028\" "
                     "w=\"\\udb40\\udc01\" n=\"é\"\n");
}

static void act_long(void)
{
    char value[9000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    log_event(LOG_INFO, "x", "a", value, "b", value, "c", value, "d", value,
              "e", value, "f", value, "g", value, "h", value, "i", value, "j",
              value, NULL);
}

Test(log, long_values_are_cut_and_the_line_ends)
{
    cleanup_free char *text = stderr_of(act_long);
    size_t size = strlen(text);
    cr_expect_leq(size, 16385);
    cr_expect_eq(text[size - 1], '\n');
    cr_expect_eq(strchr(text, '\n'), text + size - 1, "one line");
    cr_expect_eq(strspn(strstr(text, "a=") + 2, "v"), 2048);
}

static void act_levels(void)
{
    log_event(LOG_DEBUG, "d", NULL);
    log_set_level(LOG_ERROR);
    log_event(LOG_WARN, "w", NULL);
    log_event(LOG_ERROR, "e", NULL);
    log_set_level(LOG_DEBUG);
    log_event(LOG_DEBUG, "d2", NULL);
}

Test(log, levels)
{
    cr_expect_eq(log_level(), LOG_INFO);
    cleanup_free char *text = stderr_of(act_levels);
    cr_expect_null(strstr(text, "event=d\n"));
    cr_expect_null(strstr(text, "event=w\n"));
    cr_expect_not_null(strstr(text, "level=error event=e\n"));
    cr_expect_not_null(strstr(text, "level=debug event=d2\n"));
    cr_expect_eq(log_level_parse("debug"), LOG_DEBUG);
    cr_expect_eq(log_level_parse("error"), LOG_ERROR);
    cr_expect_eq(log_level_parse("Error"), -1);
    cr_expect_eq(log_level_parse(""), -1);
}

static void *log_many(void *arg)
{
    for (int i = 0; i < 500; i++)
        log_event(LOG_INFO, "many", "thread", arg, "filler",
                  "0123456789012345678901234567890123456789", NULL);
    return NULL;
}

static void act_threads(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    pthread_t threads[ARRAY_LEN(names)];
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, log_many,
                                    (void *)(uintptr_t)names[i]),
                     0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void)pthread_join(threads[i], NULL);
}

Test(log, lines_of_threads_do_not_mix)
{
    cleanup_free char *text = stderr_of(act_threads);
    int n = 0;
    for (char *p = text, *line; (line = strsep(&p, "\n")) && *line; n++) {
        cr_assert(strncmp(line, "ts=", 3) == 0, "%s", line);
        const char *last = strstr(line, " filler=");
        cr_assert(last && strlen(last) == 8 + 40, "%s", line);
    }
    cr_expect_eq(n, 2000);
}

Test(clock, goes_forward_and_can_be_frozen)
{
    int64_t a = clock_ns(), b = clock_ns();
    cr_expect_leq(a, b);
    cr_expect_gt(a, 0);
    clock_set_fake(1234);
    cr_expect_eq(clock_ms(), 1234);
    cr_expect_eq(clock_ns(), 1234000000);
    clock_set_fake(-1);
    cr_expect_geq(clock_ns(), b);
    int64_t ms = clock_ms(), ns = clock_ns();
    cr_expect_leq(ms, ns / 1000000);
}
