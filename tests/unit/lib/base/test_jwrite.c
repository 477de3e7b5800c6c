#include "lib/base/jwrite.h"

#include <criterion/criterion.h>

Test(jwrite, writes_members_of_every_kind)
{
    cleanup_str struct str out = STR_INIT(4096);
    jwrite_object(&out, NULL);
    jwrite_text(&out, "text", "a\"\n");
    jwrite_int(&out, "int", INT64_MIN);
    jwrite_uint(&out, "uint", UINT64_MAX);
    jwrite_bool(&out, "yes", true);
    jwrite_bool(&out, "no", false);
    jwrite_null(&out, "null");
    jwrite_text_or_null(&out, "t", "");
    jwrite_text_or_null(&out, "u", NULL);
    jwrite_int_or_null(&out, "v", 0);
    jwrite_int_or_null(&out, "w", -1);
    jwrite_known_text(&out, "x", "");
    jwrite_known_text(&out, "y", "known");
    jwrite_known(&out, "z", 0);
    jwrite_known(&out, "0", 1);
    jwrite_end_object(&out);
    cr_expect_str_eq(str_text(&out),
                     "{\"text\":\"a\\\"\\n\",\"int\":-9223372036854775808,"
                     "\"uint\":18446744073709551615,\"yes\":true,\"no\":false,"
                     "\"null\":null,\"t\":\"\",\"u\":null,\"v\":0,\"w\":null,"
                     "\"y\":\"known\",\"0\":1}");
}

Test(jwrite, puts_commas_between_what_stands_side_by_side)
{
    cleanup_str struct str out = STR_INIT(4096);
    jwrite_array(&out, NULL);
    jwrite_array(&out, NULL);
    jwrite_end_array(&out);
    jwrite_object(&out, NULL);
    jwrite_array(&out, "a");
    jwrite_uint(&out, NULL, 1);
    jwrite_text(&out, NULL, "[");
    jwrite_uint(&out, NULL, 2);
    jwrite_end_array(&out);
    jwrite_object(&out, "b");
    jwrite_end_object(&out);
    jwrite_key(&out, "c");
    jwrite_null(&out, NULL);
    jwrite_end_object(&out);
    jwrite_end_array(&out);
    cr_expect_str_eq(str_text(&out),
                     "[[],{\"a\":[1,\"[\",2],\"b\":{},\"c\":null}]");
}

Test(jwrite, goes_on_after_other_text)
{
    cleanup_str struct str out = STR_INIT(4096);
    str_add(&out, "{\"a\":1,\n");
    jwrite_uint(&out, "b", 2);
    str_add(&out, ",\"c\":");
    jwrite_object(&out, NULL);
    jwrite_end_object(&out);
    jwrite_end_object(&out);
    str_add_c(&out, '\n');
    jwrite_object(&out, NULL);
    jwrite_end_object(&out);
    cr_expect_str_eq(str_text(&out), "{\"a\":1,\n\"b\":2,\"c\":{}}\n{}");
}

Test(jwrite, adds_nothing_past_the_cap)
{
    cleanup_str struct str out = STR_INIT(4);
    jwrite_object(&out, NULL);
    jwrite_text(&out, "key", "value");
    jwrite_end_object(&out);
    cr_expect(out.overflow);
    cr_expect_leq(out.size, 4);
}
