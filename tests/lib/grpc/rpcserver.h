/* rpcserver - a grpcd in a folder of its own, with methods for tests:
 *   /t.T/Echo    the message comes back; header "x-echo" too, as header and
 *                trailer            (on the server's thread)
 *   /t.T/Work    the same           (brief worker)
 *   /t.T/Long    the same           (long worker)
 *   /t.T/Wait    waits until it is cancelled, or rpc_server_release()
 *                                   (long worker)
 *   /t.T/Keep    is kept until one of these, without a thread
 *   /t.T/Count   "N SIZE": N messages of SIZE bytes     (long worker)
 *   /t.T/Sum     of the sizes of all messages           (long worker)
 *   /t.T/Fail    the code that the message says, with the text behind it
 *   /r.R/...     relayed;  /r.Peek/...  relayed after a look at the message
 *   /r.Edit/...  relayed, with "<" before the request and ">" after replies
 */
#ifndef BIGA_TESTS_LIB_GRPC_RPCSERVER_H
#define BIGA_TESTS_LIB_GRPC_RPCSERVER_H

#include <stdatomic.h>

#include "lib/grpcd/grpcd.h"
#include "lib/grpcd/grpcd_relay.h"

enum { RPC_KEPT_MAX = 64 };

struct rpc_server {
    char *dir; /* NULL: another's */
    char *path;
    struct grpcd *grpcd;
    struct grpcd_relay *relay;
    atomic_uint n_ended, n_begun, n_cancelled, n_edits_done;
    atomic_int last_code, last_cancelled;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool released;
    struct grpcd_call *kept[RPC_KEPT_MAX];
    size_t n_kept;
};

/* `path` NULL: in a folder of its own; `upstream` NULL: nothing is relayed.
 * `config` may be NULL; only its caps and take_over are heeded. */
struct rpc_server *rpc_server_create(const char *path, const char *upstream,
                                     const struct grpcd_config *config);
void rpc_server_destroy(struct rpc_server *s);
void rpc_server_release(struct rpc_server *s);
/* Until that many were begun, cancelled, or ended. */
void rpc_server_await(const atomic_uint *what, unsigned n);

#endif
