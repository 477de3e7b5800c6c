/* Domains out of graphs, and several sources in one fabric. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/str.h"
#include "model/fabric/fabric.h"
#include "tests/lib/sanitized.h"

static struct fabric *read_n(const char *const *texts, size_t n)
{
    struct fabric_source sources[FABRIC_SOURCES_MAX];
    struct fabric *f = NULL;
    struct error err = {0};
    for (size_t i = 0; i < n; i++)
        sources[i] = (struct fabric_source){"test", texts[i], strlen(texts[i]),
                                            FABRIC_AUTO};
    cr_assert_eq(fabric_read(sources, n, NULL, &f, &err), 0, "%s", err.text);
    return f;
}

static struct fabric *read_one(const char *text)
{
    return read_n(&text, 1);
}

static int32_t leaf_of(const struct fabric *f, const char *host)
{
    const struct fabric_host *h = fabric_find(f, host, strlen(host));
    return h ? h->leaf : FABRIC_NONE;
}

static unsigned common(const struct fabric *f, const char *a, const char *b)
{
    return fabric_common_tier(f, leaf_of(f, a), leaf_of(f, b));
}

/* ' stands for ". */
static struct fabric *read_json(const char *text)
{
    cleanup_free char *quoted = xstrdup(text);
    for (char *p = quoted; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return read_one(quoted);
}

Test(fabric, without_one_nothing_is_known)
{
    cr_expect_eq(fabric_n_tiers(NULL), 0);
    cr_expect_eq(fabric_n_domains(NULL), 0);
    cr_expect_eq(fabric_n_hosts(NULL), 0);
    cr_expect_null(fabric_host(NULL, 0));
    cr_expect_null(fabric_domain(NULL, 0));
    cr_expect_null(fabric_find(NULL, "a", 1));
    cr_expect_null(fabric_find_guid(NULL, "1"));
    cr_expect_eq(fabric_up(NULL, 0, 0), FABRIC_NONE);
    cr_expect_eq(fabric_common_tier(NULL, 0, 0), FABRIC_APART);
    cleanup_with(fabric) struct fabric *none = read_n(NULL, 0);
    cr_expect_eq(fabric_n_hosts(none), 0);
    cr_expect_eq(fabric_n_tiers(none), 0);
    fabric_unref(NULL);
}

/* Two leaves to each of two spines, all spines to a core: a fat tree, which
 * is no tree. */
static const char fat[] = "{'switches':[{'name':'l1','links':['s1','s2']},"
                          "{'name':'l2','links':['s1','s2']},"
                          "{'name':'l3','links':['s3','s4']},"
                          "{'name':'l4','links':['s3','s4']},"
                          "{'name':'s1','links':['c']},"
                          "{'name':'s2','links':['c']},"
                          "{'name':'s3','links':['c']},"
                          "{'name':'s4','links':['c']},{'name':'c'}],"
                          "'hosts':[{'name':'a','leaf':'l1'},"
                          "{'name':'b','leaf':'l1'},{'name':'c','leaf':'l2'},"
                          "{'name':'d','leaf':'l3'},{'name':'e','leaf':'l4'}]}";

Test(fabric, a_fat_tree_has_nested_domains)
{
    cleanup_with(fabric) struct fabric *f = read_json(fat);
    cr_expect_eq(fabric_n_tiers(f), 3);
    cr_expect_eq(fabric_n_domains(f), 4 + 2 + 1);
    cr_expect_eq(common(f, "a", "b"), 0);
    cr_expect_eq(common(f, "a", "c"), 1);
    cr_expect_eq(common(f, "d", "e"), 1);
    cr_expect_eq(common(f, "a", "e"), 2);
    cr_expect_eq(common(f, "a", "nobody"), FABRIC_APART);
    cr_expect_eq(fabric_common_tier(f, FABRIC_NONE, FABRIC_NONE), FABRIC_APART,
                 "unknown is near to none, not even to unknown");

    int32_t spine = fabric_up(f, leaf_of(f, "a"), 1);
    const struct fabric_domain *d = fabric_domain(f, spine);
    cr_assert_not_null(d);
    cr_expect_str_eq(d->name, "s1");
    cr_expect_eq(d->n_switches, 2);
    cr_expect_eq(d->n_hosts, 3);
    cr_expect_eq(fabric_up(f, leaf_of(f, "c"), 1), spine);
    cr_expect_eq(fabric_up(f, spine, 1), spine);
    cr_expect_eq(fabric_up(f, spine, 0), FABRIC_NONE);
    cr_expect_eq(fabric_up(f, spine, 3), FABRIC_NONE);
    cr_expect_eq(fabric_up(f, FABRIC_NONE, 1), FABRIC_NONE);
    cr_expect_str_eq(fabric_domain(f, fabric_up(f, spine, 2))->name, "c");
}

#define GROUP(l)                                                   \
    "{'name':'" l "1','leaf':'" l "'},{'name':'" l "2','leaf':'" l \
    "'},{'name':'" l "3','leaf':'" l "'},{'name':'" l "4','leaf':'" l "'}"

/* A host on a spine or a core brings no others near to each other. */
Test(fabric, gateways_on_spine_and_core_are_no_leaves)
{
    static const char *const more[] = {
        "", ",{'name':'g','leaf':'s1'}", ",{'name':'g','leaf':'c'}",
        ",{'name':'g','leaf':'s1'},{'name':'h','leaf':'c'}"};
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        cleanup_str struct str text = STR_INIT(1 << 16);
        str_add_n(&text, fat, (size_t)(strstr(fat, "'hosts'") - fat));
        str_addf(&text, "'hosts':[%s%s,{'name':'thin','leaf':'l4'}]}",
                 GROUP("l1") "," GROUP("l2") "," GROUP("l3"), more[i]);
        cleanup_with(fabric) struct fabric *f = read_json(str_text(&text));
        cr_expect_eq(fabric_n_tiers(f), 3, "%zu", i);
        cr_expect_eq(common(f, "l11", "l12"), 0, "%zu", i);
        cr_expect_eq(common(f, "l11", "l21"), 1, "%zu", i);
        cr_expect_eq(common(f, "l31", "thin"), 1, "%zu", i);
        cr_expect_eq(common(f, "l11", "l31"), 2, "%zu", i);
        cr_expect_eq(common(f, "l21", "thin"), 2, "%zu", i);
        if (i == 1 || i == 3) {
            cr_expect_eq(common(f, "g", "l11"), 1);
            cr_expect_eq(common(f, "g", "l31"), 2);
        } else if (i == 2)
            cr_expect_eq(common(f, "g", "l11"), 2);
    }
}

