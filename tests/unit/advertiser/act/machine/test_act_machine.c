/* A pod on a card that loses calls, refuses and reboots, driven by a daemon
 * that dies between any two steps: it always ends as it was wanted. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/machine/machine.h"
#include "lib/base/mem.h"
#include "tests/lib/card/simcard.h"

static struct podspec_container inits[] = {
    {.name = (char *)"init", .image = (char *)"i"},
};
static struct podspec_container mains[] = {
    {.name = (char *)"a", .image = (char *)"i"},
    {.name = (char *)"b", .image = (char *)"i"},
};

static struct podspec spec_of(enum podspec_restart restart)
{
    return (struct podspec){
        .namespace = (char *)"ns",
        .name = (char *)"pod",
        .restart = restart,
        .grace_s = 5,
        .init = inits,
        .n_init = 1,
        .containers = mains,
        .n_containers = 2,
    };
}

struct run {
    struct simcard card;
    struct podspec spec;
    struct intent *intent;
    struct intent saved;
    struct machine m;
    int64_t now;
    unsigned crashes; /* per thousand, at each of three points of a step */
    bool inits_end;
    enum act_state last; /* seen, in this life of the daemon */
};

static void begin(struct run *r, enum podspec_restart restart, uint64_t seed)
{
    struct act_pod pod = {.namespace = "ns",
                          .name = "pod",
                          .uid = "u-1",
                          .place = "card",
                          .sriov_vfs = -1};
    *r = (struct run){.spec = spec_of(restart), .now = 1000, .inits_end = true};
    r->card.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    r->intent = intent_create(&pod);
    r->saved = *r->intent;
    machine_init(&r->m, r->intent, &r->spec, "");
}

static void end(struct run *r)
{
    machine_fini(&r->m);
    intent_destroy(r->intent);
}

static bool dies(struct run *r)
{
    if (!r->crashes || simcard_random(&r->card, 1000) >= r->crashes)
        return false;
    machine_fini(&r->m);
    *r->intent = r->saved;
    machine_init(&r->m, r->intent, &r->spec, "");
    return true;
}

/* Within a step the state may go on by several moves, each allowed. */
static bool reaches(enum act_state from, enum act_state to, int depth)
{
    if (from == to)
        return true;
    for (int s = ACT_WANTED; depth > 0 && s <= ACT_FAILED; s++)
        if (machine_may(from, (enum act_state)s) &&
            reaches((enum act_state)s, to, depth - 1))
            return true;
    return false;
}

static void list(struct run *r)
{
    struct machine_found found;
    simcard_list(&r->card, &found);
    machine_see(&r->m, &found, r->now);
}

static void init_ends(struct run *r)
{
    for (size_t i = 0; r->inits_end && i < r->card.n_containers; i++) {
        struct simcard_container *c = &r->card.containers[i];
        if (strcmp(c->name, "init") == 0 && c->state == CRI_RUNNING) {
            c->state = CRI_EXITED;
            c->exit_code = 0;
        }
    }
}

static void save(struct run *r)
{
    r->saved = *r->intent;
    if (r->saved.sandbox[0])
        simcard_noted(&r->card, "", r->saved.attempt);
    for (size_t i = 0; i < r->saved.n_containers; i++)
        if (r->saved.containers[i].id[0])
            simcard_noted(&r->card, r->saved.containers[i].name,
                          r->saved.containers[i].attempt);
}

/* One step; its kind. */
static enum machine_kind turn(struct run *r)
{
    struct machine_step step;
    enum act_state was = r->intent->state;
    machine_next(&r->m, r->now, &step);
    cr_assert(reaches(was, r->intent->state, 3), "%s to %s",
              act_state_name(was), act_state_name(r->intent->state));
    if (dies(r))
        return step.kind;
    if (step.save)
        save(r);
    if (dies(r))
        return step.kind;
    r->now += 20;
    if (step.kind == MACHINE_WAIT) {
        int64_t due = step.due_ms < r->now + 2000 ? step.due_ms : r->now + 2000;
        r->now = due > r->now ? due : r->now;
        init_ends(r);
        list(r);
    } else if (step.kind == MACHINE_LIST) {
        list(r);
    } else {
        struct machine_result result = simcard_do(&r->card, &r->m, &step);
        if (dies(r))
            return step.kind;
        machine_done(&r->m, &step, &result, r->now);
    }
    return step.kind;
}

