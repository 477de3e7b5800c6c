/* relay_private - what the files of relay share: relay.c has the table of
 * streams, relay_ask.c what clients ask, relay_feed.c what nodes are told, and
 * the time-outs, relay_carry.c the thread that carries the bytes. */
#ifndef BIGA_EXTENDER_RELAY_RELAY_PRIVATE_H
#define BIGA_EXTENDER_RELAY_RELAY_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "extender/relay/relay.h"
#include "extender/relay/relay_line.h"
#include "extender/relay/ws_hello.h"
#include "lib/base/strmap.h"
#include "lib/http/httpd_stream.h"
#include "lib/http/httpd_upgrade.h"
#include "lib/stream/stream_way.h"

enum {
    RELAY_WAITS = STREAM_WAY_MAX, /* bytes that wait, each way */
    RELAY_ID_BYTES = 16,
    RELAY_ID_SIZE = 2 * RELAY_ID_BYTES + 1,
    RELAY_FAILURE_MAX = RELAY_ERROR_MAX + 512,
};

enum relay_state {
    RELAY_WANTED,   /* its node is to come */
    RELAY_TAKEN,    /* the node has come, and is to say the first line */
    RELAY_ANSWERED, /* that was said: the client's request goes on */
    RELAY_JOINED,   /* bytes go both ways */
    RELAY_LEAVING,  /* the client wants it no more */
    RELAY_STATES,
};

struct relay_stream {
    struct relay_stream *prev, *next; /* all, the oldest first */
    struct relay *relay;
    char id[RELAY_ID_SIZE];
    enum relay_kind kind;
    char *node;
    uint64_t client;
    struct str told_text; /* what its node is told */

    /* Guarded by the relay's lock: */
    enum relay_state state;
    bool asked;   /* the client's request has still to go on, */
    bool carried; /* the thread has it, or is about to, */
    bool told;
    int64_t due_ms; /* of WANTED */
    struct httpd_request *rq;
    unsigned status; /* for the client */
    char failure[RELAY_FAILURE_MAX];
    const char *result; /* for metrics, a constant word; NULL: none yet */
    struct relay_stream *next_news;
    bool in_news; /* the thread has to look at it: freed after all three */

    /* Set before the thread is told, then its own: */
    struct httpd_upgraded *node_side, *client_side;
    struct httpd_stream *log;
    struct ws_hello hello; /* of all but logs */

    /* The thread's: */
    struct relay_stream *next_carried;
    enum relay_state seen; /* the state that it acts by */
    char line[RELAY_LINE_MAX];
    size_t line_size;
    struct stream_way in, out; /* to the client; to the node */
    int64_t until_ms;          /* INT64_MAX: no time-out */
    bool again;                /* its turn was used up */
    bool whole;                /* all of the log was read */
    atomic_bool changed;       /* of the log */
    uint64_t counted_in, counted_out;
};

/* A node that has asked. */
struct relay_node {
    char *name;
    struct httpd_request *rq; /* its question, which waits; NULL: none */
    int64_t due_ms;           /* when that is answered */
    int64_t asked_ms;         /* when it was here last */
    bool gone;                /* it has hung up since */
};

struct relay {
    struct metrics *metrics;
    int64_t started_ms;
    int epoll, wake;
    pthread_t carrier, timer;

    pthread_mutex_t lock; /* guards what follows; never held over I/O */
    pthread_cond_t timing;
    struct relay_stream *first, *last;
    size_t n;
    struct strmap nodes; /* relay_node by name */
    struct relay_stream *news;
    int64_t timer_due_ms;   /* until when the timer waits */
    int64_t carrier_due_ms; /* when the carrier has to look; INT64_MAX */
    bool quiet;             /* nothing begins any more */
    bool stopping;          /* the threads end */
};

/* --- relay.c ------------------------------------------------------------------ */

/* Wake the thread for this stream. */
void relay_news_locked(struct relay_stream *s);
void relay_wake(struct relay *r);
/* The client's request goes on, with this outcome (200: it is joined). */
void relay_answer_locked(struct relay_stream *s, unsigned status,
                         const char *result, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* One of the two who have it has it no more. */
void relay_drop_locked(struct relay_stream *s);
void relay_count(struct relay *r, enum relay_kind kind, const char *result);

/* --- relay_feed.c ------------------------------------------------------------- */

struct relay_node *relay_node_find_locked(struct relay *r, const char *name);
/* Answer its question, if it has one: there is a stream. */
void relay_node_tell_locked(struct relay_node *node);
/* The timer is to look by then. */
void relay_due_locked(struct relay *r, int64_t due_ms);
void *relay_timer_run(void *relay);

/* --- relay_carry.c ------------------------------------------------------------ */

void *relay_carrier_run(void *relay);

#endif
