/* remote_call - calls to a remote, each on a connection that nobody else uses
 * meanwhile.  At most REMOTE_CALLS_MAX at one time; others wait for their turn
 * until their deadline.  All of these block until then at most. */
#ifndef BIGA_ROUTER_REMOTE_REMOTE_CALL_H
#define BIGA_ROUTER_REMOTE_REMOTE_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"
#include "lib/grpc/grpc.h"
#include "router/keep/kept.h"
#include "router/wire/method.h"

enum {
    REMOTE_CALLS_MAX = 32, /* at one time */
    REMOTE_IDLE_MAX = 4,   /* connections that are kept for the next */
};

struct remote;

struct remote_ask {
    const struct method *method;
    struct proto_bytes request; /* as the remote is to have it */
    unsigned ms;
    /* Asked, before and while the call is under way, whether nobody waits for
     * it any more; NULL: somebody does.  With a lock held: it must not block,
     * nor call back.  remote_nudge() has it asked again. */
    bool (*unwanted)(void *ctx);
    void *ctx;
};
/* As grpc_call(), with `ret_end` always filled in.  At once: -EHOSTDOWN with
 * code UNAVAILABLE and a text that names the remote, since when it is away and
 * why (while it is suspect, once that is decided); -ECANCELED: the router stops,
 * or nobody waits. */
int remote_call(struct remote *r, const struct remote_ask *ask,
                struct str *ret_reply, struct grpc_end *ret_end,
                struct error *err);
void remote_nudge(struct remote *r);
/* Now and then: connections that nobody needed since the last time end; how
 * many. */
size_t remote_tidy(struct remote *r);

/* RunPodSandbox or CreateContainer by making_run(): announced as `what` says,
 * whose `remote` is this one; `ask` has the annotation of keep_seal(). */
int remote_make(struct remote *r, const struct kept *what,
                const struct remote_ask *ask, char ret_id[KEPT_ID_MAX + 1],
                struct grpc_end *ret_end, struct error *err);

#endif
