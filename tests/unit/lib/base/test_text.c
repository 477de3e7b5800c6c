#include "lib/base/text.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "tests/lib/randnode.h"

Test(text, a_character_takes_one_column)
{
    cr_expect_eq(text_width("◀ pair"), 6);
    cr_expect_eq(text_width(""), 0);
    cr_expect_eq(text_width_n("ab◀", 2), 2);
}

/* What each is in UTF-8, and as a log writes it. */
static const struct {
    const char *name, *text, *quoted;
} hidden[] = {
    {"escape", "\x1b", "\\u001b"},
    {"newline", "\n", "\\n"},
    {"delete", "\x7f", "\\u007f"},
    {"C1, first", "\xc2\x80", "\\u0080"},
    {"next line", "\xc2\x85", "\\u0085"},
    {"control sequence introducer", "\xc2\x9b", "\\u009b"},
    {"C1, last", "\xc2\x9f", "\\u009f"},
    {"soft hyphen", "\xc2\xad", "\\u00ad"},
    {"Arabic letter mark", "\xd8\x9c", "\\u061c"},
    {"zero width space", "\xe2\x80\x8b", "\\u200b"},
    {"zero width joiner", "\xe2\x80\x8d", "\\u200d"},
    {"left-to-right mark", "\xe2\x80\x8e", "\\u200e"},
    {"right-to-left mark", "\xe2\x80\x8f", "\\u200f"},
    {"line separator", "\xe2\x80\xa8", "\\u2028"},
    {"paragraph separator", "\xe2\x80\xa9", "\\u2029"},
    {"embedding", "\xe2\x80\xaa", "\\u202a"},
    {"right-to-left override", "\xe2\x80\xae", "\\u202e"},
    {"word joiner", "\xe2\x81\xa0", "\\u2060"},
    {"isolate", "\xe2\x81\xa6", "\\u2066"},
    {"end of isolate", "\xe2\x81\xa9", "\\u2069"},
    {"byte order mark", "\xef\xbb\xbf", "\\ufeff"},
    {"annotation", "\xef\xbf\xb9", "\\ufff9"},
    {"tag", "\xf3\xa0\x80\x81", "\\udb40\\udc01"},
    {"no UTF-8", "\xff", "\xef\xbf\xbd"},
    {"a C1 byte alone", "\x9b", "\xef\xbf\xbd"},
};

static const char *const shown[] = {"plain",
                                    "é",
                                    "\xc2\xa0",
                                    "◀",
                                    "日本",
                                    "עב",
                                    "😀",
                                    "…",
                                    "\xe2\x80\x90",
                                    "\xef\xb8\x8f",
                                    "\xef\xbf\xbd"};

Test(text, what_is_hidden_is_made_visible)
{
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        cleanup_str struct str in = STR_INIT(100), clean = STR_INIT(100);
        cleanup_str struct str page = STR_INIT(100), quoted = STR_INIT(100);
        cleanup_str struct str want = STR_INIT(100);
        struct error err;
        str_addf(&in, "a%sé", hidden[i].text);
        str_addf(&want, "\"a%sé\"", hidden[i].quoted);
        text_clean(in.data, &clean);
        text_escape(in.data, &page);
        text_quote_n(in.data, in.size, &quoted);
        cr_expect_str_eq(clean.data, "a?é", "%s", hidden[i].name);
        cr_expect_str_eq(page.data, "a?é", "%s", hidden[i].name);
        cr_expect_str_eq(quoted.data, want.data, "%s", hidden[i].name);
        (void)error_set(&err, EINVAL, "%s", in.data);
        cr_expect_str_eq(err.text, *hidden[i].text == '\n' ? "a\né" : "a?é",
                         "%s", hidden[i].name);
    }
}

Test(text, what_shows_stays)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        cleanup_str struct str clean = STR_INIT(100), quoted = STR_INIT(100);
        cleanup_str struct str want = STR_INIT(100);
        struct error err;
        str_addf(&want, "\"%s\"", shown[i]);
        text_clean(shown[i], &clean);
        text_quote_n(shown[i], strlen(shown[i]), &quoted);
        (void)error_set(&err, EINVAL, "%s", shown[i]);
        cr_expect_str_eq(clean.data, shown[i]);
        cr_expect_str_eq(quoted.data, want.data);
        cr_expect_str_eq(err.text, shown[i]);
    }
}

