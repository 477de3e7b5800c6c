/* Pages of the past: what the history says in JSON, drawn. */
#include <stdlib.h>
#include <string.h>

#include "extender/console/console_map.h"
#include "extender/console/console_then.h"
#include "extender/console/html.h"
#include "extender/console/pages.h"
#include "extender/console/past.h"
#include "extender/history/history_view.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"

/* --- who had what --------------------------------------------------------- */

static void ids_cell(const cJSON *ids, const char *node, struct str *out)
{
    const cJSON *id;
    const char *gap = "";
    str_add(out, "<td>");
    cJSON_ArrayForEach(id, ids)
    {
        const char *text = cJSON_GetStringValue(id);
        if (!text)
            continue;
        str_add(out, gap);
        gap = "<br>";
        if (node)
            html_add_link(out, "cards", node, text, text);
        else
            html_addf(out, "%s", text);
    }
    str_add(out, "</td>");
}

static void place_row(const cJSON *p, struct str *out)
{
    const char *namespace = past_text(p, "namespace"),
               *job = past_text(p, "job");
    const char *relation = past_text(p, "relation");
    str_add(out, "<tr><th scope=\"row\">");
    html_add_link(out, "pods", namespace, past_text(p, "name"),
                  past_text(p, "name"));
    html_addf(out, "</th><td>%s</td><td>%s</td><td>", namespace,
              past_text(p, "role"));
    if (*job)
        html_add_link(out, "jobs", namespace, job, job);
    str_add(out, "</td><td>");
    html_add_link(out, "nodes", past_text(p, "node"), NULL,
                  past_text(p, "node"));
    str_add(out, "</td>");
    ids_cell(past_list(p, "cards"), past_text(p, "node"), out);
    ids_cell(past_list(p, "gpus"), NULL, out);
    str_add(out, "<td>");
    html_add_badge(out, relation_class(relation), relation);
    html_addf(out, "</td><td class=\"time\">%s</td></tr>\n",
              past_text(p, "since"));
}

static void write_places(const cJSON *places, struct str *out)
{
    const cJSON *p;
    str_add(out, "<h2>Who had what</h2>\n");
    if (cJSON_GetArraySize(places) == 0) {
        str_add(out, "<p>Nobody.</p>\n");
        return;
    }
    str_add(out, "<div class=\"wide\"><table class=\"rows\"><thead><tr>"
                 "<th scope=\"col\">Pod</th><th scope=\"col\">Namespace</th>"
                 "<th scope=\"col\">Role</th><th scope=\"col\">Job</th>"
                 "<th scope=\"col\">Node</th><th scope=\"col\">Cards</th>"
                 "<th scope=\"col\">GPUs</th><th scope=\"col\">Promised</th>"
                 "<th scope=\"col\">Since</th></tr></thead><tbody>\n");
    cJSON_ArrayForEach(p, places) place_row(p, out);
    str_add(out, "</tbody></table></div>\n");
}

static const char *card_class(const char *state)
{
    return strcmp(state, "idle") == 0        ? "free"
           : strcmp(state, "unhealthy") == 0 ? "bad"
           : strcmp(state, "drained") == 0   ? "drain"
                                             : "use";
}

static void write_cards(const cJSON *cards, const char *node, struct str *out)
{
    const cJSON *c;
    str_add(out, "<h2>Cards</h2>\n<div class=\"wide\"><table class=\"rows\">"
                 "<thead><tr><th scope=\"col\">Card</th><th scope=\"col\">Model"
                 "</th><th scope=\"col\">State</th><th scope=\"col\">Why</th>"
                 "<th scope=\"col\" class=\"n\">Pods</th></tr></thead>"
                 "<tbody>\n");
    cJSON_ArrayForEach(c, cards)
    {
        str_add(out, "<tr><th scope=\"row\">");
        html_add_link(out, "cards", node, past_text(c, "id"),
                      past_text(c, "id"));
        html_addf(out, "</th><td>%s</td><td>", past_text(c, "model"));
        html_add_badge(out, card_class(past_text(c, "state")),
                       past_text(c, "state"));
        html_addf(out, "</td><td>%s</td><td class=\"n\">%d</td></tr>\n",
                  past_text(c, "why"),
                  cJSON_GetArraySize(past_list(c, "pods")));
    }
    str_add(out, "</tbody></table></div>\n");
}

/* --- one object ----------------------------------------------------------- */

static void write_events(const cJSON *events, struct str *out)
{
    const cJSON *e;
    str_add(out, "<h2>Around that time</h2>\n<div class=\"wide\"><table "
                 "class=\"rows\"><thead><tr><th scope=\"col\">Time</th>"
                 "<th scope=\"col\">Event</th><th scope=\"col\">What happened"
                 "</th></tr></thead><tbody>\n");
    cJSON_ArrayForEach(e, events)
        html_addf(out,
                  "<tr><td class=\"time\">%s</td><td>%s %s</td><td>%s</td>"
                  "</tr>\n",
                  past_text(e, "time"), past_text(e, "kind"),
                  past_text(e, "reason"), past_text(e, "message"));
    str_add(out, "</tbody></table></div>\n");
}

