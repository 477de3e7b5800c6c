/* What the readers of fabrics and fabric.c share; for them and their tests.
 *
 * Each reader fills a graph: switches, links between them, and ports of hosts
 * on them.  fabric_read() derives the domains from the graphs, one by one,
 * and joins them. */
#ifndef BIGA_MODEL_FABRIC_PRIVATE_H
#define BIGA_MODEL_FABRIC_PRIVATE_H

#include <stdatomic.h>

#include "model/fabric.h"

struct fabric_guid {
    uint64_t guid;
    uint32_t host;
};

struct fabric {
    atomic_uint refs;
    unsigned n_tiers;
    struct fabric_domain *domains; /* by tier, then by name */
    size_t n_domains;
    struct fabric_host *hosts; /* by name */
    size_t n_hosts;
    struct fabric_guid *guids; /* by guid; each once */
    size_t n_guids;
    uint64_t hash;
    struct arena arena; /* names and ports */
};

/* Reads "0c42:a103:00b1:2fd4", "0x0c42…" or bare hex, 16 digits of it at
 * most.  False when it is no such thing or zero. */
bool fabric_guid_parse(const char *text, uint64_t *ret_guid);

#endif
