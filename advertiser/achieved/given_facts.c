#include "advertiser/achieved/given_facts.h"

#include <string.h>

#include "model/slice/slice.h"

/* One of another driver is what it may be by the driver's name. */
static void add_claim(const struct host_seen *seen, const struct given_claim *c,
                      struct pod_facts *p)
{
    struct pci_addr addr;
    if (strcmp(c->driver, SLICE_DRIVER) == 0) {
        bool here = strcmp(c->pool, topo_node(seen->places.topo)) == 0;
        device_places_add_ours(&seen->places, here ? c->device : "", p);
        return;
    }
    bool found = seen->claimed && seen->claimed(seen->ctx, c, &addr);
    device_places_add_pci(&seen->places, c->driver, found ? &addr : NULL, p);
}

static void add_devices(const struct given_pod *given,
                        const struct host_seen *seen, bool runs,
                        struct pod_facts *p)
{
    p->cards.known = p->gpus.known = p->nics.known = true;
    for (size_t i = 0; i < given->n_devices; i++)
        device_places_add(&seen->places, given->devices[i].resource,
                          given->devices[i].id, p);
    for (size_t i = 0; i < given->n_claims; i++)
        add_claim(seen, &given->claims[i], p);
    p->cards.known &= p->cards.n > 0;
    p->nics.known &= p->nics.n > 0;
    p->gpus.known &= p->gpus.n > 0 || runs;
}

static void add_pod(const struct given_pod *given, const struct host_seen *seen,
                    struct facts *facts)
{
    struct index_set cpus, mems;
    const struct cgroups *g = seen->groups;
    const char *uid =
        g ? pod_uids_find(seen->uids, given->namespace, given->name, g) : NULL;
    bool runs = uid && cgroups_of_pod(g, uid, &cpus, &mems);
    struct pod_facts *p = facts_add(facts, given->namespace, given->name,
                                    uid ? uid : "");
    if (!p)
        return; /* no pod of Kubernetes' is called so */
    add_devices(given, seen, runs, p);
    if (given->strange)
        return;
    if (!index_set_is_empty(&given->cpus))
        p->cpus = (struct fact_indexes){true, given->cpus};
    else if (runs)
        p->cpus = (struct fact_indexes){true, cpus};
    if (!index_set_is_empty(&given->memory))
        p->memory = (struct fact_indexes){true, given->memory};
    else if (runs && !index_set_holds(&mems, &g->mems))
        p->memory = (struct fact_indexes){true, mems};
}

void given_facts_add(const struct given_pods *given,
                     const struct host_seen *seen, struct facts *facts)
{
    for (size_t i = 0; i < given->n; i++)
        add_pod(&given->pods[i], seen, facts);
}
