/* hosts - the host descriptions of advertiser/hosts/, compiled in. */
#ifndef BIGA_ADVERTISER_DESCRIBE_HOSTS_H
#define BIGA_ADVERTISER_DESCRIBE_HOSTS_H

#include <stddef.h>

struct host_shape {
    const char *name; /* "dell-xe9680-bf3": the file name without .host */
    const char *text; /* for hostfile_read() */
};

extern const struct host_shape host_shapes[]; /* ordered by name */
extern const size_t n_host_shapes;

/* NULL when there is none of that name. */
const struct host_shape *host_shape_find(const char *name);

#endif
