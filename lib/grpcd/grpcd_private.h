/* grpcd_private - what the files of grpcd share.
 *
 * grpcd.c starts, stops and turns; grpcd_accept.c takes connections,
 * grpcd_link.c moves the bytes of one, grpcd_session.c has nghttp2's callbacks
 * of those to clients, grpcd_relay.c those to other servers.  grpcd_stream.c is
 * a call on the server's thread, grpcd_call.c the same for its handler,
 * grpcd_pass.c a call that is relayed.  grpcd_work.c has the workers.
 * But for these two all of it is of the server's thread. */
#ifndef BIGA_LIB_GRPCD_GRPCD_PRIVATE_H
#define BIGA_LIB_GRPCD_GRPCD_PRIVATE_H

#include "lib/grpcd/grpcd_state.h"

/* --- grpcd.c ----------------------------------------------------------------- */

bool grpcd_is_here(const struct grpcd *s); /* Is this the server's thread? */
void grpcd_wake(struct grpcd *s);
void grpcd_due(struct grpcd *s, int64_t ms); /* look at deadlines then */

/* --- grpcd_accept.c ---------------------------------------------------------- */

int grpcd_listener_watch(struct grpcd *s, int what, uint32_t events);
void grpcd_accept(struct grpcd *s);
void grpcd_accept_tick(struct grpcd *s);

/* --- grpcd_link.c ------------------------------------------------------------ */

struct grpcd_link *grpcd_link_create(struct grpcd *s, struct grpcd_relay *relay,
                                     int fd);
void grpcd_link_event(struct grpcd_link *l, uint32_t events);
void grpcd_link_dirty(struct grpcd_link *l);
/* Sends what there is; frees one that has ended. */
void grpcd_link_flush(struct grpcd_link *l);
void grpcd_link_tick(struct grpcd_link *l, int64_t now);
void grpcd_link_leave(struct grpcd_link *l); /* GOAWAY */
/* The calls on it are told. */
void grpcd_link_end(struct grpcd_link *l);
void grpcd_link_pay(struct grpcd_link *l, unsigned cost);

/* --- legs and queues (grpcd_leg.c) ------------------------------------------- */

void grpcd_queue_add(struct grpcd *s, struct grpcd_queue *q, const void *data,
                     size_t size);
void grpcd_queue_take(struct grpcd *s, struct grpcd_queue *q, void *ret_data,
                      size_t size);
size_t grpcd_queue_left(const struct grpcd_queue *q);
/* What a data provider of nghttp2 returns for the bytes that leave by `leg`;
 * `*ret_end`: they were the last. */
ssize_t grpcd_leg_read(struct grpcd *s, struct grpcd_leg *leg, uint8_t *buffer,
                       size_t size, bool *ret_end);
void grpcd_queue_drop(struct grpcd *s, struct grpcd_queue *q);
struct grpcd_leg *grpcd_leg_of(struct grpcd_call *c,
                               const struct grpcd_link *l);
void grpcd_leg_attach(struct grpcd_call *c, struct grpcd_link *l, int32_t id);
void grpcd_leg_detach(struct grpcd_call *c, struct grpcd_leg *leg);
/* There is more in `out`, or its end. */
void grpcd_leg_resume(struct grpcd_leg *leg);
/* These bytes of what came need no longer be held. */
void grpcd_leg_consume(struct grpcd_leg *leg, size_t size);
void grpcd_leg_reset(struct grpcd_leg *leg, uint32_t code);
/* All of `fields` but those that `skip` tells, in memory of the caller's. */
nghttp2_nv *grpcd_nva(const struct h2_fields *fields,
                      bool (*skip)(const char *name), size_t spare,
                      size_t *ret_n);

/* --- grpcd_session.c ---------------------------------------------------------- */

nghttp2_session_callbacks *grpcd_down_callbacks(void);
int grpcd_session_create(struct grpcd_link *l);

/* --- grpcd_stream.c ----------------------------------------------------------- */

void grpcd_stream_create(struct grpcd_link *l, int32_t id);
void grpcd_stream_head(struct grpcd_call *c); /* all headers are there */
void grpcd_stream_data(struct grpcd_call *c, const void *data, size_t size);
void grpcd_stream_ended(struct grpcd_call *c); /* by END_STREAM */
void grpcd_stream_closed(struct grpcd_call *c, uint32_t code);
void grpcd_stream_posted(
    struct grpcd_call *c); /* its handler wants something */
void grpcd_stream_cancel(struct grpcd_call *c, int code);
void grpcd_stream_tick(struct grpcd_call *c, int64_t now);
/* Frees it when nobody needs it any more. */
void grpcd_stream_release(struct grpcd_call *c);

/* --- grpcd_reply.c ------------------------------------------------------------ */

#define GRPCD_TYPE "application/grpc"
/* What comes first says how the call ended. */
void grpcd_reply_note(struct grpcd_call *c, int code);
/* Headers for the client, and all there is with `end`. */
void grpcd_reply_submit(struct grpcd_call *c, const struct h2_fields *fields,
                        bool end);
/* The same of a handler's answer, before its first message. */
void grpcd_reply_begin(struct grpcd_call *c);
/* So many bytes are on their way. */
void grpcd_reply_sent(struct grpcd_call *c, size_t size);
/* The status, after all that was said, or alone. */
void grpcd_reply_finish(struct grpcd_call *c, int code, const char *text);
/* The status, now; what still waits for the client is dropped. */
void grpcd_reply_fail(struct grpcd_call *c, int code, const char *text);

/* --- grpcd_call.c -------------------------------------------------------------- */

/* Frees what its handler has of it. */
void grpcd_call_fini(struct grpcd_call *c);
int grpcd_code_of(int error);

/* --- grpcd_pass.c -------------------------------------------------------------- */

nghttp2_session_callbacks *grpcd_up_callbacks(void);
void grpcd_pass_begin(struct grpcd_call *c);
void grpcd_pass_data(struct grpcd_call *c, const void *data, size_t size);
void grpcd_pass_ended(struct grpcd_call *c); /* the client has said all */
void grpcd_pass_sent(struct grpcd_call *c, size_t size); /* to the client */
void grpcd_pass_lost(struct grpcd_call *c); /* its connection there */

/* --- grpcd_relay.c ------------------------------------------------------------- */

struct grpcd_link *grpcd_relay_link(struct grpcd_relay *r, struct error *err);
void grpcd_relay_gone(struct grpcd_link *l);
void grpcd_relay_free(struct grpcd_relay *r);

/* --- grpcd_work.c -------------------------------------------------------------- */

void grpcd_lanes_init(struct grpcd *s);
void grpcd_work(struct grpcd_call *c);  /* its route says where */
void grpcd_lanes_join(struct grpcd *s); /* when no call is left */

#endif