static void turns(struct run *r, unsigned n)
{
    while (n-- > 0)
        (void)turn(r);
}

static bool is_up(const struct run *r)
{
    return machine_is_ready(&r->m) && simcard_n_ready(&r->card) == 1 &&
           r->card.n_sandboxes == 1 && r->card.n_containers == 3;
}

/* Without faults from now on. */
static unsigned settle(struct run *r, bool (*done)(const struct run *r))
{
    unsigned n = 0;
    r->card.faults = (struct simcard_faults){0};
    r->crashes = 0;
    simcard_settle(&r->card);
    while (!done(r) && n++ < 3000)
        (void)turn(r);
    return n;
}

static bool is_gone(const struct run *r)
{
    return r->intent->state == ACT_GONE;
}

static bool is_failed(const struct run *r)
{
    return r->intent->state == ACT_FAILED && simcard_n_ready(&r->card) == 0;
}

static void stop(struct run *r)
{
    r->intent->stop = r->saved.stop = true;
}

Test(act_machine, up_and_down)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    unsigned n = settle(&r, is_up);
    cr_assert_lt(n, 25, "%u turns", n);
    cr_assert_eq(r.intent->state, ACT_RUNNING);
    cr_assert_eq(r.intent->attempt, 1);
    cr_assert_str_eq(r.intent->reason, "");
    stop(&r);
    n = settle(&r, is_gone);
    cr_assert_lt(n, 25, "%u turns", n);
    cr_assert_eq(r.card.n_sandboxes + r.card.n_containers, 0);
    cr_assert_eq(r.saved.state, ACT_GONE, "it is saved");
    end(&r);
}

Test(act_machine, no_call_is_made_twice_when_all_is_well)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    (void)settle(&r, is_up);
    /* prepare, 3 images, sandbox, 3 times create and start, 1 look */
    cr_assert_eq(r.card.n_calls, 1 + 3 + 1 + 6 + 1);
    turns(&r, 50);
    cr_assert_eq(r.card.n_calls, 12, "it is left alone");
    end(&r);
}

static void nemesis(struct run *r)
{
    switch (simcard_random(&r->card, 60)) {
    case 0:
        simcard_reboot(&r->card, false);
        break;
    case 1:
        simcard_reboot(&r->card, true);
        break;
    case 2:
    case 3:
        (void)simcard_exit_one(&r->card, (int32_t)simcard_random(&r->card, 2));
        break;
    case 4:
        simcard_settle(&r->card);
        break;
    default:
        break;
    }
}

static void storm(uint64_t seed, const struct simcard_faults *faults)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ALWAYS, seed);
    r.card.faults = *faults;
    r.crashes = 30;
    unsigned n = (unsigned)simcard_random(&r.card, 300);
    for (unsigned i = 0; i < n; i++) {
        (void)turn(&r);
        nemesis(&r);
    }
    if (seed % 2) {
        r.card.had_late |= r.card.faults.late > 0;
        n = settle(&r, r.intent->state == ACT_FAILED ? is_failed : is_up);
        cr_assert_leq(n, 3000, "seed %llu: %s %s: %s", (unsigned long long)seed,
                      act_state_name(r.intent->state), r.intent->reason,
                      r.intent->message);
        r.card.faults = *faults;
        r.crashes = 30;
    }
    stop(&r);
    turns(&r, (unsigned)simcard_random(&r.card, 30));
    n = settle(&r, is_gone);
    cr_assert_leq(n, 3000, "seed %llu: not gone", (unsigned long long)seed);
    if (!faults->late)
        cr_assert_eq(r.card.n_sandboxes + r.card.n_containers, 0,
                     "seed %llu leaves something", (unsigned long long)seed);
    end(&r);
}

Test(act_machine, storm_of_faults, .timeout = 180)
{
    const struct simcard_faults faults = {.lose_request = 50,
                                          .lose_reply = 50,
                                          .refuse = 30,
                                          .full = 10,
                                          .cut = 300};
    for (uint64_t seed = 1; seed <= 3000; seed++)
        storm(seed, &faults);
}

