/* From switches, links and hosts to nested domains.
 *
 * The level of a switch is its distance from the nearest leaf: a switch that
 * hosts hang on, but not a spine or core with a gateway on it, see
 * choose_leaves().  A component of tier t is what hangs together over links
 * whose two ends are of level t or lower; on tier 0 each switch is one by itself.  A
 * host that hangs on several switches (rails) is in a set of components; the
 * hosts with the same set make one domain.  Sets shrink as components grow
 * together, and hosts with equal sets on one tier have equal ones above:
 * therefore domains are nested. */
#include <stdlib.h>
#include <string.h>

#include "model/fabric/fabric_private.h"

struct list {
    uint32_t start, n; /* in the pool; ascending */
};

struct derivation {
    const struct fabric_graph *g;
    struct fabric_part *part;
    size_t n_switches, n_hosts;
    uint32_t *rank;            /* of a switch, in the order of names */
    uint32_t *named;           /* the switch of a rank */
    struct fabric_link *links; /* between ranks */
    int *level;                /* by rank; FABRIC_TIERS_MAX: no host reaches
                                * it */
    uint32_t *hosts;           /* by rank: how many hang on it */
    uint32_t *root;            /* by rank: union-find; roots are lowest */
    uint32_t *leaves, *top;    /* by root: switches with hosts in it, the lowest
                                * switch of the tier's own level */
    uint32_t *pool;
    size_t n_pool, pool_cap;
    struct list *lists; /* of each domain of the last tier */
    size_t n_lists;
    unsigned max_level;
};

/* --- the canonical order of switches ------------------------------------ */

struct named_switch {
    const char *name, *key;
    uint32_t number;
};

static int named_order(const void *pa, const void *pb)
{
    const struct named_switch *a = pa, *b = pb;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->key, b->key);
}

static void rank_switches(struct derivation *d)
{
    size_t n = d->n_switches;
    cleanup_free struct named_switch *all = xcalloc(n + 1, sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = (struct named_switch){d->g->switches[i].name,
                                       d->g->switches[i].key, (uint32_t)i};
    qsort(all, n, sizeof *all, named_order);
    d->rank = xcalloc(n + 1, sizeof *d->rank);
    d->named = xcalloc(n + 1, sizeof *d->named);
    for (size_t i = 0; i < n; i++) {
        d->rank[all[i].number] = (uint32_t)i;
        d->named[i] = all[i].number;
    }
    d->links = xcalloc(d->g->n_links + 1, sizeof *d->links);
    for (size_t i = 0; i < d->g->n_links; i++)
        d->links[i] = (struct fabric_link){d->rank[d->g->links[i].a],
                                           d->rank[d->g->links[i].b]};
}

/* --- plugs, by host and rail --------------------------------------------- */

/* "mlx5_2" before "mlx5_10". */
static int device_order(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na != nb)
        return na < nb ? -1 : 1;
    return memcmp(a, b, na);
}

#define ORDER(a, b)                    \
    do {                               \
        if ((a) != (b))                \
            return (a) < (b) ? -1 : 1; \
    } while (0)

/* `at` is a rank here. */
static int plug_order(const void *pa, const void *pb)
{
    const struct fabric_plug *a = pa, *b = pb;
    ORDER(a->host, b->host);
    int order = device_order(a->device, b->device);
    if (order)
        return order;
    ORDER(a->guid, b->guid);
    ORDER(a->port_guid, b->port_guid);
    ORDER(a->port, b->port);
    ORDER(a->at, b->at);
    ORDER(a->speed_gbit_s, b->speed_gbit_s);
    return 0;
}

static int sort_plugs(struct derivation *d, struct error *err)
{
    struct fabric_part *part = d->part;
    size_t n = d->g->n_plugs, kept = 0;
    part->plugs = xcalloc(n + 1, sizeof *part->plugs);
    for (size_t i = 0; i < n; i++) {
        part->plugs[i] = d->g->plugs[i];
        part->plugs[i].at = d->rank[part->plugs[i].at];
    }
    qsort(part->plugs, n, sizeof *part->plugs, plug_order);
    part->first = xcalloc(d->n_hosts + 1, sizeof *part->first);
    for (size_t i = 0; i < n; i++) {
        const struct fabric_plug *p = &part->plugs[i];
        if (kept > 0 && plug_order(p, &part->plugs[kept - 1]) == 0)
            continue;
        part->plugs[kept++] = *p;
        if (++part->first[p->host + 1] > FABRIC_PORTS_MAX)
            return error_set(err, EINVAL,
                             "host \"%.64s\": has more than %d ports",
                             d->g->hosts.texts[p->host], FABRIC_PORTS_MAX);
    }
    for (size_t i = 0; i < d->n_hosts; i++)
        part->first[i + 1] += part->first[i];
    return 0;
}

