/* JSON as YAML: how it looks, and that it is read as what it was. */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/io/yaml.h"
#include "lib/io/yaml_write.h"

static cJSON *parse(const char *text)
{
    cJSON *json = NULL;
    struct error err = {0};
    cr_assert_eq(json_parse(text, strlen(text), &json, &err), 0, "%s: %s", text,
                 err.text);
    return json;
}

static void assert_yaml(const char *json, const char *want)
{
    cleanup_with(json) cJSON *in = parse(json), *back = NULL;
    cleanup_str struct str out = STR_INIT(65536);
    struct error err = {0};
    yaml_write(in, &out);
    if (want)
        cr_expect_str_eq(str_text(&out), want, "got:\n%s", str_text(&out));
    cr_assert_eq(yaml_parse(str_text(&out), out.size, &back, &err), 0, "%s\n%s",
                 err.text, str_text(&out));
    cr_expect(cJSON_Compare(in, back, true), "%s\n%s", json, str_text(&out));
}

Test(yaml_write, looks_as_kubectls)
{
    assert_yaml("{\"items\":[{\"name\":\"node-1\",\"cards\":{\"total\":8},"
                "\"ready\":true,\"numa\":null,\"pods\":[]}],\"load\":0.5}",
                "items:\n"
                "- name: node-1\n"
                "  cards:\n"
                "    total: 8\n"
                "  ready: true\n"
                "  numa: null\n"
                "  pods: []\n"
                "load: 0.5\n");
}

Test(yaml_write, what_reads_as_something_else_is_quoted)
{
    assert_yaml("{\"pci\":\"0000:17:00.0\",\"n\":\"12\",\"no\":\"No\"}",
                "pci: \"0000:17:00.0\"\n\"n\": \"12\"\n\"no\": \"No\"\n");
}

Test(yaml_write, numbers_have_no_more_digits_than_they_need)
{
    assert_yaml("{\"a\":0.1,\"b\":-2.35,\"c\":1e300,\"d\":8}",
                "a: 0.1\nb: -2.35\nc: 1e+300\nd: 8\n");
}

Test(yaml_write, everything_is_read_back)
{
    static const char *const all[] = {
        "[]",
        "{}",
        "\"\"",
        "\"- a\"",
        "\"a: b\"",
        "\"# no comment\"",
        "\"two\\nlines\\n\"",
        "\"\\n\\n leading\\n\\ttab\"",
        "\"trailing \"",
        "\"a\\u001b[31m\\u0085\\u2028b\"",
        "\"\\u00e9\\ud83d\\ude00\"",
        "[null,true,false,0,-1,1e300,123456789012,0.1]",
        "[\"null\",\"~\",\"TRUE\",\"1e3\",\".5\",\"0x1f\",\"2026-01-01\"]",
        "[\"=\",\"<<\",\"!x\",\"&x\",\"*x\",\"%x\",\"@x\",\"`x\",\"?\",\"|\"]",
        "[[[1],[]],{\"a\":{\"b\":[{\"c\":[]}]}}]",
        "{\"\":1,\"a b\":2,\"- x\":3,\"true\":4}",
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        assert_yaml(all[i], NULL);
}

Test(yaml_write, nothing_hidden_reaches_a_terminal)
{
    assert_yaml("[\"a\\u202eb\",\"\\u001b[2J\"]",
                "- \"a\\u202Eb\"\n- \"\\e[2J\"\n");
}
