/* card_losses - the pods on cards, and what is to be done about those whose
 * card is lost: it is told on the pod, and told back when the card is there
 * again; and after the pod's patience (model/pod/patience.h) it is evicted.
 *
 * When a card was lost is the time of the pod's own condition, so that it
 * outlives every leader.  No I/O, no clock: its caller
 * (card_loss_controller.h) carries out what card_losses_next() names.  Times
 * are those of the wall (`s`) for what is on pods, and of the monotonic clock
 * (`ms`) for tries. */
#ifndef BIGA_EXTENDER_LEADER_CARD_LOSSES_H
#define BIGA_EXTENDER_LEADER_CARD_LOSSES_H

#include "extender/pods/kube_pod.h"
#include "extender/state/card_sight.h"

enum {
    CARD_LOSSES_TEXT_MAX = 512,
    CARD_LOSSES_SHOWN_MS = 10000, /* what was written and is not seen in the
                                   * watch by then is written again */
    CARD_LOSSES_RETRY_MS = 5000,  /* what failed; doubled each time, up to */
    CARD_LOSSES_RETRY_MAX_MS = 60000,
};

enum card_losses_kind { CARD_LOSSES_LOST, CARD_LOSSES_BACK, CARD_LOSSES_EVICT };

struct card_losses_action {
    enum card_losses_kind kind;
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1];
    char uid[DEMAND_UID_MAX + 1];
    int64_t at_s;       /* the time to write */
    const char *reason; /* a constant: "CardLost" … */
    char text[CARD_LOSSES_TEXT_MAX];
};

/* What is known of a pod's cards now; as card_sight_of(). */
struct card_losses_view {
    enum card_sight (*look)(void *ctx, const char *uid,
                            char ret_card[TOPO_ID_MAX + 1]);
    void *ctx;
    int64_t now_ms, now_s;
};

struct card_losses;
/* `patience_s`: of pods that say nothing; PATIENCE_NEVER is allowed. */
struct card_losses *card_losses_create(int64_t patience_s);
void card_losses_destroy(struct card_losses *c); /* NULL allowed */

/* A pod as it is now; those that are no business of ours are passed over. */
void card_losses_put(struct card_losses *c, const struct kube_pod *pod,
                     int64_t now_ms);
void card_losses_gone(struct card_losses *c, const char *uid);

/* Goes on with a round over all pods.  The next thing to do, to be reported
 * before the next is asked for; or false at the end of the round, with when
 * there will be something though nothing changes (INT64_MAX: never). */
bool card_losses_next(struct card_losses *c, const struct card_losses_view *v,
                      struct card_losses_action *ret_action,
                      int64_t *ret_due_ms);
/* 0: done; -ENOENT: the pod is gone; -errno: it is tried again. */
void card_losses_report(struct card_losses *c,
                        const struct card_losses_action *action, int result,
                        int64_t now_ms);

size_t card_losses_n_pods(const struct card_losses *c);
size_t card_losses_n_lost(const struct card_losses *c); /* that are told so */

#endif
