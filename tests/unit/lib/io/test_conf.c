#include "lib/io/conf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"

struct settings {
    const char *state, *mode, *cards;
    bool once;
    int64_t count, beat;
};

#define AT(member) offsetof(struct settings, member)
static const struct conf_setting table[] = {
    {.name = "state",
     .letter = 's',
     .offset = AT(state),
     .metavar = "DIR",
     .help = "Where allocations are kept."},
    {.name = "mode",
     .type = CONF_CHOICE,
     .offset = AT(mode),
     .otherwise = "fast",
     .choices = "fast|slow",
     .help = "How to go."},
    {.name = "card-file",
     .type = CONF_LIST,
     .offset = AT(cards),
     .metavar = "FILE",
     .help = "Files that describe cards."},
    {.name = "once",
     .letter = '1',
     .type = CONF_FLAG,
     .offset = AT(once),
     .help = "Leave after the first round."},
    {.name = "count",
     .letter = 'n',
     .type = CONF_INT,
     .offset = AT(count),
     .otherwise = "16",
     .min = -5,
     .max = 100,
     .help = "How many."},
    {.name = "beat",
     .type = CONF_DURATION,
     .offset = AT(beat),
     .otherwise = "5s",
     .min = 100,
     .max = 3600000,
     .help = "How often; a | b."},
};
static const char *const more[] = {"SEE ALSO", ".biga(1)", NULL};
static const struct conf_program program = {
    .name = "biga-test",
    .summary = "try the settings",
    .usage = "[OPTION]… [FILE]…",
    .text = "First paragraph.\n\n    biga-test --once\n\n.Third \\ one.",
    .settings = table,
    .n_settings = ARRAY_LEN(table),
    .extra = more,
};

/* Runs conf_read on words; returns its result. */
static int read_words(struct settings *ret, int *ret_rest, char **words,
                      struct error *err)
{
    int argc = 0;
    while (words[argc])
        argc++;
    return conf_read(&program, argc, words, ret, ret_rest, err);
}
#define W(text) ((char *)(text))
#define WORDS(...) ((char *[]){W("biga-test"), __VA_ARGS__, NULL})

static void refuse(char **words, const char *expected)
{
    struct settings s = {.count = 77};
    struct error err = {0};
    int rest = -1;
    cr_expect_eq(read_words(&s, &rest, words, &err), -EINVAL);
    cr_expect(strstr(err.text, expected), "\"%s\" lacks \"%s\"", err.text,
              expected);
    cr_expect_eq(s.count, 77, "target touched by a failure");
    cr_expect_eq(rest, -1);
}

static void refuse_word(const char *word, const char *expected)
{
    refuse(WORDS(W(word)), expected);
}

