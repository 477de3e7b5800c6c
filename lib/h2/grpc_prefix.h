/* grpc_prefix - what stands before each message of gRPC: a flag byte (1:
 * compressed) and the size, big-endian. */
#ifndef BIGA_LIB_H2_GRPC_PREFIX_H
#define BIGA_LIB_H2_GRPC_PREFIX_H

#include <stddef.h>

#include "lib/base/error.h"

enum { GRPC_PREFIX = 5 };
void grpc_prefix(size_t size, unsigned char ret_prefix[GRPC_PREFIX]);

/* The size that a whole prefix announces.  -ENOTSUP: it is compressed; -EPROTO:
 * no such flags are known; -EMSGSIZE: over `max`. */
int grpc_prefix_read(const unsigned char prefix[GRPC_PREFIX], size_t max,
                     size_t *ret_size, struct error *err);

#endif
