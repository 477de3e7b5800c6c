#include "extender/console/console_list.h"

#include <string.h>

#include "extender/console/html.h"
#include "extender/serve/query.h"

enum { ROWS = 100, ROWS_MAX = 1000, PAGES_MAX = 1000000 };

bool console_list_read(struct console_list *l, struct httpd_request *rq)
{
    uint64_t page;
    *l = (struct console_list){.limit = ROWS,
                               .rows = STR_INIT(STR_MAX_DEFAULT)};
    if (!query_limit(rq, ROWS_MAX, &l->limit) ||
        !query_number(rq, "page", PAGES_MAX, &page))
        return false;
    l->page = page ? (size_t)page : 1;
    l->rows.soft = true;
    return true;
}

void console_list_fini(struct console_list *l)
{
    str_fini(&l->rows);
}

bool console_list_next(struct console_list *l)
{
    size_t at = l->n++;
    if (at / l->limit != l->page - 1)
        return false;
    /* the head is the first row */
    html_addf(&l->rows, "<tr aria-rowindex=\"%zu\">", at + 2);
    return true;
}

bool console_list_is_all(const struct console_reply *r)
{
    const char *fragment = httpd_query(r->rq, "fragment");
    return fragment && strcmp(fragment, "rows") == 0;
}

/* The same list, another page of it. */
static void write_link(const struct console_reply *r, const char *rel,
                       size_t page, const char *text, struct str *out)
{
    html_addf(out, "<a rel=\"%s\" href=\"?page=%zu", rel, page);
    for (const char *const *name = r->params; *name; name++) {
        const char *value = httpd_query(r->rq, *name);
        if (!value || !*value || strcmp(*name, "page") == 0)
            continue;
        html_addf(out, "&amp;%s=", *name);
        html_add_segment(out, value);
    }
    html_addf(out, "\">%s</a>", text);
}

static void write_links(const struct console_list *l,
                        const struct console_reply *r, const char *noun,
                        struct str *out)
{
    size_t first = (l->page - 1) * l->limit, pages = (l->n - 1) / l->limit + 1;
    size_t end = first + l->limit < l->n ? first + l->limit : l->n;
    str_add(out, "<p class=\"more\">");
    if (l->page > 1)
        write_link(r, "prev", l->page > pages ? pages : l->page - 1, "Before",
                   out);
    if (first < end)
        html_addf(out, " <span>%zu to %zu of %zu %s</span> ", first + 1, end,
                  l->n, noun);
    if (l->page < pages)
        write_link(r, "next", l->page + 1, "More", out);
    str_add(out, "</p>\n");
}

void console_list_end(struct console_list *l, struct console_reply *r,
                      const char *heads, const char *noun)
{
    struct str *out = &r->out;
    if (console_list_is_all(r))
        str_reset(out);
    if (l->n == 0) {
        html_addf(out, "<p>There are no %s.</p>\n", noun);
        return;
    }
    html_addf(out,
              "<div class=\"wide\"><table class=\"rows\" data-page=\"%zu\" "
              "data-limit=\"%zu\" aria-rowcount=\"%zu\"><thead><tr "
              "aria-rowindex=\"1\">",
              l->page, l->limit, l->n + 1);
    str_add(out, heads);
    str_add(out, "</tr></thead><tbody>\n");
    str_add_n(out, str_text(&l->rows), l->rows.size);
    str_add(out, "</tbody></table></div>\n");
    out->overflow |= l->rows.overflow;
    if (l->n > l->limit || l->page > 1)
        write_links(l, r, noun, out);
}
