/* usage - how many cores and how much memory pods and places use, as their
 * runtimes tell: asked by a thread of its own, which the actuator does not
 * notice. */
#ifndef BIGA_ADVERTISER_ACT_USAGE_USAGE_H
#define BIGA_ADVERTISER_ACT_USAGE_USAGE_H

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/usage/usage_book.h"

enum {
    USAGE_MS = 10000,       /* from one look to the next */
    USAGE_CALL_MS = 1500,   /* for a runtime's answer */
    USAGE_AFTER_MS = 60000, /* until one is asked again that did not give any */
    USAGE_OLD_MS = 30000,   /* without an answer: what it said is not told any
                             * more */
};

struct usage_config {
    int64_t look_ms, after_ms, old_ms; /* 0: as above (tests) */
    void (*changed)(void *ctx); /* there is something to tell; that thread */
    void *ctx;
};
struct usage;
int usage_start(struct actuator *a, const struct usage_config *config,
                struct usage **ret_usage, struct error *err);
/* Waits for a runtime's answer.  NULL allowed. */
void usage_stop(struct usage *u);

/* What is shown of a pod, or of a place when `uid` is NULL; false: it is not
 * known, and `ret_now` has the version since when, 0 when it never was.  Any
 * thread; `u` NULL: nothing is. */
bool usage_find(struct usage *u, const char *place, const char *uid,
                struct usage_now *ret_now);
/* Grows with what is to be told. */
uint64_t usage_version(struct usage *u);

#endif
