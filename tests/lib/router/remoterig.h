/* remoterig - a remote whose runtime is a server of its own (runtimeserver), in
 * virtual time, with a map in memory.  Stops the test when something cannot be
 * set up. */
#ifndef BIGA_TESTS_LIB_ROUTER_REMOTERIG_H
#define BIGA_TESTS_LIB_ROUTER_REMOTERIG_H

#include <pthread.h>

#include "router/remote/remote.h"
#include "tests/lib/router/runtimeserver.h"

enum { REMOTERIG_THREADS = 2, REMOTERIG_CHANGES = 64 };

struct remoterig {
    char *dir, *socket;
    struct runtimeserver *server;
    struct keep *keep;
    struct remote *remote;
    struct remoterig *beside; /* another whose work time waits for; or NULL */
    struct remote_config config;
    pthread_mutex_t lock;
    struct remote_change changes[REMOTERIG_CHANGES];
    size_t n_changes;
    enum act_health healths[REMOTERIG_CHANGES];
    size_t n_healths;
};

/* Ready, and listed once. */
void remoterig_open(struct remoterig *r);
/* The same, with a folder for what it had last, and events. */
void remoterig_open_saved(struct remoterig *r);
void remoterig_open_events(struct remoterig *r);
/* The router begins anew; what was written down stays. */
void remoterig_restart(struct remoterig *r);
/* The same in real time, with events. */
void remoterig_open_real(struct remoterig *r);
/* The same of a server that is somebody else's and never away, with a map in
 * that folder. */
void remoterig_join(struct remoterig *r, const char *socket, const char *state);
/* With mutual TLS, as one of those that `beat` asks; ready.  In whatever time it
 * is, without events; 0: the usual times. */
void remoterig_open_beat(struct remoterig *r, struct remote_beat *beat,
                         int64_t lost_ms, int64_t probe_ms);
void remoterig_close(struct remoterig *r);
/* `ms` go by; `others` more threads wait in clock_wait(). */
void remoterig_pass(struct remoterig *r, size_t others, int64_t ms);

/* A sandbox, or a container in `sandbox_id`, made by remote_make(); 0 or
 * -errno. */
int remoterig_make(struct remoterig *r, const struct kept *what,
                   char ret_id[KEPT_ID_MAX + 1], struct error *err);
/* One with our labels that nobody wrote down; its id. */
void remoterig_stray(struct remoterig *r, const char *uid,
                     char ret_id[KEPT_ID_MAX + 1]);
/* Any call of an id alone. */
int remoterig_call(struct remoterig *r, enum method_id method, const char *id,
                   unsigned ms, struct grpc_end *ret_end, struct error *err);
/* The state in its last status; UINT32_MAX: there is none. */
uint32_t remoterig_status(struct remoterig *r, const char *id);

#endif
