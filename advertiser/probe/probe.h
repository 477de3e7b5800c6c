/* probe - what this host is made of: a topology from the live host, from an
 * hwloc XML, from a /sys tree, or from a host description (schema/hostfile.md).
 *
 * hwloc runs in a child process with a deadline, so that a file which crashes
 * it becomes an error that names the file, and so that the environment
 * variables which steer it never reach the caller's. */
#ifndef BIGA_ADVERTISER_PROBE_PROBE_H
#define BIGA_ADVERTISER_PROBE_PROBE_H

#include "advertiser/describe/cardfile.h"
#include "lib/base/error.h"
#include "model/topo/topo.h"

enum {
    PROBE_XML_MAX = 64 << 20, /* bytes of an hwloc XML */
    PROBE_DEADLINE_MS = 60000,
};

/* At most one is set; all NULL: the live host. */
struct probe_source {
    const char *xml;      /* path of an hwloc XML (version 1 or 2) */
    const char *fsroot;   /* a directory that holds sys/ (HWLOC_FSROOT) */
    const char *hostfile; /* path of a host description, or the name of one
                           * that is compiled in (hosts.h) */
};

/* Build the topology of `node`.  `cards` (or NULL) is the operator's file.
 * Blocks for as long as hwloc takes, at most PROBE_DEADLINE_MS.  Devices
 * beyond the limits of topo.h (the highest PCI addresses) are left out and a
 * line is logged.  The caller owns `*ret_topo`. */
int probe_run(const struct probe_source *source, const char *node,
              const struct cardfile *cards, struct topo **ret_topo,
              struct error *err);

#endif
