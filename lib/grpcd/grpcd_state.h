/* grpcd_state - what a server, its connections and calls are made of; for the
 * files of grpcd alone.
 *
 * The server's thread owns everything but what stands "under the lock". */
#ifndef BIGA_LIB_GRPCD_GRPCD_STATE_H
#define BIGA_LIB_GRPCD_GRPCD_STATE_H

#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "lib/grpcd/grpcd_call.h"
#include "lib/grpcd/grpcd_relay.h"
#include "lib/h2/grpc_prefix.h"
#include "lib/h2/h2_fields.h"
#include "lib/h2/h2_meter.h"
#include "lib/io/unix_socket.h"

/* Bytes on their way; `s->held` counts them. */
struct grpcd_queue {
    struct str data;
    size_t at; /* of them, those that have gone */
};

/* One end of a call: its stream on a connection. */
struct grpcd_leg {
    struct grpcd_link *link;
    struct grpcd_call *prev, *next; /* of the connection */
    int32_t id;                     /* 0: there is none, or it has closed */
    struct grpcd_queue out;         /* DATA that is to be sent */
    bool out_ended;                 /* nothing is added any more */
    bool waits;                     /* nghttp2 does, for more of it */
    bool in_ended;                  /* END_STREAM came */
    size_t unread;                  /* bytes whose window is not given back */
};

/* What a handler has asked for. */
enum grpcd_wish { WISH_NONE, WISH_FINISH, WISH_PASS, WISH_WORK };

struct grpcd_call {
    struct grpcd *s;
    struct grpcd_leg down, up; /* to the client; to the other server */
    struct h2_fields fields;   /* of the request */
    struct h2_fields reply;    /* headers, then trailers, of the reply */
    struct h2_fields trailers; /* that a handler adds, as headers above */
    int64_t begun_ms, due_ms;
    int64_t timer_ms; /* the same, until it has passed */
    uint64_t received, sent;
    bool routed; /* the end is told */
    bool begun;  /* a handler has it, or the relay */
    bool owned;  /* by a handler, which has not given it up */
    bool relayed;
    bool head_sent; /* to the client */
    int code;       /* how it ended; -1: not yet */
    struct grpcd_route route;
    struct grpcd_relay *relay;
    struct grpcd_edit edit;
    struct str edit_in; /* a message of the reply that is not whole */

    atomic_int cancelled; /* why */
    /* under hook_lock, which is recursive */
    pthread_mutex_t hook_lock;
    grpcd_cancel_f *hook;
    void *hook_ctx;

    /* under the server's lock */
    pthread_cond_t changed;
    struct str first; /* with its prefix; the message before the next */
    bool has_first, first_taken, any_sent;
    struct str in; /* what came after it */
    bool in_ended;
    struct str sending; /* messages with their prefixes */
    size_t n_queued;    /* bytes there and in down.out */
    int cancel_fd;
    enum grpcd_wish wish;
    int wish_code;
    char *wish_text;
    struct grpcd_call *next_posted, *next_work;
    bool posted;
};

/* A connection. */
struct grpcd_link {
    struct grpcd *s;
    struct grpcd_relay *relay; /* NULL: it is a client's */
    struct grpcd_link *prev, *next, *next_dirty;
    bool dirty;
    int fd;
    uint32_t events;
    nghttp2_session *h2;
    struct h2_meter meter; /* of a client */
    struct str out;
    size_t n_out; /* of them, those that were sent */
    struct grpcd_call *calls;
    size_t n_calls;
    uid_t uid;
    int64_t idle_ms;
    bool stuck;   /* the socket takes no more */
    bool flood;   /* ENHANCE_YOUR_CALM has to be sent */
    bool leaving; /* GOAWAY was sent, or came */
    bool ended;   /* closed; freed at the end of the round */
};

struct grpcd_relay {
    struct grpcd *s;
    struct grpcd_relay *next;
    char *path, *name;
    struct grpcd_link *first, *current; /* NULL: none takes calls */
    atomic_bool stands;
};

struct grpcd_lane {
    unsigned max, n_threads, n_idle;
    size_t n_queued; /* calls */
    pthread_cond_t wake;
    struct grpcd_call *first, *last;
    struct grpcd_worker *ended; /* to be joined */
};

struct grpcd {
    struct grpcd_config config;
    struct unix_file file;
    int fd, epoll, wake;
    pthread_t thread;
    bool running;
    nghttp2_session_callbacks *down_callbacks, *up_callbacks;
    nghttp2_option *option;
    struct grpcd_link *first, *dirty;
    size_t n_links, n_calls;
    struct grpcd_relay *relays;
    int64_t due_ms; /* when deadlines are looked at */
    bool paused;    /* nothing is accepted */
    bool leaving, forced;
    int64_t drained_ms; /* when they are cancelled */
    atomic_size_t held, stat_links, stat_calls;
    atomic_ullong n_routed, n_ended, n_not_accepted;

    pthread_mutex_t lock;
    struct grpcd_call *posted;
    bool stopping, lanes_end;
    unsigned drain_ms;
    struct grpcd_lane lanes[2]; /* brief, long */
    uint8_t in[64 << 10];       /* what one recv has */
};

#endif
