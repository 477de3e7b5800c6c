#include "lib/stream/spdy_frame.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static struct spdy_reader reader;
static struct spdy_piece piece;
static struct error err;

static void set_up(void)
{
    reader = (struct spdy_reader){0};
    err = (struct error){0};
}

TestSuite(spdy_frame, .init = set_up);

static ssize_t take(const char *data, size_t size)
{
    return spdy_read(&reader, data, size, &piece, &err);
}

/* All of `data`, so many bytes at once: the bytes of its stream. */
static void collect(const char *data, size_t size, size_t step, struct str *out)
{
    for (size_t at = 0; at < size;) {
        size_t n = size - at < step ? size - at : step;
        ssize_t taken = take(data + at, n);
        cr_assert(taken > 0 && (size_t)taken <= n, "%s", err.text);
        at += (size_t)taken;
        if (piece.kind == SPDY_DATA)
            str_add_n(out, piece.data, piece.size);
        if (piece.kind == SPDY_DATA && piece.last)
            str_add(out, "<end>");
    }
}

Test(spdy_frame, headers_are_stored_behind_the_dictionary_of_spdy_3)
{
    static const char wanted[] =
        "\x80\x03\x00\x01\x00\x00\x00\x35" /* SYN_STREAM, 53 bytes */
        "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"
        "\x78\xbb\xe3\xc6\xa7\xc2" /* zlib: dictionary e3c6a7c2 */
        "\x00\x1b\x00\xe4\xff"     /* 27 bytes, stored */
        "\x00\x00\x00\x01\x00\x00\x00\x0astreamtype\x00\x00\x00\x05"
        "stdin"
        "\x00\x00\x00\xff\xff"; /* and none, so that these are given out */
    const struct spdy_header type = {"streamtype", "stdin"};
    struct spdy_writer w = {0};
    cleanup_str struct str out = STR_INIT(4096);
    spdy_open(&w, 1, &type, 1, &out);
    cr_assert_eq(out.size, sizeof wanted - 1);
    cr_expect_eq(memcmp(out.data, wanted, out.size), 0);
    str_reset(&out);
    spdy_open(&w, 3, &type, 1, &out); /* zlib's stream goes on */
    cr_expect_eq(out.size, sizeof wanted - 1 - 6);
    cr_expect_null(memmem(out.data, out.size, "\x78\xbb", 2));
}

Test(spdy_frame, data_comes_as_it_was_sent_however_it_is_cut)
{
    cleanup_str struct str sent = STR_INIT(1 << 20);
    cleanup_free char *much = xmalloc(SPDY_DATA_MAX);
    memset(much, 'm', SPDY_DATA_MAX);
    spdy_data(5, "hello", 5, false, &sent);
    spdy_data(5, "", 0, false, &sent);
    spdy_data(5, much, SPDY_DATA_MAX, false, &sent);
    spdy_data(5, "", 0, true, &sent);
    for (size_t step = 1; step < 40; step += 6) {
        cleanup_str struct str got = STR_INIT(1 << 20);
        collect(sent.data, sent.size, step, &got);
        cr_assert_eq(got.size, 5 + SPDY_DATA_MAX + 5);
        cr_expect_eq(memcmp(got.data, "hellom", 6), 0);
        cr_expect_str_eq(got.data + got.size - 6, "m<end>");
    }
}

Test(spdy_frame, control_frames_say_what_is_to_be_known)
{
    static const char reply[] = "\x80\x03\x00\x02\x01\x00\x00\x06"
                                "\x00\x00\x00\x07xx",
                      reset[] = "\x80\x03\x00\x03\x00\x00\x00\x08"
                                "\x00\x00\x00\x09\x00\x00\x00\x01",
                      ping[] = "\x80\x03\x00\x06\x00\x00\x00\x04"
                               "\x00\x00\x00\x02",
                      settings[] = "\x80\x03\x00\x04\x00\x00\x00\x04"
                                   "\x00\x00\x00\x00";
    cr_assert_eq(take(reply, sizeof reply - 1), 8);
    cr_assert_eq(take(reply + 8, 6), 6);
    cr_expect(piece.kind == SPDY_REPLY && piece.stream == 7 && piece.last);
    (void)take(reset, 8);
    (void)take(reset + 8, 8);
    cr_expect(piece.kind == SPDY_RESET && piece.stream == 9);
    (void)take(ping, 8);
    (void)take(ping + 8, 4);
    cr_expect(piece.kind == SPDY_PING && piece.stream == 2);
    (void)take(settings, 8);
    (void)take(settings + 8, 4);
    cr_expect_eq(piece.kind, SPDY_NOTHING);
    cleanup_str struct str pong = STR_INIT(64);
    spdy_pong(2, &pong);
    cr_expect_eq(pong.size, sizeof ping - 1);
    cr_expect_eq(memcmp(pong.data, ping, pong.size), 0);
}

Test(spdy_frame, what_is_no_spdy_3_is_refused)
{
    cr_expect_eq(take("\x80\x02\x00\x02\x00\x00\x00\x04", 8), -EPROTO);
    cr_expect(strstr(err.text, "version 2"), "%s", err.text);
    set_up();
    cr_expect_eq(take("\x80\x03\x00\x02\x00\x10\x00\x00", 8), -EPROTO);
    cr_expect(strstr(err.text, "1048576 bytes"), "%s", err.text);
}
