/* order - a stream that the extender wants of this node, as it is told:
 *
 *     {"streams":[{"id":"9f86…","kind":"exec|attach|log|portforward",
 *       "namespace":"lab","name":"solver-0","uid":"…","container":"",
 *       "command":["sh"],"stdin":true,"stdout":true,"stderr":true,"tty":false,
 *       "ports":[8080],"follow":false,"previous":false,"timestamps":false,
 *       "tailLines":10,"sinceSeconds":60,"sinceTime":"…","limitBytes":1000}]}
 *
 * Members that are not here are skipped, for the extender may be newer.
 * Pure. */
#ifndef BIGA_ADVERTISER_ACT_STREAM_ORDER_H
#define BIGA_ADVERTISER_ACT_STREAM_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "advertiser/act/card/log_pick.h"
#include "advertiser/act/stream/join.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    ORDER_ANSWER_MAX = 4 << 20, /* bytes of a whole answer */
    ORDERS_MAX = 256,           /* of one answer */
    ORDER_ID_MAX = 64,
    ORDER_ARGS_MAX = 256, /* of a command */
    ORDER_ARG_MAX = 128 << 10,
    ORDER_FAULT_MAX = 256,
};

enum order_kind { ORDER_EXEC, ORDER_ATTACH, ORDER_FORWARD, ORDER_LOG };

struct order {
    char id[ORDER_ID_MAX + 1];
    enum order_kind kind;
    char namespace[64], name[ACT_NAME_MAX + 1], uid[ACT_UID_MAX + 1];
    char container[64];
    const char **argv; /* in the arena */
    size_t n_argv;
    bool in, out, err, tty;
    int32_t ports[JOIN_PORTS_MAX];
    size_t n_ports;
    struct log_want log;
    bool follow, previous;
    int64_t since_s;             /* -1: not said */
    char fault[ORDER_FAULT_MAX]; /* what is wrong with it; "" nothing */
    struct arena arena;
};
void order_destroy(struct order *o); /* NULL allowed */
DEFINE_CLEANUP(order, struct order *, order_destroy)

/* What is wrong with one is its fault, as long as its id can be read; -EINVAL
 * with the path for all else.  The caller owns the list and each order. */
struct orders {
    struct order *list[ORDERS_MAX];
    size_t n;
};
int orders_read(const char *json, size_t size, struct orders *ret_orders,
                struct error *err);
void orders_fini(struct orders *o); /* those that were not taken out (NULL) */

#endif
