/* YAML as JSON: types, documents, and what is refused, with its place. */
#include "lib/io/yaml.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

/* The same as this JSON, printed by the same printer. */
static void expect(const char *yaml, const char *json)
{
    cleanup_with(json) cJSON *got = NULL;
    cleanup_with(json) cJSON *want = NULL;
    struct error err = {0};
    cr_assert_eq(json_parse(json, strlen(json), &want, &err), 0, "%s: %s", json,
                 err.text);
    cr_assert_eq(yaml_parse(yaml, strlen(yaml), &got, &err), 0, "%s: %s", yaml,
                 err.text);
    char *a = cJSON_PrintUnformatted(got), *b = cJSON_PrintUnformatted(want);
    cr_expect_str_eq(a, b, "of %s", yaml);
    cJSON_free(a);
    cJSON_free(b);
}

static void expect_refused_n(const char *yaml, size_t size, const char *want)
{
    cJSON *json = NULL;
    struct error err = {0};
    int r = yaml_parse(yaml, size, &json, &err);
    cr_expect_eq(r, -EINVAL, "%s is taken", yaml);
    cr_expect_null(json);
    cr_expect_not_null(strstr(err.text, want), "of %s: %s, wanted: %s", yaml,
                       err.text, want);
    cJSON_Delete(json);
}

static void expect_refused(const char *yaml, const char *want)
{
    expect_refused_n(yaml, strlen(yaml), want);
}

Test(yaml, types_of_the_core_schema)
{
    expect("[null, Null, NULL, ~, ]", "[null,null,null,null]");
    expect("a:\nb: ''\n", "{\"a\":null,\"b\":\"\"}");
    expect("[true, True, TRUE, false, False, FALSE]",
           "[true,true,true,false,false,false]");
    expect("[0, 1, -1, +1, 9007199254740991]", "[0,1,-1,1,9007199254740991]");
    expect("[0x1F, 0o17, -0]", "[31,15,-0]");
    expect("[1.5, .5, 1., -1e3, 1E+2, 0.25, 00.5]",
           "[1.5,0.5,1,-1000,100,0.25,0.5]");
}

Test(yaml, all_else_is_text)
{
    expect("[tRUE, nUll, 1.2.3, 10.0.0.1, 1e, e1, ., -, +, 0x, 0b2, 1a, _1]",
           "[\"tRUE\",\"nUll\",\"1.2.3\",\"10.0.0.1\",\"1e\",\"e1\",\".\",\"-"
           "\",\"+\",\"0x\",\"0b2\",\"1a\",\"_1\"]");
    expect("['true', \"1\", 'null', '', \"0x1f\", 'yes']",
           "[\"true\",\"1\",\"null\",\"\",\"0x1f\",\"yes\"]");
    expect("[2026-01-02, 12:30:45, -n, yes please]",
           "[\"2026-01-02\",\"12:30:45\",\"-n\",\"yes please\"]");
    expect("a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x "
                                                "y\"}");
    expect("\"\\u00e9\\x41\\t\"", "\"\xc3\xa9"
                                  "A\\t\"");
}

Test(yaml, collections_and_json)
{
    expect("{}", "{}");
    expect("a: {b: [1, {c: d}]}\ne:\n- f\n-\n  - g\n",
           "{\"a\":{\"b\":[1,{\"c\":\"d\"}]},\"e\":[\"f\",[\"g\"]]}");
    expect("{\"kind\":\"List\",\"items\":[{\"a\":\"\\/\"}],\n\t\"n\":1}",
           "{\"kind\":\"List\",\"items\":[{\"a\":\"/\"}],\"n\":1}");
    expect("# only\nb: 1 # of this\na: 2\r\n", "{\"b\":1,\"a\":2}");
    expect("\xef\xbb\xbf"
           "a: 1\n",
           "{\"a\":1}");
    expect("%YAML 1.1\n---\na: 1\n...\n", "{\"a\":1}");
}

/* What some readers take for true, an octal number, or a merge. */
Test(yaml, refuses_what_readers_differ_about)
{
    static const char *const texts[] = {
        "yes",  "No",    "on",    "OFF",  "y",     "N",
        ".inf", "-.Inf", ".nan",  "017",  "08",    "0b11",
        "0X1F", "-0x1f", "1_000", "0x_f", "1_0.5", "+0o17"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_free char *yaml = xasprintf("a:\n  - 1\n  - %s\n", texts[i]);
        expect_refused(yaml, "line 3 column 5: \"");
        expect_refused(yaml, "quote it");
    }
    expect_refused("9007199254740992", "line 1 column 1: ");
    expect_refused("12345678901234567890", "kept exactly");
    expect_refused("0o7777777777777777777777777777777777", "kept exactly");
    expect_refused("1e999", "too large");
    expect_refused("a: 1\n<<: {b: 2}\n", "line 2 column 1: merging");
    expect("'<<': 1", "{\"<<\":1}");
}

