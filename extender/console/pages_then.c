/* Pages of the past: what the history says in JSON, drawn. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/console/console_map.h"
#include "extender/console/console_then.h"
#include "extender/console/html.h"
#include "extender/console/pages.h"
#include "extender/history/history_view.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/rfc3339.h"

bool console_then_is_asked(const struct console_reply *r)
{
    const char *at = httpd_query(r->rq, "at");
    return at && *at;
}

/* The moment; false, and said, when it is none. */
static bool take_moment(struct console_reply *r, int64_t *ret_ms)
{
    struct error err = {0};
    const char *fault = NULL;
    if (!r->app->history)
        fault = "This extender keeps no history: it needs --history DIR, or "
                "--state.";
    else if (history_query_time("at", httpd_query(r->rq, "at"),
                                clock_wall_ns() / 1000000, ret_ms, &err) < 0)
        fault = err.text;
    if (!fault)
        return true;
    httpd_status(r->rq, 400);
    html_addf(&r->out, "<p role=\"alert\" class=\"alert\">%s</p>\n", fault);
    console_end(r);
    return false;
}

/* --- JSON ----------------------------------------------------------------- */

static const char *text_of(const cJSON *object, const char *key)
{
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

static const cJSON *list_of(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static void write_banner(const struct console_then *t, struct str *out)
{
    char time[RFC3339_SIZE];
    rfc3339_format(t->ms, time);
    html_addf(out,
              "<p class=\"then\">As it was at <time datetime=\"%s\">%s"
              "</time>. <a href=\"%s\">Now</a></p>\n",
              time, time, httpd_path(t->reply.rq));
}

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
    const char *namespace = text_of(p, "namespace"), *job = text_of(p, "job");
    const char *relation = text_of(p, "relation");
    str_add(out, "<tr><th scope=\"row\">");
    html_add_link(out, "pods", namespace, text_of(p, "name"),
                  text_of(p, "name"));
    html_addf(out, "</th><td>%s</td><td>%s</td><td>", namespace,
              text_of(p, "role"));
    if (*job)
        html_add_link(out, "jobs", namespace, job, job);
    str_add(out, "</td><td>");
    html_add_link(out, "nodes", text_of(p, "node"), NULL, text_of(p, "node"));
    str_add(out, "</td>");
    ids_cell(list_of(p, "cards"), text_of(p, "node"), out);
    ids_cell(list_of(p, "gpus"), NULL, out);
    str_add(out, "<td>");
    html_add_badge(out, relation_class(relation), relation);
    html_addf(out, "</td><td class=\"time\">%s</td></tr>\n",
              text_of(p, "since"));
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
        html_add_link(out, "cards", node, text_of(c, "id"), text_of(c, "id"));
        html_addf(out, "</th><td>%s</td><td>", text_of(c, "model"));
        html_add_badge(out, card_class(text_of(c, "state")),
                       text_of(c, "state"));
        html_addf(out, "</td><td>%s</td><td class=\"n\">%d</td></tr>\n",
                  text_of(c, "why"), cJSON_GetArraySize(list_of(c, "pods")));
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
                  text_of(e, "time"), text_of(e, "kind"), text_of(e, "reason"),
                  text_of(e, "message"));
    str_add(out, "</tbody></table></div>\n");
}

static void draw_object(const struct console_then *t, const cJSON *json,
                        struct str *out)
{
    const char *state = text_of(json, "state");
    const cJSON *place = list_of(json, "place");
    html_addf(out, "<h1>%s ", t->object);
    if (!*state)
        state = text_of(json, "status");
    if (*state)
        html_add_badge(out, "dim", state);
    str_add(out, "</h1>\n");
    if (cJSON_IsArray(list_of(json, "cards")))
        write_cards(list_of(json, "cards"), t->object, out);
    if (cJSON_IsArray(list_of(json, "pods")))
        write_places(list_of(json, "pods"), out);
    if (t->kind == HISTORY_POD && cJSON_IsObject(place))
        html_addf(out, "<p class=\"lead\">On %s, since %s.</p>\n",
                  text_of(place, "node"), text_of(place, "since"));
    else if (t->kind == HISTORY_POD)
        html_addf(out, "<p class=\"lead\">It had no place%s%s</p>\n",
                  cJSON_IsObject(list_of(json, "refused")) ? ": " : ".",
                  text_of(list_of(json, "refused"), "message"));
    write_events(list_of(json, "events"), out);
}

static int write_object(struct console_then *t, struct history_reader *r,
                        struct error *err)
{
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    cleanup_with(json) cJSON *json = NULL;
    write_banner(t, &t->reply.out);
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
    if (!take_moment(r, &t->ms)) {
        free(object);
        free(t);
        return;
    }
    t->kind = kind;
    t->object = object;
    t->write = write_object;
    console_then_end(t, r);
}

/* --- the fleet ------------------------------------------------------------ */

struct past {
    const struct snapshot *snapshot;
    struct console_health *healths; /* by node of the snapshot */
    size_t n, n_cards, n_idle, n_ill, n_pods;
    struct str gone; /* nodes that are not there any more */
};

static void take_node(struct past *p, const cJSON *item)
{
    struct console_health h = {.known = true};
    const char *name = text_of(item, "node");
    const cJSON *c;
    h.ill = strcmp(text_of(item, "status"), node_status_name(NODE_READY)) != 0;
    cJSON_ArrayForEach(c, list_of(item, "cards"))
    {
        const char *state = text_of(c, "state");
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
    p->n_pods += (size_t)cJSON_GetArraySize(list_of(item, "pods"));
}

/* All nodes, page by page. */
static int read_fleet(struct past *p, int64_t ms, struct history_reader *r,
                      struct error *err)
{
    cleanup_free char *after = NULL;
    for (bool more = true; more;) {
        cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
        cleanup_with(json) cJSON *json = NULL;
        const cJSON *item;
        int e = history_view_topology(r, ms, after, HISTORY_VIEW_NODES, &text,
                                      err);
        if (e == 0)
            e = json_parse(str_text(&text), text.size, &json, err);
        if (e < 0)
            return e;
        cJSON_ArrayForEach(item, list_of(json, "items")) take_node(p, item);
        more = *text_of(json, "continue") != '\0';
        free(after);
        after = xstrdup(text_of(json, "continue"));
    }
    return 0;
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
    write_banner(t, &t->reply.out);
    int e = read_fleet(&p, t->ms, r, err);
    if (e == 0)
        draw_fleet(&p, &t->reply.out);
    str_fini(&p.gone);
    free(p.healths);
    return e;
}

void console_then_show_fleet(struct console_reply *r)
{
    struct console_then *t = xcalloc(1, sizeof *t);
    if (!take_moment(r, &t->ms)) {
        free(t);
        return;
    }
    t->write = write_fleet;
    console_then_end(t, r);
}
