/* The forms in which a fabric comes, and what is said of wrong ones. */
#include <criterion/criterion.h>
#include <string.h>

#include "model/fabric/fabric.h"

static struct fabric *read_as(enum fabric_format format, const char *text,
                              const char *labels)
{
    struct fabric_source source = {"test", text, strlen(text), format};
    struct fabric_labels keys;
    struct fabric *f = NULL;
    struct error err = {0};
    cr_assert_eq(fabric_labels_parse(labels, &keys, &err), 0, "%s", err.text);
    cr_assert_eq(fabric_read(&source, 1, &keys, &f, &err), 0, "%s", err.text);
    return f;
}

static const struct fabric_host *host(const struct fabric *f, const char *name)
{
    const struct fabric_host *h = fabric_find(f, name, strlen(name));
    cr_assert_not_null(h, "%s", name);
    return h;
}

static const char *domain_of(const struct fabric *f, const char *name,
                             unsigned tier)
{
    const struct fabric_domain *d =
        fabric_domain(f, fabric_up(f, host(f, name)->leaf, tier));
    return d ? d->name : "-";
}

static unsigned common(const struct fabric *f, const char *a, const char *b)
{
    return fabric_common_tier(f, host(f, a)->leaf, host(f, b)->leaf);
}

struct refusal {
    const char *text, *error;
};

static void expect_refusals(enum fabric_format format,
                            const struct refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fabric_source source = {"test", cases[i].text,
                                       strlen(cases[i].text), format};
        struct fabric *f = NULL;
        struct error err = {0};
        cr_expect_eq(fabric_read(&source, 1, NULL, &f, &err), -EINVAL, "%s",
                     cases[i].text);
        cr_expect_not_null(strstr(err.text, cases[i].error),
                           "%s\n  says \"%s\"\n  not  \"%s\"", cases[i].text,
                           err.text, cases[i].error);
        cr_expect_null(f);
    }
}

/* --- ibnetdiscover ------------------------------------------------------ */

#define SPINE \
    "Switch\t36 \"S-248a0703008a8600\"\t\t# \"spine1\" base port 0 lid 2\n"
#define LEAF(n)                                           \
    "Switch\t36 \"S-248a0703008a850" n "\"\t\t# \"leaf" n \
    "\" base port 0 lid 4\n"

static const char topology_file[] =
    "#\n# Topology file: generated on a day\n#\n"
    "vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x248a0703008a8501\n"
    "switchguid=0x248a0703008a8501(248a0703008a8501)\n" LEAF(
        "1") "[1]\t\"H-0c42a10300b12fd4\"[1](c42a10300b12fd4) \t\t# \"Host1 "
             "mlx5_0\" lid 9 "
             "4xEDR\n"
             "[2]\t\"H-0c42a10300b12fe4\"[1](c42a10300b12fe4) \t\t# \"MT4115 "
             "ConnectX4   "
             "Mellanox Technologies\" lid 10 4xEDR\n"
             "[36]\t\"S-248a0703008a8600\"[1]\t\t# \"spine1\" lid 2 4xEDR\n"
             "\n" LEAF(
                 "2") "[1]\t\"H-0c42a10300b13000\"[2](c42a10300b13001) \t\t# "
                      "\"host2\" lid 11 4xNDR\n"
                      "[36]\t\"S-248a0703008a8600\"[2]\t\t# \"spine1\" lid 2 "
                      "4xEDR\n"
                      "\n" SPINE "[1]\t\"S-248a0703008a8501\"[36]\t\t# "
                      "\"leaf1\" lid 4 4xEDR\n"
                      "[3][ext "
                      "7]\t\"R-248a0703008a8700\"[1](248a0703008a8701)\t\t# "
                      "\"r\" lid 8 4xEDR\n"
                      "\n"
                      "caguid=0xc42a10300b12fd4\n"
                      "Ca\t1 \"H-0c42a10300b12fd4\"\t\t# \"Host1 mlx5_0\"\n"
                      "[1](c42a10300b12fd4) \t\"S-248a0703008a8501\"[1]\t\t# "
                      "lid 9 lmc 0 \"leaf1\" lid 4 "
                      "4xEDR\n";

