#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/cri/cri.h"
#include "lib/grpc/grpc.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/serve/serve.h"
#include "router/wire/edit.h"
#include "router/wire/fields.h"
#include "router/wire/method.h"
#include "tests/lib/card/cardserver.h"
#include "tests/lib/router/runtimeserver.h"
#include "tests/lib/tmpdir.h"

enum {
    CALL_MS = 60000,
    FROZEN_MS = 2000, /* of one that a card that is frozen has to answer */
    LATER_S = 10,
};

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
        .timeout_ms = CALL_MS,
        .pull_timeout_ms = CALL_MS,
        .images = {.high = 85, .low = 80},
        .probe_ms = 100,
        .lost_ms = 4 * CALL_MS, /* four times what a probe may take */
        .fresh_ms = CALL_MS,
        .status_ms = CALL_MS,
        .collect_ms = 20,
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
    struct cardserver *servers[] = {r->home, r->cards[0], r->cards[1]};
    for (size_t i = 0; i < ARRAY_LEN(servers); i++)
        if (servers[i])
            cardserver_stop(servers[i]);
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

static int create_again(struct rig *r, const char *name, const char *sandbox_id,
                        uint32_t attempt, char *ret_id, struct error *err)
{
    struct asked a;
    const struct cri_container_config config = {
        .name = "main",
        .attempt = attempt,
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

static int create(struct rig *r, const char *name, const char *sandbox_id,
                  char *ret_id, struct error *err)
{
    return create_again(r, name, sandbox_id, 0, ret_id, err);
}

/* Pod "a" on the first card, and its container. */
static void make(struct rig *r, char *ret_pod, char *ret_id)
{
    struct error err;
    cr_assert_eq(run(r, "a", "xpu", "card-0000-10-00", ret_pod, &err), 0, "%s",
                 err.text);
    cr_assert_eq(create(r, "a", ret_pod, ret_id, &err), 0, "%s", err.text);
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

static void remove_views(struct rig *r)
{
    for (int i = 0; i < 2; i++) {
        cleanup_free char *path = xasprintf("%s/remote-%s.view", r->state,
                                            r->places[i].name);
        (void)unlink(path); /* it need not be there */
    }
}

/* What the kubelet needs of one, or else it makes it once more. */
static void check_running(struct rig *r, const char *id)
{
    struct cri_containers list = {0};
    struct cri_container c = {0};
    struct error err = {0};
    cr_assert_eq(cri_list_containers(r->kubelet_side, (struct cri_pairs){0},
                                     CALL_MS, &list, &err),
                 0, "%s", err.text);
    cr_assert_eq(list.n, 1);
    cr_expect_str_eq(list.list[0].id, id);
    cr_expect_str_eq(list.list[0].image, "busybox");
    cr_expect_eq(list.list[0].state, CRI_RUNNING);
    cri_containers_fini(&list);
    cr_assert_eq(cri_container_status(r->kubelet_side, id, CALL_MS, &c, &err),
                 0, "%s", err.text);
    cr_expect_str_eq(c.image, "busybox");
    cr_expect_eq(c.state, CRI_RUNNING);
    cr_expect_gt(c.started_ns, 1);
    cri_container_fini(&c);
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
    make(&r, pod, id);
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
    make(&r, pod, id);
    cr_assert_eq(cri_start_container(r.kubelet_side, id, CALL_MS, &err), 0,
                 "%s", err.text);
    stop(&r);
    cardserver_freeze(r.cards[0], true);
    start(&r);
    cr_assert_eq(n_listed(&r), 1);
    check_running(&r, id);
    stop(&r);
    remove_views(&r);
    start(&r);
    check_running(&r, id);
    cr_assert_lt(cri_stop_sandbox(r.kubelet_side, pod, FROZEN_MS, &err), 0);
    cardserver_freeze(r.cards[0], false);
    close_rig(&r);
}

static void check_same_end(struct rig *r, const char *id,
                           const struct cri_container *was)
{
    struct cri_container now = {0};
    struct cri_containers list = {0};
    struct error err = {0};
    cr_assert_eq(cri_container_status(r->kubelet_side, id, CALL_MS, &now, &err),
                 0, "%s", err.text);
    cr_assert_eq(now.state, CRI_EXITED);
    cr_assert_eq(now.exit_code, 137);
    cr_assert_str_eq(now.reason, "Error");
    cr_assert_eq(now.started_ns, was->started_ns);
    cr_assert_eq(now.finished_ns, was->finished_ns);
    cr_assert_str_eq(now.log_path, was->log_path);
    cr_assert_eq(cri_list_containers(r->kubelet_side, (struct cri_pairs){0},
                                     CALL_MS, &list, &err),
                 0, "%s", err.text);
    cr_assert_eq(list.n, 1);
    cr_assert_eq(list.list[0].state, CRI_EXITED);
    cri_containers_fini(&list);
    cri_container_fini(&now);
}

/* A container that is told as running again has the kubelet see a pod begin
 * that has ended; the card says nothing, so all of it was written down. */
Test(serve, an_end_that_was_told_is_told_again_while_the_card_is_away)
{
    struct rig r;
    struct error err;
    struct cri_container was = {0};
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    open_rig(&r);
    cardserver_exit_code(r.cards[0], 137);
    make(&r, pod, id);
    clock_set_wall_ahead(LATER_S); /* than all that the card tells */
    cr_assert_eq(cri_start_container(r.kubelet_side, id, CALL_MS, &err), 0,
                 "%s", err.text);
    cr_assert_eq(cri_stop_container(r.kubelet_side, id, 1, CALL_MS, &err), 0,
                 "%s", err.text);
    cr_assert_eq(cri_container_status(r.kubelet_side, id, CALL_MS, &was, &err),
                 0, "%s", err.text);
    stop(&r);
    cardserver_freeze(r.cards[0], true);
    start(&r);
    check_same_end(&r, id, &was);
    stop(&r);
    remove_views(&r);
    start(&r);
    check_same_end(&r, id, &was);
    cardserver_freeze(r.cards[0], false);
    cri_container_fini(&was);
    close_rig(&r);
}

/* Its disk as biga-card tells it. */
static void set_disk(struct rig *r, unsigned available)
{
    cleanup_free char *text =
        xasprintf("size=100000000000\navailable=%u000000000\n", available);
    cardserver_exec(r->cards[0], 0, text, "");
}

/* Until it was asked for its images `n` times more. */
static void await_looks(struct rig *r, unsigned n)
{
    unsigned begun = cardserver_calls(r->cards[0], "ListImages");
    while (cardserver_calls(r->cards[0], "ListImages") < begun + n)
        (void)sched_yield();
}

Test(serve, images_that_no_container_has_go_when_the_disk_is_full)
{
    struct rig r;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    open_rig(&r);
    make(&r, pod, id);
    set_disk(&r, 16);
    cardserver_image(r.cards[0], "busybox"); /* the container's */
    cardserver_image(r.cards[0], "old");
    cardserver_image(r.cards[0], "docker.io/library/pause");
    await_looks(&r, 2);
    cr_assert(cardserver_has_image(r.cards[0], "old"), "there is room");
    set_disk(&r, 14);
    while (cardserver_has_image(r.cards[0], "old"))
        (void)sched_yield();
    await_looks(&r, 2);
    cr_assert(cardserver_has_image(r.cards[0], "busybox"));
    cr_assert(cardserver_has_image(r.cards[0], "docker.io/library/pause"));
    cr_assert_eq(cardserver_calls(r.home, "RemoveImage"), 0);
    close_rig(&r);
}

/* As a kubelet does it for a pod of the first card; both requests begin with
 * the image. */
static int ask_image(struct rig *r, enum method_id method, struct error *err)
{
    struct asked a;
    struct cri_bytes reply;
    cleanup_str struct str request = STR_INIT(4096);
    *err = (struct error){0};
    asked_init(&a, "a", "xpu", "card-0000-10-00");
    size_t at = proto_open(&request, CRI_PullImageRequest_image);
    proto_add_text(&request, CRI_ImageSpec_image, "new");
    proto_add_pair(&request, CRI_ImageSpec_annotations, a.annotation.key,
                   a.annotation.value);
    proto_close(&request, at);
    int e = cri_call(r->kubelet_side, method_get(method)->path,
                     (struct cri_bytes){request.data, request.size}, CALL_MS,
                     &reply, err);
    asked_fini(&a);
    return e;
}

static int pull(struct rig *r, struct error *err)
{
    return ask_image(r, METHOD_PULL_IMAGE, err);
}

Test(serve, a_pull_that_finds_the_disk_full_makes_room)
{
    struct rig r;
    struct error err;
    open_rig(&r);
    set_disk(&r, 50);
    cardserver_image(r.cards[0], "old");
    cardserver_fail(r.cards[0], "PullImage", GRPC_RESOURCE_EXHAUSTED, 1);
    cr_assert_eq(pull(&r, &err), 0, "%s", err.text);
    cr_assert_not(cardserver_has_image(r.cards[0], "old"));
    cr_assert_eq(cardserver_calls(r.cards[0], "PullImage"), 2);
    cardserver_fail(r.cards[0], "PullImage", GRPC_RESOURCE_EXHAUSTED, 1);
    cr_assert_eq(pull(&r, &err), -ENOSPC, "nothing is left that could go");
    close_rig(&r);
}

/* The servers' images are for arm64.  It is there afterwards, and the kubelet
 * asks for its status then: that is refused as well. */
Test(serve, an_image_for_another_architecture_is_refused_with_both_names)
{
    struct rig r;
    struct error err;
    open_rig(&r);
    cr_assert_eq(pull(&r, &err), 0, "%s", err.text);
    stop(&r);
    (void)snprintf(r.places[0].arch, sizeof r.places[0].arch, "riscv64");
    start(&r);
    const enum method_id methods[] = {METHOD_PULL_IMAGE, METHOD_IMAGE_STATUS};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        cr_assert_lt(ask_image(&r, methods[i], &err), 0);
        cr_expect_eq(cri_end(r.kubelet_side)->code, GRPC_FAILED_PRECONDITION);
        cr_expect(strstr(err.text, "ImageArch: image new is for arm64, and "
                                   "card-0000-10-00 is riscv64"),
                  "%s", err.text);
    }
    close_rig(&r);
}

static bool tells(struct rig *r, const char *line)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    serve_write_metrics(r->serve, &out);
    return strstr(str_text(&out), line);
}

Test(serve, counts_what_it_does)
{
    struct rig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    enum { READY = 5 };
    open_rig(&r);
    cr_assert_eq(run(&r, "h", "", NULL, id, &err), 0, "%s", err.text);
    make(&r, pod, id);
    cr_assert_lt(run(&r, "b", "xpu", NULL, id, &err), 0);
    cr_assert_eq(n_listed(&r), 2); /* what was called before has ended */
    static const char *const lines[] = {
        "biga_cri_calls_total{method=\"RunPodSandbox\",target=\"home\","
        "code=\"OK\"} 1\n",
        "biga_cri_calls_total{method=\"RunPodSandbox\",target=\"remote\","
        "code=\"OK\"} 1\n",
        "biga_cri_calls_total{method=\"RunPodSandbox\",target=\"remote\","
        "code=\"FAILED_PRECONDITION\"} 1\n",
        "biga_cri_call_duration_seconds_count{method=\"RunPodSandbox\","
        "target=\"remote\"} 2\n",
        "biga_cri_records{remote=\"card-0000-10-00\",state=\"made\"} 2\n",
        "biga_cri_remote_health{remote=\"card-0000-11-00\","
        "health=\"ready\"} 1\n",
        "biga_cri_streams 0\n",
        "biga_cri_volumes_total{result=\"delivered\"} 0\n",
    };
    while (!tells(&r, lines[READY])) /* nothing has waited for that one */
        (void)sched_yield();
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        cr_expect(tells(&r, lines[i]), "%s", lines[i]);
    close_rig(&r);
}

static void set_places(struct rig *r, const struct act_place *places, size_t n)
{
    struct error err = {0};
    cr_assert_eq(serve_set_places(r->serve, places, n, &err), 0, "%s",
                 err.text);
}

/* A card moves, one comes, and one goes and comes back. */
Test(serve, cards_come_and_go_while_it_serves)
{
    struct rig r;
    struct error err;
    struct act_place places[3];
    struct cardserver *others[2];
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    open_rig(&r);
    memcpy(places, r.places, sizeof r.places);
    places[2] = places[1];
    (void)snprintf(places[2].name, sizeof places[2].name, "card-0000-12-00");
    for (int i = 0; i < 2; i++) {
        cleanup_free char *path = xasprintf("%s/other-%d", r.dir, i);
        others[i] = server_at(path);
        (void)snprintf(places[i + 1].endpoint, sizeof places[0].endpoint,
                       "unix://%s", path);
    }
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-10-00", pod, &err), 0, "%s",
                 err.text);
    set_places(&r, places, 3);
    cr_assert_eq(n_listed(&r), 1, "who stays was not touched");
    for (int i = 1; i < 3; i++) {
        do /* until it was heard */
            err.code = run(&r, places[i].name + 10, "xpu", places[i].name, id,
                           &err);
        while (err.code == -EAGAIN);
        cr_assert_eq(err.code, 0, "%s", err.text);
        cleanup_free char *uid = xasprintf("uid-%s", places[i].name + 10);
        cr_assert_eq(cardserver_live(others[i - 1], uid), 1);
    }
    cr_assert_eq(cardserver_live(r.cards[1], NULL), 0, "it is not called");
    set_places(&r, places + 1, 2);
    cr_assert_eq(n_listed(&r), 2);
    cr_assert(tells(&r, "{remote=\"card-0000-10-00\",health=\"ready\"} 0\n"));
    cr_assert_lt(run(&r, "b", "xpu", "card-0000-10-00", id, &err), 0);
    cr_assert(strstr(err.text, "NoSuchCard: card-0000-10-00"), "%s", err.text);
    cr_assert_eq(cardserver_live(r.cards[0], "uid-a"), 1, "its pods go on");
    set_places(&r, places, 3);
    cr_assert_eq(n_listed(&r), 3, "and are told again, at once");
    for (int i = 0; i < SERVE_FARS_MAX / 3 - 2; i++) {
        (void)snprintf(places[1].arch, sizeof places[1].arch, "a%d", i);
        set_places(&r, places + (i & 1), 2);
    }
    err = (struct error){0};
    places[1].arch[0] = 'b';
    while (serve_set_places(r.serve, places, 2, &err) == 0)
        places[1].arch[0]++;
    cr_assert(strstr(err.text, "start biga-cri anew"), "%s", err.text);
    cr_assert_eq(run(&r, "c", "", NULL, id, &err), 0, "%s", err.text);
    close_rig(&r);
    cardserver_stop(others[0]);
    cardserver_stop(others[1]);
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
    int e = cri_stop_sandbox(r.kubelet_side, id, FROZEN_MS, &err);
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

/* --- what the kubelet takes the newest of, or the latest --------------------- */

static int64_t created_ns(struct rig *r, const char *id)
{
    struct error err = {0};
    struct str request = STR_INIT(128);
    struct cri_bytes reply;
    proto_add_text(&request, CRI_ContainerStatusRequest_container_id, id);
    cr_assert_eq(cri_call(r->kubelet_side,
                          "/runtime.v1.RuntimeService/ContainerStatus",
                          (struct cri_bytes){request.data, request.size},
                          CALL_MS, &reply, &err),
                 0, "%s", err.text);
    str_fini(&request);
    return (int64_t)edit_number(
        edit_bytes((struct proto_bytes){reply.data, reply.size},
                   CRI_ContainerStatusResponse_status),
        CRI_ContainerStatus_created_at);
}

Test(serve, the_later_attempt_is_the_newer_one_within_a_second_too)
{
    struct rig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], ids[2][CRI_ID_MAX + 1];
    open_rig(&r);
    cr_assert_eq(run(&r, "a", "xpu", "card-0000-10-00", pod, &err), 0, "%s",
                 err.text);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(create_again(&r, "a", pod, i, ids[i], &err), 0, "%s",
                     err.text);
    cr_expect_gt(created_ns(&r, ids[1]), created_ns(&r, ids[0]));
    close_rig(&r);
}

