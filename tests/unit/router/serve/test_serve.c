#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/cri/cri.h"
#include "lib/io/log.h"
#include "router/serve/serve.h"
#include "tests/lib/card/cardserver.h"
#include "tests/lib/tmpdir.h"

enum { CALL_MS = 60000 };

/* A home, two cards, and the router between them and a kubelet. */
struct rig {
    char *dir;
    struct cardserver *home, *cards[2];
    struct act_place places[2];
    char *listen, *home_path, *state, *kubelet, *url;
    struct serve *serve;
    struct grpc_config to;
    struct cri *kubelet_side;
};

static struct cardserver *server_at(const char *path)
{
    static const struct cardserver_times quick = {0};
    const struct h2_config config = {.socket = path};
    return cardserver_start(&config, &quick);
}

static void start(struct rig *r)
{
    struct error err = {0};
    const struct serve_config config = {
        .listen = r->listen,
        .home = r->home_path,
        .state = r->state,
        .kubelet_dir = r->kubelet,
        .pod_logs = r->kubelet,
        .node = "n1",
        .cluster = "c",
        .handler = "xpu",
        .remote_handler = "",
        .default_remote = "",
        .helper_image = "biga-card:1",
        .card_dir = "/var/lib/biga",
        .hooks = "",
        .timeout_ms = 10000,
        .pull_timeout_ms = 10000,
        .probe_ms = 100,
        .places = r->places,
        .n_places = 2,
    };
    cr_assert_eq(serve_start(&config, &r->serve, &err), 0, "%s", err.text);
    cr_assert_eq(cri_create(&r->to, &r->kubelet_side, &err), 0, "%s", err.text);
}

static void stop(struct rig *r)
{
    cri_destroy(r->kubelet_side);
    serve_stop(r->serve, 0);
}

static void open_rig(struct rig *r)
{
    *r = (struct rig){.dir = tmpdir_create()};
    log_set_level(LOG_ERROR);
    r->listen = xasprintf("%s/cri.sock", r->dir);
    r->home_path = xasprintf("%s/home.sock", r->dir);
    r->state = xasprintf("%s/state", r->dir);
    r->kubelet = xasprintf("%s/kubelet", r->dir);
    r->url = xasprintf("unix://%s", r->listen);
    r->to.endpoint = r->url;
    cr_assert_eq(mkdir(r->state, 0700), 0);
    cr_assert_eq(mkdir(r->kubelet, 0700), 0);
    r->home = server_at(r->home_path);
    for (int i = 0; i < 2; i++) {
        cleanup_free char *path = xasprintf("%s/card-%d", r->dir, i);
        struct act_place *p = &r->places[i];
        (void)snprintf(p->name, sizeof p->name, "card-0000-1%d-00", i);
        (void)snprintf(p->pci, sizeof p->pci, "0000:1%d:00.0", i);
        (void)snprintf(p->arch, sizeof p->arch, "arm64");
        (void)snprintf(p->endpoint, sizeof p->endpoint, "unix://%s", path);
        r->cards[i] = server_at(path);
    }
    start(r);
}

static void close_rig(struct rig *r)
{
    stop(r);
    cardserver_stop(r->home);
    cardserver_stop(r->cards[0]);
    cardserver_stop(r->cards[1]);
    tmpdir_remove(r->dir);
    free(r->listen);
    free(r->home_path);
    free(r->state);
    free(r->kubelet);
    free(r->url);
}

/* --- pods ------------------------------------------------------------------ */

struct asked {
    struct cri_sandbox_config config;
    struct cri_pair annotation;
    char *allocation;
};

static void asked_init(struct asked *a, const char *name, const char *handler,
                       const char *card)
{
    a->allocation =
        card ? xasprintf("{\"pod\":{\"namespace\":\"ns\",\"name\":\"%s\","
                         "\"uid\":\"uid-%s\",\"role\":\"xpu\"},\"node\":\"n1\","
                         "\"cards\":[{\"id\":\"%s\"}],\"need\":{\"cores\":2,"
                         "\"memoryMiB\":64}}",
                         name, name, card)
             : NULL;
    a->annotation = (struct cri_pair){"biga.dev/allocation", a->allocation};
    a->config = (struct cri_sandbox_config){
        .namespace = "ns",
        .name = name,
        .uid = xasprintf("uid-%s", name),
        .hostname = name,
        .log_directory = "",
        .annotations = {&a->annotation, card != NULL},
        .runtime_handler = handler,
        .cgroup_parent = "",
        .run_as_user = -1,
    };
}

