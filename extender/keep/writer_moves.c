/* Pods that come to nodes and leave them (moving_pods.h), and what claims have
 * of nodes: what is told again after a start, and so not stored. */
#include <string.h>

#include "extender/judge/schedule.h"
#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/io/clock.h"

struct draft *draft_once(const struct writer *w, struct draft **draft)
{
    if (!*draft)
        *draft = draft_create(w->current);
    return *draft;
}

/* A bind that was decided before it is what counts. */
static void offer(const struct writer *w, struct writer_op *op,
                  struct draft **draft)
{
    struct schedule s;
    schedule_init(&s, w->current, op->demand);
    if (!s.bound)
        draft_offer(draft_once(w, draft), op->demand, op->node,
                    clock_ms() + MOVING_PODS_OFFER_MS);
    else if (strcmp(s.follows_node, op->node) != 0)
        op->result = error_set(
            &op->error, EEXIST, "the pair of pod %s/%s is bound to node %s",
            op->demand->namespace, op->demand->name, s.follows_node);
}

void end_offers(const struct writer *w, const char *uid, struct draft **draft)
{
    int64_t now_ms = clock_ms();
    const struct snapshot *s = w->current;
    uid = uid ? uid : "";
    if (*draft || moving_pods_offer_ends(s->moves, uid, now_ms))
        draft_end_offers(draft_once(w, draft), uid, now_ms);
}

void move_pod(const struct writer *w, struct writer_op *op,
              struct draft **draft)
{
    if (op->kind == WRITER_MOVE)
        draft_move(draft_once(w, draft), op->demand, op->node, op->gone);
    else if (op->kind == WRITER_OFFER)
        offer(w, op, draft);
    else if (op->kind == WRITER_FREE)
        end_offers(w, op->uid, draft);
    else if (op->kind == WRITER_ADOPT)
        end_offers(w, op->allocation->demand.uid, draft);
}

/* Of a claim that was known before `old` is ours. */
static void forget_claim(struct writer *w, struct claim_use *old,
                         struct draft **draft)
{
    (void)strmap_remove(&w->claims, old->key);
    draft_drop_claim(draft_once(w, draft), old);
    claim_use_unref(old);
}

void note_claim(struct writer *w, struct writer_op *op, struct draft **draft)
{
    if (op->kind != WRITER_CLAIM)
        return;
    struct claim_use *claim = op->claim;
    struct claim_use *old = strmap_get(&w->claims, claim->key);
    if (old && !op->gone && claim_use_is_same(old, claim))
        return;
    if (old)
        forget_claim(w, old, draft);
    if (op->gone)
        return;
    (void)strmap_put(&w->claims, claim->key, claim_use_ref(claim));
    draft_put_claim(draft_once(w, draft), claim);
}
