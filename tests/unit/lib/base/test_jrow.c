#include "lib/base/jrow.h"

#include <criterion/criterion.h>
#include <string.h>

struct thing {
    char name[8];
    struct jtext word, raw;
    int64_t number;
    unsigned n_parts, size;
};

static void count_part(struct jscan *s, void *to)
{
    struct thing *t = to;
    t->n_parts++;
    (void)jscan_skip(s);
}

static void read_size(struct jscan *s, void *to)
{
    ((struct thing *)to)->size = jscan_peek(s) == JKIND_NUMBER ? 1 : 2;
    (void)jscan_skip(s);
}

#define ROWS(how)                                                      \
    {                                                                  \
        JROW("name", how, jrow_copy, struct thing, name),              \
            JROW("word", how, jrow_text, struct thing, word),          \
            JROW("raw", how, jrow_raw, struct thing, raw),             \
            JROW("number", how, jrow_int64, struct thing, number),     \
            JROW_EACH("parts", how, count_part),                       \
            JROW_CALL("size", how, JKIND_NUMBER, read_size), JROW_END, \
    }
static const struct jrow strict[] = ROWS(JROW_STRICT);
static const struct jrow nullable[] = ROWS(JROW_NULLABLE);
static const struct jrow lax[] = ROWS(JROW_LAX);
static const struct jrow nested[] = {
    JROW_OBJECT("in", JROW_LAX, lax),
    JROW_END,
};

static int parse(const char *json, enum jrow_policy policy,
                 const struct jrow *rows, struct thing *ret_thing,
                 struct error *err)
{
    struct jscan s;
    memset(ret_thing, 0, sizeof *ret_thing);
    jscan_init(&s, json, strlen(json));
    return jrow_parse(&s, policy, rows, ret_thing, err);
}

static bool is(const struct jtext *text, const char *wanted)
{
    return text->data && text->size == strlen(wanted) &&
           memcmp(text->data, wanted, text->size) == 0;
}

#define ALL                                                               \
    "{\"x\":[{}],\"name\":\"a\\u0062\",\"word\":\"w\\n\",\"raw\":[1, 2]," \
    "\"number\":-7,\"parts\":[1,{},[]],\"si\\u007ae\":3}"

Test(jrow, reads_each_member_into_its_field)
{
    const struct jrow *const tables[] = {strict, nullable, lax};
    for (size_t i = 0; i < 3; i++) {
        struct thing t;
        cr_assert_eq(parse(ALL, JROW_STRICT, tables[i], &t, NULL), 0);
        cr_expect_str_eq(t.name, "ab");
        cr_expect(is(&t.word, "w\\n"));
        cr_expect(is(&t.raw, "[1, 2]"));
        cr_expect_eq(t.number, -7);
        cr_expect_eq(t.n_parts, 3);
        cr_expect_eq(t.size, 1);
    }
}

Test(jrow, reads_an_object_within_the_object)
{
    struct thing t;
    cr_assert_eq(parse("{\"in\":" ALL "}", JROW_STRICT, nested, &t, NULL), 0);
    cr_expect_str_eq(t.name, "ab");
    cr_expect_eq(t.number, -7);
}

Test(jrow, policy_decides_about_other_kinds)
{
    static const char *const keys[] = {"name", "word", "number", "parts"};
    static const char *const values[] = {"null", "{}", "true"};
    for (size_t k = 0; k < 4; k++)
        for (size_t v = 0; v < 3; v++) {
            struct thing t;
            char json[64];
            (void)snprintf(json, sizeof json, "{\"%s\":%s,\"word\":\"w\"}",
                           keys[k], values[v]);
            cr_expect_eq(parse(json, JROW_STRICT, strict, &t, NULL), -EINVAL);
            cr_expect_eq(parse(json, JROW_STRICT, nullable, &t, NULL),
                         v == 0 ? 0 : -EINVAL);
            cr_expect_eq(parse(json, JROW_STRICT, lax, &t, NULL), 0);
            cr_expect(is(&t.word, "w"));
            cr_expect_eq(t.n_parts, 0);
        }
}

Test(jrow, policy_decides_about_the_object_itself)
{
    static const struct {
        const char *json;
        int strict, nullable, lax;
    } cases[] = {{"{}", 0, 0, 0},
                 {"null", -EINVAL, 0, 0},
                 {"[]", -EINVAL, -EINVAL, 0},
                 {"[}", -EINVAL, -EINVAL, -EINVAL}};
    for (size_t i = 0; i < 4; i++) {
        struct thing t;
        const char *json = cases[i].json;
        cr_expect_eq(parse(json, JROW_STRICT, lax, &t, NULL), cases[i].strict);
        cr_expect_eq(parse(json, JROW_NULLABLE, lax, &t, NULL),
                     cases[i].nullable);
        cr_expect_eq(parse(json, JROW_LAX, lax, &t, NULL), cases[i].lax);
    }
}

Test(jrow, leaves_a_text_that_does_not_fit)
{
    struct thing t;
    cr_assert_eq(parse("{\"name\":\"1234567\",\"name\":\"12345678\"}",
                       JROW_STRICT, strict, &t, NULL),
                 0);
    cr_expect_str_eq(t.name, "1234567");
}

Test(jrow, refuses_a_text_that_must_fit)
{
    static const struct jrow rows[] = {
        JROW("name", JROW_STRICT, jrow_fit, struct thing, name),
        JROW_END,
    };
    struct thing t;
    struct error err = {0};
    cr_assert_eq(parse("{\"name\":\"1234567\"}", JROW_STRICT, rows, &t, NULL),
                 0);
    cr_expect_str_eq(t.name, "1234567");
    cr_assert_eq(parse("{\"name\":\"12345678\"}", JROW_STRICT, rows, &t, &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "text too long at line 1 column 9 (byte 8)");
}

Test(jrow, reads_the_last_of_equal_keys)
{
    struct thing t;
    cr_assert_eq(
        parse("{\"number\":1,\"number\":2}", JROW_STRICT, strict, &t, NULL), 0);
    cr_expect_eq(t.number, 2);
}

Test(jrow, says_where_a_fault_is)
{
    static const char *const faults[] = {"{\"number\":01}", "{\"x\":[1,]}",
                                         "{\"in\":{\"name\":\"\\q\"}}",
                                         "{\"number\":1}}", "{\"parts\":[1"};
    for (size_t i = 0; i < 5; i++) {
        struct thing t;
        struct error err = {0};
        cr_expect_eq(parse(faults[i], JROW_LAX, lax, &t, &err), -EINVAL);
        cr_expect(strstr(err.text, "at line 1 column"), "%s", err.text);
    }
}

Test(jrow, finds_a_row_by_its_key)
{
    cr_expect_eq(jrow_find(lax, &(struct jtext){"raw", 3, false}), &lax[2]);
    cr_expect_eq(jrow_find(lax, &(struct jtext){"r\\u0061w", 8, true}),
                 &lax[2]);
    cr_expect_null(jrow_find(lax, &(struct jtext){"ra", 2, false}));
    cr_expect_null(jrow_find(lax, &(struct jtext){"rax", 3, false}));
}
