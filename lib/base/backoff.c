#include "lib/base/backoff.h"

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state ? *state : UINT64_C(0x9e3779b97f4a7c15);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}

int64_t backoff_grown(int64_t min_ms, int64_t max_ms, unsigned failures)
{
    int64_t ms = min_ms;
    for (unsigned i = 1; i < failures && ms < max_ms; i++)
        ms *= 2;
    return ms < max_ms ? ms : max_ms;
}

int64_t backoff_fail(struct backoff *b)
{
    int64_t whole = backoff_grown(b->min_ms, b->max_ms, b->failures + 1);
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
