/* event_feed - what GetContainerEvents tells of remotes: whoever notices
 * something puts in the message, each caller of that stream takes all that came
 * since it began.  Any thread.  Who does not take his messages in time loses
 * them all, and is told so: he has to end, and list what there is. */
#ifndef BIGA_ROUTER_SERVE_EVENT_FEED_H
#define BIGA_ROUTER_SERVE_EVENT_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

enum {
    EVENT_FEED_SIZE = 4 << 20, /* bytes that wait for one reader */
    EVENT_FEED_READERS = 16,
};

struct event_feed;
struct event_feed *event_feed_create(void);
/* Nobody reads any more. NULL allowed. */
void event_feed_destroy(struct event_feed *f);
DEFINE_CLEANUP(event_feed, struct event_feed *, event_feed_destroy)

bool event_feed_is_read(struct event_feed *f); /* by anybody */
/* Copied for each reader. */
void event_feed_put(struct event_feed *f, const void *message, size_t size);

struct event_reader;
/* `wake` is called after each put(), on the thread of that; it must not block,
 * nor call back.  NULL: there are EVENT_FEED_READERS. */
struct event_reader *event_feed_join(struct event_feed *f,
                                     void (*wake)(void *ctx), void *ctx);
void event_feed_leave(struct event_feed *f, struct event_reader *r);
/* The oldest message that was not taken, into `ret_message`, which is emptied
 * first: 1; 0: there is none; -EOVERFLOW: messages were lost. */
int event_feed_take(struct event_feed *f, struct event_reader *r,
                    struct str *ret_message);

#endif
