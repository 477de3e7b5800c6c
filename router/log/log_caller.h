/* log_caller - calls a remote's helper for log_copier, over CRI, with a
 * connection for each lane of each remote. */
#ifndef BIGA_ROUTER_LOG_LOG_CALLER_H
#define BIGA_ROUTER_LOG_LOG_CALLER_H

#include "lib/grpc/grpc.h"
#include "router/log/log_copier.h"

/* Who knows the remotes; called from the threads of log_copier. */
struct log_caller_source {
    /* How it is reached, and the id of the helper's container.  Texts of the
     * configuration are borrowed, and must stay until the caller is destroyed
     * (or `*ret_generation` has become another, and a call has returned since):
     * with another generation the connections are made anew.  -EAGAIN: there is
     * no helper (yet). */
    int (*find)(void *ctx, const char *remote, struct grpc_config *ret_config,
                unsigned *ret_generation, char ret_helper[CRI_ID_MAX + 1],
                struct error *err);
    void *ctx;
};

struct log_caller;
struct log_caller *log_caller_create(const struct log_caller_source *source);
/* After the copier's end. */
void log_caller_destroy(struct log_caller *c);
DEFINE_CLEANUP(log_caller, struct log_caller *, log_caller_destroy)

/* What log_copier_config.exec is to be, with the caller as its ctx. */
log_exec_f log_caller_exec;
/* The same of rest: ends that lane's connection. */
void log_caller_rest(struct log_caller *c, const char *remote, unsigned lane);

#endif
