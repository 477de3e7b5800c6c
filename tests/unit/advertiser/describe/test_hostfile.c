#include "advertiser/describe/hostfile.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/describe/hosts.h"
#include "lib/base/str.h"

static struct topo *read_as(const char *text, const char *node)
{
    struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(hostfile_read(text, strlen(text), node, &topo, &err), 0, "%s",
                 err.text);
    return topo;
}

static enum relation related(const struct topo *topo, const char *a,
                             const char *b)
{
    const struct device *first = topo_device(topo, 0);
    const struct device *da = topo_find(topo, a), *db = topo_find(topo, b);
    cr_assert(da && db, "%s or %s is not there", a, b);
    return topo_relation(topo, (size_t)(da - first), (size_t)(db - first));
}

static const char sample[] =
    "# a comment\n"
    "\n"
    "package 0\n"
    "  numa 0 cpus=64 memory=256GiB # another\n"
    "    root 0000:20\n"
    "      bridge 0000:20:01.0\n"
    "        bridge 0000:21:00.0\n"
    "          card 0000:23:00.0 id=15b3:a2dc functions=2 cores=16 "
    "memory=32GiB interface=eth2 rdma=mlx5_0 guid=0c42:a103:00b1:2fd4 "
    "serial={node}-0 "
    "fabric-port=\"{node} p0\" endpoint=tcp://192.168.100.2:7443\n"
    "        bridge 0000:21:04.0\n"
    "          gpu 0000:24:00.0 id=10de:2330 model=\"H100 SXM\"\n"
    "      nic 0000:20:1f.0 id=8086:1521\n"
    "  numa 1 cpus=64 memory=1TiB\n"
    "package 1\n"
    "  numa 2 cpus=32 memory=512MiB\n"
    "    root 0000:a0\n"
    "      gpu 0000:a0:03.0\n"
    "  root 0000:c0\n"
    "    nic 0000:c0:00.0\n"
    "root 0000:e0\n"
    "  nic 0000:e0:00.0\n"
    "distance 0 2 32\n";

Test(hostfile, builds_what_it_says)
{
    cleanup_with(topo) struct topo *topo = read_as(sample, "host-7");
    cr_assert_eq(topo_n_devices(topo), 9);
    const struct device *card = topo_find(topo, "card-0000-23-00");
    cr_assert(card);
    cr_expect_eq(card->numa, 0);
    cr_expect_eq(card->package, 0);
    cr_expect_eq(card->root_bus, 0x20);
    cr_expect_eq(card->n_path, 2);
    cr_expect_eq(card->path[1].bus, 0x21);
    cr_expect_eq(card->vendor_id, 0x15b3);
    cr_expect_str_eq(card->vendor, "NVIDIA");
    cr_expect_str_eq(card->model, "BlueField-3", "from the table of cards");
    cr_expect_str_eq(card->arch, "arm64");
    cr_expect_eq(card->cores, 16);
    cr_expect_eq(card->memory_mib, 32768);
    cr_expect_eq(card->n_functions, 2);
    cr_expect_str_eq(topo_identity(topo, card).serial, "host-7-0");
    cr_expect_str_eq(topo_identity(topo, card).guid, "0c42:a103:00b1:2fd4");
    cr_expect_str_eq(topo_identity(topo, card).fabric_port, "host-7 p0");
    cr_expect_str_eq(topo_identity(topo, card).endpoint,
                     "tcp://192.168.100.2:7443");
    cr_expect_str_eq(topo_find(topo, "gpu-0000-24-00-0")->model, "H100 SXM");
    const struct device *numa = topo_find(topo, "numa-1");
    cr_expect_eq(numa->cpus, 64);
    cr_expect_eq(numa->numa_memory_mib, 1 << 20);
    cr_expect_eq(topo_find(topo, "numa-2")->numa_memory_mib, 512);
    cr_expect_eq(topo_distance(topo, 2, 0), 32);
    cr_expect_eq(topo_distance(topo, 2, 2), 10);
}

