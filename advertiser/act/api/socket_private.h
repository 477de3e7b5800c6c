/* socket_private - what the files of the socket share: socket.c has the routes,
 * socket_call.c the threads of what may block, socket_do.c what those do,
 * socket_wait.c those who wait for a change. */
#ifndef BIGA_ADVERTISER_ACT_API_SOCKET_PRIVATE_H
#define BIGA_ADVERTISER_ACT_API_SOCKET_PRIVATE_H

#include <pthread.h>
#include <stdint.h>

#include "advertiser/act/api/socket.h"
#include "advertiser/act/log/log_reader.h"
#include "advertiser/act/pod/item.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/httpd.h"

/* A request that is being worked on by a thread of its own. */
struct call {
    struct call *next;
    struct act_socket *s;
    struct httpd_request *rq; /* under the lock; NULL: answered by the stop */
    char lane[ACT_NAME_MAX + 1];
    void (*run)(struct call *c);

    /* What is asked for. */
    struct arena arena;
    char namespace[64], name[ACT_NAME_MAX + 1], uid[64];
    char place[ACT_NAME_MAX + 1], container[64];
    bool drain, text;
    struct act_flash flash;
    int64_t grace_s;
    struct act_log_ask log;
    struct log_want want; /* with `picks`: which of its lines */
    bool picks;
    uint32_t timeout_s;
    bool stdin_too;
    const char **argv;
    size_t n_argv;
    char *body; /* in the arena */
    size_t body_size;

    /* What came of it. */
    int result; /* 0 or -errno, with: */
    struct error err;
    unsigned status;
    uint64_t next_offset;
    uint32_t next_attempt;
    struct str out;
};

struct waiting_pods {
    struct waiting_pods *next;
    struct httpd_request *rq;
    char namespace[64], name[ACT_NAME_MAX + 1];
    uint64_t version;
    int64_t due_ms;
};

struct act_socket {
    struct actuator *a;
    struct httpd *httpd;
    pthread_mutex_t lock;
    bool stopping;
    bool abandoned;      /* the last call frees all this */
    struct call *calls;  /* those under way */
    pthread_cond_t idle; /* there is none any more */
    struct waiting_pods *waits;
    size_t n_waits;
    pthread_t waiter;
    pthread_cond_t wake; /* of the waiter */
};

void socket_free(struct act_socket *s);
/* The HTTP status of an -errno of the actuator. */
unsigned socket_status(int result);

struct call *call_create(struct act_socket *s, void (*run)(struct call *c));
void call_destroy(struct call *c);
/* Have `c` run for the request, which is suspended until then; `lane` is where
 * it counts, "" for what only writes to the disk.  Takes the call; 503 when
 * too many are there. */
void call_post(struct call *c, struct httpd_request *rq, const char *lane);

/* What calls do, on their threads. */
void do_want(struct call *c);
void do_begin(struct call *c);
void do_stop(struct call *c);
void do_delete(struct call *c);
void do_drain(struct call *c);
void do_flash(struct call *c);
void do_hardware(struct call *c);
void do_exec(struct call *c);
void do_stream(struct call *c);
void do_logs(struct call *c);
void do_objects(struct call *c);

/* {"container":"","argv":[…],"timeout":10}, from the body, which is cut to
 * pieces; do_stream() takes "stdin" in the place of "timeout". */
int exec_read(struct call *c, const char *json, size_t size, struct error *err);

/* {"bfb":"/…","sha256":"","version":"","timeout":2700,"force":false} */
int flash_read(struct call *c, const char *json, size_t size,
               struct error *err);

/* Suspend the request until the pod is newer than `version`, or `s` are over.
 */
void wait_post(struct act_socket *s, struct httpd_request *rq, uint64_t version,
               int64_t wait_s);
int waits_start(struct act_socket *s, struct error *err);
void waits_stop(struct act_socket *s);

#endif
