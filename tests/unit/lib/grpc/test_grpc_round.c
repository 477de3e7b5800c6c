/* Calls to several servers on one thread: each ends alone, and as it would
 * with a thread of its own. */
#include "lib/grpc/grpc_round.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "advertiser/act/card/card.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/cardkeys.h"
#include "tests/lib/http/h2server.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

#define METHOD "/runtime.v1.RuntimeService/Version"

enum {
    SIDES = 4,
    DEADLINE_MS = 120000, /* is not reached but in virtual time */
    SOON_MS = 200,        /* is */
    TURN_MS = 1000,
    REPLY_MAX = 4 << 20,
};

struct side {
    struct h2_server *server;
    struct act_place place;
    struct grpc *grpc;
    struct str reply;
    bool under_way;
    atomic_bool held;  /* its answer */
    struct side *late; /* answered when this one has ended, and not in time */
    int code;
    struct grpc_end end;
    struct error err;
};

struct rig {
    char *dir;
    struct act_place keys;
    struct grpc_round *round;
    struct side sides[SIDES];
};

static int answer(void *ctx, const char *method, const void *request,
                  size_t size, struct str *ret_reply)
{
    struct side *s = ctx;
    (void)method;
    (void)request;
    (void)size;
    while (atomic_load(&s->held))
        (void)poll(NULL, 0, 1);
    str_add(ret_reply, "hello");
    return 0;
}

static void answer_late(struct side *s)
{
    unsigned n = h2_server_answers(s->server);
    virtual_take(DEADLINE_MS + 1);
    atomic_store(&s->held, false);
    while (h2_server_answers(s->server) == n)
        (void)poll(NULL, 0, 1);
}

static void done(void *ctx, int code, const struct grpc_end *end,
                 const struct error *err)
{
    struct side *s = ctx;
    s->under_way = false;
    s->code = code;
    s->end = *end;
    s->err = *err;
    if (s->late)
        answer_late(s->late);
}

static void serve(struct rig *r, struct side *s, int holder)
{
    const struct h2_config config = {.cert = r->keys.cert,
                                     .key = r->keys.key,
                                     .ca = r->keys.ca,
                                     .holder = holder};
    s->server = h2_server_start(&config);
    h2_server_reply(s->server, NULL, "hello", 5);
}

/* By a call as one thread makes it. */
static void connect_it(struct side *s)
{
    cr_assert_eq(grpc_call(s->grpc, METHOD, "abc", 3, DEADLINE_MS, &s->reply,
                           &s->end, &s->err),
                 0, "%s", s->err.text);
}

static void open_side(struct rig *r, struct side *s)
{
    s->place = r->keys;
    s->reply = STR_INIT(REPLY_MAX);
    serve(r, s, 0);
    (void)snprintf(s->place.endpoint, sizeof s->place.endpoint,
                   "tcp://127.0.0.1:%u", h2_server_port(s->server));
    const struct grpc_config config = card_grpc(&s->place);
    cr_assert_eq(grpc_create(&config, &s->grpc, &s->err), 0, "%s", s->err.text);
    connect_it(s);
}

static void rig_open(struct rig *r)
{
    *r = (struct rig){.dir = tmpdir_create(), .round = grpc_round_create()};
    cardkeys_write(r->dir, &r->keys);
    for (size_t i = 0; i < SIDES; i++)
        open_side(r, &r->sides[i]);
}

static void rig_close(struct rig *r)
{
    cr_expect_eq(grpc_round_count(r->round), 0);
    grpc_round_destroy(r->round);
    for (size_t i = 0; i < SIDES; i++) {
        grpc_destroy(r->sides[i].grpc);
        h2_server_stop(r->sides[i].server);
        str_fini(&r->sides[i].reply);
    }
    tmpdir_remove(r->dir);
}

static int add(struct rig *r, struct side *s, unsigned deadline_ms)
{
    const struct grpc_round_call call = {.method = METHOD,
                                         .request = "abc",
                                         .size = 3,
                                         .deadline_ms = deadline_ms,
                                         .reply = &s->reply,
                                         .done = done,
                                         .ctx = s};
    s->err = (struct error){0};
    int e = grpc_round_add(r->round, s->grpc, &call);
    s->under_way = e == 0;
    return e;
}

static void turn_until(struct rig *r, const struct side *s)
{
    while (s->under_way)
        grpc_round_turn(r->round, TURN_MS);
}

static void check_good(const struct side *s)
{
    cr_expect_eq(s->code, 0, "%s", s->err.text);
    cr_expect_eq(s->end.code, GRPC_OK);
    cr_expect_str_eq(str_text(&s->reply), "hello");
}