/* --- levels -------------------------------------------------------------- */

/* The neighbours of each rank: those of r stand from start[r] on. */
static uint32_t *neighbours(const struct derivation *d, uint32_t *start)
{
    size_t n_links = d->g->n_links;
    uint32_t *ends = xcalloc(2 * n_links + 1, sizeof *ends);
    for (size_t i = 0; i < n_links; i++) {
        start[d->links[i].a + 1]++;
        start[d->links[i].b + 1]++;
    }
    for (size_t i = 0; i < d->n_switches; i++)
        start[i + 1] += start[i];
    cleanup_free uint32_t *next = xmemdup(start,
                                          (d->n_switches + 1) * sizeof *next);
    for (size_t i = 0; i < n_links; i++) {
        ends[next[d->links[i].a]++] = d->links[i].b;
        ends[next[d->links[i].b]++] = d->links[i].a;
    }
    return ends;
}

static uint32_t find_root(uint32_t *root, uint32_t at)
{
    while (root[at] != at) {
        root[at] = root[root[at]];
        at = root[at];
    }
    return at;
}

struct adjacency {
    uint32_t *start, *ends;
};

/* From the switches of level 0 on. */
static void find_distances(struct derivation *d, const struct adjacency *adj)
{
    const uint32_t *start = adj->start, *ends = adj->ends;
    cleanup_free uint32_t *queue = xcalloc(d->n_switches + 1, sizeof *queue);
    size_t n = 0;
    for (size_t i = 0; i < d->n_switches; i++)
        if (d->level[i] == 0)
            queue[n++] = (uint32_t)i;
    for (size_t done = 0; done < n; done++) {
        uint32_t at = queue[done];
        int next = d->level[at] + 1;
        if (next >= FABRIC_TIERS_MAX)
            next = FABRIC_TIERS_MAX - 1;
        for (uint32_t k = start[at]; k < start[at + 1]; k++) {
            if (d->level[ends[k]] != FABRIC_LEVEL_NONE)
                continue;
            d->level[ends[k]] = next;
            queue[n++] = ends[k];
        }
    }
}

static int descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x > y ? -1 : x < y;
}

/* Half of the hosts hang on switches with so many of them or more. */
static uint32_t usual_hosts(const struct derivation *d)
{
    cleanup_free uint32_t *counts =
        xmemdup(d->hosts, (d->n_switches + 1) * sizeof *counts);
    uint64_t all = 0, sum = 0;
    size_t at = 0;
    qsort(counts, d->n_switches, sizeof *counts, descending);
    for (size_t i = 0; i < d->n_switches; i++)
        all += counts[i];
    for (; at < d->n_switches; at++)
        if (2 * (sum += counts[at]) >= all)
            break;
    return counts[at];
}

static void join_links(struct derivation *d, unsigned tier, uint32_t *root)
{
    for (size_t i = 0; i < d->g->n_links && tier > 0; i++) {
        const struct fabric_link *l = &d->links[i];
        if (d->level[l->a] > (int)tier || d->level[l->b] > (int)tier)
            continue;
        uint32_t a = find_root(root, l->a), b = find_root(root, l->b);
        if (a < b)
            root[b] = a;
        else
            root[a] = b;
    }
}

/* Which switches are leaves.  First those with half of the usual number of
 * hosts, and no fewer hosts than neighbours with hosts.  Of the others, those
 * that would bring no other switches near to each other: what is linked to
 * them is together on tier 1 anyway, or they are so far from the first that
 * their surroundings are their own.  Fewer leaves make
 * levels higher, so that nothing gets nearer by this. */
