#include "model/base/backoff.h"

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state ? *state : UINT64_C(0x9e3779b97f4a7c15);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}

int64_t backoff_fail(struct backoff *b)
{
    int64_t whole = b->min_ms;
    for (unsigned i = 0; i < b->failures && whole < b->max_ms; i++)
        whole *= 2;
    if (whole > b->max_ms)
        whole = b->max_ms;
    if (b->failures < 32) /* doubled beyond any limit */
        b->failures++;
    int64_t half = whole / 2;
    return half +
           (int64_t)(next_random(&b->random) % ((uint64_t)(whole - half) + 1));
}

void backoff_succeed(struct backoff *b)
{
    b->failures = 0;
}
