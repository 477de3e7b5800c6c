/* line - connections to the runtime of one remote: each is used by one thread
 * at a time, and kept for the next.
 *
 * Any thread.  Nothing here waits for the remote: the first call on a
 * connection connects. */
#ifndef BIGA_ROUTER_SERVE_LINE_H
#define BIGA_ROUTER_SERVE_LINE_H

#include "advertiser/act/card/card.h"
#include "advertiser/cri/cri.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    LINE_MAX = 32, /* connections of one remote at one time */
    LINE_KEPT = 4, /* of these that are kept while nobody uses them */
};

struct lines;
/* Of this place, which is copied. */
struct lines *lines_create(const struct act_place *place);
/* All have been given back. NULL allowed. */
void lines_destroy(struct lines *l);
DEFINE_CLEANUP(lines, struct lines *, lines_destroy)

struct line {
    struct cri *cri;
};
/* A connection of the caller's own.  Waits while LINE_MAX are in use, until
 * clock_ms() is `due_ms`: -EBUSY.  -EINVAL: the place cannot be called. */
int lines_take(struct lines *l, int64_t due_ms, struct line *ret_line,
               struct error *err);
/* Now and then: those that nobody needed since the last time end; how many. */
size_t lines_tidy(struct lines *l);
/* Back again; `broken`: its last call had no answer, it is not used again. */
void lines_give(struct lines *l, struct line *line, bool broken);

#endif
