/* How long ago: as kubectl tells it. */
#include <criterion/criterion.h>

#include "cli/base/age.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

Test(age, is_told_as_kubectl_does)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "0s"},           {119, "119s"},     {120, "2m"},
        {190, "3m10s"},      {599, "9m59s"},    {600, "10m"},
        {10799, "179m"},     {10800, "3h"},     {12000, "3h20m"},
        {28800, "8h"},       {172799, "47h"},   {172800, "2d"},
        {187200, "2d4h"},    {691199, "7d23h"}, {691200, "8d"},
        {86400000, "1000d"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[AGE_SIZE];
        age_format(cases[i].seconds, text);
        cr_expect_str_eq(text, cases[i].text);
    }
}

Test(age, is_unknown_without_a_moment_and_never_negative)
{
    static const struct table_column one[] = {{"AGE", false}};
    cleanup_table struct table t;
    char ahead[CLOCK_UTC_MAX], before[CLOCK_UTC_MAX];
    clock_format_utc(clock_wall_s() + 3600, ahead);
    clock_format_utc(clock_wall_s() - 40 * 86400, before);
    table_init_columns(&t, one, 1);
    age_add(&t, "");
    age_add(&t, "yesterday");
    age_add(&t, ahead);
    age_add(&t, before);
    cleanup_free const char **texts = table_texts(&t);
    cr_expect_str_eq(texts[0], "-");
    cr_expect_str_eq(texts[1], "-");
    cr_expect_str_eq(texts[2], "0s");
    cr_expect_str_eq(texts[3], "40d");
}