/* Leaves that are linked to each other are two leaves all the same. */
Test(fabric, linked_leaves_meet_on_the_next_tier)
{
    cleanup_with(fabric) struct fabric *f = read_json(
        "{'switches':[{'name':'x','links':['y']},{'name':'y'}],"
        "'hosts':[{'name':'a','leaf':'x'},{'name':'b','leaf':'y'}]}");
    cr_expect_eq(fabric_n_tiers(f), 2);
    cr_expect_eq(common(f, "a", "b"), 1);
}

Test(fabric, switches_without_a_way_are_apart)
{
    cleanup_with(fabric) struct fabric *f = read_json(
        "{'switches':[{'name':'x'},{'name':'y'},"
        "{'name':'z','links':['w']},{'name':'w'}],"
        "'hosts':[{'name':'a','leaf':'x'},{'name':'b','leaf':'y'}]}");
    cr_expect_eq(fabric_n_tiers(f), 1, "no host is below z and w");
    cr_expect_eq(common(f, "a", "b"), FABRIC_APART);
}

/* Four rails, each a plane of its own with a spine; e has lost one rail, f
 * three of them. */
#define FOUR(group)                                                         \
    "'ports':[{'leaf':'1" group "'},{'leaf':'2" group "'},{'leaf':'3" group \
    "'},{'leaf':'4" group "'}]"
