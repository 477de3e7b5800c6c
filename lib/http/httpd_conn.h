/* httpd_conn - the connections of one listener, and what each waits for; those
 * that take too long are closed. */
#ifndef BIGA_LIB_HTTP_HTTPD_CONN_H
#define BIGA_LIB_HTTP_HTTPD_CONN_H

#include <gnutls/abstract.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/http/httpd.h"
#include "lib/http/httpd_streams.h"
#include "lib/http/tls_private.h"

/* What a connection is waiting for; only the first three can be cut for being
 * slow to send, only CONN_REPLYING for being slow to read. */
enum conn_state {
    CONN_SHAKING,   /* the end of the TLS handshake */
    CONN_IDLE,      /* the first byte of a request, or its request line */
    CONN_ARRIVING,  /* the rest of a request */
    CONN_HANDLING,  /* us */
    CONN_REPLYING,  /* the client to take the reply */
    CONN_STREAMING, /* more of a reply that goes on */
};

struct conn {
    struct conn *prev, *next; /* under conns.lock */
    int fd;
    atomic_int state;
    _Atomic int64_t since_ms; /* when it entered the state */
    atomic_uint n_requests;   /* that were finished; a handshake is one */
    bool cut;                 /* under conns.lock */
    bool h2;                  /* its loop sees to its deadlines */
    atomic_bool doubtful;     /* asked for a certificate, it showed no good
                               * one yet: the first to be closed for others */

    bool local; /* by a unix socket; then: */
    uid_t uid;  /* of the client; -1 not known */

    /* HTTP/1.1: what it holds, until it is answered or the connection is
     * closed; of the connection's thread */
    struct httpd_request *rq;
    /* it was handed over (httpd_upgrade.h); ends with it, after its session */
    struct httpd_upgraded *upgraded;

    /* with TLS; of the connection's thread */
    struct tls_set *set;
    gnutls_session_t session;
    struct tls_verdict *verdict; /* NULL: not judged yet */

    /* the reaper's memory of it, under conns.lock */
    unsigned seen_requests;
    uint64_t seen_bytes;
    int64_t arriving_ms; /* when the present request was first seen; 0 */
};

static inline bool conn_shaking(const struct conn *conn)
{
    return atomic_load(&conn->state) == CONN_SHAKING;
}

struct conns {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t gone; /* the last connection, while they are drained */
    struct conn *first;
    size_t n, n_cut, max;
    unsigned request_ms, reply_ms;
    bool stopping, draining;
    struct streams *streams; /* looked after by the same thread */
    pthread_t reaper;
};

int conns_start(struct conns *c, const struct httpd_config *config,
                struct streams *streams, struct error *err);
/* End all connections, and those that still come; wait until they are gone,
 * 5 s at most. */
void conns_drain(struct conns *c);
/* All connections must be gone. */
void conns_stop(struct conns *c);

/* A connection came (on any thread); when there are too many the one that
 * can best be spared is shut down. */
struct conn *conns_add(struct conns *c, int fd);
/* The same for one that HTTP/2's loop accepted, and whose handshake is yet to
 * come. */
struct conn *conns_add_h2(struct conns *c, int fd, bool doubtful);
/* Are there so many that the next one has to wait for another's end? */
bool conns_full(struct conns *c, size_t spare);
/* Bytes that came and that nobody has read: then a delay is ours. */
bool conn_has_unread(int fd);
/* The peer sends no more. */
bool conn_hung_up(int fd);
/* It is about to be closed. */
void conns_remove(struct conns *c, struct conn *conn);
void conn_enter(struct conn *conn, enum conn_state state);
/* How many are in a state from CONN_HANDLING on. */
size_t conns_busy(struct conns *c);

/* A connection of an HTTPS listener came, before its handshake; is closed,
 * and its session with it. */
void conn_tls_begin(struct conn *conn, const struct httpd_config *config,
                    gnutls_session_t session);
void conn_tls_end(struct conn *conn);
/* Must clients of this listener show a certificate? */
bool config_asks(const struct httpd_config *config);
/* A connection of a unix socket came. */
void conn_unix_begin(struct conn *conn);

#endif
