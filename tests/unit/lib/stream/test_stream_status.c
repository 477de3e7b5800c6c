#include "lib/stream/stream_status.h"

#include <criterion/criterion.h>
#include <string.h>

Test(stream_status, is_what_clients_of_kubernetes_read)
{
    cleanup_str struct str out = STR_INIT(STREAM_STATUS_MAX);
    stream_status_add(503, "a \"word\"", &out);
    cr_expect_str_eq(str_text(&out),
                     "{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                     "\"metadata\":{},\"status\":\"Failure\","
                     "\"message\":\"a \\\"word\\\"\","
                     "\"reason\":\"ServiceUnavailable\",\"code\":503}");
    str_reset(&out);
    stream_status_add(431, "", &out);
    cr_expect(
        strstr(out.data, "\"message\":\"\",\"reason\":\"\",\"code\":431}"));
}

Test(stream_status, whatever_the_text_is)
{
    char text[1024];
    cleanup_str struct str out = STR_INIT(STREAM_STATUS_MAX);
    for (int c = 1; c < 256; c++) {
        memset(text, c, sizeof text - 1);
        text[sizeof text - 1] = '\0';
        str_reset(&out);
        stream_status_add(405, text, &out);
        cr_assert(!out.overflow, "of byte %02x", (unsigned)c);
        cr_assert_eq(out.data[out.size - 1], '}');
    }
}
