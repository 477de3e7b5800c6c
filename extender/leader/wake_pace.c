#include "extender/leader/wake_pace.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void wake_pace_init(struct wake_pace *p)
{
    *p = (struct wake_pace){.ripe_ms = INT64_MAX};
}

enum wake_pace_step wake_pace_next(const struct wake_pace *p, int64_t now_ms,
                                   int64_t *ret_due_ms)
{
    int64_t wake_ms = most(p->ripe_ms, p->call_ms);
    if (now_ms >= wake_ms)
        return WAKE_PACE_WAKE;
    if (p->judging)
        return WAKE_PACE_JUDGE;
    if (p->news && now_ms >= p->judge_ms)
        return WAKE_PACE_BEGIN;
    *ret_due_ms = p->news ? least(wake_ms, p->judge_ms) : wake_ms;
    return WAKE_PACE_WAIT;
}

void wake_pace_hear(struct wake_pace *p, int64_t now_ms)
{
    if (!p->news)
        p->judge_ms = most(p->judge_ms, now_ms + WAKE_PACE_GRACE_MS);
    p->news = true;
}

void wake_pace_begin(struct wake_pace *p)
{
    p->news = false;
    p->judging = true;
}

void wake_pace_judged(struct wake_pace *p, int64_t took_ns, int64_t ripe_ms)
{
    p->spent_ns += took_ns;
    p->ripe_ms = least(p->ripe_ms, ripe_ms);
}

void wake_pace_end(struct wake_pace *p, int64_t now_ms)
{
    int64_t rest_ms = WAKE_PACE_REST * p->spent_ns / 1000000;
    p->judge_ms = now_ms + most(rest_ms, WAKE_PACE_GRACE_MS);
    p->spent_ns = 0;
    p->judging = false;
}

void wake_pace_look(struct wake_pace *p, int64_t now_ms)
{
    p->call_ms = now_ms + WAKE_PACE_LOOK_MS;
}

void wake_pace_call(struct wake_pace *p, int64_t now_ms)
{
    p->call_ms = now_ms + 1000 / WAKE_PACE_PER_SECOND;
}

void wake_pace_none(struct wake_pace *p, int64_t ripe_ms)
{
    p->ripe_ms = ripe_ms;
}

void wake_pace_idle(struct wake_pace *p, int64_t until_ms)
{
    p->judge_ms = most(p->judge_ms, until_ms);
    p->call_ms = most(p->call_ms, until_ms);
}