static void draw_object(const struct console_then *t, const cJSON *json,
                        struct str *out)
{
    const char *state = past_text(json, "state");
    const cJSON *place = past_list(json, "place");
    html_addf(out, "<h1>%s ", t->object);
    if (!*state)
        state = past_text(json, "status");
    if (*state)
        html_add_badge(out, "dim", state);
    str_add(out, "</h1>\n");
    if (cJSON_IsArray(past_list(json, "cards")))
        write_cards(past_list(json, "cards"), t->object, out);
    if (cJSON_IsArray(past_list(json, "pods")))
        write_places(past_list(json, "pods"), out);
    if (t->kind == HISTORY_POD && cJSON_IsObject(place))
        html_addf(out, "<p class=\"lead\">On %s, since %s.</p>\n",
                  past_text(place, "node"), past_text(place, "since"));
    else if (t->kind == HISTORY_POD)
        html_addf(out, "<p class=\"lead\">It had no place%s%s</p>\n",
                  cJSON_IsObject(past_list(json, "refused")) ? ": " : ".",
                  past_text(past_list(json, "refused"), "message"));
    write_events(past_list(json, "events"), out);
}

static int write_object(struct console_then *t, struct history_reader *r,
                        struct error *err)
{
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    cleanup_with(json) cJSON *json = NULL;
    past_write_banner(t);
    int e = history_view_object(r, t->kind, t->object, t->ms, &text, err);
    if (e == 0)
        e = json_parse(str_text(&text), text.size, &json, err);
    if (e == 0)
        draw_object(t, json, &t->reply.out);
    return e;
}

void console_then_show(struct console_reply *r, enum history_kind kind,
                       char *object)
{
    struct console_then *t = xcalloc(1, sizeof *t);
    t->kind = kind;
    t->object = object;
    t->write = write_object;
    console_then_past(t, r);
}

/* --- the fleet ------------------------------------------------------------ */

struct past {
    const struct snapshot *snapshot;
    struct console_health *healths; /* by node of the snapshot */
    size_t n, n_cards, n_idle, n_ill, n_pods;
    struct str gone; /* nodes that are not there any more */
};

static void take_node(void *ctx, const cJSON *item)
{
    struct past *p = ctx;
    struct console_health h = {.known = true};
    const char *name = past_text(item, "node");
    const cJSON *c;
    h.ill = strcmp(past_text(item, "status"), node_status_name(NODE_READY)) !=
            0;
    cJSON_ArrayForEach(c, past_list(item, "cards"))
    {
        const char *state = past_text(c, "state");
        h.cards++;
        h.idle += strcmp(state, "idle") == 0;
        h.ill |= strcmp(state, "unhealthy") == 0;
        h.drained |= strcmp(state, "drained") == 0;
    }
    int32_t at = snapshot_find(p->snapshot, name, strlen(name));
    if (at == NODE_NONE)
        str_addf(&p->gone, "%s%s", p->gone.size ? ", " : "", name);
    else
        p->healths[at] = h;
    p->n++;
    p->n_cards += h.cards;
    p->n_idle += h.idle;
    p->n_ill += h.ill;
    p->n_pods += (size_t)cJSON_GetArraySize(past_list(item, "pods"));
}

static void draw_fleet(const struct past *p, struct str *out)
{
    const struct console_map map = {.snapshot = p->snapshot,
                                    .healths = p->healths};
    html_addf(out,
              "<dl class=\"totals\"><div><dt>Nodes</dt><dd>%zu</dd></div><div>"
              "<dt>Cards free</dt><dd>%zu<small>/%zu</small></dd></div><div>"
              "<dt>Pods placed</dt><dd>%zu</dd></div><div><dt>Ill nodes</dt>"
              "<dd>%zu</dd></div></dl>\n",
              p->n, p->n_idle, p->n_cards, p->n_pods, p->n_ill);
    console_map_write_legend(out);
    console_map_write(&map, out);
    if (p->gone.size)
        html_addf(out, "<p>No longer there: %s</p>\n", str_text(&p->gone));
}

static int write_fleet(struct console_then *t, struct history_reader *r,
                       struct error *err)
{
    const struct snapshot *s = t->reply.snapshot;
    struct past p = {.snapshot = s, .gone = STR_INIT(1 << 16)};
    p.healths = xcalloc(s->n_nodes + 1, sizeof *p.healths);
    past_write_banner(t);
    int e = past_each_node(r, t->ms, take_node, &p, err);
    if (e == 0)
        draw_fleet(&p, &t->reply.out);
    str_fini(&p.gone);
    free(p.healths);
    return e;
}

void console_then_show_fleet(struct console_reply *r)
{
    struct console_then *t = xcalloc(1, sizeof *t);
    t->write = write_fleet;
    console_then_past(t, r);
}