Test(fabric_read, topology_file)
{
    cleanup_with(fabric) struct fabric *f = read_as(FABRIC_AUTO, topology_file,
                                                    "");
    cr_expect_eq(fabric_n_hosts(f), 3, "an adapter without a host is one");
    const struct fabric_host *h = host(f, "host1");
    cr_assert_eq(h->n_ports, 1, "told from both sides, it is one");
    cr_expect_str_eq(h->ports[0].device, "mlx5_0");
    cr_expect_str_eq(h->ports[0].guid, "0c42a10300b12fd4");
    cr_expect_str_eq(h->ports[0].leaf, "leaf1");
    cr_expect_eq(h->ports[0].port, 1);
    cr_expect_eq(h->ports[0].speed_gbit_s, 100);
    cr_expect_eq(host(f, "host2")->ports[0].speed_gbit_s, 400);
    cr_expect_eq(host(f, "host2")->ports[0].port, 2);
    cr_expect_eq(common(f, "host1", "host2"), 1);
    cr_expect_str_eq(domain_of(f, "host1", 1), "spine1");
    cr_expect_eq(fabric_find_guid(f, "0xc42a10300b13000"), host(f, "host2"));
    cr_expect_eq(fabric_find_guid(f, "c42a10300b13001"), host(f, "host2"),
                 "by the port's, too");
}

Test(fabric_read, list_of_ports)
{
    static const char text[] =
        "DR path slid 0; dlid 0; 0,1 -> new Channel Adapter {0c42a10300b12fd4} "
        "portnum 1 lid 0-0 \"\"\n"
        "DR path slid 0; dlid 0; 0,1,2 -> known Switch {248a0703008a8501} "
        "portnum 0 lid 0-0 \"\"\n"
        "CA     9  1 0x0c42a10300b12fd5 4x HDR - SW     4  1 "
        "0x248a0703008a8501 ( 'host1 HCA-1' - 'MF0 # same ' )\n"
        "SW     4  1 0x248a0703008a8501 4x HDR - CA     9  1 "
        "0x0c42a10300b12fd5 ( 'MF0 # same ' - 'host1 HCA-1' )\n"
        "SW     4  2 0x248a0703008a8501 4x ???             'MF0 # same'\n"
        "CA     9  2 0x0c42a10300b12ff0 2x SDR - SW     5  1 "
        "0x248a0703008a8502 ( 'host1 HCA-2' - 'MF0 # same' )\r\n";
    cleanup_with(fabric) struct fabric *f = read_as(FABRIC_AUTO, text, "");
    const struct fabric_host *h = host(f, "host1");
    cr_assert_eq(h->n_ports, 2);
    cr_expect_eq(fabric_domain(f, h->leaf)->n_switches, 2);
    cr_expect_str_eq(h->ports[0].guid, "0c42a10300b12fd4",
                     "the adapter's, as discovered");
    cr_expect_str_eq(h->ports[1].guid, "0c42a10300b12ff0",
                     "the port's: no more is known");
    cr_expect_eq(h->ports[0].speed_gbit_s, 200);
    cr_expect_eq(h->ports[1].speed_gbit_s, 5);
    cr_expect_eq(h->ports[1].rail, 1);
    cr_expect_str_eq(h->ports[0].leaf, "MF0 # same 248a0703008a8501",
                     "two switches of one name are told apart");
}

/* Nodes whose adapters were never told a name: each is found by the GUID that
 * it knows, and is as near to others as its switch is. */
