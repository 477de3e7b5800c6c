/* join - one stream of exec, attach or port-forward: Kubernetes' WebSocket
 * protocol on the client's side, as a server speaks it behind the handshake;
 * SPDY/3.1 on the runtime's, as a client speaks it behind the upgrade.  Pure.
 *
 * Over SPDY every runtime can be told that the input has ended, which those of
 * containerd before 2 cannot over a WebSocket. */
#ifndef BIGA_ADVERTISER_ACT_STREAM_JOIN_H
#define BIGA_ADVERTISER_ACT_STREAM_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/stream/spdy_frame.h"
#include "lib/stream/ws_input.h"

enum {
    JOIN_PORTS_MAX = 16, /* of one port-forward */
    JOIN_TEXT_MAX = 256, /* bytes of a last word */
};

struct join_config {
    const int32_t *ports;   /* of a port-forward; */
    size_t n_ports;         /* 0: it is none */
    bool in, out, err, tty; /* of the others: which streams there are */
};

struct join_stream {
    uint32_t id;  /* to the runtime; 0: there is none */
    bool replied; /* it was taken */
    bool shut;    /* we send no more there */
    bool ended;   /* nothing more comes from there */
};
struct join {
    bool forward;
    size_t n_streams; /* as channels count them */
    struct join_stream streams[2 * JOIN_PORTS_MAX];
    struct spdy_writer writer;
    struct spdy_reader runtime;
    struct ws_input client;
    int channel;     /* of the message that is under way; -1: not known yet */
    unsigned n_open; /* streams that the runtime has not taken yet */
    bool told;       /* the client knows how it ended */
    bool over;       /* nothing more is to be read from either side */
};

/* The protocol of the runtime's upgrade for it. */
const char *join_protocol(const struct join_config *config);
/* Begins: what both sides get first is appended. */
void join_init(struct join *j, const struct join_config *config,
               struct str *to_runtime, struct str *to_client);
/* Before the runtime has taken all streams, nothing of the client's is read. */
bool join_reads_client(const struct join *j);
/* All of `data` is taken, and becomes less than twice as much for either side,
 * and WS_CONTROL_MAX more where a ping ends that began before it; -EPROTO. */
int join_from_runtime(struct join *j, const char *data, size_t size,
                      struct str *to_runtime, struct str *to_client,
                      struct error *err);
/* The same; unmasks `data` in place.  -ECONNRESET: the client closes. */
int join_from_client(struct join *j, char *data, size_t size,
                     struct str *to_runtime, struct str *to_client,
                     struct error *err);
/* The end, once: what ended is told to the client as the protocol has it, unless
 * the runtime has said it; then its connection is closed. */
void join_end(struct join *j, const char *why, struct str *to_client);

#endif
