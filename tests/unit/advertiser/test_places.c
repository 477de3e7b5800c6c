#include "advertiser/places.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/describe/hostfile.h"
#include "advertiser/describe/hosts.h"
#include "model/slice/slice.h"
#include "tests/lib/tmpdir.h"

static const char host[] = "package 0\n"
                           "  numa 0 cpus=8 memory=16GiB\n"
                           "    root 0000:00\n"
                           "      bridge 0000:00:01.0\n"
                           "        card 0000:01:00.0 id=15b3:a2d6 arch=arm64 "
                           "endpoint=tcp://192.0.2.1:7443\n"
                           "      bridge 0000:00:02.0\n"
                           "        card 0000:02:00.0 id=15b3:a2dc\n"
                           "      bridge 0000:00:03.0\n"
                           "        card 0000:03:00.0 id=15b3:a2dc\n"
                           "package 1\n"
                           "  numa 1 cpus=8 memory=16GiB\n"
                           "distance 0 1 21\n";

static struct topo *host_topo(void)
{
    struct topo *topo = NULL;
    struct error err;
    cr_assert_eq(hostfile_read(host, strlen(host), "h", &topo, &err), 0, "%s",
                 err.text);
    return topo;
}

static struct cardfile *cards_of(const char *json)
{
    struct cardfile *file = NULL;
    struct error err;
    cr_assert_eq(cardfile_parse(json, strlen(json), &file, &err), 0, "%s",
                 err.text);
    return file;
}

Test(places, are_the_cards_and_the_host)
{
    cleanup_with(topo) struct topo *topo = host_topo();
    cleanup_with(cardfile) struct cardfile *cards = cards_of(
        "{\"cards\":[{\"match\":{\"id\":\"15b3:a2d6\"},\"tls\":{"
        "\"ca\":\"/c/ca\",\"cert\":\"/c/c\",\"key\":\"/c/k\"}},"
        "{\"match\":{\"pci\":\"02:00\"},\"arch\":\"riscv64\","
        "\"endpoint\":\"tcp://192.0.2.2:1\",\"plaintext\":true}]}");
    struct act_place p[ACT_PLACES_MAX];
    cr_assert_eq(places_of(topo, cards, "unix:///run/c.sock", p), 4);
    cr_expect_str_eq(p[0].name, "card-0000-01-00");
    cr_expect_str_eq(p[0].pci, "0000:01:00.0");
    cr_expect_str_eq(p[0].arch, "arm64");
    cr_expect_str_eq(p[0].endpoint, "tcp://192.0.2.1:7443");
    cr_expect_str_eq(p[0].ca, "/c/ca");
    cr_expect_str_eq(p[0].key, "/c/k");
    cr_expect(!p[0].plaintext);
    cr_expect_str_eq(p[1].name, "card-0000-02-00");
    cr_expect_str_eq(p[1].arch, "riscv64");
    cr_expect_str_eq(p[1].endpoint, "tcp://192.0.2.2:1");
    cr_expect(p[1].plaintext);
    cr_expect_str_eq(p[2].name, "card-0000-03-00");
    cr_expect_str_eq(p[2].endpoint, "");
    cr_expect_str_eq(p[3].name, "host");
    cr_expect_str_eq(p[3].endpoint, "unix:///run/c.sock");
    /* one that lost its endpoint is there still, after those with one */
    cr_assert_eq(places_of(topo, NULL, "", p), 4);
    cr_expect_str_eq(p[0].endpoint, "tcp://192.0.2.1:7443");
    cr_expect_str_eq(p[1].name, "card-0000-02-00");
    cr_expect_str_eq(p[1].endpoint, "");
    cr_expect_str_eq(p[3].endpoint, "");
}