Test(fabric_read, adapters_without_a_name_are_found_by_guid)
{
    static const char text[] =
        "Switch 36 \"S-00000000000000a1\" # \"leaf1\" base port 0 lid 1\n"
        "[1] \"H-0000000000000011\"[1](12) # \"MT4129 ConnectX7 Mellanox "
        "Technologies\" lid 3 4xNDR\n"
        "[2] \"H-0000000000000021\"[1](22) # \"\" lid 4 4xNDR\n"
        "[3] \"H-0000000000000021\"[2](23) # \"\" lid 4 4xNDR\n"
        "[4] \"H-0000000000000031\"[1](32)\n" /* its name is below */
        "[5] \"H-0000000000000041\"[1](42) # \"localhost mlx5_0\" lid 5\n"
        "[6] \"H-0000000000000051\"[1](52) # \"Mellanox Technologies "
        "Aggregation Node\" lid 6 4xNDR\n"
        "[9] \"S-00000000000000b1\"[1] # \"spine\" lid 9 4xNDR\n"
        "Switch 36 \"S-00000000000000a2\" # \"leaf2\" base port 0 lid 2\n"
        "[1] \"H-0000000000000061\"[1](62) # \"localhost mlx5_0\" lid 7\n"
        "[2] \"H-0000000000000071\"[1](72) # \"l mlx5_0\" lid 8\n"
        "[9] \"S-00000000000000b1\"[2] # \"spine\" lid 9 4xNDR\n"
        "Switch 36 \"S-00000000000000b1\" # \"spine\" base port 0 lid 9\n"
        "Ca 1 \"H-0000000000000031\" # \"host3 mlx5_0\"\n"
        "[1](32) \"S-00000000000000a1\"[4] # lid 5 lmc 0 \"leaf1\" lid 1\n";
    static const struct {
        const char *guid, *name;
        unsigned n_ports;
    } cases[] = {
        {"0000:0000:0000:0011", "guid-0000000000000011", 1},
        {"0x12", "guid-0000000000000011", 1}, /* its port's */
        {"21", "guid-0000000000000021", 2},
        {"31", "host3", 1}, /* told with a name and without */
        {"71", "l", 1},     /* a name, as short as it is */
        {"41", "guid-0000000000000041", 1},
        {"61", "guid-0000000000000061", 1},
    };
    cleanup_with(fabric) struct fabric *f = read_as(FABRIC_AUTO, text, "");
    cr_expect_eq(fabric_n_hosts(f), 6);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct fabric_host *h = fabric_find_guid(f, cases[i].guid);
        cr_assert(h, "%s", cases[i].guid);
        cr_expect_str_eq(h->name, cases[i].name);
        cr_expect_eq(h->n_ports, cases[i].n_ports, "%s", h->name);
    }
    cr_expect_null(fabric_find_guid(f, "51"), "a switch's own");
    cr_expect_eq(common(f, "guid-0000000000000011", "host3"), 0);
    cr_expect_eq(common(f, "guid-0000000000000011", "guid-0000000000000061"),
                 1);
    cr_expect_str_eq(domain_of(f, "guid-0000000000000061", 0), "leaf2");
}

Test(fabric_read, wrong_subnets_are_refused)
{
    static const struct refusal cases[] = {
        {"\nwhat is this\n", "test:2: \"what is this\": must be a line of"},
        {"[1]\t\"S-1\"[2]\n", "test:1: \"[1]\t\"S-1\"[2]\": must be below"},
        {"Switch x\n", "test:1: \"x\": must be a number of ports"},
        {"Switch 36 \"X-1\"\n", "must be \"S-GUID\""},
        {"Switch 36 \"S-12345678901234567\"\n", "must be \"S-GUID\""},
        {"Switch 36 \"S-1\"\n", "must be # and a description"},
        {LEAF("1") "[1]\t\"S-1\"\n", "test:2: \"\": must be \"S-GUID\"[PORT]"},
        {LEAF("1") "[300]\t\"S-1\"[1]\n", "must be [PORT]"},
        {"CA 1 1 0x1 4x EDR - SW 1 1\n", "test:1: \"CA 1 1 0x1 4x EDR"},
        {"CA 1 1 0x1 4x EDR - SW 1 1 0x2 'a' - 'b'\n", "must be KIND LID"},
        {"SW 1 1 zz\n", "must be KIND LID PORT GUID"},
    };
    expect_refusals(FABRIC_IB, cases, ARRAY_LEN(cases));
}

/* --- Slurm -------------------------------------------------------------- */

