/* stream_conn - one connection, plain or TLS, that never keeps its thread
 * waiting.
 *
 * For epoll with EPOLLET: what happens is told once, and remembered here until
 * the connection says that there is no more (-EAGAIN).  One with TLS must stay
 * where it is. */
#ifndef BIGA_LIB_STREAM_STREAM_CONN_H
#define BIGA_LIB_STREAM_STREAM_CONN_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/base/error.h"
#include "lib/stream/stream_creds.h"

struct stream_conn {
    int fd;                   /* -1: none */
    gnutls_session_t session; /* NULL: plain */
    bool readable, writable;
    bool hung_up;     /* the peer sends no more, though bytes may wait */
    bool told;        /* something has happened since that was set to false */
    bool waits;       /* the kernel had TLS wait */
    bool held;        /* TLS has taken bytes that are not sent yet */
    const char *last; /* what TLS said of the last failure, NULL nothing */
};
#define STREAM_CONN_NONE ((struct stream_conn){.fd = -1})

/* `fd` does not block, and is owned from then on. */
void stream_conn_init(struct stream_conn *c, int fd);
void stream_conn_fini(struct stream_conn *c); /* closes; one of none, too */
/* Have TCP notice a peer that has vanished, and keep no bytes back. */
void stream_conn_probe(int fd);
/* One whose owner has begun it, and will end it: with a TLS session (NULL:
 * plain) whose handshake is done.  Not to be finished. */
void stream_conn_adopt(struct stream_conn *c, int fd, gnutls_session_t session);
/* What epoll told. */
void stream_conn_happened(struct stream_conn *c, uint32_t events);

/* Begin to connect.  -errno: no socket. */
int stream_conn_dial(struct stream_conn *c, const struct sockaddr_storage *to);
/* 0: connected; -EAGAIN; else -errno, it failed. */
int stream_conn_dialled(const struct stream_conn *c);
/* TLS from now on. */
int stream_conn_tls(struct stream_conn *c, const struct stream_creds *creds,
                    struct error *err);
/* The handshake: 0, -EAGAIN, -EKEYREJECTED a certificate was refused by either
 * side, else -EPROTO. */
int stream_conn_shake(struct stream_conn *c, struct error *err);

/* Bytes, 0 at the end, -EAGAIN, or -errno: it is lost. */
ssize_t stream_conn_read(struct stream_conn *c, void *data, size_t size);
/* Bytes, -EAGAIN, or -errno.  After -EAGAIN the next call must begin with the
 * same bytes. */
ssize_t stream_conn_write(struct stream_conn *c, const void *data, size_t size);
/* We send no more: 0, -EAGAIN, or -errno. */
int stream_conn_end(struct stream_conn *c);
/* The same, and the other side is to see that this is not all: TLS ends without
 * a goodbye, a plain connection is reset when it is closed.  -EAGAIN: something
 * that was written has not arrived there, and would be lost; nobody tells when
 * it has. */
int stream_conn_break(struct stream_conn *c);
/* When it is closed, what has not arrived is taken back, and the other side sees
 * that. */
void stream_conn_reset(struct stream_conn *c);

#endif
