/* bits - sets of the cards, GPUs or NICs of a host, a bit for each. */
#ifndef BIGA_MODEL_DECIDE_BITS_H
#define BIGA_MODEL_DECIDE_BITS_H

#include <stdint.h>

static inline unsigned count_bits(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

/* The lowest `n` of them, or all there are. */
static inline uint16_t lowest_bits(unsigned from, unsigned n)
{
    unsigned taken = 0;
    for (; n; n--, from &= from - 1)
        taken |= from & -from;
    return (uint16_t)taken;
}

#endif
