/* socket - the actuator for programs on this host: HTTP on a unix socket
 * (mode 0600, root and our own user; lib/http/httpd.h).
 *
 *     GET    /v1/pods                      all pods, as last known
 *     GET    /v1/pods/NS/NAME[/state]      one
 *     PUT    /v1/pods/NS/NAME              create (item.h), begins unless held
 *     POST   /v1/pods/NS/NAME/start        begin one that is held
 *     POST   /v1/pods/NS/NAME/stop?grace=S
 *     DELETE /v1/pods/NS/NAME?grace=S      end it, and forget it once it is
 *                                          gone: 202 until then, 204
 *     GET    …/wait?version=V&wait=S       when it has changed since V
 *     GET    …/logs?container=C&attempt=A&offset=N&max=M
 *                   &tailLines=L&sinceSeconds=S&sinceTime=T
 *                   &previous=true&timestamps=true
 *     POST   …/exec                        {"container":"","argv":[…],
 *                                           "timeout":10}
 *     POST   …/stream                      {"container":"","argv":[…],
 *                                           "stdin":false}: where the runtime
 *                                          streams it, of a host pod
 *     GET    /v1/cards
 *     POST   /v1/cards/NAME/drain|undrain
 *     GET    /v1/cards/NAME/objects        what is on the card
 *
 * The listener never waits for a card: what calls one, or writes to the disk,
 * runs on a thread of its own, of which a card may have SOCKET_CALLS_MAX. */
#ifndef BIGA_ADVERTISER_ACT_API_SOCKET_H
#define BIGA_ADVERTISER_ACT_API_SOCKET_H

#include <stdbool.h>

#include "advertiser/act/core/actuator.h"
#include "lib/base/error.h"

enum {
    SOCKET_CALLS_MAX = 4,   /* at a time per place; more get 503 */
    SOCKET_CHANGES_MAX = 8, /* creating, stopping … at a time */
    SOCKET_WAITS_MAX = 64,
    SOCKET_WAIT_S_MAX = 30,
    SOCKET_LOGS_MAX = 1 << 20, /* bytes of one answer; of those that ask for
                                * text/plain ACT_LOG_MAX, but not of more
                                * than so many at a time: */
    SOCKET_WIDE_MAX = 2,       /* each takes 16 MiB meanwhile */
    SOCKET_ARGS_MAX = 256,     /* of one exec */
    SOCKET_EXEC_S_MAX = 300,
};
/* Whose pods those are that the socket wants. */
#define SOCKET_OWNER "socket"

struct act_socket;
/* `path` is absolute; what is left there by a dead process is replaced. */
int act_socket_start(struct actuator *a, const char *path,
                     struct act_socket **ret_socket, struct error *err);
/* Everybody who waits is answered 503.  False when calls are still under way
 * after a second: they go on using the actuator, and the process is to end
 * without destroying it. NULL allowed. */
bool act_socket_stop(struct act_socket *s);

#endif
