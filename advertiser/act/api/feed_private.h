/* feed_private - what the files of the feed share: feed.c asks what is wanted,
 * feed_tell.c tells what became of it. */
#ifndef BIGA_ADVERTISER_ACT_API_FEED_PRIVATE_H
#define BIGA_ADVERTISER_ACT_API_FEED_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "advertiser/act/api/feed.h"
#include "lib/base/backoff.h"
#include "lib/base/mem.h"

/* A pod that the actuator does not have, and why. */
struct refusal {
    char uid[64];
    const char *state, *reason; /* constants */
    char message[ACT_MESSAGE_MAX];
};

/* One of the two directions, for what is logged about it. */
struct feed_line {
    struct http_client *http;
    struct backoff backoff;
    struct error last;
    const char *what; /* "pods", "status" */
};

struct feed {
    struct feed_config config;
    struct actuator *a;
    pthread_t asker, teller;
    atomic_bool stopping;
    struct feed_line ask, tell; /* each of its thread */
    uint64_t version;           /* the asker's: of the newest whole answer */
    char next[64];              /* and where the next is to begin */
    bool asks_kept;             /* the extender answers that */
    size_t kept_at;             /* of the logs that are kept: the next to ask */

    pthread_mutex_t lock;
    pthread_cond_t stop_wake, tell_wake;
    bool poked;  /* something may be to tell */
    bool resend; /* everything is */
    struct refusal *refusals;
    size_t n_refusals;
    bool refusals_new;
};

void *feed_ask(void *feed);
void *feed_tell(void *feed);

/* It went wrong, as `err` says: log what is new, and the time to wait. */
int64_t feed_line_failed(struct feed *f, struct feed_line *l,
                         const struct error *err);
void feed_line_works(struct feed *f, struct feed_line *l);
/* 0, or -errno with what a status other than `wanted` says. */
int feed_line_status(struct feed_line *l, const struct http_answer *a,
                     long wanted, struct error *err);
/* False when the feed stops meanwhile. */
bool feed_sleep(struct feed *f, int64_t ms);

#endif
