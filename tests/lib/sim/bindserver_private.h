/* What bindserver.c (calls, faults, connections) and bindserver_pods.c (the
 * pods) share. */
#ifndef BIGA_TESTS_LIB_SIM_BINDSERVER_PRIVATE_H
#define BIGA_TESTS_LIB_SIM_BINDSERVER_PRIVATE_H

#include <pthread.h>

#include "lib/base/str.h"
#include "tests/lib/sim/bindserver.h"

enum {
    SERVED_PODS_MAX = 256,
    CONNS_MAX = 256, /* at a time */
    FAULTS_MAX = 64,
    REQUEST_MAX = 65536,
    NAME_MAX_ = 64,
};

struct target {
    char node[NAME_MAX_]; /* "": none */
    char *allocation;
};

struct pod {
    char name[NAME_MAX_], uid[NAME_MAX_];
    struct target bound, late; /* late: after the next GET */
    unsigned n_bound;          /* or opened, for one that has a gate */
    bool there, deleting;
    bool gated, had_gate;
    char pin[NAME_MAX_]; /* opened for this node; "" not pinned */
};

struct faults {
    enum bindserver_fault list[FAULTS_MAX];
    size_t n, at;
    enum bindserver_fault always; /* FAULT_NONE: not */
};

struct conn {
    struct bindserver *s;
    pthread_t thread;
    int fd; /* -1: closed, and the thread ends */
};

struct bindserver {
    struct kube_config config;
    uint16_t port;
    int keeper;            /* keeps the port while nobody listens */
    pthread_cond_t opened; /* a gate was */
    pthread_mutex_t lock;  /* guards all that follows */
    int listener;          /* -1: closed */
    pthread_t acceptor;
    struct pod pods[SERVED_PODS_MAX];
    size_t n_pods;
    struct faults posts, looks;
    bool schedules;
    unsigned chaos;
    uint64_t random;
    struct str calls, last_body;
    struct conn conns[CONNS_MAX];
    size_t n_conns;
};

/* What a call is. */
enum call { CALL_LOOK, CALL_BIND, CALL_OPEN, CALL_DELETE, CALL_EVICT };

struct request {
    char method[8], pod[NAME_MAX_];
    enum call call;
    /* the node of a Binding, or to which a patch pins its pod; "" none */
    char uid[NAME_MAX_], node[NAME_MAX_];
    char *allocation;
    bool opens;   /* a patch takes the gates away */
    bool unbinds; /* or the node, which it must not have */
    char data[REQUEST_MAX + 1];
    const char *body;
};

struct reply {
    int status;
    struct str body;
};

/* All of them take the lock. */
void bindserver_reply(struct reply *r, int status, const char *reason,
                      const char *text);
void bindserver_show(struct bindserver *s, const struct request *q,
                     struct reply *r);
void bindserver_carry_out(struct bindserver *s, const struct request *q,
                          struct reply *r);
/* Once a GET has found the pod as it was. */
void bindserver_carry_out_later(struct bindserver *s, const struct request *q);
void bindserver_carry_out_late(struct bindserver *s, const char *name);
void bindserver_forget_pods(struct bindserver *s);

#endif
