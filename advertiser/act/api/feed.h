/* feed - what the extender wants of this node, and what became of it.
 *
 * One thread asks `GET /v1/nodes/NODE/pods` again and again, where the
 * extender answers once it has news, and tells the actuator; another posts to
 * `/v1/nodes/NODE/status` what has changed, at most some times a second.
 *
 * While there is no answer, or none that can be believed, everything goes on
 * as last known: a pod ends because a whole answer does not have it, and for
 * no other reason. */
#ifndef BIGA_ADVERTISER_ACT_API_FEED_H
#define BIGA_ADVERTISER_ACT_API_FEED_H

#include <stdint.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/usage/usage.h"
#include "lib/base/error.h"
#include "lib/http/http.h"

/* Whose pods those are that it wants. */
#define FEED_OWNER "extender"

enum {
    FEED_BACKOFF_MIN_MS = 500,
    /* An extender that is back hears of what runs within this time; up to then
     * it shows pods as wanted. */
    FEED_BACKOFF_MAX_MS = 10000,
};

struct feed_config {
    struct http_config http; /* the extender's publish listener; `stop` and
                              * answer_max are the feed's own.  Texts outlive
                              * the feed */
    const char *node, *boot_id;
    struct usage *usage; /* what pods and places use; NULL: nobody looks */
    /* 0: as said; tests are in a hurry */
    unsigned wait_s;        /* 25: how long an answer may take, at most 30 */
    int64_t backoff_min_ms; /* FEED_BACKOFF_MIN_MS */
    int64_t backoff_max_ms; /* FEED_BACKOFF_MAX_MS: after failures in a row;
                             * from half of it to all of it, so that nodes do
                             * not come back together */
    int64_t gap_ms;         /* 200: from one status to the next */
    int64_t again_ms;       /* 2000: until what could not be wanted for a
                                * reason that passes is tried again */
};

struct feed;
/* The actuator knows its places already.  `config` is copied. */
int feed_start(struct actuator *a, const struct feed_config *config,
               struct feed **ret_feed, struct error *err);
/* A pod or a place has changed, or what they use.  Any thread; for actuator_config.changed. NULL
 * allowed. */
void feed_poke(struct feed *f);
/* Within a second or so; what is wanted stays wanted. NULL allowed. */
void feed_stop(struct feed *f);

#endif
