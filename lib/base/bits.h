/* bits - sets of a few things, a bit for each. */
#ifndef BIGA_LIB_BASE_BITS_H
#define BIGA_LIB_BASE_BITS_H

static inline unsigned count_bits(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

#endif
