/* fit_takes - what pods take, kept once for all that take the same, with
 * resources by number.
 *
 * Not thread-safe. */
#ifndef BIGA_EXTENDER_FIT_FIT_TAKES_H
#define BIGA_EXTENDER_FIT_FIT_TAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/fit/pod_takes.h"
#include "lib/base/strmap.h"

/* A resource that comes after so many others is not known: no node has it, no
 * pod takes it. */
enum { FIT_RESOURCES_MAX = 4096, FIT_RESOURCE_NONE = FIT_RESOURCES_MAX };

struct fit_takes {
    struct strmap resources; /* number + 1, by name */
    char *names[FIT_RESOURCES_MAX];
    uint32_t n_resources;
    struct strmap all; /* struct fit_take, by its text */
};
void fit_takes_fini(struct fit_takes *t); /* when all were dropped */

/* The number of a resource, the same from now on; or FIT_RESOURCE_NONE. */
uint32_t fit_takes_resource(struct fit_takes *t, const char *name);
/* The same of one that is known, else FIT_RESOURCE_NONE: for who only asks. */
uint32_t fit_takes_find(const struct fit_takes *t, const char *name);

struct fit_take {
    uint32_t refs;
    struct pod_takes takes;
    uint32_t resources[POD_TAKES_RESOURCES_MAX];
    char *text;
};
/* For one holder more. */
struct fit_take *fit_takes_take(struct fit_takes *t,
                                const struct pod_takes *takes);
void fit_takes_drop(struct fit_takes *t, struct fit_take *take);

#endif
