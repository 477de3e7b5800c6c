/* query - what the routes that people and tools read have in common: the
 * parameters of a list, and what a client has already. */
#ifndef BIGA_EXTENDER_SERVE_QUERY_H
#define BIGA_EXTENDER_SERVE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/alloc_order.h"
#include "extender/state/snapshot.h"
#include "lib/http/httpd.h"

struct app;

/* What is shown to the client of a request: the newest snapshot, as far as it
 * may see it.  What reads lists for people begins here.  A reference. */
struct snapshot *visible_snapshot(const struct app *app,
                                  const struct httpd_request *rq);

/* Its allocations and jobs in order.  A reference. */
struct alloc_order *visible_order(const struct app *app,
                                  const struct snapshot *s);

/* Items of a list: unless it is asked for less or more, and at most. */
enum { QUERY_LIMIT = 1000, QUERY_LIMIT_MAX = 100000 };

/* The parameter "limit", from 1 to `max`;
 * `*ret_limit` stays as it is when there is none.  False when the request has
 * been failed. */
bool query_limit(struct httpd_request *rq, size_t max, size_t *ret_limit);
/* The parameter `name`, at most `max`; 0 when there is none.  False when the
 * request has been failed. */
bool query_number(struct httpd_request *rq, const char *name, uint64_t max,
                  uint64_t *ret_number);
/* The parameter `name`, which is one of `n` words, or absent: then it is `n`.
 * False when the request has been failed. */
typedef const char *query_word_f(unsigned index);
bool query_choice(struct httpd_request *rq, const char *name,
                  query_word_f *word, unsigned n, unsigned *ret_index);
/* What is shown may be kept by the client until the next snapshot, or version
 * of the pods.  True when it has it already (the reply is set). */
bool query_has_version(struct httpd_request *rq, const struct app *app,
                       uint64_t snapshot, uint64_t version);
/* The same with the version that the source of pods has now. */
bool query_is_current(struct httpd_request *rq, const struct app *app,
                      const struct snapshot *snapshot);
/* Is its body JSON, as it says?  A page of elsewhere that a browser shows can
 * post a plain text to here, but no JSON.  False when the request has been
 * failed. */
bool query_is_json(struct httpd_request *rq);
/* The version of all that is shown: it grows with each change, and begins
 * anew after a start. */
uint64_t query_version(const struct app *app);
/* Does NAMESPACE/NAME stand behind a continue token of that form? */
bool query_is_after(const char *namespace, const char *name, const char *token);
/* The two parts of such a token; the caller frees the result, of which
 * `*ret_name` is a part. */
char *query_key(const char *token, const char **ret_name);

#endif
