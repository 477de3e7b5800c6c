/* streamrig - a relay of streams, a runtime's server behind it, and clients of
 * both, for tests of the relay. */
#ifndef BIGA_TESTS_LIB_HTTP_STREAMRIG_H
#define BIGA_TESTS_LIB_HTTP_STREAMRIG_H

#include "router/stream/stream_relay.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/streamserver.h"

#define RIG_SPDY                               \
    "Connection: Upgrade\r\nUpgrade: SPDY/3.1" \
    "\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
#define RIG_WS                                                         \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: " \
    "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"        \
    "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"

struct stream_rig {
    struct stream_relay *relay;
    struct stream_server *server; /* NULL: none was started */
    bool tls;                     /* of the server; below, what it needs */
    char *dir, *ca, *other_ca, *cert, *key, *my_cert, *my_key;
    struct cert *authority;
    struct stream_plan_ask open; /* for the next stream; may be changed */
    char url[128];               /* of the server, in `open` */
};

/* With times that only end what hangs. */
extern const struct stream_relay_config stream_rig_patient;

/* NULL: as the relay has it by default.  All abort when something fails that
 * is not what is tested. */
void stream_rig_start(struct stream_rig *rig,
                      const struct stream_relay_config *config);
/* Certificate and key of the server are of `spec`, NULL: good ones; `manner`
 * and `answer` as the server has them. */
void stream_rig_serve(struct stream_rig *rig, bool tls,
                      enum stream_server_manner manner, const char *answer,
                      const struct cert_spec *spec);
/* The relay first, so that the server's connections end. */
void stream_rig_stop(struct stream_rig *rig);

/* A new URL of ours. */
void stream_rig_url(struct stream_rig *rig, char ret_url[STREAM_OWN_URL_MAX]);
/* A connection on which a request with these fields was sent to `url`. */
int stream_rig_ask(const char *url, const char *fields);
/* The same for a new URL; the answer is read. */
int stream_rig_client(struct stream_rig *rig, const char *fields,
                      struct raw_reply *ret_reply);
uint16_t stream_rig_port(const char *url);

/* As many bytes; false: the connection ended. */
bool stream_rig_read(int fd, void *ret_data, size_t size);
/* All until the end, appended. */
void stream_rig_read_all(int fd, struct str *out);
/* Wait until the relay's state is so; for what has no other event. */
typedef bool stream_rig_state_f(const struct stream_relay_state *state);
void stream_rig_until(struct stream_rig *rig, stream_rig_state_f *good);

#endif
