/* Steps that are done on a card, and what it is told. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

TestSuite(act_work, .init = virtual_begin, .fini = virtual_end, .timeout = 180);

/* A disk that is full; how often it was. */
static atomic_bool full;
static atomic_uint n_refused;

int sqlite3_step(sqlite3_stmt *q)
{
    static int (*real)(sqlite3_stmt *);
    const char *sql = sqlite3_sql(q) ? sqlite3_sql(q) : "";
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sqlite3_step");
    if (atomic_load(&full) && strncmp(sql, "UPDATE progress", 15) == 0) {
        n_refused++;
        return SQLITE_FULL;
    }
    return real(q);
}

static struct act_pod_status view_of(struct actrig *r, const char *name)
{
    struct act_pod_status v;
    cr_assert_eq(actuator_find(r->a, "lab", name, &v), 0);
    return v;
}

static bool has_reason(struct actrig *r, const char *name, const char *reason)
{
    for (int64_t end = clock_ms() + 60000; clock_ms() < end;) {
        if (strcmp(view_of(r, name).reason, reason) == 0)
            return true;
        actrig_step(r, 10);
    }
    return false;
}

Test(act_work, up_and_down)
{
    struct actrig r;
    actrig_init(&r, 1);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert(view_of(&r, "x").ready);
    cr_assert_eq(cardserver_live(r.cards[0], "x"), 2);
    cr_assert_eq(actuator_unwant(r.a, "x", -1, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cr_assert_eq(cardserver_live(r.cards[0], NULL), 0);
    cr_assert_eq(cardserver_calls(r.cards[0], "RunPodSandbox"), 1);
    cr_assert_eq(cardserver_calls(r.cards[0], "StartContainer"), 1);
    cr_assert_eq(cardserver_calls(r.cards[0], "RemovePodSandbox"), 1);
    actrig_fini(&r);
}

Test(act_work, a_lost_reply_makes_nothing_twice)
{
    static const char *const methods[] = {"RunPodSandbox", "CreateContainer",
                                          "StartContainer"};
    struct actrig r;
    actrig_init(&r, 1);
    actrig_open(&r);
    for (size_t i = 0; i < 3; i++)
        cardserver_fail(r.cards[0], methods[i], -GRPC_UNAVAILABLE, 1);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(has_reason(&r, "x", "CardSilent"));
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert_eq(cardserver_live(r.cards[0], "x"), 2);
    /* a container may be broken by the loss, and is made anew */
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(cardserver_calls(r.cards[0], methods[i]), i == 1 ? 2 : 1,
                     "%s", methods[i]);
    cr_assert_eq(cardserver_calls(r.cards[0], "RemoveContainer"), 1);
    cr_assert_eq(view_of(&r, "x").attempt, 1);
    actrig_fini(&r);
}

Test(act_work, what_is_refused_is_tried_again)
{
    struct actrig r;
    actrig_init(&r, 1);
    actrig_open(&r);
    cardserver_fail(r.cards[0], "CreateContainer", GRPC_INTERNAL, 1);
    cardserver_fail(r.cards[0], "RemovePodSandbox", GRPC_INTERNAL, 1);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(has_reason(&r, "x", "CreateRefused"));
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert_eq(cardserver_calls(r.cards[0], "RunPodSandbox"), 1);
    cr_assert_eq(actuator_unwant(r.a, "x", 0, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cr_assert_eq(cardserver_calls(r.cards[0], "RemovePodSandbox"), 2);
    actrig_fini(&r);
}

Test(act_work, nothing_is_begun_that_is_not_written_down)
{
    struct actrig r;
    actrig_init(&r, 1);
    actrig_open(&r);
    atomic_store(&full, true);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(has_reason(&r, "x", "StateNotWritten"));
    actrig_pass(&r, 3000);
    cr_assert_eq(cardserver_calls(r.cards[0], "RunPodSandbox"), 0);
    atomic_store(&full, false);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_fini(&r);
}

Test(act_work, an_end_that_cannot_be_written_keeps_its_reason)
{
    static const char spec[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
        "\"namespace\":\"lab\",\"name\":\"x\",\"uid\":\"x\"},"
        "\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{"
        "\"name\":\"a\",\"image\":\"i\","
        "\"imagePullPolicy\":\"IfNotPresent\"}]}}";
    const struct act_pod x = {.namespace = "lab",
                              .name = "x",
                              .uid = "x",
                              .place = "card-0",
                              .pair_key = "",
                              .owner = "extender",
                              .spec = spec,
                              .spec_size = sizeof spec - 1,
                              .hook = "",
                              .sriov_vfs = -1};
    struct actrig r;
    actrig_init(&r, 1);
    actrig_open(&r);
    cr_assert_eq(actuator_want(r.a, &x, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_pass(&r, 1000); /* all that is to be said of it is written */
    atomic_store(&full, true);
    cr_assert_eq(cardserver_exit(r.cards[0], "x"), 1);
    cr_assert(actrig_reach(&r, "x", ACT_FAILED));
    n_refused = 0;
    while (n_refused < 2) /* it was not written down, and told so again */
        actrig_step(&r, 10);
    cr_expect_str_eq(view_of(&r, "x").reason, "Completed");
    atomic_store(&full, false);
    cr_assert(actrig_live(&r, 0, "x", 0));
    cr_expect_str_eq(view_of(&r, "x").reason, "Completed");
    actrig_fini(&r);
}

Test(act_work, a_row_that_was_lost_is_written_again)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 1);
    actrig_open(&r);
    const struct act_pod held = {.name = "x", .place = "card-0", .held = true};
    cr_assert_eq(actrig_want_as(&r, held), 0);
    cr_assert_eq(intents_delete(r.a->intents, "x", &err), 0);
    (void)actuator_begin(r.a, "x", &err);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_close(&r);
    actrig_open(&r);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_fini(&r);
}

/* A restart, where nobody says what is wanted but the rows. */
static void reopen(struct actrig *r)
{
    actrig_close(r);
    actrig_open(r);
}

Test(act_work, a_stop_that_is_taken_is_written_down)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 1);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_freeze(r.cards[0], true); /* it cannot end yet */
    while (!view_of(&r, "x").stale)
        actrig_step(&r, 10);
    atomic_store(&full, true);
    cr_expect_lt(actuator_unwant(r.a, "x", 5, &err), 0);
    cr_expect_lt(actuator_unwant(r.a, "x", 5, &err), 0, "it is not, still");
    atomic_store(&full, false);
    cr_expect_eq(actuator_unwant(r.a, "x", 5, &err), 0, "%s", err.text);
    reopen(&r);
    cr_expect(view_of(&r, "x").stopping);
    cardserver_freeze(r.cards[0], false);
    cr_expect(actrig_reach(&r, "x", ACT_GONE));
    actrig_fini(&r);
}

Test(act_work, a_stop_without_a_row_is_taken)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 1);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert_eq(intents_delete(r.a->intents, "x", &err), 0);
    cr_expect_eq(actuator_unwant(r.a, "x", 5, &err), 0, "%s", err.text);
    cr_expect(actrig_reach(&r, "x", ACT_GONE));
    actrig_fini(&r);
}

/* It is gone, and forgotten before the worker that ended it writes that. */
Test(act_work, a_pod_that_was_forgotten_stays_so)
{
    struct actrig r;
    struct error err = {0};
    struct act_pod_status v;
    actrig_init(&r, 1);
    actrig_open(&r);
    const struct act_pod held = {.name = "x", .place = "card-0", .held = true};
    cr_assert_eq(actrig_want_as(&r, held), 0);
    cr_assert(has_reason(&r, "x", "Held"));
    struct pod_entry *e = pod_entry_by_uid(r.a, "x");
    act_lock(r.a);
    while (e->busy) {
        act_unlock(r.a);
        (void)poll(NULL, 0, 1);
        act_lock(r.a);
    }
    e->busy = true; /* we are that worker */
    e->intent->stop = true;
    e->intent->state = ACT_GONE;
    act_unlock(r.a);
    cr_assert_eq(actuator_forget(r.a, "x", &err), 0, "%s", err.text);
    cr_expect_eq(pod_entry_save(r.a, e, &err), 0, "%s", err.text);
    act_lock(r.a);
    pod_entry_release(e);
    act_unlock(r.a);
    reopen(&r);
    cr_expect_eq(actuator_find(r.a, "lab", "x", &v), -ENOENT);
    actrig_fini(&r);
}

Test(act_work, an_architecture_that_is_corrected_counts_at_once)
{
    struct actrig r;
    actrig_init(&r, 1);
    (void)snprintf(r.places[0].arch, sizeof r.places[0].arch, "amd64");
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_FAILED));
    cr_assert_str_eq(view_of(&r, "x").reason, "ImageArch");
    actrig_pass(&r, 100); /* its worker waits for more */
    (void)snprintf(r.places[0].arch, sizeof r.places[0].arch, "arm64");
    actrig_set(&r, 1);
    cr_assert_eq(actrig_want(&r, "y", "card-0"), 0);
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    actrig_fini(&r);
}

