/* volume_watch - which of the kubelet's folders and files have changed, told by
 * the kernel (inotify), a while after the last of the changes that come
 * together (volume_quiet.h).  One thread waits; any thread adds and removes.
 *
 * Where the kernel tells nothing (no watches are left, its queue was too
 * short), everything counts as changed every VOLUME_WATCH_POLL_MS, or at
 * once. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_WATCH_H
#define BIGA_ROUTER_VOLUME_VOLUME_WATCH_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum { VOLUME_WATCH_POLL_MS = 1000 };

struct volume_watch;
/* Without inotify (all its instances are taken) it polls; that is logged. */
struct volume_watch *volume_watch_create(void);
void volume_watch_destroy(struct volume_watch *w);
DEFINE_CLEANUP(volume_watch, struct volume_watch *, volume_watch_destroy)

/* Watch a folder for what is in it, or a file whether it is written in place or
 * replaced.  Returns a number above 0, which is not given again.  What is not
 * there (yet) is polled.  Does not block. */
uint64_t volume_watch_add(struct volume_watch *w, const char *path);
void volume_watch_remove(struct volume_watch *w, uint64_t id);

/* Wait until something has changed and is quiet, until clock_ms() is `due_ms`,
 * or until it is woken; the numbers of what has changed, at most `max`, and how
 * many; the rest is told by the next call. */
size_t volume_watch_wait(struct volume_watch *w, int64_t due_ms,
                         uint64_t *ret_ids, size_t max);
void volume_watch_wake(struct volume_watch *w);

#endif
