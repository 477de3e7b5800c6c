/* relayrig - a relay of streams behind two listeners, a node that comes for
 * them as it is told, and clients; plain or over TLS.  Everything else that an
 * extender has is left out. */
#ifndef BIGA_TESTS_LIB_SIM_RELAYRIG_H
#define BIGA_TESTS_LIB_SIM_RELAYRIG_H

#include <stdbool.h>

#include "extender/relay/relay.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/http/rawclient.h"

struct relay_rig {
    struct relay *relay;
    struct metrics *metrics;
    struct httpd *read, *publish;
    struct h2_server *certs;
    bool tls;
    int64_t silent_since_ms; /* of every pod's node; -1: none is away */
};
/* The pods are all there are, of namespace "ns", on the node that is named as
 * they are up to a dash; a query "client=N" is no parameter of theirs, but who
 * asks comes in a header "X-Client". */
void relay_rig_start(struct relay_rig *rig, bool tls);
void relay_rig_stop(struct relay_rig *rig);

/* One connection of either side. */
struct relay_peer {
    struct tls_client tls; /* its session is NULL: plain */
    int fd;
};
void relay_peer_close(struct relay_peer *p);
/* Say that nothing follows, and close. */
void relay_peer_end(struct relay_peer *p);
bool relay_peer_send(struct relay_peer *p, const void *data, size_t size);
/* So many bytes; false: it has ended. */
bool relay_peer_take(struct relay_peer *p, void *ret_data, size_t size);
/* Read the head of an answer; its status, 0: it has ended.  What follows is
 * left. */
int relay_peer_head(struct relay_peer *p, struct str *ret_head);
/* All until it ends, appended; without the chunks' sizes when `chunked`.
 * False: it was cut off within chunks. */
bool relay_peer_rest(struct relay_peer *p, bool chunked, struct str *out);

/* Ask on a connection of its own: its answer is to be read. */
struct relay_peer relay_rig_ask(struct relay_rig *rig, const char *pod,
                                const char *what, const char *headers);
#define RELAY_WS                                      \
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"   \
    "Sec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
    "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n"

/* The node asks what is wanted, for `wait_s`; the body is replaced.  True: it
 * is told of a stream, whose id is the first. */
bool relay_rig_feed(struct relay_rig *rig, const char *node, int wait_s,
                    struct str *body, char ret_id[65]);
/* The node comes for it: the status of the answer. */
int relay_rig_come(struct relay_rig *rig, const char *node, const char *id,
                   struct relay_peer *ret_peer);
/* Both, and it says that all is well. */
void relay_rig_join(struct relay_rig *rig, const char *node,
                    struct relay_peer *ret_peer);
/* Wait until so many streams are there. */
void relay_rig_until(struct relay_rig *rig, int64_t n);

#endif
