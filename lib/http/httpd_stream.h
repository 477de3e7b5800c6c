/* httpd_stream - a reply whose body is written bit by bit, from any thread:
 * chunks of HTTP/1.1, DATA of HTTP/2.
 *
 * What a slow client has not taken waits, up to a cap; then the writer has to.
 * Neither idle_ms nor reply_ms ends such a reply: its client may pause.  One
 * that is gone is noticed within 2 s when it has closed, and by TCP's probes
 * when it has vanished.  An HTTP/1.1 connection ends with it. */
#ifndef BIGA_LIB_HTTP_HTTPD_STREAM_H
#define BIGA_LIB_HTTP_HTTPD_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/http/httpd.h"

struct httpd_stream;

/* In a handler (or a function of httpd_then()), in place of httpd_reply(): the
 * status, type and headers that were set go out at once, and the handler
 * returns.  At most `max` bytes wait for the client.
 *
 * `changed` (NULL allowed) is called on the listener's thread when there is
 * room again after a write had been refused, or httpd_stream_room() was 0, and
 * when the client has gone.  It must not block; it may call what is below.
 *
 * The caller has one reference until httpd_stream_end() or _break().  NULL:
 * there are httpd_config.streams_max of them or the server stops; the request
 * was failed with 503. */
struct httpd_stream *httpd_stream_begin(struct httpd_request *rq, size_t max,
                                        void (*changed)(void *ctx), void *ctx);

/* From here on: any thread, never waits. */

/* All of it, or none: -EAGAIN there is no room, -EPIPE the client has gone or
 * the server stops, -EMSGSIZE it is more than `max`. */
int httpd_stream_write(struct httpd_stream *s, const char *data, size_t size);
/* Bytes that a write may have now. */
size_t httpd_stream_room(struct httpd_stream *s);
bool httpd_stream_gone(struct httpd_stream *s);

/* The body ends once all is taken.  `changed` does not run afterwards; it is
 * waited for when it does on another thread, so no lock that it takes may be
 * held. */
void httpd_stream_end(struct httpd_stream *s);
/* The same for a body that is not whole, and the client is to see that: once all
 * is taken the connection, or the HTTP/2 stream, is cut. */
void httpd_stream_break(struct httpd_stream *s);

#endif
