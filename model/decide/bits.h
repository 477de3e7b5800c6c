/* bits - sets of the cards, GPUs or NICs of a host, a bit for each. */
#ifndef BIGA_MODEL_DECIDE_BITS_H
#define BIGA_MODEL_DECIDE_BITS_H

static inline unsigned count_bits(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

#endif
