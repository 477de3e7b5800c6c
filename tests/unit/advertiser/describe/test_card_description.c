/* The operator's file of cards applies to a host description as to a host. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/probe/probe.h"
#include "tests/lib/roundtrip.h"

static const char host[] =
    "package 0\n"
    "  numa 0 cpus=8 memory=16GiB\n"
    "    root 0000:00\n"
    "      bridge 0000:00:01.0\n"
    "        card 0000:01:00.0 id=15b3:a2d6 functions=2 serial=S1 cores=8 "
    "memory=16GiB interface=eth2 guid=0c42:a103:00b1:2fd4 endpoint=tcp://a:1\n"
    "        card 0000:02:00.0 id=15b3:a2d6 functions=2 interface=eth4\n"
    "        gpu 0000:03:00.0 id=10de:2330\n"
    "        nic 0000:04:00.1 id=15b3:1021 interface=eth7\n"
    "        nic 0000:04:00.0 id=15b3:1021 rdma=mlx5_0\n"
    "        gpu 0000:04:00.2 id=10de:2330\n"
    "package 1\n"
    "  numa 1 cpus=8 memory=16GiB\n"
    "distance 0 1 21\n";

/* What probe makes of the description above and this file of cards. */
static struct topo *described(const char *json)
{
    struct error err = {0};
    cleanup_with(cardfile) struct cardfile *cards = NULL;
    cr_assert_eq(cardfile_parse(json, strlen(json), &cards, &err), 0, "%s",
                 err.text);
    char path[] = "/tmp/biga-test-described-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, host, sizeof host - 1), (ssize_t)sizeof host - 1);
    close(fd);
    const struct probe_source source = {.hostfile = path};
    struct topo *topo = NULL;
    int r = probe_run(&source, "h1", cards, &topo, &err);
    unlink(path);
    cr_assert_eq(r, 0, "%s", err.text);
    cr_expect(roundtrip(topo));
    return topo;
}

Test(card_description, a_card_takes_what_the_file_says)
{
    cleanup_with(topo) struct topo *topo = described(
        "{\"cards\":[{\"match\":{\"serial\":\"S1\"},\"model\":\"M\","
        "\"arch\":\"riscv64\",\"cores\":4,\"fabric-port\":\"leaf1/7\","
        "\"endpoint\":\"tcp://b:2\"}]}");
    const struct device *d = topo_find(topo, "card-0000-01-00");
    cr_assert(d);
    cr_expect_str_eq(d->model, "M");
    cr_expect_str_eq(d->arch, "riscv64");
    cr_expect_str_eq(topo_identity(topo, d).endpoint, "tcp://b:2");
    cr_expect_str_eq(topo_identity(topo, d).fabric_port, "leaf1/7");
    cr_expect_eq(d->cores, 4);
    cr_expect_eq(d->memory_mib, 16384, "as described");
    d = topo_find(topo, "card-0000-02-00");
    cr_assert(d);
    cr_expect_str_eq(d->arch, "arm64", "nothing was said of the other");
    cr_expect_eq(topo_distance(topo, 0, 1), 21);
    cr_expect_eq(topo_n_devices(topo), 8);
}

Test(card_description, nics_are_set_aside)
{
    cleanup_with(topo) struct topo *topo = described(
        "{\"cards\":[{\"match\":{\"pci\":\"01:00\"},\"exclude\":true,"
        "\"compute\":false}]}");
    size_t nics[TOPO_KIND_MAX], first;
    size_t n = topo_count(topo, DEVICE_NIC, &first);
    cr_assert_gt(n, 0u);
    for (size_t i = first; i < first + n; i++) {
        const struct device *d = topo_device(topo, i);
        cr_expect_eq(d->set_aside, strncmp(d->id, "nic-0000-01-00-", 15) == 0,
                     "%s", d->id);
    }
    size_t considered = topo_considered(topo, DEVICE_NIC, nics);
    for (size_t i = 0; i < considered; i++)
        cr_expect_not(topo_device(topo, nics[i])->set_aside);
}

Test(card_description, an_excluded_card_is_nics)
{
    cleanup_with(topo) struct topo *topo = described(
        "{\"cards\":[{\"match\":{\"pci\":\"01:00\"},\"exclude\":true}]}");
    cr_expect_null(topo_find(topo, "card-0000-01-00"));
    cr_expect(topo_find(topo, "card-0000-02-00"));
    const struct device *d = topo_find(topo, "nic-0000-01-00-0");
    cr_assert(d);
    cr_expect_str_eq(d->interface, "eth2");
    cr_expect_str_eq(topo_identity(topo, d).guid, "0c42:a103:00b1:2fd4");
    cr_expect_eq(d->numa, 0);
    cr_expect_eq(d->n_path, 1);
    d = topo_find(topo, "nic-0000-01-00-1");
    cr_assert(d);
    cr_expect_str_eq(d->interface, "");
    cr_expect_eq(d->cores, 0);
}

Test(card_description, a_device_that_is_matched_is_a_card)
{
    cleanup_with(topo) struct topo *topo = described(
        "{\"cards\":[{\"match\":{\"pci\":\"04:00\"},\"arch\":\"arm64\","
        "\"cores\":8},{\"match\":{\"id\":\"10de:2330\"},\"exclude\":true}]}");
    const struct device *d = topo_find(topo, "card-0000-04-00");
    cr_assert(d);
    cr_expect_eq(d->n_functions, 3);
    cr_expect_eq(d->functions[0].function, 0);
    cr_expect_eq(d->functions[2].function, 2);
    cr_expect_str_eq(d->interface, "eth7");
    cr_expect_str_eq(d->rdma, "mlx5_0");
    cr_expect_eq(d->device_id, 0x1021);
    cr_expect_eq(d->cores, 8);
    cr_expect(topo_find(topo, "gpu-0000-03-00-0"), "excluded from cards");
    cr_expect_eq(topo_count(topo, DEVICE_NIC, NULL), 0);
    cr_expect_eq(topo_count(topo, DEVICE_CARD, NULL), 3);
}
