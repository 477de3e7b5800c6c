#include <criterion/criterion.h>
#include <string.h>

#include "lib/kube/reflector_private.h"
#include "tests/lib/badjson.h"

static int read_list(const char *text, char version[KUBE_VERSION_MAX + 1],
                     struct str *next, struct error *err)
{
    return kube_list_read(text, strlen(text), version, next, err);
}

Test(reflector_read, a_list_has_a_version_and_perhaps_a_continue)
{
    static const struct {
        const char *text, *version, *next;
    } good[] = {
        {"{\"items\":[],\"metadata\":{\"resourceVersion\":\"12\"}}", "12", ""},
        {"{\"metadata\":{\"continue\":\"a\\u002fb\",\"x\":[{}],"
         "\"resourceVersion\":\"7\"},\"items\":null}",
         "7", "a/b"},
        {"{\"metadata\":{\"continue\":null,\"resourceVersion\":\"7\"},"
         "\"kind\":\"PodList\",\"items\":[]}",
         "7", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        cleanup_str struct str next = STR_INIT(KUBE_CONTINUE_MAX);
        char version[KUBE_VERSION_MAX + 1] = "?";
        struct error err = {0};
        str_add(&next, "of the page before");
        cr_expect_eq(read_list(good[i].text, version, &next, &err), 0, "%s",
                     err.text);
        cr_expect_str_eq(version, good[i].version);
        cr_expect_str_eq(str_text(&next), good[i].next);
        cr_expect_eq(next.size, strlen(good[i].next));
    }
}

Test(reflector_read, a_wrong_list_says_what_is_wrong)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"{}", "has no items"},
        {"{\"items\":[]}", "metadata.resourceVersion is missing"},
        {"{\"items\":[],\"metadata\":null}",
         "expected an object at line 1 column 24 (byte 23)"},
        {"{\"items\":[],\"metadata\":{\"resourceVersion\":\"\"}}",
         "resourceVersion is empty or too long at line 1 column 43 (byte 42)"},
        {"{\"items\":[],\"metadata\":{\"resourceVersion\":\"0123456789"
         "01234567890123456789012345678901234567890123456789abcd\"}}",
         "resourceVersion is empty or too long at line 1 column 43 (byte 42)"},
        {"{\"items\":[],\"metadata\":{\"resourceVersion\":7}}",
         "expected a string at line 1 column 43 (byte 42)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str next = STR_INIT(KUBE_CONTINUE_MAX);
        char version[KUBE_VERSION_MAX + 1] = "?";
        struct error err = {0};
        cr_expect_eq(read_list(bad[i].text, version, &next, &err), -EINVAL);
        cr_expect_str_eq(err.text, bad[i].error);
        cr_expect_str_eq(version, "?");
    }
}

Test(reflector_read, a_continue_has_a_cap)
{
    for (size_t size = KUBE_CONTINUE_MAX; size <= KUBE_CONTINUE_MAX + 1;
         size++) {
        cleanup_str struct str text = STR_INIT(1 << 16);
        cleanup_str struct str next = STR_INIT(KUBE_CONTINUE_MAX);
        char version[KUBE_VERSION_MAX + 1];
        struct error err = {0};
        str_add(&text, "{\"items\":[],\"metadata\":{\"resourceVersion\":\"1\","
                       "\"continue\":\"");
        for (size_t i = 0; i < size; i++)
            str_add_c(&text, 'x');
        str_add(&text, "\"}}");
        int r = kube_list_read(text.data, text.size, version, &next, &err);
        cr_expect_eq(r, size > KUBE_CONTINUE_MAX ? -EINVAL : 0, "%s", err.text);
        cr_expect_eq(next.size, size > KUBE_CONTINUE_MAX ? 0 : size);
    }
}

