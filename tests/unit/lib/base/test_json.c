#include "lib/base/json.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/jscan.h"
#include "lib/base/str.h"
#include "tests/lib/badjson.h"

static bool scans(const char *data, size_t size)
{
    struct jscan s;
    jscan_init(&s, data, size);
    return jscan_skip(&s) && jscan_end(&s);
}

Test(json, refuses_what_the_scanner_refuses)
{
    size_t n;
    const struct badjson *list = badjson_syntax(&n);
    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        cJSON *json = NULL;
        cr_expect_eq(json_parse(list[i].data, list[i].size, &json, &err),
                     -EINVAL, "%s", list[i].name);
        cr_expect_null(json);
        cr_expect(strstr(err.text, " at line "), "%s: %s", list[i].name,
                  err.text);
    }
}

Test(json, refuses_duplicate_keys_where_they_stand)
{
    size_t n;
    const struct badjson *list = badjson_duplicates(&n);
    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        cr_expect(scans(list[i].data, list[i].size), "%s", list[i].name);
        cr_expect_eq(json_check(list[i].data, list[i].size, &err), -EINVAL,
                     "%s", list[i].name);
        cr_expect(strstr(err.text, "duplicate key at line 1"), "%s: %s",
                  list[i].name, err.text);
    }
    struct error err = {0};
    (void)json_check("{\"k\":7,\n\"l\":1,\"k\":8}", 21, &err);
    cr_expect_str_eq(err.text, "duplicate key at line 2 column 7 (byte 14)");
}

Test(json, takes_what_is_right_and_so_does_cjson)
{
    size_t n;
    const struct badjson *list = badjson_good(&n);
    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        cleanup_with(json) cJSON *json = NULL;
        cr_expect_eq(json_parse(list[i].data, list[i].size, &json, &err), 0,
                     "%s: %s", list[i].name, err.text);
        cr_expect_not_null(json, "%s", list[i].name);
    }
}

Test(json, many_members_with_a_duplicate_at_the_end)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    struct error err;
    str_add_c(&text, '{');
    for (int i = 0; i < 20000; i++)
        str_addf(&text, "\"key-%d\":%d,", i, i);
    size_t size = text.size;
    str_add(&text, "\"key-last\":1}");
    cr_expect_eq(json_check(text.data, text.size, &err), 0);
    text.size = size;
    str_add(&text, "\"key-10000\":1}");
    cr_expect_eq(json_check(text.data, text.size, &err), -EINVAL);
}

Test(json, the_number_of_members_has_a_cap)
{
    cleanup_str struct str text = STR_INIT(4 << 20);
    struct error err = {0};
    str_add_c(&text, '{');
    for (int i = 0; i <= JSON_MEMBERS_MAX; i++)
        str_addf(&text, "%s\"%d\":1", i ? "," : "", i);
    str_add_c(&text, '}');
    cr_expect_eq(json_check(text.data, text.size, &err), -EINVAL);
    cr_expect(strstr(err.text, "too many members"), "%s", err.text);
}

/* --- agreement on documents nobody thought of ---------------------------- */

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *const seeds[] = {
    "{\"a\":[1,-2.5e3,\"x\\u20ac\\n\"],\"b\":{\"c\":true,\"d\":[null,{}]}}",
    "{\"Pod\":{\"n\":\"p\\\"0\",\"l\":[\"n1\",\"\\ud83d\\udc0e\"]},\"N\":null}",
    "[0.1,1e308,-0,123456789012345678901234567890,[[[[\"\"]]]],\"\xc3\xa9\"]",
};

static size_t mutate(char *text, size_t size, size_t cap, uint64_t *state)
{
    static const char bytes[] = "{}[]\",:\\u0-+.eEtfn 19a\n\x01\x80\xc3\xff";
    size_t n_edits = random_next(state) % 3 + 1;
    while (n_edits-- > 0 && size > 0) {
        size_t at = random_next(state) % size;
        char c = bytes[random_next(state) % (sizeof bytes - 1)];
        switch (random_next(state) % 4) {
        case 0:
            text[at] = c;
            break;
        case 1:
            memmove(text + at, text + at + 1, size - at - 1);
            size--;
            break;
        case 2:
            if (size == cap)
                break;
            memmove(text + at + 1, text + at, size - at);
            text[at] = c;
            size++;
            break;
        default:
            size = random_next(state) % 8 ? size : at;
            break;
        }
    }
    return size;
}

/* What the scanner takes, cJSON takes and prints as something the scanner
 * takes again; and the strict check never takes more than the scanner. */
Test(json, scanner_check_and_cjson_agree_on_mutants)
{
    uint64_t state = UINT64_C(0x243f6a8885a308d3);
    size_t n_taken = 0;
    for (int round = 0; round < 60000; round++) {
        char text[256];
        size_t size = strlen(seeds[round % 3]);
        memcpy(text, seeds[round % 3], size);
        size = mutate(text, size, sizeof text, &state);

        struct error err;
        bool taken = scans(text, size);
        bool checked = json_check(text, size, &err) == 0;
        cr_assert(taken || !checked, "%.*s", (int)size, text);
        if (!taken)
            continue;
        n_taken++;
        cleanup_with(json) cJSON *json = cJSON_ParseWithLength(text, size);
        cr_assert_not_null(json, "cJSON refuses %.*s", (int)size, text);
        char *again = cJSON_PrintUnformatted(json);
        cr_assert(scans(again, strlen(again)), "%s", again);
        free(again);
    }
    cr_expect_gt(n_taken, 1000);
    cr_expect_lt(n_taken, 50000);
}

/* --- the reader --------------------------------------------------------- */

static cJSON *parse(const char *text)
{
    struct error err = {0};
    cJSON *json = NULL;
    cr_assert_eq(json_parse(text, strlen(text), &json, &err), 0, "%s",
                 err.text);
    return json;
}

