/* reprobe - look at the host on a thread of its own, so that a slow look
 * delays no heartbeat. */
#ifndef BIGA_ADVERTISER_PROBE_REPROBE_H
#define BIGA_ADVERTISER_PROBE_REPROBE_H

#include "advertiser/probe/probe.h"
#include "lib/base/error.h"

struct reprobe_config {
    struct probe_source source; /* texts outlive the reprobe */
    const char *node;
    const char *card_file; /* NULL or "": none; read at each look */
};

/* One look, on the caller's thread. */
int reprobe_run(const struct reprobe_config *config, struct topo **ret_topo,
                struct error *err);

struct reprobe;
int reprobe_create(const struct reprobe_config *config,
                   struct reprobe **ret_reprobe, struct error *err);
/* A look that is under way is left to itself.  NULL allowed. */
void reprobe_destroy(struct reprobe *r);
DEFINE_CLEANUP(reprobe, struct reprobe *, reprobe_destroy)

/* Begin a look; while one is under way, another one follows it. */
int reprobe_start(struct reprobe *r, struct error *err);
/* Readable when a look has ended. */
int reprobe_fd(const struct reprobe *r);
/* Take the result of the look that has ended: as reprobe_run(). */
int reprobe_finish(struct reprobe *r, struct topo **ret_topo,
                   struct error *err);

#endif
