/* followers - how many listen to what goes on (pages that stay fresh, lists and
 * events that are watched), in all and of each client: nobody's take the room
 * of others, nor that of logs and commands.  Any thread. */
#ifndef BIGA_EXTENDER_APP_FOLLOWERS_H
#define BIGA_EXTENDER_APP_FOLLOWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/http/httpd.h"

enum {
    FOLLOWERS_MAX = 256,       /* in all, unless there is room for fewer */
    FOLLOWERS_CLIENT_PART = 4, /* of that, for one client: a fourth */
};

struct followers;
/* At most `max`, and FOLLOWERS_MAX, at once. */
struct followers *followers_create(size_t max);
void followers_destroy(struct followers *f); /* NULL allowed; all have left */

/* One more of that client (access_follower()).  False: the request was failed,
 * with 429 for those of the client, or 503 for all.  `f` NULL: all may. */
bool followers_enter(struct followers *f, struct httpd_request *rq,
                     uint64_t client);
/* It ends. */
void followers_leave(struct followers *f, uint64_t client);

#endif
