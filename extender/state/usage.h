/* usage - what a node has left, from its hardware and its allocations. Pure.
 *
 * xPU pods and services are charged what they state on each of their cards.
 * A host pod holds, on each card of its pair, the larger of what it stated
 * and what its xPU pods take.  A card on which nobody of a pair (or no
 * service) has stated a need yet is closed to others: an unknown need is not
 * a small one.  So is a card of unknown size once anyone has it.  An
 * exclusive pod closes its cards.  Devices that are no longer there are left
 * out.  What a foreign claim (claim_use.h) has of a card is taken off as a
 * pod's; a whole card is closed.
 *
 * A service's declared share (model/decide/policy.h) is taken off before anybody
 * else sees the card, as far as the service's own pods do not have it
 * already; shares of higher priority first.  It counts as someone to an
 * exclusive demand, but occupies nothing.  The service's own pods see it as
 * free, also on a card that is closed because a need is not known. */
#ifndef BIGA_EXTENDER_STATE_USAGE_H
#define BIGA_EXTENDER_STATE_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"
#include "extender/state/claim_use.h"
#include "model/decide/decide.h"
#include "model/decide/policy.h"

/* One node and who is on it.  Everything is borrowed. */
struct usage {
    const struct topo *topo;
    const struct shape *shape;
    const char *node;            /* its name: what the policy selects by */
    const struct policy *policy; /* NULL: none */
    const struct allocation *const *allocations;
    size_t n;
    const struct claim_rest *claims; /* foreign */
    size_t n_claims;
};

/* What is left for anyone (`asking` NULL), or as a pod sees it: what its
 * pair's host pod holds is not counted, nor is the closing, sharing and
 * occupying by its pair; to a host pod its xPU pods do not count, since what
 * it asks of a card is for them; to a service's pod its own share does
 * not, nor to any pod what its own claims have. */
void usage_state(const struct usage *u, const struct demand *asking,
                 struct node_state *ret_state);

/* --- services' shares --------------------------------------------------- */
enum share_state {
    SHARE_HELD,  /* in use by its pods or kept free for them */
    SHARE_SHORT, /* others still have some of it: kept as they leave */
    SHARE_NEVER, /* the card cannot hold it (beside those before it), or its
                  * size is not known: nothing is kept */
    SHARE_STATES
};
const char *share_state_name(enum share_state state); /* "held" … */

struct usage_share {
    const struct policy_service *service;
    enum share_state state;
    uint8_t card;                         /* by the node's order */
    uint32_t used_cores, used_memory_mib; /* by the service's pods */
    uint32_t kept_cores, kept_memory_mib; /* free, and only for them */
};
/* The shares of one card, by priority; at most
 * POLICY_SERVICES_MAX into `ret_shares`.  Returns how many. */
size_t usage_shares(const struct usage *u, unsigned card,
                    struct usage_share *ret_shares);

/* Those of all cards. */
void usage_each_share(const struct usage *u,
                      void (*visit)(void *ctx, const struct usage_share *share),
                      void *ctx);

/* The cards whose cores or memory nobody has told. */
uint16_t usage_unsized(const struct topo *topo);

#endif
