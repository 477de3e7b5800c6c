/* Pages as a browser gets them, of names that a tenant chose. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/console/routes_console.h"
#include "model/slice/slice.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static struct test_extender x;
static struct raw_reply reply;

static void start(void)
{
    test_extender_start(&x, console_routes, n_console_routes, NULL);
    struct demand d = sim_pod("<b>&\"'", ROLE_XPU, "", 0);
    cr_assert_eq(sim_publish(x.app.writer, "n0", 2, "boot", 1), 0);
    cr_assert_eq(sim_bind(x.app.writer, &d, "n0", NULL, NULL), 0);
}

static void stop(void)
{
    test_extender_stop(&x);
    raw_reply_fini(&reply);
}

TestSuite(pages, .init = start, .fini = stop);

static int get(const char *path)
{
    return raw_call(x.port, "GET", path, "", NULL, &reply);
}

Test(pages, escape_what_they_show)
{
    static const char *const paths[] = {"/ui/nodes/n0", "/ui/search?q=b",
                                        "/ui/pods/ns/%3Cb%3E&%22'"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        cr_expect_eq(get(paths[i]), 200, "%s", paths[i]);
        cr_expect(strstr(reply.body.data, "&lt;b&gt;&amp;&quot;&#39;"), "%s",
                  paths[i]);
        cr_expect_null(strstr(reply.body.data, "<b>&"), "%s", paths[i]);
    }
}

/* Where the login leads to that this page asked for. */
static void expect_next(const char *next, const char *location)
{
    char where[512] = "";
    cleanup_str struct str body = STR_INIT(4096);
    str_addf(&body, "token=abc&next=%s", next);
    cr_expect_eq(
        raw_call(x.port, "POST", "/ui/login", "", str_text(&body), &reply), 303,
        "%s", next);
    (void)raw_header(&reply, "Location", where, sizeof where);
    cr_expect_str_eq(where, location, "%s", next);
}

Test(pages, lead_back_to_what_was_asked)
{
    expect_next("%2F%3Fat%3D2026-11-01T14%253A05%253A00Z",
                "/?at=2026-11-01T14%3A05%3A00Z");
    expect_next("/ui/search%3Fq%3Da%2526b", "/ui/search?q=a%26b");
    expect_next("/", "/");
    expect_next("//evil/", "/");
    expect_next("/%5Cevil", "/");
    expect_next("https://evil/", "/");
    expect_next("/v1/nodes", "/");
    expect_next("/ui/logout", "/");
    expect_next("%3Fat%3D1", "/");
    cr_expect_eq(raw_call(x.port, "POST", "/ui/login", "",
                          "token=a%3Bb&next=/ui/search%3Fq%3Dx", &reply),
                 400);
    cr_expect(strstr(reply.body.data, "value=\"/ui/search?q=x\""));
}

Test(pages, ask_for_a_token_and_keep_the_query)
{
    cr_expect_eq(get("/ui/login?q=%22a%20b%26&fragment=1&at=x"), 200);
    cr_expect(
        strstr(reply.body.data, "value=\"/ui/login?q=%22a%20b%26&amp;at=x\""),
        "%s", reply.body.data);
}

Test(pages, keep_a_token_and_forget_it)
{
    char cookie[256] = "";
    cr_expect_eq(raw_call(x.port, "POST", "/ui/login", "",
                          "token=abc%2B%2F%3D&next=/ui/nodes", &reply),
                 303);
    (void)raw_header(&reply, "Set-Cookie", cookie, sizeof cookie);
    cr_expect_str_eq(cookie, "biga=abc+/=; Path=/; HttpOnly; SameSite=Strict");
    (void)raw_header(&reply, "Location", cookie, sizeof cookie);
    cr_expect_str_eq(cookie, "/ui/nodes");
    cr_expect_eq(raw_call(x.port, "POST", "/ui/login", "",
                          "token=abc&next=//evil/", &reply),
                 303);
    (void)raw_header(&reply, "Location", cookie, sizeof cookie);
    cr_expect_str_eq(cookie, "/");
    cr_expect_eq(raw_call(x.port, "POST", "/ui/login", "",
                          "token=abc&next=/ui/login", &reply),
                 303);
    (void)raw_header(&reply, "Location", cookie, sizeof cookie);
    cr_expect_str_eq(cookie, "/", "who has logged in is not asked again");
    cr_expect_eq(
        raw_call(x.port, "POST", "/ui/login", "", "token=a%3Bb", &reply), 400);
    cr_expect_eq(raw_call(x.port, "POST", "/ui/logout", "", "", &reply), 303);
    (void)raw_header(&reply, "Set-Cookie", cookie, sizeof cookie);
    cr_expect(strstr(cookie, "biga=; ") && strstr(cookie, "Max-Age=0"));
}

static void publish_host(size_t index, int64_t generation)
{
    const struct slice_epoch epoch = {.boot_id = "boot",
                                      .generation = generation};
    cleanup_with(topo) struct topo *topo = benchhost_create("host", index);
    for (size_t i = 0; i < slice_count(topo); i++) {
        cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
        char name[SLICE_NAME_MAX + 1];
        slice_encode(topo, &epoch, i, &json);
        slice_name("host", i, name);
        struct writer_op op = {.kind = WRITER_PUT_SLICE,
                               .name = name,
                               .body = json.data,
                               .body_size = json.size};
        cr_assert_eq(writer_run(x.app.writer, &op), 0, "%s", op.error.text);
    }
}

static size_t cards_found(const char *part)
{
    size_t n = 0;
    char path[64];
    (void)snprintf(path, sizeof path, "/ui/search?q=%s", part);
    cr_assert_eq(get(path), 200, "%s", part);
    for (const char *at = reply.body.data;
         (at = strstr(at, "href=\"/ui/cards/host/")); at++)
        n++;
    return n;
}

Test(pages, search_finds_the_serial_numbers_that_cards_have_now)
{
    publish_host(3, 1);
    cr_expect_eq(cards_found("MT2344XZ00000302"), 1);
    cr_expect_eq(cards_found("xz000003"), 8);
    cr_expect_eq(cards_found("MT2344XZ00000702"), 0);
    publish_host(7, 2); /* the same hardware with other cards */
    cr_expect_eq(cards_found("MT2344XZ00000302"), 0);
    cr_expect_eq(cards_found("mt2344xz00000702"), 1);
    cr_expect_eq(cards_found("\xc3\xa9"), 0);
}
