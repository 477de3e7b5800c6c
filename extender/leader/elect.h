/* elect - the thread that holds, or waits for, the Lease of the replica that
 * binds. */
#ifndef BIGA_EXTENDER_LEADER_ELECT_H
#define BIGA_EXTENDER_LEADER_ELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

struct elect_config {
    const struct kube_config *kube; /* outlives it */
    const char *namespace, *name;   /* of the Lease: "biga-extender" */
    const char *identity;           /* "POD_UID": new for every process */
    bool alone; /* there is no other replica: no Lease, only `lead` */
    /* Called on elect's thread.  `lead` returns 0 when this replica is ready to
     * bind, and elect_holds() becomes true, or -EAGAIN to be called again in a
     * moment.  `follow`: another replica may lead now. */
    int (*lead)(void *ctx);
    void (*follow)(void *ctx);
    void *ctx;
    /* of election_config; 0: ELECTION_DURATION_MS … (tests) */
    int64_t duration_ms, renew_ms, deadline_ms;
};

struct elect;
int elect_start(const struct elect_config *config, struct elect **ret_elect,
                struct error *err);
/* Let the Lease expire at the end instead of giving it back: a call whose
 * answer was lost may still be carried out.  Any thread. */
void elect_keep(struct elect *e);
/* Gives the Lease back if it is ours, so that the next leader need not wait.
 * NULL allowed. */
void elect_stop(struct elect *e);
DEFINE_CLEANUP(elect, struct elect *, elect_stop)

/* May we act as the leader for a call that takes up to `call_ms`?  Any
 * thread; asked right before every write. */
bool elect_holds(struct elect *e, int64_t call_ms);
/* Who leads as far as we know: "" nobody.  Any thread. */
void elect_leader(struct elect *e, char ret_identity[254]);
/* Did the last call fail?  Then which it was, why, and what to do.  Any
 * thread. */
bool elect_trouble(struct elect *e, struct error *ret_trouble);

#endif
