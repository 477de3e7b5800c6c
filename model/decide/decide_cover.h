/* decide_cover - the fewest devices of one kind so that each of a set of
 * another kind has one near it.
 *
 * Devices of both kinds are bits.  What is near is for the caller to say;
 * it need not be transitive. */
#ifndef BIGA_MODEL_DECIDE_DECIDE_COVER_H
#define BIGA_MODEL_DECIDE_DECIDE_COVER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    COVER_SIDE_MAX = 16,    /* devices of one kind */
    COVER_NONE = UINT8_MAX, /* no set reaches them */
};

struct cover {
    uint16_t near[COVER_SIDE_MAX];   /* devices near each to be covered, and */
    uint16_t served[COVER_SIDE_MAX]; /* the other way: whom each serves */
    uint16_t useful; /* those whom not another one serves as well */
    uint8_t *known;  /* by set to be covered: 0 not known, COVER_NONE, or one
                      * more than the size; 1 << n bytes of the caller's */
};

/* After `near` was filled in for `covered`: whom each device below `n` serves.
 * Returns the most that one of them does. */
unsigned cover_serve(struct cover *cover, unsigned covered, unsigned n);
/* After that: make ready for sets of bits below `n_covered`. */
void cover_prepare(struct cover *cover, unsigned n_covered, unsigned n);
/* The size of the smallest that covers `set`, a part of `covered`; when it is
 * prepared. */
unsigned cover_size(struct cover *cover, unsigned set);
/* The devices near any of `set`; needs no preparation. */
static inline unsigned cover_near(const struct cover *cover, unsigned set)
{
    unsigned devices = 0;
    for (unsigned c = set; c; c &= c - 1)
        devices |= cover->near[__builtin_ctz(c)];
    return devices;
}

/* Has each of `set` one of `devices` near it?  Needs no preparation. */
static inline bool cover_holds(const struct cover *cover, unsigned set,
                               unsigned devices)
{
    for (unsigned c = set; c; c &= c - 1)
        if (!(cover->near[__builtin_ctz(c)] & devices))
            return false;
    return true;
}

/* All sets of `n` of `from`, 1 or more, in the order of their bits: at most
 * 12,870. */
struct sets {
    unsigned device[COVER_SIDE_MAX], n_devices;
    unsigned at; /* the next one, as bits of `device` */
};
void sets_begin(struct sets *sets, unsigned from, unsigned n);
/* 0 behind the last. */
unsigned sets_next(struct sets *sets);

#endif