Test(reader, reads_members_of_every_type)
{
    struct error err = {0};
    struct reader r;
    cleanup_with(json) cJSON *json = parse(
        "{\"s\":\"text\",\"i\":-5,\"b\":true,\"o\":{},\"a\":[1,2],"
        "\"nil\":null}");
    reader_init(&r, json, "top", &err);
    cr_expect_str_eq(reader_string(&r, "s", 10), "text");
    cr_expect_eq(reader_int(&r, "i", -5, 5), -5);
    cr_expect(reader_bool(&r, "b"));
    cr_expect_not_null(reader_object(&r, "o"));
    cr_expect_eq(cJSON_GetArraySize(reader_array(&r, "a", 2)), 2);
    cr_expect_null(reader_opt_string(&r, "nil", 10));
    cr_expect_null(reader_opt_string(&r, "absent", 10));
    cr_expect_eq(reader_opt_int(&r, "absent", 0, 1, 42), 42);
    cr_expect(reader_opt_bool(&r, "absent", true));
    cr_expect_null(reader_opt_object(&r, "absent"));
    cr_expect_null(reader_opt_array(&r, "absent", 1));
    cr_expect_eq(reader_finish_strict(&r), 0, "%s", err.text);
}

#define EXPECT_FAULT(document, call, expected)            \
    do {                                                  \
        struct error err = {0};                           \
        struct reader r;                                  \
        cleanup_with(json) cJSON *json = parse(document); \
        reader_init(&r, json, "spec", &err);              \
        (void)call;                                       \
        cr_expect_eq(reader_finish_strict(&r), -EINVAL);  \
        cr_expect_str_eq(err.text, expected);             \
    } while (0)

Test(reader, names_the_path_of_what_is_wrong)
{
    EXPECT_FAULT("{}", reader_string(&r, "s", 9),
                 "spec.s: required member missing");
    EXPECT_FAULT("{\"s\":null}", reader_string(&r, "s", 9),
                 "spec.s: required member missing");
    EXPECT_FAULT("{\"s\":1}", reader_string(&r, "s", 9),
                 "spec.s: must be a string");
    EXPECT_FAULT("{\"s\":\"\"}", reader_string(&r, "s", 9),
                 "spec.s: must not be empty");
    EXPECT_FAULT("{\"s\":\"abcd\"}", reader_string(&r, "s", 3),
                 "spec.s: has 4 characters, the limit is 3");
    EXPECT_FAULT("{\"i\":1.5}", reader_int(&r, "i", 0, 9),
                 "spec.i: must be an integer");
    EXPECT_FAULT("{\"i\":\"1\"}", reader_int(&r, "i", 0, 9),
                 "spec.i: must be an integer");
    EXPECT_FAULT("{\"i\":1e300}", reader_opt_int(&r, "i", 0, 9, 1),
                 "spec.i: must be an integer");
    EXPECT_FAULT("{\"i\":10}", reader_int(&r, "i", 0, 9),
                 "spec.i: is 10, must be 0 to 9");
    EXPECT_FAULT("{\"b\":0}", reader_opt_bool(&r, "b", true),
                 "spec.b: must be true or false");
    EXPECT_FAULT("{\"o\":[]}", reader_opt_object(&r, "o"),
                 "spec.o: must be an object");
    EXPECT_FAULT("{\"a\":{}}", reader_array(&r, "a", 1),
                 "spec.a: must be an array");
    EXPECT_FAULT("{\"a\":[1,2]}", reader_array(&r, "a", 1),
                 "spec.a: has 2 elements, the limit is 1");
    EXPECT_FAULT("{\"more\":1}", reader_opt_bool(&r, "b", true),
                 "spec.more: unknown member");
    EXPECT_FAULT("[]", reader_opt_bool(&r, "b", true),
                 "spec: must be an object");
    EXPECT_FAULT("{}", reader_fail(&r, NULL, "is %s", "odd"), "spec: is odd");
}

Test(reader, the_first_error_wins_and_silences_the_rest)
{
    struct error err = {0};
    struct reader r;
    cleanup_with(json) cJSON *json = parse("{\"i\":5,\"s\":\"x\"}");
    reader_init(&r, json, "", &err);
    cr_expect_eq(reader_int(&r, "i", 0, 4), 0);
    cr_expect_null(reader_string(&r, "s", 9));
    cr_expect_eq(reader_int(&r, "j", 0, 4), 0);
    cr_expect_eq(reader_fail(&r, "k", "another"), -EINVAL);
    cr_expect_eq(reader_finish_lenient(&r), -EINVAL);
    cr_expect_str_eq(err.text, "i: is 5, must be 0 to 4");
}

Test(reader, lenient_ignores_what_was_not_asked_for)
{
    struct error err = {0};
    struct reader r;
    cleanup_with(json) cJSON *json = parse("{\"i\":5,\"more\":{}}");
    reader_init(&r, json, "", &err);
    cr_expect_eq(reader_int(&r, "i", 0, 9), 5);
    cr_expect_eq(reader_finish_lenient(&r), 0);
}

Test(reader, builds_paths)
{
    struct error err = {0};
    struct reader r;
    char path[READER_PATH_MAX];
    cleanup_with(json) cJSON *json = parse("{}");
    reader_init(&r, json, "spec.devices[3]", &err);
    reader_path(&r, "name", -1, path);
    cr_expect_str_eq(path, "spec.devices[3].name");
    reader_path(&r, "list", 7, path);
    cr_expect_str_eq(path, "spec.devices[3].list[7]");
    reader_init(&r, json, "", &err);
    reader_path(&r, "list", -1, path);
    cr_expect_str_eq(path, "list");
}
