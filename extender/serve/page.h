/* page - one page of a list that a client reads: some items, as JSON or as a
 * table, and where the next page begins. */
#ifndef BIGA_EXTENDER_SERVE_PAGE_H
#define BIGA_EXTENDER_SERVE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/http/httpd.h"
#include "model/pod/demand.h"

enum { PAGE_KEY_MAX = DEMAND_NAME_MAX + DEMAND_NAMESPACE_MAX + 3 };

struct page {
    struct httpd_request *rq;
    struct str *out;
    size_t limit, n;
    const char *after;       /* the key to begin behind, or NULL */
    char last[PAGE_KEY_MAX]; /* the key of the newest item */
    bool text, more;
    struct table table; /* of a text; it ends ordered by names, but for … */
    bool as_added;      /* … one whose rows stay in the order they came in */
};

/* A table when the client wants text and there are `heads`; else JSON that
 * begins with `version` as the member `key`.  page_end() has to follow. */
void page_begin(struct page *p, struct httpd_request *rq, size_t limit,
                const char *const *heads, const char *key, uint64_t version);
/* Is there room for another item?  Its key is the two parts with a slash
 * between, or only the first. */
bool page_next(struct page *p, const char *a, const char *b);
void page_end(struct page *p);
/* In place of page_end(), when httpd_fail() has answered. */
void page_drop(struct page *p);

#endif
