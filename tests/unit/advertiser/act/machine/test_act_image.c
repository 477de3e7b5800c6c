/* Images that do not do: for a container that is to begin again, or by their
 * users. */
#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/act/machine/machine.h"
#include "tests/lib/card/simcard.h"

static struct podspec_container mains[] = {
    {.name = (char *)"a", .image = (char *)"i", .pull = PODSPEC_PULL_NEVER},
    {.name = (char *)"b", .image = (char *)"i", .pull = PODSPEC_PULL_NEVER},
};
static struct podspec spec = {.namespace = (char *)"ns",
                              .name = (char *)"pod",
                              .restart = PODSPEC_RESTART_ALWAYS,
                              .grace_s = 5,
                              .containers = mains,
                              .n_containers = 2};

static const struct act_pod pod = {.namespace = "ns",
                                   .name = "pod",
                                   .uid = "u-1",
                                   .place = "card",
                                   .sriov_vfs = -1};

struct run {
    struct simcard card;
    struct intent *intent;
    struct machine m;
    int64_t now;
};

static void list(struct run *r)
{
    struct machine_found found;
    simcard_list(&r->card, &found);
    machine_see(&r->m, &found, r->now);
}

/* One step; its kind. */
static enum machine_kind turn(struct run *r)
{
    struct machine_step step;
    machine_next(&r->m, r->now, &step);
    r->now += 20;
    if (step.kind == MACHINE_WAIT) {
        int64_t due = step.due_ms < r->now + 2000 ? step.due_ms : r->now + 2000;
        r->now = due > r->now ? due : r->now;
    }
    if (step.kind == MACHINE_WAIT || step.kind == MACHINE_LIST) {
        list(r);
    } else {
        struct machine_result result = simcard_do(&r->card, &r->m, &step);
        machine_done(&r->m, &step, &result, r->now);
    }
    return step.kind;
}

static bool gets_ready(struct run *r)
{
    for (int n = 0; n < 1000 && !machine_is_ready(&r->m); n++)
        (void)turn(r);
    return machine_is_ready(&r->m);
}

static size_t n_running(const struct run *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->card.n_containers; i++)
        n += r->card.containers[i].state == CRI_RUNNING;
    return n;
}

/* The image is gone, or its user is root; after that a container, or all with
 * the card. */
static void break_it(struct run *r, bool user, bool reboots)
{
    machine_fini(&r->m); /* the daemon comes back, and looks anew */
    machine_init(&r->m, r->intent, &spec, "");
    r->card.faults.no_image = !user;
    r->card.image_uid = user ? 0 : 1000;
    for (size_t i = 0; i < r->card.n_containers; i++)
        if (strcmp(r->card.containers[i].name, "a") == 0)
            r->card.containers[i].state = CRI_EXITED;
    if (reboots)
        simcard_reboot(&r->card, false);
}

/* As a kubelet does: ErrImageNeverPull, CreateContainerConfigError. */
static void expect_waits(bool user, bool reboots)
{
    struct run r = {.now = 1000, .card = {.random = 1, .image_uid = 1000}};
    unsigned n_looks = 0;
    mains[0].run_as_non_root = user;
    mains[0].run_as_user = -1;
    r.intent = intent_create(&pod);
    machine_init(&r.m, r.intent, &spec, "");
    cr_assert(gets_ready(&r));
    break_it(&r, user, reboots);
    for (int64_t until = r.now + 300000; r.now < until;)
        n_looks += turn(&r) == MACHINE_LOOK_IMAGE;
    cr_expect_neq(r.intent->state, ACT_FAILED);
    cr_expect_eq(r.intent->state == ACT_RUNNING, !reboots);
    cr_expect_str_eq(r.intent->reason, user ? "RunAsNonRoot" : "ImageMissing");
    cr_expect(strstr(r.intent->message, "it is tried again"), "%s",
              r.intent->message);
    cr_expect_eq(n_running(&r), !reboots, "the other one runs on");
    cr_expect_geq(n_looks, 5);
    cr_expect_leq(n_looks, 40, "%u", n_looks);
    r.card.faults.no_image = false;
    r.card.image_uid = 1000;
    cr_expect(gets_ready(&r));
    cr_expect_str_eq(r.intent->reason, "");
    machine_fini(&r.m);
    intent_destroy(r.intent);
}

Test(act_image, one_that_does_not_do_ends_no_pod_that_ran)
{
    for (int i = 0; i < 4; i++)
        expect_waits(i & 1, i & 2);
}

/* The user of an image, where it may not be root. */
static const struct {
    int64_t uid;
    const char *username;
    int64_t run_as;   /* the pod's */
    const char *says; /* NULL: it runs */
} users[] = {
    {-1, NULL, -1,
     "container b: runAsNonRoot is true, and image i runs as "
     "root (user not given)"},
    {0, NULL, -1, "(user 0)"},
    {0, "root", -1, "(user 0)"},
    {-1, "nobody", -1, "is a name, nobody, which may be root's"},
    {1000, NULL, -1, NULL},
    {1000, "app", -1, NULL},
    {-1, NULL, 1000, NULL},
};

Test(act_image, its_user_may_have_to_be_another_than_root)
{
    for (unsigned n = 0; n < 2 * ARRAY_LEN(users); n++) {
        struct run r = {.now = 1000,
                        .card = {.random = 1,
                                 .image_uid = users[n / 2].uid,
                                 .image_username = users[n / 2].username}};
        mains[1].pull = n % 2 ? PODSPEC_PULL_ALWAYS
                              : PODSPEC_PULL_IF_NOT_PRESENT;
        mains[1].run_as_non_root = true;
        mains[1].run_as_user = users[n / 2].run_as;
        r.intent = intent_create(&pod);
        machine_init(&r.m, r.intent, &spec, "");
        for (unsigned i = 0; i < 50 && !machine_is_over(&r.m); i++)
            (void)turn(&r);
        (void)turn(&r);
        if (users[n / 2].says) {
            cr_expect_str_eq(r.intent->reason, "RunAsNonRoot", "%u", n);
            cr_expect(strstr(r.intent->message, users[n / 2].says), "%s",
                      r.intent->message);
            cr_expect_eq(r.card.n_sandboxes, 0, "something was begun");
        } else {
            cr_expect(machine_is_ready(&r.m), "%u: %s", n, r.intent->message);
        }
        machine_fini(&r.m);
        intent_destroy(r.intent);
    }
    mains[1] = mains[0];
    mains[1].name = (char *)"b";
}