static const char rails[] =
    "{'switches':[{'name':'p1','links':['1a','1b']},"
    "{'name':'p2','links':['2a','2b']},{'name':'p3','links':['3a','3b']},"
    "{'name':'p4','links':['4a','4b']},{'name':'1a'},{'name':'2a'},"
    "{'name':'3a'},{'name':'4a'},{'name':'1b'},{'name':'2b'},{'name':'3b'},"
    "{'name':'4b'}],'hosts':["
    "{'name':'a'," FOUR("a") "},{'name':'b'," FOUR(
        "a") "},"
             "{'name':'c'," FOUR("b") "},{'name':'d'," FOUR(
                 "b") "},"
                      "{'name':'e','ports':[{'leaf':'1a'},{'leaf':'2a'},{'leaf'"
                      ":'4a'}]},"
                      "{'name':'f','leaf':'2b'}]}";

Test(fabric, rails_make_one_leaf)
{
    cleanup_with(fabric) struct fabric *f = read_json(rails);
    cr_expect_eq(common(f, "a", "b"), 0);
    cr_expect_eq(common(f, "a", "c"), 1);
    cr_expect_eq(common(f, "a", "e"), 0, "most of the rails are left");
    cr_expect_eq(common(f, "c", "e"), 1);
    cr_expect_eq(common(f, "c", "f"), FABRIC_APART,
                 "of c's rails it has one: never taken for near");
    const struct fabric_host *a = fabric_find(f, "a", 1);
    cr_assert_eq(a->n_ports, 4);
    for (unsigned i = 0; i < 4; i++)
        cr_expect_eq(a->ports[i].rail, i);
    cr_expect_eq(fabric_domain(f, a->leaf)->n_switches, 4);
    cr_expect_eq(fabric_domain(f, a->leaf)->n_hosts, 3);
}

/* A host on two fabrics does not bring those near that are on one each. */
Test(fabric, a_gateway_joins_nothing)
{
    cleanup_with(fabric) struct fabric *f = read_json(
        "{'switches':[{'name':'x'},{'name':'y'}],'hosts':["
        "{'name':'a','leaf':'x'},{'name':'b','leaf':'y'},"
        "{'name':'g','ports':[{'leaf':'x'},{'leaf':'y'}]}]}");
    cr_expect_eq(common(f, "a", "b"), FABRIC_APART);
    cr_expect_eq(common(f, "a", "g"), FABRIC_APART);
}

Test(fabric, the_first_source_places_a_host)
{
    static const char *const texts[] = {
        "SwitchName=x Nodes=a,b\nSwitchName=s Switches=x,y\n"
        "SwitchName=y Nodes=c\n",
        "{\"switches\":[{\"name\":\"x\"},{\"name\":\"z\"}],\"hosts\":["
        "{\"name\":\"c\",\"leaf\":\"x\"},{\"name\":\"d\",\"leaf\":\"x\"},"
        "{\"name\":\"e\",\"leaf\":\"z\"},{\"name\":\"A\",\"leaf\":\"z\"}]}",
    };
    cleanup_with(fabric) struct fabric *f = read_n(texts, 2);
    cr_expect_eq(fabric_n_hosts(f), 5);
    cr_expect_eq(common(f, "a", "c"), 1);
    cr_expect_eq(common(f, "a", "d"), FABRIC_APART,
                 "an x of another source is another x");
    cr_expect_eq(common(f, "d", "e"), FABRIC_APART);
    cr_expect_eq(fabric_domain(f, leaf_of(f, "e"))->n_hosts, 1,
                 "A is placed already");
    for (size_t i = 1; i < fabric_n_hosts(f); i++)
        cr_expect_lt(
            strcmp(fabric_host(f, i - 1)->name, fabric_host(f, i)->name), 0);
}

