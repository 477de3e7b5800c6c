/* h2_meter - watches what a client sends over an HTTP/2 connection, frame
 * by frame, and what that may cost.  Pure.
 * Frames that carry no request (PING, SETTINGS, RST_STREAM, PRIORITY, empty
 * DATA, unknown ones …) are paid from a budget that fills up with time; a
 * client that lives on them has none left soon. */
#ifndef BIGA_LIB_H2_H2_METER_H
#define BIGA_LIB_H2_H2_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    H2_PREFACE = 24,   /* bytes that a client opens with (RFC 9113, 3.4) */
    H2_FRAME_HEAD = 9, /* (4.1) */
    H2_BUDGET_MAX = 1000,
    H2_BUDGET_PER_S = 100,
    /* a sent DATA frame gives back: WINDOW_UPDATEs tell that it was read */
    H2_BUDGET_PER_DATA = 8,
};

struct h2_meter {
    unsigned preface; /* bytes of it that came */
    unsigned n_head;  /* bytes of the present frame's head that came */
    uint8_t head[H2_FRAME_HEAD];
    uint32_t payload; /* bytes of it that have to come */
    int64_t begun_ms; /* when its first byte came */
    unsigned budget;
    int64_t filled_ms;
};
void h2_meter_init(struct h2_meter *m, int64_t now_ms);
/* These bytes came.  False: the budget is used up. */
bool h2_meter_feed(struct h2_meter *m, const void *data, size_t size,
                   int64_t now_ms);
bool h2_meter_pay(struct h2_meter *m, unsigned cost, int64_t now_ms);
void h2_meter_earn(struct h2_meter *m, unsigned gain);
/* How long the client has been at one frame by now; 0: it is between two. */
int64_t h2_meter_partial_ms(const struct h2_meter *m, int64_t now_ms);

#endif
