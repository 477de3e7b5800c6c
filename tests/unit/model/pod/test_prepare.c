#include "model/pod/prepare.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static int read_text(const char *json, struct prepare *ret, struct error *err)
{
    return prepare_read(json, strlen(json), ret, err);
}

/* A pod with these members in its annotations. */
static int read_annotations(const char *members, struct prepare *ret,
                            struct error *err)
{
    cleanup_free char *json =
        xasprintf("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                  "\"annotations\":{%s}},\"spec\":{\"x\":[1,{}]}}",
                  members);
    return read_text(json, ret, err);
}

Test(prepare, nothing_is_asked)
{
    static const char *const pods[] = {
        "{}",
        "{\"metadata\":null}",
        "{\"metadata\":{\"annotations\":null}}",
        "{\"metadata\":{\"annotations\":{}}}",
        "{\"metadata\":{\"labels\":{\"biga.dev/sriov-vfs\":\"8\"}}}",
        "{\"metadata\":{\"annotations\":{\"biga.dev/sriov-vfs\":null,"
        "\"biga.dev/prepare\":null}}}",
        "{\"spec\":{\"metadata\":{\"annotations\":"
        "{\"biga.dev/sriov-vfs\":\"8\"}}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
        struct prepare p = {0};
        struct error err = {0};
        cr_assert_eq(read_text(pods[i], &p, &err), 0, "%s: %s", pods[i],
                     err.text);
        cr_expect_eq(p.sriov_vfs, -1, "%s", pods[i]);
        cr_expect_str_empty(p.hook);
    }
}

Test(prepare, both_are_read)
{
    struct prepare p;
    struct error err = {0};
    cr_assert_eq(read_annotations("\"a\":\"b\",\"biga.dev/sriov-vfs\":\"8\","
                                  "\"biga.dev/prepare\":\"flash-bfb-2\"",
                                  &p, &err),
                 0, "%s", err.text);
    cr_expect_eq(p.sriov_vfs, 8);
    cr_expect_str_eq(p.hook, "flash-bfb-2");
    cr_assert_eq(
        read_annotations("\"biga.dev/sriov-vfs\":\"\\u0030\"", &p, &err), 0);
    cr_expect_eq(p.sriov_vfs, 0);
    cr_assert_eq(read_annotations("\"biga.dev/sriov-vfs\":\"4096\"", &p, &err),
                 0);
    cr_expect_eq(p.sriov_vfs, 4096);
}

Test(prepare, wrong_values_are_named)
{
    static const char *const values[] = {"",    "-1",   "+8",    "08", "8 ",
                                         "1e2", "4097", "99999", "x",  "0x8"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        cleanup_free char *member = xasprintf("\"biga.dev/sriov-vfs\":\"%s\"",
                                              values[i]);
        struct prepare p = {.sriov_vfs = 77};
        struct error err = {0};
        cr_assert_eq(read_annotations(member, &p, &err), -EDOM, "%s",
                     values[i]);
        cr_expect_eq(p.sriov_vfs, 77, "written although it failed");
        cleanup_free char *want = xasprintf(
            "metadata.annotations[\"biga.dev/sriov-vfs\"]: is \"%s\", must be "
            "a whole number from 0 to 4096",
            values[i]);
        cr_expect_str_eq(err.text, want);
    }
}

Test(prepare, scalable_functions_are_a_number_too)
{
    static const char *const wrong[] = {"-1", "65", "x", "01", ""};
    struct prepare p;
    struct error err = {0};
    cr_assert_eq(read_annotations("\"a\":\"b\"", &p, &err), 0);
    cr_expect_eq(p.sfs, 0);
    cr_assert_eq(
        read_annotations("\"biga.dev/scalable-functions\":\"64\"", &p, &err), 0,
        "%s", err.text);
    cr_expect_eq(p.sfs, 64);
    cr_expect_eq(p.sriov_vfs, -1);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        cleanup_free char *member =
            xasprintf("\"biga.dev/scalable-functions\":\"%s\"", wrong[i]);
        cleanup_free char *want = xasprintf(
            "metadata.annotations[\"biga.dev/scalable-functions\"]: is \"%s\","
            " must be a whole number from 0 to 64",
            wrong[i]);
        cr_expect_eq(read_annotations(member, &p, &err), -EDOM);
        cr_expect_str_eq(err.text, want);
    }
}

Test(prepare, a_hook_is_a_name_and_no_path)
{
    static const char *const values[] = {
        "",
        ".",
        "..",
        "../a",
        "a/b",
        "/bin/sh",
        "a b",
        "A",
        "a\\u0020",
        "a.sh",
        "a_b",
        "\\u002e\\u002e",
        "a\\/../b",
        "\\n",
        "ä",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        cleanup_free char *member = xasprintf("\"biga.dev/prepare\":\"%s\"",
                                              values[i]);
        struct prepare p;
        struct error err = {0};
        cr_assert_eq(read_annotations(member, &p, &err), -EDOM, "%s",
                     values[i]);
        cr_expect(strstr(err.text, "metadata.annotations[\"biga.dev/prepare\"]:"
                                   " is \"") == err.text,
                  "%s", err.text);
    }
}

Test(prepare, what_is_no_pod_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "null",
        "{",
        "{} {}",
        "{\"metadata\":7}",
        "{\"metadata\":{\"annotations\":[]}}",
        "{\"metadata\":{\"annotations\":{\"biga.dev/sriov-vfs\":8}}}",
        "{\"metadata\":{\"annotations\":{\"biga.dev/prepare\":true}}}",
        "{\"metadata\":{\"annotations\":{\"biga.dev/prepare\":\"a\","
        "\"biga.dev/prepare\":\"b\"}}}",
        "{\"metadata\":{\"annotations\":{\"biga.dev/prepare\":\"a\"}},"
        "\"metadata\":{\"annotations\":{\"biga.dev/prepare\":\"b\"}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct prepare p;
        struct error err = {0};
        cr_expect_eq(read_text(texts[i], &p, &err), -EINVAL, "%s", texts[i]);
        cr_expect_neq(err.text[0], '\0');
    }
}
