/* publisher - the machines (publish.h) of one or many nodes on one kept connection.
 *
 * A real host is a fleet of one; labs and the demo publish many simulated
 * hosts from one process.  Requests go out one at a time, the earliest due
 * first.  While there is no answer from the server at all, only the machine
 * that found out tries again, so that an outage is not met with as many
 * retries as there are nodes. */
#ifndef BIGA_ADVERTISER_PUBLISH_PUBLISHER_H
#define BIGA_ADVERTISER_PUBLISH_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/publish/publish.h"
#include "lib/base/error.h"
#include "lib/http/http.h"

enum { PUBLISHER_MAX = 100000 };

/* Sends one request and waits for its answer; as http_call(). */
typedef int publisher_send_f(void *ctx, const struct publish_request *request,
                             struct http_answer *ret_answer, struct error *err);

struct publisher;

/* `config` and `ctx` must outlive it. */
struct publisher *publisher_create(const struct publish_kind *kind,
                                   const struct publish_config *config,
                                   publisher_send_f *send, void *ctx);
void publisher_destroy(struct publisher *f); /* NULL allowed */
DEFINE_CLEANUP(publisher, struct publisher *, publisher_destroy)

/* Add a node (a reference to `topo` is taken); its index, from 0 up. */
size_t publisher_add(struct publisher *f, struct topo *topo, int64_t now_ms);
void publisher_update(struct publisher *f, size_t index, struct topo *topo,
                      int64_t now_ms);
void publisher_notice(struct publisher *f, size_t index,
                      const struct publish_notice *notice, int64_t now_ms);
void publisher_stop(struct publisher *f, bool withdraw, int64_t now_ms);

/* When the next request is due; PUBLISH_NEVER when all are done. */
int64_t publisher_due(const struct publisher *f);
/* Send the request that is due at `now_ms`, if any.  Blocks for as long as
 * `send` does. */
bool publisher_step(struct publisher *f, int64_t now_ms);

size_t publisher_n_published(const struct publisher *f);
/* Done, but slices of some node may be left on the server. */
bool publisher_left_slices(const struct publisher *f);

#endif
