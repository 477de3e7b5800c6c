#include "lib/h2/h2_meter.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static void frame(struct str *out, uint8_t type, uint8_t flags, size_t size)
{
    const char head[H2_FRAME_HEAD] = {(char)(size >> 16), (char)(size >> 8),
                                      (char)size, (char)type, (char)flags};
    str_add_n(out, head, sizeof head);
    for (size_t i = 0; i < size; i++)
        str_add_c(out, 'x');
}

Test(h2_meter, counts_frames_that_are_no_requests)
{
    static const struct {
        uint8_t type, flags;
        size_t size;
        unsigned cost;
    } frames[] = {
        {0, 0, 100, 0}, {0, 1, 0, 0}, {0, 0, 0, 1},      {1, 5, 50, 0},
        {2, 0, 5, 1},   {3, 0, 4, 2}, {4, 0, 0, 1},      {4, 0, 6000, 6},
        {6, 0, 8, 1},   {8, 0, 4, 1}, {9, 4, 16384, 17}, {200, 0, 3, 1},
    };
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        for (size_t step = 1; step < 20000; step *= 3) {
            cleanup_str struct str text = STR_INIT(1 << 20);
            struct h2_meter m;
            h2_meter_init(&m, 5);
            str_add(&text, preface);
            frame(&text, frames[i].type, frames[i].flags, frames[i].size);
            for (size_t at = 0; at < text.size; at += step)
                cr_expect(h2_meter_feed(
                    &m, text.data + at,
                    step < text.size - at ? step : text.size - at, 5));
            cr_expect_eq(m.budget, H2_BUDGET_MAX - frames[i].cost, "%zu/%zu", i,
                         step);
            cr_expect_eq(h2_meter_partial_ms(&m, 1000), 0);
        }
}

Test(h2_meter, ends_floods_and_forgives)
{
    cleanup_str struct str ping = STR_INIT(100);
    struct h2_meter m;
    h2_meter_init(&m, 0);
    cr_expect(h2_meter_feed(&m, preface, H2_PREFACE, 0));
    frame(&ping, 6, 0, 8);
    for (int i = 0; i < H2_BUDGET_MAX; i++)
        cr_expect(h2_meter_feed(&m, ping.data, ping.size, 0));
    cr_expect_not(h2_meter_feed(&m, ping.data, ping.size, 0));
    cr_expect_not(h2_meter_feed(&m, ping.data, ping.size, 9));
    cr_expect(h2_meter_feed(&m, ping.data, ping.size, 10), "100 in a second");
    h2_meter_earn(&m, 2);
    cr_expect(h2_meter_pay(&m, 2, 10));
    cr_expect_not(h2_meter_pay(&m, 1, 10));
    cr_expect(h2_meter_pay(&m, H2_BUDGET_MAX, INT32_MAX));
    h2_meter_earn(&m, UINT32_MAX);
    cr_expect_eq(m.budget, H2_BUDGET_MAX);
}

Test(h2_meter, knows_how_long_a_frame_takes)
{
    cleanup_str struct str text = STR_INIT(100);
    struct h2_meter m;
    h2_meter_init(&m, 0);
    cr_expect_eq(h2_meter_partial_ms(&m, 50), 0);
    cr_expect(h2_meter_feed(&m, preface, 3, 100));
    cr_expect_eq(h2_meter_partial_ms(&m, 150), 50);
    cr_expect(h2_meter_feed(&m, preface + 3, H2_PREFACE - 3, 200));
    cr_expect_eq(h2_meter_partial_ms(&m, 250), 0);
    frame(&text, 6, 0, 8);
    for (size_t i = 0; i + 1 < text.size; i++) {
        cr_expect(h2_meter_feed(&m, text.data + i, 1, 300 + (int64_t)i));
        cr_expect_eq(h2_meter_partial_ms(&m, 400), 100, "%zu", i);
    }
    cr_expect(h2_meter_feed(&m, "xx", 2, 500), "its last, and a head's first");
    cr_expect_eq(h2_meter_partial_ms(&m, 510), 10);
}
