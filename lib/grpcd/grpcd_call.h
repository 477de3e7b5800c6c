/* grpcd_call - one call as its handler sees it.
 *
 * A handler has the call from the moment it is called, and owes exactly one of
 *   grpcd_call_finish()   it is answered
 *   grpcd_relay_pass()    or _edit(): another server answers (grpcd_relay.h)
 *   grpcd_call_work()     another handler has it, on a worker
 * by itself, or later by any thread to which it gave the call; it must not be
 * touched afterwards.  A call that is kept costs no thread: a stream of events
 * needs none.  That holds as well when the client has gone: the handler learns
 * of it by one of the ways below, and finishes; what it says then is dropped.
 *
 * Functions are of any thread, of one at a time for one call; but that
 * cancellation may be asked for by others until the call is given up.  Texts
 * and messages are borrowed, and stay until the call is given up; a message
 * until the next one is asked for. */
#ifndef BIGA_LIB_GRPCD_GRPCD_CALL_H
#define BIGA_LIB_GRPCD_GRPCD_CALL_H

#include "lib/base/str.h"
#include "lib/grpcd/grpcd.h"

enum {
    GRPCD_QUEUE_MAX = 1 << 20, /* bytes of replies that wait for the client */
    GRPCD_TEXT_MAX = 4096,     /* bytes of grpc-message; more is cut */
};

/* "/runtime.v1.RuntimeService/Version" */
const char *grpcd_call_method(const struct grpcd_call *call);
/* The first value of a header, its name in lower case; NULL: there is none. */
const char *grpcd_call_metadata(const struct grpcd_call *call,
                                const char *name);
/* When the client stops waiting, by clock_ms(); INT64_MAX: never.  The server
 * ends the call then, and cancels it. */
int64_t grpcd_call_due_ms(const struct grpcd_call *call);
/* From now on until then, as grpc_call() wants it: 0 when it is over, at most
 * `most`. */
unsigned grpcd_call_left_ms(const struct grpcd_call *call, unsigned most);

/* --- what came ------------------------------------------------------------ */

/* The first message, which is here; it is looked at and not taken.  NULL: the
 * client sent none. */
const char *grpcd_call_first(struct grpcd_call *call, size_t *ret_size);
/* The next message, the first one to begin with: 1; 0: there is none any more;
 * -ECANCELED: the call is cancelled.  Blocks when it is not there yet, but on
 * the server's thread: -EAGAIN. */
int grpcd_call_next(struct grpcd_call *call, const char **ret_message,
                    size_t *ret_size);

/* --- the answer ------------------------------------------------------------ */

/* A header of the reply, before the first message; copied.  For the trailers
 * with `last`. */
void grpcd_call_header(struct grpcd_call *call, const char *name,
                       const char *value, bool last);
/* One message; copied.  0; -ECANCELED: the client will not have it;
 * -EMSGSIZE: over message_max.  Blocks while more than GRPCD_QUEUE_MAX wait
 * for the client, but on the server's thread: -EAGAIN. */
int grpcd_call_send(struct grpcd_call *call, const void *message, size_t size);
/* The end; `text` (NULL: "") may have any bytes, it is percent-encoded.  Never
 * blocks. */
void grpcd_call_finish(struct grpcd_call *call, int code, const char *text);
/* A unary answer: the message, then OK. */
void grpcd_call_answer(struct grpcd_call *call, const void *message,
                       size_t size);
/* The same for what a function of ours said: -errno becomes the code that
 * fits (-EINVAL INVALID_ARGUMENT, -ENOENT NOT_FOUND, -EEXIST ALREADY_EXISTS,
 * -ETIMEDOUT DEADLINE_EXCEEDED, -ECANCELED CANCELLED, -ECONNREFUSED and the
 * like UNAVAILABLE, -EACCES and -EPERM PERMISSION_DENIED, -ENOSPC, -EMSGSIZE
 * and -ENOMEM RESOURCE_EXHAUSTED, -ENOTSUP UNIMPLEMENTED, others UNKNOWN). */
void grpcd_call_fail(struct grpcd_call *call, const struct error *err);

/* Go on with it on a worker, `how` GRPCD_BRIEF or GRPCD_LONG. */
void grpcd_call_work(struct grpcd_call *call, enum grpcd_how how,
                     grpcd_handler_f *handle, void *ctx);

/* --- cancellation ----------------------------------------------------------- */

/* 0: somebody waits for the answer.  Else why nobody does: GRPC_CANCELLED (the
 * client has reset the call, or gone), GRPC_DEADLINE_EXCEEDED, GRPC_UNAVAILABLE
 * (the server stops). */
int grpcd_call_cancelled(const struct grpcd_call *call);
/* Becomes readable, and stays so, when it is cancelled.  The call's own, to be
 * polled alone; -errno. */
int grpcd_call_cancel_fd(struct grpcd_call *call);
/* `cancel` is called when it is cancelled, once, on the server's thread; or
 * here, when it is already.  NULL takes it back: after that, and after the
 * call was given up, it is not running and never will.  It must not block, and
 * take no lock that is held by anybody who calls one of the functions of this
 * header.  It may give up the call. */
typedef void grpcd_cancel_f(void *ctx);
void grpcd_call_on_cancel(struct grpcd_call *call, grpcd_cancel_f *cancel,
                          void *ctx);

#endif
