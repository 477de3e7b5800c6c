#include <criterion/criterion.h>
#include <string.h>

#include "extender/wire/wire.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"

#define POD                                                            \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u\"," \
    "\"labels\":{\"biga.dev/role\":\"host\"}},"                        \
    "\"spec\":{\"containers\":null},\"status\":{}}"

static int read_args(const char *text, struct wire_args *a, struct error *err)
{
    struct demand_config config;
    demand_config_default(&config);
    static const char *const names[] = {"n1", "n3"};
    struct roster *roster = roster_create(names, ARRAY_LEN(names));
    int r = wire_read_args(text, strlen(text), &config, roster, a, err);
    roster_unref(roster);
    return r;
}

Test(wire, names_are_borrowed_in_order)
{
    struct wire_args a = {0};
    struct error err = {0};
    const char *text = "{\"Pod\":" POD
                       ",\"Nodes\":null,\"NodeNames\":[\"n2\",\"n1\"]}";
    cr_assert_eq(read_args(text, &a, &err), 0, "%s", err.text);
    cr_assert_eq(a.n, 2);
    cr_assert(jtext_is(&a.names[0], "n2"));
    cr_assert(a.names[0].data > text && a.names[0].data < text + strlen(text));
    cr_assert_eq(a.indexes[0], ROSTER_NONE);
    cr_assert_eq(a.indexes[1], 0);
    cr_assert_not(a.full_nodes);
    cr_assert_eq(a.demand.role, ROLE_HOST);
    wire_args_fini(&a);
}

/* The pod that was read last is not read again; one that only begins like it
 * is. */
Test(wire, a_pod_is_what_it_says_whatever_was_read_before)
{
    static const struct {
        const char *pod;
        int result;
        enum pod_role role;
    } turns[] = {
        {POD, 0, ROLE_HOST},
        {POD, 0, ROLE_HOST},
        {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\","
         "\"uid\":\"v\"}}",
         0, ROLE_NONE},
        {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\","
         "\"uid\":\"v\"}},\"more\":0",
         0, ROLE_NONE},
        {POD "x", -EINVAL, ROLE_NONE},
        {" " POD, 0, ROLE_HOST},
        {POD ",\"Pod\":" POD, -EINVAL, ROLE_NONE},
        {"{}}", -EINVAL, ROLE_NONE},
        {POD, 0, ROLE_HOST},
    };
    struct wire_args a = {0};
    for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
        struct error err = {0};
        cleanup_free char *text = xasprintf("{\"Pod\":%s,\"NodeNames\":[]}",
                                            turns[i].pod);
        cr_assert_eq(read_args(text, &a, &err), turns[i].result, "%zu: %s", i,
                     err.text);
        if (turns[i].result)
            continue;
        cr_assert_eq(a.demand.role, turns[i].role, "%zu", i);
        cr_assert_str_eq(a.demand.uid, i == 2 || i == 3 ? "v" : "u");
        const char *pod = strstr(text, turns[i].pod);
        cr_assert(a.pod.data >= pod && a.pod.data[0] != 'n');
    }
    wire_args_fini(&a);
}

Test(wire, keys_are_read_in_any_case_and_order)
{
    struct wire_args a = {0};
    struct error err = {0};
    const char *text = "{\"nodenames\":[\"n1\"],\"nodes\":null,\"extra\":[{}],"
                       "\"pod\":" POD "}";
    cr_assert_eq(read_args(text, &a, &err), 0, "%s", err.text);
    cr_assert_eq(a.n, 1);
    wire_args_fini(&a);
}

Test(wire, full_nodes_keep_their_bytes)
{
    struct wire_args a = {0};
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(4096);
    const char *text =
        "{\"Pod\":" POD ",\"Nodes\":{\"metadata\":{},\"items\":["
        "{\"metadata\":{\"labels\":{\"name\":\"x\"},\"name\":\"n1\"}},"
        "{\"spec\":{ \"a\" : 1 },\"metadata\":{\"name\":\"n2\"}}]},"
        "\"NodeNames\":null}";
    cr_assert_eq(read_args(text, &a, &err), 0, "%s", err.text);
    cr_assert(a.full_nodes);
    cr_assert_eq(a.n, 2);
    cr_assert(jtext_is(&a.names[0], "n1"));
    cr_assert(jtext_is(&a.names[1], "n2"));
    const uint32_t second = 1;
    wire_write_fitting(&a, &second, 1, &out);
    cr_assert_not_null(strstr(out.data,
                              "\"items\":[{\"spec\":{ \"a\" : 1 },\"metadata\":"
                              "{\"name\":\"n2\"}}]"));
    wire_args_fini(&a);
}

