/* Tables of cells: widths, order, colours, and what is not shown. */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/table.h"

static void assert_text(const struct str *got, const char *want)
{
    cr_assert_str_eq(str_text(got), want, "got:\n%s\nwant:\n%s", str_text(got),
                     want);
}

static const struct table_column two[] = {{"NAME", false}, {"N", true}};

Test(table, rows_are_sorted_by_name)
{
    static const char *const names[] = {"n10", "n9", "n1", "n9"};
    cleanup_table struct table t;
    cleanup_str struct str out = STR_INIT(4096);
    table_init_columns(&t, two, 2);
    table_sort(&t);
    for (int i = 0; i < 4; i++) {
        table_add(&t, names[i]);
        table_addf(&t, "%d", i);
    }
    table_sort(&t);
    table_write(&t, false, &out);
    assert_text(&out, "NAME  N\nn1    2\nn9    1\nn9    3\nn10   0\n");
}

Test(table, widths_come_from_the_content)
{
    cleanup_table struct table t;
    cleanup_str struct str out = STR_INIT(4096);
    table_init_columns(&t, two, 2);
    table_add(&t, "a-long-name");
    table_addf(&t, "%d", 5);
    table_add(&t, "b");
    table_add(&t, "12345");
    table_write(&t, false, &out);
    assert_text(&out, "NAME             N\n"
                      "a-long-name      5\n"
                      "b            12345\n");
}

Test(table, lines_end_without_spaces_and_rows_are_filled_up)
{
    static const struct table_column left[] = {{"A", false}, {"B", false}};
    cleanup_table struct table t;
    cleanup_str struct str out = STR_INIT(4096);
    table_init_columns(&t, left, 2);
    table_add(&t, "x");
    table_add(&t, "a longer one");
    table_add(&t, "y");
    table_write(&t, false, &out);
    assert_text(&out, "A  B\nx  a longer one\ny  -\n");
    cr_assert_null(strstr(str_text(&out), " \n"));
}

Test(table, what_is_unknown_is_a_dash)
{
    cleanup_table struct table t;
    cleanup_str struct str out = STR_INIT(4096);
    table_init_columns(&t, two, 2);
    table_add(&t, "");
    table_add(&t, NULL);
    table_write(&t, false, &out);
    assert_text(&out, "NAME  N\n-     -\n");
}

Test(table, a_server_cannot_steer_the_terminal)
{
    cleanup_table struct table t;
    cleanup_str struct str out = STR_INIT(4096);
    table_init_columns(&t, two, 2);
    table_add(&t, "\033[31mred\a\n");
    table_add(&t, "1");
    table_write(&t, false, &out);
    assert_text(&out, "NAME        N\n?[31mred??  1\n");
}

Test(table, colours_do_not_count_as_width)
{
    cleanup_table struct table t;
    cleanup_str struct str plain = STR_INIT(4096), out = STR_INIT(4096);
    table_init_columns(&t, two, 2);
    table_add_style(&t, STYLE_GOOD, "ab");
    table_add(&t, "1");
    table_write(&t, true, &out);
    cr_assert_not_null(strstr(str_text(&out), "\033[32mab\033[0m    1\n"));
    table_write(&t, false, &plain);
    cr_assert_null(strchr(str_text(&plain), '\033'));
}

Test(table, a_page_has_no_markup_of_others)
{
    static const char *const heads[] = {"A&B", NULL};
    cleanup_table struct table t;
    cleanup_str struct str out = STR_INIT(4096);
    table_init(&t, heads);
    table_add(&t, "<b>");
    table_write_html(&t, &out);
    assert_text(&out, "<table><thead><tr><th>A&amp;B</th></tr></thead><tbody>\n"
                      "<tr><td>&lt;b&gt;</td></tr>\n</tbody></table>\n");
}

Test(table, a_hidden_column_is_not_written)
{
    static const struct table_column three[] = {
        {"NAME", false}, {"WIDE", false}, {"N", true}};
    cleanup_table struct table t;
    cleanup_str struct str out = STR_INIT(4096);
    table_init_columns(&t, three, 3);
    t.hidden[1] = true;
    table_add(&t, "a");
    table_add(&t, "hidden");
    table_add(&t, "1");
    table_write(&t, false, &out);
    assert_text(&out, "NAME  N\na     1\n");
    str_reset(&out);
    t.hidden[1] = false;
    t.hidden[2] = true;
    table_write(&t, false, &out);
    assert_text(&out, "NAME  WIDE\na     hidden\n");
}

Test(table, rows_without_a_head_stand_below_those_of_another_table)
{
    cleanup_table struct table first, later;
    cleanup_str struct str out = STR_INIT(4096);
    table_init_columns(&first, two, 2);
    table_init_columns(&later, two, 2);
    table_add(&first, "a-long-name");
    table_add(&first, "1234");
    table_add(&later, "b");
    table_add(&later, "\033[5");
    table_widen(&later, &first);
    table_write_rows(&later, false, &out);
    assert_text(&out, "b             ?[5\n");
    cleanup_free const char **texts = table_texts(&later);
    cr_assert_str_eq(texts[0], "b");
    cr_assert_str_eq(texts[1], "?[5");
}
