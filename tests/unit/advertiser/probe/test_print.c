#include "advertiser/probe/print.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/describe/hostfile.h"
#include "advertiser/describe/hosts.h"
#include "lib/base/json.h"

static struct topo *host(const char *text)
{
    struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(hostfile_read(text, strlen(text), "h1", &topo, &err), 0, "%s",
                 err.text);
    return topo;
}

typedef void print_f(const struct topo *topo, struct str *out);

static char *printed(print_f *print, const struct topo *topo)
{
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    print(topo, &out);
    return str_steal(&out);
}

static const char two[] =
    "package 0\n"
    "  numa 0 cpus=8 memory=16GiB\n"
    "    root 0000:20\n"
    "      bridge 0000:20:01.0\n"
    "        card 0000:21:00.0 id=15b3:a2d6 functions=2 cores=8 "
    "memory=16GiB interface=eth1 rdma=mlx5_0 fabric-port=leaf1/7 "
    "endpoint=tcp://10.0.0.2:7443\n"
    "        gpu 0000:22:00.0 id=10de:20b7 model=A30\n"
    "  root 0000:40\n"
    "    nic 0000:40:00.0 id=15b3:101b serial=S1\n"
    "package 1\n"
    "  numa 1 cpus=8 memory=512MiB\n";

Test(print, tree)
{
    cleanup_with(topo) struct topo *topo = host(two);
    cleanup_free char *text = printed(print_tree, topo);
    cr_expect_str_eq(
        text,
        "h1: 1 card, 1 GPU, 1 NIC, 2 NUMA nodes\n"
        "  package 0\n"
        "    NUMA node 0: 8 CPUs, 16.0 GiB\n"
        "      host bridge 0000:20\n"
        "        bridge 0000:20:01.0\n"
        "          card 0000:21:00.0  NVIDIA BlueField-2 [15b3:a2d6], eth1, "
        "mlx5_0, 2 functions, arm64, 8 cores, 16.0 GiB, fabric port leaf1/7, "
        "runtime tcp://10.0.0.2:7443\n"
        "          gpu 0000:22:00.0  NVIDIA A30 [10de:20b7]\n"
        "    NUMA node unknown\n"
        "      host bridge 0000:40\n"
        "        nic 0000:40:00.0  NVIDIA [15b3:101b], serial S1\n"
        "  package 1\n"
        "    NUMA node 1: 8 CPUs, 512 MiB\n");
}

Test(print, a_host_without_a_card_says_so)
{
    cleanup_with(topo) struct topo *topo =
        host(host_shape_find("nvidia-dgx-h100")->text);
    cleanup_free char *text = printed(print_tree, topo);
    cr_expect_eq(strncmp(text, "h1: no card, 8 GPUs", 19), 0, "%.40s", text);
    cr_expect(strstr(text, "\nNo card: "));
    const char *hint = strstr(text, "{\"cards\"");
    cr_assert(hint, "the hint shows the operator's file");
}

/* Every device is printed exactly once, whatever is unknown about it. */
Test(print, the_tree_has_every_device_once)
{
    static const char text[] = "numa 0 cpus=1\n"
                               "  root 0000:10\n"
                               "    nic 0000:10:00.0\n"
                               "package 3\n"
                               "  numa 1 cpus=1\n"
                               "    root 0000:20\n"
                               "      nic 0000:20:00.0\n"
                               "  root 0000:30\n"
                               "    nic 0000:30:00.0\n"
                               "root 0000:40\n"
                               "  nic 0000:40:00.0\n";
    cleanup_with(topo) struct topo *topo = host(text);
    cleanup_free char *tree = printed(print_tree, topo);
    static const char *const once[] = {"nic 0000:10:00.0", "nic 0000:20:00.0",
                                       "nic 0000:30:00.0", "nic 0000:40:00.0",
                                       "NUMA node 0:",     "NUMA node 1:",
                                       "package 3"};
    for (size_t i = 0; i < ARRAY_LEN(once); i++) {
        const char *at = strstr(tree, once[i]);
        cr_assert(at, "%s is not in\n%s", once[i], tree);
        cr_expect_null(strstr(at + 1, once[i]), "%s is twice in\n%s", once[i],
                       tree);
    }
}

Test(print, matrix)
{
    cleanup_with(topo) struct topo *topo = host(two);
    cleanup_free char *text = printed(print_matrix, topo);
    static const char top[] = "         card0  gpu0   nic0    NUMA  package\n"
                              "card0    X      PIX    SOCKET  0     0\n"
                              "gpu0     PIX    X      SOCKET  0     0\n"
                              "nic0     SOCKET SOCKET X       -     0\n"
                              "\nLegend:\n";
    cr_expect_eq(strncmp(text, top, sizeof(top) - 1), 0, "%s", text);
    for (unsigned i = 0; i < RELATION_COUNT; i++)
        cr_expect(strstr(text, relation_name((enum relation)i)));
    cr_expect(strstr(text, "card0    card-0000-21-00  BlueField-2  eth1"));

    cleanup_with(topo) struct topo *bare = host("numa 0 cpus=1\n");
    cleanup_free char *none = printed(print_matrix, bare);
    cr_expect_str_eq(none, "h1: no card, GPU or NIC.\n");
}

Test(print, relations)
{
    cleanup_with(topo) struct topo *topo = host("package 0\n"
                                                "  numa 0 cpus=8\n"
                                                "    root 0000:20\n"
                                                "      card 0000:21:00.0\n"
                                                "  root 0000:40\n"
                                                "    nic 0000:40:00.0\n");
    cleanup_free char *text = printed(print_relations, topo);
    cr_expect_str_eq(
        text, "{\"devices\":["
              "{\"id\":\"card-0000-21-00\",\"kind\":\"card\","
              "\"pci\":\"0000:21:00.0\",\"numa\":0},"
              "{\"id\":\"nic-0000-40-00-0\",\"kind\":\"nic\","
              "\"pci\":\"0000:40:00.0\",\"numa\":null},"
              "{\"id\":\"numa-0\",\"kind\":\"numa\",\"pci\":null,\"numa\":0}],"
              "\"relations\":{"
              "\"card-0000-21-00\":{\"nic-0000-40-00-0\":\"SOCKET\","
              "\"numa-0\":\"NODE\"},"
              "\"nic-0000-40-00-0\":{\"card-0000-21-00\":\"SOCKET\","
              "\"numa-0\":\"SOCKET\"},"
              "\"numa-0\":{\"card-0000-21-00\":\"NODE\","
              "\"nic-0000-40-00-0\":\"SOCKET\"}}}\n");
}

Test(print, relations_are_strict_json_for_every_shape)
{
    for (size_t i = 0; i < n_host_shapes; i++) {
        cleanup_with(topo) struct topo *topo = host(host_shapes[i].text);
        cleanup_free char *text = printed(print_relations, topo);
        struct error err = {0};
        cleanup_with(json) cJSON *json = NULL;
        cr_assert_eq(json_parse(text, strlen(text), &json, &err), 0, "%s",
                     err.text);
        cr_expect_eq((size_t)cJSON_GetArraySize(
                         cJSON_GetObjectItemCaseSensitive(json, "devices")),
                     topo_n_devices(topo));
    }
}