static void asked_fini(struct asked *a)
{
    free((char *)(uintptr_t)a->config.uid);
    free(a->allocation);
}

static int run(struct rig *r, const char *name, const char *handler,
               const char *card, char *ret_id, struct error *err)
{
    struct asked a;
    *err = (struct error){0};
    asked_init(&a, name, handler, card);
    int e = cri_run_sandbox(r->kubelet_side, &a.config, CALL_MS, ret_id, err);
    asked_fini(&a);
    return e;
}

static int create(struct rig *r, const char *name, const char *sandbox_id,
                  char *ret_id, struct error *err)
{
    struct asked a;
    const struct cri_container_config config = {
        .name = "main",
        .image = "busybox",
        .working_dir = "",
        .log_path = "",
        .cpuset_cpus = "",
        .cpuset_mems = "",
        .run_as_user = -1,
        .run_as_group = -1,
    };
    *err = (struct error){0};
    asked_init(&a, name, "xpu", "card-0000-10-00");
    int e = cri_create_container(r->kubelet_side, sandbox_id, &config,
                                 &a.config, CALL_MS, ret_id, err);
    asked_fini(&a);
    return e;
}

/* How many sandboxes the kubelet is told of. */
static size_t n_listed(struct rig *r)
{
    struct cri_sandboxes list = {0};
    struct error err = {0};
    const struct cri_pairs all = {NULL, 0};
    cr_assert_eq(cri_list_sandboxes(r->kubelet_side, all, CALL_MS, &list, &err),
                 0, "%s", err.text);
    size_t n = list.n;
    cri_sandboxes_fini(&list);
    return n;
}

static int state_of(struct rig *r, const char *id)
{
    struct cri_container c = {0};
    struct error err = {0};
    cr_assert_eq(cri_container_status(r->kubelet_side, id, CALL_MS, &c, &err),
                 0, "%s", err.text);
    int state = (int)c.state;
    cri_container_fini(&c);
    return state;
}

Test(serve, a_pod_without_the_handler_is_the_homes)
{
    struct rig r;
    struct error err;
    char id[CRI_ID_MAX + 1];
    open_rig(&r);
    cr_assert_eq(run(&r, "a", "", "card-0000-10-00", id, &err), 0, "%s",
                 err.text);
    cr_assert_eq(cardserver_live(r.home, NULL), 1);
    cr_assert_eq(cardserver_live(r.cards[0], NULL), 0);
    cr_assert_eq(n_listed(&r), 1);
    close_rig(&r);
}

Test(serve, a_pod_with_it_goes_to_the_card_of_its_allocation)
{
    struct rig r;
    struct error err;
    char id[CRI_ID_MAX + 1], home_id[CRI_ID_MAX + 1];
    open_rig(&r);
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-11-00", id, &err), 0, "%s",
                 err.text);
    cr_assert_eq(run(&r, "b", "", NULL, home_id, &err), 0, "%s", err.text);
    cr_assert_eq(cardserver_live(r.cards[1], "uid-a"), 1);
    cr_assert_eq(cardserver_live(r.cards[0], NULL), 0);
    cr_assert_eq(cardserver_live(r.home, NULL), 1);
    cr_assert_eq(n_listed(&r), 2, "both, at once");
    close_rig(&r);
}

Test(serve, a_pod_that_cannot_be_placed_is_refused_in_words)
{
    static const struct {
        const char *card, *said;
    } tries[] = {
        {NULL, "NoAllocation: pod ns/a"},
        {"card-0000-99-00", "NoSuchCard: card-0000-99-00"},
    };
    struct rig r;
    struct error err;
    char id[CRI_ID_MAX + 1];
    open_rig(&r);
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        cr_assert_lt(run(&r, "a", "xpu", tries[i].card, id, &err), 0);
        cr_assert(strstr(err.text, tries[i].said), "%s", err.text);
    }
    cr_assert_eq(cardserver_calls(r.home, "RunPodSandbox"), 0,
                 "it never is the home's");
    close_rig(&r);
}