static void choose_leaves(struct derivation *d, const struct adjacency *adj)
{
    size_t n = d->n_switches;
    uint32_t usual = usual_hosts(d);
    cleanup_free bool *leaf = xcalloc(n + 1, sizeof *leaf);
    cleanup_free uint32_t *root = xcalloc(n + 1, sizeof *root);
    cleanup_free uint32_t *seen = xcalloc(n + 1, sizeof *seen);
    for (size_t i = 0; i < n; i++) {
        uint32_t near = 0;
        for (uint32_t k = adj->start[i]; k < adj->start[i + 1]; k++) {
            uint32_t at = adj->ends[k];
            near += seen[at] != i + 1 && d->hosts[at] > 0;
            seen[at] = (uint32_t)i + 1; /* links may be parallel */
        }
        root[i] = (uint32_t)i;
        leaf[i] = d->hosts[i] > 0 && 2 * d->hosts[i] >= usual &&
                  d->hosts[i] >= near;
        d->level[i] = leaf[i] ? 0 : FABRIC_LEVEL_NONE;
    }
    find_distances(d, adj);
    for (size_t i = 0; i < n; i++)
        if (d->level[i] == FABRIC_LEVEL_NONE)
            d->level[i] = FABRIC_TIERS_MAX;
    join_links(d, 1, root);
    for (size_t i = 0; i < n; i++) {
        bool one = true;
        for (uint32_t k = adj->start[i]; k < adj->start[i + 1]; k++)
            one = one && find_root(root, adj->ends[k]) ==
                             find_root(root, adj->ends[adj->start[i]]);
        leaf[i] = leaf[i] || (d->hosts[i] > 0 &&
                              (d->level[i] > 3 || (d->level[i] == 2 && one)));
    }
    for (size_t i = 0; i < n; i++)
        d->level[i] = leaf[i] ? 0 : FABRIC_LEVEL_NONE;
}

/* A host counts once on a switch, whatever its ports. */
static void count_hosts(struct derivation *d)
{
    const struct fabric_part *part = d->part;
    d->hosts = xcalloc(d->n_switches + 1, sizeof *d->hosts);
    for (size_t i = 0; i < d->n_hosts; i++)
        for (uint32_t k = part->first[i]; k < part->first[i + 1]; k++) {
            uint32_t before = part->first[i];
            while (part->plugs[before].at != part->plugs[k].at)
                before++;
            d->hosts[part->plugs[k].at] += before == k;
        }
}

static void find_levels(struct derivation *d)
{
    bool derive = false, linked = false;
    d->level = xcalloc(d->n_switches + 1, sizeof *d->level);
    for (size_t i = 0; i < d->n_switches; i++) {
        int level = d->g->switches[d->named[i]].level;
        d->level[i] = level < FABRIC_TIERS_MAX ? level : FABRIC_TIERS_MAX - 1;
        derive = derive || level == FABRIC_LEVEL_NONE;
    }
    for (size_t i = 0; i < d->n_switches; i++)
        if (d->hosts[i] > 0)
            d->level[i] = 0;
    if (derive) {
        cleanup_free uint32_t *start = xcalloc(d->n_switches + 2,
                                               sizeof *start);
        cleanup_free uint32_t *ends = neighbours(d, start);
        struct adjacency adj = {start, ends};
        choose_leaves(d, &adj);
        find_distances(d, &adj);
    }
    for (size_t i = 0; i < d->n_switches; i++) {
        if (d->level[i] == FABRIC_LEVEL_NONE)
            d->level[i] = FABRIC_TIERS_MAX;
        else if ((unsigned)d->level[i] > d->max_level)
            d->max_level = (unsigned)d->level[i];
    }
    for (size_t i = 0; i < d->g->n_links && d->max_level == 0; i++)
        linked = linked ||
                 (d->level[d->links[i].a] == 0 && d->level[d->links[i].b] == 0);
    if (linked)
        d->max_level = 1;
}

/* --- components ---------------------------------------------------------- */

/* Bring components up to `tier`, and count what is in them. */
static void grow_components(struct derivation *d, unsigned tier)
{
    size_t n = d->n_switches;
    join_links(d, tier, d->root);
    for (size_t i = 0; i < n; i++) {
        d->leaves[i] = 0;
        d->top[i] = UINT32_MAX;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t r = find_root(d->root, (uint32_t)i);
        d->leaves[r] += d->level[i] == 0 || d->hosts[i] > 0;
        bool lent = tier > 0 && d->hosts[i] > 0; /* no name for it */
        if (i < d->top[r] && d->level[i] == (int)tier && !lent)
            d->top[r] = (uint32_t)i;
    }
}

/* --- sets ---------------------------------------------------------------- */

static int number_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Put a set of numbers into the pool: ascending, each once. */
static struct list pool_add(struct derivation *d, uint32_t *numbers, size_t n)
{
    struct list list = {.start = (uint32_t)d->n_pool};
    qsort(numbers, n, sizeof *numbers, number_order);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && numbers[i] == numbers[i - 1])
            continue;
        d->pool = xgrow(d->pool, d->n_pool, &d->pool_cap, sizeof *d->pool);
        d->pool[d->n_pool++] = numbers[i];
        list.n++;
    }
    return list;
}

