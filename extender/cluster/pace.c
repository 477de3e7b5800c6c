#include "extender/cluster/pace.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void pace_init(struct pace *p)
{
    *p = (struct pace){.ripe_ms = INT64_MAX};
}

enum pace_step pace_next(const struct pace *p, int64_t now_ms,
                         int64_t *ret_due_ms)
{
    int64_t wake_ms = most(p->ripe_ms, p->call_ms);
    if (now_ms >= wake_ms)
        return PACE_WAKE;
    if (p->judging)
        return PACE_JUDGE;
    if (p->news && now_ms >= p->judge_ms)
        return PACE_BEGIN;
    *ret_due_ms = p->news ? least(wake_ms, p->judge_ms) : wake_ms;
    return PACE_WAIT;
}

void pace_hear(struct pace *p, int64_t now_ms)
{
    if (!p->news)
        p->judge_ms = most(p->judge_ms, now_ms + PACE_GRACE_MS);
    p->news = true;
}

void pace_begin(struct pace *p)
{
    p->news = false;
    p->judging = true;
}

void pace_judged(struct pace *p, int64_t took_ns, int64_t ripe_ms)
{
    p->spent_ns += took_ns;
    p->ripe_ms = least(p->ripe_ms, ripe_ms);
}

void pace_end(struct pace *p, int64_t now_ms)
{
    int64_t rest_ms = PACE_REST * p->spent_ns / 1000000;
    p->judge_ms = now_ms + most(rest_ms, PACE_GRACE_MS);
    p->spent_ns = 0;
    p->judging = false;
}

void pace_look(struct pace *p, int64_t now_ms)
{
    p->call_ms = now_ms + PACE_LOOK_MS;
}

void pace_call(struct pace *p, int64_t now_ms)
{
    p->call_ms = now_ms + 1000 / PACE_PER_SECOND;
}

void pace_none(struct pace *p, int64_t ripe_ms)
{
    p->ripe_ms = ripe_ms;
}

void pace_idle(struct pace *p, int64_t until_ms)
{
    p->judge_ms = most(p->judge_ms, until_ms);
    p->call_ms = most(p->call_ms, until_ms);
}
