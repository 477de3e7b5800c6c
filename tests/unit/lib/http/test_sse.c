/* Server-sent events, whole and byte by byte. */
#include "lib/http/sse.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static bool note(void *ctx, const struct sse_event *e)
{
    str_addf(ctx, "[%s|%s|%s]", e->event, e->id, e->data);
    return strcmp(e->data, "stop") != 0;
}

static bool feed(const char *text, size_t step, struct str *out)
{
    struct sse s;
    bool more = true;
    sse_init(&s, note, out);
    for (size_t i = 0, n = strlen(text); more && i < n; i += step)
        more = sse_feed(&s, text + i, n - i < step ? n - i : step);
    sse_fini(&s);
    return more;
}

Test(sse, events_are_read)
{
    static const char *const cases[][2] = {
        {"event: change\nid: 7\ndata: {\"version\":7}\n\n",
         "[change|7|{\"version\":7}]"},
        {": a comment\n\ndata:x\n\n", "[message||x]"},
        {"data: a\r\ndata: b\r\n\r\n", "[message||a\nb]"},
        {"data: a\rdata:  b\r\r", "[message||a\n b]"},
        {"id: 1\ndata: a\n\ndata: b\n\n", "[message|1|a][message|1|b]"},
        {"event: x\n\ndata: a\n\n", "[message||a]"},
        {"data\n\n", "[message||]"},
        {"datum: a\nretry: 10\n\n", ""},
        {"data: not ended", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t step = 1; step < 40; step += 19) {
            cleanup_str struct str out = STR_INIT(4096);
            cr_expect(feed(cases[i][0], step, &out));
            cr_expect_str_eq(str_text(&out), cases[i][1], "%s: %s", cases[i][0],
                             str_text(&out));
        }
}

Test(sse, who_takes_them_ends_them)
{
    cleanup_str struct str out = STR_INIT(4096);
    cr_expect_not(feed("data: stop\n\ndata: a\n\n", 100, &out));
    cr_expect_str_eq(str_text(&out), "[message||stop]");
}

Test(sse, has_a_limit)
{
    cleanup_str struct str out = STR_INIT(4096), text = STR_INIT(4 << 20);
    for (size_t i = 0; i <= SSE_MAX; i++)
        str_add_c(&text, 'x');
    cr_expect_not(feed(str_text(&text), 4096, &out));
    str_reset(&text);
    while (text.size <= 2 * (size_t)SSE_MAX)
        str_add(&text, "data: 0123456789\n");
    cr_expect_not(feed(str_text(&text), 4096, &out));
    cr_expect_eq(out.size, 0);
}