Test(grpc_round, calls_share_a_thread_and_keep_their_connections)
{
    struct rig r;
    rig_open(&r);
    for (int k = 0; k < 20; k++) {
        for (size_t i = 0; i < SIDES; i++)
            cr_assert_eq(add(&r, &r.sides[i], DEADLINE_MS), 0);
        cr_expect_eq(grpc_round_count(r.round), SIDES);
        for (size_t i = 0; i < SIDES; i++)
            turn_until(&r, &r.sides[i]);
        for (size_t i = 0; i < SIDES; i++)
            check_good(&r.sides[i]);
        connect_it(&r.sides[k % SIDES]); /* in between, as before */
    }
    for (size_t i = 0; i < SIDES; i++) {
        char sent[8];
        cr_expect_eq(h2_server_connections(r.sides[i].server), 1);
        cr_expect_eq(h2_server_request(r.sides[i].server, sent, 8), 3);
        cr_expect_arr_eq(sent, "abc", 3);
    }
    rig_close(&r);
}

Test(grpc_round, who_hangs_keeps_none_waiting)
{
    struct rig r;
    rig_open(&r);
    h2_server_fault(r.sides[0].server, H2_SILENT);
    cr_assert_eq(add(&r, &r.sides[0], DEADLINE_MS), 0);
    for (int k = 0; k < 5; k++)
        for (size_t i = 1; i < SIDES; i++) {
            cr_assert_eq(add(&r, &r.sides[i], DEADLINE_MS), 0);
            turn_until(&r, &r.sides[i]);
            check_good(&r.sides[i]);
        }
    cr_expect(r.sides[0].under_way);
    grpc_cancel(r.sides[0].grpc);
    turn_until(&r, &r.sides[0]);
    cr_expect_eq(r.sides[0].code, -ECANCELED, "%s", r.sides[0].err.text);
    rig_close(&r);
}

Test(grpc_round, a_deadline_ends_a_call)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    h2_server_fault(s->server, H2_SILENT);
    cr_assert_eq(add(&r, s, SOON_MS), 0);
    turn_until(&r, s);
    cr_expect_eq(s->code, -ETIMEDOUT, "%s", s->err.text);
    cr_expect(strstr(s->err.text, s->place.endpoint), "%s", s->err.text);
    cr_expect(strstr(s->err.text, "Version"), "%s", s->err.text);
    cr_expect_not(s->end.unsent);
    cr_expect_eq(add(&r, s, SOON_MS), -ENOTCONN, "it was dropped");
    rig_close(&r);
}

Test(grpc_round, a_deadline_ends_a_call_that_others_go_beside)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    virtual_begin();
    h2_server_fault(s->server, H2_SILENT);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    unsigned calls = h2_server_calls(s->server);
    while (h2_server_calls(s->server) == calls)
        grpc_round_turn(r.round, 1);
    virtual_take(DEADLINE_MS + 1);
    cr_assert_eq(add(&r, &r.sides[1], DEADLINE_MS), 0);
    turn_until(&r, s);
    cr_expect_eq(s->code, -ETIMEDOUT, "%s", s->err.text);
    turn_until(&r, &r.sides[1]);
    check_good(&r.sides[1]);
    virtual_end();
    rig_close(&r);
}

static void *interrupt(void *arg)
{
    struct side *s = arg;
    while (h2_server_calls(s->server) == 1)
        (void)sched_yield();
    grpc_interrupt(s->grpc);
    return NULL;
}

Test(grpc_round, another_thread_ends_a_call)
{
    struct rig r;
    struct side *s = &r.sides[0];
    pthread_t thread;
    rig_open(&r);
    h2_server_fault(s->server, H2_SILENT);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    cr_assert_eq(pthread_create(&thread, NULL, interrupt, s), 0);
    turn_until(&r, s);
    (void)pthread_join(thread, NULL);
    cr_expect_eq(s->code, -ECANCELED, "%s", s->err.text);
    h2_server_fault(s->server, H2_WELL);
    connect_it(s);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    turn_until(&r, s);
    check_good(s);
    rig_close(&r);
}

Test(grpc_round, a_reply_has_the_callers_cap)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    str_fini(&s->reply);
    s->reply = STR_INIT(4);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    turn_until(&r, s);
    cr_expect_eq(s->code, -EMSGSIZE, "%s", s->err.text);
    rig_close(&r);
}

Test(grpc_round, a_status_is_told_and_the_connection_stays)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    h2_server_status(s->server, NULL, GRPC_UNIMPLEMENTED, "not here");
    for (int k = 0; k < 2; k++) {
        cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
        turn_until(&r, s);
        cr_expect_eq(s->code, -EREMOTEIO, "%s", s->err.text);
        cr_expect_eq(s->end.code, GRPC_UNIMPLEMENTED);
        cr_expect_str_eq(s->end.message, "not here");
    }
    rig_close(&r);
}

/* Its server was away and is there again: no connection is made here. */
Test(grpc_round, a_connection_that_has_ended_is_left_to_the_caller)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    serve(&r, s, h2_server_leave(s->server));
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    turn_until(&r, s);
    cr_expect_eq(s->code, -ENOTCONN, "%d %s", s->code, s->err.text);
    cr_expect(s->end.unsent);
    cr_expect_eq(h2_server_connections(s->server), 0);
    cr_expect_eq(add(&r, s, DEADLINE_MS), -ENOTCONN);
    connect_it(s);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    turn_until(&r, s);
    check_good(s);
    rig_close(&r);
}