struct set {
    const uint32_t *members;
    uint32_t n;
    uint32_t item; /* whose it is */
    uint32_t home; /* the set (by its place) that it is counted to */
};

static int set_order(const void *pa, const void *pb)
{
    const struct set *a = pa, *b = pb;
    for (uint32_t i = 0; i < a->n && i < b->n; i++)
        ORDER(a->members[i], b->members[i]);
    ORDER(a->n, b->n);
    ORDER(a->item, b->item);
    return 0;
}

static bool set_equal(const struct set *a, const struct set *b)
{
    return a->n == b->n &&
           memcmp(a->members, b->members, a->n * sizeof *a->members) == 0;
}

/* Is `a` more than half of `b`?  Two such have a member in common, so that
 * hosts which lack a rail or two are still near to each other. */
static bool set_most_of(const struct set *a, const struct set *b)
{
    uint32_t at = 0;
    if (2 * a->n <= b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++, at++) {
        while (at < b->n && b->members[at] < a->members[i])
            at++;
        if (at == b->n || b->members[at] != a->members[i])
            return false;
    }
    return true;
}

/* Find each set's home: itself, or the first of the larger ones that it is
 * most of.  `firsts` are the places of distinct sets. */
static void settle_sets(struct derivation *d, struct set *sets,
                        const uint32_t *firsts, size_t n_firsts)
{
    cleanup_free uint32_t *owner = xcalloc(d->n_switches + 1, sizeof *owner);
    for (uint32_t size = FABRIC_PORTS_MAX; size > 0; size--) {
        for (size_t i = 0; i < n_firsts; i++) {
            struct set *s = &sets[firsts[i]];
            if (s->n != size)
                continue;
            s->home = firsts[i];
            for (uint32_t k = 0; k < s->n; k++) {
                uint32_t other = owner[s->members[k]];
                if (other && set_most_of(s, &sets[other - 1])) {
                    s->home = other - 1;
                    break;
                }
            }
            for (uint32_t k = 0; k < s->n && s->home == firsts[i]; k++)
                if (owner[s->members[k]] == 0)
                    owner[s->members[k]] = firsts[i] + 1;
        }
    }
}

/* Group items by their sets: `ret_group` per item, in the order of sets.
 * The lists of the groups replace d->lists. */
static void group(struct derivation *d, const struct list *items, size_t n,
                  int32_t *ret_group)
{
    cleanup_free struct set *sets = xcalloc(n + 1, sizeof *sets);
    cleanup_free uint32_t *firsts = xcalloc(n + 1, sizeof *firsts);
    cleanup_free int32_t *number = xcalloc(n + 1, sizeof *number);
    size_t n_firsts = 0;
    for (size_t i = 0; i < n; i++)
        sets[i] = (struct set){.members = d->pool + items[i].start,
                               .n = items[i].n,
                               .item = (uint32_t)i};
    qsort(sets, n, sizeof *sets, set_order);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !set_equal(&sets[i], &sets[i - 1]))
            firsts[n_firsts++] = (uint32_t)i;
    settle_sets(d, sets, firsts, n_firsts);

    struct list *lists = xcalloc(n_firsts + 1, sizeof *lists);
    size_t n_lists = 0;
    for (size_t i = 0; i < n_firsts; i++) {
        const struct set *s = &sets[firsts[i]];
        if (s->home != firsts[i])
            continue;
        number[firsts[i]] = (int32_t)n_lists;
        lists[n_lists++] = items[s->item];
    }
    for (size_t i = 0, at = 0; i < n; i++) {
        while (at + 1 < n_firsts && firsts[at + 1] <= i)
            at++;
        ret_group[sets[i].item] = number[sets[firsts[at]].home];
    }
    free(d->lists);
    d->lists = lists;
    d->n_lists = n_lists;
}

/* --- domains ------------------------------------------------------------- */

/* The domains of a tier, from d->lists; `child` names a domain below each,
 * NULL on tier 0. */
static void add_domains(struct derivation *d, unsigned tier,
                        const char *const *child)
{
    struct fabric_part *part = d->part;
    for (size_t i = 0; i < d->n_lists; i++) {
        const uint32_t *members = d->pool + d->lists[i].start;
        struct fabric_domain domain = {
            .tier = (uint8_t)tier,
            .parent = FABRIC_NONE,
        };
        uint32_t top = UINT32_MAX;
        for (uint32_t k = 0; k < d->lists[i].n; k++) {
            domain.n_switches += d->leaves[members[k]];
            if (d->top[members[k]] < top)
                top = d->top[members[k]];
        }
        if (!child)
            top = members[0];
        domain.name = top == UINT32_MAX ? child[i]
                                        : d->g->switches[d->named[top]].name;
        part->domains = xgrow(part->domains, part->n_domains, &part->cap,
                              sizeof domain);
        part->domains[part->n_domains++] = domain;
    }
}

