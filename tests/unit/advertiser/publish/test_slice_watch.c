/* What a watch of a node's slices hands on, against a server with a script. */
#include "advertiser/publish/slice_watch.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/http/fakeapi.h"

enum { PATIENCE_MS = 60000, MANY = 40 };

#define SLICE(name, version)                                     \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u\","        \
    "\"resourceVersion\":\"" version "\"},\"spec\":{\"driver\":" \
    "\"xpu.biga.dev\"}}"
#define LIST(items)                                 \
    "{\"kind\":\"ResourceSliceList\",\"metadata\":" \
    "{\"resourceVersion\":\"20\"},\"items\":[" items "]}\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

/* Notices as lines, until there are `n` of them. */
static void take(struct slice_watch *w, size_t n, struct str *text)
{
    struct pollfd fd = {.fd = slice_watch_fd(w), .events = POLLIN};
    while (n > 0) {
        struct publish_notice notice;
        cr_assert_eq(poll(&fd, 1, PATIENCE_MS), 1, "after %s", str_text(text));
        while (slice_watch_take(w, &notice)) {
            str_addf(text, "%s %s%s\n", *notice.name ? notice.name : "gap",
                     notice.version, notice.gone ? "gone" : "");
            cr_assert_gt(n--, 0, "%s", str_text(text));
        }
    }
}

static void play(const struct fakeapi_answer *script, size_t n_script,
                 const char *told)
{
    struct fakeapi *api = fakeapi_start(script, n_script);
    cleanup_with(slice_watch) struct slice_watch *w = NULL;
    cleanup_str struct str text = STR_INIT(65536);
    struct error err = {0};
    cr_assert_eq(slice_watch_start(fakeapi_config(api), "h", &w, &err), 0, "%s",
                 err.text);
    size_t n = 0;
    for (const char *c = told; *c; c++)
        n += *c == '\n';
    take(w, n, &text);
    cr_expect_str_eq(str_text(&text), told);
    slice_watch_stop(steal(&w));
    cleanup_free char *requests = fakeapi_requests(api);
    cr_expect_null(strstr(requests, "not expected"), "%s", requests);
    fakeapi_stop(api);
}

Test(slice_watch, hands_on_what_is_told_of_the_nodes_slices)
{
    static const struct fakeapi_answer script[] = {
        {.path = PUBLISH_COLLECTION "?fieldSelector=spec.nodeName%3Dh"
                                    "%2Cspec.driver%3Dxpu.biga.dev&limit=",
         .body = LIST(SLICE("a", "11"))},
        {.path = PUBLISH_COLLECTION "?fieldSelector=spec.nodeName%3Dh"
                                    "%2Cspec.driver%3Dxpu.biga.dev&watch=1",
         .body = EVENT("MODIFIED", SLICE("a", "21")) EVENT(
             "ADDED", SLICE("b", "22")) EVENT("DELETED", SLICE("a", "23")),
         .end = FAKEAPI_HOLD},
    };
    play(script, ARRAY_LEN(script), "a 11\ngap \na 21\nb 22\na gone\n");
}

/* A list after a gap says nothing of what is gone. */
Test(slice_watch, a_list_is_a_gap)
{
    static const struct fakeapi_answer script[] = {
        {.body = LIST("")},
        {.status = 410},
        {.body = LIST(SLICE("a", "21"))},
    };
    play(script, ARRAY_LEN(script), "gap \na 21\ngap \n");
}

/* What cannot be read may be anything. */
Test(slice_watch, what_it_cannot_read_is_a_gap)
{
    static const struct fakeapi_answer script[] = {
        {.body = LIST("{\"metadata\":{\"name\":5}}")}};
    play(script, ARRAY_LEN(script), "gap \ngap \n");
}

/* Nobody takes them for a while: it remembers that there were some. */
Test(slice_watch, keeps_no_more_than_it_has_room_for)
{
    cleanup_str struct str body = STR_INIT(1 << 20);
    for (int i = 0; i < MANY; i++)
        str_addf(&body, EVENT("ADDED", SLICE("s%d", "%d")), i, 100 + i);
    const struct fakeapi_answer script[] = {
        {.body = LIST("")}, {.body = str_text(&body)}, {.status = 403}};
    struct fakeapi *api = fakeapi_start(script, ARRAY_LEN(script));
    cleanup_with(slice_watch) struct slice_watch *w = NULL;
    struct error err = {0};
    cr_assert_eq(slice_watch_start(fakeapi_config(api), "h", &w, &err), 0);
    while (fakeapi_n_requests(api) < 3) /* it has read all */
        (void)poll(NULL, 0, 1);
    struct publish_notice notice;
    cr_assert(slice_watch_take(w, &notice));
    cr_expect_str_eq(notice.name, "",
                     "a gap stands for what there was no "
                     "room for");
    size_t n = 1;
    for (; slice_watch_take(w, &notice); n++)
        cr_expect_neq(*notice.name, '\0');
    cr_expect_lt(n, MANY);
    slice_watch_stop(steal(&w));
    fakeapi_stop(api);
}