Test(act_machine, storm_with_late_calls, .timeout = 180)
{
    const struct simcard_faults faults = {
        .lose_request = 30, .lose_reply = 30, .late = 60, .refuse = 20};
    for (uint64_t seed = 1; seed <= 3000; seed++)
        storm(seed, &faults);
}

Test(act_machine, dies_at_each_point)
{
    /* one crash at the n-th of all points, for every n */
    for (unsigned at = 1; at < 120; at++) {
        struct run r;
        unsigned n = 0;
        begin(&r, PODSPEC_RESTART_ALWAYS, at);
        while (!is_up(&r) && n++ < 200) {
            r.crashes = n == at / 3 + 1 ? 400 : 0;
            (void)turn(&r);
        }
        cr_assert(is_up(&r), "crash %u: %s", at, r.intent->message);
        cr_assert_eq(r.intent->attempt, 1, "crash %u", at);
        stop(&r);
        n = 0;
        while (!is_gone(&r) && n++ < 200) {
            r.crashes = n == at / 3 + 1 ? 400 : 0;
            (void)turn(&r);
        }
        cr_assert(is_gone(&r), "crash %u", at);
        cr_assert_eq(r.card.n_sandboxes + r.card.n_containers, 0);
        end(&r);
    }
}

Test(act_machine, reboot_of_the_card_is_another_attempt)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    (void)settle(&r, is_up);
    simcard_reboot(&r.card, false);
    list(&r);
    cr_assert_not(machine_is_ready(&r.m));
    (void)settle(&r, is_up);
    cr_assert_eq(r.intent->attempt, 2);
    simcard_reboot(&r.card, true);
    list(&r);
    (void)settle(&r, is_up);
    cr_assert_eq(r.intent->attempt, 3);
    end(&r);
}

/* Turns until a step of that kind is done, whose reply is lost. */
static void lose_reply(struct run *r, enum machine_kind kind)
{
    static const struct machine_result lost = {.e = -ETIMEDOUT, .code = -1};
    struct machine_step step = {.kind = MACHINE_WAIT};
    for (unsigned n = 0; n < 100 && step.kind != kind; n++) {
        machine_next(&r->m, r->now, &step);
        if (step.kind == MACHINE_LIST) {
            list(r);
            continue;
        }
        struct machine_result got = simcard_do(&r->card, &r->m, &step);
        machine_done(&r->m, &step, step.kind == kind ? &lost : &got, r->now);
    }
}

Test(act_machine, what_was_found_is_prepared_for_no_other)
{
    struct run r;
    bool prepared = false;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    lose_reply(&r, MACHINE_RUN_SANDBOX);
    (void)settle(&r, is_up);
    cr_assert_eq(r.intent->attempt, 1, "it is adopted");
    simcard_reboot(&r.card, false);
    list(&r);
    while (r.intent->attempt == 1)
        prepared |= turn(&r) == MACHINE_PREPARE;
    cr_assert(prepared);
    end(&r);
}

Test(act_machine, never_is_not_run_twice)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_NEVER, 1);
    (void)settle(&r, is_up);
    simcard_reboot(&r.card, false);
    list(&r);
    (void)settle(&r, is_failed);
    cr_assert_str_eq(r.intent->reason, "SandboxLost");
    end(&r);
}

/* Calls that are broken off leave containers that cannot be started, or that
 * ended before they ran: neither is the end of the pod. */
Test(act_machine, never_is_not_failed_by_calls_that_were_cut)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct run r;
        begin(&r, PODSPEC_RESTART_NEVER, seed);
        r.card.faults = (struct simcard_faults){.lose_reply = 400, .cut = 1000};
        turns(&r, 60);
        (void)settle(&r, is_up);
        cr_assert_eq(r.intent->state, ACT_RUNNING, "seed %u: %s: %s",
                     (unsigned)seed, r.intent->reason, r.intent->message);
        end(&r);
    }
}

/* What cannot be removed, as its making or its start was cut, is not tried
 * without a pause. */