/* A file with this content; the caller frees the path and removes it. */
static char *write_file(const char *text)
{
    char *path = xstrdup("/tmp/biga-conf-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    return path;
}

Test(conf, defaults)
{
    struct settings s;
    struct error err;
    int rest;
    cr_assert_eq(read_words(&s, &rest, (char *[]){W("x"), NULL}, &err), 0);
    cr_expect_null(s.state);
    cr_expect_null(s.cards);
    cr_expect_str_eq(s.mode, "fast");
    cr_expect_not(s.once);
    cr_expect_eq(s.count, 16);
    cr_expect_eq(s.beat, 5000);
    cr_expect_eq(rest, 1);
    conf_fini(&program, &s);
    cr_expect_null(s.mode);
}

Test(conf, letters_stand_in_one_word)
{
    struct settings s;
    struct error err;
    int rest = 0;
    char *words[] = {W("x"), W("-11n5"), W("word"), NULL};
    cr_assert_eq(read_words(&s, &rest, words, &err), 0, "%s", err.text);
    cr_expect(s.once);
    cr_expect_eq(s.count, 5);
    conf_fini(&program, &s);
    char *apart[] = {W("x"), W("-1n"), W("6"), NULL};
    cr_assert_eq(read_words(&s, &rest, apart, &err), 0, "%s", err.text);
    cr_expect(s.once);
    cr_expect_eq(s.count, 6);
    conf_fini(&program, &s);
}

Test(conf, what_is_for_another_program_is_no_option)
{
    static const char *const wanted[] = {"run",    "host", "ls", "-l",
                                         "--once", "--",   "-n"};
    struct conf_program passes = program;
    struct settings s;
    struct error err;
    int rest = 0;
    char **words = WORDS(W("--count=3"), W("run"), W("-s"), W("/x"), W("host"),
                         W("ls"), W("-l"), W("--once"), W("--"), W("-n"));
    int argc = 0;
    while (words[argc])
        argc++;
    passes.passes_on = "run";
    cr_assert_eq(conf_read(&passes, argc, words, &s, &rest, &err), 0, "%s",
                 err.text);
    cr_expect_eq(s.count, 3);
    cr_expect_str_eq(s.state, "/x");
    cr_expect_not(s.once);
    cr_assert_eq(argc - rest, (int)ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        cr_expect_str_eq(words[rest + (int)i], wanted[i]);
    conf_fini(&passes, &s);
}

Test(conf, what_would_do_nothing_is_refused)
{
    static const struct {
        const char *word, *text;
    } cases[] = {
        {"--state=/x", "--state: needs --once"},
        {"--mode=slow", "--mode: needs --once"},
        {"--card-file=a", "--card-file: needs --once"},
        {"--count=17", "--count: needs --once"},
        {"--beat=6s", "--beat: needs --once"},
        {"--state=", NULL},
        {"--mode=fast", NULL}, /* as without it */
        {"--count=16", NULL},
        {"--beat=5000ms", NULL},
    };
    static const char *const names[] = {"state", "mode", "card-file", "count",
                                        "beat"};
    for (size_t i = 0; i < ARRAY_LEN(cases) * 2; i++) {
        const char *text = cases[i / 2].text;
        struct settings s;
        struct error err = {0};
        int rest;
        char **words = i % 2 ? WORDS(W(cases[i / 2].word), W("--once"))
                             : WORDS(W(cases[i / 2].word));
        cr_assert_eq(read_words(&s, &rest, words, &err), 0, "%s", err.text);
        struct conf_need needs[ARRAY_LEN(names)];
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            needs[k] = (struct conf_need){names[k], s.once, "needs --once"};
        int r = conf_check_needs(&program, &s, needs, ARRAY_LEN(needs), &err);
        cr_expect_eq(r, text && !s.once ? -EINVAL : 0, "case %zu", i);
        cr_expect_str_eq(err.text, text && !s.once ? text : "", "case %zu", i);
        conf_fini(&program, &s);
    }
}

Test(conf, what_a_variable_says_may_be_for_another_program)
{
    const struct conf_need needs[] = {{"state", false, "needs --once"},
                                      {"count", false, "needs --once"}};
    struct settings s;
    struct error err = {0};
    int rest;
    cr_assert_eq(setenv("BIGA_STATE", "/x", 1), 0);
    cr_assert_eq(setenv("BIGA_COUNT", "17", 1), 0);
    cr_assert_eq(read_words(&s, &rest, WORDS(W("a")), &err), 0);
    cr_expect_eq(conf_check_needs(&program, &s, needs, 2, &err), 0, "%s",
                 err.text);
    conf_fini(&program, &s);
    cr_assert_eq(read_words(&s, &rest, WORDS(W("--count=18")), &err), 0);
    cr_expect_eq(conf_check_needs(&program, &s, needs, 2, &err), -EINVAL);
    cr_expect_str_eq(err.text, "--count: needs --once");
    conf_fini(&program, &s);
}

Test(conf, command_line_in_all_its_forms)
{
    struct settings s;
    struct error err;
    int rest;
    char **words = WORDS(W("-n-3"), W("--state"), W("/var/x"), W("first"),
                         W("--once"), W("--beat=250ms"), W("--card-file=a"),
                         W("--card-file"), W("b"), W("--mode"), W("slow"),
                         W("--"), W("--count=1"));
    cr_assert_eq(read_words(&s, &rest, words, &err), 0, "%s", err.text);
    cr_expect_eq(s.count, -3);
    cr_expect_str_eq(s.state, "/var/x");
    cr_expect(s.once);
    cr_expect_eq(s.beat, 250);
    cr_expect_str_eq(s.cards, "a,b");
    cr_expect_str_eq(s.mode, "slow");
    cr_expect_str_eq(words[rest], "first");
    cr_expect_str_eq(words[rest + 1], "--count=1");
    cr_expect_null(words[rest + 2]);
    conf_fini(&program, &s);
}

Test(conf, a_flag_can_be_taken_back_and_the_last_wins)
{
    struct settings s;
    struct error err;
    int rest;
    char **words = WORDS(W("-1"), W("--once=false"), W("-n"), W("1"), W("-n"),
                         W("2"));
    cr_assert_eq(read_words(&s, &rest, words, &err), 0, "%s", err.text);
    cr_expect_not(s.once);
    cr_expect_eq(s.count, 2);
    conf_fini(&program, &s);
}

Test(conf, units_of_time)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"--beat=100ms", 100},
                {"--beat=1s", 1000},
                {"--beat=2m", 120000},
                {"--beat=1h", 3600000}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct settings s;
        struct error err;
        int rest;
        char **words = WORDS(W(good[i].text));
        cr_assert_eq(read_words(&s, &rest, words, &err), 0, "%s", err.text);
        cr_expect_eq(s.beat, good[i].ms);
        conf_fini(&program, &s);
    }
}

