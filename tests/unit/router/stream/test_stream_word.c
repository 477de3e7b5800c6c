#include "router/stream/stream_word.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/mem.h"

#define STATUS                                                    \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{}," \
    "\"status\":\"Failure\",\"message\":\"gone\",\"reason\":"     \
    "\"ServiceUnavailable\",\"code\":503}"
#define GOAWAY \
    "\x80\x03\x00\x07\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00"
#define REPLY_1 "\x80\x03\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01"
#define BYTES(text) text, sizeof(text) - 1

static struct str out;

static void set_up(void)
{
    str_init(&out, STREAM_WORD_MAX);
}

static void tear_down(void)
{
    str_fini(&out);
}

TestSuite(stream_word, .init = set_up, .fini = tear_down);

/* What is said after these bytes, which come in pieces of every size. */
static void say(const char *upgrade, const char *protocol, const char *data,
                size_t size)
{
    struct str first = STR_INIT(STREAM_WORD_MAX);
    for (size_t piece = 1; piece <= size + 1; piece++) {
        struct stream_word w;
        stream_word_init(&w, upgrade, protocol);
        for (size_t at = 0; at < size; at += piece)
            stream_word_pass(&w, data + at,
                             size - at < piece ? size - at : piece);
        str_reset(&out);
        stream_word_say(&w, "gone", &out);
        if (piece == 1)
            str_add_n(&first, str_text(&out), out.size);
        cr_assert(first.size == out.size &&
                  memcmp(str_text(&first), str_text(&out), out.size) == 0);
    }
    str_fini(&first);
}

static void expect(const char *data, size_t size)
{
    cr_expect_eq(out.size, size);
    cr_expect(out.size == size && memcmp(str_text(&out), data, size) == 0);
}

static void expect_data(const char *text)
{
    size_t len = strlen(text);
    cleanup_str struct str want = STR_INIT(STREAM_WORD_MAX);
    str_add_n(&want, "\0\0\0\1\1\0\0", 7);
    str_add_c(&want, (char)len);
    str_add(&want, text);
    str_add_n(&want, BYTES(GOAWAY));
    expect(want.data, want.size);
}

Test(stream_word, spdy_error_stream)
{
    say("SPDY/3.1", "v4.channel.k8s.io", BYTES(REPLY_1));
    expect_data(STATUS);
    /* data of others and of it */
    say("SPDY/3.1", "v5.channel.k8s.io",
        BYTES(REPLY_1 "\0\0\0\3\1\0\0\2ab\0\0\0\1\0\0\0\1x"));
    expect_data(STATUS);
    say("SPDY/3.1", "portforward.k8s.io", BYTES(REPLY_1));
    expect_data("gone");
}

Test(stream_word, spdy_without_an_error_stream)
{
    static const struct {
        const char *data;
        size_t size;
    } cases[] = {
        {BYTES("")},
        {BYTES("\x80\x03\0\2\1\0\0\4\0\0\0\1")}, /* ended at once */
        {BYTES("\x80\x03\0\2\0\0\0\4\0\0\0\3")}, /* another's */
        {BYTES(REPLY_1 "\0\0\0\1\1\0\0\1x")},    /* ended since */
        {BYTES(REPLY_1 "\x80\x03\0\3\0\0\0\x8\0\0\0\1\0\0\0\5")}, /* reset */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        say("SPDY/3.1", "v4.channel.k8s.io", cases[i].data, cases[i].size);
        expect(BYTES(GOAWAY));
    }
    say("SPDY/3.1", "unheard-of", BYTES(REPLY_1));
    expect(BYTES(GOAWAY));
}

static bool is_owed(const char *upgrade, const char *data, size_t size)
{
    struct stream_word w;
    stream_word_init(&w, upgrade, "v4.channel.k8s.io");
    stream_word_pass(&w, data, size);
    return stream_word_is_owed(&w);
}