static void expect_pauses(enum cri_container_state at)
{
    struct run r;
    struct simcard_container *c = &r.card.containers[0];
    unsigned n_removes = 0;
    begin(&r, PODSPEC_RESTART_NEVER, 1);
    for (unsigned n = 0; n < 100 && r.card.n_sandboxes == 0; n++)
        (void)turn(&r);
    for (unsigned n = 0; n < 100 && !(r.card.n_containers && c->cut); n++) {
        bool cut = at == CRI_CREATED || r.card.n_containers > 0;
        r.card.faults = (struct simcard_faults){
            .lose_reply = cut ? 1000 : 0, .cut = 1000, .keeps = true};
        (void)turn(&r);
    }
    r.card.faults.lose_reply = 0;
    for (int64_t until = r.now + 120000; r.now < until;)
        n_removes += turn(&r) == MACHINE_REMOVE;
    cr_expect(n_removes >= 3 && n_removes <= 20, "%u", n_removes);
    cr_expect_leq(settle(&r, is_up), 3000);
    end(&r);
}

Test(act_machine, what_stays_is_removed_now_and_then)
{
    expect_pauses(CRI_CREATED);
    expect_pauses(CRI_RUNNING);
}

Test(act_machine, sandboxes_of_another_boot_are_void)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    r.m.boot = "boot-1";
    (void)settle(&r, is_up);
    cr_assert_str_eq(r.intent->boot, "boot-1");
    machine_fini(&r.m);
    machine_init(&r.m, r.intent, &r.spec, "boot-2");
    turns(&r, 4);
    (void)settle(&r, is_up);
    cr_assert_eq(r.intent->attempt, 2);
    end(&r);
}

Test(act_machine, crashes_back_off)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ON_FAILURE, 1);
    (void)settle(&r, is_up);
    for (unsigned i = 1; i <= 3; i++) {
        int64_t from = r.now;
        cr_assert(simcard_exit_one(&r.card, 7));
        list(&r);
        turns(&r, 2);
        cr_assert_str_eq(r.intent->reason, "CrashLoop");
        cr_assert(r.intent->state == ACT_RUNNING && !machine_is_ready(&r.m));
        (void)settle(&r, is_up);
        cr_assert_geq(r.now - from, MACHINE_CRASH_MIN_MS);
        cr_assert_str_eq(r.intent->reason, "");
    }
    cr_assert_eq(r.intent->attempt, 1);
    end(&r);
}

Test(act_machine, ends_when_all_have_ended)
{
    for (int32_t code = 0; code < 2; code++) {
        struct run r;
        begin(&r, PODSPEC_RESTART_NEVER, 1);
        (void)settle(&r, is_up);
        cr_assert(simcard_exit_one(&r.card, 0));
        list(&r);
        turns(&r, 5);
        cr_assert_eq(r.intent->state, ACT_RUNNING);
        cr_assert(simcard_exit_one(&r.card, code));
        list(&r);
        (void)settle(&r, is_failed);
        cr_assert_str_eq(r.intent->reason, code ? "Error" : "Completed");
        stop(&r);
        (void)settle(&r, is_gone);
        cr_assert_eq(r.card.n_sandboxes + r.card.n_containers, 0);
        end(&r);
    }
}

Test(act_machine, image_missing)
{
    for (int pull = 0; pull < 3; pull++) {
        struct run r;
        begin(&r, PODSPEC_RESTART_ALWAYS, 1);
        inits[0].pull = mains[0].pull = mains[1].pull =
            pull == 2 ? PODSPEC_PULL_NEVER : PODSPEC_PULL_IF_NOT_PRESENT;
        machine_fini(&r.m);
        machine_init(&r.m, r.intent, &r.spec, "");
        r.card.faults.no_image = true;
        r.card.faults.no_registry = pull > 0;
        for (unsigned n = 0; n < 400 && !machine_is_over(&r.m); n++)
            (void)turn(&r);
        turns(&r, 1);
        if (pull == 0) {
            cr_assert(is_up(&r));
        } else {
            cr_assert_eq(r.intent->state, ACT_FAILED);
            cr_assert_str_eq(r.intent->reason, "ImageMissing");
            cr_assert_not_null(strstr(r.intent->message, "import"));
            cr_assert_eq(r.card.n_sandboxes, 0);
            cr_assert_eq(r.saved.state, ACT_FAILED);
        }
        end(&r);
    }
    inits[0].pull = mains[0].pull = mains[1].pull = PODSPEC_PULL_IF_NOT_PRESENT;
}

