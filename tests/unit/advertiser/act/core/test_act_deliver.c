/* A card that is configured for one pod while others are on it, or about to
 * be; where no card answers. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/card_setup.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/tmpdir.h"

#define PCI "0000:17:00.0"

static struct lab {
    char *top;
    struct actuator *a;
    struct place *card;
} lab;

static char *in_lab(const char *name)
{
    return xasprintf("%s/%s", lab.top, name);
}

static void put(const char *name, const char *text, mode_t mode)
{
    cleanup_free char *path = in_lab(name);
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    (void)fputs(text, f);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(chmod(path, mode), 0);
}

static void make_dir(const char *name)
{
    cleanup_free char *path = in_lab(name);
    cr_assert_eq(mkdir(path, 0755), 0, "%s", path);
}

static int n_functions(void)
{
    cleanup_free char *path = in_lab("bus/pci/devices/" PCI "/sriov_numvfs");
    char text[16] = "";
    cleanup_file FILE *f = fopen(path, "re");
    cr_assert(f && fgets(text, sizeof text, f));
    return (int)strtol(text, NULL, 10);
}

static void lab_begin(void)
{
    struct error err = {0};
    lab.top = tmpdir_create();
    make_dir("bus");
    make_dir("bus/pci");
    make_dir("bus/pci/devices");
    make_dir("bus/pci/devices/" PCI);
    make_dir("hooks");
    put("bus/pci/devices/" PCI "/sriov_totalvfs", "9\n", 0644);
    put("bus/pci/devices/" PCI "/sriov_numvfs", "2\n", 0644);
    put("hooks/bad", "#!/bin/sh\nexit 3\n", 0755);
    cleanup_free char *hooks = in_lab("hooks"), *dir = in_lab("state");
    const struct actuator_config config = {.dir = dir,
                                           .cluster = "c",
                                           .node = "h",
                                           .sysfs = lab.top,
                                           .hooks_dir = hooks};
    const struct act_place place = {
        .name = "card-0", .pci = PCI, .endpoint = "unix:///nonexistent/sock"};
    log_set_level(LOG_ERROR);
    cr_assert_eq(actuator_create(&config, &lab.a, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_set_places(lab.a, &place, 1, &err), 0, "%s",
                 err.text);
    lab.card = place_find(lab.a, "card-0");
    lab.card->swept = true; /* nothing is there */
}

static void lab_end(void)
{
    actuator_destroy(lab.a);
    tmpdir_remove(lab.top);
}

static struct pod_entry *want(const char *name, int vfs, const char *hook)
{
    struct error err = {0};
    cleanup_free char *spec = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":"
        "\"lab\",\"name\":\"%s\",\"uid\":\"u-%s\"},\"spec\":{\"containers\":"
        "[{\"name\":\"a\",\"image\":\"i\"}]}}",
        name, name);
    cleanup_free char *uid = xasprintf("u-%s", name);
    const struct act_pod pod = {.owner = "socket",
                                .namespace = "lab",
                                .name = name,
                                .uid = uid,
                                .place = "card-0",
                                .spec = spec,
                                .spec_size = strlen(spec),
                                .sriov_vfs = vfs,
                                .hook = hook};
    cr_assert_eq(actuator_want(lab.a, &pod, &err), 0, "%s", err.text);
    struct pod_entry *e = pod_entry_by_uid(lab.a, uid);
    e->m.listed = true; /* nothing of it is there */
    return e;
}

static struct machine_result deliver(struct pod_entry *e, struct error *err)
{
    struct machine_result r = {0};
    struct act_place what = lab.card->desc;
    card_setup_run(lab.card, &what, e, &r, err);
    return r;
}

#define expect_waits(r, err)                                                 \
    do {                                                                     \
        cr_expect_eq((r).e, -EIO, "%s", (err).text);                         \
        cr_expect_str_eq((r).reason, "VfsInUse");                            \
        cr_expect((r).waits && !(r).permanent);                              \
        cr_expect(strstr((err).text, "another pod uses"), "%s", (err).text); \
    } while (0)

TestSuite(act_deliver, .init = lab_begin, .fini = lab_end, .timeout = 180);

Test(act_deliver, functions_of_a_pod_before_its_sandbox)
{
    struct error err = {0};
    struct pod_entry *first = want("first", 4, ""), *next = want("next", 8, "");
    cr_assert_eq(deliver(first, &err).e, 0, "%s", err.text);
    cr_expect_eq(n_functions(), 4);
    struct machine_result r = deliver(next, &err);
    expect_waits(r, err);
    cr_expect_eq(n_functions(), 4);
    cr_expect_eq(deliver(first, &err).e, 0, "its own are no hindrance");
    first->intent->state = ACT_GONE;
    cr_expect_eq(deliver(next, &err).e, 0, "%s", err.text);
    cr_expect_eq(n_functions(), 8);
}

Test(act_deliver, functions_of_who_asked_for_none)
{
    struct error err = {0};
    struct pod_entry *plain = want("plain", -1, ""),
                     *next = want("next", 8, "");
    cr_assert_eq(deliver(plain, &err).e, 0);
    struct machine_result r = deliver(next, &err);
    expect_waits(r, err);
    plain->intent->state = ACT_FAILED;
    cr_expect_eq(deliver(next, &err).e, 0, "%s", err.text);
}

