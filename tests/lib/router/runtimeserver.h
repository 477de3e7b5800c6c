/* runtimeserver - a remote's runtime as a server of its own (h2server), that
 * keeps whole messages: labels and annotations come back as they were given.
 * It reserves names as containerd does, and makes what it is told in no time;
 * its objects outlive it while it is away. */
#ifndef BIGA_TESTS_LIB_ROUTER_RUNTIMESERVER_H
#define BIGA_TESTS_LIB_ROUTER_RUNTIMESERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "tests/lib/http/h2server.h"

enum { RUNTIMESERVER_OBJECTS = 256 };

struct runtimeserver;
/* On a unix socket of that path. */
struct runtimeserver *runtimeserver_start(const char *socket);
/* On a port of 127.0.0.1, with those keys, whose paths outlive it. */
struct runtimeserver *runtimeserver_start_tls(const struct h2_config *config,
                                              uint16_t *ret_port);
void runtimeserver_stop(struct runtimeserver *s);
/* It has died, and is there again. */
void runtimeserver_down(struct runtimeserver *s);
void runtimeserver_up(struct runtimeserver *s);

/* Calls wait until it is thawed; of one method. */
void runtimeserver_freeze(struct runtimeserver *s, bool frozen);
void runtimeserver_hold(struct runtimeserver *s, const char *method, bool held);
/* How many calls wait so now, whose deadline has not passed. */
unsigned runtimeserver_held(struct runtimeserver *s);
/* The next `times` calls of a method end with `code`; one below 0: they are
 * carried out, and end with -code. */
void runtimeserver_fail(struct runtimeserver *s, const char *method, int code,
                        unsigned times);
/* How often a method was called, as soon as it is. */
unsigned runtimeserver_calls(struct runtimeserver *s, const char *method);
/* From now on it tells events. */
void runtimeserver_events(struct runtimeserver *s, bool has);

/* Instead of what it says to a call, code and message or words of an error;
 * NULL: it is honest again.  On the thread of that call. */
typedef int runtimeserver_lie_f(void *ctx, const char *method, int code,
                                struct str *reply);
void runtimeserver_lie(struct runtimeserver *s, runtimeserver_lie_f *lie,
                       void *ctx);
/* From now on its frames are as ill as that. */
void runtimeserver_fault(struct runtimeserver *s, enum h2_fault fault);

/* What is there of a pod; of all when `uid` is NULL. */
unsigned runtimeserver_count(struct runtimeserver *s, const char *uid);
/* By itself; with `told` an event says so.  A sandbox: 0 is ready. */
void runtimeserver_set(struct runtimeserver *s, const char *id, uint32_t state,
                       bool told);
void runtimeserver_remove(struct runtimeserver *s, const char *id);

#endif
