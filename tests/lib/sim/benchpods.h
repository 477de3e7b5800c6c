/* benchpods - pods as the API server of a cluster tells of them, and what a
 * cluster's source makes of them for lists of jobs. */
#ifndef BIGA_TESTS_LIB_SIM_BENCHPODS_H
#define BIGA_TESTS_LIB_SIM_BENCHPODS_H

#include "extender/pods/pod_source.h"

struct cluster_ps;
struct cluster_ps *benchpods_create(void);
void benchpods_destroy(struct cluster_ps *c); /* NULL allowed */
/* A pod that runs, the first time, or anew. */
void benchpods_put(struct cluster_ps *c, const struct demand *pod,
                   const char *node);
struct pod_source benchpods_source(struct cluster_ps *c);

#endif