Test(yaml, refuses_anchors_aliases_and_tags)
{
    expect_refused("a: &x 1\nb: *x\n", "line 1 column 4: anchors");
    expect_refused("a: *x\n", "line 1 column 4: aliases");
    expect_refused("a: !!str 1\n", "line 1 column 4: tags");
    expect_refused("a: ! x\n", "tags");
    expect_refused("!x {a: 1}\n", "tags");
    expect_refused("[&a [], &b {}]\n", "anchors");
}

Test(yaml, keys_are_texts_and_differ)
{
    expect_refused("1: a\n", "line 1 column 1: a key must be a text");
    expect_refused("a: 1\ntrue: b\n", "line 2 column 1: a key");
    expect_refused("? [a]\n: b\n", "line 1 column 3: a key");
    expect_refused("~: b\n", "a key must be a text");
    expect_refused("on: b\n", "line 1 column 1: \"on\"");
    expect_refused("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n",
                   "line 5 column 3: key \"c\" stands here again: it is in "
                   "line 3");
    expect_refused("{a: 1, 'a': 2}", "line 1 column 8: key \"a\"");
    expect("'1': a\n\"true\": b\nA: c\na: d\n",
           "{\"1\":\"a\",\"true\":\"b\",\"A\":\"c\",\"a\":\"d\"}");
}

Test(yaml, broken_texts_name_line_and_column)
{
    expect_refused("a: b: c\n", "line 1 column 5: ");
    expect_refused("a:\n\t- b\n", "line 2 column 1: ");
    expect_refused("[1, 2", "line 2 column 1: ");
    expect_refused("a: 'b\n", "line 2 column 1: ");
    expect_refused("\"\\q\"", "line 1 column ");
    expect_refused("a: \xff\n", "byte 3: ");
    expect_refused_n("a: b\0c\n", 7, "byte 4: ");
    expect_refused("\"a\\0b\"", "line 1 column 1: text with a NUL");
    expect_refused("\"\\ud800\"", "line 1 column ");
}

static void nest(unsigned levels, struct str *out)
{
    for (unsigned i = 0; i < levels; i++)
        str_add(out, i % 2 ? "[" : "{a: ");
    for (unsigned i = levels; i-- > 0;)
        str_add(out, i % 2 ? "]" : "}");
}

Test(yaml, depth_has_a_cap)
{
    cleanup_str struct str ok = STR_INIT(4096), deep = STR_INIT(4096);
    cJSON *json = NULL;
    struct error err = {0};
    nest(YAML_DEPTH_MAX, &ok);
    cr_expect_eq(yaml_parse(ok.data, ok.size, &json, &err), 0, "%s", err.text);
    cJSON_Delete(json);
    nest(YAML_DEPTH_MAX + 1, &deep);
    expect_refused(deep.data, "nested deeper than 64");
}

Test(yaml, size_and_number_of_documents_have_caps)
{
    cleanup_free char *large = xcalloc(1, YAML_SIZE_MAX + 2);
    memset(large, ' ', YAML_SIZE_MAX + 1);
    expect_refused(large, "the limit is 4194304");
    cleanup_str struct str many = STR_INIT(1 << 20);
    for (int i = 0; i <= YAML_DOCUMENTS_MAX; i++)
        str_add(&many, "---\n");
    str_add(&many, "a: 1\n");
    expect_refused(many.data, "more than 1024 documents");
}

static int collect(void *ctx, cJSON *json)
{
    char *text = cJSON_PrintUnformatted(json);
    str_add(ctx, text);
    str_add_c(ctx, ';');
    cJSON_free(text);
    cJSON_Delete(json);
    return 0;
}

static int stop_at_first(void *ctx, cJSON *json)
{
    (*(int *)ctx)++;
    cJSON_Delete(json);
    return -ECANCELED;
}

Test(yaml, documents_in_order_without_the_empty)
{
    static const char yaml[] =
        "# nothing\n---\n---\na: 1\n---\n~\n---\n[2]\n...\n"
        "---\n";
    cleanup_str struct str out = STR_INIT(256);
    struct error err = {0};
    cr_assert_eq(yaml_each(yaml, sizeof yaml - 1, collect, &out, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(str_text(&out), "{\"a\":1};[2];");
    int n = 0;
    cr_expect_eq(yaml_each("--- 1\n--- 2\n", 12, stop_at_first, &n, &err),
                 -ECANCELED);
    cr_expect_eq(n, 1);
}

Test(yaml, the_only_document)
{
    expect_refused("", "nothing in it");
    expect_refused("# a comment\n---\n", "nothing in it");
    expect_refused("a: 1\n---\nb: 2\n", "more than one document");
    expect("---\n---\na: 1\n", "{\"a\":1}");
}
