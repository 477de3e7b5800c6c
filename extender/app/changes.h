/* changes - tells whoever listens that something has changed, as server-sent
 * events: GET /v1/changes.
 *
 * One thread looks a few times a second, while anybody listens: a version is
 * three numbers to read, and whoever changes something never waits for a
 * client.  A client that does not take what it is told is let go; it asks
 * again. */
#ifndef BIGA_EXTENDER_APP_CHANGES_H
#define BIGA_EXTENDER_APP_CHANGES_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/http/httpd.h"

enum {
    CHANGES_LOOK_MS = 250,    /* between two events of a client, at least */
    CHANGES_ALIVE_MS = 15000, /* a comment goes out in silence this long */
};

struct changes;
struct followers;
/* `version` is called on the thread, and by handlers; clients are counted among
 * `followers`, which outlive it (NULL: FOLLOWERS_MAX of them). */
int changes_start(uint64_t (*version)(void *ctx), void *ctx,
                  struct followers *followers, struct changes **ret_changes,
                  struct error *err);
/* Ends all replies: before the listeners are stopped. */
void changes_quiesce(struct changes *c); /* NULL allowed */
void changes_stop(struct changes *c);    /* NULL allowed */

/* Answer with a stream that begins with the version as it is now, unless the
 * client has seen it (Last-Event-ID).  `client`: of followers.h. */
void changes_follow(struct changes *c, struct httpd_request *rq,
                    uint64_t client);

#endif
