#include "extender/serve/unknown_keys.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/lib/sim/simapp.h"

static void start(void)
{
    simapp_begin(NULL);
}

TestSuite(unknown_keys, .init = start, .fini = simapp_end);

/* simapp hands pods over as they are stored, as an older extender left them. */
Test(unknown_keys, a_stored_pod_with_a_key_that_is_none_is_warned_of)
{
    const struct simapp_pod pods[] = {
        {.name = "a", .role = "xpu", .notes = ",\"biga.dev/aling\":\"pix\""},
        {.name = "b", .role = "xpu"}};
    const struct demand a = {.namespace = "ns", .name = "a", .role = ROLE_XPU};
    const struct demand b = {.namespace = "ns", .name = "b", .role = ROLE_XPU};
    cleanup_str struct str out = STR_INIT(4096);
    const struct app *app = server_app(simapp_server);
    cr_assert_eq(simapp_apply(pods, 2), 0);
    unknown_keys_write_pod(app, &a, &out);
    cr_expect(
        strstr(str_text(&out),
               "},\"warning\":\"metadata.annotations[\\\"biga.dev/aling"
               "\\\"]: is no key of Biga; did you mean biga.dev/align?\""),
        "%s", str_text(&out));
    str_reset(&out);
    unknown_keys_write_line(app, &a, &out);
    cr_expect(strstr(str_text(&out), "warning: metadata.annotations["), "%s",
              str_text(&out));
    str_reset(&out);
    unknown_keys_write_line(app, &b, &out);
    unknown_keys_write_pod(app, &b, &out);
    cr_expect(!strstr(str_text(&out), "warning"), "%s", str_text(&out));
}
