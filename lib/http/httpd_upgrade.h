/* httpd_upgrade - a request whose connection becomes a stream of bytes of both
 * sides: 101 Switching Protocols, over HTTP/1.1, plain or TLS.
 *
 * libmicrohttpd keeps its hands off a request that is suspended, so that its
 * connection can be read and written by another thread as it is.  Its own
 * upgrades (0.9.75) pass TLS on by the listener's thread, do not tell that a
 * client has closed, and turn round and round when it has done so by a reset.
 *
 * Whoever has such a connection closes it once it has ended: httpd_stop() ends
 * all, and waits for that. */
#ifndef BIGA_LIB_HTTP_HTTPD_UPGRADE_H
#define BIGA_LIB_HTTP_HTTPD_UPGRADE_H

#include "lib/http/httpd.h"
#include "lib/stream/stream_conn.h"

struct httpd_upgraded;

/* In a handler (or a function of httpd_then()): does the client ask for it, by
 * "Connection: Upgrade" and "Upgrade: PROTOCOL"?  If not, the request was
 * failed: 426, 505 over HTTP/2, 403 for a page in a browser. */
bool httpd_upgrade_asked(struct httpd_request *rq, const char *protocol);

/* The same, and 101 is sent with the headers that were set.  NULL: it was
 * failed; also with 503, because there are httpd_config.streams_max of these
 * and of httpd_stream.h, or the server stops.  The request is suspended now,
 * and not to be touched any more.  What a client has sent before it had the 101
 * is lost. */
struct httpd_upgraded *httpd_upgrade(struct httpd_request *rq,
                                     const char *protocol);
/* Its connection, for one thread at a time, until it is closed; it is not to be
 * finished. */
struct stream_conn *httpd_upgraded_conn(struct httpd_upgraded *u);
/* Any thread. */
void httpd_upgraded_close(struct httpd_upgraded *u);

#endif
