/* What the pods of a kubelet have, of its list, control groups and logs. */
#include "advertiser/achieved/given_facts.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/describe/hostfile.h"
#include "tests/lib/tmpdir.h"

#define UID "6b0c0001-1111-2222-3333-444455556666"
#define OTHER_UID "6b0c0002-1111-2222-3333-444455556666"

static const char host[] =
    "package 0\n"
    "  numa 0 cpus=4 cpu-list=0-3 memory=16GiB\n"
    "    root 0000:00\n"
    "      bridge 0000:00:01.0\n"
    "        card 0000:17:00.0 id=15b3:a2dc\n"
    "        gpu 0000:1b:00.0 id=10de:2330\n"
    "        nic 0000:18:00.0 id=15b3:1021 rdma=mlx5_0\n";

struct rig {
    struct topo *topo;
    struct device_uuids uuids;
    struct pod_uid uid;
    struct pod_uids uids;
    struct cgroup_container containers[2];
    struct cgroups groups;
    struct host_seen seen;
    struct given_pod pod;
};

static void rig_init(struct rig *r)
{
    struct error err = {0};
    memset(r, 0, sizeof *r);
    cr_assert_eq(hostfile_read(host, strlen(host), "h", &r->topo, &err), 0,
                 "%s", err.text);
    cr_assert(pod_uid_read("d_p_" UID, &r->uid));
    r->uids = (struct pod_uids){.items = &r->uid, .n = 1};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(r->containers[i].uid, sizeof r->containers[i].uid, UID);
        r->containers[i].known = true;
        r->containers[i].cpus.words[0] = 0xf;
        r->containers[i].mems.words[0] = 1;
    }
    r->groups = (struct cgroups){.containers = r->containers, .n = 2};
    r->groups.mems.words[0] = 1;
    r->seen = (struct host_seen){
        .places = {r->topo, "/nonexistent", &r->uuids},
        .groups = &r->groups,
        .uids = &r->uids,
    };
    r->pod = (struct given_pod){.namespace = "d", .name = "p"};
}

static void expect(struct rig *r, const char *wanted)
{
    struct facts f = {0};
    const struct given_pods all = {.pods = &r->pod, .n = 1};
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    given_facts_add(&all, &r->seen, &f);
    (void)facts_write(&f, r->topo, &out); /* it has room */
    cleanup_free char *whole = xasprintf(
        "{\"node\":\"h\",\"pods\":[{\"namespace\":\"d\",\"name\":\"p\"%s}]}",
        wanted);
    cr_expect_str_eq(str_text(&out), whole);
    facts_fini(&f);
}

#define WITH_UID ",\"uid\":\"" UID "\""

Test(given_facts, of_a_pod_that_was_given_nothing)
{
    struct rig r;
    rig_init(&r);
    expect(&r, WITH_UID ",\"gpus\":[],\"cpus\":\"0-3\",\"numa\":[0]");
    r.groups.n = 1; /* its sandbox alone: it does not run yet */
    expect(&r, WITH_UID);
    r.groups.n = 0; /* the logs are those of an earlier one */
    expect(&r, "");
    r.seen.groups = NULL;
    expect(&r, "");
    r.uids.n = 0;
    expect(&r, "");
    topo_unref(r.topo);
}

Test(given_facts, of_a_pod_that_was_given_something)
{
    struct given_device devices[] = {{"nvidia.com/gpu", "0000:1b:00.0"},
                                     {"example.org/nic", "mlx5_0"}};
    struct rig r;
    rig_init(&r);
    r.pod.devices = devices;
    r.pod.n_devices = 2;
    (void)index_set_add(&r.pod.cpus, 2);
    (void)index_set_add(&r.pod.memory, 0);
    r.seen.groups = NULL;
    expect(&r, ",\"gpus\":[\"0000:1b:00.0\"],"
               "\"nics\":[\"0000:18:00.0\"],\"cpus\":\"2\","
               "\"numa\":[0],\"memoryNuma\":[0]");
    r.pod.strange = true;
    expect(&r, ",\"gpus\":[\"0000:1b:00.0\"],"
               "\"nics\":[\"0000:18:00.0\"]");
    devices[1] = (struct given_device){"any.org/thing", "x"};
    expect(&r, "");
    topo_unref(r.topo);
}

Test(given_facts, memory_is_told_when_it_is_held_to_some_of_the_hosts)
{
    struct rig r;
    rig_init(&r);
    r.groups.mems.words[0] = 3;
    expect(&r, WITH_UID ",\"gpus\":[],\"cpus\":\"0-3\",\"numa\":[0],"
                        "\"memoryNuma\":[0]");
    topo_unref(r.topo);
}

static bool is_gpu(void *ctx, const struct given_claim *c,
                   struct pci_addr *ret_addr)
{
    (void)ctx;
    *ret_addr = (struct pci_addr){.bus = 0x1b};
    return strcmp(c->device, "gpu-0") == 0;
}

Test(given_facts, of_claims)
{
    struct given_claim claims[] = {
        {"xpu.biga.dev", "h", "card-0000-17-00"},
        {"gpu.example.org", "h", "gpu-0"},
    };
    struct rig r;
    rig_init(&r);
    r.pod.claims = claims;
    r.pod.n_claims = 2;
    r.seen.groups = NULL;
#define CARD ",\"cards\":[\"0000:17:00.0\"]"
    expect(&r, CARD);
    r.seen.claimed = is_gpu;
    expect(&r, CARD ",\"gpus\":[\"0000:1b:00.0\"]");
    claims[1].device = "gpu-1"; /* not known which that is */
    expect(&r, CARD);
    r.pod.n_claims = 1;
    claims[0].pool = "elsewhere";
    expect(&r, "");
    topo_unref(r.topo);
}

/* --- UIDs ----------------------------------------------------------------- */

Test(pod_uids, are_those_of_folders_of_logs)
{
    static const char *const names[] = {"d_p_" UID,
                                        "d_p-2_" OTHER_UID,
                                        "d_again_" UID,
                                        "d_again_" OTHER_UID,
                                        "d_p_0123456789abcdef",
                                        "x",
                                        "_p_" UID,
                                        "d__" UID,
                                        "d_p_" UID "_x"};
    char *dir = tmpdir_create();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cleanup_free char *path = xasprintf("%s/%s", dir, names[i]);
        cr_assert_eq(mkdir(path, 0755), 0);
    }
    struct pod_uids u;
    struct cgroup_container c[] = {{.uid = UID}, {.uid = OTHER_UID}};
    struct cgroups g = {.containers = c, .n = 2};
    pod_uids_look(dir, &u);
    cr_expect_eq(u.n, 4u);
    cr_expect_str_eq(pod_uids_find(&u, "d", "p", &g), UID);
    cr_expect_str_eq(pod_uids_find(&u, "d", "p-2", &g), OTHER_UID);
    cr_expect_null(pod_uids_find(&u, "e", "p", &g));
    /* both of that name cannot be */
    cr_expect_null(pod_uids_find(&u, "d", "again", &g));
    g.n = 1; /* the one before is gone, and its logs are not */
    cr_expect_str_eq(pod_uids_find(&u, "d", "again", &g), UID);
    cr_expect_null(pod_uids_find(&u, "d", "p-2", &g));
    pod_uids_fini(&u);
    tmpdir_remove(dir);
    pod_uids_look("/nonexistent", &u);
    cr_expect_eq(u.n, 0u);
}
