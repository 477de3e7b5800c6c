#include "extender/view/html_page.h"

#include "extender/view/views.h"
#include "lib/base/mem.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta http-equiv=\"refresh\" content=\"5\">\n<title>Biga</title>\n"
    "<style>\n"
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;"
    "padding:0 1em;color:#1c2024;background:#fff}\n"
    "h1{margin-bottom:0}h2{margin-top:2em}p{max-width:44em}\n"
    "table{border-collapse:collapse;font-size:13px}\n"
    "th,td{text-align:left;padding:.2em .8em .2em 0;"
    "border-bottom:1px solid #d8dde3;vertical-align:top}\n"
    "th{font-weight:600;color:#5a6572}\n"
    "@media(prefers-color-scheme:dark){body{color:#dde3e9;"
    "background:#14181c}a{color:#8ab8ff}th,td{border-color:#333b44}}\n"
    "</style></head><body>\n"
    "<h1>Biga</h1>\n"
    "<p>A scheduler extender that places a host pod and its xPU pods on the "
    "same node, on the card, NUMA node and PCIe switch that belong "
    "together.</p>\n"
    "<p><a href=\"/v1/nodes\">nodes</a> · <a href=\"/v1/cards\">cards</a> · "
    "<a href=\"/v1/topology\">topology</a> · "
    "<a href=\"/v1/fabric\">fabric</a> · "
    "<a href=\"/v1/policy\">policy</a> · "
    "<a href=\"/v1/allocations\">allocations</a> · "
    "<a href=\"/v1/jobs\">jobs</a> · "
    "<a href=\"/metrics\">metrics</a> · "
    "<a href=\"/openapi.yaml\">openapi.yaml</a> · "
    "<a href=\"/readyz\">readyz</a>. Why a pod is where it is, or nowhere: "
    "<code>/v1/why?pod=NAMESPACE/NAME</code>.</p>\n";

static void write_section(struct str *out, const char *title, size_t n,
                          struct table *t)
{
    size_t shown = t->n_cells / t->n_columns;
    table_sort(t);
    str_addf(out, "<h2>%s: %zu</h2>\n", title, n);
    if (n == 0)
        return;
    table_write_html(t, out);
    if (shown < n)
        str_addf(out, "<p>and %zu more</p>\n", n - shown);
}

static void write_nodes(const struct snapshot *s, struct str *out)
{
    struct table t;
    table_init(&t, view_node_heads);
    for (size_t i = 0; i < s->n_nodes && i < HTML_PAGE_ROWS_MAX; i++)
        view_node_row(snapshot_node(s, i), &t);
    write_section(out, "Nodes", s->n_nodes, &t);
    table_fini(&t);
}

static void write_cards(const struct snapshot *s, struct str *out)
{
    struct table t;
    size_t n = 0, first;
    table_init(&t, view_card_heads);
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        size_t cards = view_count(node, DEVICE_CARD, &first);
        for (size_t k = 0; k < cards; k++)
            if (n++ < HTML_PAGE_ROWS_MAX)
                view_card_row(node, k, &t);
    }
    write_section(out, "Cards", n, &t);
    table_fini(&t);
}

static void write_allocations(const struct snapshot *s,
                              struct achieved_book *book, struct str *out)
{
    struct table t;
    size_t n;
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    table_init(&t, view_allocation_heads);
    for (size_t i = 0; i < n && i < HTML_PAGE_ROWS_MAX; i++)
        view_allocation_row(s, book, list[i], &t);
    write_section(out, "Allocations", n, &t);
    table_fini(&t);
}

void html_page_write(const struct snapshot *s, struct achieved_book *book,
                     struct str *out)
{
    str_add(out, head);
    write_nodes(s, out);
    write_allocations(s, book, out);
    write_cards(s, out);
    str_addf(out, "<p>biga %s, snapshot %llu</p>\n</body></html>\n",
             BIGA_VERSION, (unsigned long long)s->number);
}
