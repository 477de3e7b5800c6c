/* facts - what the containers of each pod of a node really have, and the report
 * of it (schema/achieved.md).  Pure.
 *
 * What is not known is not told: never is it guessed. */
#ifndef BIGA_ADVERTISER_ACHIEVED_FACTS_H
#define BIGA_ADVERTISER_ACHIEVED_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/achieved/index_set.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/topo/pci.h"
#include "model/topo/topo.h"

enum {
    FACTS_PCI_MAX = 64,    /* devices of one kind, of a pod; more: not known */
    FACTS_PODS_MAX = 512,  /* of a report */
    FACTS_CPUS_MAX = 4096, /* bytes of a list of CPUs; longer: not told */
    FACTS_REPORT_MAX = 512 << 10, /* bytes */
};

/* PCI addresses, sorted, each once. */
struct fact_pcis {
    bool known;
    size_t n;
    struct pci_addr items[FACTS_PCI_MAX];
};

struct fact_indexes {
    bool known;
    struct index_set set;
};

struct pod_facts {
    char namespace[64], name[254];
    char uid[64]; /* "" not known */
    struct fact_pcis cards, gpus, nics;
    struct fact_indexes cpus, memory; /* memory: NUMA nodes */
};

struct facts {
    struct pod_facts *pods;
    size_t n, cap;
};
void facts_fini(struct facts *f);

/* The next pod, of which nothing is known yet; NULL when a name or namespace is
 * empty or longer than Kubernetes has them. */
struct pod_facts *facts_add(struct facts *f, const char *namespace,
                            const char *name, const char *uid);
/* It has this one; not known any more when there are too many. */
void fact_pcis_add(struct fact_pcis *p, const struct pci_addr *addr);

/* Is it the same pod, and has it the same? */
bool pod_facts_equal(const struct pod_facts *a, const struct pod_facts *b);

/* Adds what was told of pods that are not in `now` and still live: a kubelet that
 * starts anew lists its pods one after the other.  Both are sorted, and `now`
 * stays so. */
void facts_keep(struct facts *now, const struct facts *told,
                bool (*lives)(void *ctx, const struct pod_facts *pod),
                void *ctx);

/* What may be told of `now`: a container that comes is given one thing after the
 * other, so that what a look saw first counts once the next has seen it, too.
 * Of a pod that has changed what was told of it stands until then.  All are
 * sorted (facts_sort()), as is what is returned, which is the caller's. */
struct facts facts_settled(const struct facts *now, const struct facts *before,
                           const struct facts *told);
/* By namespace and name.  Of several of one name none stays, as nobody can say
 * which has what. */
void facts_sort(struct facts *f);

/* Appends the report of sorted facts.  NUMA nodes of CPUs are those of the
 * topology; when it does not know one of the CPUs they are not known.  Returns
 * how many pods had no room, the last in order. */
size_t facts_write(const struct facts *f, const struct topo *topo,
                   struct str *out);

#endif
