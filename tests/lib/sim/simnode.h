/* simnode - a node without machines: it asks an extender for its pods, has
 * them run and end as a node does, and says so. */
#ifndef BIGA_TESTS_LIB_SIM_SIMNODE_H
#define BIGA_TESTS_LIB_SIM_SIMNODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/applied.h"
#include "extender/server.h"
#include "lib/base/str.h"

enum { SIMNODE_PODS_MAX = 256 };

struct simnode_pod {
    char uid[APPLIED_UID_SIZE], name[64], place[64], pair[128];
    bool host, stop, exclusive;
    bool fails;   /* it will not start */
    bool ends;    /* it will end well once it runs */
    bool breaks;  /* it will fail once it runs */
    bool ran;     /* it has run */
    bool bare;    /* nothing is known of its containers */
    bool stale;   /* its card does not answer */
    bool changed; /* since it was told */
    bool wanted;  /* by the last answer */
    enum pod_state state;
    char env[1024];
};

struct simnode {
    struct server *server;
    char name[32];
    uint64_t version;
    bool resend; /* the last answer asked for everything */
    struct simnode_pod pods[SIMNODE_PODS_MAX];
    size_t n;
};

void simnode_init(struct simnode *n, struct server *server, const char *name);
/* Ask (and wait as long); asserts that nobody is forgotten who still is here.
 * Returns how many pods there are to be. */
size_t simnode_ask(struct simnode *n, unsigned wait_s);
/* Each pod goes one step of its life; true when something has changed. */
bool simnode_step(struct simnode *n);
/* Say what has changed, or all. */
void simnode_tell(struct simnode *n, bool all);
/* Ask, step and tell until nothing changes, with the extender having settled
 * each time. */
void simnode_settle(struct simnode *nodes, size_t n_nodes);
struct simnode_pod *simnode_find(struct simnode *n, const char *pod);

/* Does no exclusive card have pods of two pairs that are not gone?  Else says
 * which in `why`. */
bool simnode_check(const struct simnode *n, struct str *why);

#endif
