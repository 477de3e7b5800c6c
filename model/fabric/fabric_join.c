/* One fabric out of the parts that each source comes to. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "model/fabric/fabric_private.h"

struct join {
    const struct fabric_graph *graphs;
    const struct fabric_part *parts;
    size_t n_parts;
    struct fabric *f;
    size_t *base;              /* per part: of its domains in what follows */
    size_t n_all;              /* domains of all parts */
    struct fabric_domain *all; /* parents are within the part */
    int32_t *number;           /* in the fabric, FABRIC_NONE: not there */
    struct candidate *hosts;
    size_t n_hosts;
    struct fabric_guid *guids;
    size_t n_guids, guids_cap;
};

struct candidate {
    const char *name;
    uint32_t part, host;
};

static int candidate_order(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    int order = strcmp(a->name, b->name);
    if (order)
        return order;
    return a->part < b->part ? -1 : a->part > b->part;
}

/* The hosts that have a place, each from the first part that gives it one. */
static void choose_hosts(struct join *j)
{
    size_t n = 0, kept = 0;
    for (size_t p = 0; p < j->n_parts; p++)
        n += j->graphs[p].hosts.n;
    j->hosts = xcalloc(n + 1, sizeof *j->hosts);
    n = 0;
    for (size_t p = 0; p < j->n_parts; p++)
        for (size_t i = 0; i < j->graphs[p].hosts.n; i++)
            if (j->parts[p].leaves[i] >= 0)
                j->hosts[n++] = (struct candidate){j->graphs[p].hosts.texts[i],
                                                   (uint32_t)p, (uint32_t)i};
    qsort(j->hosts, n, sizeof *j->hosts, candidate_order);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(j->hosts[kept - 1].name, j->hosts[i].name) != 0)
            j->hosts[kept++] = j->hosts[i];
    j->n_hosts = kept;
}

/* --- domains -------------------------------------------------------------- */

static void collect_domains(struct join *j)
{
    j->base = xcalloc(j->n_parts + 1, sizeof *j->base);
    for (size_t p = 0; p < j->n_parts; p++)
        j->base[p + 1] = j->base[p] + j->parts[p].n_domains;
    j->n_all = j->base[j->n_parts];
    j->all = xcalloc(j->n_all + 1, sizeof *j->all);
    for (size_t p = 0; p < j->n_parts; p++)
        for (size_t i = 0; i < j->parts[p].n_domains; i++) {
            struct fabric_domain *to = &j->all[j->base[p] + i];
            *to = j->parts[p].domains[i];
            if (to->parent >= 0)
                to->parent += (int32_t)j->base[p];
        }
    for (size_t i = 0; i < j->n_hosts; i++) {
        const struct candidate *c = &j->hosts[i];
        int32_t at = (int32_t)j->base[c->part] +
                     j->parts[c->part].leaves[c->host];
        for (; at >= 0; at = j->all[at].parent)
            j->all[at].n_hosts++;
    }
}

struct ordered {
    const struct fabric_domain *domain;
};

static int domain_order(const void *pa, const void *pb)
{
    const struct fabric_domain *a = ((const struct ordered *)pa)->domain;
    const struct fabric_domain *b = ((const struct ordered *)pb)->domain;
    if (a->tier != b->tier)
        return a->tier < b->tier ? -1 : 1;
    int order = strcmp(a->name, b->name);
    if (order)
        return order;
    return a < b ? -1 : a > b; /* places in one array */
}

static void place_domains(struct join *j)
{
    struct fabric *f = j->f;
    cleanup_free struct ordered *order = xcalloc(j->n_all + 1, sizeof *order);
    j->number = xcalloc(j->n_all + 1, sizeof *j->number);
    for (size_t i = 0; i < j->n_all; i++) {
        j->number[i] = FABRIC_NONE;
        if (j->all[i].n_hosts)
            order[f->n_domains++].domain = &j->all[i];
    }
    qsort(order, f->n_domains, sizeof *order, domain_order);
    f->domains = xcalloc(f->n_domains + 1, sizeof *f->domains);
    for (size_t i = 0; i < f->n_domains; i++)
        j->number[order[i].domain - j->all] = (int32_t)i;
    for (size_t i = 0; i < f->n_domains; i++) {
        struct fabric_domain *to = &f->domains[i];
        *to = *order[i].domain;
        to->name = arena_strndup(&f->arena, to->name, strlen(to->name));
        if (to->parent >= 0)
            to->parent = j->number[to->parent];
        if (to->tier >= f->n_tiers)
            f->n_tiers = to->tier + 1u;
    }
}

/* --- hosts -------------------------------------------------------------- */

static void note_guid(struct join *j, uint64_t guid, size_t host)
{
    if (guid == 0)
        return;
    j->guids = xgrow(j->guids, j->n_guids, &j->guids_cap, sizeof *j->guids);
    j->guids[j->n_guids++] = (struct fabric_guid){guid, (uint32_t)host};
}

static const char *guid_text(struct join *j, uint64_t guid)
{
    char text[17];
    if (guid == 0)
        return "";
    (void)snprintf(text, sizeof text, "%016" PRIx64, guid);
    return arena_strndup(&j->f->arena, text, 16);
}