Test(fabric, a_guid_of_two_hosts_tells_neither)
{
    cleanup_with(fabric) struct fabric *f = read_json(
        "{'switches':[{'name':'x'}],'hosts':["
        "{'name':'a','ports':[{'leaf':'x','guid':'0x12'}]},"
        "{'name':'b','ports':[{'leaf':'x','guid':'0:12'}]},"
        "{'name':'c','ports':[{'leaf':'x','guid':'C0'}]}]}");
    cr_expect_null(fabric_find_guid(f, "12"));
    cr_expect_eq(fabric_find_guid(f, "0000:0000:0000:00c0"),
                 fabric_find(f, "c", 1));
    cr_expect_str_eq(fabric_find(f, "c", 1)->ports[0].guid, "00000000000000c0");
    static const char *const wrong[] = {
        "", "0", "0x", "xyz", "c0:", ":c0", "12345678123456781"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        cr_expect_null(fabric_find_guid(f, wrong[i]), "%s", wrong[i]);
}

/* --- the order of what is read is no matter ----------------------------- */

enum { SWITCHES = 24, HOSTS = 40, LINKS = 30 };

struct random_graph {
    unsigned link[LINKS][2];
    unsigned host[HOSTS][2]; /* its switches, maybe the same one twice */
};

static unsigned below(uint64_t *seed, unsigned n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % n;
}

static void shuffle(unsigned *list, unsigned n, uint64_t *seed)
{
    for (unsigned i = 0; i < n; i++)
        list[i] = i;
    for (unsigned i = n; i-- > 1;) {
        unsigned k = below(seed, i + 1), held = list[i];
        list[i] = list[k];
        list[k] = held;
    }
}

static void write_graph(const struct random_graph *g, uint64_t order,
                        struct str *out)
{
    unsigned turn[HOSTS];
    shuffle(turn, SWITCHES, &order);
    str_add(out, "{\"switches\":[");
    for (unsigned i = 0; i < SWITCHES; i++) {
        bool any = false;
        str_addf(out, "%s{\"name\":\"s%u\",\"links\":[", i ? "," : "", turn[i]);
        for (unsigned k = 0; k < LINKS; k++)
            if (g->link[k][order & 1] == turn[i]) {
                str_addf(out, "%s\"s%u\"", any ? "," : "",
                         g->link[k][!(order & 1)]);
                any = true;
            }
        str_add(out, "]}");
    }
    shuffle(turn, HOSTS, &order);
    str_add(out, "],\"hosts\":[");
    for (unsigned i = 0; i < HOSTS; i++) {
        const unsigned *at = g->host[turn[i]];
        unsigned swap = below(&order, 2);
        str_addf(out,
                 "%s{\"name\":\"h%u\",\"ports\":[{\"leaf\":\"s%u\"},"
                 "{\"leaf\":\"s%u\"}]}",
                 i ? "," : "", turn[i], at[swap], at[!swap]);
    }
    str_add(out, "]}");
}

/* The definition, in the slowest way: what is reached from a switch without
 * a switch above `tier`. */
static void flood(const struct random_graph *g, const unsigned *level,
                  unsigned tier, unsigned from, bool *seen)
{
    seen[from] = true;
    for (unsigned k = 0; k < LINKS && tier > 0; k++)
        for (unsigned e = 0; e < 2; e++) {
            unsigned to = g->link[k][!e];
            if (g->link[k][e] == from && !seen[to] && level[to] <= tier)
                flood(g, level, tier, to, seen);
        }
}

static void find_levels(const struct random_graph *g, unsigned *level)
{
    for (unsigned i = 0; i < SWITCHES; i++)
        level[i] = 99;
    for (unsigned i = 0; i < HOSTS; i++)
        level[g->host[i][0]] = level[g->host[i][1]] = 0;
    for (unsigned round = 0; round < SWITCHES; round++)
        for (unsigned k = 0; k < LINKS; k++)
            for (unsigned e = 0; e < 2; e++)
                if (level[g->link[k][e]] > level[g->link[k][!e]] + 1)
                    level[g->link[k][e]] = level[g->link[k][!e]] + 1;
    for (unsigned i = 0; i < SWITCHES; i++)
        if (level[i] < 99 && level[i] > FABRIC_TIERS_MAX - 1)
            level[i] = FABRIC_TIERS_MAX - 1;
}

/* For hosts with one leaf: they meet never below where they would if every
 * switch with hosts were a leaf. */
static void check_graph(const struct random_graph *g, const struct fabric *f)
{
    unsigned level[SWITCHES];
    char a[8], b[8];
    find_levels(g, level);
    for (unsigned i = 0; i < HOSTS; i++)
        for (unsigned k = 0; k < HOSTS; k++) {
            unsigned tier = 0;
            if (g->host[i][0] != g->host[i][1] ||
                g->host[k][0] != g->host[k][1])
                continue;
            for (; tier < FABRIC_TIERS_MAX; tier++) {
                bool seen[SWITCHES] = {false};
                flood(g, level, tier, g->host[i][0], seen);
                if (seen[g->host[k][0]])
                    break;
            }
            (void)snprintf(a, sizeof a, "h%u", i);
            (void)snprintf(b, sizeof b, "h%u", k);
            if (tier == FABRIC_TIERS_MAX)
                tier = FABRIC_APART;
            cr_assert_geq(common(f, a, b), tier, "%s %s", a, b);
        }
}

Test(fabric, random_graphs_in_any_order)
{
    for (uint64_t seed = 1; seed <= ROUNDS_OF(300); seed++) {
        struct random_graph g;
        uint64_t s = seed;
        unsigned leaves = 1 + below(&s, SWITCHES);
        for (unsigned i = 0; i < LINKS; i++)
            for (unsigned e = 0; e < 2; e++)
                g.link[i][e] = below(&s, SWITCHES);
        for (unsigned i = 0; i < HOSTS; i++) {
            g.host[i][0] = g.host[i][1] = below(&s, leaves);
            if (below(&s, 4) == 0)
                g.host[i][1] = below(&s, leaves);
        }
        cleanup_str struct str one = STR_INIT(1 << 16);
        cleanup_str struct str other = STR_INIT(1 << 16);
        write_graph(&g, seed * 2, &one);
        write_graph(&g, seed * 7919 + 1, &other);
        cleanup_with(fabric) struct fabric *f = read_one(str_text(&one));
        cleanup_with(fabric) struct fabric *f2 = read_one(str_text(&other));
        cr_assert_eq(fabric_hash(f), fabric_hash(f2), "seed %d", (int)seed);
        check_graph(&g, f);
    }
}

Test(fabric, another_content_is_another_hash)
{
    static const char *const texts[] = {
        "SwitchName=x Nodes=a\n",
        "SwitchName=y Nodes=a\n",
        "SwitchName=x Nodes=b\n",
        "SwitchName=x Nodes=a,b\n",
        "SwitchName=x Nodes=a\nSwitchName=s Switches=x\n",
        "# none\n"};
    uint64_t hashes[ARRAY_LEN(texts)];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_with(fabric) struct fabric *f = read_one(texts[i]);
        hashes[i] = fabric_hash(f);
        for (size_t k = 0; k < i; k++)
            cr_expect_neq(hashes[i], hashes[k], "%zu %zu", i, k);
    }
}