Test(hostfile, relations_follow_from_it)
{
    cleanup_with(topo) struct topo *topo = read_as(sample, "h1");
    static const struct {
        const char *a, *b;
        enum relation relation;
    } cases[] = {
        {"card-0000-23-00", "gpu-0000-24-00-0", RELATION_PIX},
        {"card-0000-23-00", "nic-0000-20-1f-0", RELATION_PHB},
        {"card-0000-23-00", "gpu-0000-a0-03-0", RELATION_SYS},
        {"card-0000-23-00", "numa-0", RELATION_NODE},
        {"card-0000-23-00", "numa-1", RELATION_SOCKET},
        {"card-0000-23-00", "numa-2", RELATION_SYS},
        {"nic-0000-c0-00-0", "numa-2", RELATION_SOCKET},
        {"nic-0000-c0-00-0", "gpu-0000-a0-03-0", RELATION_SOCKET},
        {"nic-0000-e0-00-0", "numa-2", RELATION_SYS},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(related(topo, cases[i].a, cases[i].b), cases[i].relation,
                     "%s to %s", cases[i].a, cases[i].b);
}

Test(hostfile, every_error_names_the_line)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"host 1\n", "line 1: is \"host\", must be package"},
        {"package\n", "line 1: package index missing"},
        {"package x\n", "line 1: package is \"x\", must be 0 to 32767"},
        {"package 0 1\n", "line 1: a package has an index only"},
        {"package 0\npackage 99999\n", "line 2: package is \"99999\""},
        {" package 0\n", "line 1: is indented by 1 spaces"},
        {"package 0\n    numa 0 cpus=1\n", "line 2: is indented by 4"},
        {"\tpackage 0\n", "line 1: has a control character (0x09)"},
        {"package 0\r\n", "line 1: has a control character (0x0d)"},
        {"bridge 0000:00:01.0\n", "line 1: a bridge cannot stand under a "
                                  "host"},
        {"package 0\n  package 1\n", "a package cannot stand under a package"},
        {"package 0\n  gpu 0000:00:01.0\n", "a gpu cannot stand under"},
        {"root 0000:00\n  nic 0000:00:01.0\n    nic 0000:00:02.0\n",
         "line 3: a nic cannot stand under a device"},
        {"numa 0\n", "line 1: a numa needs cpus=N"},
        {"numa 0 cpus=1 memory=1GB\n", "memory is \"1GB\""},
        {"numa 0 cpus=2 cpu-list=0-3\n", "which are 4 CPUs, must be 2"},
        {"numa 0 cpus=2 cpu-list=x\n", "must be CPUs like"},
        {"numa 0 cpus=1 speed=1\n", "a numa has no \"speed=1\""},
        {"root 17\n", "root is \"17\""},
        {"root 0000:17:00\n", "root is"},
        {"root 0000:00\n  card\n", "line 2: PCI address missing"},
        {"root 0000:00\n  card 0:0\n", "line 2: \"0:0\" is no PCI address"},
        {"root 0000:00\n  card 0000:00:01.1\n", "by its function 0, not 1"},
        {"root 0000:00\n  nic 0000:00:01.0 cores=1\n",
         "a nic has no \"cores\""},
        {"root 0000:00\n  nic 0000:00:01.0 x\n", "a nic has no \"x\""},
        {"root 0000:00\n  nic 0000:00:01.0 compute=no\n",
         "compute is \"no\", must be true or false"},
        {"root 0000:00\n  gpu 0000:00:01.0 compute=false\n",
         "a gpu has no \"compute\""},
        {"root 0000:00\n  nic 0000:00:01.0 rdma=a rdma=b\n",
         "rdma is there twice"},
        {"root 0000:00\n  nic 0000:00:01.0 model=\"a\n", "quote is not"},
        {"root 0000:00\n  nic 0000:00:01.0 id=15b3\n", "id is \"15b3\""},
        {"root 0000:00\n  card 0000:00:01.0 functions=9\n",
         "functions is \"9\", must be 0 to 8"},
        {"root 0000:00\n  card 0000:00:01.0 functions=0\n", "functions is 0"},
        {"root 0000:00\n  nic 0000:00:01.0\n  nic 0000:00:01.0\n",
         "nic-0000-00-01-0: is there twice"},
        {"distance 0 1\n", "line 1: distance takes"},
        {"distance 0 1 20\n", "no NUMA node"},
        {"root 0000:00\n  nic 0000:00:01.0 model="
         "01234567890123456789012345678901234567890123456789012345678901234\n",
         "line 2: model has more than 64 bytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct topo *topo = NULL;
        struct error err = {0};
        int rc = hostfile_read(cases[i].text, strlen(cases[i].text), "h1",
                               &topo, &err);
        cr_expect_lt(rc, 0, "accepted: %s", cases[i].text);
        cr_expect_null(topo);
        cr_expect(strstr(err.text, cases[i].error), "%s: %s", cases[i].text,
                  err.text);
    }
}

