/* node_streams_private - what the files of node_streams share: node_streams.c
 * asks for orders, node_streams_work.c has the threads that may wait,
 * node_streams_thread.c the one that carries bytes, node_streams_turn.c one
 * stream, whose beginning is in node_streams_ask.c. */
#ifndef BIGA_ADVERTISER_ACT_STREAM_NODE_STREAMS_PRIVATE_H
#define BIGA_ADVERTISER_ACT_STREAM_NODE_STREAMS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "advertiser/act/log/log_reader.h"
#include "advertiser/act/stream/join.h"
#include "advertiser/act/stream/node_streams.h"
#include "advertiser/act/stream/order.h"
#include "lib/base/backoff.h"
#include "lib/stream/stream_conn.h"
#include "lib/stream/stream_head.h"
#include "lib/stream/stream_plan.h"

enum {
    SEEN_MAX = 256, /* ids of orders that were taken */
    /* A piece of either side becomes twice as much at most, and some more. */
    OUT_MAX = 4 * STREAMS_BUFFER + ACT_LOG_MAX,
};

enum node_stage {
    NODE_OPENING, /* a worker finds out where it goes */
    NODE_DIAL,    /* the runtime is dialled, */
    NODE_SHAKE,   /* TLS begins, */
    NODE_ASK,     /* the request goes there, */
    NODE_ANSWER,  /* and the head of the answer is to come */
    NODE_PUMP,    /* bytes go both ways, or a log's one */
    NODE_LINGER,  /* the last bytes, until the extender closes */
};

/* Bytes that wait to be taken. */
struct node_out {
    struct str bytes;
    size_t at; /* those before it are taken */
};

/* One stream, the thread's alone; but until it is opened, and while its log is
 * read, a worker has what is said to be the worker's. */
struct node_stream {
    struct node_stream *next_job;
    struct order *order;
    char place[ACT_NAME_MAX + 1]; /* "" not known: it is not here */
    bool working, at_work; /* under the lock: a worker is to have it, has it */
    bool busy;             /* the thread's: it was so in this turn */
    bool over;             /* it goes as soon as it is not */

    /* of the worker, and then of the thread: */
    bool opened, refused; /* refused: too many are open */
    struct stream_plan *to_runtime, *to_extender;
    int status; /* 200, or why not, with: */
    struct error why;
    struct log_reader log;
    struct str piece; /* of the log */
    int log_result;   /* of the last look, with: */
    struct error log_err;

    enum node_stage stage;
    bool asks_extender; /* the stages before NODE_PUMP are about that one */
    size_t address;     /* that is dialled, of its plan */
    struct stream_conn runtime, extender;
    struct node_out out_runtime, out_extender;
    struct str head;  /* of an answer */
    struct str early; /* what the runtime sent behind its own */
    size_t seen;
    struct join join;
    bool looks;      /* a log is to be looked at again, at next_poll */
    bool log_last;   /* the pod had ended before the last look */
    bool again;      /* its turn was used up */
    bool shut;       /* the extender knows that no more comes, */
    bool broken;     /* and that this is not all */
    bool cut_done;   /* what is to be done about: */
    const char *cut; /* it is to end: why */
    char cut_text[ERROR_TEXT_MAX];
    int64_t poll_ms, next_poll;
    int64_t due_ms, over_ms; /* of NODE_LINGER */
};

struct node_streams {
    struct node_streams_config config;
    struct actuator *a;
    pthread_t asker, thread;
    struct http_client *http;
    struct backoff backoff;
    struct error last;
    int epoll, wake; /* an eventfd */
    char *scratch;   /* of the thread */
    atomic_bool stopping, poked;
    atomic_uint_fast64_t begun, failed;

    pthread_mutex_t lock; /* guards what follows; never held over I/O */
    pthread_cond_t stop_wake, work_wake, worker_gone;
    struct node_stream *list[STREAMS_MAX + STREAMS_SPARE];
    size_t n;
    struct node_stream *jobs; /* the oldest first */
    unsigned n_workers, n_idle;
    char seen[SEEN_MAX][ORDER_ID_MAX + 1]; /* the asker's */
    size_t n_seen;
};

/* --- node_streams_work.c -------------------------------------------------------- */

/* Have a worker do what comes next: open it, or read its log.  Lock held. */
void node_streams_post_locked(struct node_streams *s, struct node_stream *n);
/* False when some have not gone in time. */
bool node_streams_workers_stop(struct node_streams *s);

/* --- node_streams_thread.c ------------------------------------------------------ */

void *node_streams_run(void *streams);
void node_streams_wake(struct node_streams *s);
int node_streams_watch(struct node_streams *s, struct stream_conn *c);
struct node_stream *node_stream_create(struct order *order);
void node_stream_destroy(struct node_stream *n);

/* --- node_streams_turn.c: false when it is over --------------------------------- */

bool node_stream_turn(struct node_streams *s, struct node_stream *n);
/* It is to end, for this reason. */
void node_stream_cut(struct node_stream *n, const char *why);
/* Only the last bytes are to go; `broken`: as those of a log that goes on. */
void node_stream_linger(struct node_stream *n, bool broken);
/* As much as is taken now; false: that side is lost. */
bool node_out_flush(struct node_out *o, struct stream_conn *to);
static inline size_t node_out_left(const struct node_out *o)
{
    return o->bytes.size - o->at;
}

/* --- node_streams_ask.c: the stages before NODE_PUMP ---------------------------- */

enum node_turn { NODE_ON, NODE_WAITS, NODE_OVER };
enum node_turn node_stream_ask(struct node_streams *s, struct node_stream *n);
/* Begin to dial the runtime, or the extender. */
enum node_turn node_stream_begin(struct node_streams *s, struct node_stream *n);
/* It cannot be had: the extender is told. */
enum node_turn node_stream_refuse(struct node_streams *s, struct node_stream *n,
                                  int status, const struct error *why);

#endif
