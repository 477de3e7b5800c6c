#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "router/wire/edit.h"
#include "router/wire/fields.h"
#include "router/wire/method.h"
#include "tests/lib/router/runtimeserver.h"
#include "tests/lib/router/serverig.h"

enum {
    FROZEN_MS = 2000, /* of one that a card that is frozen has to answer */
    LATER_S = 10,
};

/* How many sandboxes the kubelet is told of. */
static size_t n_listed(struct serverig *r)
{
    struct cri_sandboxes list = {0};
    struct error err = {0};
    const struct cri_pairs all = {NULL, 0};
    cr_assert_eq(
        cri_list_sandboxes(r->kubelet_side, all, SERVERIG_CALL_MS, &list, &err),
        0, "%s", err.text);
    size_t n = list.n;
    cri_sandboxes_fini(&list);
    return n;
}

static void remove_views(struct serverig *r)
{
    for (int i = 0; i < 2; i++) {
        cleanup_free char *path = xasprintf("%s/remote-%s.view", r->state,
                                            r->places[i].name);
        (void)unlink(path); /* it need not be there */
    }
}

/* What the kubelet needs of one, or else it makes it once more. */
static void check_running(struct serverig *r, const char *id)
{
    struct cri_containers list = {0};
    struct cri_container c = {0};
    struct error err = {0};
    cr_assert_eq(cri_list_containers(r->kubelet_side, (struct cri_pairs){0},
                                     SERVERIG_CALL_MS, &list, &err),
                 0, "%s", err.text);
    cr_assert_eq(list.n, 1);
    cr_expect_str_eq(list.list[0].id, id);
    cr_expect_str_eq(list.list[0].image, "busybox");
    cr_expect_eq(list.list[0].state, CRI_RUNNING);
    cri_containers_fini(&list);
    cr_assert_eq(
        cri_container_status(r->kubelet_side, id, SERVERIG_CALL_MS, &c, &err),
        0, "%s", err.text);
    cr_expect_str_eq(c.image, "busybox");
    cr_expect_eq(c.state, CRI_RUNNING);
    cr_expect_gt(c.started_ns, 1);
    cri_container_fini(&c);
}

static int state_of(struct serverig *r, const char *id)
{
    struct cri_container c = {0};
    struct error err = {0};
    cr_assert_eq(
        cri_container_status(r->kubelet_side, id, SERVERIG_CALL_MS, &c, &err),
        0, "%s", err.text);
    int state = (int)c.state;
    cri_container_fini(&c);
    return state;
}

Test(serve, a_pod_without_the_handler_is_the_homes)
{
    struct serverig r;
    struct error err;
    char id[CRI_ID_MAX + 1];
    serverig_open(&r);
    cr_assert_eq(serverig_run(&r, "a", "", "card-0000-10-00", id, &err), 0,
                 "%s", err.text);
    cr_assert_eq(cardserver_live(r.home, NULL), 1);
    cr_assert_eq(cardserver_live(r.cards[0], NULL), 0);
    cr_assert_eq(n_listed(&r), 1);
    serverig_close(&r);
}

Test(serve, a_pod_with_it_goes_to_the_card_of_its_allocation)
{
    struct serverig r;
    struct error err;
    char id[CRI_ID_MAX + 1], home_id[CRI_ID_MAX + 1];
    serverig_open(&r);
    cr_assert_eq(serverig_run(&r, "a", "xpu", "card-0000-11-00", id, &err), 0,
                 "%s", err.text);
    cr_assert_eq(serverig_run(&r, "b", "", NULL, home_id, &err), 0, "%s",
                 err.text);
    cr_assert_eq(cardserver_live(r.cards[1], "uid-a"), 1);
    cr_assert_eq(cardserver_live(r.cards[0], NULL), 0);
    cr_assert_eq(cardserver_live(r.home, NULL), 1);
    cr_assert_eq(n_listed(&r), 2, "both, at once");
    serverig_close(&r);
}