/* A registry has images of other architectures, too. */
Test(act_machine, images_that_were_pulled_are_looked_at)
{
    for (int always = 0; always < 2; always++) {
        struct run r;
        begin(&r, PODSPEC_RESTART_ALWAYS, 1);
        inits[0].pull = always ? PODSPEC_PULL_ALWAYS
                               : PODSPEC_PULL_IF_NOT_PRESENT;
        mains[0].pull = mains[1].pull = PODSPEC_PULL_ALWAYS;
        machine_fini(&r.m);
        machine_init(&r.m, r.intent, &r.spec, "");
        r.card.faults.no_image = r.card.faults.other_arch = true;
        for (unsigned n = 0; n < 50 && !machine_is_over(&r.m); n++)
            (void)turn(&r);
        cr_expect_eq(r.intent->state, ACT_FAILED);
        cr_expect_str_eq(r.intent->reason, "ImageArch");
        cr_expect_eq(r.card.n_sandboxes, 0, "something was begun");
        end(&r);
    }
    inits[0].pull = mains[0].pull = mains[1].pull = PODSPEC_PULL_IF_NOT_PRESENT;
}

/* Whoever wrote a wrong one for the card ends nothing that runs there. */
Test(act_machine, another_architecture_ends_no_pod_that_ran)
{
    struct run r;
    unsigned n_running = 0;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    (void)settle(&r, is_up);
    machine_fini(&r.m); /* the daemon comes back, and looks anew */
    machine_init(&r.m, r.intent, &r.spec, "");
    r.card.pulled = r.card.faults.other_arch = true;
    for (size_t i = 0; i < r.card.n_containers; i++)
        if (strcmp(r.card.containers[i].name, "a") == 0)
            r.card.containers[i].state = CRI_EXITED;
    turns(&r, 100);
    cr_expect_eq(r.intent->state, ACT_RUNNING);
    cr_expect_str_eq(r.intent->reason, "ImageArch");
    for (size_t i = 0; i < r.card.n_containers; i++)
        n_running += r.card.containers[i].state == CRI_RUNNING;
    cr_expect_eq(n_running, 1, "the other one runs on");
    (void)settle(&r, is_up);
    cr_expect(is_up(&r));
    cr_expect_str_eq(r.intent->reason, "");
    end(&r);
}

Test(act_machine, images_that_do_not_stay_are_not_pulled_in_haste)
{
    struct run r;
    unsigned n_pulls = 0;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    r.card.faults.no_image = r.card.faults.vanishes = true;
    while (r.now < 60000)
        n_pulls += turn(&r) == MACHINE_PULL;
    cr_expect_str_eq(r.intent->reason, "ImageMissing");
    cr_expect(strstr(r.intent->message, "was pulled, and is not on card"), "%s",
              r.intent->message);
    cr_expect_geq(n_pulls, 3);
    cr_expect_leq(n_pulls, 60, "%u", n_pulls);
    end(&r);
}

