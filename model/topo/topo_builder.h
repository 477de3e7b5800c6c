/* topo_builder - collects copies of devices in any order; topo_build() sorts
 * and checks them. */
#ifndef BIGA_MODEL_TOPO_TOPO_BUILDER_H
#define BIGA_MODEL_TOPO_TOPO_BUILDER_H

#include <stdint.h>

#include "model/topo/topo.h"

struct topo_builder;
struct topo_builder *topo_builder_create(const char *node);
void topo_builder_destroy(struct topo_builder *b); /* NULL allowed */
DEFINE_CLEANUP(topo_builder, struct topo_builder *, topo_builder_destroy)

/* Copies `device`, `own` (NULL: nothing is known) and everything they point
 * to; NULL texts become "". */
void topo_builder_add(struct topo_builder *b, const struct device *device,
                      const struct identity *own);
void topo_builder_distance(struct topo_builder *b, int numa_a, int numa_b,
                           unsigned distance);
/* TOPO_RUNS_UNTOLD when it is not called. */
void topo_builder_runs(struct topo_builder *b, enum topo_runs runs);

/* Checks: node name is a DNS subdomain of at most 253 characters, ids are
 * unique DNS labels, counts within the limits above (more than
 * TOPO_CARDS_MAX cards or TOPO_GPUS_MAX GPUs is an error), texts within
 * TOPO_TEXT_MAX and valid UTF-8, functions and memory as slices take them.  On
 * success the caller owns `*ret_topo`; the builder is left empty either way
 * and still to be destroyed. */
int topo_build(struct topo_builder *b, struct topo **ret_topo,
               struct error *err);

/* The same topology with other devices: `change` is called of a copy of each
 * and of its identity.  As topo_build(). */
typedef void topo_change_f(void *ctx, struct device *device,
                           struct identity *own);
int topo_change(const struct topo *topo, topo_change_f *change, void *ctx,
                enum topo_runs runs, struct topo **ret_topo, struct error *err);

#endif
