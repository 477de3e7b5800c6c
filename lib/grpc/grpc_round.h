/* grpc_round - several unary calls under way on one thread, each on the
 * connection that its `struct grpc` has already.
 *
 * No connection is made here, and changed key files are not noticed:
 * grpc_call() does both.
 * No call waits for another, whatever its server does, and none is ended for
 * time that another has taken. */
#ifndef BIGA_LIB_GRPC_GRPC_ROUND_H
#define BIGA_LIB_GRPC_GRPC_ROUND_H

#include "lib/grpc/grpc.h"

enum {
    GRPC_ROUND_MAX = 64,           /* calls */
    GRPC_ROUND_REQUEST = 16 << 10, /* bytes of one request */
};

struct grpc_round_call {
    const char *method;
    const void *request; /* all outlive the call */
    size_t size;
    unsigned deadline_ms;
    struct str *reply; /* reset first */
    /* It has ended, as grpc_call() says it; or -ENOTCONN: its connection was no
     * good any more, and nothing was sent.  From turn(); the `struct grpc` is
     * the caller's again.  Within it nothing is added. */
    void (*done)(void *ctx, int code, const struct grpc_end *end,
                 const struct error *err);
    void *ctx;
};

/* Of one thread, but for wake(); grpc_cancel() and grpc_interrupt() of a call's
 * `struct grpc` end it as they do elsewhere. */
struct grpc_round;
/* NULL with errno: there are no descriptors. */
struct grpc_round *grpc_round_create(void);
/* Nothing is under way.  NULL allowed. */
void grpc_round_destroy(struct grpc_round *r);

/* The call is on its way with the next turn, and nobody else uses `g` before
 * done().  -ENOTCONN: it has no connection, or one in cleartext; -EMSGSIZE: too
 * long a request; -ENOSPC: too many calls.  Then nothing was done. */
int grpc_round_add(struct grpc_round *r, struct grpc *g,
                   const struct grpc_round_call *call);
size_t grpc_round_count(const struct grpc_round *r);
/* Carries on what can be; when none has ended, waits for that, at most `ms`,
 * and carries on once more. */
void grpc_round_turn(struct grpc_round *r, unsigned ms);
/* From any thread: end the wait, of now or of the next turn. */
void grpc_round_wake(struct grpc_round *r);

#endif
