/* Words and times in gRPC's headers. */
#include "lib/h2/grpc_text.h"

#include <criterion/criterion.h>

#include "lib/base/mem.h"

Test(grpc_text, any_bytes_there_and_back)
{
    char all[256], back[256];
    cleanup_str struct str out = STR_INIT(1024);
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    grpc_text_encode(all, sizeof all, &out);
    for (size_t i = 0; i < out.size; i++)
        cr_assert(out.data[i] >= ' ' && out.data[i] <= '~');
    cr_expect_eq(grpc_text_decode(out.data, out.size, back, sizeof back), 256);
    cr_expect_arr_eq(back, all, 256);
}

Test(grpc_text, encodes_as_the_specification_says)
{
    cleanup_str struct str out = STR_INIT(64);
    grpc_text_encode("50% \xc3\xa9\n", 7, &out);
    cr_expect_str_eq(str_text(&out), "50%25 %C3%A9%0A");
}

Test(grpc_text, what_is_no_pair_stays)
{
    char text[16] = "";
    static const char value[] = "%4g %4";
    size_t n = grpc_text_decode(value, sizeof value - 1, text, sizeof text);
    cr_expect_eq(n, sizeof value - 1);
    cr_expect_str_eq(text, value);
    cr_expect_eq(grpc_text_decode("abc", 3, text, 2), 2, "no more than asked");
}

Test(grpc_text, times_of_all_units)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: none */
    } cases[] = {
        {"100m", 100},      {"2S", 2000},
        {"3M", 180000},     {"1H", 3600000},
        {"1u", 1},          {"1000u", 1},
        {"1001u", 2},       {"1n", 1},
        {"0m", 0},          {"99999999H", 99999999LL * 3600000},
        {"999999999m", -1}, {"m", -1},
        {"1", -1},          {"1x", -1},
        {"1mm", -1},        {"-1m", -1},
        {" 1m", -1},        {"", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        cr_expect_eq(grpc_timeout_read(cases[i].text, &ms), cases[i].ms >= 0,
                     "%s", cases[i].text);
        cr_expect_eq(ms, cases[i].ms, "%s: %lld", cases[i].text, (long long)ms);
    }
}

Test(grpc_text, times_are_written_as_exactly_as_they_may)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {-5, "1m"},
        {0, "1m"},
        {1, "1m"},
        {99999999, "99999999m"},
        {100000000, "100000S"},
        {100000001, "100001S"},
        {99999999LL * 3600000, "99999999H"},
        {INT64_MAX, "99999999H"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[GRPC_TIMEOUT_MAX];
        grpc_timeout_write(cases[i].ms, text);
        cr_expect_str_eq(text, cases[i].text);
    }
}
