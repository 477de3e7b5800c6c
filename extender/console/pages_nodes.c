#include "extender/console/pages.h"

#include <stdlib.h>
#include <string.h>

#include "extender/console/console_list.h"
#include "extender/console/console_map.h"
#include "extender/console/html.h"
#include "extender/console/past.h"
#include "extender/roster/roster.h"
#include "extender/serve/query.h"
#include "extender/view/views.h"
#include "lib/base/mem.h"

/* --- rows ----------------------------------------------------------------- */

static const char heads[] =
    "<th scope=\"col\">Node</th><th scope=\"col\">Status</th>"
    "<th scope=\"col\">Leaf</th><th scope=\"col\">Cards</th>"
    "<th scope=\"col\">GPUs</th><th scope=\"col\" class=\"n\">Pods</th>"
    "<th scope=\"col\">What is wrong</th>";

static void leaf_cell(const struct snapshot *s, int32_t index, struct str *out)
{
    int32_t leaf = snapshot_leaf(s, (size_t)index);
    str_add(out, "<td>");
    if (leaf == FABRIC_NONE)
        str_add(out, "–");
    else
        html_add_link(out, "leaves", fabric_domain(s->fabric, leaf)->name, NULL,
                      fabric_domain(s->fabric, leaf)->name);
    str_add(out, "</td>");
}

static void write_row(const struct console_reply *r, const struct node *node,
                      int32_t index, struct str *out)
{
    struct console_health h;
    cleanup_str struct str why = STR_INIT(STR_MAX_DEFAULT);
    console_health_judge(r->snapshot, r->app->achieved, node, &h);
    if (h.ill || h.drained || h.unaligned)
        console_health_explain(r->snapshot, r->app->achieved, node, &why);
    str_add(out, "<th scope=\"row\">");
    html_add_link(out, "nodes", node->name, NULL, node->name);
    str_add(out, "</th><td>");
    html_add_badge(out, node->status == NODE_READY ? "good" : "bad",
                   node_status_name(node->status));
    str_add(out, "</td>");
    leaf_cell(r->snapshot, index, out);
    str_add(out, "<td>");
    html_add_bar(out, h.idle, h.cards, "");
    str_add(out, "</td><td>");
    html_add_bar(out, h.free_gpus, h.gpus, "");
    html_addf(out, "</td><td class=\"n\">%zu</td><td>%s</td></tr>\n",
              node->n_allocations, str_text(&why));
}

/* --- the list ------------------------------------------------------------- */

struct filter {
    const char *name;
    unsigned status; /* NODE_STATUSES: any */
};

/* Which nodes have the name in theirs, by index: their names lie in a row where
 * the roster has them. */
struct named {
    const char *part;
    size_t size;
    bool *is;
};

static void find_name(void *ctx, size_t index, const char *name, size_t size)
{
    const struct named *x = ctx;
    x->is[index] = memmem(name, size, x->part, x->size) != NULL;
}

/* NULL: no name is asked for.  The caller frees it. */
static bool *find_named(const struct snapshot *s, const struct filter *f)
{
    if (!f->name || !*f->name)
        return NULL;
    struct named x = {f->name, strlen(f->name),
                      xcalloc(s->n_nodes + 1, sizeof(bool))};
    roster_each(s->roster, find_name, &x);
    return x.is;
}

static void list_nodes(const struct console_reply *r, const struct filter *f,
                       struct console_list *list)
{
    const struct snapshot *s = r->snapshot;
    cleanup_free bool *named = find_named(s, f);
    for (size_t i = 0; i < s->n_nodes; i++) {
        if (named && !named[i])
            continue;
        const struct node *node = snapshot_node(s, i);
        if (f->status != NODE_STATUSES && node->status != f->status)
            continue;
        if (console_list_next(list))
            write_row(r, node, (int32_t)i, &list->rows);
    }
}

