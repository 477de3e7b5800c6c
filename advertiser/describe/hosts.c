#include "advertiser/describe/hosts.h"

#include <string.h>

const struct host_shape *host_shape_find(const char *name)
{
    for (size_t i = 0; i < n_host_shapes; i++)
        if (strcmp(host_shapes[i].name, name) == 0)
            return &host_shapes[i];
    return NULL;
}