Test(places, have_the_sets_of_devices_of_their_card)
{
    cleanup_with(topo) struct topo *topo = host_topo();
    cleanup_with(cardfile) struct cardfile *cards = cards_of(
        "{\"cards\":[{\"match\":{\"id\":\"15b3:a2d6\"},\"devices\":{"
        "\"rdma\":{\"paths\":[\"/dev/a*\",\"/dev/b\"],\"share\":4},"
        "\"snap\":{\"paths\":[\"/dev/c\"],\"capabilities\":[\"IPC_LOCK\"],"
        "\"hugepages\":{\"2Mi\":\"8Mi\"}}}}]}");
    struct act_place p[ACT_PLACES_MAX];
    cr_assert_eq(places_of(topo, cards, "", p), 4);
    cr_assert_eq(p[0].n_sets, 2);
    cr_expect_str_eq(p[0].sets[0].name, "rdma");
    cr_expect_eq(p[0].sets[0].share, 4);
    cr_assert_eq(p[0].sets[0].n_globs, 2);
    cr_expect_str_eq(p[0].sets[0].globs[1], "/dev/b");
    cr_expect_str_eq(p[0].sets[1].name, "snap");
    cr_expect_eq(p[0].sets[1].share, 1);
    cr_expect(p[0].sets[1].ipc_lock && !p[0].sets[0].ipc_lock);
    cr_expect_eq(hugepages_of(&p[0].sets[1].hugepages, 2 << 20), 8u << 20);
    cr_expect_eq(p[0].sets[0].hugepages.n, 0);
    cr_expect_eq(p[1].n_sets, 0);
    cr_expect_eq(p[3].n_sets, 0, "the host's devices are none of a card");
}

static void write_key(const char *path, int64_t second)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const struct timespec times[2] = {{second, 0}, {second, 5}};
    cr_assert_geq(fd, 0);
    cr_assert_eq(futimens(fd, times), 0);
    cr_assert_eq(close(fd), 0);
}

Test(places, new_keys_are_noticed_once)
{
    char *dir = tmpdir_create();
    struct act_place p = {.name = "c"};
    (void)snprintf(p.key, sizeof p.key, "%s/key", dir);
    cr_expect(!places_touch(&p, 1), "there is none");
    write_key(p.key, 1000);
    cr_expect(places_touch(&p, 1));
    cr_expect_eq(p.files_ns, INT64_C(1000000000005));
    cr_expect(!places_touch(&p, 1));
    write_key(p.key, 1001);
    cr_expect(places_touch(&p, 1));
    tmpdir_remove(dir);
}

static struct act_place_status view(const char *name, enum act_health health)
{
    struct act_place_status v = {.health = health};
    (void)snprintf(v.name, sizeof v.name, "%s", name);
    return v;
}

Test(places, lost_and_drained_cards_are_withdrawn)
{
    cleanup_with(topo) struct topo *topo = host_topo();
    cleanup_with(topo) struct topo *marked = NULL, *again = NULL;
    struct error err;
    const struct act_place_status views[] = {
        view("card-0000-01-00", ACT_LOST),
        view("card-0000-02-00", ACT_DRAINED),
        view("card-0000-03-00", ACT_SUSPECT),
        view("host", ACT_LOST),
    };
    cr_assert_eq(places_mark(topo, TOPO_RUNS_UNTOLD, views, 4, &marked, &err),
                 0, "%s", err.text);
    const struct device *a = topo_find(marked, "card-0000-01-00");
    const struct device *b = topo_find(marked, "card-0000-02-00");
    const struct device *c = topo_find(marked, "card-0000-03-00");
    cr_expect(a->unhealthy && b->unhealthy && !c->unhealthy);
    cr_expect_str_eq(a->health, "lost");
    cr_expect_str_eq(b->health, "drained");
    cr_expect_str_eq(c->health, "ready");
    cr_expect_eq(topo_n_devices(marked), topo_n_devices(topo));
    cr_expect_eq(topo_distance(marked, 0, 1), 21);
    /* and all is as it was when they are back, but that somebody looked */
    cr_assert_eq(places_mark(topo, TOPO_RUNS_UNTOLD, NULL, 0, &again, &err), 0);
    char before[17], after[17], lost[17];
    slice_content_hash(topo, before);
    slice_content_hash(again, after);
    slice_content_hash(marked, lost);
    cr_expect_str_eq(before, after);
    cr_expect_str_neq(before, lost);
}

