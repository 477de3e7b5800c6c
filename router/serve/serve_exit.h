/* serve_exit - containers that have ended, of which the log's end and the
 * termination message are not here yet: until then they are told as running.
 * Any thread; what blocks does so on threads of its own. */
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
/* False: it is to be told as running still; it is seen to, once. */
bool exits_seen(struct exits *e, struct far *far, const char *id);
/* One that has ended: waits until it is told so, or clock_ms() is `due_ms`. */
void exits_await(struct exits *e, struct far *far, const char *id,
                 int64_t due_ms);
void exits_forget(struct exits *e, const char *id);
/* Has it ended, as an item of a list or a reply of its status says?  The same
 * of one that runs. */
bool exits_item_has_ended(struct proto_bytes item);
bool exits_has_ended(struct proto_bytes reply);
int exits_hide_item(struct proto_bytes item, struct str *out);
int exits_hide(struct proto_bytes reply, struct str *out);

#endif
