/* Hosts for adapters that do not say whose they are.  A node knows its own
 * adapters by their GUIDs (fabric_find_guid). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/lower_bound.h"
#include "model/fabric/fabric_private.h"

/* A plug with a host, by one of its GUIDs. */
struct named {
    uint64_t guid;
    uint32_t plug;
};

static int named_order(const void *pa, const void *pb)
{
    const struct named *a = pa, *b = pb;
    if (a->guid != b->guid)
        return a->guid < b->guid ? -1 : 1;
    return a->plug < b->plug ? -1 : a->plug > b->plug;
}

/* In order; the caller frees. */
static struct named *collect_named(const struct fabric_graph *g, size_t *ret_n)
{
    struct named *named = xcalloc(2 * g->n_plugs + 1, sizeof *named);
    size_t n = 0;
    for (size_t i = 0; i < g->n_plugs; i++) {
        const struct fabric_plug *p = &g->plugs[i];
        const uint64_t guids[] = {p->guid, p->port_guid};
        for (size_t k = 0; k < 2 && p->host != FABRIC_HOST_NONE; k++)
            if (guids[k])
                named[n++] = (struct named){guids[k], (uint32_t)i};
    }
    qsort(named, n, sizeof *named, named_order);
    *ret_n = n;
    return named;
}

/* Where those of `guid` begin. */
static size_t find_named(const struct named *named, size_t n, uint64_t guid)
{
    return lower_bound(n, i, named[i].guid < guid);
}

/* Take the host of another plug with this GUID.  False when it is that plug,
 * told a second time. */
static bool take_name(const struct fabric_graph *g, const struct named *named,
                      size_t n, uint64_t guid, struct fabric_plug *p)
{
    size_t i = guid ? find_named(named, n, guid) : n;
    for (; i < n && named[i].guid == guid; i++) {
        const struct fabric_plug *other = &g->plugs[named[i].plug];
        if (other->port == p->port && other->at == p->at)
            return false;
        p->host = other->host;
        p->device = other->device;
    }
    return true;
}

/* A host that is called by a GUID. */
static int take_guid(struct fabric_graph *g, struct fabric_plug *p,
                     struct error *err)
{
    const uint64_t guid = p->guid ? p->guid : p->port_guid;
    char name[32];
    if (!guid)
        return 0;
    int size = snprintf(name, sizeof name, "guid-%016" PRIx64, guid);
    int host = fabric_graph_host(g, name, (size_t)size, err);
    if (host < 0)
        return host;
    p->host = (uint32_t)host;
    return 0;
}

int fabric_graph_nameless(struct fabric_graph *g, struct error *err)
{
    size_t n, kept = 0;
    cleanup_free struct named *named = collect_named(g, &n);
    cleanup_free struct fabric_plug *plugs =
        xmemdup(g->plugs, g->n_plugs * sizeof *plugs);
    for (size_t i = 0; i < g->n_plugs; i++) {
        struct fabric_plug *p = &plugs[i];
        bool nameless = p->host == FABRIC_HOST_NONE;
        if (nameless && (!take_name(g, named, n, p->guid, p) ||
                         !take_name(g, named, n, p->port_guid, p)))
            continue;
        if (p->host == FABRIC_HOST_NONE && take_guid(g, p, err) < 0)
            return -EINVAL;
        if (p->host != FABRIC_HOST_NONE)
            plugs[kept++] = *p;
    }
    if (kept)
        memcpy(g->plugs, plugs, kept * sizeof *plugs);
    g->n_plugs = kept;
    return 0;
}