Test(act_deliver, functions_of_what_is_there)
{
    struct error err = {0};
    const struct machine_sandbox sandbox = {.id = "s", .attempt = 1};
    struct pod_entry *first = want("first", -1, ""),
                     *next = want("next", 8, "");
    first->m.listed = false;
    first->intent->attempt = 1;
    struct machine_result r = deliver(next, &err);
    expect_waits(r, err); /* it may be */
    first->m.listed = true;
    machine_found_sandbox(&first->m.found, &sandbox);
    first->m.found.sandboxes[0].ready = true;
    r = deliver(next, &err);
    expect_waits(r, err);
    first->m.found.sandboxes[0].ready = false; /* it is over */
    cr_expect_eq(deliver(next, &err).e, 0, "%s", err.text);
    cr_expect_eq(n_functions(), 8);
}

/* The rows are lost, and who is named first asks for others. */
Test(act_deliver, functions_of_what_is_not_written_down)
{
    struct error err = {0};
    struct orphan_seen seen = {
        .uid = "u-old", .id = "s", .sandbox = true, .running = true};
    struct pod_entry *next = want("next", 8, "");
    lab.card->swept = false;
    struct machine_result r = deliver(next, &err);
    expect_waits(r, err);
    lab.card->swept = true;
    orphans_update(&lab.card->orphans, &seen, 1, 0, 1000000);
    r = deliver(next, &err);
    expect_waits(r, err);
    seen.known = true;
    orphans_update(&lab.card->orphans, &seen, 1, 0, 1000000);
    lab.card->n_spared = lab.card->n_spared_running = 1;
    r = deliver(next, &err);
    expect_waits(r, err);
    lab.card->n_spared_running = 0; /* it is over */
    struct pod_entry *old = want("old", -1, "");
    old->m.listed = false;
    r = deliver(next, &err);
    expect_waits(r, err);
    cr_expect_eq(n_functions(), 2);
    old->met = true; /* it fails to begin, say */
    cr_expect_eq(deliver(next, &err).e, 0, "%s", err.text);
    cr_expect_eq(n_functions(), 8);
}

Test(act_deliver, functions_while_the_hook_is_tried_again)
{
    struct error err = {0};
    struct pod_entry *first = want("first", 4, "bad"),
                     *next = want("next", 8, "");
    struct machine_result r = deliver(first, &err);
    cr_expect_str_eq(r.reason, "HookFailed", "%s", err.text);
    r = deliver(next, &err);
    expect_waits(r, err);
}

static void *deliver_thread(void *arg)
{
    struct error err = {0};
    struct machine_result *r = xcalloc(1, sizeof *r);
    *r = deliver(arg, &err);
    return r;
}

Test(act_deliver, who_uses_the_card_is_asked_in_turn)
{
    struct pod_entry *first = want("first", 4, ""), *next = want("next", 8, "");
    pthread_t thread;
    void *result;
    (void)pthread_mutex_lock(&lab.card->vfs);
    cr_assert_eq(pthread_create(&thread, NULL, deliver_thread, next), 0);
    (void)poll(NULL, 0, 100); /* it waits for its turn, most likely */
    act_lock(lab.a);
    first->m.prepared = true;
    act_unlock(lab.a);
    (void)pthread_mutex_unlock(&lab.card->vfs);
    cr_assert_eq(pthread_join(thread, &result), 0);
    cleanup_free struct machine_result *r = result;
    cr_expect(r->waits, "it looked before its turn");
    cr_expect_eq(n_functions(), 2);
}

static bool is_due(struct pod_entry *e)
{
    act_lock(lab.a);
    bool due = e->due_ms == 0 && e->m.retry_ms == 0;
    act_unlock(lab.a);
    return due;
}

Test(act_deliver, no_thread_waits_for_a_hook)
{
    struct error err = {0};
    struct pod_entry *first = want("first", -1, "long"),
                     *next = want("next", 4, "");
    struct pod_entry *plain = want("plain", -1, "");
    pthread_t thread;
    void *result;
    cleanup_free char *script = xasprintf(
        "#!/bin/sh\n>%s/up\nwhile ! [ -e %s/go ]; do sleep 0.01; done\n",
        lab.top, lab.top);
    cleanup_free char *up = in_lab("up");
    put("hooks/long", script, 0755);
    cr_assert_eq(pthread_create(&thread, NULL, deliver_thread, first), 0);
    while (access(up, F_OK) < 0)
        (void)poll(NULL, 0, 5);
    struct machine_result r = deliver(next, &err);
    cr_expect_str_eq(r.reason, "WaitsForCard");
    cr_expect(r.waits && !r.permanent);
    cr_expect_eq(deliver(plain, &err).e, 0, "it asks for nothing");
    act_lock(lab.a);
    (void)snprintf(next->intent->reason, sizeof next->intent->reason, "%s",
                   r.reason);
    next->due_ms = next->m.retry_ms = INT64_MAX;
    act_unlock(lab.a);
    put("go", "", 0644);
    cr_assert_eq(pthread_join(thread, &result), 0);
    cleanup_free struct machine_result *of_first = result;
    cr_expect_eq(of_first->e, 0);
    cr_expect(is_due(next), "its turn has come");
}

Test(act_deliver, nothing_is_begun_while_we_end)
{
    struct error err = {0};
    struct pod_entry *e = want("late", 4, "");
    act_lock(lab.a);
    lab.a->stopping = true;
    act_unlock(lab.a);
    cr_expect_eq(deliver(e, &err).e, -ECANCELED);
    cr_expect_eq(n_functions(), 2);
}
