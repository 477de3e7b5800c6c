/* h2server - a server of gRPC that answers well or as ill as it is told to.
 *
 * It reads with nghttp2 and writes frames by hand, so that it can write any.
 */
#ifndef BIGA_TESTS_LIB_HTTP_H2SERVER_H
#define BIGA_TESTS_LIB_HTTP_H2SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

/* What it does once a request is there, whole. */
enum h2_fault {
    H2_WELL,
    H2_EMPTY,          /* status OK, no message */
    H2_TWO,            /* messages */
    H2_COMPRESSED,     /* by the flag before the message */
    H2_BAD_FLAG,       /* another flag */
    H2_NO_TRAILERS,    /* the stream ends with the message */
    H2_NO_STATUS,      /* trailers without grpc-status */
    H2_BAD_STATUS,     /* grpc-status is no number */
    H2_STATUS_TWICE,   /* 0, then 0 */
    H2_STATUS_ONLY,    /* headers and trailers in one, "OK" */
    H2_HALF,           /* of a message, then status OK */
    H2_HALF_PREFIX,    /* two bytes of it, then status OK */
    H2_PREFIX_2GIB,    /* is announced */
    H2_PREFIX_OVER,    /* 16 MiB and one byte are announced */
    H2_GARBAGE,        /* for a message */
    H2_NOT_GRPC,       /* a page for people, status 200 */
    H2_NOT_FOUND,      /* status 404 of HTTP, and a page */
    H2_CLOSE,          /* before a reply */
    H2_CLOSE_HALF,     /* within a message */
    H2_GOAWAY,         /* instead of a reply */
    H2_GOAWAY_AFTER,   /* a good reply, then it is over */
    H2_GOAWAY_WITH,    /* the same in one write */
    H2_GOAWAY_REFUSED, /* a status alone, and GOAWAY, in one write */
    H2_GOAWAY_HALF,    /* half a message, status OK, GOAWAY, in one write */
    H2_RESET,          /* of the stream before headers */
    H2_RESET_HEADERS,
    H2_RESET_HALF,
    H2_RESET_MESSAGE,
    H2_RESET_AFTER,   /* the trailers */
    H2_FRAME_LONG,    /* a frame beyond what was agreed */
    H2_FRAME_SHORT,   /* of three bytes where four must be */
    H2_FRAME_STREAM,  /* on a stream that is not there */
    H2_BIG_HEADERS,   /* 64 KiB of them */
    H2_BIG_TRAILERS,  /* likewise */
    H2_HEADERS_FLOOD, /* CONTINUATION without end */
    H2_HPACK_TABLE,   /* a table of 1 GiB */
    H2_HPACK_BOMB,    /* 16 KiB that stand for 32 MiB */
    H2_DATA_FLOOD,    /* messages without end */
    H2_EMPTY_FLOOD,   /* DATA without data, without end */
    H2_PING_FLOOD,
    H2_SETTINGS_FLOOD,
    H2_TRAILERS_FLOOD, /* one trailer after the other */
    H2_STUFFED,        /* a good reply of 1 MiB and 4 MiB of no use */
    H2_DRIP,           /* a byte of the message each 50 ms */
    H2_SILENT,
    H2_NOISE, /* no frames at all */
    H2_FAULTS
};

/* In place of replies: asked for each call, on the thread of its connection,
 * which it may keep waiting.  Adds the message, or the words of an error, to
 * `ret_reply` and returns the code; or H2_MORE: that message, if there is one,
 * is sent, and it is asked again, until the client has closed. */
enum { H2_MORE = -1 };
typedef int h2_handler_f(void *ctx, const char *method, const void *request,
                         size_t size, struct str *ret_reply);

struct h2_config {
    const char *cert, *key; /* files; NULL: cleartext */
    const char *ca;         /* of clients; NULL: no certificate is wanted */
    const char *socket;     /* path; NULL: a port of 127.0.0.1 */
    int holder;             /* of h2_server_leave(), is taken; 0: any port */
    h2_handler_f *handler;  /* NULL: replies are given */
    void *ctx;              /* its */
};
struct h2_server;
struct h2_server *h2_server_start(const struct h2_config *config);
void h2_server_stop(struct h2_server *s);
/* The same, but its port stays taken, and refuses connections, until another
 * server takes it with what is returned, or that is closed; -1: it was a path. */
int h2_server_leave(struct h2_server *s);
uint16_t h2_server_port(const struct h2_server *s);

/* From then on, for every call. */
void h2_server_fault(struct h2_server *s, enum h2_fault fault);
/* The reply to a method, "Version" say, or to all others (NULL): a message
 * (copied) and how it ends; with another code than 0 there is no message. */
void h2_server_reply(struct h2_server *s, const char *method,
                     const void *message, size_t size);
void h2_server_status(struct h2_server *s, const char *method, int code,
                      const char *text);
/* So many messages of that reply, `ms` apart. */
void h2_server_repeat(struct h2_server *s, unsigned n, unsigned ms);

/* The same from then on. */
void h2_server_handle(struct h2_server *s, h2_handler_f *handler, void *ctx);
/* Within a handler: how long the client waits for it; 0: for ever. */
unsigned h2_server_deadline_ms(void);

/* How many there were so far; of connections, those whose handshake went
 * well. */
unsigned h2_server_connections(struct h2_server *s);
unsigned h2_server_calls(struct h2_server *s);
/* Of calls: those of which all is written that comes with the answer. */
unsigned h2_server_answers(struct h2_server *s);
/* Of the last call: its message (copied, at most `max` bytes; returns its
 * size). */
size_t h2_server_request(struct h2_server *s, void *ret_message, size_t max);
/* Of the last call: the value of a header; "" when there was none. */
void h2_server_header(struct h2_server *s, const char *name, char *ret_value,
                      size_t size);

#endif
