/* console_page - what is around every page of the console: its head, the bar
 * of pages, the search, the foot; and the page that asks for a token.  Pure. */
#ifndef BIGA_EXTENDER_CONSOLE_CONSOLE_PAGE_H
#define BIGA_EXTENDER_CONSOLE_CONSOLE_PAGE_H

#include <stdbool.h>

#include "lib/base/str.h"

/* What pages may load and run: what this server gives, and nothing that stands
 * in the page itself. */
#define CONSOLE_POLICY                                          \
    "default-src 'none'; script-src 'self'; style-src 'self'; " \
    "img-src 'self'; connect-src 'self'; form-action 'self'; "  \
    "base-uri 'none'; frame-ancestors 'none'"

/* Which of the bar's pages it belongs to. */
enum console_section {
    CONSOLE_FLEET,
    CONSOLE_NODES,
    CONSOLE_JOBS,
    CONSOLE_PENDING,
    CONSOLE_EVENTS,
    CONSOLE_REPLAY,
    CONSOLE_SECTIONS /* none */
};

struct console_page {
    const char *title; /* a tenant may have written it */
    enum console_section section;
    const char *query; /* what was searched for; NULL: nothing */
    bool token;        /* it was shown for a token: one can log out */
    bool history;      /* the server remembers what was */
    bool timed;        /* the page can show that */
    const char *at;    /* the moment that it shows; NULL: now */
    const char *tag;   /* of its content alone */
};

/* Up to the content of the page, and from there on. */
void console_page_begin(const struct console_page *page, struct str *out);
void console_page_end(const struct console_page *page, struct str *out);

/* The page that asks for a token; `why`: what was wrong with the one that
 * came, NULL: none came; `next`: the page that was wanted. */
void console_login_write(const char *why, const char *next, struct str *out);

#endif
