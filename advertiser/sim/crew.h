/* crew - simulated hosts, dealt out to threads that each publish a fleet over
 * a connection of their own. */
#ifndef BIGA_ADVERTISER_SIM_CREW_H
#define BIGA_ADVERTISER_SIM_CREW_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/publish/fleet.h"
#include "advertiser/publish/sender.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

enum { CREW_THREADS_MAX = 16 };

struct crew;
/* All that is pointed to must outlive it. */
int crew_create(const struct publish_kind *kind,
                const struct publish_config *config,
                const struct sender_config *sender, size_t n_threads,
                struct crew **ret_crew, struct error *err);
/* Ends the threads, each after the call that it is in. NULL allowed. */
void crew_destroy(struct crew *c);
DEFINE_CLEANUP(crew, struct crew *, crew_destroy)

/* Before the start. */
void crew_add(struct crew *c, struct topo *topo);
int crew_start(struct crew *c, struct error *err);
/* As fleet_stop(), soon. */
void crew_stop(struct crew *c, bool withdraw);

size_t crew_n_nodes(const struct crew *c);
size_t crew_n_published(const struct crew *c);
bool crew_is_done(const struct crew *c);
/* After the end: slices of some node may be left on the server. */
bool crew_left_slices(const struct crew *c);

#endif