/* Of GetContainerEvents. */
struct heard {
    struct grpc_hub *hub;
    struct grpc_config to;
    int64_t began_ns;
    size_t n, n_old, n_bare; /* from before, without a status of its sandbox */
    char last[CRI_ID_MAX + 1];
    uint64_t state; /* of the last one's newest container */
};

static int hear(void *ctx, const void *message, size_t size)
{
    struct heard *h = ctx;
    const struct proto_bytes m = {message, size};
    struct proto_bytes sandbox =
        edit_bytes(m, CRI_ContainerEventResponse_pod_sandbox_status);
    struct proto_bytes id = edit_bytes(m,
                                       CRI_ContainerEventResponse_container_id);
    h->n++;
    h->n_old += (int64_t)edit_number(m, CRI_ContainerEventResponse_created_at) <
                h->began_ns;
    h->n_bare += sandbox.size == 0;
    (void)snprintf(h->last, sizeof h->last, "%.*s", (int)id.size, id.data);
    h->state = edit_number(
        edit_bytes(m, CRI_ContainerEventResponse_containers_statuses),
        CRI_ContainerStatus_state);
    return 0;
}

static void not_to_end(void *ctx, int code, const struct grpc_end *end,
                       const struct error *err)
{
    (void)ctx;
    (void)end;
    cr_assert_fail("it ended: %d %s", code, err->text);
}