Test(hostfile, limits)
{
    cleanup_str struct str text = STR_INIT(HOSTFILE_SIZE_MAX * 2);
    struct topo *topo = NULL;
    struct error err = {0};
    for (int i = 0; i <= HOSTFILE_LINES_MAX; i++)
        str_add(&text, "#\n");
    cr_expect_eq(hostfile_read(str_text(&text), text.size, "h1", &topo, &err),
                 -EFBIG);
    str_reset(&text);
    str_addf(&text, "#%*s\n", HOSTFILE_LINE_MAX, "");
    cr_expect_eq(hostfile_read(str_text(&text), text.size, "h1", &topo, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "line 1: has 513 bytes"), "%s", err.text);
    cr_expect_eq(hostfile_read("", HOSTFILE_SIZE_MAX + 1, "h1", &topo, &err),
                 -EFBIG);

    /* one bridge too many, and the deepest that is allowed */
    for (int bridges = TOPO_PATH_MAX; bridges <= TOPO_PATH_MAX + 1; bridges++) {
        str_reset(&text);
        str_add(&text, "package 0\n  numa 0 cpus=1\n    root 0000:00\n");
        for (int i = 0; i < bridges; i++)
            str_addf(&text, "%*sbridge 0000:%02x:00.0\n", 6 + 2 * i, "", i);
        str_addf(&text, "%*snic 0000:30:00.0\n", 6 + 2 * bridges, "");
        cleanup_with(topo) struct topo *deep = NULL;
        cr_expect_eq(
            hostfile_read(str_text(&text), text.size, "h1", &deep, &err),
            bridges > TOPO_PATH_MAX ? -EINVAL : 0, "%d bridges: %s", bridges,
            err.text);
    }
    /* the text need not end with a newline, nor with a NUL */
    cleanup_with(topo) struct topo *cut = NULL;
    cr_expect_eq(hostfile_read("numa 0 cpus=12", 13, "h1", &cut, &err), 0);
    cr_expect_eq(topo_device(cut, 0)->cpus, 1);
}

Test(hostfile, the_shapes_that_are_compiled_in)
{
    static const struct {
        const char *name;
        size_t cards, gpus, nics, numas;
    } shapes[] = {
        {"dell-r7525-2bf2", 2, 2, 2, 2},  {"dell-xe9680-bf3", 9, 8, 0, 2},
        {"hpcac-thor", 1, 0, 1, 2},       {"intel-ipu-e2000", 1, 0, 0, 2},
        {"juwels-booster", 0, 4, 4, 8},   {"nec-a300-8", 8, 0, 2, 2},
        {"nvidia-dgx-h100", 0, 8, 12, 2},
    };
    cr_assert_eq(n_host_shapes, ARRAY_LEN(shapes));
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        cr_expect_str_eq(host_shapes[i].name, shapes[i].name);
        const struct host_shape *shape = host_shape_find(shapes[i].name);
        cr_assert(shape, "%s", shapes[i].name);
        cleanup_with(topo) struct topo *topo = read_as(shape->text, "h1");
        cr_expect_eq(topo_count(topo, DEVICE_CARD, NULL), shapes[i].cards);
        cr_expect_eq(topo_count(topo, DEVICE_GPU, NULL), shapes[i].gpus);
        cr_expect_eq(topo_count(topo, DEVICE_NIC, NULL), shapes[i].nics);
        cr_expect_eq(topo_count(topo, DEVICE_NUMA, NULL), shapes[i].numas);
        size_t first, n = topo_count(topo, DEVICE_CARD, &first);
        for (size_t j = first; j < first + n; j++) {
            const struct device *d = topo_device(topo, j);
            cr_expect(d->cores && d->memory_mib && *d->arch && *d->model,
                      "%s: %s", shapes[i].name, d->id);
        }
    }
    cr_expect_null(host_shape_find("cray-1"));
}

/* Each GPU of the XE9680 has a card of its own at PIX. */
Test(hostfile, the_xe9680_pairs_each_gpu_with_a_card)
{
    cleanup_with(topo) struct topo *topo =
        read_as(host_shape_find("dell-xe9680-bf3")->text, "h1");
    size_t cards, gpus;
    size_t n_cards = topo_count(topo, DEVICE_CARD, &cards);
    size_t n_gpus = topo_count(topo, DEVICE_GPU, &gpus);
    for (size_t g = 0; g < n_gpus; g++) {
        size_t near = 0;
        for (size_t c = 0; c < n_cards; c++)
            near += topo_relation(topo, cards + c, gpus + g) == RELATION_PIX;
        cr_expect_eq(near, g == 4 ? 2 : 1, "GPU %zu has %zu", g, near);
    }
}
