/* Forms of answers: paths of JSON, names, what a selector asks for, lists in
 * order. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <string.h>

#include "cli/base/json_path.h"
#include "cli/base/listing.h"
#include "cli/base/output.h"

static cJSON *parse(const char *text)
{
    cJSON *json = NULL;
    struct error err = {0};
    cr_assert_eq(json_parse(text, strlen(text), &json, &err), 0, "%s",
                 err.text);
    return json;
}

/* --- paths ------------------------------------------------------------------ */

Test(json_path, leads_to_members_and_elements)
{
    cleanup_with(json) cJSON *json =
        parse("{\"a\":{\"b\":[{\"c\":7},8.5]},\"t\":true,\"n\":null}");
    static const char *const cases[][2] = {
        {".a.b[0].c", "7"}, {"{.a.b[1]}", "8.5"}, {".t", "true"},
        {".a.b[2]", NULL},  {".a.x", NULL},       {".t.x", NULL},
        {".a[0]", NULL},    {".n", NULL},         {".a", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_str struct str out = STR_INIT(64);
        struct error err = {0};
        cr_assert_eq(json_path_check(cases[i][0], &err), 0, "%s", err.text);
        bool is = json_scalar(json_path_find(json, cases[i][0]), &out);
        cr_expect_eq(is, cases[i][1] != NULL, "%s", cases[i][0]);
        cr_expect_str_eq(str_text(&out), cases[i][1] ? cases[i][1] : "");
    }
}

Test(json_path, what_is_none_is_refused_with_its_place)
{
    static const char *const wrong[] = {
        "",    ".",    "a",    ".a.", ".a[", ".a[]",  ".a[x]",  "{.a",
        ".a}", ".a b", ".[0]", "{}",  "[",   ".a..b", ".a[-1]", ".a[9999999]"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct error err = {0};
        cr_expect_eq(json_path_check(wrong[i], &err), -EINVAL, "%s", wrong[i]);
        cr_expect(strstr(err.text, "byte "), "%s", err.text);
    }
}

/* --- names ------------------------------------------------------------------ */

Test(output, names_things_as_other_commands_take_them)
{
    static const char *const cases[][2] = {
        {"{\"name\":\"host1\"}", "host1"},
        {"{\"namespace\":\"a\",\"name\":\"b\",\"node\":\"n\"}", "a/b"},
        {"{\"pod\":{\"namespace\":\"a\",\"name\":\"b\"},\"node\":\"n\"}",
         "a/b"},
        {"{\"node\":\"n\",\"id\":\"card-1\",\"pci\":\"0000:17:00.0\"}",
         "n/0000:17:00.0"},
        {"{\"node\":\"n\",\"id\":\"card-1\",\"pci\":null}", "n/card-1"},
        {"{\"node\":\"n\",\"devices\":[]}", "n"},
        {"{\"name\":\"a\\u001b[2Jb\"}", "a?[2Jb"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(json) cJSON *json = parse(cases[i][0]);
        cleanup_str struct str out = STR_INIT(64);
        cr_expect(output_name(json, &out));
        cr_expect_str_eq(str_text(&out), cases[i][1]);
    }
    cleanup_with(json) cJSON *none = parse("{\"version\":1}");
    cleanup_str struct str out = STR_INIT(64);
    cr_expect_not(output_name(none, &out));
}

static void assert_form(enum output_form form, const char *kind,
                        const char *json, const char *want)
{
    struct cli c = {.form = form, .kind = kind, .out = STR_INIT(4096)};
    str_add(&c.out, json);
    cr_expect_eq(output_finish(&c), 0);
    cr_expect_str_eq(str_text(&c.out), want);
    str_fini(&c.out);
}

Test(output, forms_are_made_of_json)
{
    static const char json[] = "{\"items\":[{\"name\":\"b\"},{\"kind\":\"Pod\","
                               "\"namespace\":\"n\",\"name\":\"a\"}]}\n";
    assert_form(OUTPUT_JSON, "node", json, json);
    assert_form(OUTPUT_TABLE, "node", "B\n", "B\n");
    assert_form(OUTPUT_NAME, "node", json, "node/b\npod/n/a\n");
    assert_form(OUTPUT_YAML, "node", json,
                "items:\n- name: b\n- kind: Pod\n  namespace: \"n\"\n"
                "  name: a\n");
    assert_form(OUTPUT_YAML, "node", "", "");
    assert_form(OUTPUT_YAML, "node", "{\"a\":1}\n[\n2]\n", "a: 1\n---\n- 2\n");
    assert_form(OUTPUT_NAME, "node", "{\"name\":\"a\"}{\"name\":\"b\"}",
                "node/a\nnode/b\n");
}

Test(output, what_has_no_name_is_told, .init = cr_redirect_stderr)
{
    struct cli c = {.form = OUTPUT_NAME, .out = STR_INIT(4096)};
    str_add(&c.out, "{\"leader\":\"\"}");
    cr_expect_eq(output_finish(&c), CLI_USAGE);
    str_fini(&c.out);
}

/* --- lists ------------------------------------------------------------------ */

Test(listing, a_selector_asks_labels_first_then_members)
{
    cleanup_with(json) cJSON *json = parse(
        "{\"labels\":{\"role\":\"x\",\"biga.dev/job\":\"j\"},"
        "\"role\":\"host\",\"cards\":{\"idle\":3},\"ready\":false,"
        "\"node\":null,\"pod\":{\"namespace\":\"n\"}}");
    static const char *const cases[][2] = {
        {"role", "x"},      {"biga.dev/job", "j"}, {"cards.idle", "3"},
        {"ready", "false"}, {"node", NULL},        {"namespace", "n"},
        {"none", NULL},     {"cards", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_str struct str room = STR_INIT(64);
        const char *got = listing_value(json, cases[i][0], &room);
        cr_expect_eq(got != NULL, cases[i][1] != NULL, "%s", cases[i][0]);
        if (got && cases[i][1])
            cr_expect_str_eq(got, cases[i][1]);
    }
}

static void add_thing(struct table *t, const cJSON *each)
{
    table_add(t, json_text(each, "name"));
    cli_add_known(t, json_number(each, "n"));
    table_add(t, json_text(each, "state"));
}

static const struct listing_column thing_columns[] = {
    {"NAME", 0, "its name", NULL},
    {"N(FREE/TOTAL)", LISTING_RIGHT, "a number", ".n"},
    {"STATE", LISTING_WIDE, "a word", NULL},
};
static const struct listing things = {.columns = thing_columns,
                                      .n_columns = 3,
                                      .add = add_thing,
                                      .none = "Nothing.\n"};

static void assert_list(const struct cli_settings *set, enum output_form form,
                        int rc, const char *want)
{
    cleanup_with(json) cJSON *json = parse(
        "{\"items\":[{\"name\":\"a10\",\"n\":5,\"state\":\"up\"},"
        "{\"name\":\"a9\",\"n\":40,\"state\":\"down\"},"
        "{\"name\":\"b\",\"state\":\"up\"}]}");
    struct cli c = {.set = *set, .form = form, .out = STR_INIT(4096)};
    c.set.json = form >= OUTPUT_JSON;
    cr_expect_eq(listing_show(&c, json, &things), rc);
    cr_expect_str_eq(str_text(&c.out), want, "got:\n%s", str_text(&c.out));
    str_fini(&c.out);
}

Test(listing, is_in_the_order_of_names_or_of_what_is_asked_for)
{
    static const char head[] = "NAME  N(FREE/TOTAL)\n";
    const struct cli_settings plain = {0}, by_n = {.sort_by = "n"},
                              path = {.sort_by = ".state"},
                              some = {.selector = "state=up,n>1"},
                              none = {.selector = "state=x"};
    cleanup_free char *by_name = xasprintf(
        "%sa9               40\na10               5\nb                 -\n",
        head);
    cleanup_free char *by_number = xasprintf(
        "%sa10               5\na9               40\nb                 -\n",
        head);
    assert_list(&plain, OUTPUT_TABLE, 0, by_name);
    assert_list(&by_n, OUTPUT_TABLE, 0, by_number);
    assert_list(&path, OUTPUT_WIDE, 0,
                "NAME  N(FREE/TOTAL)  STATE\n"
                "a9               40  down\n"
                "a10               5  up\n"
                "b                 -  up\n");
    assert_list(&none, OUTPUT_TABLE, 0, "Nothing.\n");
    assert_list(&none, OUTPUT_JSON, 0, "{\"items\":[]}\n");
    assert_list(&some, OUTPUT_JSON, 0,
                "{\"items\":[{\"name\":\"a10\",\"n\":5,\"state\":\"up\"}]}\n");
}

/* One look of a watch. */
static void assert_look(struct cli *c, const char *json, const char *want)
{
    cleanup_with(json) cJSON *answer = parse(json);
    cr_expect_eq(listing_show(c, answer, &things), 0);
    cr_expect_str_eq(str_text(&c->out), want, "got:\n%s", str_text(&c->out));
    str_reset(&c->out);
}

#define A10 "{\"name\":\"a10\",\"n\":1,\"state\":\"up\"}"
#define A9 "{\"name\":\"a9\",\"n\":1,\"state\":\"up\"}"
#define LIST(items) "{\"items\":[" items "]}"

Test(listing, a_watch_shows_what_is_different)
{
    struct cli c = {.out = STR_INIT(4096), .seen = listing_seen_create()};
    cr_expect_not(listing_seen_any(c.seen));
    assert_look(&c, LIST(""), "");
    cr_expect(listing_seen_any(c.seen));
    assert_look(&c, LIST(A10 "," A9),
                "NAME  N(FREE/TOTAL)\n"
                "a9                1\n"
                "a10               1\n");
    assert_look(&c, LIST(A10 "," A9), "");
    /* a column that is hidden */
    assert_look(&c, LIST(A10 ",{\"name\":\"a9\",\"n\":1,\"state\":\"x\"}"), "");
    assert_look(&c, LIST(A10 ",{\"name\":\"a9\",\"n\":2}"),
                "a9                2\n");
    assert_look(&c, LIST("{\"name\":\"b\"}"),
                "b                 -\na9 is gone\na10 is gone\n");
    listing_seen_destroy(c.seen);
    str_fini(&c.out);
}

Test(listing, a_watch_tells_events_as_json)
{
    struct cli c = {.set = {.json = true},
                    .form = OUTPUT_JSON,
                    .out = STR_INIT(4096),
                    .seen = listing_seen_create()};
    assert_look(&c, LIST(A9), "{\"type\":\"ADDED\",\"object\":" A9 "}\n");
    assert_look(&c, LIST(A9), "");
    assert_look(&c, LIST("{\"name\":\"a9\"}"),
                "{\"type\":\"MODIFIED\",\"object\":{\"name\":\"a9\"}}\n");
    assert_look(&c, LIST(""),
                "{\"type\":\"DELETED\",\"object\":{\"name\":\"a9\"}}\n");
    listing_seen_destroy(c.seen);
    str_fini(&c.out);
}

Test(listing, what_cannot_be_is_told, .init = cr_redirect_stderr)
{
    const struct cli_settings column = {.sort_by = "m"},
                              path = {.sort_by = ".x"},
                              wrong = {.sort_by = ".x."},
                              selector = {.selector = "a b"};
    assert_list(&column, OUTPUT_TABLE, CLI_USAGE, "");
    assert_list(&path, OUTPUT_TABLE, CLI_USAGE, "");
    assert_list(&wrong, OUTPUT_TABLE, CLI_USAGE, "");
    assert_list(&selector, OUTPUT_TABLE, CLI_USAGE, "");
    (void)fflush(stderr);
    cr_assert_stderr_eq_str(
        "biga: --sort-by: \"m\" is no column; must be one of NAME, "
        "N(FREE/TOTAL), STATE, or a path as .name\n"
        "biga: --sort-by: nothing in the list has .x\n"
        "biga: --sort-by: \".x.\": byte 3: a path must be as .cards.idle or "
        ".pods[0].name\n"
        "biga: --selector: \"a b\": byte 3: \",\" is missing; must be as "
        "\"a=b,c!=d,e in (f,g),!h\"\n");
}
