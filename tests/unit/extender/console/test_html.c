#include <criterion/criterion.h>

#include "extender/console/html.h"

static struct str out;

static void begin(void)
{
    str_init(&out, STR_MAX_DEFAULT);
}

static void end(void)
{
    str_fini(&out);
}

TestSuite(html, .init = begin, .fini = end);

static void is(const char *expected)
{
    cr_expect_str_eq(str_text(&out), expected);
    str_reset(&out);
}

Test(html, what_is_written_is_no_markup)
{
    html_addf(&out, "<b title=\"%s\">%s</b>", "\"><script>", "<img src='x'>&");
    is("<b title=\"&quot;&gt;&lt;script&gt;\">"
       "&lt;img src=&#39;x&#39;&gt;&amp;</b>");
}

Test(html, what_is_hidden_is_seen)
{
    html_addf(&out, "%s",
              "a\xe2\x80\xae"
              "b\n\x7f");
    is("a?b??");
}

Test(html, numbers)
{
    html_addf(&out, "%d %u %lu %llu %zu %lld %x 5%%", -1, 2u, 3ul, 4ull,
              (size_t)5, -6ll, 255u);
    is("-1 2 3 4 5 -6 ff 5%");
}

Test(html, a_segment_has_neither_slash_nor_markup)
{
    html_add_segment(&out, "a/b c<\"'%?#\xc3\xa4~");
    is("a%2Fb%20c%3C%22%27%25%3F%23%C3%A4~");
    html_add_link(&out, "pods", "ns", "a/0", "<a/0>");
    is("<a href=\"/ui/pods/ns/a%2F0\">&lt;a/0&gt;</a>");
}

Test(html, a_bar_shows_what_is_left)
{
    html_add_bar(&out, 4, 16, "cores");
    cr_expect(strstr(str_text(&out), "class=\"used\" width=\"75\""));
    cr_expect(strstr(str_text(&out), "<b>4</b>/16 <small>cores free<"));
    str_reset(&out);
    html_add_bar(&out, 20, 16, "cores");
    cr_expect(strstr(str_text(&out), "width=\"0\""));
    str_reset(&out);
    html_add_bar(&out, 1, 0, "cores");
    is("");
}
