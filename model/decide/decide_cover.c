#include "model/decide/decide_cover.h"

#include <string.h>

unsigned cover_serve(struct cover *cover, unsigned covered, unsigned n)
{
    unsigned most = 0;
    for (unsigned d = 0; d < n; d++) {
        unsigned served = 0;
        for (unsigned c = covered; c; c &= c - 1) {
            unsigned at = (unsigned)__builtin_ctz(c);
            served |= ((unsigned)cover->near[at] >> d & 1u) << at;
        }
        cover->served[d] = (uint16_t)served;
        unsigned size = (unsigned)__builtin_popcount(served);
        most = size > most ? size : most;
    }
    return most;
}

void cover_prepare(struct cover *cover, unsigned n_covered, unsigned n)
{
    cover->useful = 0;
    for (unsigned d = 0; d < n; d++) {
        unsigned served = cover->served[d];
        bool dominated = served == 0;
        for (unsigned e = 0; e < n && !dominated; e++)
            dominated = e != d && (served & ~cover->served[e]) == 0 &&
                        (served != cover->served[e] || e < d);
        if (!dominated)
            cover->useful |= (uint16_t)(1u << d);
    }
    memset(cover->known, 0, (size_t)1 << n_covered);
}

/* By its lowest member: one of the devices near that is in the set. */
unsigned cover_size(struct cover *cover, unsigned set)
{
    if (set == 0)
        return 0;
    uint8_t *known = &cover->known[set];
    if (*known)
        return *known == COVER_NONE ? COVER_NONE : *known - 1u;
    unsigned best = COVER_NONE;
    unsigned devices = cover->near[__builtin_ctz(set)] & cover->useful;
    for (unsigned d = devices; d; d &= d - 1) {
        unsigned rest = set & ~(unsigned)cover->served[__builtin_ctz(d)];
        unsigned size = cover_size(cover, rest);
        if (size != COVER_NONE && size + 1 < best)
            best = size + 1;
    }
    *known = (uint8_t)(best == COVER_NONE ? COVER_NONE : best + 1);
    return best;
}

void sets_begin(struct sets *sets, unsigned from, unsigned n)
{
    sets->n_devices = 0;
    for (unsigned d = from; d; d &= d - 1)
        sets->device[sets->n_devices++] = (unsigned)__builtin_ctz(d);
    sets->at = (1u << n) - 1;
}

unsigned sets_next(struct sets *sets)
{
    unsigned set = 0, at = sets->at;
    if (at >= 1u << sets->n_devices)
        return 0;
    for (unsigned i = at; i; i &= i - 1)
        set |= 1u << sets->device[__builtin_ctz(i)];
    /* the next number with as many bits */
    unsigned low = at & -at, up = at + low;
    sets->at = (((up ^ at) >> 2) / low) | up;
    return set;
}
