/* reflector - keeps several collections of the Kubernetes API in view: one
 * thread, one libcurl multi handle, for each collection the machine
 *
 *     LIST    in pages of 500 (limit, continue), objects cut out one by one;
 *             after a 410 on a page all is listed at once, without pages
 *     WATCH   from the list's resourceVersion, with bookmarks; a cut or timed
 *             out connection resumes at the last version seen; 410 (a Status
 *             or an ERROR event) lists again
 *     WAIT    after a failure, with back-off and jitter
 *
 * and tells the handlers, on its thread, in the order of the API server. */
#ifndef BIGA_LIB_KUBE_REFLECTOR_H
#define BIGA_LIB_KUBE_REFLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

enum { REFLECTOR_KINDS_MAX = 16, REFLECTOR_PAGE = 500 };

/* All are called on the reflector's thread, must not block for long, and may
 * be NULL.  JSON is borrowed for the call, and is as the API server sent it:
 * not yet checked.  Objects in a list may lack kind and apiVersion. */
struct reflector_handler {
    /* A list begins (the first, again after a gap, or anew because the one
     * under way cannot be completed): what is not put between the last of
     * these and `listed` is gone. */
    void (*list)(void *ctx);
    /* The object is there, or is so now; may be told twice. */
    void (*put)(void *ctx, const char *json, size_t size);
    /* It is gone, or no longer selected; its last state. */
    void (*gone)(void *ctx, const char *json, size_t size);
    /* The list is complete; from now on puts and gones are changes. */
    void (*listed)(void *ctx);
};

struct reflector_kind {
    const char *name;  /* for logs and metrics: "pods" */
    const char *path;  /* "/api/v1/pods" */
    const char *query; /* "labelSelector=biga.dev%2Frole", escaped; or NULL */
    struct reflector_handler handler;
    void *ctx;
    /* One can do without it: what goes on meanwhile, for the log.  While it is
     * forbidden it is asked for ever less often.  Where the API server has no
     * such resource (404) it counts as empty, and is asked for again every few
     * seconds.  NULL: nothing does. */
    const char *without;
};

struct reflector;
/* `config` and the kinds' texts must outlive it.  Starts the thread. */
int reflector_start(const struct kube_config *config,
                    const struct reflector_kind *kinds, size_t n,
                    struct reflector **ret_reflector, struct error *err);
/* Ends the thread at once, whatever it waits for. NULL allowed. */
void reflector_stop(struct reflector *r);
DEFINE_CLEANUP(reflector, struct reflector *, reflector_stop)

/* List kind `i` again, as if a watch had lost something: at once, or when what
 * it waits for after a failure is over.  Any thread; from a handler, too. */
void reflector_relist(struct reflector *r, size_t i);

/* Is every kind listed at least once, or one can do without it and may not see
 * it?  Any thread. */
bool reflector_is_synced(const struct reflector *r);
/* For metrics and /v1/…; any thread. */
struct reflector_state {
    const char *name;
    bool synced;   /* as reflector_is_synced() */
    bool watching; /* a watch is open, or a list is under way */
    uint64_t lists, watches, events, failures;
    int64_t heard_ms; /* monotonic clock of the last byte; 0: never */
    char error[320];  /* why it last failed; "" when it went on since */
};
size_t reflector_n_kinds(const struct reflector *r);
void reflector_state(const struct reflector *r, size_t i,
                     struct reflector_state *ret_state);

#endif