static void derive_leaves(struct derivation *d)
{
    struct fabric_part *part = d->part;
    cleanup_free struct list *items = xcalloc(d->n_hosts + 1, sizeof *items);
    cleanup_free uint32_t *who = xcalloc(d->n_hosts + 1, sizeof *who);
    cleanup_free int32_t *groups = xcalloc(d->n_hosts + 1, sizeof *groups);
    size_t n = 0;
    part->leaves = xcalloc(d->n_hosts + 1, sizeof *part->leaves);
    for (size_t i = 0; i < d->n_hosts; i++) {
        uint32_t at[FABRIC_PORTS_MAX], n_at = 0;
        for (uint32_t k = part->first[i]; k < part->first[i + 1]; k++)
            at[n_at++] = part->plugs[k].at;
        part->leaves[i] = FABRIC_NONE;
        if (n_at == 0)
            continue;
        items[n] = pool_add(d, at, n_at);
        who[n++] = (uint32_t)i;
    }
    grow_components(d, 0);
    group(d, items, n, groups);
    for (size_t i = 0; i < n; i++)
        part->leaves[who[i]] = groups[i];
    add_domains(d, 0, NULL);
}

/* From the domains of one tier, which begin at `first`, to the next one's. */
static void derive_tier(struct derivation *d, unsigned tier, size_t first)
{
    struct fabric_part *part = d->part;
    size_t n = d->n_lists;
    cleanup_free struct list *items = xcalloc(n + 1, sizeof *items);
    cleanup_free int32_t *groups = xcalloc(n + 1, sizeof *groups);
    grow_components(d, tier);
    for (size_t i = 0; i < n; i++) {
        uint32_t at[FABRIC_PORTS_MAX];
        for (uint32_t k = 0; k < d->lists[i].n; k++)
            at[k] = find_root(d->root, d->pool[d->lists[i].start + k]);
        items[i] = pool_add(d, at, d->lists[i].n);
    }
    group(d, items, n, groups);
    cleanup_free const char **child = xcalloc(d->n_lists + 1, sizeof *child);
    size_t next = part->n_domains;
    for (size_t i = n; i-- > 0;) {
        part->domains[first + i].parent = (int32_t)next + groups[i];
        child[groups[i]] = part->domains[first + i].name;
    }
    add_domains(d, tier, child);
}

static void derivation_fini(struct derivation *d)
{
    free(d->rank);
    free(d->named);
    free(d->links);
    free(d->level);
    free(d->hosts);
    free(d->root);
    free(d->leaves);
    free(d->top);
    free(d->pool);
    free(d->lists);
}

void fabric_part_fini(struct fabric_part *part)
{
    free(part->domains);
    free(part->leaves);
    free(part->first);
    free(part->plugs);
    memset(part, 0, sizeof *part);
}

int fabric_derive(const struct fabric_graph *g, struct fabric_part *ret_part,
                  struct error *err)
{
    struct fabric_part part = {0};
    struct derivation d = {.g = g,
                           .part = &part,
                           .n_switches = g->switch_keys.n,
                           .n_hosts = g->hosts.n};
    rank_switches(&d);
    int r = sort_plugs(&d, err);
    if (r == 0) {
        count_hosts(&d);
        find_levels(&d);
        d.root = xcalloc(d.n_switches + 1, sizeof *d.root);
        d.leaves = xcalloc(d.n_switches + 1, sizeof *d.leaves);
        d.top = xcalloc(d.n_switches + 1, sizeof *d.top);
        for (size_t i = 0; i < d.n_switches; i++)
            d.root[i] = (uint32_t)i;
        derive_leaves(&d);
        part.n_tiers = part.n_domains ? d.max_level + 1 : 0;
        size_t first = 0;
        for (unsigned tier = 1; tier < part.n_tiers; tier++) {
            size_t next = part.n_domains;
            derive_tier(&d, tier, first);
            first = next;
        }
    }
    /* switches are told by number again */
    for (size_t i = 0; r == 0 && i < part.first[d.n_hosts]; i++)
        part.plugs[i].at = d.named[part.plugs[i].at];
    derivation_fini(&d);
    if (r < 0)
        fabric_part_fini(&part);
    else
        *ret_part = part;
    return r;
}
