/* Nodes as they were. */
#include <string.h>

#include "extender/console/html.h"
#include "extender/console/past.h"
#include "lib/base/mem.h"

static const char heads[] =
    "<th scope=\"col\">Node</th><th scope=\"col\">Status</th>"
    "<th scope=\"col\">Since</th><th scope=\"col\">Leaf now</th>"
    "<th scope=\"col\">Cards</th><th scope=\"col\" class=\"n\">Pods</th>"
    "<th scope=\"col\">What was wrong</th>";

static const char *leaf_of(const struct snapshot *s, const char *node)
{
    int32_t i = snapshot_find(s, node, strlen(node));
    int32_t leaf = i == NODE_NONE ? FABRIC_NONE : snapshot_leaf(s, (size_t)i);
    return leaf == FABRIC_NONE ? NULL : fabric_domain(s->fabric, leaf)->name;
}

static void cards_cells(const cJSON *node, struct str *out)
{
    const cJSON *c, *cards = past_list(node, "cards");
    cleanup_str struct str wrong = STR_INIT(STR_MAX_DEFAULT);
    size_t idle = 0;
    cJSON_ArrayForEach(c, cards)
    {
        const char *state = past_text(c, "state"), *why = past_text(c, "why");
        idle += strcmp(state, "idle") == 0;
        if (strcmp(state, "unhealthy") != 0 && strcmp(state, "drained") != 0)
            continue;
        str_addf(&wrong, "%scard %s was %s%s%s", wrong.size ? "; " : "",
                 past_text(c, "id"), state, *why ? ": " : "", why);
    }
    str_add(out, "<td>");
    html_add_bar(out, idle, (uint64_t)cJSON_GetArraySize(cards), "");
    html_addf(out, "</td><td class=\"n\">%d</td><td>%s</td></tr>\n",
              cJSON_GetArraySize(past_list(node, "pods")), str_text(&wrong));
}

static void write_row(const cJSON *node, const char *leaf, struct str *out)
{
    const char *name = past_text(node, "node");
    const char *status = past_text(node, "status");
    bool ready = strcmp(status, node_status_name(NODE_READY)) == 0;
    str_add(out, "<th scope=\"row\">");
    html_add_link(out, "nodes", name, NULL, name);
    str_add(out, "</th><td>");
    html_add_badge(out, ready ? "good" : "bad", status);
    html_addf(out, "</td><td class=\"time\">%s</td><td>",
              past_text(node, "since"));
    if (leaf)
        html_add_link(out, "leaves", leaf, NULL, leaf);
    str_add(out, "</td>");
    cards_cells(node, out);
}

static void take_node(void *ctx, const cJSON *node)
{
    struct console_then *t = ctx;
    const struct past_nodes *w = &t->wanted;
    const char *name = past_text(node, "node");
    const char *leaf = leaf_of(t->reply.snapshot, name);
    if ((w->name && !strstr(name, w->name)) ||
        (w->leaf && (!leaf || strcmp(leaf, w->leaf) != 0)) ||
        (w->status < NODE_STATUSES &&
         strcmp(past_text(node, "status"),
                node_status_name((enum node_status)w->status)) != 0))
        return;
    if (console_list_next(&t->list))
        write_row(node, leaf, &t->list.rows);
}

static int write_nodes(struct console_then *t, struct history_reader *r,
                       struct error *err)
{
    past_write_banner(t);
    int e = past_each_node(r, t->ms, take_node, t, err);
    if (e == 0)
        console_list_end(&t->list, &t->reply, heads, "nodes");
    return e;
}

/* Its texts are those of the request, which lives as long. */
void past_show_nodes(struct console_reply *r, struct console_list *list,
                     const struct past_nodes *wanted)
{
    struct console_then *t = xcalloc(1, sizeof *t);
    t->list = *list;
    t->wanted = *wanted;
    t->write = write_nodes;
    console_then_past(t, r);
}