Test(act_work, others_objects_are_never_touched)
{
    struct actrig r;
    actrig_init(&r, 1);
    r.config.orphan_grace_ms = 100;
    r.config.node = "other";
    actrig_stray(&r, 0, "theirs");
    r.config.node = "h";
    actrig_stray(&r, 0, "nobodys");
    actrig_open(&r);
    cr_assert(actrig_live(&r, 0, "nobodys", 0));
    actrig_pass(&r, 30000);
    cr_assert_eq(cardserver_live(r.cards[0], "theirs"), 1);
    actrig_fini(&r);
}

Test(act_work, one_card_that_hangs_holds_no_other_up)
{
    struct actrig r;
    char name[16];
    actrig_init(&r, 2);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_freeze(r.cards[0], true);
    cr_assert_eq(actuator_unwant(r.a, "x", 1, NULL), 0);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "y%d", i);
        cr_assert_eq(actrig_want(&r, name, "card-1"), 0);
        cr_assert(actrig_reach(&r, name, ACT_RUNNING));
    }
    cr_assert_neq(view_of(&r, "x").state, ACT_GONE);
    cardserver_freeze(r.cards[0], false);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    actrig_fini(&r);
}

static void told_where_its_host_is(bool plaintext_tcp)
{
    static const struct cri_pair peer = {"BIGA_PEER_ADDRESS", ""};
    struct actrig r;
    char value[64];
    actrig_init(&r, 1);
    if (plaintext_tcp)
        actrig_tcp(&r, 0);
    actrig_open(&r);
    const struct act_pod pod = {
        .name = "x", .place = "card-0", .env = {&peer, 1}};
    cr_assert_eq(actrig_want_as(&r, pod), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_env(r.cards[0], "BIGA_PEER_ADDRESS", value, sizeof value);
    cr_assert_str_eq(value, plaintext_tcp ? "127.0.0.1" : "");
    actrig_fini(&r);
}

Test(act_work, a_pod_is_told_where_its_host_is)
{
    told_where_its_host_is(true);
    told_where_its_host_is(false);
}

/* CreateContainer is the first call of a connection. */
Test(act_work, a_first_call_knows_where_it_comes_from)
{
    static const struct cri_pair peer = {"BIGA_PEER_ADDRESS", ""};
    struct actrig r;
    char value[64];
    actrig_init(&r, 1);
    actrig_tcp(&r, 0);
    actrig_open(&r);
    const struct act_pod pod = {
        .name = "x", .place = "card-0", .env = {&peer, 1}};
    cardserver_hold(r.cards[0], "RunPodSandbox", true);
    cr_assert_eq(actrig_want_as(&r, pod), 0);
    while (cardserver_calls(r.cards[0], "RunPodSandbox") == 0)
        actrig_step(&r, 10);
    r.places[0].files_ns = 1; /* new keys, while its sandbox is made */
    actrig_set(&r, 1);
    cardserver_hold(r.cards[0], "RunPodSandbox", false);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_env(r.cards[0], "BIGA_PEER_ADDRESS", value, sizeof value);
    cr_assert_str_eq(value, "127.0.0.1");
    actrig_fini(&r);
}
