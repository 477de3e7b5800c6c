/* demo_fabric - the switches above the demo's hosts.  Hosts are cabled to
 * leaves in turn, as where names do not follow racks; five leaves hang on a
 * spine, and all spines on one core.  Pure. */
#ifndef BIGA_CLI_DEMO_DEMO_FABRIC_H
#define BIGA_CLI_DEMO_DEMO_FABRIC_H

#include <stddef.h>

#include "lib/base/str.h"

enum {
    DEMO_LEAF_HOSTS = 7,   /* on one leaf, at most */
    DEMO_SPINE_LEAVES = 5, /* on one spine, at most */
};

/* With so many hosts, which are counted from 0 in the order of their
 * names. */
size_t demo_n_leaves(size_t n_hosts);
size_t demo_leaf(size_t host, size_t n_hosts);
static inline size_t demo_spine(size_t leaf)
{
    return leaf / DEMO_SPINE_LEAVES;
}

/* As the extender's setting fabric reads it (schema/fabric.md), with the
 * names that biga-advertiser --fleet gives. */
void demo_fabric_write(size_t n_hosts, struct str *out);

#endif