/* --- caps and size ------------------------------------------------------ */

Test(fabric, too_many_sources_are_refused)
{
    struct fabric_source sources[FABRIC_SOURCES_MAX + 1];
    struct fabric *f = NULL;
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        sources[i] = (struct fabric_source){"x", "", 0, FABRIC_AUTO};
    cr_expect_eq(fabric_read(sources, ARRAY_LEN(sources), NULL, &f, &err),
                 -EINVAL);
    sources[0].size = FABRIC_TEXT_MAX + 1;
    cr_expect_eq(fabric_read(sources, 1, NULL, &f, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "x: has more than"), "%s", err.text);
    cr_expect_null(f);
}

static double read_timed(const char *what, const struct str *text,
                         size_t n_hosts)
{
    struct fabric_source source = {what, text->data, text->size, FABRIC_AUTO};
    cleanup_with(fabric) struct fabric *f = NULL;
    struct error err = {0};
    struct timespec from, to;
    cr_assert(!text->overflow);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    cr_assert_eq(fabric_read(&source, 1, NULL, &f, &err), 0, "%s", err.text);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double s = (double)(to.tv_sec - from.tv_sec) +
               (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    cr_expect_eq(fabric_n_hosts(f), n_hosts);
    (void)printf("%s: %zu hosts, %zu bytes, %zu domains in %.2f s\n", what,
                 n_hosts, text->size, fabric_n_domains(f), s);
    return s;
}

/* The shortest of three: what else the machine does is not meant. */
static double read_best(const char *what, const struct str *text,
                        size_t n_hosts)
{
    double best = 1e9;
    for (unsigned i = 0; i < 3; i++) {
        double s = read_timed(what, text, n_hosts);
        best = s < best ? s : best;
    }
    return best;
}

/* 100,000 hosts, 40 on a leaf, 50 leaves on a spine, eight rails in JSON. */
Test(fabric, a_hundred_thousand_hosts)
{
    cleanup_str struct str slurm = STR_INIT(1 << 26);
    cleanup_str struct str labels = STR_INIT(1 << 26);
    cleanup_str struct str ib = STR_INIT(1 << 26);
    cleanup_str struct str json = STR_INIT(1 << 26);
    str_add(&labels, "{\"kind\":\"List\",\"items\":[");
    str_add(&json, "{\"switches\":[{\"name\":\"top\"}");
    for (unsigned i = 0; i < 2500; i++) {
        str_addf(&slurm, "SwitchName=l%u Nodes=n[%u-%u]\n", i, i * 40,
                 i * 40 + 39);
        str_addf(&ib, "SW 1 1 0x%x 4x EDR - SW 1 1 0x%x ( 'l%u' - 's%u' )\n",
                 i + 1, 100000 + i / 50, i, i / 50);
        for (unsigned r = 0; r < 8; r++)
            str_addf(&json, ",{\"name\":\"l%u-%u\",\"links\":[\"top\"]}", i, r);
    }
    for (unsigned i = 0; i < 50; i++)
        str_addf(&slurm, "SwitchName=s%u Switches=l[%u-%u]\n", i, i * 50,
                 i * 50 + 49);
    str_add(&slurm, "SwitchName=c Switches=s[0-49]\n");
    str_add(&json, "],\"hosts\":[");
    for (unsigned i = 0; i < 100000; i++) {
        str_addf(&labels,
                 "%s{\"metadata\":{\"name\":\"n%u\",\"labels\":{"
                 "\"kubernetes.io/arch\":\"arm64\","
                 "\"topology.k8s.aws/network-node-layer-1\":\"c\","
                 "\"topology.k8s.aws/network-node-layer-2\":\"s%u\","
                 "\"topology.k8s.aws/network-node-layer-3\":\"l%u\"}}}",
                 i ? ",\n" : "", i, i / 2000, i / 40);
        str_addf(&ib,
                 "CA 1 1 0x%x 4x EDR - SW 1 1 0x%x ( 'n%u mlx5_0' - 'l%u' )\n",
                 200000 + i, i / 40 + 1, i, i / 40);
        str_addf(&json, "%s{\"name\":\"n%u\",\"ports\":[", i ? ",\n" : "", i);
        for (unsigned r = 0; r < 8; r++)
            str_addf(&json, "%s{\"leaf\":\"l%u-%u\",\"device\":\"mlx5_%u\"}",
                     r ? "," : "", i / 40, r, r);
        str_add(&json, "]}");
    }
    str_add(&labels, "]}");
    str_add(&json, "]}");
    double s = read_best("slurm", &slurm, 100000);
    s += read_best("labels", &labels, 100000);
    s += read_best("ib", &ib, 100000);
    s += read_best("json", &json, 100000);
    cr_expect_lt(s, 20, "each takes about a second, and none the square");
}
