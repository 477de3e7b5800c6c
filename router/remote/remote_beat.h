/* remote_beat - one thread that asks all remotes whether they are there, and
 * whether anything is other than it was, all in one go: while nothing happens,
 * their own threads sleep.
 *
 * It asks those that are ready, on the connection that stands (mutual TLS).  A
 * remote's own thread does the rest: it connects, lists, and looks after one
 * that does not answer; also when this one does not ask in time. */
#ifndef BIGA_ROUTER_REMOTE_REMOTE_BEAT_H
#define BIGA_ROUTER_REMOTE_REMOTE_BEAT_H

#include "lib/base/error.h"

struct remote_beat;
/* -EAGAIN: there is no thread, or no descriptor, to be had. */
int remote_beat_create(struct remote_beat **ret_beat, struct error *err);
/* No remote has it any more.  NULL allowed. */
void remote_beat_destroy(struct remote_beat *b);

#endif