Test(wire, refuses_with_a_position_or_a_path)
{
    static const char *const cases[][2] = {
        {"", "unexpected end of text at line 1 column 1"},
        {"[]", "expected an object"},
        {"{\"Pod\":" POD ",\"NodeNames\":[1]}", "expected a string"},
        {"{\"Pod\":" POD ",\"NodeNames\":[\"a\",]}", "at line 1 column"},
        {"{\"Pod\":" POD ",\"NodeNames\":[],\"nodeNames\":[]}",
         "NodeNames: given twice"},
        {"{\"Pod\":" POD ",\"Pod\":" POD "}", "Pod: given twice"},
        {"{\"NodeNames\":[]}", "Pod: required member missing"},
        {"{\"Pod\":" POD ",\"Nodes\":{\"items\":[]},\"NodeNames\":[]}",
         "Nodes was given, too"},
        {"{\"Pod\":" POD ",\"Nodes\":{\"items\":[{\"metadata\":{}}]}}",
         "Nodes.items[0].metadata.name"},
        {"{\"Pod\":" POD ",\"Nodes\":{\"items\":[7]}}", "Nodes.items[0]"},
        {"{\"Pod\":" POD "} x", "trailing garbage"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wire_args a = {0};
        struct error err = {0};
        cr_assert_eq(read_args(cases[i][0], &a, &err), -EINVAL, "%s",
                     cases[i][0]);
        cr_assert_not_null(strstr(err.text, cases[i][1]), "%s: %s", cases[i][0],
                           err.text);
        wire_args_fini(&a);
    }
}

Test(wire, a_pod_that_breaks_its_contract_is_not_a_bad_request)
{
    struct wire_args a = {0};
    struct error err = {0};
    const char *text =
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\","
        "\"labels\":{\"biga.dev/role\":\"guest\"}}},\"NodeNames\":[\"n1\"]}";
    cr_assert_eq(read_args(text, &a, &err), -EDOM);
    cr_assert_not_null(strstr(err.text, "biga.dev/role"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "guest"), "%s", err.text);
    cr_assert_eq(a.n, 1);
    wire_args_fini(&a);
}

Test(wire, binding)
{
    struct wire_binding b;
    struct error err = {0};
    const char *good = "{\"PodName\":\"p\",\"PodNamespace\":\"d\",\"PodUID\":"
                       "\"u\",\"Node\":\"n\\u0031\"}";
    cr_assert_eq(wire_read_binding(good, strlen(good), &b, &err), 0);
    cr_assert_str_eq(b.node, "n1");
    const char *bad = "{\"PodName\":\"p\",\"PodNamespace\":\"d\",\"Node\":"
                      "\"n\"}";
    cr_assert_eq(wire_read_binding(bad, strlen(bad), &b, &err), -EINVAL);
    cr_assert_str_eq(err.text, "PodUID: required member missing");
}

Test(wire, preemption_reads_both_maps)
{
    struct wire_preemption p = {0};
    struct demand_config config;
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(4096);
    demand_config_default(&config);
    const char *text =
        "{\"Pod\":" POD ",\"NodeNameToVictims\":{\"n1\":{\"Pods\":["
        "{\"metadata\":{\"uid\":\"a\"}}],\"NumPDBViolations\":2}},"
        "\"NodeNameToMetaVictims\":{\"n2\":{\"Pods\":[{\"UID\":\"b\"},"
        "{\"UID\":\"c\"}],\"NumPDBViolations\":0}}}";
    cr_assert_eq(wire_read_preemption(text, strlen(text), &config, &p, &err), 0,
                 "%s", err.text);
    cr_assert_eq(p.n_nodes, 2);
    cr_assert_eq(p.nodes[1].n, 2);
    const char *const more[] = {"d"};
    struct wire_named named[] = {{.keep = true},
                                 {.keep = true, .uids = more, .n = 1}};
    wire_write_preemption(&p, named, &out);
    cr_assert_str_eq(
        out.data,
        "{\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"a\"}],"
        "\"NumPDBViolations\":2},\"n2\":{\"Pods\":[{\"UID\":\"b\"},"
        "{\"UID\":\"c\"},{\"UID\":\"d\"}],\"NumPDBViolations\":0}}}");
    named[0].keep = false;
    named[1].instead = true;
    str_reset(&out);
    wire_write_preemption(&p, named, &out);
    cr_assert_str_eq(out.data, "{\"NodeNameToMetaVictims\":{\"n2\":{\"Pods\":["
                               "{\"UID\":\"d\"}],\"NumPDBViolations\":0}}}");
    wire_preemption_fini(&p);
}

Test(wire, priorities_and_failures_are_json)
{
    cleanup_str struct str out = STR_INIT(4096);
    const struct jtext names[] = {{"n1", 2, false}, {"n2", 2, false}};
    const uint8_t scores[] = {10, 0};
    wire_write_priorities(names, scores, 2, &out);
    cr_assert_str_eq(out.data, "[{\"Host\":\"n1\",\"Score\":10},"
                               "{\"Host\":\"n2\",\"Score\":0}]");

    struct wire_args a = {0};
    struct wire_failures f;
    str_reset(&out);
    wire_failures_begin(&a, &f, &out);
    wire_failures_add(&f, &names[0], "too \"few\"", 9);
    wire_failures_unresolvable(&f);
    wire_failures_add(&f, &names[1], "no card", 7);
    wire_failures_end(&f);
    cr_assert_str_eq(
        out.data, "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{\"n1\":"
                  "\"too \\\"few\\\"\"},\"FailedAndUnresolvableNodes\":{\"n2\":"
                  "\"no card\"},\"Error\":\"\"}");
    struct error err = {0};
    cr_assert_eq(json_check(out.data, out.size, &err), 0, "%s", err.text);
}
