#include "lib/h2/h2_meter.h"

#include <string.h>

enum { /* RFC 9113, 6 */
       FRAME_DATA = 0,
       FRAME_HEADERS = 1,
       FRAME_RST_STREAM = 3,
       FLAG_END_STREAM = 1,
       COST_RESET = 2,
       COST_KIB =
           1024, /* a frame without a request costs as many as it has KiB */
};

void h2_meter_init(struct h2_meter *m, int64_t now_ms)
{
    *m = (struct h2_meter){.budget = H2_BUDGET_MAX, .filled_ms = now_ms};
}

void h2_meter_earn(struct h2_meter *m, unsigned gain)
{
    m->budget = gain < H2_BUDGET_MAX - m->budget ? m->budget + gain
                                                 : H2_BUDGET_MAX;
}

bool h2_meter_pay(struct h2_meter *m, unsigned cost, int64_t now_ms)
{
    int64_t earned = (now_ms - m->filled_ms) * H2_BUDGET_PER_S / 1000;
    if (earned > 0) {
        h2_meter_earn(m, earned < H2_BUDGET_MAX ? (unsigned)earned
                                                : H2_BUDGET_MAX);
        m->filled_ms = now_ms;
    }
    bool paid = cost <= m->budget;
    m->budget = paid ? m->budget - cost : 0;
    return paid;
}

/* The cost of the frame whose header is complete. */
static unsigned frame_cost(const struct h2_meter *m)
{
    uint8_t type = m->head[3];
    if (type == FRAME_HEADERS)
        return 0;
    if (type == FRAME_DATA)
        return m->payload > 0 || m->head[4] & FLAG_END_STREAM ? 0 : 1;
    /* a request was begun for it */
    return type == FRAME_RST_STREAM ? COST_RESET : 1 + m->payload / COST_KIB;
}

/* How many of `size` bytes belong to the preface, or to the frame's head, or
 * to its payload; what they cost is added. */
static size_t feed_part(struct h2_meter *m, const uint8_t *data, size_t size,
                        unsigned *cost)
{
    size_t left = m->preface < H2_PREFACE ? H2_PREFACE - m->preface
                  : m->payload > 0        ? m->payload
                                          : H2_FRAME_HEAD - m->n_head;
    size_t n = size < left ? size : left;
    if (m->preface < H2_PREFACE) {
        m->preface += (unsigned)n;
    } else if (m->payload > 0) {
        m->payload -= (uint32_t)n;
    } else {
        memcpy(m->head + m->n_head, data, n);
        m->n_head += (unsigned)n;
        if (m->n_head == H2_FRAME_HEAD) {
            m->n_head = 0;
            m->payload = (uint32_t)m->head[0] << 16 |
                         (uint32_t)m->head[1] << 8 | m->head[2];
            *cost += frame_cost(m);
        }
    }
    return n;
}

static bool is_between(const struct h2_meter *m)
{
    return (m->preface == 0 || m->preface == H2_PREFACE) && m->n_head == 0 &&
           m->payload == 0;
}

bool h2_meter_feed(struct h2_meter *m, const void *data, size_t size,
                   int64_t now_ms)
{
    const uint8_t *at = data;
    unsigned cost = 0;
    while (size > 0) {
        if (is_between(m))
            m->begun_ms = now_ms;
        size_t n = feed_part(m, at, size, &cost);
        at += n;
        size -= n;
    }
    return cost == 0 || h2_meter_pay(m, cost, now_ms);
}

int64_t h2_meter_partial_ms(const struct h2_meter *m, int64_t now_ms)
{
    return is_between(m) ? 0 : now_ms - m->begun_ms;
}
