#include "extender/console/console_reply.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "extender/admit/cookie.h"
#include "extender/console/html.h"
#include "extender/serve/query.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

enum { PARAMS_MAX = 12, TAG_SIZE = 40 };

void console_harden(struct httpd_request *rq)
{
    httpd_set_header(rq, "Content-Security-Policy", CONSOLE_POLICY);
    httpd_set_header(rq, "X-Content-Type-Options", "nosniff");
    httpd_set_header(rq, "Referrer-Policy", "same-origin");
    httpd_set_header(rq, "Cache-Control", "no-cache, private");
}

bool console_begin(struct console_reply *r, struct httpd_request *rq,
                   struct app *app, enum console_section section,
                   const char *const *params)
{
    const char *all[PARAMS_MAX + 1] = {"fragment"};
    bool timed = false;
    for (size_t i = 0; params && params[i] && i + 1 < PARAMS_MAX; i++) {
        all[i + 1] = params[i];
        timed |= strcmp(params[i], "at") == 0;
    }
    if (!httpd_query_only(rq, all))
        return false;
    *r = (struct console_reply){
        .rq = rq,
        .app = app,
        .snapshot = visible_snapshot(app, rq),
        .page = {.title = "",
                 .section = section,
                 .history = app->history != NULL,
                 .timed = timed,
                 .at = httpd_query(rq, "at")},
        .params = params,
        .out = STR_INIT(STR_MAX_DEFAULT),
    };
    cleanup_str struct str token = STR_INIT(COOKIE_TOKEN_MAX);
    r->page.token = cookie_token(rq, app->listener.secure, &token);
    r->out.soft = true;
    return true;
}

/* The same bytes have the same tag. */
static void tag_of(const char *text, size_t size, const char *form,
                   char ret_tag[TAG_SIZE])
{
    (void)snprintf(ret_tag, TAG_SIZE, "W/\"%016" PRIx64 "%s\"",
                   hash_bytes(text, size), form);
}

static bool has_tag(struct httpd_request *rq, const char *tag)
{
    const char *have = httpd_header(rq, "If-None-Match");
    httpd_set_header(rq, "ETag", tag);
    if (!have || !strstr(have, tag))
        return false;
    httpd_status(rq, 304);
    return true;
}

bool console_has(struct httpd_request *rq, const char *text, size_t size)
{
    char tag[TAG_SIZE];
    tag_of(text, size, "", tag);
    return has_tag(rq, tag);
}

void console_end(struct console_reply *r)
{
    struct str *reply = httpd_reply(r->rq);
    bool fragment = httpd_query(r->rq, "fragment") != NULL;
    char tag[TAG_SIZE], page_tag[TAG_SIZE];
    tag_of(str_text(&r->out), r->out.size, "", tag);
    tag_of(str_text(&r->out), r->out.size, "p", page_tag);
    r->page.tag = tag;
    if (r->out.overflow) {
        httpd_fail(r->rq, 503, "there is no memory for this page");
    } else if (!has_tag(r->rq, fragment ? tag : page_tag)) {
        if (!fragment)
            console_page_begin(&r->page, reply);
        str_add_n(reply, str_text(&r->out), r->out.size);
        if (!fragment)
            console_page_end(&r->page, reply);
        httpd_content_type(r->rq, "text/html; charset=utf-8");
    }
    console_harden(r->rq);
    console_drop(r);
}

void console_drop(struct console_reply *r)
{
    str_fini(&r->out);
    snapshot_unref(r->snapshot);
}

void console_miss(struct console_reply *r, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    httpd_status(r->rq, 404);
    r->page.title = "Not found";
    str_reset(&r->out);
    html_addf(&r->out,
              "<h1>Not found</h1><p>%s</p><p><a href=\"/\">The fleet</a></p>",
              line);
}