Test(grpc_round, new_files_are_for_a_call_elsewhere)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    cardkeys_write(r.dir, &r.keys);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    turn_until(&r, s);
    check_good(s);
    cr_expect_eq(grpc_call(s->grpc, METHOD, "abc", 3, DEADLINE_MS, &s->reply,
                           &s->end, &s->err),
                 -EKEYREJECTED, "%s", s->err.text);
    rig_close(&r);
}

static bool ends_well(enum h2_fault fault)
{
    return fault == H2_GARBAGE || fault == H2_STATUS_ONLY ||
           fault == H2_RESET_AFTER || fault == H2_GOAWAY_AFTER ||
           fault == H2_GOAWAY_WITH;
}

/* Until its deadline, with some versions of libcurl. */
static bool hangs(enum h2_fault fault)
{
    return fault == H2_FRAME_LONG || fault == H2_BIG_HEADERS ||
           fault == H2_DRIP || fault == H2_SILENT;
}

static void turn_until_called(struct rig *r, const struct side *s, unsigned n)
{
    while (h2_server_calls(s->server) < n)
        grpc_round_turn(r->round, 1);
}

/* The one that was added last is carried on first. */
static void add_both(struct rig *r, struct side *good, struct side *ill)
{
    h2_server_handle(good->server, answer, good);
    cr_assert_eq(add(r, good, DEADLINE_MS), 0);
    turn_until_called(r, good, 2);
    cr_assert_eq(add(r, ill, DEADLINE_MS), 0);
}

/* Each ends, as with grpc_call(), and another is not kept waiting, and is not
 * late for the time that it took. */
Test(grpc_round, a_hostile_server_costs_its_call_alone, .timeout = 180)
{
    for (enum h2_fault fault = H2_EMPTY; fault < H2_FAULTS; fault++) {
        struct rig r;
        struct side *ill = &r.sides[0], *good = &r.sides[1];
        if (ends_well(fault))
            continue;
        rig_open(&r);
        virtual_begin();
        h2_server_fault(ill->server, fault);
        good->held = !hangs(fault);
        ill->late = good->held ? good : NULL;
        add_both(&r, good, ill);
        turn_until(&r, good->held ? ill : good);
        turn_until_called(&r, ill, 2);
        if (hangs(fault))
            virtual_take(DEADLINE_MS + 1);
        turn_until(&r, good);
        check_good(good);
        turn_until(&r, ill);
        virtual_end();
        fprintf(stderr, "%2d: %4d %s\n", (int)fault, ill->code, ill->err.text);
        cr_expect(ill->code < 0 && ill->code != -ENOTCONN, "%d: %d", (int)fault,
                  ill->code);
        cr_expect_eq(h2_server_calls(ill->server), 2, "%d", (int)fault);
        rig_close(&r);
    }
}

Test(grpc_round, a_long_reply_is_taken)
{
    struct rig r;
    struct side *s = &r.sides[0];
    cleanup_free char *zeros = xcalloc(1, REPLY_MAX);
    rig_open(&r);
    h2_server_reply(s->server, NULL, zeros, REPLY_MAX);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    turn_until(&r, s);
    cr_expect_eq(s->code, 0, "%s", s->err.text);
    cr_expect_eq(s->reply.size, REPLY_MAX);
    rig_close(&r);
}

/* The thread is not that of its call alone. */
Test(grpc_round, a_flood_after_much_data_ends_sooner_than_elsewhere)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    h2_server_fault(s->server, H2_STUFFED);
    connect_it(s);
    cr_assert_eq(add(&r, s, DEADLINE_MS), 0);
    turn_until(&r, s);
    cr_expect_eq(s->code, -EPROTO, "%s", s->err.text);
    cr_expect(strstr(s->err.text, "without end"), "%s", s->err.text);
    rig_close(&r);
}

Test(grpc_round, what_it_does_not_do_is_the_callers)
{
    struct rig r;
    struct side *s = &r.sides[0];
    rig_open(&r);
    grpc_reconnect(s->grpc);
    cr_expect_eq(add(&r, s, DEADLINE_MS), -ENOTCONN);
    connect_it(s);
    struct grpc_round_call call = {.method = METHOD,
                                   .request = "",
                                   .size = GRPC_ROUND_REQUEST + 1,
                                   .reply = &s->reply,
                                   .done = done,
                                   .ctx = s};
    cr_expect_eq(grpc_round_add(r.round, s->grpc, &call), -EMSGSIZE);
    call.size = 0;
    call.method = "none";
    cr_expect_eq(grpc_round_add(r.round, s->grpc, &call), 0);
    s->under_way = true;
    turn_until(&r, s);
    cr_expect_eq(s->code, -EINVAL, "%s", s->err.text);
    rig_close(&r);
}

static void *wake_it(void *arg)
{
    grpc_round_wake(arg);
    return NULL;
}

Test(grpc_round, a_wait_can_be_ended)
{
    struct rig r;
    pthread_t thread;
    rig_open(&r);
    cr_assert_eq(pthread_create(&thread, NULL, wake_it, r.round), 0);
    grpc_round_turn(r.round, 3600000); /* who is not woken hangs */
    (void)pthread_join(thread, NULL);
    rig_close(&r);
}
