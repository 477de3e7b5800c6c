/* hostfile - a host in a few lines, written by a person: packages, NUMA
 * nodes, host bridges, switches, cards, GPUs and NICs (schema/hostfile.md). */
#ifndef BIGA_ADVERTISER_DESCRIBE_HOSTFILE_H
#define BIGA_ADVERTISER_DESCRIBE_HOSTFILE_H

#include <stddef.h>

#include "lib/base/error.h"
#include "model/topo/topo.h"

enum {
    HOSTFILE_SIZE_MAX = 256 << 10, /* bytes */
    HOSTFILE_LINES_MAX = 4096,
    HOSTFILE_LINE_MAX = 512, /* bytes */
};

/* The topology of `node`, which is described by `text`.  Errors name the
 * line.  The caller owns `*ret_topo`. */
int hostfile_read(const char *text, size_t size, const char *node,
                  struct topo **ret_topo, struct error *err);

#endif