/* Where an endpoint is known, whatever the place's health is. */
Test(places, says_which_cards_run_pods)
{
    cleanup_with(topo) struct topo *topo = host_topo();
    cleanup_with(topo) struct topo *marked = NULL, *none = NULL;
    struct error err;
    struct act_place_status views[] = {
        view("card-0000-01-00", ACT_LOST),
        view("card-0000-02-00", ACT_READY),
        view("host", ACT_READY),
    };
    (void)snprintf(views[0].endpoint, sizeof views[0].endpoint, "%s",
                   "tcp://192.0.2.1:7443");
    memcpy(views[0].devices.text, "rdma snap", sizeof "rdma snap");
    card_rights_text(CARD_RIGHTS_IPC_LOCK, views[0].rights);
    cr_assert_eq(places_mark(topo, TOPO_RUNS_PODS, views, 3, &marked, &err), 0);
    cr_expect_eq(topo_runs(marked), TOPO_RUNS_PODS);
    cr_expect(topo_find(marked, "card-0000-01-00")->runs_pods);
    cr_expect_str_eq(topo_find(marked, "card-0000-01-00")->devices,
                     "rdma snap");
    cr_expect_str_eq(topo_find(marked, "card-0000-02-00")->devices, "");
    cr_expect_str_eq(topo_find(marked, "card-0000-01-00")->rights,
                     "0000000000004000");
    cr_expect_str_eq(topo_find(marked, "card-0000-02-00")->rights, "");
    cleanup_with(topo) struct topo *untold = NULL;
    cr_assert_eq(places_mark(topo, TOPO_RUNS_UNTOLD, views, 3, &untold, &err),
                 0);
    cr_expect_str_eq(topo_find(untold, "card-0000-01-00")->devices, "",
                     "a kubelet's pods get none");
    cr_expect_str_eq(topo_find(untold, "card-0000-01-00")->rights, "",
                     "a kubelet's pods have what others let them");
    cr_expect_not(topo_find(marked, "card-0000-02-00")->runs_pods);
    cr_expect_not(topo_find(marked, "card-0000-03-00")->runs_pods);
    cr_assert_eq(places_mark(topo, TOPO_RUNS_NONE, NULL, 0, &none, &err), 0);
    cr_expect_eq(topo_runs(none), TOPO_RUNS_NONE);
    cr_expect_not(topo_find(none, "card-0000-01-00")->runs_pods);
}

/* Whatever a host looks like, marking it changes nothing else. */
Test(places, hosts_of_all_shapes_stay_as_they_are)
{
    for (size_t i = 0; i < n_host_shapes; i++) {
        cleanup_with(topo) struct topo *topo = NULL, *same = NULL;
        struct error err;
        char before[17], after[17];
        const char *text = host_shapes[i].text;
        cr_assert_eq(hostfile_read(text, strlen(text), "h", &topo, &err), 0);
        cr_assert_eq(places_mark(topo, TOPO_RUNS_UNTOLD, NULL, 0, &same, &err),
                     0, "%s", err.text);
        slice_content_hash(topo, before);
        slice_content_hash(same, after);
        cr_expect_str_eq(before, after, "%s", host_shapes[i].name);
    }
}

/* Nothing but whose the cards are. */
Test(places, by_claims_are_all_cards_and_nothing_else)
{
    cleanup_with(topo) struct topo *topo = host_topo();
    cleanup_with(topo) struct topo *runs = NULL, *again = NULL;
    struct error err;
    char before[17], after[17];
    cr_assert_eq(places_mark(topo, TOPO_RUNS_NONE, NULL, 0, &runs, &err), 0);
    cleanup_with(topo) struct topo *marked = places_by_claims(runs);
    cr_expect_eq(topo_runs(marked), TOPO_RUNS_NONE);
    for (size_t i = 0; i < topo_n_devices(marked); i++)
        cr_expect_eq(topo_device(marked, i)->by_claims,
                     topo_device(marked, i)->kind == DEVICE_CARD);
    /* and they stay it, whatever else becomes of them */
    cr_assert_eq(places_mark(marked, TOPO_RUNS_NONE, NULL, 0, &again, &err), 0);
    slice_content_hash(marked, before);
    slice_content_hash(again, after);
    cr_expect_str_eq(before, after);
    slice_content_hash(runs, before);
    cr_expect_str_neq(before, after);
}