Test(fabric_read, slurm_tree)
{
    cleanup_with(fabric) struct fabric *f =
        read_as(FABRIC_AUTO,
                "# switches\n\n"
                "SwitchName=top Switches=s[1-2],low LinkSpeed=9\n"
                "switchname=s1 SWITCHES=l[1-2]\nSwitchName=s2 Switches=l3\n"
                "SwitchName=l1 Nodes=n[01-03,10],other   # a comment\n"
                "SwitchName=l2 \\\n   Nodes=n[1-2]x[7-8]\n"
                "SwitchName=l3 Nodes=m\nSwitchName=low Nodes=z",
                "");
    cr_expect_eq(fabric_n_hosts(f), 5 + 4 + 1 + 1);
    cr_expect_eq(fabric_n_tiers(f), 3);
    cr_expect_eq(common(f, "n01", "n10"), 0);
    cr_expect_eq(common(f, "n02", "other"), 0);
    cr_expect_eq(common(f, "n03", "n1x7"), 1);
    cr_expect_eq(common(f, "n2x8", "m"), 2);
    cr_expect_eq(common(f, "m", "z"), 2, "low hangs on the top itself");
    cr_expect_str_eq(domain_of(f, "n01", 1), "s1");
    cr_expect_str_eq(domain_of(f, "n01", 2), "top");
    cr_expect_eq(host(f, "z")->n_ports, 1);
    cr_expect_str_eq(host(f, "z")->ports[0].leaf, "low");
}

Test(fabric_read, slurm_blocks)
{
    cleanup_with(fabric) struct fabric *f =
        read_as(FABRIC_AUTO,
                "BlockSizes=2,4,8\n"
                "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\n"
                "BlockName=b3 Nodes=n[5-6]\nBlockName=b4 Nodes=n[7-8]\n"
                "BlockName=b5 Nodes=n9\n",
                "");
    cr_expect_eq(fabric_n_tiers(f), 3);
    cr_expect_eq(common(f, "n1", "n2"), 0);
    cr_expect_eq(common(f, "n1", "n4"), 1);
    cr_expect_eq(common(f, "n4", "n5"), 2);
    cr_expect_eq(common(f, "n8", "n9"), FABRIC_APART);
    cr_expect_str_eq(domain_of(f, "n8", 1), "b3");
    cleanup_with(fabric) struct fabric *plain = read_as(
        FABRIC_AUTO, "BlockName=b1 Nodes=a\nBlockName=b2 Nodes=b\n", "");
    cr_expect_eq(fabric_n_tiers(plain), 1);
    cr_expect_eq(common(plain, "a", "b"), FABRIC_APART);
}

Test(fabric_read, wrong_topology_conf_is_refused)
{
    static const struct refusal cases[] = {
        {"SwitchName=a Nodes=n[3-1]", "test:1: Nodes: is \"n[3-1]\", must be "
                                      "ranges that go up"},
        {"SwitchName=a Nodes=n[1-2", "must be names such as"},
        {"SwitchName=a Nodes=n[]", "must be names such as"},
        {"SwitchName=a Nodes=n[1,]", "must be names such as"},
        {"SwitchName=a Nodes=n[x]", "must be names such as"},
        {"SwitchName=a Nodes=n]", "must be names such as"},
        {"SwitchName=a Nodes=n,,m", "must be names such as"},
        {"SwitchName=a Nodes=", "Nodes: is \"\", must be not empty"},
        {"SwitchName=a Nodes=n[1-9999999]", "more than 262144 hosts"},
        {"SwitchName=a Nodes=n[1234567890]", "must be names such as"},
        {"SwitchName=a Nodes=n_$", "host \"n_$\": must have letters"},
        {"SwitchName=a\n", "must be followed by either Nodes or Switches"},
        {"SwitchName=a Nodes=n Switches=b\n", "either Nodes or Switches"},
        {"SwitchName=a Nodes=n Nodes=m\n",
         "Nodes: is \"n\", must be given once"},
        {"SwitchName=a Nodes=n\n\nSwitchName=a Nodes=m\n",
         "test:3: SwitchName=a: is there already, in line 1"},
        {"SwitchName=a Switches=b\nSwitchName=c Nodes=n\n",
         "test:1: Switches: \"b\" has no line of its own"},
        {"SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
         "SwitchName=a: is, in the end, below itself"},
        {"SwitchName=a Color=red", "\"Color=red\": must be SwitchName="},
        {"Nodes=n", "has 0 of SwitchName=, BlockName= and BlockSizes="},
        {"SwitchName=a Nodes=n\nBlockName=b Nodes=m\n",
         "test:2: BlockName: is \"b\", must be absent"},
        {"BlockName=b Nodes=m\nSwitchName=a Nodes=n\n",
         "test:2: SwitchName: is \"a\", must be absent"},
        {"BlockSizes=4,6\n", "each a multiple"},
        {"BlockSizes=0\n", "each a multiple"},
        {"BlockSizes=2\nBlockSizes=2\n", "must be given once"},
        {"SwitchName=0 Nodes=n\nSwitchName=1 Switches=0\n"
         "SwitchName=2 Switches=1\nSwitchName=3 Switches=2\n"
         "SwitchName=4 Switches=3\nSwitchName=5 Switches=4\n"
         "SwitchName=6 Switches=5\nSwitchName=7 Switches=6\n"
         "SwitchName=8 Switches=7\n",
         "test:9: SwitchName=8: has more than 8 tiers"},
        {"SwitchName=a Nodes=n\nSwitchName=b Nodes=n\nSwitchName=c Nodes=n\n"
         "SwitchName=d Nodes=n\nSwitchName=e Nodes=n\nSwitchName=f Nodes=n\n"
         "SwitchName=g Nodes=n\nSwitchName=h Nodes=n\nSwitchName=i Nodes=n\n"
         "SwitchName=j Nodes=n\nSwitchName=k Nodes=n\nSwitchName=l Nodes=n\n"
         "SwitchName=m Nodes=n\nSwitchName=n Nodes=n\nSwitchName=o Nodes=n\n"
         "SwitchName=p Nodes=n\nSwitchName=q Nodes=n\n",
         "test: host \"n\": has more than 16 ports"},
    };
    expect_refusals(FABRIC_SLURM, cases, ARRAY_LEN(cases));
}

