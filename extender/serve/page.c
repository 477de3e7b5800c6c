#include "extender/serve/page.h"

#include "lib/base/jwrite.h"

void page_begin(struct page *p, struct httpd_request *rq, size_t limit,
                const char *const *heads, const char *key, uint64_t version)
{
    *p = (struct page){
        .rq = rq,
        .out = httpd_reply(rq),
        .limit = limit,
        .after = httpd_query(rq, "continue"),
        .text = heads && httpd_wants_text(rq),
    };
    if (p->text) {
        table_init(&p->table, heads);
        return;
    }
    jwrite_object(p->out, NULL);
    jwrite_uint(p->out, key, version);
    jwrite_array(p->out, "items");
}

bool page_next(struct page *p, const char *a, const char *b)
{
    if (p->n == p->limit || p->out->overflow) {
        p->more = true;
        return false;
    }
    if (p->n++ && !p->text)
        str_add(p->out, ",\n");
    (void)snprintf(p->last, sizeof p->last, b ? "%s/%s" : "%s%s", a,
                   b ? b : "");
    return true;
}

void page_end(struct page *p)
{
    if (p->text) {
        httpd_content_type(p->rq, HTTPD_TEXT);
        if (!p->as_added) /* a page is of the names' bytes */
            table_sort(&p->table);
        table_write_text(&p->table, p->out);
        table_fini(&p->table);
        if (p->more)
            str_addf(p->out, "and more: continue=%s\n", p->last);
        return;
    }
    jwrite_end_array(p->out);
    if (p->more)
        jwrite_text(p->out, "continue", p->last);
    str_add(p->out, "}\n");
}

void page_drop(struct page *p)
{
    if (p->text)
        table_fini(&p->table);
}
