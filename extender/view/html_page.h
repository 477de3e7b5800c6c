/* html_page - the one HTML page: what this is, where to look, and tables of
 * nodes, cards and allocations.  It needs nothing from elsewhere and runs no
 * script. */
#ifndef BIGA_EXTENDER_VIEW_HTML_PAGE_H
#define BIGA_EXTENDER_VIEW_HTML_PAGE_H

#include "extender/achieved/achieved_book.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"

/* What the page may load and run. */
#define HTML_PAGE_POLICY                                               \
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; " \
    "form-action 'none'; frame-ancestors 'none'"

enum { HTML_PAGE_ROWS_MAX = 200 }; /* of each table; the rest is counted */

void html_page_write(const struct snapshot *s, struct achieved_book *book,
                     struct str *out);

#endif