/* An error is cut to its size, also between the bytes of a character. */
Test(text, a_cut_error_is_whole)
{
    char text[ERROR_TEXT_MAX + 10];
    struct error err;
    memset(text, 'x', sizeof text);
    memcpy(text + ERROR_TEXT_MAX - 3, "\xe2\x97\x80", 4);
    (void)error_set(&err, EINVAL, "%s", text);
    cr_expect_str_eq(err.text + ERROR_TEXT_MAX - 4, "x??");
}

Test(text, control_characters_reach_nobody)
{
    static const struct {
        const char *text, *clean;
    } cases[] = {
        {"plain ◀ \xc2\xa0 é", "plain ◀ \xc2\xa0 é"},
        {"\033[31mred", "?[31mred"},
        {"a\n\tb\x7f", "a??b?"},
        {"\xc2\x9b"
         "31m\xc2\x80",
         "?31m?"},
        {"cut \xc2", "cut ?"},
        {"<&>\"'", "<&>\"'"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_str struct str out = STR_INIT(100);
        text_clean(cases[i].text, &out);
        cr_expect_str_eq(str_text(&out), cases[i].clean, "case %zu", i);
    }
}

Test(text, names_lose_their_middle)
{
    cleanup_str struct str out = STR_INIT(4096);
    text_escape_short("rack-17-leaf-0042", 12, &out);
    cr_expect_str_eq(str_text(&out), "rack…af-0042");
    str_reset(&out);
    text_escape_short("äääääääääää<", 9, &out);
    cr_expect_str_eq(str_text(&out), "ä…ää&lt;");
    str_reset(&out);
    text_escape_short("short", 5, &out);
    cr_expect_str_eq(str_text(&out), "short");
}

/* No XML may have these. */
Test(text, what_is_no_character_is_hidden)
{
    cleanup_str struct str out = STR_INIT(4096);
    text_escape("a\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", &out);
    cr_expect_str_eq(str_text(&out), "a??\xef\xbf\xbd");
}

Test(text, markup_is_escaped)
{
    cleanup_str struct str out = STR_INIT(100);
    text_escape("<b a='1' c=\"2\">&\033 ◀\xc2\x9b", &out);
    cr_expect_str_eq(str_text(&out),
                     "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;? ◀?");
    str_reset(&out);
    text_escape_n("a<b", 2, &out);
    cr_expect_str_eq(str_text(&out), "a&lt;");
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

Test(text, numbers_are_in_order)
{
    static const char *const sorted[] = {"",
                                         "-",
                                         "0",
                                         "00",
                                         "1",
                                         "2",
                                         "10",
                                         "a",
                                         "a-b",
                                         "a0",
                                         "a01",
                                         "a1",
                                         "a1b2",
                                         "a1b10",
                                         "a1c",
                                         "a2",
                                         "a9",
                                         "a010",
                                         "a10",
                                         "a10-2",
                                         "leaf06",
                                         "leaf6",
                                         "leaf10",
                                         "leaf10/a-2",
                                         "leaf10/a-10",
                                         "leaf6144",
                                         "leaf99999999999999999999",
                                         "leaf100000000000000000000",
                                         "node",
                                         "node-",
                                         "\xc3\xa4"};
    size_t n = ARRAY_LEN(sorted);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const char *a = sorted[i], *b = sorted[k];
            int want = i < k ? -1 : i > k;
            int got = sign(text_order(a, b));
            cr_expect_eq(got, want, "\"%s\" and \"%s\"", a, b);
        }
}

/* It is one of all texts: sorting never depends on how they came. */
Test(text, order_is_total)
{
    static const char letters[] = "0012a-";
    enum { TEXTS = 60, ROUNDS = 40 };
    printf("seed %llu\n", (unsigned long long)chance_init());
    for (unsigned round = 0; round < ROUNDS; round++) {
        char texts[TEXTS][8];
        for (size_t i = 0; i < TEXTS; i++) {
            size_t size = roll(7);
            for (size_t c = 0; c < size; c++)
                texts[i][c] = letters[roll(sizeof letters - 1)];
            texts[i][size] = '\0';
        }
        for (size_t i = 0; i < TEXTS; i++)
            for (size_t k = 0; k < TEXTS; k++) {
                int order = sign(text_order(texts[i], texts[k]));
                cr_assert_eq(order, -sign(text_order(texts[k], texts[i])));
                cr_assert_eq(order == 0, strcmp(texts[i], texts[k]) == 0);
                for (size_t m = 0; m < TEXTS && order < 0; m++)
                    cr_assert(text_order(texts[k], texts[m]) > 0 ||
                                  text_order(texts[i], texts[m]) < 0,
                              "%s %s %s", texts[i], texts[k], texts[m]);
            }
    }
}

Test(text, words_are_wrapped)
{
    static const struct {
        const char *text;
        size_t column, indent, width;
        const char *want;
    } cases[] = {
        {"", 0, 0, 10, ""},
        {"one two three", 0, 2, 7, "one two\n  three"},
        {"one two three", 4, 2, 7, "one\n  two\n  three"},
        {"no-place-for-this word", 0, 0, 5, "no-place-for-this\nword"},
        {"\xc3\xa4\xc3\xb6 \xc3\xbc", 0, 0, 4, "\xc3\xa4\xc3\xb6 \xc3\xbc"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cleanup_str struct str out = STR_INIT(256);
        text_wrap(cases[i].text, cases[i].column, cases[i].indent,
                  cases[i].width, &out);
        cr_expect_str_eq(str_text(&out), cases[i].want);
    }
}

Test(text, words_of_a_command_stay_words)
{
    static const char *const cases[][2] = {
        {"default/ring-0", "default/ring-0"},
        {"a b", "'a b'"},
        {"x'; rm -rf /; '", "'x'\\''; rm -rf /; '\\'''"},
        {"", "''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cleanup_str struct str out = STR_INIT(256);
        shell_add_word(&out, cases[i][0]);
        cr_expect_str_eq(str_text(&out), cases[i][1]);
    }
}

Test(text, is_searched_whatever_its_case)
{
    static const struct {
        const char *text, *part;
        bool has;
    } cases[] = {
        {"leaf0012", "f001", true}, {"Leaf0012", "leaf", true},
        {"aab", "ab", true},        {"0000:C1:00.0", ":c1:", true},
        {"abc", "abc", true},       {"abc", "abcd", false},
        {"abc", "", true},          {"", "", true},
        {"", "a", false},           {"abc", "ac", false},
        {"a[", "a{", false},        {"a@", "a`", false},
        {"aac", "ab", false},       {"\303\204", "\303\244", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_eq(text_has(cases[i].text, strlen(cases[i].text),
                              cases[i].part, strlen(cases[i].part)),
                     cases[i].has, "%s in %s", cases[i].part, cases[i].text);
    cr_expect_not(text_has("abcd", 3, "cd", 2), "what is behind is no part");
}

static struct text_sketch sketch_of(const char *text)
{
    struct text_sketch s = {0};
    text_sketch_add(&s, text);
    return s;
}

Test(text, sketch_may_have_every_part)
{
    static const char *const texts[] = {"MT2344XZ00012301", "16524-a.B", "x",
                                        "", "\xc3\xa9t\xc3\xa9 9"};
    struct text_sketch all = {0};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text_sketch_add(&all, texts[i]);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (size_t from = 0; from <= strlen(texts[i]); from++)
            for (size_t n = 0; from + n <= strlen(texts[i]); n++) {
                char part[32] = "";
                memcpy(part, texts[i] + from, n);
                struct text_sketch as_is = sketch_of(part);
                text_lower(part);
                struct text_sketch lower = sketch_of(part);
                cr_expect(text_sketch_may_have(&all, &as_is), "%s", part);
                cr_expect(text_sketch_may_have(&all, &lower), "%s", part);
            }
}

Test(text, sketch_tells_most_of_what_is_not_there)
{
    const struct text_sketch of = sketch_of("MT2344XZ00012301");
    static const char *const parts[] = {"q",  "job-0", "45",
                                        "zz", "0231",  "44xz1"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct text_sketch part = sketch_of(parts[i]);
        cr_expect_not(text_sketch_may_have(&of, &part), "%s", parts[i]);
    }
}

Test(text, sketch_keeps_texts_apart)
{
    struct text_sketch two = {0}, across = sketch_of("bc");
    text_sketch_add(&two, "ab");
    text_sketch_add(&two, "cd");
    cr_expect_not(text_sketch_may_have(&two, &across));
}
