/* httpd_streams - what the transports of httpd do with replies that are written
 * bit by bit (httpd_stream.h), and the list of those of a listener, with its
 * connections that are streams themselves (httpd_upgrade.h). */
#ifndef BIGA_LIB_HTTP_HTTPD_STREAMS_H
#define BIGA_LIB_HTTP_HTTPD_STREAMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct httpd_request;
struct httpd_stream;

/* One of either kind, in the list of its listener; by then it has a client. */
struct stream_link {
    struct stream_link *prev, *next;
    int fd;
    bool alone;                  /* it has the connection for itself */
    struct httpd_stream *stream; /* NULL: of httpd_upgrade.h */
};

struct streams {
    pthread_mutex_t lock; /* before that of a stream */
    struct stream_link *first;
    size_t n, max;
    bool stopping;
};

void streams_init(struct streams *t, size_t max);
void streams_fini(struct streams *t); /* there are none any more */
/* False: there are too many, or the server stops. */
bool streams_add(struct streams *t, struct stream_link *link);
/* Fail it for that. */
void streams_refuse(struct httpd_request *rq);
void streams_remove(struct streams *t, struct stream_link *link);
/* Wake the streams whose clients have hung up: nobody reads from them. */
void streams_tick(struct streams *t);
/* End all, and those that still come. */
void streams_stop(struct streams *t);

/* Of httpd_stream.c, on the listener's thread: */

enum {
    STREAM_PARKED = 0, /* the request is suspended until there is more */
    STREAM_ENDED = -1,
    STREAM_BROKEN = -2,
};
/* Bytes for the client, or one of those. */
ssize_t stream_take(struct httpd_stream *s, void *data, size_t size);
/* The request is not to be resumed any more; false: it has been. */
bool stream_unpark(struct httpd_stream *s);
/* Bytes that the client was given. */
uint64_t stream_taken(struct httpd_stream *s);
/* The request is done with, however that went. */
void stream_leave(struct httpd_request *rq);
void stream_ref(struct httpd_stream *s);
void stream_unref(struct httpd_stream *s);

/* Its client has hung up, or the server stops. */
void stream_cut(struct httpd_stream *s);

#endif
