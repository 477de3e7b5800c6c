/* console_list - a page of a long list: a table of some of its rows that says
 * how many there are, with links to the pages beside it.  The script of the
 * pages (list.js) fetches these as one scrolls. */
#ifndef BIGA_EXTENDER_CONSOLE_CONSOLE_LIST_H
#define BIGA_EXTENDER_CONSOLE_CONSOLE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/console/console_reply.h"

/* Its parameters, to be listed with those of the page: "page" counts from 1,
 * "limit" is how many rows a page has. */
#define CONSOLE_LIST_PARAMS "page", "limit"

struct console_list {
    size_t page, limit;
    size_t n;        /* rows that there are, as far as they were counted */
    struct str rows; /* those of the page */
};
/* False when the request has been failed. */
bool console_list_read(struct console_list *l, struct httpd_request *rq);
void console_list_fini(struct console_list *l);

/* Count a row.  True: it is of the page, and is to be written to `rows`, from
 * behind its "<tr>" on, which stands there. */
bool console_list_next(struct console_list *l);
/* The table.  `heads` are the cells of its head, `noun` is what it lists,
 * "nodes".  When the rows alone were asked for, they are in place of what was
 * written before. */
void console_list_end(struct console_list *l, struct console_reply *r,
                      const char *heads, const char *noun);
/* Were they?  Then nothing has to follow. */
bool console_list_is_all(const struct console_reply *r);

#endif
