/* hash - one fixed, fast 64-bit hash of bytes: no seed, so that the same
 * input gives the same order everywhere.  Not for secrets. */
#ifndef BIGA_LIB_BASE_HASH_H
#define BIGA_LIB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_load(const void *p, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, p, size);
    return word;
}

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Reads overlapping 8-byte words, so that a name of up to 16 bytes takes
 * one multiplication. */
static inline uint64_t hash_bytes(const void *data, size_t size)
{
    const uint64_t k0 = UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t k1 = UINT64_C(0xd6e8feb86659fd93);
    const unsigned char *p = data;
    uint64_t h = k0 ^ size;
    size_t left = size;
    while (left > 16) {
        h = hash_mix(h ^ hash_load(p, 8), k1 ^ hash_load(p + 8, 8));
        p += 16;
        left -= 16;
    }
    uint64_t a = 0, b = 0;
    if (size >= 16) { /* no branch on the rest: it overlaps what was read */
        a = hash_load(p + left - 16, 8);
        b = hash_load(p + left - 8, 8);
    } else if (left >= 8) {
        a = hash_load(p, 8);
        b = hash_load(p + left - 8, 8);
    } else if (left >= 4) {
        a = hash_load(p, 4);
        b = hash_load(p + left - 4, 4);
    } else if (left > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
    }
    return hash_mix(h ^ a ^ k1, b ^ k0);
}

#endif
