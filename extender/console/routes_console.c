#include "extender/console/routes_console.h"

#include <string.h>

#include "extender/admit/cookie.h"
#include "extender/console/console_files.h"
#include "extender/console/console_page.h"
#include "extender/console/html.h"
#include "extender/console/pages.h"
#include "extender/view/drawing.h"
#include "lib/base/mem.h"
#include "lib/http/uri.h"

/* --- files ---------------------------------------------------------------- */

static void reply_file(struct httpd_request *rq, const char *text, size_t size,
                       const char *type)
{
    static const char *const none[] = {NULL};
    if (!httpd_query_only(rq, none))
        return;
    console_harden(rq);
    if (console_has(rq, text, size))
        return;
    httpd_content_type(rq, type);
    str_add_n(httpd_reply(rq), text, size);
}

/* With the rules of drawings, which stand in pages. */
static void on_css(struct httpd_request *rq, void *ctx)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    (void)ctx;
    str_add(&text, console_css);
    str_add(&text, drawing_rules);
    reply_file(rq, str_text(&text), text.size, "text/css; charset=utf-8");
}

/* Lists first: the rest begins at its end. */
static void on_js(struct httpd_request *rq, void *ctx)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    (void)ctx;
    str_add(&text, list_js);
    str_add(&text, console_js);
    reply_file(rq, str_text(&text), text.size,
               "text/javascript; charset=utf-8");
}

static void on_replay_js(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    reply_file(rq, replay_js, strlen(replay_js),
               "text/javascript; charset=utf-8");
}

/* Two horses' heads would be lost at this size: two bars that are yoked. */
static void on_icon(struct httpd_request *rq, void *ctx)
{
    static const char icon[] =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">"
        "<rect width=\"16\" height=\"16\" rx=\"3\" fill=\"#1f5fae\"/>"
        "<path d=\"M4 3v10M12 3v10M4 6h8\" stroke=\"#fff\" "
        "stroke-width=\"2\" fill=\"none\"/></svg>";
    (void)ctx;
    reply_file(rq, icon, sizeof icon - 1, DRAWING_TYPE);
}

/* The report is read by the browser: the server never sees it. */
static void on_replay(struct httpd_request *rq, void *ctx)
{
    struct console_reply r;
    if (!console_begin(&r, rq, ctx, CONSOLE_REPLAY, NULL))
        return;
    r.page.title = "Replay";
    str_add(&r.out,
            "<h1 data-still>Replay</h1>\n<p>A report of <code>biga replay "
            "--json FILE</code>, which is shown here and sent nowhere.</p>\n"
            "<p><label for=\"report\">Report</label> <input id=\"report\" "
            "type=\"file\" accept=\".json,application/json\"></p>\n"
            "<noscript><p>This page needs its script: it opens the file."
            "</p></noscript>\n<div id=\"replayed\" role=\"region\" "
            "aria-live=\"polite\" aria-label=\"Report\"></div>\n"
            "<script src=\"/ui/replay.js\" defer></script>\n");
    console_end(&r);
}

/* --- who looks ------------------------------------------------------------ */

static void show_login(struct httpd_request *rq, const char *why,
                       const char *next)
{
    struct str *out = httpd_reply(rq);
    str_reset(out);
    console_login_write(why, next, out);
    httpd_content_type(rq, "text/html; charset=utf-8");
    console_harden(rq);
}

/* The page that is asked for, with its query: a moment, or what is sought. */
static void add_target(const struct httpd_request *rq, struct str *out)
{
    const char *name, *value;
    char gap = '?';
    str_add(out, httpd_path(rq));
    for (size_t i = 0; httpd_query_at(rq, i, &name, &value); i++) {
        if (strcmp(name, "fragment") == 0) /* a part of a page is none */
            continue;
        str_add_c(out, gap);
        gap = '&';
        html_add_segment(out, name);
        str_add_c(out, '=');
        html_add_segment(out, value);
    }
}

void console_show_login(struct httpd_request *rq, const char *why)
{
    cleanup_str struct str next = STR_INIT(4 * URI_MAX);
    add_target(rq, &next);
    show_login(rq, why, str_text(&next));
}

static void go_to(struct httpd_request *rq, const char *path)
{
    httpd_status(rq, 303);
    httpd_set_header(rq, "Location", path);
    httpd_set_header(rq, "Cache-Control", "no-store");
}

/* Only a page of ours, and not the one that asks for a token. */
static const char *next_page(const char *next)
{
    bool fleet = next && next[0] == '/' && (!next[1] || next[1] == '?');
    bool page = next && strncmp(next, "/ui/", 4) == 0 &&
                strncmp(next, "/ui/log", 7) != 0;
    return fleet || page ? next : "/";
}

/* Whose the token is, is judged on the page that it leads to. */
static void on_login(struct httpd_request *rq, void *ctx)
{
    const struct app *app = ctx;
    cleanup_free struct uri *form = xcalloc(1, sizeof *form);
    struct error err = {0};
    size_t size;
    const char *body = httpd_body(rq, &size);
    cleanup_free char *target = xasprintf("/?%s", body);
    const char *token = uri_parse(target, form, &err) < 0
                            ? NULL
                            : uri_param(form, "token");
    if (!token || !*token || !cookie_set(rq, app->listener.secure, token)) {
        httpd_status(rq, 400);
        show_login(rq,
                   "a token has letters, digits and -._~+/=, and at most 2000 "
                   "of them",
                   next_page(uri_param(form, "next")));
    } else {
        go_to(rq, next_page(uri_param(form, "next")));
    }
    explicit_bzero(target, strlen(target));
    explicit_bzero(form, sizeof *form);
}

static void on_login_page(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    console_show_login(rq, NULL);
}

static void on_logout(struct httpd_request *rq, void *ctx)
{
    const struct app *app = ctx;
    (void)cookie_set(rq, app->listener.secure, "");
    go_to(rq, "/");
}

const struct httpd_route console_routes[] = {
    {HTTPD_GET, "/", page_fleet, 0, "page"},
    {HTTPD_GET, "/ui/search", page_search, 0, "page"},
    {HTTPD_GET, "/ui/nodes", page_nodes, 0, "page"},
    {HTTPD_GET, "/ui/nodes/:", page_node, 0, "page"},
    {HTTPD_GET, "/ui/leaves/:", page_leaf, 0, "page"},
    {HTTPD_GET, "/ui/cards/:/:", page_card, 0, "page"},
    {HTTPD_GET, "/ui/jobs", page_jobs, 0, "page"},
    {HTTPD_GET, "/ui/jobs/:/:", page_job, 0, "page"},
    {HTTPD_GET, "/ui/pending", page_pending, 0, "page"},
    {HTTPD_GET, "/ui/pods/:/:", page_pod, 0, "page"},
    {HTTPD_GET, "/ui/events", page_events, 0, "page"},
    {HTTPD_GET, "/ui/replay", on_replay, 0, "page"},
    {HTTPD_GET, "/ui/replay.js", on_replay_js, 0, "page-file"},
    {HTTPD_GET, "/ui/console.css", on_css, 0, "page-file"},
    {HTTPD_GET, "/ui/console.js", on_js, 0, "page-file"},
    {HTTPD_GET, "/ui/icon.svg", on_icon, 0, "page-file"},
    {HTTPD_GET, "/ui/login", on_login_page, 0, "login"},
    {HTTPD_POST | HTTPD_FROM_PAGES, "/ui/login", on_login, URI_MAX, "login"},
    {HTTPD_POST | HTTPD_FROM_PAGES, "/ui/logout", on_logout, 64, "login"},
};
const size_t n_console_routes = ARRAY_LEN(console_routes);