Test(act_machine, refusals_have_words)
{
    static const struct {
        enum machine_kind kind;
        int e, code;
        const char *text, *reason;
        bool last;
    } cases[] = {
        {MACHINE_RUN_SANDBOX, -ENOSPC, GRPC_UNKNOWN, "no space left on device",
         "DiskFull", false},
        {MACHINE_START, -EREMOTEIO, GRPC_UNKNOWN,
         "exec /bin/x: exec format error", "ImageArch", true},
        {MACHINE_PULL, -ENOENT, GRPC_NOT_FOUND,
         "no match for platform in manifest", "ImageArch", true},
        {MACHINE_CREATE, -EREMOTEIO, GRPC_INVALID_ARGUMENT, "bad mount",
         "CreateRefused", true},
        {MACHINE_CREATE, -EREMOTEIO, GRPC_UNKNOWN, "cgroup: odd",
         "CreateRefused", false},
        {MACHINE_START, -EREMOTEIO, GRPC_UNKNOWN,
         "exec: \"x\": executable file not found in $PATH", "CreateRefused",
         true},
        {MACHINE_RUN_SANDBOX, -ETIMEDOUT, -1, "no answer", "CardSilent", false},
        {MACHINE_RUN_SANDBOX, -ECONNREFUSED, -1, "refused", "CardSilent",
         false},
        {MACHINE_RUN_SANDBOX, -EKEYREJECTED, -1, "certificate", "CardRefused",
         false},
        {MACHINE_RUN_SANDBOX, -EPROTO, -1, "length", "CardProtocol", false},
        {MACHINE_RUN_SANDBOX, -EREMOTEIO, GRPC_UNKNOWN,
         "failed to get sandbox image \"pause\"", "ImageMissing", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run r;
        struct machine_step step = {.kind = cases[i].kind};
        struct machine_result result = {
            .e = cases[i].e, .code = cases[i].code, .text = cases[i].text};
        begin(&r, PODSPEC_RESTART_ALWAYS, 1);
        turns(&r, 2);
        machine_done(&r.m, &step, &result, r.now);
        cr_assert_str_eq(r.intent->reason, cases[i].reason, "%s: %s",
                         cases[i].text, r.intent->reason);
        cr_assert_eq(r.intent->state == ACT_FAILED, cases[i].last, "%s",
                     cases[i].text);
        end(&r);
    }
}

/* A folder that nobody can remove keeps no pod from ending; a card that does
 * not answer does. */
Test(act_machine, files_that_stay_are_left)
{
    static const struct {
        int e, code;
        bool permanent;
        const char *reason;
        unsigned tries; /* 0: for ever */
    } cases[] = {
        {-EIO, GRPC_UNKNOWN, false, "FilesLeft", MACHINE_TRIES},
        {-EREMOTEIO, GRPC_UNKNOWN, false, NULL, MACHINE_TRIES},
        {-ENOENT, GRPC_UNKNOWN, true, "FilesLeft", 1},
        {-ETIMEDOUT, -1, false, NULL, 0},
        {-ETIMEDOUT, GRPC_DEADLINE_EXCEEDED, false, NULL, 0},
        {-ECONNREFUSED, -1, false, NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run r;
        struct machine_step step;
        const struct machine_result result = {
            .e = cases[i].e,
            .code = cases[i].code,
            .permanent = cases[i].permanent,
            .reason = cases[i].reason,
            .text = "/d: 'x' in it: not permitted",
        };
        unsigned n = 0;
        begin(&r, PODSPEC_RESTART_ALWAYS, 1);
        (void)settle(&r, is_up);
        stop(&r);
        for (unsigned k = 0; k < 400 && !is_gone(&r); k++) {
            machine_next(&r.m, r.now, &step);
            r.now += 1000;
            if (step.kind == MACHINE_LIST)
                list(&r);
            else if (step.kind == MACHINE_CLEAN && ++n)
                machine_done(&r.m, &step, &result, r.now);
            else if (step.kind != MACHINE_WAIT) {
                struct machine_result well = simcard_do(&r.card, &r.m, &step);
                machine_done(&r.m, &step, &well, r.now);
            }
        }
        cr_assert_eq(is_gone(&r), cases[i].tries > 0, "case %zu", i);
        if (cases[i].tries > 0) {
            cr_assert_eq(n, cases[i].tries, "case %zu: %u", i, n);
            cr_assert(r.m.left);
            cr_assert_str_eq(r.intent->reason, "FilesLeft");
            cr_assert_not_null(strstr(r.intent->message, "/d: 'x' in it"));
            cr_assert_not_null(strstr(r.intent->message, "see to it there"));
        } else {
            cr_assert_gt(n, MACHINE_TRIES, "case %zu: %u", i, n);
        }
        end(&r);
    }
}

Test(act_machine, waits_for_its_pair)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    r.m.hold = MACHINE_HOLD_START;
    turns(&r, 10);
    cr_assert_eq(r.card.n_calls, 0);
    cr_assert_str_eq(r.intent->reason, "WaitsForPair");
    r.m.hold = MACHINE_GO;
    (void)settle(&r, is_up);
    r.m.hold = MACHINE_HOLD_STOP;
    stop(&r);
    turns(&r, 10);
    cr_assert(is_up(&r));
    cr_assert_str_eq(r.intent->reason, "WaitsForHostPod");
    r.m.hold = MACHINE_GO;
    (void)settle(&r, is_gone);
    end(&r);
}

Test(act_machine, adopts_what_it_has_no_note_of)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    (void)settle(&r, is_up);
    struct act_pod pod = {.namespace = "ns",
                          .name = "pod",
                          .uid = "u-1",
                          .place = "card",
                          .sriov_vfs = -1};
    machine_fini(&r.m);
    intent_destroy(r.intent);
    r.intent = intent_create(&pod);
    r.saved = *r.intent;
    machine_init(&r.m, r.intent, &r.spec, "");
    unsigned calls = r.card.n_calls;
    (void)settle(&r, is_up);
    cr_assert_eq(r.intent->state, ACT_RUNNING);
    cr_assert_leq(r.card.n_calls - calls, 1, "but for a look at the init");
    end(&r);
}

