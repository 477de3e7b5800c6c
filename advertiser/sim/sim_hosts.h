/* sim_hosts - simulated hosts, spread over threads; each thread publishes its
 * hosts over a connection of its own. */
#ifndef BIGA_ADVERTISER_SIM_SIM_HOSTS_H
#define BIGA_ADVERTISER_SIM_SIM_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/publish/publisher.h"
#include "advertiser/publish/sender.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

enum { SIM_HOSTS_THREADS_MAX = 16, SIM_HOSTS_PREFIX_MAX = 40 };

struct sim_hosts;
/* All that is pointed to must outlive it. */
int sim_hosts_create(const struct publish_kind *kind,
                     const struct publish_config *config,
                     const struct sender_config *sender, size_t n_threads,
                     struct sim_hosts **ret_sim_hosts, struct error *err);
/* Ends the threads, each after the call that it is in. NULL allowed. */
void sim_hosts_destroy(struct sim_hosts *c);
DEFINE_CLEANUP(sim_hosts, struct sim_hosts *, sim_hosts_destroy)

/* Before the start. */
void sim_hosts_add(struct sim_hosts *c, struct topo *topo);
int sim_hosts_start(struct sim_hosts *c, struct error *err);
/* As publisher_stop(), soon. */
void sim_hosts_stop(struct sim_hosts *c, bool withdraw);

size_t sim_hosts_n_nodes(const struct sim_hosts *c);
size_t sim_hosts_n_published(const struct sim_hosts *c);
bool sim_hosts_is_done(const struct sim_hosts *c);
/* After the end: slices of some node may be left on the server. */
bool sim_hosts_left_slices(const struct sim_hosts *c);

/* The n-th of `n_nodes` is called PREFIX and its number,
 * with leading zeros ("host007"), and has the shape that comes next in
 * `shapes`, a comma-separated list of compiled-in host descriptions (""
 * or NULL: all of them).  Fails when a shape or the resulting name is not
 * known or allowed. */
int sim_hosts_topo(const char *prefix, const char *shapes, size_t n,
                   size_t n_nodes, struct topo **ret_topo, struct error *err);

#endif
