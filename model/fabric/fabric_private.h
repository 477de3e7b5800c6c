/* What the readers of fabrics and fabric.c share; for them and their tests.
 *
 * Each reader fills a graph: switches, links between them, and the plugs of
 * hosts into them.  The domains are derived from each graph by itself and
 * then joined. */
#ifndef BIGA_MODEL_FABRIC_FABRIC_PRIVATE_H
#define BIGA_MODEL_FABRIC_FABRIC_PRIVATE_H

#include <stdatomic.h>

#include "model/fabric/fabric.h"

enum {
    FABRIC_LINKS_MAX = 4 << 20, /* between switches, of one source */
    FABRIC_PLUGS_MAX = 4 << 20, /* of hosts, as they stand in one source */
    FABRIC_LEVEL_NONE = -1,     /* to be derived */
};

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

/* --- graphs -------------------------------------------------------------- */

/* Texts, each once, by number. */
struct fabric_names {
    const char **texts;
    size_t n, cap;
    uint32_t *slots; /* number + 1, 0: empty */
    size_t n_slots;
};

struct fabric_switch {
    const char *key;  /* unique in its graph */
    const char *name; /* what people call it */
    int level;        /* 0: a leaf; or FABRIC_LEVEL_NONE: its distance
                * from the nearest such */
};
struct fabric_link {
    uint32_t a, b;
};
#define FABRIC_HOST_NONE UINT32_MAX /* only until fabric_graph_nameless() */
struct fabric_plug {
    uint32_t host, at; /* the switch */
    const char *device;
    uint64_t guid;      /* of the adapter, 0 unknown */
    uint64_t port_guid; /* 0 unknown */
    uint8_t port;
    uint32_t speed_gbit_s;
};

struct fabric_graph {
    struct fabric_names switch_keys, hosts;
    struct fabric_switch *switches;
    size_t switches_cap;
    struct fabric_link *links;
    size_t n_links, links_cap;
    struct fabric_plug *plugs;
    size_t n_plugs, plugs_cap;
    struct arena arena;
};
void fabric_graph_fini(struct fabric_graph *g);

/* The switch of a key, made when new (then `name` is what it is called, NULL:
 * as its key; and its level is FABRIC_LEVEL_NONE).  Its number, or -EINVAL
 * when there are too many or the key is no proper name. */
int fabric_graph_switch(struct fabric_graph *g, const char *key, size_t size,
                        const char *name, struct error *err);
/* The number of a key's switch, -1 when there is none. */
int32_t fabric_graph_find(const struct fabric_graph *g, const char *key,
                          size_t size);
/* The same for a host; its name is folded to lower case. */
int fabric_graph_host(struct fabric_graph *g, const char *name, size_t size,
                      struct error *err);
int fabric_graph_link(struct fabric_graph *g, uint32_t a, uint32_t b,
                      struct error *err);
/* Copies the device's name (NULL: ""). */
int fabric_graph_plug(struct fabric_graph *g, const struct fabric_plug *plug,
                      struct error *err);

/* Give the plugs without a host one: that of another plug with the same GUID,
 * else one by itself that is called by the GUID ("guid-0002c9030002a0ce").
 * Plugs that have no GUID either go. */
int fabric_graph_nameless(struct fabric_graph *g, struct error *err);

/* --- from graphs to domains ---------------------------------------------- */

/* What one graph comes to. */
struct fabric_part {
    struct fabric_domain *domains; /* names are the graph's; n_hosts is 0 */
    size_t n_domains, cap;
    unsigned n_tiers;
    int32_t *leaves; /* per host */
    uint32_t *first; /* per host: its first plug; one more at the end */
    struct fabric_plug *plugs; /* by host, then by rail; each once */
};
void fabric_part_fini(struct fabric_part *part);
int fabric_derive(const struct fabric_graph *g, struct fabric_part *ret_part,
                  struct error *err);

/* The first graph that knows a host places it. */
struct fabric *fabric_join(const struct fabric_graph *graphs,
                           const struct fabric_part *parts, size_t n);

/* --- readers: fill the graph; errors name source and line --------------- */

int fabric_read_ib(const struct fabric_source *source, struct fabric_graph *g,
                   struct error *err);
int fabric_read_slurm(const struct fabric_source *source,
                      struct fabric_graph *g, struct error *err);
int fabric_read_labels(const struct fabric_source *source,
                       const struct fabric_labels *labels,
                       struct fabric_graph *g, struct error *err);
int fabric_read_json(const struct fabric_source *source, struct fabric_graph *g,
                     struct error *err);

/* The i-th set of keys that is tried where none is given; false behind the
 * last. */
bool fabric_labels_preset(size_t i, struct fabric_labels *ret_labels);

/* The line that byte `at` stands in, from 1. */
size_t fabric_line(const struct fabric_source *source, size_t at);

#endif
