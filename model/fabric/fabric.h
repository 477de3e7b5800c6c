/* fabric - the switches above the hosts, as nested domains.
 *
 * Tier 0 is the leaf.  A domain of tier t is a set of leaf switches that
 * reach each other without going above tier t; domains of one tier are
 * disjoint, and each lies in one domain of the next tier (so fat trees,
 * whose switches are no tree, have domains that are).  A host hangs on one
 * domain of tier 0: its leaf switch, or, with several ports on several
 * switches (rails), the set of them.  A host that no source places hangs on
 * none and is near to none.
 *
 * Built once from text (fabric_read), then immutable and ref-counted.  Pure:
 * no I/O, clock, thread or log. */
#ifndef BIGA_MODEL_FABRIC_FABRIC_H
#define BIGA_MODEL_FABRIC_FABRIC_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    FABRIC_TIERS_MAX = 8,
    FABRIC_DOMAINS_MAX = 262144,
    FABRIC_HOSTS_MAX = 262144,
    FABRIC_PORTS_MAX = 16, /* of one host */
    FABRIC_NAME_MAX = 253,
    FABRIC_SOURCES_MAX = 8,
    FABRIC_TEXT_MAX = 64 << 20, /* bytes of one source */
    FABRIC_KEYS_MAX = FABRIC_TIERS_MAX,

    FABRIC_NONE = -1,   /* no domain */
    FABRIC_APART = 255, /* tier: no common domain, or unknown */
};

/* "leaf", "spine", "core", "tier-3" … */
const char *fabric_tier_name(unsigned tier);
/* Reads those words (also "tier-0" …), either case: the tier, or -EINVAL
 * naming the words that are allowed. */
int fabric_tier_parse(const char *text, struct error *err);

struct fabric_domain {
    const char *name; /* of its switch, or the first of its switches */
    uint8_t tier;
    int32_t parent;      /* the domain of tier + 1 it lies in, FABRIC_NONE */
    uint32_t n_switches; /* with hosts of their own, in it */
    uint32_t n_hosts;    /* of its whole tree */
};

/* One port of a host; texts "" when the source does not tell. */
struct fabric_port {
    const char *device;    /* "mlx5_0" */
    const char *guid;      /* 16 hex digits, lower case: of the adapter */
    const char *leaf;      /* the leaf switch */
    uint8_t port;          /* on the adapter, 0 unknown */
    uint8_t rail;          /* 0…: the how-manieth of its host's ports */
    uint32_t speed_gbit_s; /* 0 unknown */
};

struct fabric_host {
    const char *name;
    int32_t leaf; /* domain of tier 0 */
    uint8_t n_ports;
    const struct fabric_port *ports;
};

struct fabric; /* opaque; ref-counted (atomically) and immutable */
struct fabric *fabric_ref(struct fabric *f);
void fabric_unref(struct fabric *f); /* NULL allowed */
DEFINE_CLEANUP(fabric, struct fabric *, fabric_unref)

/* All take NULL for "no fabric": nothing is known. */
unsigned fabric_n_tiers(const struct fabric *f);
size_t fabric_n_domains(const struct fabric *f);
const struct fabric_domain *fabric_domain(const struct fabric *f, int32_t i);
size_t fabric_n_hosts(const struct fabric *f);
/* Hosts in the byte order of their names. */
const struct fabric_host *fabric_host(const struct fabric *f, size_t i);
/* NULL when there is none of that name. */
const struct fabric_host *fabric_find(const struct fabric *f, const char *name,
                                      size_t size);
/* The host with an adapter of that GUID ("0c42:a103:00b1:2fd4", "0x0c42…" or
 * bare hex), or NULL. */
const struct fabric_host *fabric_find_guid(const struct fabric *f,
                                           const char *guid);
/* The ancestor of domain `i` on `tier` (itself on its own), FABRIC_NONE
 * when there is none (also for FABRIC_NONE). */
int32_t fabric_up(const struct fabric *f, int32_t i, unsigned tier);
/* The lowest tier on which two domains of tier 0 lie in one domain;
 * FABRIC_APART when there is none or one is unknown. */
unsigned fabric_common_tier(const struct fabric *f, int32_t a, int32_t b);
/* A hash of the whole content: equal for equal fabrics on any machine. */
uint64_t fabric_hash(const struct fabric *f);

/* --- reading ------------------------------------------------------------ */
enum fabric_format {
    FABRIC_AUTO,   /* told from the text */
    FABRIC_IB,     /* ibnetdiscover's output */
    FABRIC_SLURM,  /* topology.conf: SwitchName= … or BlockName= … */
    FABRIC_LABELS, /* a list of Node objects: kubectl get nodes -o json */
    FABRIC_JSON,   /* our own form, schema/fabric.md */
};

/* One text to read.  `name` is for errors ("fabric.json"). */
struct fabric_source {
    const char *name;
    const char *text;
    size_t size;
    enum fabric_format format;
};

/* The node labels that say where a host hangs, from leaf to core. */
struct fabric_labels {
    char keys[FABRIC_KEYS_MAX][FABRIC_NAME_MAX + 1];
    uint8_t n_keys;
};
/* Reads "topograph", "nvidia", "gke", "aws", or a comma-separated list of
 * label keys from leaf to core; "" gives none (then each preset is tried,
 * in this order, on each list of nodes). 0 or -EINVAL. */
int fabric_labels_parse(const char *text, struct fabric_labels *ret_labels,
                        struct error *err);

/* Read and join sources: a host is where the first source that knows it puts
 * it; domains of different sources are never near each other.  On failure
 * the error names source, line and what is wrong.  `n` 0 is allowed and
 * gives an empty fabric. */
int fabric_read(const struct fabric_source *sources, size_t n,
                const struct fabric_labels *labels, struct fabric **ret_fabric,
                struct error *err);

#endif