Test(serve, a_container_lives_and_goes_on_its_card)
{
    struct rig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    open_rig(&r);
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-10-00", pod, &err), 0, "%s",
                 err.text);
    cr_assert_eq(create(&r, "a", pod, id, &err), 0, "%s", err.text);
    cr_assert_eq(state_of(&r, id), CRI_CREATED);
    cr_assert_eq(cri_start_container(r.kubelet_side, id, CALL_MS, &err), 0,
                 "%s", err.text);
    cr_assert_eq(state_of(&r, id), CRI_RUNNING);
    cr_assert_eq(cri_stop_container(r.kubelet_side, id, 1, CALL_MS, &err), 0,
                 "%s", err.text);
    cr_assert_eq(state_of(&r, id), CRI_EXITED, "at once, for it was awaited");
    cr_assert_eq(cri_remove_container(r.kubelet_side, id, CALL_MS, &err), 0,
                 "%s", err.text);
    cr_assert_eq(cri_stop_sandbox(r.kubelet_side, pod, CALL_MS, &err), 0, "%s",
                 err.text);
    cr_assert_eq(cri_remove_sandbox(r.kubelet_side, pod, CALL_MS, &err), 0,
                 "%s", err.text);
    cr_assert_eq(n_listed(&r), 0);
    cr_assert_eq(cardserver_live(r.cards[0], "uid-a"), 0);
    close_rig(&r);
}

Test(serve, what_is_known_outlives_the_process)
{
    struct rig r;
    struct error err;
    char id[CRI_ID_MAX + 1];
    open_rig(&r);
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-10-00", id, &err), 0, "%s",
                 err.text);
    stop(&r);
    start(&r);
    cr_assert_eq(n_listed(&r), 1, "from the first moment on");
    cr_assert_eq(cri_stop_sandbox(r.kubelet_side, id, CALL_MS, &err), 0, "%s",
                 err.text);
    cr_assert_eq(cardserver_calls(r.cards[0], "StopPodSandbox"), 1);
    cr_assert_eq(cardserver_calls(r.home, "StopPodSandbox"), 0);
    close_rig(&r);
}

/* What no list has the kubelet would begin again, while it runs there. */
Test(serve, what_is_on_a_card_that_was_not_heard_yet_is_told)
{
    struct rig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    open_rig(&r);
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-10-00", pod, &err), 0, "%s",
                 err.text);
    cr_assert_eq(create(&r, "a", pod, id, &err), 0, "%s", err.text);
    cr_assert_eq(cri_start_container(r.kubelet_side, id, CALL_MS, &err), 0,
                 "%s", err.text);
    stop(&r);
    cardserver_freeze(r.cards[0], true);
    start(&r);
    cr_assert_eq(n_listed(&r), 1);
    cr_assert_eq(state_of(&r, id), CRI_RUNNING);
    cr_assert_lt(cri_stop_sandbox(r.kubelet_side, pod, CALL_MS, &err), 0);
    cardserver_freeze(r.cards[0], false);
    close_rig(&r);
}

/* The kubelet's deadline is far away: who waited for the card would be seen by
 * the test's own. */
Test(serve, a_card_that_is_frozen_keeps_nobody_waiting)
{
    struct rig r;
    struct error err;
    char id[CRI_ID_MAX + 1], home_id[CRI_ID_MAX + 1];
    open_rig(&r);
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-10-00", id, &err), 0, "%s",
                 err.text);
    cardserver_freeze(r.cards[0], true);
    cr_assert_eq(n_listed(&r), 1, "as it was known last");
    cr_assert_eq(run(&r, "b", "", NULL, home_id, &err), 0, "%s", err.text);
    cr_assert_eq(run(&r, "c", "xpu", "card-0000-11-00", home_id, &err), 0, "%s",
                 err.text);
    cr_assert_eq(n_listed(&r), 3);
    int e = cri_stop_sandbox(r.kubelet_side, id, CALL_MS, &err);
    cr_assert_lt(e, 0, "its own calls fail");
    cr_assert_neq(e, -ENOENT, "and never as if it were gone");
    cardserver_freeze(r.cards[0], false);
    close_rig(&r);
}

Test(serve, what_nobody_knows_is_for_the_home_to_say)
{
    struct rig r;
    struct error err = {0};
    char id[CRI_ID_MAX + 1];
    open_rig(&r);
    /* from then on something is known, and all cards have been listed */
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-10-00", id, &err), 0, "%s",
                 err.text);
    memset(id, 'f', 64);
    id[64] = '\0';
    (void)cri_stop_sandbox(r.kubelet_side, id, CALL_MS, &err);
    cr_assert_eq(cardserver_calls(r.home, "StopPodSandbox"), 1);
    close_rig(&r);
}
