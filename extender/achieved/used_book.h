/* used_book - what pods and places use of their cores and memory, as nodes told
 * it last.  In memory alone: nodes say it again.  Any thread. */
#ifndef BIGA_EXTENDER_ACHIEVED_USED_BOOK_H
#define BIGA_EXTENDER_ACHIEVED_USED_BOOK_H

#include "extender/pods/node_report.h"

enum {
    USED_BOOK_OLD_MS = 60000, /* what was told earlier is not known any more */
    /* Of all nodes, so many places and pods; what is told of more is not
     * known.  200 MiB. */
    USED_BOOK_ENTRIES_MAX = 1 << 20,
};

struct used_book;
struct used_book *used_book_create(void);
void used_book_destroy(struct used_book *b); /* NULL allowed */
DEFINE_CLEANUP(used_book, struct used_book *, used_book_destroy)

/* What the report says of this: a pod or place in it without usage is one of
 * which nothing is known, and of whom it does not speak that stays as it
 * is.  The caller knows that there is such a node. */
void used_book_put(struct used_book *b, const char *node,
                   const struct node_report *report, int64_t now_ms);
/* False, and unknown, when nothing was told of late.  NULL allowed for `b`. */
bool used_book_pod(struct used_book *b, const char *node, const char *uid,
                   int64_t now_ms, struct used *ret_used);
bool used_book_place(struct used_book *b, const char *node, const char *place,
                     int64_t now_ms, struct used *ret_used);
/* Grows when something is different from what it was, also by its age. */
uint64_t used_book_version(struct used_book *b, int64_t now_ms);

#endif
