#include "router/log/log_stream.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static struct error err;

static struct log_stream of(const char *text)
{
    return (struct log_stream){.data = text, .size = strlen(text)};
}

Test(log_stream, reads_frames)
{
    struct log_stream s = of("d 7 100 4\none\ne 7 104\nm 8 2\nz 28\n");
    struct log_frame f;
    cr_assert_eq(log_stream_next(&s, &f, &err), 1);
    cr_expect_eq(f.kind, LOG_FRAME_DATA);
    cr_expect_eq(f.tag, 7u);
    cr_expect_eq(f.offset, 100u);
    cr_expect_eq(f.size, 4u);
    cr_expect_eq(memcmp(f.data, "one\n", 4), 0);
    cr_assert_eq(log_stream_next(&s, &f, &err), 1);
    cr_expect_eq(f.kind, LOG_FRAME_END);
    cr_expect_eq(f.offset, 104u);
    cr_assert_eq(log_stream_next(&s, &f, &err), 1);
    cr_expect_eq(f.kind, LOG_FRAME_FAULT);
    cr_expect_eq(f.tag, 8u);
    cr_expect_eq(f.fault, 2);
    cr_expect_eq(log_stream_next(&s, &f, &err), 0);
}

Test(log_stream, takes_nothing_that_is_broken)
{
    static const char *const bad[] = {
        "",
        "\n",
        "z\n",
        "z 1\n",
        "z 0",
        "z 0\n\n",
        "x 1 2\n",
        "d 1 2 3\n",
        "d 1 2 0\nz 8\n",
        "d 1 2 4\nfour",
        "d 1 2 9\nfour\nz 13\n",
        "d 1 2 600000\n",
        "d -1 2 4\nfourz 13\n",
        "d 4294967296 2 4\nfour",
        "d 1 9223372036854775807 4\nfour",
        "d 1 99999999999999999999 4\nfour",
        "d  1 2 4\nfour",
        "e 1\n",
        "e 1 2 3\n",
        "m 1 0\nz 6\n",
        "m 1 4096\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct log_stream s = of(bad[i]);
        struct log_frame f;
        int rc;
        while ((rc = log_stream_next(&s, &f, &err)) > 0)
            ;
        cr_expect_eq(rc, -EPROTO, "%zu: \"%s\"", i, bad[i]);
    }
}
