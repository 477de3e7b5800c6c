/* score - costs as the 0…10 that kube-scheduler understands. Pure. */
#ifndef BIGA_EXTENDER_JUDGE_SCORE_H
#define BIGA_EXTENDER_JUDGE_SCORE_H

#include <stddef.h>
#include <stdint.h>

enum { SCORE_MAX = 10 };

/* The lowest cost of a request scores 10, the next distinct cost 9, and so
 * on down to 1 for all the rest that fit; what does not fit scores 0.  So a
 * better node never scores lower, and the best is never tied with a worse
 * one: eleven levels cannot say more. */
void score_ranks(const uint32_t *costs, size_t n, uint8_t *ret_scores);

#endif