/* --- labels ------------------------------------------------------------- */

#define NODE(name, labels)                              \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name \
    "\",\"labels\":{" labels "}}}"
#define LABEL(key, value) "\"" key "\":\"" value "\""
#define LIST(items) \
    "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" items "]}"
#define AWS(n, value) LABEL("topology.k8s.aws/network-node-layer-" n, value)
#define TIER(n, value) LABEL("fabric.topograph.run/tier-" n, value)

/* Layer 1 is the top, 3 the leaf. */
Test(fabric_read, labels_of_aws)
{
    static const char text[] = LIST(
        NODE("a", AWS("1", "t") "," AWS("2", "s") "," AWS("3", "l")) "," NODE(
            "b",
            AWS("1", "t") "," AWS("2", "s") "," AWS(
                "3",
                "l")) "," NODE("c",
                               AWS("1", "t") "," AWS("2", "s") "," AWS(
                                   "3",
                                   "m")) "," NODE("d",
                                                  AWS("1", "t") "," AWS("2", "r") "," AWS(
                                                      "3",
                                                      "l")) "," NODE("u",
                                                                     LABEL(
                                                                         "kuber"
                                                                         "netes"
                                                                         ".io/"
                                                                         "arch",
                                                                         "arm6"
                                                                         "4")));
    cleanup_with(fabric) struct fabric *f = read_as(FABRIC_AUTO, text, "");
    cr_expect_eq(fabric_n_hosts(f), 4);
    cr_expect_null(fabric_find(f, "u", 1), "not said: unknown");
    cr_expect_eq(common(f, "a", "b"), 0);
    cr_expect_eq(common(f, "a", "c"), 1);
    cr_expect_eq(common(f, "a", "d"), 2, "l of r is another l");
    cr_expect_str_eq(domain_of(f, "a", 0), "l");
    cr_expect_str_eq(domain_of(f, "a", 1), "s");
    cr_expect_str_eq(domain_of(f, "a", 2), "t");
    cleanup_with(fabric) struct fabric *given = read_as(FABRIC_AUTO, text,
                                                        "aws");
    cr_expect_eq(fabric_hash(given), fabric_hash(f));
    cleanup_with(fabric) struct fabric *other = read_as(FABRIC_AUTO, text,
                                                        "gke");
    cr_expect_eq(fabric_n_hosts(other), 0);
}

