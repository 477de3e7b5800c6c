/* publish - what the advertiser of one node says to the server, and when.
 *
 * A state machine without I/O or clock: it names the next request and when
 * it is due; the caller sends it and reports the answer.
 *
 *     LOOK      what does the server have of this node?  That decides the
 *               generation
 *     PUT       all slices, one by one
 *     PRUNE     delete slices that the pool no longer has
 *     IDLE      until the heartbeat, which is PUT again, byte for byte: so
 *               it also restores what the server has lost
 *     WITHDRAW  delete all slices
 *     DONE
 *
 * A failure is tried again after a back-off that doubles, with jitter.  A 409
 * means that somebody else publishes this node: at the start it is gone above
 * once, later it is left to win, and tried again slowly. */
#ifndef BIGA_ADVERTISER_PUBLISH_H
#define BIGA_ADVERTISER_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/str.h"
#include "model/slice.h"
#include "model/topo.h"

#define PUBLISH_NEVER INT64_MAX

enum { PUBLISH_PATH_MAX = 320 };

enum publish_state {
    PUBLISH_LOOK,
    PUBLISH_PUT,
    PUBLISH_PRUNE,
    PUBLISH_IDLE,
    PUBLISH_WITHDRAW,
    PUBLISH_DONE,
    PUBLISH_STATES
};
const char *publish_state_name(enum publish_state state); /* "look" … */

struct publish_config {
    const char *boot_id;    /* borrowed; as slice_decode allows it */
    int64_t heartbeat_ms;   /* from the end of one round to the next */
    int64_t backoff_min_ms; /* after the first failure; then doubled */
    int64_t backoff_max_ms; /* also between tries while superseded */
};

struct publish_request {
    const char *method; /* a constant */
    char path[PUBLISH_PATH_MAX];
    struct str body; /* empty: none.  The caller's, reused; str_fini */
};

struct publish_answer {
    long status; /* 0: there was none */
    const char *body;
    size_t body_size;
    const char *error; /* why there was none, or what the body says */
};

struct publisher; /* use from one thread at a time */

/* `config` must outlive it; a reference to `topo` is taken.  `seed` varies
 * the jitter. */
struct publisher *publisher_create(const struct publish_config *config,
                                   struct topo *topo, uint64_t seed,
                                   int64_t now_ms);
void publisher_destroy(struct publisher *p); /* NULL allowed */

/* The topology as it is now.  Nothing happens when its content is equal;
 * else it is published at once under the next generation. */
void publisher_update(struct publisher *p, struct topo *topo, int64_t now_ms);

/* Stop: withdraw what was published (unless somebody else took over), or
 * with `withdraw` false leave it to expire. */
void publisher_stop(struct publisher *p, bool withdraw, int64_t now_ms);

/* When the next request is due; PUBLISH_NEVER when done. */
int64_t publisher_due(const struct publisher *p);

/* The request that is due at `now_ms`; false when none is.  Each one has to
 * be answered before the next. */
bool publisher_next(struct publisher *p, int64_t now_ms,
                    struct publish_request *ret_request);
void publisher_answer(struct publisher *p, int64_t now_ms,
                      const struct publish_answer *answer);

enum publish_state publisher_state(const struct publisher *p);
const struct slice_epoch *publisher_epoch(const struct publisher *p);
const char *publisher_node(const struct publisher *p);
/* All slices were accepted at least once. */
bool publisher_is_published(const struct publisher *p);
bool publisher_is_superseded(const struct publisher *p);
/* DONE, but slices may be left on the server. */
bool publisher_left_slices(const struct publisher *p);

#endif