Test(conf, command_line_faults_name_the_option)
{
    refuse(WORDS(W("--stat"), W("x")),
           "--stat: no such option; did you mean --state?");
    refuse(WORDS(W("--frobnicate=x")), "--frobnicate: no such option; see ");
    refuse_word("-x", "-x: no such option");
    refuse_word("-1x", "-x: no such option");
    refuse_word("--state", "--state: needs a value");
    refuse_word("--once=maybe", "--once: \"maybe\" is not allowed");
    refuse_word("--count=101", "must be a number from -5 to 100");
    refuse_word("--count=-6", "--count: \"-6\"");
    refuse_word("--count=", "--count: \"\"");
    refuse_word("--count= 1", "--count: \" 1\"");
    refuse_word("--count=+1", "--count");
    refuse_word("--count=1x", "--count");
    refuse_word("--count=99999999999999999999", "--count");
    refuse_word("--beat=5", "--beat: \"5\" is not allowed; must be a time "
                            "from 100ms to 1h");
    refuse_word("--beat=s", "--beat");
    refuse_word("--beat=0", "--beat");
    refuse_word("--beat=-5s", "--beat");
    refuse_word("--beat=9223372036854775807h", "--beat");
    refuse_word("--mode=fas", "--mode: \"fas\" is not allowed; must be one "
                              "of fast, slow");
    refuse_word("--mode=fast|slow", "--mode");
    refuse_word("--state=a\nb", "--state: holds a control character");
    refuse_word("--state=\xff", "--state: holds");
    refuse_word("--print-docs=html", "--print-docs");
}

Test(conf, too_long_a_value_is_refused)
{
    char *word = xmalloc(5000);
    memset(word, 'x', 4999);
    word[4999] = '\0';
    memcpy(word, "--state=", 8);
    refuse_word(word, "--state: has 4991 bytes, the limit is 4096");
    free(word);
}

Test(conf, the_environment_is_below_the_command_line)
{
    struct settings s;
    struct error err;
    int rest;
    char **words = WORDS(W("--card-file=a"));
    setenv("BIGA_STATE", "/env", 1);
    setenv("BIGA_CARD_FILE", "c,d", 1);
    setenv("BIGA_COUNT", "", 1);
    cr_assert_eq(read_words(&s, &rest, words, &err), 0);
    cr_expect_str_eq(s.state, "/env");
    cr_expect_str_eq(s.cards, "a", "another source replaces a list");
    cr_expect_eq(s.count, 16, "empty counts as unset");
    conf_fini(&program, &s);
    setenv("BIGA_COUNT", "many", 1);
    refuse_word("--count=1", "$BIGA_COUNT: \"many\"");
}

Test(conf, the_file_is_below_the_environment)
{
    struct settings s;
    struct error err;
    int rest;
    cleanup_free char *path = write_file("# comment\n\n state = /file \r\n"
                                         "count=3\nbeat = 1m");
    char **words = WORDS(W("--config"), path);
    setenv("BIGA_COUNT", "4", 1);
    cr_assert_eq(read_words(&s, &rest, words, &err), 0, "%s", err.text);
    cr_expect_str_eq(s.state, "/file");
    cr_expect_eq(s.count, 4);
    cr_expect_eq(s.beat, 60000);
    conf_fini(&program, &s);
    (void)unlink(path);
}

Test(conf, a_missing_file_is_named)
{
    struct settings s;
    struct error err;
    int rest;
    char **words = WORDS(W("--config=/nonexistent/f"));
    cr_assert_eq(read_words(&s, &rest, words, &err), -ENOENT);
    cr_expect(strstr(err.text, "--config: /nonexistent/f: No such file"), "%s",
              err.text);
}

static void refuse_text(const char *text, size_t size, const char *expected)
{
    struct settings s = {.count = 77};
    struct error err = {0};
    cr_expect_eq(conf_read_text(&program, "F", text, size, &s, &err), -EINVAL);
    cr_expect(strstr(err.text, expected), "\"%s\" lacks \"%s\"", err.text,
              expected);
    cr_expect_eq(s.count, 77);
}
#define REFUSE_TEXT(text, expected) \
    refuse_text(text, sizeof(text) - 1, expected)

