/* serve_exit - containers that have ended: until the log's end and termination
 * message are here they are told as running.  Any thread; only exits_await()
 * blocks. */
#ifndef BIGA_ROUTER_SERVE_SERVE_EXIT_H
#define BIGA_ROUTER_SERVE_SERVE_EXIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/proto.h"
#include "lib/base/str.h"

struct exits;
struct far;
struct serve;

struct exits *exits_create(struct serve *s);
void exits_destroy(struct exits *e); /* waits; NULL allowed */
/* As what one that has ended, with that reply of its status, is told:
 * CRI_EXITED; CRI_RUNNING still, and it is seen to, once; CRI_CREATED when it
 * could not be started and nobody was told so: its start was broken off. */
uint32_t exits_state(struct exits *e, struct far *far, const char *id,
                     struct proto_bytes status);
/* The same: waits until it is told so, or clock_ms() is `due_ms`. */
void exits_await(struct exits *e, struct far *far, const char *id,
                 struct proto_bytes status, int64_t due_ms);
/* It could not be started, as the remote says: it never ran, and is told as
 * ended.  The view has it so. */
void exits_failed(struct exits *e, struct far *far, const char *id);
void exits_forget(struct exits *e, const char *id);
/* Has it ended, as an item of a list or a reply of its status says? */
bool exits_item_has_ended(struct proto_bytes item);
bool exits_has_ended(struct proto_bytes reply);
/* The item in another state; the reply as exits_state() says, in place. */
int exits_hide_item(struct proto_bytes item, uint32_t state, struct str *out);
int exits_show(struct exits *e, struct far *far, const char *id,
               struct str *status);

#endif
