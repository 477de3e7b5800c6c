#include "extender/console/console_reply.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "extender/admit/cookie.h"
#include "extender/console/html.h"
#include "extender/serve/query.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

enum { PARAMS_MAX = 8 };

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
    for (size_t i = 0; params && params[i] && i + 1 < PARAMS_MAX; i++)
        all[i + 1] = params[i];
    if (!httpd_query_only(rq, all))
        return false;
    *r = (struct console_reply){
        .rq = rq,
        .app = app,
        .snapshot = writer_snapshot(app->writer),
        .page = {.title = "", .section = section},
        .out = STR_INIT(STR_MAX_DEFAULT),
    };
    cleanup_str struct str token = STR_INIT(COOKIE_TOKEN_MAX);
    r->page.token = cookie_token(rq, app->listener.secure, &token);
    r->out.soft = true;
    return true;
}

bool console_has(struct httpd_request *rq, const char *text, size_t size,
                 const char *form)
{
    char etag[64];
    const char *have = httpd_header(rq, "If-None-Match");
    (void)snprintf(etag, sizeof etag, "W/\"%016" PRIx64 "%s\"",
                   hash_bytes(text, size), form);
    httpd_set_header(rq, "ETag", etag);
    if (!have || !strstr(have, etag))
        return false;
    httpd_status(rq, 304);
    return true;
}

void console_end(struct console_reply *r)
{
    struct str *reply = httpd_reply(r->rq);
    bool fragment = httpd_query(r->rq, "fragment") != NULL;
    if (r->out.overflow) {
        httpd_fail(r->rq, 503, "there is no memory for this page");
    } else if (!console_has(r->rq, str_text(&r->out), r->out.size,
                            fragment ? "f" : "")) {
        if (!fragment)
            console_page_begin(&r->page, reply);
        str_add_n(reply, str_text(&r->out), r->out.size);
        if (!fragment)
            console_page_end(&r->page, reply);
        httpd_content_type(r->rq, "text/html; charset=utf-8");
    }
    console_harden(r->rq);
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