Test(stream_word, is_owed_until_the_remote_says_how_it_ended)
{
    cr_expect(is_owed("SPDY/3.1", BYTES(REPLY_1)));
    cr_expect(is_owed("SPDY/3.1", BYTES(REPLY_1 "\0\0\0\3\1\0\0\2ab")));
    cr_expect_not(is_owed("SPDY/3.1", BYTES("")));
    cr_expect_not(is_owed("SPDY/3.1", BYTES(REPLY_1 "\0\0\0\1\0\0\0\1x")));
    cr_expect_not(is_owed("SPDY/3.1", BYTES(REPLY_1 "\0\0\0\1\1\0\0\0")));
    cr_expect(is_owed("websocket", BYTES("\x82\x02\1x")));
    cr_expect_not(is_owed("websocket", BYTES("\x02\x02\1x")));
    cr_expect_not(is_owed("websocket", BYTES("\x88\x02\x03\xe8")));
    cr_expect_not(is_owed("other", BYTES("x")));
}

Test(stream_word, nothing_within_a_frame)
{
    say("SPDY/3.1", "v4.channel.k8s.io", BYTES(REPLY_1 "\0\0\0\3"));
    expect("", 0);
    say("SPDY/3.1", "v4.channel.k8s.io", BYTES("\0\0\0\3\0\0\0\3ab"));
    expect("", 0);
    say("SPDY/3.1", "v4.channel.k8s.io",
        BYTES("\0\0\0\3\0\xff\xff\xff"
              "ab"));
    expect("", 0);
    say("websocket", "v5.channel.k8s.io",
        BYTES("\x82\x03"
              "ab"));
    expect("", 0);
    say("websocket", "v5.channel.k8s.io", BYTES("\x82"));
    expect("", 0);
    say("websocket", "v5.channel.k8s.io",
        BYTES("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"
              "ab"));
    expect("", 0);
}

#define CLOSE "\x88\x06\x03\xe9gone"

Test(stream_word, websocket_error_channel)
{
    static const char message[] = "\x82\x7e\0\x7f\3" STATUS CLOSE;
    cr_assert_eq(strlen(STATUS) + 1, 0x7f);
    say("websocket", "v5.channel.k8s.io", BYTES(""));
    expect(BYTES(message));
    say("websocket", "v4.channel.k8s.io",
        BYTES("\x82\x02\1a\x82\x7e\0\3\1ab\x89\0\x02\1\1\x80\1b"));
    expect(BYTES(message));
    say("websocket", "unheard-of", BYTES("\x82\x02\1a"));
    expect(BYTES(CLOSE));
}

Test(stream_word, websocket_in_base64)
{
    cleanup_str struct str want = STR_INIT(STREAM_WORD_MAX);
    say("websocket", "base64.channel.k8s.io", BYTES(""));
    str_add(&want, "\x81\x09"
                   "3");
    base64_add(&want, "gone", 4);
    str_add_n(&want, BYTES(CLOSE));
    expect(want.data, want.size);
}

Test(stream_word, websocket_between_parts_of_a_message)
{
    say("websocket", "v5.channel.k8s.io", BYTES("\x02\x02\1a"));
    expect(BYTES(CLOSE));
}

Test(stream_word, nothing_after_a_close)
{
    say("websocket", "v5.channel.k8s.io", BYTES("\x88\x02\x03\xe8"));
    expect("", 0);
}

Test(stream_word, long_texts_are_cut)
{
    char text[4096];
    struct stream_word w;
    static const char *const upgrades[] = {"SPDY/3.1", "websocket"};
    for (size_t fill = 0; fill < 2; fill++)
        for (size_t i = 0; i < 2; i++) {
            memset(text, fill ? '"' : '\1', sizeof text - 1);
            text[sizeof text - 1] = '\0';
            stream_word_init(&w, upgrades[i], "v4.base64.channel.k8s.io");
            stream_word_pass(&w, REPLY_1, i == 0 ? sizeof REPLY_1 - 1 : 0);
            str_reset(&out);
            stream_word_say(&w, text, &out);
            cr_expect(!out.overflow && out.size > STREAM_STATUS_TEXT);
        }
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    stream_word_init(&w, "websocket", "");
    str_reset(&out);
    stream_word_say(&w, text, &out);
    cr_expect_eq(out.size, 4 + 122, "a character was cut in two");
}
