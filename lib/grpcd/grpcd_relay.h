/* grpcd_relay - calls of a grpcd's clients passed on to a server behind
 * another unix socket, frame by frame, on the server's thread.
 *
 * All kinds of calls and methods, known or not: metadata and messages go
 * there, headers, messages and trailers come back as they are, in the pieces
 * in which they came.  What is not passed on: `:authority` ("localhost" goes
 * there), content-length; grpc-timeout says what is left of the deadline.
 * RST_STREAM goes either way with its code, so that a call that the other
 * server has refused is repeated by its client.  A deadline is kept here too.
 * Neither side is read faster than the other one reads: GRPCD_WINDOW bytes of a
 * call are held per direction, and a call that stands still holds up no other.
 *
 * One connection is shared by all calls.  It is made for the first one, and
 * made anew by the next call after it has ended, or GOAWAY has come; calls that
 * are under way finish on the old one.  While nobody listens there, or when it
 * ends with calls under way, these get UNAVAILABLE with a text that names the
 * path, and says whether the call may have been carried out. */
#ifndef BIGA_LIB_GRPCD_GRPCD_RELAY_H
#define BIGA_LIB_GRPCD_GRPCD_RELAY_H

#include "lib/grpcd/grpcd_call.h"

/* Before grpcd_start(); the server frees it.  `name` says who is there, to
 * people: "the host's runtime".  Both are copied.  -EINVAL: no path for a
 * socket.  Nothing is connected yet. */
int grpcd_relay_create(struct grpcd *s, const char *path, const char *name,
                       struct grpcd_relay **ret_relay, struct error *err);
/* Is there a connection?  Any thread. */
bool grpcd_relay_stands(const struct grpcd_relay *relay);

/* Gives the call to the relay, with what was looked at (grpcd_call_first) but
 * not taken (grpcd_call_next): that is sent as it came.  Any thread. */
void grpcd_relay_pass(struct grpcd_call *call, struct grpcd_relay *relay);

/* What to change on the way; copied. */
struct grpcd_edit {
    /* In place of the client's first message (a unary call has no other);
     * copied. NULL: as it came */
    const void *request;
    size_t size;
    /* Of each message of the reply, which is then held as a whole: add what the
     * client is to get to `ret_message`, which is empty.  0; or -errno, and
     * the call ends with the code for it (grpcd_call_fail).  On the server's
     * thread: must not block.  NULL: as they come */
    int (*reply)(void *ctx, const char *message, size_t size,
                 struct str *ret_message, struct error *err);
    /* Exactly once, after the last of these, on the server's thread; NULL:
     * nothing to free */
    void (*done)(void *ctx);
    void *ctx;
};
void grpcd_relay_edit(struct grpcd_call *call, struct grpcd_relay *relay,
                      const struct grpcd_edit *edit);

#endif
