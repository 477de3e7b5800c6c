/* achieved_book - the last report of each node: what its pods have.  In memory
 * alone, as nodes tell it again after a start.  Any thread; nothing waits. */
#ifndef BIGA_EXTENDER_ACHIEVED_ACHIEVED_BOOK_H
#define BIGA_EXTENDER_ACHIEVED_ACHIEVED_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/achieved/achieved_report.h"

enum { ACHIEVED_NODES_MAX = 200000 };

struct achieved_book;
struct achieved_book *achieved_book_create(void);
void achieved_book_destroy(struct achieved_book *b); /* NULL allowed */
/* Called after each change, without a lock; NULL, NULL: nobody is. */
void achieved_book_watch(struct achieved_book *b, void (*changed)(void *ctx),
                         void *ctx);

/* In the place of what that node told before; a reference is taken.  -ENOSPC:
 * there are too many nodes. */
int achieved_book_put(struct achieved_book *b, struct achieved_report *r,
                      struct error *err);
void achieved_book_drop(struct achieved_book *b, const char *node);
/* The caller owns the reference; NULL: the node has told nothing. */
struct achieved_report *achieved_book_get(struct achieved_book *b,
                                          const char *node);
/* All, in no order; the caller owns the array and the references. */
struct achieved_report **achieved_book_list(struct achieved_book *b,
                                            size_t *ret_n);
/* Those that came after the book had `*version`, which becomes that of now; or,
 * when some have been dropped since, all.  Owned as above. */
struct achieved_report **achieved_book_since(struct achieved_book *b,
                                             uint64_t *version, bool *ret_all,
                                             size_t *ret_n);
/* Grows with each change. */
uint64_t achieved_book_version(struct achieved_book *b);

#endif
