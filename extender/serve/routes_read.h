/* routes_read - what people and tools may see: nodes, cards, topology,
 * allocations, metrics, health, the description of the interface, a page. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_READ_H
#define BIGA_EXTENDER_SERVE_ROUTES_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/state/snapshot.h"
#include "lib/http/httpd.h"

struct app;

/* ctx is the struct app. */
extern const struct httpd_route read_routes[];
extern const size_t n_read_routes;

/* For other routes of the same kind.  The parameter "limit", from 1 to `max`;
 * `*ret_limit` stays as it is when there is none.  False when the request has
 * been failed. */
bool read_limit(struct httpd_request *rq, size_t max, size_t *ret_limit);
/* The parameter `name`, which is one of `n` words, or absent: then it is `n`.
 * False when the request has been failed. */
typedef const char *read_word_f(unsigned index);
bool read_choice(struct httpd_request *rq, const char *name, read_word_f *word,
                 unsigned n, unsigned *ret_index);
/* Everything that a snapshot shows may be kept by the client until the next
 * snapshot.  True when it has it already (the reply is set). */
bool read_is_current(struct httpd_request *rq, const struct app *app,
                     const struct snapshot *snapshot);

#endif