Test(conf, file_faults_name_the_line)
{
    REFUSE_TEXT("count = 1\nstate", "F:2: is not \"name = value\"");
    REFUSE_TEXT("\n\nstat = x", "F:3: \"stat\" is no setting of biga-test");
    REFUSE_TEXT("= x", "F:1: \"\" is no setting");
    REFUSE_TEXT("help = true", "F:1: \"help\" is no setting");
    REFUSE_TEXT("count = 1\ncount = 2", "F:2: count: already set in line 1");
    REFUSE_TEXT("count = 1 # one", "F:1: count: \"1 # one\" is not allowed");
    REFUSE_TEXT("state = a\0b", "F:1: state: holds a NUL byte");
    REFUSE_TEXT("\xef\xbb\xbf"
                "count = 1",
                "F:1: ");
    cleanup_free char *big = xmalloc(65537);
    memset(big, '\n', 65537);
    refuse_text(big, 65537, "F: is larger than 65536 bytes");
}

Test(conf, lists_of_a_file_grow)
{
    static const char text[] = "card-file = a\ncard-file=b,c\n";
    struct settings s;
    struct error err;
    cr_assert_eq(conf_read_text(&program, "F", text, sizeof text - 1, &s, &err),
                 0);
    cr_expect_str_eq(s.cards, "a,b,c");
    conf_fini(&program, &s);
}

Test(conf, a_wrong_default_is_found)
{
    static const struct conf_setting wrong[] = {
        {.name = "count", .type = CONF_INT, .otherwise = "x", .help = "?"}};
    struct conf_program p = program;
    struct settings s;
    struct error err;
    p.settings = wrong;
    p.n_settings = 1;
    cr_assert_eq(conf_read_text(&p, "F", "", 0, &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "default of --count"), "%s", err.text);
}

/* What one of the printers writes; the caller frees. */
static char *printed(void (*print)(const struct conf_program *, FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    print(&program, f);
    (void)fclose(f);
    return text;
}

static void expect_all(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        cr_expect(strstr(text, *parts), "lacks \"%s\":\n%s", *parts, text);
}

Test(conf, help_names_everything_within_80_columns)
{
    cleanup_free char *text = printed(conf_print_help);
    static const char *const parts[] = {"Usage: biga-test [OPTION]",
                                        "-s, --state DIR",
                                        "--mode fast|slow",
                                        "Default: 16.",
                                        "--config FILE",
                                        "-h, --help",
                                        "--version",
                                        "BIGA_STATE",
                                        NULL};
    expect_all(text, parts);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        cr_expect_leq(n, 82, "%.*s", (int)n, p);
        p += n + (p[n] != '\0');
    }
}

Test(conf, man_page_escapes_roff)
{
    cleanup_free char *text = printed(conf_print_man);
    static const char *const parts[] = {
        ".TH \"BIGA-TEST\" 1",
        "\\fB\\-s\\fR, \\fB\\-\\-state\\fR \\fIDIR\\fR",
        ".nf\n    biga\\-test \\-\\-once\n.fi",
        "\\&.Third \\e one.",
        ".SH SEE ALSO",
        "\\&.biga(1)",
        "Environment: \\fBBIGA_CARD_FILE\\fR.",
        NULL};
    expect_all(text, parts);
}

Test(conf, markdown_is_a_table)
{
    cleanup_free char *text = printed(conf_print_markdown);
    static const char *const parts[] = {
        "## biga-test", "| `--count`, `-n` | `16` | a number from -5 to 100",
        "How often; a \\| b. |", NULL};
    expect_all(text, parts);
}

Test(conf, knows_what_the_command_line_gave)
{
    char name[] = "biga-test", count[] = "--count=16", once[] = "--once";
    char *argv[] = {name, count, once, NULL};
    struct settings got = {0};
    struct conf_program own = program;
    bool given[8] = {false};
    struct error err = {0};
    int rest;
    cr_assert_leq(program.n_settings, ARRAY_LEN(given));
    own.given = given;
    cr_assert_eq(setenv("BIGA_STATE", "/s", 1), 0);
    cr_assert_eq(conf_read(&own, 3, argv, &got, &rest, &err), 0, "%s",
                 err.text);
    for (size_t i = 0; i < program.n_settings; i++) {
        const char *s = program.settings[i].name;
        cr_expect_eq(given[i],
                     strcmp(s, "count") == 0 || strcmp(s, "once") == 0, "%s",
                     s);
    }
    conf_fini(&own, &got);
}

Test(conf, completion_lists_the_options)
{
    cleanup_free char *text = printed(conf_print_completion);
    static const char *const parts[] = {" --state", " --print-docs",
                                        "biga-test\n", NULL};
    expect_all(text, parts);
}
