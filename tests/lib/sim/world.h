/* world - an extender in this process with simulated nodes, for tests. */
#ifndef BIGA_TESTS_LIB_SIM_WORLD_H
#define BIGA_TESTS_LIB_SIM_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "extender/server.h"
#include "lib/base/jscan.h"
#include "lib/base/str.h"
#include "model/topo/topo.h"
#include "tests/lib/http/rawclient.h"

/* Free ports, in memory, the default settings. */
struct server_config world_config(void);
/* A server of that. */
struct server *world_start(void);
/* With its state in `dir`. */
struct server *world_start_in(const char *dir);

/* Publish `n_nodes` hosts of simhost.h, "node000" …, over HTTP; asserts
 * success. */
void world_publish(struct server *s, unsigned n_nodes, unsigned n_cards);

/* One host as it is, of so many slices as it takes; asserts success. */
void world_publish_topo(struct server *s, const struct topo *topo,
                        int64_t generation);

/* One request on a connection of its own; its status. */
int world_call(struct server *s, enum server_listener listener,
               const char *method, const char *path, struct jtext body,
               struct raw_reply *ret_reply);

/* A pod of the contract as JSON.  NULL job: alone. */
struct world_pod {
    const char *name, *role, *job;
    int pair, cards, gpus, cores, memory_mib;
    const char *align;
};
void world_pod_json(const struct world_pod *pod, struct str *out);

/* {"Pod":…,"Nodes":null,"NodeNames":[…first n nodes…]} */
void world_args_json(const struct world_pod *pod, unsigned n_nodes,
                     struct str *out);

#endif
