/* pod_stream - a WebSocket to a pod, by way of the extender's read listener:
 * messages of channels, as Kubernetes' remotecommand and port-forward have
 * them.  schema/openapi.yaml has the paths. */
#ifndef BIGA_CLI_BASE_POD_STREAM_H
#define BIGA_CLI_BASE_POD_STREAM_H

#include <poll.h>
#include <stdbool.h>

#include "cli/base/cli.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    /* bytes to be sent, above which nothing more should be: somebody reads
     * slowly */
    POD_STREAM_UNSENT_MAX = 256 << 10,
};

struct pod_stream;

/* Connect, and ask for `path` with that subprotocol.  Blocks until the pod's
 * node has agreed, or for 30 s.  An exit code, after saying on stderr what is
 * wrong.  `*ret_status` (NULL allowed) is that of the server's answer; 0: none
 * came. */
int pod_stream_open(struct cli *c, const char *path, const char *protocol,
                    struct pod_stream **ret_stream, long *ret_status);
void pod_stream_close(struct pod_stream *s); /* NULL allowed */
DEFINE_CLEANUP(pod_stream, struct pod_stream *, pod_stream_close)

/* What to wait for.  It may have to be turned at once: then `*ret_now`. */
struct pollfd pod_stream_poll(const struct pod_stream *s, bool *ret_now);

/* What is given of a message: its channel, and the rest.  Less than 0 ends the
 * turn and is returned. */
typedef int pod_stream_take_f(void *ctx, int channel, const char *data,
                              size_t size, struct error *err);
/* After `revents` of poll: receive and send what can be.  0; -EPIPE: the other
 * side has ended it; or -errno. */
int pod_stream_turn(struct pod_stream *s, short revents,
                    pod_stream_take_f *take, void *ctx, struct error *err);

/* Send a message, of any size; it waits until it can go. */
void pod_stream_send(struct pod_stream *s, int channel, const char *data,
                     size_t size);
/* Bytes that have not gone yet. */
size_t pod_stream_unsent(const struct pod_stream *s);

#endif
