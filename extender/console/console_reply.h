/* console_reply - the answer to a browser: a page, or its content alone when
 * the page that is there asks again; nothing when the browser has it. */
#ifndef BIGA_EXTENDER_CONSOLE_CONSOLE_REPLY_H
#define BIGA_EXTENDER_CONSOLE_CONSOLE_REPLY_H

#include "extender/console/console_page.h"
#include "extender/serve/app.h"
#include "lib/base/str.h"
#include "lib/http/httpd.h"

struct console_reply {
    struct httpd_request *rq;
    struct app *app;
    struct snapshot *snapshot;
    struct console_page page;
    const char *const *params; /* of the page */
    struct str out;            /* the content */
};

/* False when the request has been answered already; else console_end() has to
 * follow.  `params` are those of the page; "fragment" is of all:
 * the content alone, or "rows", those of its list (console_list.h). */
bool console_begin(struct console_reply *r, struct httpd_request *rq,
                   struct app *app, enum console_section section,
                   const char *const *params);
void console_end(struct console_reply *r);
/* In place of that when the client has gone meanwhile. */
void console_drop(struct console_reply *r);

/* In place of the content: there is no such thing.  console_end() follows. */
void console_miss(struct console_reply *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the tag of what is shown, which depends on its bytes alone: what has not
 * changed is not sent again, also of another snapshot.  True when the browser
 * has it (the reply is set). */
bool console_has(struct httpd_request *rq, const char *text, size_t size);
/* The headers of everything that a browser gets from here. */
void console_harden(struct httpd_request *rq);

#endif