Test(fabric_read, labels_of_others)
{
    cleanup_with(fabric) struct fabric *topograph =
        read_as(FABRIC_AUTO,
                LIST(NODE("a", TIER("0", "l1") "," TIER("1", "s")) "," NODE(
                    "b", TIER("0", "l2") "," TIER("1", "s"))),
                "");
    cr_expect_eq(common(topograph, "a", "b"), 1);
#define NV(key, value) LABEL("network.topology.nvidia.com/" key, value)
    cleanup_with(fabric) struct fabric *nvidia = read_as(
        FABRIC_AUTO,
        LIST(NODE(
            "a",
            NV("leaf", "l1") "," NV("spine", "s") "," NV(
                "core",
                "c")) "," NODE("b",
                               NV("block", "l1") "," NV("spine", "s") "," NV(
                                   "datacenter", "c") "," NV("accelerator",
                                                             "x"))),
        "");
    cr_expect_eq(common(nvidia, "a", "b"), 0, "earlier names of the same");
    cr_expect_eq(fabric_n_tiers(nvidia), 3);
#define GCE(key, value) LABEL("cloud.google.com/gce-topology-" key, value)
    cleanup_with(fabric) struct fabric *gke = read_as(
        FABRIC_AUTO,
        LIST(NODE("a",
                  GCE("block", "b") "," GCE("subblock", "s") "," GCE(
                      "host", "h1")) "," NODE("b",
                                              GCE("block", "b") "," GCE(
                                                  "subblock",
                                                  "s") "," GCE("host", "h2"))),
        "");
    cr_expect_eq(common(gke, "a", "b"), 0);
    cleanup_with(fabric) struct fabric *own = read_as(
        FABRIC_LABELS,
        LIST(NODE("a", LABEL("x/rack", "1") "," LABEL("x/row", "1")) "," NODE(
            "b", LABEL("x/rack", "2") "," LABEL("x/row", "1"))),
        "x/rack,x/row");
    cr_expect_eq(common(own, "a", "b"), 1);
}

/* What is not said is near to none there, but above. */
Test(fabric_read, labels_with_gaps)
{
    cleanup_with(fabric) struct fabric *f = read_as(
        FABRIC_AUTO,
        LIST(NODE("a", TIER("1", "s")) "," NODE("b", TIER("1", "s")) "," NODE(
            "c",
            TIER("0", "l") "," TIER(
                "2",
                "t")) "," NODE("d",
                               TIER("0", "l") "," TIER(
                                   "2",
                                   "t")) "," NODE("e",
                                                  TIER("0", "m") "," TIER(
                                                      "2",
                                                      "t")) "," NODE("g",
                                                                     TIER(
                                                                         "0",
                                                                         "l"))),
        "");
    cr_expect_eq(common(f, "a", "b"), 1);
    cr_expect_eq(common(f, "c", "d"), 0);
    cr_expect_eq(common(f, "c", "e"), 2);
    cr_expect_eq(common(f, "c", "a"), FABRIC_APART);
    cr_expect_eq(common(f, "c", "g"), FABRIC_APART);
    cr_expect_eq(fabric_domain(f, host(f, "a")->leaf)->n_hosts, 1);
}

Test(fabric_read, wrong_labels_are_refused)
{
    static const struct refusal cases[] = {
        {"{\"kind\":\"List\"}", "test:1: items: required member missing"},
        {"{\"items\":[{\"metadata\":{\"labels\":{" TIER("0", "x") "}}}]}",
         "metadata.name has 0 bytes"},
        {"{\"items\":[\n" NODE("a", TIER("0", "x/y")) "]}",
         "test:2: a label's value is \"x/y\""},
        {"{\"items\":[" NODE("a b", TIER("0", "x")) "]}",
         "host \"a b\": must have letters"},
        {"{\"items\":[" NODE("a", "\"x\":3") "]}", "at line 1 column"},
        {"{\"items\":{}}", "at line 1 column"},
        {"{\"items\":[]} x", "at line 1 column"},
    };
    expect_refusals(FABRIC_LABELS, cases, ARRAY_LEN(cases));
}