static void hear_until(struct heard *h, const char *id, uint64_t state)
{
    while (strcmp(h->last, id) != 0 || h->state != state)
        grpc_hub_turn(h->hub, CALL_MS);
}

/* It has events, and statuses of sandboxes. */
static struct runtimeserver *in_place_of(struct cardserver **other,
                                         const char *path)
{
    cardserver_stop(*other);
    *other = NULL;
    (void)unlink(path);
    return runtimeserver_start(path);
}

Test(serve, events_of_cards_have_all_of_their_pod_and_their_time)
{
    struct rig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    struct heard h = {.hub = grpc_hub_create()};
    const struct grpc_flow_config what = {
        .method = "/runtime.v1.RuntimeService/GetContainerEvents",
        .request = "",
        .visit = hear,
        .ended = not_to_end,
        .ctx = &h};
    struct grpc_flow *flow;
    open_rig(&r);
    stop(&r);
    struct runtimeserver *home = in_place_of(&r.home, r.home_path);
    struct runtimeserver *card =
        in_place_of(&r.cards[0], r.places[0].endpoint + strlen("unix://"));
    start(&r);
    runtimeserver_events(home, true);
    h.to = r.to;
    cr_assert_eq(grpc_hub_open(h.hub, &h.to, &what, &flow, &err), 0, "%s",
                 err.text);
    while (runtimeserver_calls(home, "GetContainerEvents") == 0)
        grpc_hub_turn(h.hub, 1);
    h.began_ns = clock_wall_ns();
    make(&r, pod, id);
    cr_assert_eq(cri_start_container(r.kubelet_side, id, CALL_MS, &err), 0,
                 "%s", err.text);
    hear_until(&h, id, CRI_RUNNING);
    cr_assert_eq(cri_stop_container(r.kubelet_side, id, 1, CALL_MS, &err), 0,
                 "%s", err.text);
    hear_until(&h, id, CRI_EXITED);
    cr_expect_eq(h.n_bare, 0);
    cr_expect_eq(h.n_old, 0, "a kubelet keeps what is newer");
    grpc_hub_destroy(h.hub);
    close_rig(&r);
    runtimeserver_stop(home);
    runtimeserver_stop(card);
}