Test(reflector_read, events_of_all_types)
{
    static const struct {
        const char *text;
        enum event_type type;
        const char *version, *object;
    } good[] = {
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":"
         "\"3\"}}}",
         EVENT_PUT, "3", "{\"metadata\":{\"resourceVersion\":\"3\"}}"},
        {"{\"object\" : {\"spec\":{\"metadata\":{\"resourceVersion\":\"9\"}},"
         "\"metadata\":{\"resourceVersion\":\"4\"}} ,\"type\":\"MODIFIED\"}",
         EVENT_PUT, "4",
         "{\"spec\":{\"metadata\":{\"resourceVersion\":\"9\"}},"
         "\"metadata\":{\"resourceVersion\":\"4\"}}"},
        {"{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":"
         "\"5\"}}}",
         EVENT_GONE, "5", "{\"metadata\":{\"resourceVersion\":\"5\"}}"},
        /* what somebody wrote into his own pod ends no watch */
        {"{\"type\":\"ADDED\",\"object\":{\"a\":\"\\u0000\",\"metadata\":{"
         "\"resourceVersion\":\"3\"}}}",
         EVENT_PUT, "3",
         "{\"a\":\"\\u0000\",\"metadata\":{\"resourceVersion\":\"3\"}}"},
        {"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
         "\"resourceVersion\":\"6\"}}}",
         EVENT_BOOKMARK, "6", "{\"metadata\":{\"resourceVersion\":\"6\"}}"},
        {"{\"type\":\"ERROR\",\"object\":{\"code\":410}}", EVENT_ERROR, "",
         "{\"code\":410}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct event e;
        struct error err = {0};
        cr_assert_eq(event_read(good[i].text, strlen(good[i].text), &e, &err),
                     0, "%s", err.text);
        cr_expect_eq(e.type, good[i].type);
        cr_expect_str_eq(e.version, good[i].version);
        cr_expect_eq(e.object.size, strlen(good[i].object));
        cr_expect_eq(memcmp(e.object.data, good[i].object, e.object.size), 0);
    }
}

Test(reflector_read, wrong_events_say_what_is_wrong)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"{}", "event: unknown type \"\""},
        {"{\"type\":\"EXPLODED\",\"object\":{}}",
         "event: unknown type \"EXPLODED\""},
        {"{\"type\":\"ADDED\"}", "event: object is missing"},
        {"{\"type\":\"ADDED\",\"object\":[]}", "event: object is missing"},
        {"{\"type\":\"ADDED\",\"object\":{}}",
         "event: object.metadata.resourceVersion is missing or wrong"},
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":7}}",
         "event: object.metadata.resourceVersion is missing or wrong"},
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}} x",
         "event: trailing garbage at line 1 column 43 (byte 42)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct event e;
        struct error err = {0};
        cr_expect_eq(event_read(bad[i].text, strlen(bad[i].text), &e, &err),
                     -EINVAL);
        cr_expect_str_eq(err.text, bad[i].error);
    }
}

Test(reflector_read, what_is_no_json_is_refused_everywhere)
{
    size_t n;
    const struct badjson *list = badjson_syntax(&n);
    for (size_t i = 0; i < n; i++) {
        cleanup_str struct str next = STR_INIT(KUBE_CONTINUE_MAX);
        char version[KUBE_VERSION_MAX + 1];
        struct status status;
        struct event e;
        struct error err = {0};
        cr_expect_eq(
            kube_list_read(list[i].data, list[i].size, version, &next, &err),
            -EINVAL, "%s", list[i].name);
        cr_expect_eq(event_read(list[i].data, list[i].size, &e, &err), -EINVAL,
                     "%s", list[i].name);
        status_read(list[i].data, list[i].size, &status);
        cr_expect_eq(status.code, 0, "%s", list[i].name);
    }
}

Test(reflector_read, a_status_or_the_beginning_of_any_text)
{
    static const struct {
        const char *text;
        int64_t code;
        const char *message;
    } texts[] = {
        {"{\"kind\":\"Status\",\"message\":\"too \\\"old\\\"\",\"code\":410}",
         410, "too \"old\""},
        {"{\"message\":\"m\"}", 0, "m"},
        {"{\"code\":410}", 0, "{\"code\":410}"},
        {"<html>no</html>", 0, "<html>no</html>"},
        {"", 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct status s;
        status_read(texts[i].text, strlen(texts[i].text), &s);
        cr_expect_eq(s.code, texts[i].code, "%s", texts[i].text);
        cr_expect_str_eq(s.message, texts[i].message);
    }
    struct status s;
    cleanup_str struct str longer = STR_INIT(4096);
    for (size_t i = 0; i < 1000; i++)
        str_add_c(&longer, 'x');
    status_read(longer.data, longer.size, &s);
    cr_expect_eq(strlen(s.message), sizeof s.message - 1);
}

Test(reflector_config, says_what_is_wrong)
{
    struct error err = {0};
    struct reflector *r = NULL;
    struct kube_config config = {.server = (char[]){"ftp://x"}};
    const struct reflector_kind kind = {.name = "pods", .path = "/pods"};
    cr_expect_eq(reflector_start(&config, &kind, 1, &r, &err), -EINVAL);
    cr_expect(strstr(err.text, "ftp://x"), "%s", err.text);
    config.server = (char[]){"http://127.0.0.1:1"};
    config.token_file = (char[]){"/nowhere/token"};
    cr_expect_lt(reflector_start(&config, &kind, 1, &r, &err), 0);
    cr_expect(strstr(err.text, "/nowhere/token"), "%s", err.text);
    cr_expect_null(r);
}