Test(fabric_read, keys_of_labels)
{
    struct fabric_labels keys;
    struct error err = {0};
    cr_expect_eq(fabric_labels_parse("", &keys, &err), 0);
    cr_expect_eq(keys.n_keys, 0);
    cr_expect_eq(fabric_labels_parse("aws", &keys, &err), 0);
    cr_assert_eq(keys.n_keys, 3);
    cr_expect_str_eq(keys.keys[0], "topology.k8s.aws/network-node-layer-3");
    cr_expect_eq(fabric_labels_parse("topograph", &keys, &err), 0);
    cr_expect_eq(keys.n_keys, 8);
    static const char *const wrong[] = {",", "a,,b", "a,", "a b",
                                        "1,2,3,4,5,6,7,8,9"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        cr_expect_eq(fabric_labels_parse(wrong[i], &keys, &err), -EINVAL, "%s",
                     wrong[i]);
    cr_expect_eq(keys.n_keys, 8, "untouched by what is wrong");
}

/* --- JSON --------------------------------------------------------------- */

Test(fabric_read, json)
{
    cleanup_with(fabric) struct fabric *f = read_as(
        FABRIC_AUTO,
        " {\"hosts\":[{\"ports\":[{\"device\":\"mlx5_1\",\"leaf\":\"l2\"},"
        "{\"device\":\"mlx5_0\",\"leaf\":\"l1\",\"port\":1,"
        "\"guid\":\"0c42:a103:00b1:2fd4\",\"speed-gbit-s\":400}],"
        "\"name\":\"a\"},{\"name\":\"b\",\"leaf\":\"l\\u0031\"}],"
        "\"switches\":[{\"links\":[\"s\"],\"name\":\"l1\"},"
        "{\"name\":\"s\"},{\"name\":\"l2\",\"links\":[\"s\"]}]}",
        "");
    const struct fabric_host *a = host(f, "a");
    cr_assert_eq(a->n_ports, 2);
    cr_expect_str_eq(a->ports[0].device, "mlx5_0", "rails in order of devices");
    cr_expect_eq(a->ports[0].speed_gbit_s, 400);
    cr_expect_str_eq(a->ports[0].guid, "0c42a10300b12fd4");
    cr_expect_str_eq(a->ports[1].leaf, "l2");
    cr_expect_eq(common(f, "a", "b"), 1);
}

Test(fabric_read, wrong_json_is_refused)
{
    static const struct refusal cases[] = {
        {"{\"switches\":[],\n\"what\":1}",
         "test:2: member: is \"what\", must be switches or hosts"},
        {"[]", "test: expected an object"},
        {" \n", "test: is empty"},
        {"{\"hosts\":[{\"name\":\"a\"}]}",
         "hosts[].leaf: required member missing"},
        {"{\"hosts\":[{\"leaf\":\"a\"}]}",
         "hosts[].name: required member missing"},
        {"{\"hosts\":[\n\n{\"name\":\"a\",\"leaf\":\"x\"}]}",
         "test:3: switch \"x\" is not among switches"},
        {"{\"switches\":[{\"name\":\"a\",\"links\":[\"b\"]}]}",
         "switch \"b\" is not among switches"},
        {"{\"switches\":[{\"name\":\"a\"},{\"name\":\"a\"}]}",
         "switches[].name: \"a\" is there already"},
        {"{\"switches\":[{\"links\":[]}]}",
         "switches[].name: required member missing"},
        {"{\"switches\":[{\"name\":\"\"}]}", "must be 1 to 253 bytes long"},
        {"{\"switches\":[{\"name\":\"a\\u0001\"}]}", "control character"},
        {"{\"switches\":[{\"name\":\"x\"}],\"hosts\":[{\"name\":\"a\","
         "\"leaf\":\"x\"},{\"name\":\"A\",\"leaf\":\"x\"}]}",
         "hosts[].name: is \"A\", must be there once"},
        {"{\"hosts\":[{\"name\":\"a\",\"ports\":[{}]}]}",
         "hosts[].ports[].leaf: required member missing"},
        {"{\"hosts\":[{\"name\":\"a\",\"ports\":[{\"guid\":\"zz\"}]}]}",
         "hosts[].ports[].guid: is \"zz\", must be up to 16"},
        {"{\"hosts\":[{\"name\":\"a\",\"ports\":[{\"port\":256}]}]}",
         "hosts[].ports[].port: must be from 0 to 255"},
        {"{\"hosts\":[{\"name\":\"a\",\"ports\":[{\"rail\":1}]}]}",
         "hosts[].ports[]: member: is \"rail\""},
        {"{\"hosts\":[{\"name\":\"a\",\"ports\":[{\"leaf\":\"l\"},"
         "{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"},"
         "{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"},"
         "{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"},"
         "{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"},{\"leaf\":\"l\"}"
         "]}]}",
         "hosts[].ports: at most 16 allowed"},
    };
    expect_refusals(FABRIC_JSON, cases, ARRAY_LEN(cases));
}