Test(act_machine, names_that_a_card_made_up_take_no_room)
{
    struct run r;
    struct machine_found found = {0};
    begin(&r, PODSPEC_RESTART_ALWAYS, 1);
    for (unsigned i = 0; i < 2 * INTENT_CONTAINERS_MAX; i++) {
        struct machine_container c = {.attempt = 1, .state = CRI_RUNNING};
        (void)snprintf(c.id, sizeof c.id, "%x", i + 1);
        (void)snprintf(c.name, sizeof c.name, "x%u", i);
        machine_found_container(&found, &c);
    }
    machine_see(&r.m, &found, r.now);
    cr_assert_eq(r.intent->n_containers, 3, "those of its spec");
    end(&r);
}

Test(act_machine, moves_are_a_table)
{
    static const char *const allowed[] = {
        [ACT_WANTED] = "preparing creating stopping failed",
        [ACT_PREPARING] = "pulling creating stopping failed",
        [ACT_PULLING] = "preparing creating stopping failed",
        [ACT_CREATING] = "preparing pulling running stopping failed",
        [ACT_RUNNING] = "preparing creating stopping failed",
        [ACT_STOPPING] = "gone",
        [ACT_GONE] = "",
        [ACT_FAILED] = "stopping",
    };
    for (int from = ACT_WANTED; from <= ACT_FAILED; from++)
        for (int to = ACT_WANTED; to <= ACT_FAILED; to++)
            cr_assert_eq(machine_may((enum act_state)from, (enum act_state)to),
                         strstr(allowed[from],
                                act_state_name((enum act_state)to)) != NULL,
                         "%s to %s", act_state_name((enum act_state)from),
                         act_state_name((enum act_state)to));
}

/* What prepares the card says, until others are out of the way. */
static void be_in_the_way(struct run *r, unsigned n)
{
    const struct machine_result in_use = {.e = -EIO,
                                          .code = GRPC_UNKNOWN,
                                          .waits = true,
                                          .reason = "VfsInUse",
                                          .text = "another pod uses it"};
    int64_t last = 0;
    while (n > 0) {
        struct machine_step step;
        machine_next(&r->m, r->now, &step);
        if (step.kind == MACHINE_LIST) {
            list(r);
        } else if (step.kind == MACHINE_WAIT) {
            cr_assert_leq(step.due_ms - r->now, MACHINE_RETRY_MAX_MS);
            r->now = step.due_ms;
        } else {
            cr_assert_eq(step.kind, MACHINE_PREPARE);
            cr_assert(last == 0 || r->now >= last + MACHINE_RETRY_MIN_MS / 2);
            last = r->now;
            machine_done(&r->m, &step, &in_use, r->now);
            n--;
        }
    }
}

Test(act_machine, waits_for_others_without_end)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_NEVER, 1);
    be_in_the_way(&r, 5 * MACHINE_TRIES);
    cr_expect_eq(r.intent->state, ACT_PREPARING);
    cr_expect_str_eq(r.intent->reason, "VfsInUse");
    cr_expect_eq(r.m.tries, 0, "it cost an attempt");
    (void)settle(&r, is_up);
    cr_expect_str_eq(r.intent->reason, "");
    cr_expect_eq(r.intent->attempt, 1);
    end(&r);
}

Test(act_machine, an_end_does_not_wait_for_the_next_try)
{
    struct run r;
    begin(&r, PODSPEC_RESTART_NEVER, 1);
    be_in_the_way(&r, 5 * MACHINE_TRIES);
    stop(&r);
    int64_t now = r.now;
    (void)settle(&r, is_gone);
    cr_expect_eq(r.intent->state, ACT_GONE);
    cr_expect_lt(r.now - now, MACHINE_RETRY_MAX_MS / 10);
    end(&r);
}
