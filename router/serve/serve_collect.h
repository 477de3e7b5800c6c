/* serve_collect - images on remotes that nobody uses go: by age, and when a
 * disk gets full (router/image/image_shelf.h).  A thread looks at each remote
 * every COLLECT_MS; remotes that do not answer are left out. */
#ifndef BIGA_ROUTER_SERVE_SERVE_COLLECT_H
#define BIGA_ROUTER_SERVE_SERVE_COLLECT_H

#include <stddef.h>
#include <stdint.h>

enum {
    COLLECT_MS = 300000,     /* as the kubelet */
    COLLECT_CALL_MS = 10000, /* of one call; of a removal: */
    COLLECT_REMOVE_MS = 60000,
    COLLECT_AT_ONCE = 64, /* images of one remote in one turn */
};

struct collector;
struct far;
struct serve;

/* NULL: there is no thread to be had; nothing is collected. */
struct collector *collector_start(struct serve *s);
void collector_stop(struct collector *c); /* waits; NULL allowed */

/* Somebody found the disk of that remote full: collects there now, and returns
 * how many images went.  Blocks until clock_ms() is `due_ms` at most, and for
 * the call that is under way then.  NULL: 0. */
size_t collector_make_room(struct collector *c, struct far *far,
                           int64_t due_ms);

#endif