Test(serve, a_pod_that_cannot_be_placed_is_refused_in_words)
{
    static const struct {
        const char *card, *said;
    } tries[] = {
        {NULL, "NoAllocation: pod ns/a"},
        {"card-0000-99-00", "NoSuchCard: card-0000-99-00"},
    };
    struct serverig r;
    struct error err;
    char id[CRI_ID_MAX + 1];
    serverig_open(&r);
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        cr_assert_lt(serverig_run(&r, "a", "xpu", tries[i].card, id, &err), 0);
        cr_assert(strstr(err.text, tries[i].said), "%s", err.text);
    }
    cr_assert_eq(cardserver_calls(r.home, "RunPodSandbox"), 0,
                 "it never is the home's");
    serverig_close(&r);
}

Test(serve, a_container_lives_and_goes_on_its_card)
{
    struct serverig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    serverig_open(&r);
    serverig_make(&r, pod, id);
    cr_assert_eq(state_of(&r, id), CRI_CREATED);
    cr_assert_eq(
        cri_start_container(r.kubelet_side, id, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    cr_assert_eq(state_of(&r, id), CRI_RUNNING);
    cr_assert_eq(
        cri_stop_container(r.kubelet_side, id, 1, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    cr_assert_eq(state_of(&r, id), CRI_EXITED, "at once, for it was awaited");
    cr_assert_eq(
        cri_remove_container(r.kubelet_side, id, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    cr_assert_eq(cri_stop_sandbox(r.kubelet_side, pod, SERVERIG_CALL_MS, &err),
                 0, "%s", err.text);
    cr_assert_eq(
        cri_remove_sandbox(r.kubelet_side, pod, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    cr_assert_eq(n_listed(&r), 0);
    cr_assert_eq(cardserver_live(r.cards[0], "uid-a"), 0);
    serverig_close(&r);
}

Test(serve, what_is_known_outlives_the_process)
{
    struct serverig r;
    struct error err;
    char id[CRI_ID_MAX + 1];
    serverig_open(&r);
    cr_assert_eq(serverig_run(&r, "a", "xpu", "card-0000-10-00", id, &err), 0,
                 "%s", err.text);
    serverig_stop(&r);
    serverig_start(&r);
    cr_assert_eq(n_listed(&r), 1, "from the first moment on");
    cr_assert_eq(cri_stop_sandbox(r.kubelet_side, id, SERVERIG_CALL_MS, &err),
                 0, "%s", err.text);
    cr_assert_eq(cardserver_calls(r.cards[0], "StopPodSandbox"), 1);
    cr_assert_eq(cardserver_calls(r.home, "StopPodSandbox"), 0);
    serverig_close(&r);
}

/* What no list has the kubelet would begin again, while it runs there. */
Test(serve, what_is_on_a_card_that_was_not_heard_yet_is_told)
{
    struct serverig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    serverig_open(&r);
    serverig_make(&r, pod, id);
    cr_assert_eq(
        cri_start_container(r.kubelet_side, id, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    serverig_stop(&r);
    cardserver_freeze(r.cards[0], true);
    serverig_start(&r);
    cr_assert_eq(n_listed(&r), 1);
    check_running(&r, id);
    serverig_stop(&r);
    remove_views(&r);
    serverig_start(&r);
    check_running(&r, id);
    cr_assert_lt(cri_stop_sandbox(r.kubelet_side, pod, FROZEN_MS, &err), 0);
    cardserver_freeze(r.cards[0], false);
    serverig_close(&r);
}

static void check_same_end(struct serverig *r, const char *id,
                           const struct cri_container *was)
{
    struct cri_container now = {0};
    struct cri_containers list = {0};
    struct error err = {0};
    cr_assert_eq(
        cri_container_status(r->kubelet_side, id, SERVERIG_CALL_MS, &now, &err),
        0, "%s", err.text);
    cr_assert_eq(now.state, CRI_EXITED);
    cr_assert_eq(now.exit_code, 137);
    cr_assert_str_eq(now.reason, "Error");
    cr_assert_eq(now.started_ns, was->started_ns);
    cr_assert_eq(now.finished_ns, was->finished_ns);
    cr_assert_str_eq(now.log_path, was->log_path);
    cr_assert_eq(cri_list_containers(r->kubelet_side, (struct cri_pairs){0},
                                     SERVERIG_CALL_MS, &list, &err),
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
    struct serverig r;
    struct error err;
    struct cri_container was = {0};
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    serverig_open(&r);
    cardserver_exit_code(r.cards[0], 137);
    serverig_make(&r, pod, id);
    clock_set_wall_ahead(LATER_S); /* than all that the card tells */
    cr_assert_eq(
        cri_start_container(r.kubelet_side, id, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    cr_assert_eq(
        cri_stop_container(r.kubelet_side, id, 1, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    cr_assert_eq(
        cri_container_status(r.kubelet_side, id, SERVERIG_CALL_MS, &was, &err),
        0, "%s", err.text);
    serverig_stop(&r);
    cardserver_freeze(r.cards[0], true);
    serverig_start(&r);
    check_same_end(&r, id, &was);
    serverig_stop(&r);
    remove_views(&r);
    serverig_start(&r);
    check_same_end(&r, id, &was);
    cardserver_freeze(r.cards[0], false);
    cri_container_fini(&was);
    serverig_close(&r);
}

static bool tells(struct serverig *r, const char *line)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    serve_write_metrics(r->serve, &out);
    return strstr(str_text(&out), line);
}

Test(serve, counts_what_it_does)
{
    struct serverig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    enum { READY = 5 };
    serverig_open(&r);
    cr_assert_eq(serverig_run(&r, "h", "", NULL, id, &err), 0, "%s", err.text);
    serverig_make(&r, pod, id);
    cr_assert_lt(serverig_run(&r, "b", "xpu", NULL, id, &err), 0);
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
    serverig_close(&r);
}

static void set_places(struct serverig *r, const struct act_place *places,
                       size_t n)
{
    struct error err = {0};
    cr_assert_eq(serve_set_places(r->serve, places, n, &err), 0, "%s",
                 err.text);
}

/* A card moves, one comes, and one goes and comes back. */
Test(serve, cards_come_and_go_while_it_serves)
{
    struct serverig r;
    struct error err;
    struct act_place places[3];
    struct cardserver *others[2];
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    serverig_open(&r);
    memcpy(places, r.places, sizeof r.places);
    places[2] = places[1];
    (void)snprintf(places[2].name, sizeof places[2].name, "card-0000-12-00");
    for (int i = 0; i < 2; i++) {
        cleanup_free char *path = xasprintf("%s/other-%d", r.dir, i);
        others[i] = serverig_server(path);
        (void)snprintf(places[i + 1].endpoint, sizeof places[0].endpoint,
                       "unix://%s", path);
    }
    cr_assert_eq(serverig_run(&r, "a", "xpu", "card-0000-10-00", pod, &err), 0,
                 "%s", err.text);
    set_places(&r, places, 3);
    cr_assert_eq(n_listed(&r), 1, "who stays was not touched");
    for (int i = 1; i < 3; i++) {
        do /* until it was heard */
            err.code = serverig_run(&r, places[i].name + 10, "xpu",
                                    places[i].name, id, &err);
        while (err.code == -EAGAIN);
        cr_assert_eq(err.code, 0, "%s", err.text);
        cleanup_free char *uid = xasprintf("uid-%s", places[i].name + 10);
        cr_assert_eq(cardserver_live(others[i - 1], uid), 1);
    }
    cr_assert_eq(cardserver_live(r.cards[1], NULL), 0, "it is not called");
    set_places(&r, places + 1, 2);
    cr_assert_eq(n_listed(&r), 2);
    cr_assert(tells(&r, "{remote=\"card-0000-10-00\",health=\"ready\"} 0\n"));
    cr_assert_lt(serverig_run(&r, "b", "xpu", "card-0000-10-00", id, &err), 0);
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
    cr_assert_eq(serverig_run(&r, "c", "", NULL, id, &err), 0, "%s", err.text);
    serverig_close(&r);
    cardserver_stop(others[0]);
    cardserver_stop(others[1]);
}

/* The kubelet's deadline is far away: who waited for the card would be seen by
 * the test's own. */
Test(serve, a_card_that_is_frozen_keeps_nobody_waiting)
{
    struct serverig r;
    struct error err;
    char id[CRI_ID_MAX + 1], home_id[CRI_ID_MAX + 1];
    serverig_open(&r);
    cr_assert_eq(serverig_run(&r, "a", "xpu", "card-0000-10-00", id, &err), 0,
                 "%s", err.text);
    cardserver_freeze(r.cards[0], true);
    cr_assert_eq(n_listed(&r), 1, "as it was known last");
    cr_assert_eq(serverig_run(&r, "b", "", NULL, home_id, &err), 0, "%s",
                 err.text);
    cr_assert_eq(serverig_run(&r, "c", "xpu", "card-0000-11-00", home_id, &err),
                 0, "%s", err.text);
    cr_assert_eq(n_listed(&r), 3);
    int e = cri_stop_sandbox(r.kubelet_side, id, FROZEN_MS, &err);
    cr_assert_lt(e, 0, "its own calls fail");
    cr_assert_neq(e, -ENOENT, "and never as if it were gone");
    cardserver_freeze(r.cards[0], false);
    serverig_close(&r);
}

Test(serve, what_nobody_knows_is_for_the_home_to_say)
{
    struct serverig r;
    struct error err = {0};
    char id[CRI_ID_MAX + 1];
    serverig_open(&r);
    /* from then on something is known, and all cards have been listed */
    cr_assert_eq(serverig_run(&r, "a", "xpu", "card-0000-10-00", id, &err), 0,
                 "%s", err.text);
    memset(id, 'f', 64);
    id[64] = '\0';
    (void)cri_stop_sandbox(r.kubelet_side, id, SERVERIG_CALL_MS, &err);
    cr_assert_eq(cardserver_calls(r.home, "StopPodSandbox"), 1);
    serverig_close(&r);
}

/* --- what the kubelet takes the newest of, or the latest --------------------- */

static int64_t created_ns(struct serverig *r, const char *id)
{
    struct error err = {0};
    struct str request = STR_INIT(128);
    struct cri_bytes reply;
    proto_add_text(&request, CRI_ContainerStatusRequest_container_id, id);
    cr_assert_eq(cri_call(r->kubelet_side,
                          "/runtime.v1.RuntimeService/ContainerStatus",
                          (struct cri_bytes){request.data, request.size},
                          SERVERIG_CALL_MS, &reply, &err),
                 0, "%s", err.text);
    str_fini(&request);
    return (int64_t)edit_number(
        edit_bytes((struct proto_bytes){reply.data, reply.size},
                   CRI_ContainerStatusResponse_status),
        CRI_ContainerStatus_created_at);
}

Test(serve, the_later_attempt_is_the_newer_one_within_a_second_too)
{
    struct serverig r;
    struct error err;
    char pod[CRI_ID_MAX + 1], ids[2][CRI_ID_MAX + 1];
    serverig_open(&r);
    cr_assert_eq(serverig_run(&r, "a", "xpu", "card-0000-10-00", pod, &err), 0,
                 "%s", err.text);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(serverig_create_again(&r, "a", pod, i, ids[i], &err), 0,
                     "%s", err.text);
    cr_expect_gt(created_ns(&r, ids[1]), created_ns(&r, ids[0]));
    serverig_close(&r);
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
        grpc_hub_turn(h->hub, SERVERIG_CALL_MS);
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
    struct serverig r;
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
    serverig_open(&r);
    serverig_stop(&r);
    struct runtimeserver *home = in_place_of(&r.home, r.home_path);
    struct runtimeserver *card =
        in_place_of(&r.cards[0], r.places[0].endpoint + strlen("unix://"));
    serverig_start(&r);
    runtimeserver_events(home, true);
    h.to = r.to;
    cr_assert_eq(grpc_hub_open(h.hub, &h.to, &what, &flow, &err), 0, "%s",
                 err.text);
    while (runtimeserver_calls(home, "GetContainerEvents") == 0)
        grpc_hub_turn(h.hub, 1);
    h.began_ns = clock_wall_ns();
    serverig_make(&r, pod, id);
    cr_assert_eq(
        cri_start_container(r.kubelet_side, id, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    hear_until(&h, id, CRI_RUNNING);
    cr_assert_eq(
        cri_stop_container(r.kubelet_side, id, 1, SERVERIG_CALL_MS, &err), 0,
        "%s", err.text);
    hear_until(&h, id, CRI_EXITED);
    cr_expect_eq(h.n_bare, 0);
    cr_expect_eq(h.n_old, 0, "a kubelet keeps what is newer");
    grpc_hub_destroy(h.hub);
    serverig_close(&r);
    runtimeserver_stop(home);
    runtimeserver_stop(card);
}
