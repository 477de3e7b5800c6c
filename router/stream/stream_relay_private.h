/* stream_relay_private - what the files of stream_relay share: stream_relay.c
 * has what others call, stream_relay_thread.c the thread, stream_relay_join.c one
 * stream, whose beginning is in stream_relay_ask.c. */
#ifndef BIGA_ROUTER_STREAM_STREAM_RELAY_PRIVATE_H
#define BIGA_ROUTER_STREAM_STREAM_RELAY_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/str.h"
#include "lib/stream/stream_conn.h"
#include "lib/stream/stream_head.h"
#include "lib/stream/stream_way.h"
#include "router/stream/stream_relay.h"
#include "router/stream/stream_token.h"
#include "router/stream/stream_word.h"

/* --- a stream ----------------------------------------------------------------- */

enum stream_stage {
    STREAM_HEAD,   /* the client's request is to come */
    STREAM_DIAL,   /* the remote is dialled, */
    STREAM_SHAKE,  /* TLS begins, */
    STREAM_ASK,    /* the request goes there, */
    STREAM_ANSWER, /* and the head of the answer is to come */
    STREAM_PUMP,   /* switched: bytes go both ways */
    STREAM_BODY,   /* refused: its reason goes to the client */
    STREAM_TELL,   /* the last bytes for the client, who is to close then */
    STREAM_STAGES,
};

/* The thread's alone but for `plan` and `cut`, which the lock guards; the
 * thread alone sets `plan`, once. */
struct stream {
    enum stream_stage stage;
    struct stream_conn client, remote;
    struct stream_way in, out; /* to the client; to the remote */
    struct stream_plan *plan;  /* what the ticket stands for; NULL: none was
                                * shown */
    char *cut;                 /* why others want it to end; set once */
    bool cutting;              /* the thread has seen that */
    bool again;                /* its turn was used up */
    struct str head;           /* what is being read, or sent to the remote */
    size_t seen;               /* bytes of it that were looked at, or sent */
    char upgrade[STREAM_PROTOCOL_MAX];
    struct stream_word word;
    int64_t moved_ms; /* when bytes last went either way */
    uint64_t moved;   /* bytes until then */
    uint64_t counted_in, counted_out;
    int64_t due_ms; /* of its stage */
};

/* --- all of it ------------------------------------------------------------------ */

struct stream_relay {
    struct stream_relay_config config; /* without zeros */
    uint16_t port;
    int listener, epoll, wake; /* wake: an eventfd */
    int spare; /* given up to refuse a client when descriptors run out */
    pthread_t thread;
    char *scratch;  /* of the thread, STREAM_WAY_MAX bytes */
    int64_t now_ms; /* of the thread: when its turn began, before any byte
                      * of it was moved */
    atomic_uint_fast64_t opened, refused, cut, bytes_in, bytes_out;

    pthread_mutex_t lock; /* guards what follows; never held over I/O */
    bool stopping;
    struct stream_tokens *tickets;
    struct stream **list; /* the oldest first; only the thread changes it */
    size_t n, cap;
    unsigned n_planned; /* of these, with a plan */
};

/* --- stream_relay_thread.c --------------------------------------------------- */

void *stream_relay_run(void *relay); /* until it is stopping */
/* -errno: no room in epoll. */
int stream_relay_watch(struct stream_relay *r, struct stream_conn *c);

/* What a turn of it has come to. */
enum stream_turn {
    STREAM_ON,    /* its next stage */
    STREAM_WAITS, /* it waits for an event */
    STREAM_AGAIN, /* there is more, and others are next */
    STREAM_OVER,
};

/* --- stream_relay_join.c ----------------------------------------------------- */

struct stream *stream_join_create(struct stream_relay *r, int client);
void stream_join_destroy(struct stream_relay *r, struct stream *s);
/* Go on as far as it goes; false: it is over.  `again` is set when the turn is
 * used up. */
bool stream_join_turn(struct stream_relay *r, struct stream *s);
/* Its time is over: the same. */
bool stream_join_late(struct stream_relay *r, struct stream *s);
/* Say why it ends, as far as that is possible at once. */
void stream_join_finish(struct stream_relay *r, struct stream *s,
                        const char *why);

/* The same for its log, and an answer of our own: the client is to close. */
void stream_join_log(const struct stream *s, const char *text);
enum stream_turn stream_join_tell(struct stream_relay *r, struct stream *s,
                                  int status, const char *text);

/* --- stream_relay_ask.c: its stages before STREAM_PUMP ------------------------ */

enum stream_turn stream_ask_turn(struct stream_relay *r, struct stream *s);

#endif
