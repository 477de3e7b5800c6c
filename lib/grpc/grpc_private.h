/* grpc_private - what the files of grpc share: grpc.c has connections,
 * grpc_task.c carries calls over libcurl, grpc_round.c several at a time,
 * grpc_hub.c many streams, grpc_pump.c bytes in cleartext; grpc_endpoint.c
 * says where to, grpc_fault.c why one failed. */
#ifndef BIGA_LIB_GRPC_GRPC_PRIVATE_H
#define BIGA_LIB_GRPC_GRPC_PRIVATE_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "lib/grpc/grpc.h"
#include "lib/grpc/grpc_frame.h"

struct grpc_endpoint {
    const char *socket; /* its path, borrowed; NULL: TCP */
    bool tls;
    char *base; /* "https://HOST:PORT"; to be freed */
};
/* -EINVAL: it is none, or what it needs or cannot have is not as it should
 * be. */
int grpc_endpoint_read(const struct grpc_config *config,
                       struct grpc_endpoint *ret_endpoint, struct error *err);

enum {
    GRPC_N_FILES = 3,
    GRPC_FDS_MAX = 4, /* libcurl tries two at a time */
    /* libcurl 7.88 overlooks cleartext bytes that it has read already: a
     * poll finds none, so it must be short */
    GRPC_PLAIN_MS = 2,
};

struct grpc {
    struct grpc_config config;
    struct grpc_endpoint to;
    CURL *curl;
    CURLM *multi; /* has the connection; NULL: none is to be reused */
    struct stat files[GRPC_N_FILES]; /* what that connection was made with */
    /* Of the connection, or of those that are tried for one; -1: none. */
    int fds[GRPC_FDS_MAX];
    struct grpc_pump *pump;     /* of a connection in cleartext */
    char own[GRPC_ADDRESS_MAX]; /* our address on the newest; "" none yet */
    char reason[CURL_ERROR_SIZE];
    struct grpc_round *round; /* its call is one of those; else NULL */
    bool refused; /* that would have made a new connection, and may not */
    pthread_mutex_t lock; /* of `multi` and `round`, while others wake them */
    atomic_bool cancelled, interrupted;
};

/* --- grpc.c ------------------------------------------------------------------ */

void grpc_init(void); /* libcurl, once */

struct grpc_task;
/* The handle is in the multi of its connection, and is so until _end(), which
 * follows whatever this returns. */
CURLcode grpc_transfer_begin(struct grpc_task *t);
/* What can be done without a wait; false: it has ended so, or must. */
bool grpc_transfer_go_on(struct grpc_task *t, CURLcode *ret_code);
void grpc_transfer_end(struct grpc_task *t);
/* What the call came to, as grpc_call() says it; a connection that is of no
 * more use is dropped. */
int grpc_transfer_judge(struct grpc_task *t, CURLcode code,
                        struct grpc_end *ret_end, struct error *err);

/* --- grpc_socket.c ---------------------------------------------------------- */

CURLcode grpc_socket_set_handle(struct grpc *g);
bool grpc_socket_is_open(const struct grpc *g);
int grpc_socket_fd(const struct grpc *g); /* the first; -1: none */
/* A connection is there: what is in cleartext is pumped from now on; -errno
 * when it cannot be, and then no deadline would hold. */
int grpc_socket_connected(struct grpc *g);
/* End the connection under libcurl's hands.  After shutdown() a flood would
 * still be read; this resets it and drops what is there. */
void grpc_socket_cut(const struct grpc *g);

/* --- grpc_task.c: one call on its way --------------------------------------- */

/* The caller sets the first lines, up to `brief`. */
struct grpc_task {
    struct grpc *g;
    const char *method;
    const char *request;
    size_t request_size;
    struct grpc_frames frames; /* `message`, `visit` and `ctx` */
    unsigned deadline_ms;      /* 0: none */
    bool brief; /* others wait: no time to find out why it failed */
    unsigned char prefix[GRPC_PREFIX];
    size_t sent; /* with the prefix */
    struct grpc_head head;
    struct curl_slist *headers;
    int64_t due_ms; /* end of the deadline; INT64_MAX: never */
    bool connected;
    bool late;      /* we ended it, for its deadline */
    uint64_t taken; /* bytes of messages and prefixes */
    uint64_t came;  /* bytes of records of TLS */
    uint64_t had;   /* bytes that were read in cleartext before */
    int fault;      /* of ours: ends the transfer; 0: none */
    struct error err;
};

/* The options of a new handle that are the same for all calls. */
CURLcode grpc_task_set_handle(struct grpc *g);
/* Where the message of a unary call goes. */
void grpc_task_reply(struct grpc_task *t, struct str *reply);
/* Judge the call, and fill in what follows `brief`; -errno into task->fault. */
void grpc_task_init(struct grpc_task *t);
/* The handle is ready to be added; and what that took is given back. */
CURLcode grpc_task_set(struct grpc_task *t);
void grpc_task_unset(struct grpc_task *t);
/* False: it must end, whatever comes. */
bool grpc_task_may_go_on(struct grpc_task *t);
/* How long to wait for bytes of it, at most. */
int grpc_task_poll_ms(const struct grpc_task *t);
/* What it came to, as grpc_call() says it. */
int grpc_task_end(struct grpc_task *t, CURLcode code, struct grpc_end *ret_end,
                  struct error *err);
/* Was a kept connection no good any more, and nothing of the request sent? */
bool grpc_task_stale(const struct grpc_task *t, CURLcode code);

/* --- grpc_fault.c ------------------------------------------------------------ */

/* How a transfer failed, as libcurl tells it. */
struct grpc_fault {
    CURLcode code;
    const char *reason; /* its text, "" none */
    long verify;        /* of OpenSSL: X509_V_ERR_… of the server's chain */
    long os_errno;      /* of the connection */
    bool connected;     /* there was a connection, with TLS if any */
    unsigned deadline_ms;
};
/* Fills in `err`, without the names of endpoint and method; -errno. */
int grpc_fault_tell(const struct grpc_config *config,
                    const struct grpc_fault *fault, struct error *err);

/* With TLS 1.3 a server judges our certificate when we take the connection
 * for made and have begun to send: then its refusal drowns in a reset.  So
 * connect once more, send nothing, and hear what it has to say.  `curl` is
 * the handle of the call; `ms` is the time to connect, and then to listen;
 * the text stays "" when the server refuses nothing.
 */
void grpc_fault_listen(CURL *curl, unsigned ms,
                       char ret_reason[CURL_ERROR_SIZE]);
/* Is this fault one that may hide such a refusal: the connection was lost? */
bool grpc_fault_lost(const struct grpc_fault *fault);

#endif