static void place_host(struct join *j, size_t i, const char *const *leaves)
{
    const struct candidate *c = &j->hosts[i];
    const struct fabric_part *part = &j->parts[c->part];
    const struct fabric_plug *plugs = part->plugs + part->first[c->host];
    size_t n = part->first[c->host + 1] - part->first[c->host];
    struct arena *arena = &j->f->arena;
    struct fabric_port *ports = arena_alloc(arena, n * sizeof *ports);
    for (size_t k = 0; k < n; k++) {
        const struct fabric_plug *p = &plugs[k];
        ports[k] = (struct fabric_port){
            .device = arena_strndup(arena, p->device, strlen(p->device)),
            .guid = guid_text(j, p->guid ? p->guid : p->port_guid),
            .leaf = leaves[p->at],
            .port = p->port,
            .rail = (uint8_t)k,
            .speed_gbit_s = p->speed_gbit_s,
        };
        note_guid(j, p->guid, i);
        if (p->port_guid != p->guid)
            note_guid(j, p->port_guid, i);
    }
    j->f->hosts[i] = (struct fabric_host){
        .name = arena_strndup(arena, c->name, strlen(c->name)),
        .leaf = j->number[j->base[c->part] + (size_t)part->leaves[c->host]],
        .n_ports = (uint8_t)n,
        .ports = ports,
    };
}

static void place_hosts(struct join *j)
{
    struct fabric *f = j->f;
    cleanup_free const char ***leaves = xcalloc(j->n_parts + 1,
                                                sizeof(*leaves));
    for (size_t p = 0; p < j->n_parts; p++) {
        const struct fabric_graph *g = &j->graphs[p];
        leaves[p] = xcalloc(g->switch_keys.n + 1, sizeof(*leaves[p]));
        for (size_t i = 0; i < g->switch_keys.n; i++)
            leaves[p][i] = arena_strndup(&f->arena, g->switches[i].name,
                                         strlen(g->switches[i].name));
    }
    f->n_hosts = j->n_hosts;
    f->hosts = xcalloc(f->n_hosts + 1, sizeof *f->hosts);
    for (size_t i = 0; i < f->n_hosts; i++)
        place_host(j, i, leaves[j->hosts[i].part]);
    for (size_t p = 0; p < j->n_parts; p++)
        free(leaves[p]);
}

static int guid_order(const void *pa, const void *pb)
{
    const struct fabric_guid *a = pa, *b = pb;
    if (a->guid != b->guid)
        return a->guid < b->guid ? -1 : 1;
    return a->host < b->host ? -1 : a->host > b->host;
}

/* A GUID that two hosts claim tells neither. */
static void place_guids(struct join *j)
{
    struct fabric *f = j->f;
    if (j->n_guids)
        qsort(j->guids, j->n_guids, sizeof *j->guids, guid_order);
    f->guids = xcalloc(j->n_guids + 1, sizeof *f->guids);
    for (size_t i = 0, end; i < j->n_guids; i = end) {
        bool one = true;
        for (end = i + 1;
             end < j->n_guids && j->guids[end].guid == j->guids[i].guid; end++)
            one = one && j->guids[end].host == j->guids[i].host;
        if (one)
            f->guids[f->n_guids++] = j->guids[i];
    }
}

/* --- the hash ----------------------------------------------------------- */

static void mix(uint64_t *h, uint64_t value)
{
    *h = hash_mix(*h ^ value, UINT64_C(0x9e3779b97f4a7c15)) + value;
}

static void mix_text(uint64_t *h, const char *text)
{
    mix(h, hash_bytes(text, strlen(text)));
}

static uint64_t content_hash(const struct fabric *f)
{
    uint64_t h = UINT64_C(0xd6e8feb86659fd93);
    mix(&h, f->n_tiers);
    mix(&h, f->n_domains);
    for (size_t i = 0; i < f->n_domains; i++) {
        const struct fabric_domain *d = &f->domains[i];
        mix_text(&h, d->name);
        mix(&h, (uint64_t)d->tier << 32 | (uint32_t)d->parent);
        mix(&h, (uint64_t)d->n_switches << 32 | d->n_hosts);
    }
    for (size_t i = 0; i < f->n_hosts; i++) {
        const struct fabric_host *host = &f->hosts[i];
        mix_text(&h, host->name);
        mix(&h, (uint64_t)(uint32_t)host->leaf << 8 | host->n_ports);
        for (unsigned k = 0; k < host->n_ports; k++) {
            const struct fabric_port *p = &host->ports[k];
            mix_text(&h, p->device);
            mix_text(&h, p->guid);
            mix_text(&h, p->leaf);
            mix(&h, (uint64_t)p->speed_gbit_s << 8 | p->port);
        }
    }
    for (size_t i = 0; i < f->n_guids; i++) {
        mix(&h, f->guids[i].guid);
        mix(&h, f->guids[i].host);
    }
    return h;
}

struct fabric *fabric_join(const struct fabric_graph *graphs,
                           const struct fabric_part *parts, size_t n)
{
    struct fabric *f = xcalloc(1, sizeof *f);
    struct join j = {.graphs = graphs, .parts = parts, .n_parts = n, .f = f};
    atomic_init(&f->refs, 1);
    choose_hosts(&j);
    collect_domains(&j);
    place_domains(&j);
    place_hosts(&j);
    place_guids(&j);
    f->hash = content_hash(f);
    free(j.base);
    free(j.all);
    free(j.number);
    free(j.hosts);
    free(j.guids);
    return f;
}
