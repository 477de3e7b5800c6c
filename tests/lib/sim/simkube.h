/* simkube - as much of a Kubernetes API server as an advertiser sees: Nodes,
 * the Leases of one namespace and ResourceSlices, with uids, versions,
 * conflicts, preconditions and garbage collection.  In memory, without time. */
#ifndef BIGA_TESTS_LIB_SIM_SIMKUBE_H
#define BIGA_TESTS_LIB_SIM_SIMKUBE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/publish/publish.h"
#include "lib/base/error.h"
#include "lib/http/http.h"

struct simkube;
/* `changed` is called after each change of anything; may be NULL. */
struct simkube *simkube_create(void (*changed)(void *ctx), void *ctx);
void simkube_destroy(struct simkube *s);

/* Called for each change of a slice, as a watch tells it; before `changed`. */
typedef void simkube_watch_f(void *ctx, const struct publish_notice *notice);
void simkube_watch(struct simkube *s, simkube_watch_f *watch, void *ctx);

/* What becomes of how DRA may give devices.  Without being told it is kept, and
 * each taint gets a time of its own. */
enum simkube_given { SIMKUBE_KEEPS, SIMKUBE_CUTS };
void simkube_set_given(struct simkube *s, enum simkube_given given);

/* One request, at once; always answers. */
void simkube_call(struct simkube *s, const struct publish_request *request,
                  struct http_answer *ret_answer);

/* Requests that are answered with this status and change nothing: those of
 * this method ("" any) on a path that contains `part`. 0 ends it. */
void simkube_refuse(struct simkube *s, const char *method, const char *part,
                    long status);

/* What the others do. */
void simkube_add_node(struct simkube *s, const char *name);
void simkube_delete(struct simkube *s, const char *part); /* all such paths */
void simkube_collect(struct simkube *s); /* what has no owner any more */
/* The stored object whose path contains `part` (the n-th of them), or NULL; it
 * may be changed, then it has to be touched. */
cJSON *simkube_find(struct simkube *s, const char *part, size_t n);
void simkube_touch(struct simkube *s, const char *part, size_t n);
size_t simkube_count(const struct simkube *s, const char *part);

/* The pool of a node as somebody sees it who takes the slices of the highest
 * generation, when they are as many as each of them says. */
enum simkube_pool {
    SIMKUBE_NONE, /* nothing there, or incomplete */
    SIMKUBE_WHOLE,
    SIMKUBE_MIXED, /* they contradict one another, or do not join */
};
enum simkube_pool simkube_pool(struct simkube *s, const char *node,
                               char ret_hash[17], int64_t *ret_generation);

#endif