/* `at`: the moment that is shown, or NULL. */
static void write_filter(const struct filter *f, const char *at,
                         struct str *out)
{
    html_addf(out,
              "<form class=\"filter\" action=\"/ui/nodes\"><label>Name "
              "<input name=\"name\" type=\"search\" maxlength=\"253\" "
              "value=\"%s\"></label><label>Status <select name=\"status\">"
              "<option value=\"\">any",
              f->name ? f->name : "");
    for (unsigned i = 0; i < NODE_STATUSES; i++)
        html_addf(out, "<option%s>%s", i == f->status ? " selected" : "",
                  node_status_name((enum node_status)i));
    str_add(out, "</select></label>");
    if (at)
        html_addf(out, "<input type=\"hidden\" name=\"at\" value=\"%s\">", at);
    str_add(out, "<button>Show</button></form>\n");
}

static const char *status_word(unsigned index)
{
    return node_status_name((enum node_status)index);
}

void page_nodes(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", "name", "status",
                                         CONSOLE_LIST_PARAMS, NULL};
    struct filter f = {.name = httpd_query(rq, "name"),
                       .status = NODE_STATUSES};
    const char *status = httpd_query(rq, "status");
    struct console_list list;
    struct console_reply r;
    if ((status && *status && /* a form sends "" for any */
         !query_choice(rq, "status", status_word, NODE_STATUSES, &f.status)) ||
        !console_list_read(&list, rq) ||
        !console_begin(&r, rq, ctx, CONSOLE_NODES, params))
        return;
    r.page.title = "Nodes";
    if (console_then_is_asked(&r)) {
        const struct past_nodes wanted = {.name = f.name, .status = f.status};
        str_add(&r.out, "<h1>Nodes</h1>\n");
        write_filter(&f, r.page.at, &r.out);
        past_show_nodes(&r, &list, &wanted);
        return;
    }
    html_addf(&r.out, "<h1>Nodes <small>%zu</small></h1>\n",
              r.snapshot->n_nodes);
    write_filter(&f, NULL, &r.out);
    list_nodes(&r, &f, &list);
    console_list_end(&list, &r, heads, "nodes");
    console_list_fini(&list);
    console_end(&r);
}

/* --- a leaf --------------------------------------------------------------- */

static bool is_on_leaf(const struct snapshot *s, size_t node, const char *name)
{
    int32_t leaf = snapshot_leaf(s, node);
    return leaf != FABRIC_NONE &&
           strcmp(fabric_domain(s->fabric, leaf)->name, name) == 0;
}

static bool leaf_is_there(const struct snapshot *s, const char *name)
{
    size_t n = s->fabric ? fabric_n_domains(s->fabric) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct fabric_domain *d = fabric_domain(s->fabric, (int32_t)i);
        if (d->tier == 0 && strcmp(d->name, name) == 0)
            return true;
    }
    return false;
}

void page_leaf(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", CONSOLE_LIST_PARAMS, NULL};
    const char *name = httpd_arg(rq, 0);
    struct console_list list;
    struct console_reply r;
    if (!console_list_read(&list, rq) ||
        !console_begin(&r, rq, ctx, CONSOLE_FLEET, params))
        return;
    r.page.title = name;
    if (!leaf_is_there(r.snapshot, name)) {
        console_miss(&r, "The fabric has no leaf \"%.253s\".", name);
        console_end(&r);
        return;
    }
    html_addf(&r.out,
              "<p class=\"path\"><a href=\"/\">Fleet</a></p><h1>Leaf %s</h1>\n",
              name);
    if (console_then_is_asked(&r)) {
        const struct past_nodes wanted = {.leaf = name,
                                          .status = NODE_STATUSES};
        past_show_nodes(&r, &list, &wanted);
        return;
    }
    for (size_t i = 0; i < r.snapshot->n_nodes; i++)
        if (is_on_leaf(r.snapshot, i, name) && console_list_next(&list))
            write_row(&r, snapshot_node(r.snapshot, i), (int32_t)i, &list.rows);
    console_list_end(&list, &r, heads, "nodes that have published");
    console_list_fini(&list);
    console_end(&r);
}
