#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/leader/pair_rules.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

static struct kube_pod pod(enum pod_role role, const char *name,
                           const char *uid, int pair)
{
    struct kube_pod p = {.phase = POD_RUNNING, .ready = true, .xpu_ready = -1};
    p.demand.role = role;
    p.demand.pair = pair;
    (void)snprintf(p.demand.namespace, sizeof p.demand.namespace, "ns");
    (void)snprintf(p.demand.name, sizeof p.demand.name, "%s", name);
    (void)snprintf(p.demand.uid, sizeof p.demand.uid, "%s", uid);
    (void)snprintf(p.demand.job, sizeof p.demand.job, "job");
    (void)snprintf(p.node, sizeof p.node, "n1");
    return p;
}

static void own(struct kube_pod *p, const struct kube_pod *host)
{
    memcpy(p->owner_uid, host->demand.uid, sizeof p->owner_uid);
}

/* The next action, which must be of that kind about that pod. */
static struct pair_rules_action next(struct pair_rules *p, int64_t now_ms,
                                     enum pair_rules_kind kind,
                                     const char *name)
{
    struct pair_rules_action a;
    cr_assert(pair_rules_next(p, now_ms, &a), "nothing is due");
    cr_assert_eq(a.kind, kind, "it is to %s %s", pair_rules_kind_name(a.kind),
                 a.name);
    cr_assert_str_eq(a.name, name);
    return a;
}

static void quiet(struct pair_rules *p, int64_t now_ms)
{
    struct pair_rules_action a;
    bool some = pair_rules_next(p, now_ms, &a);
    cr_assert_not(some, "it is to %s %s", pair_rules_kind_name(a.kind), a.name);
}

Test(pair_rules, a_pair_is_marked_told_and_ended)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    struct kube_pod xpu = pod(ROLE_XPU, "x", "xu", 0);
    xpu.phase = POD_PENDING;
    xpu.ready = false;
    xpu.node[0] = '\0';
    pair_rules_put(p, &xpu, 0);
    pair_rules_put(p, &host, 0);
    quiet(p, 0);
    memcpy(xpu.node, "n1", 3);
    pair_rules_put(p, &xpu, 1);
    struct pair_rules_action a = next(p, 1, PAIR_RULES_MARK, "x");
    cr_assert_str_eq(a.host_uid, "hu");
    pair_rules_report(p, &a, 0, 1);
    quiet(p, 1);
    memcpy(xpu.paired_uid, "hu", 3);
    xpu.phase = POD_RUNNING;
    xpu.ready = true;
    pair_rules_put(p, &xpu, 2);
    a = next(p, 2, PAIR_RULES_TELL, "h");
    cr_assert(a.ready);
    cr_assert_str_eq(a.reason, "XpuPodsReady");
    pair_rules_report(p, &a, 0, 2);
    quiet(p, 2);
    /* seen by a later leader, it is not told again */
    host.xpu_ready = 1;
    pair_rules_put(p, &host, 3);
    pair_rules_again(p, 3);
    quiet(p, 3);

    xpu.ready = false;
    pair_rules_put(p, &xpu, 4);
    a = next(p, 4, PAIR_RULES_TELL, "h");
    cr_assert_not(a.ready);
    pair_rules_report(p, &a, 0, 4);

    host.phase = POD_SUCCEEDED;
    pair_rules_put(p, &host, 5);
    a = next(p, 5, PAIR_RULES_DELETE, "x");
    cr_assert_str_eq(a.uid, "xu");
    pair_rules_report(p, &a, 0, 5);
    quiet(p, 5);
    cr_assert_eq(pair_rules_due(p), 5 + PAIR_RULES_SHOWN_MS);
    /* it is still there: once more */
    (void)next(p, 5 + PAIR_RULES_SHOWN_MS, PAIR_RULES_DELETE, "x");
    pair_rules_gone(p, "xu", 20000);
    quiet(p, 20000);
    pair_rules_gone(p, "hu", 20000);
    cr_assert_eq(pair_rules_n_pods(p), 0);
    cr_assert_eq(pair_rules_due(p), INT64_MAX);
    pair_rules_destroy(p);
}

/* A leader that never saw the host pod knows by the mark that there was one. */
Test(pair_rules, orphans_of_an_earlier_leader)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod marked = pod(ROLE_XPU, "marked", "u1", 1);
    struct kube_pod early = pod(ROLE_XPU, "early", "u2", 2);
    struct kube_pod owned = pod(ROLE_XPU, "owned", "u3", 3);
    struct kube_pod service = pod(ROLE_SERVICE, "service", "u4", 1);
    memcpy(marked.paired_uid, "gone", 5);
    memcpy(owned.paired_uid, "gone", 5);
    memcpy(owned.owner_uid, "gone", 5);
    pair_rules_put(p, &marked, 0);
    pair_rules_put(p, &early, 0);
    pair_rules_put(p, &owned, 0);
    pair_rules_put(p, &service, 0);
    cr_assert_eq(pair_rules_n_pods(p), 3);
    struct pair_rules_action a = next(p, 0, PAIR_RULES_DELETE, "marked");
    pair_rules_report(p, &a, -EAGAIN, 0);
    quiet(p, 0);
    quiet(p, PAIR_RULES_BACKOFF_MIN_MS - 1);
    a = next(p, PAIR_RULES_BACKOFF_MIN_MS, PAIR_RULES_DELETE, "marked");
    pair_rules_report(p, &a, -ENOENT, PAIR_RULES_BACKOFF_MIN_MS);
    quiet(p, PAIR_RULES_BACKOFF_MIN_MS);
    pair_rules_destroy(p);
}

/* A host pod that is still ending keeps its xPU pods, and one that takes its
 * place, too. */
Test(pair_rules, xpu_pods_end_after_their_host_pod)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    struct kube_pod again = pod(ROLE_HOST, "h2", "hu2", 0);
    struct kube_pod xpu = pod(ROLE_XPU, "x", "xu", 0);
    memcpy(xpu.paired_uid, "hu", 3);
    host.xpu_ready = 1;
    host.deleting = true;
    pair_rules_put(p, &host, 0);
    pair_rules_put(p, &xpu, 0);
    quiet(p, 0);
    pair_rules_put(p, &again, 1);
    pair_rules_gone(p, "hu", 2);
    struct pair_rules_action a = next(p, 2, PAIR_RULES_MARK, "x");
    cr_assert_str_eq(a.host_uid, "hu2");
    pair_rules_report(p, &a, 0, 2);
    (void)next(p, 2, PAIR_RULES_TELL, "h2");
    pair_rules_gone(p, "hu2", 3);
    (void)next(p, 3, PAIR_RULES_DELETE, "x");
    pair_rules_destroy(p);
}

/* It is told, once, that there is no buddy, and why. */
static void expect_no_buddy(struct pair_rules *p, const char *host,
                            const char *text, int64_t now_ms)
{
    struct pair_rules_action a = next(p, now_ms, PAIR_RULES_TELL, host);
    cr_assert_not(a.ready);
    cr_assert_str_eq(a.reason, KUBE_POD_NO_BUDDY);
    cr_assert_str_eq(a.text, text);
    pair_rules_report(p, &a, 0, now_ms);
}

/* Make it fail, for that reason; later by how long is not looked at. */
static int64_t fail_to_make(struct pair_rules *p, const char *host,
                            const char *why, int result)
{
    struct pair_rules_action a;
    int64_t now = pair_rules_due(p);
    if (!pair_rules_next(p, now, &a)) /* it was only looked at */
        now = pair_rules_due(p);
    a = next(p, now, PAIR_RULES_MAKE, host);
    (void)snprintf(a.text, sizeof a.text, "%s", why);
    pair_rules_report(p, &a, result, now);
    return now;
}

/* What keeps a buddy from being made stands on its host pod, as it is now,
 * whether that one runs or not, until the buddy is there. */
Test(pair_rules, what_keeps_a_buddy_away_is_told)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    memcpy(host.buddy, "tmpl", 5);
    host.ready = true; /* no readiness gate keeps it from being so */
    pair_rules_put(p, &host, 0);
    int64_t now = fail_to_make(p, "h", "no such template", -ENOENT);
    expect_no_buddy(p, "h", "no such template", now);
    quiet(p, now);
    host.xpu_ready = 0;
    host.no_buddy = hash_bytes("no such template", 16);
    pair_rules_put(p, &host, now);
    (void)fail_to_make(p, "h", "no such template", -ENOENT);
    quiet(p, pair_rules_due(p) - 1);
    now = fail_to_make(p, "h", "quota", -EACCES);
    expect_no_buddy(p, "h", "quota", now);
    /* another leader knows what was told, and what it did not say */
    host.no_buddy = hash_bytes("quota", 5);
    pair_rules_destroy(p);
    p = pair_rules_create();
    pair_rules_put(p, &host, now);
    now = fail_to_make(p, "h", "quota", -EACCES);
    quiet(p, now);
    now = fail_to_make(p, "h", "webhook", -EINVAL);
    expect_no_buddy(p, "h", "webhook", now);
    /* at last: it says what is awaited now, and then that it is there */
    now = fail_to_make(p, "h", "", 0);
    quiet(p, now);
    struct kube_pod xpu = pod(ROLE_XPU, "h-xpu", "x1", 0);
    own(&xpu, &host);
    xpu.ready = false;
    pair_rules_put(p, &xpu, now);
    struct pair_rules_action a = next(p, now, PAIR_RULES_TELL, "h");
    cr_assert_not(a.ready);
    cr_assert_str_eq(a.reason, "XpuPodNotReady");
    pair_rules_report(p, &a, 0, now);
    xpu.ready = true;
    pair_rules_put(p, &xpu, now);
    a = next(p, now, PAIR_RULES_TELL, "h");
    cr_assert(a.ready);
    pair_rules_destroy(p);
}

/* An API server that has too much to do for a moment says nothing of the
 * buddy; one that never answers does. */
Test(pair_rules, a_short_overload_is_not_told)
{
    static const int results[] = {-EAGAIN, -ETIMEDOUT, -ECONNREFUSED, -EIO};
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        struct pair_rules *p = pair_rules_create();
        struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
        memcpy(host.buddy, "tmpl", 5);
        pair_rules_put(p, &host, 0);
        int64_t now = 0;
        for (int n = 1; n < PAIR_RULES_TRIES; n++) {
            now = fail_to_make(p, "h", "overload", results[i]);
            quiet(p, now);
        }
        cr_expect_geq(pair_rules_due(p), 15000, "it took longer each time");
        now = fail_to_make(p, "h", "overload", results[i]);
        expect_no_buddy(p, "h", "overload", now);
        /* what is for good is told at once, whatever was before */
        pair_rules_destroy(p);
        p = pair_rules_create();
        pair_rules_put(p, &host, 0);
        now = fail_to_make(p, "h", "overload", results[i]);
        quiet(p, now);
        now = fail_to_make(p, "h", "quota", -EACCES);
        expect_no_buddy(p, "h", "quota", now);
        /* and is not taken back by an overload */
        now = fail_to_make(p, "h", "overload", results[i]);
        quiet(p, now);
        pair_rules_destroy(p);
    }
}

/* Whoever wants no buddy any more lacks none, whether it runs or waits. */
Test(pair_rules, a_buddy_that_is_not_wanted_any_more)
{
    for (unsigned i = 0; i < 4; i++) {
        struct pair_rules *p = pair_rules_create();
        struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
        memcpy(host.buddy, "tmpl", 5);
        if (i & 1)
            host.node[0] = '\0';
        pair_rules_put(p, &host, 0);
        int64_t now = fail_to_make(p, "h", "no such template", -ENOENT);
        expect_no_buddy(p, "h", "no such template", now);
        host.xpu_ready = 0;
        host.no_buddy = hash_bytes("no such template", 16);
        if (i & 2) { /* another leader */
            pair_rules_destroy(p);
            p = pair_rules_create();
        }
        host.buddy[0] = '\0';
        pair_rules_put(p, &host, now);
        struct pair_rules_action a = next(p, now, PAIR_RULES_TELL, "h");
        cr_assert_not(a.ready);
        cr_assert_str_eq(a.reason, "XpuPodNotReady");
        pair_rules_report(p, &a, 0, now);
        quiet(p, now);
        pair_rules_destroy(p);
    }
}

/* One that was made by this leader, after another one could not, is awaited;
 * and a host pod that has changed meanwhile is no failure. */
Test(pair_rules, a_buddy_that_comes_late_is_awaited)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    memcpy(host.buddy, "tmpl", 5);
    host.xpu_ready = 0;
    host.no_buddy = 1;
    pair_rules_put(p, &host, 0);
    int64_t now = fail_to_make(p, "h", "it has changed", -ECANCELED);
    quiet(p, now);
    now = fail_to_make(p, "h", "", 0);
    struct kube_pod xpu = pod(ROLE_XPU, "h-xpu", "x1", 0);
    own(&xpu, &host);
    xpu.ready = false;
    pair_rules_put(p, &xpu, now);
    struct pair_rules_action a = next(p, now, PAIR_RULES_TELL, "h");
    cr_assert_str_eq(a.reason, "XpuPodNotReady");
    pair_rules_destroy(p);
}

/* A host pod that waits, and whose buddy is to be made of "tmpl": there is no
 * such template yet, so it is tried again, at longer and longer intervals.
 * Returns the time of the last try, which is `ret_a`. */
static int64_t make_when_there(struct pair_rules *p, struct kube_pod *host,
                               struct pair_rules_action *ret_a)
{
    memcpy(host->buddy, "tmpl", 5);
    host->phase = POD_PENDING;
    host->node[0] = '\0';
    pair_rules_put(p, host, 0);
    struct pair_rules_action a = next(p, 0, PAIR_RULES_MAKE, "h");
    cr_assert_str_eq(a.made, "h-xpu");
    cr_assert_str_eq(a.buddy, "tmpl");
    int64_t now = 0, wait = PAIR_RULES_BACKOFF_MIN_MS;
    for (int i = 0; i < 8; i++) {
        (void)snprintf(a.text, sizeof a.text, "no such template");
        pair_rules_report(p, &a, -ENOENT, now);
        if (i == 0)
            expect_no_buddy(p, "h", "no such template", now);
        quiet(p, now + wait - 1);
        now += wait;
        a = next(p, now, PAIR_RULES_MAKE, "h");
        wait = wait * 2 < PAIR_RULES_BACKOFF_MAX_MS ? wait * 2
                                                    : PAIR_RULES_BACKOFF_MAX_MS;
    }
    *ret_a = a;
    return now;
}

/* The xPU pod that was made of a template, in a phase. */
static struct kube_pod made(struct pair_rules *p, const struct kube_pod *host,
                            const char *name, const char *uid,
                            enum pod_phase phase, int64_t now)
{
    struct kube_pod xpu = pod(ROLE_XPU, name, uid, 0);
    own(&xpu, host);
    xpu.phase = phase;
    pair_rules_put(p, &xpu, now);
    return xpu;
}

/* The next action, reported as done. */
static struct pair_rules_action carried_out(struct pair_rules *p, int64_t now,
                                            enum pair_rules_kind kind,
                                            const char *name)
{
    struct pair_rules_action a = next(p, now, kind, name);
    pair_rules_report(p, &a, 0, now);
    return a;
}

Test(pair_rules, a_buddy_is_made_once_and_again_when_it_fails)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    struct pair_rules_action a;
    int64_t now = make_when_there(p, &host, &a);
    pair_rules_report(p, &a, 0, now);
    quiet(p, now);

    struct kube_pod xpu = pod(ROLE_XPU, "h-xpu", "x1", 0);
    own(&xpu, &host);
    pair_rules_put(p, &xpu, now);
    quiet(p, now + PAIR_RULES_RESTART_MAX_MS);
    now += PAIR_RULES_RESTART_MAX_MS;
    memcpy(host.node, "n1", 3);
    host.phase = POD_RUNNING;
    host.xpu_ready = 1;
    pair_rules_put(p, &host, now);
    a = carried_out(p, now, PAIR_RULES_TELL, "h");
    cr_assert_str_eq(a.reason, "XpuPodsReady");
    quiet(p, now);

    xpu.phase = POD_FAILED;
    pair_rules_put(p, &xpu, now);
    a = carried_out(p, now, PAIR_RULES_TELL, "h");
    cr_assert_str_eq(a.reason, "XpuPodFailed");
    a = carried_out(p, now, PAIR_RULES_MAKE, "h");
    cr_assert_str_eq(a.made, "h-xpu-2");

    (void)made(p, &host, "h-xpu-2", "x2", POD_FAILED, now);
    /* the older one is of no more use; the next comes later */
    (void)carried_out(p, now, PAIR_RULES_DELETE, "h-xpu");
    quiet(p, now);
    pair_rules_gone(p, "x1", now);
    quiet(p, now + 2 * PAIR_RULES_RESTART_MS - 1);
    now += 2 * PAIR_RULES_RESTART_MS;
    a = carried_out(p, now, PAIR_RULES_MAKE, "h");
    cr_assert_str_eq(a.made, "h-xpu-3");

    /* one that succeeded is not made again */
    (void)made(p, &host, "h-xpu-3", "x3", POD_SUCCEEDED, now);
    a = next(p, now, PAIR_RULES_DELETE, "h-xpu-2");
    pair_rules_report(p, &a, -ENOENT, now);
    pair_rules_gone(p, "x2", now);
    a = carried_out(p, now, PAIR_RULES_TELL, "h");
    cr_assert(a.ready);
    quiet(p, now + PAIR_RULES_RESTART_MAX_MS);
    pair_rules_destroy(p);
}

/* It is told first, as the new one may be there as soon as it is made. */
Test(pair_rules, a_failure_that_cannot_be_told_keeps_no_buddy_away)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    int64_t now = 0;
    memcpy(host.buddy, "tmpl", 5);
    host.xpu_ready = 1;
    pair_rules_put(p, &host, now);
    (void)made(p, &host, "h-xpu", "x1", POD_FAILED, now);
    for (unsigned i = 0; i < 3; i++) {
        struct pair_rules_action a = next(p, now, PAIR_RULES_TELL, "h");
        cr_assert_str_eq(a.reason, "XpuPodFailed");
        pair_rules_report(p, &a, -EACCES, now);
        quiet(p, now + PAIR_RULES_BACKOFF_MIN_MS - 1);
        now += PAIR_RULES_BACKOFF_MIN_MS;
        a = next(p, now, PAIR_RULES_MAKE, "h");
        pair_rules_report(p, &a, -EAGAIN, now);
        /* not due for a while: it is told meanwhile, when that is possible */
        a = next(p, now, PAIR_RULES_TELL, "h");
        pair_rules_report(p, &a, -EACCES, now);
        now += PAIR_RULES_BACKOFF_MAX_MS;
        (void)carried_out(p, now, PAIR_RULES_MAKE, "h");
        now += PAIR_RULES_RESTART_MAX_MS;
    }
    pair_rules_destroy(p);
}

/* One that is being deleted may run for long, on a card that is lost. */
Test(pair_rules, a_buddy_that_is_ending_is_not_made_again)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    struct kube_pod xpu = pod(ROLE_XPU, "h-xpu", "xu", 0);
    memcpy(host.buddy, "tmpl", 5);
    host.xpu_ready = 1;
    own(&xpu, &host);
    pair_rules_put(p, &host, 0);
    pair_rules_put(p, &xpu, 0);
    quiet(p, 0);
    xpu.deleting = true;
    pair_rules_put(p, &xpu, 1);
    struct pair_rules_action a = next(p, 1, PAIR_RULES_TELL, "h");
    cr_assert_not(a.ready);
    pair_rules_report(p, &a, 0, 1);
    quiet(p, 3600000);
    pair_rules_gone(p, "xu", 3600001);
    a = next(p, 3600001, PAIR_RULES_MAKE, "h");
    pair_rules_destroy(p);
}

Test(pair_rules, an_owner_that_has_ended_is_still_there)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    struct kube_pod xpu = pod(ROLE_XPU, "x", "xu", 0);
    memcpy(xpu.owner_uid, "hu", 3);
    host.xpu_ready = 1;
    pair_rules_put(p, &host, 0);
    pair_rules_put(p, &xpu, 0);
    quiet(p, 0);
    host.phase = POD_SUCCEEDED;
    pair_rules_put(p, &host, 1);
    struct pair_rules_action a = next(p, 1, PAIR_RULES_DELETE, "x");
    pair_rules_report(p, &a, 0, 1);
    quiet(p, 1);
    pair_rules_destroy(p);
}

Test(pair_rules, what_is_wrong_is_told_as_it_changes)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    struct kube_pod xpu = pod(ROLE_XPU, "x", "xu", 0);
    memcpy(xpu.paired_uid, "hu", 3);
    host.xpu_ready = 1;
    pair_rules_put(p, &host, 0);
    pair_rules_put(p, &xpu, 0);
    quiet(p, 0);
    xpu.deleting = true;
    pair_rules_put(p, &xpu, 1);
    struct pair_rules_action a = next(p, 1, PAIR_RULES_TELL, "h");
    cr_assert_str_eq(a.reason, "XpuPodNotReady");
    pair_rules_report(p, &a, 0, 1);
    quiet(p, 1);
    pair_rules_gone(p, "xu", 2);
    a = next(p, 2, PAIR_RULES_TELL, "h");
    cr_assert_str_eq(a.reason, "XpuPodGone");
    pair_rules_report(p, &a, 0, 2);
    quiet(p, 2);
    pair_rules_destroy(p);
}

Test(pair_rules, a_lost_xpu_pod_is_told)
{
    struct pair_rules *p = pair_rules_create();
    struct kube_pod host = pod(ROLE_HOST, "h", "hu", 0);
    struct kube_pod xpu = pod(ROLE_XPU, "x", "xu", 0);
    memcpy(xpu.paired_uid, "hu", 3);
    host.xpu_ready = 1;
    pair_rules_put(p, &host, 0);
    pair_rules_put(p, &xpu, 0);
    quiet(p, 0);
    pair_rules_gone(p, "xu", 1);
    struct pair_rules_action a = next(p, 1, PAIR_RULES_TELL, "h");
    cr_assert_str_eq(a.reason, "XpuPodGone");
    cr_assert_str_eq(a.text, "xPU pod x is gone");
    cr_assert_not(a.ready);
    pair_rules_report(p, &a, 0, 1);
    quiet(p, 1);
    pair_rules_put(p, &xpu, 2);
    a = next(p, 2, PAIR_RULES_TELL, "h");
    cr_assert(a.ready);
    pair_rules_destroy(p);
}

Test(pair_rules, names_of_buddies_are_names)
{
    struct pair_rules *p = pair_rules_create();
    char name[DEMAND_NAME_MAX + 1];
    memset(name, 'a', DEMAND_NAME_MAX);
    name[DEMAND_NAME_MAX] = '\0';
    struct kube_pod one = pod(ROLE_HOST, name, "u1", 0);
    name[DEMAND_NAME_MAX - 1] = 'b';
    struct kube_pod two = pod(ROLE_HOST, name, "u2", 1);
    struct pair_rules_action a, b;
    memcpy(one.buddy, "t", 2);
    memcpy(two.buddy, "t", 2);
    pair_rules_put(p, &one, 0);
    cr_assert(pair_rules_next(p, 0, &a));
    pair_rules_report(p, &a, 0, 0);
    pair_rules_put(p, &two, 0);
    cr_assert(pair_rules_next(p, 0, &b));
    cr_assert_eq(strlen(a.made), DEMAND_NAME_MAX);
    cr_assert_str_neq(a.made, b.made);
    pair_rules_destroy(p);
}

/* --- at random, against a model of the API server ----------------------- */

enum { PODS = 24, PAIRS = 4, STEPS = 200000 };

struct world {
    struct pair_rules *p;
    struct kube_pod pods[PODS];
    bool there[PODS];
    const char *reasons[PODS]; /* that were told, or NULL */
    int unseen;                /* made, but not told of yet; -1: none */
    bool had_host[PAIRS];      /* since the pair had its first member */
    unsigned uids;
    uint64_t random;
    int64_t now_ms;
    unsigned done[PAIR_RULES_TELL + 1];
};

static unsigned roll(struct world *w, unsigned n)
{
    w->random = w->random * UINT64_C(6364136223846793005) +
                UINT64_C(1442695040888963407);
    return (unsigned)(w->random >> 33) % n;
}

static int find(const struct world *w, const char *uid)
{
    for (int i = 0; i < PODS; i++)
        if (w->there[i] && strcmp(w->pods[i].demand.uid, uid) == 0)
            return i;
    return -1;
}

static bool finished(const struct kube_pod *pod)
{
    return kube_pod_is_finished(pod);
}

static const struct kube_pod *unended(const struct world *w, int pair)
{
    for (int i = 0; i < PODS; i++)
        if (w->there[i] && w->pods[i].demand.pair == pair &&
            w->pods[i].demand.role == ROLE_HOST && !finished(&w->pods[i]))
            return &w->pods[i];
    return NULL;
}

static int add(struct world *w, enum pod_role role, int pair, const char *name)
{
    char uid[32];
    for (int i = 0; i < PODS; i++) {
        if (w->there[i])
            continue;
        (void)snprintf(uid, sizeof uid, "u%u", ++w->uids);
        w->pods[i] = pod(role, name ? name : uid, uid, pair);
        w->pods[i].phase = POD_PENDING;
        w->pods[i].ready = false;
        w->pods[i].node[0] = '\0';
        w->there[i] = true;
        w->reasons[i] = NULL;
        w->had_host[pair] |= role == ROLE_HOST;
        return i;
    }
    return -1;
}

static void put(struct world *w, int i)
{
    pair_rules_put(w->p, &w->pods[i], w->now_ms);
}

static void catch_up(struct world *w)
{
    if (w->unseen >= 0 && w->there[w->unseen])
        put(w, w->unseen);
    w->unseen = -1;
}

static void take_away(struct world *w, int i)
{
    int pair = w->pods[i].demand.pair;
    catch_up(w);
    w->there[i] = false;
    pair_rules_gone(w->p, w->pods[i].demand.uid, w->now_ms);
    bool any = false;
    for (int j = 0; j < PODS; j++)
        any |= w->there[j] && w->pods[j].demand.pair == pair;
    if (!any)
        w->had_host[pair] = false;
}

/* Something happens in the cluster, and is told in its order. */
static void happen(struct world *w)
{
    int i = (int)roll(w, PODS);
    catch_up(w);
    struct kube_pod *pod = &w->pods[i];
    if (!w->there[i]) {
        enum pod_role role = roll(w, 2) ? ROLE_HOST : ROLE_XPU;
        i = add(w, role, (int)roll(w, PAIRS), NULL);
        if (role == ROLE_HOST && roll(w, 2))
            memcpy(w->pods[i].buddy, "t", 2);
        put(w, i);
        return;
    }
    switch (roll(w, 6)) {
    case 0:
        take_away(w, i);
        return;
    case 1:
        pod->phase = POD_FAILED;
        break;
    case 2:
        pod->phase = POD_SUCCEEDED;
        break;
    case 3:
        pod->deleting = true;
        break;
    default:
        memcpy(pod->node, "n1", 3);
        if (!finished(pod)) {
            pod->phase = POD_RUNNING;
            pod->ready = roll(w, 3) > 0;
        }
    }
    put(w, i);
}

/* What the API server makes of an action; every one of them must be right at
 * this moment. */
static int carry_out(struct world *w, const struct pair_rules_action *a)
{
    int i = find(w, a->uid);
    cr_assert_geq(i, 0, "%s of a pod that is gone",
                  pair_rules_kind_name(a->kind));
    struct kube_pod *pod = &w->pods[i];
    if (roll(w, 4) == 0)
        return -EAGAIN;
    w->done[a->kind]++;
    switch (a->kind) {
    case PAIR_RULES_DELETE:
        cr_assert_eq(pod->demand.role, ROLE_XPU);
        if (!pod->owner_uid[0] || !finished(pod))
            cr_assert_null(unended(w, pod->demand.pair));
        if (pod->owner_uid[0] && !finished(pod)) {
            i = find(w, pod->owner_uid); /* gone: Kubernetes does it */
            cr_assert(i >= 0 && finished(&w->pods[i]));
            i = find(w, a->uid);
        }
        take_away(w, i);
        break;
    case PAIR_RULES_MAKE: {
        char host_uid[DEMAND_UID_MAX + 1];
        memcpy(host_uid, pod->demand.uid, sizeof host_uid);
        cr_assert(pod->buddy[0] && !finished(pod) && !pod->deleting);
        for (int j = 0; j < PODS; j++) {
            const struct kube_pod *other = &w->pods[j];
            if (!w->there[j] || strcmp(other->owner_uid, host_uid) != 0)
                continue;
            if (j == w->unseen && strcmp(other->demand.name, a->made) == 0)
                return 0; /* it had not been seen yet */
            cr_assert(finished(other) || other->deleting);
        }
        catch_up(w);
        int made = add(w, ROLE_XPU, pod->demand.pair, a->made);
        if (made < 0)
            return -EAGAIN;
        memcpy(w->pods[made].owner_uid, host_uid, sizeof host_uid);
        if (roll(w, 2))
            put(w, made);
        else
            w->unseen = made; /* until something else is told */
        break;
    }
    case PAIR_RULES_MARK:
        cr_assert_str_eq(pod->owner_uid, "");
        memcpy(pod->paired_uid, a->host_uid, sizeof pod->paired_uid);
        put(w, i);
        break;
    case PAIR_RULES_TELL:
        cr_assert_eq(pod->demand.role, ROLE_HOST);
        cr_assert(pod->xpu_ready != (int8_t)a->ready ||
                  w->reasons[i] != a->reason);
        pod->xpu_ready = a->ready;
        pod->no_buddy = strcmp(a->reason, KUBE_POD_NO_BUDDY) == 0
                            ? hash_bytes(a->text, strlen(a->text))
                            : 0;
        w->reasons[i] = a->reason;
        put(w, i);
        break;
    }
    return 0;
}

/* With nothing happening any more, nothing is left to do in the end, and it is
 * as it should be. */
static void settle(struct world *w)
{
    struct pair_rules_action a;
    for (int i = 0; i < PODS; i++)
        if (w->there[i])
            put(w, i);
    for (unsigned n = 0; n < 5000; n++) {
        while (pair_rules_next(w->p, w->now_ms, &a))
            pair_rules_report(w->p, &a, carry_out(w, &a), w->now_ms);
        catch_up(w);
        if (pair_rules_due(w->p) == INT64_MAX)
            break;
        w->now_ms = pair_rules_due(w->p);
        if (n > 2000) /* what is deleting ends at last */
            for (int i = 0; i < PODS; i++)
                if (w->there[i] && w->pods[i].deleting)
                    take_away(w, i);
    }
    cr_assert_eq(pair_rules_due(w->p), INT64_MAX);
    for (int i = 0; i < PODS; i++) {
        const struct kube_pod *pod = &w->pods[i];
        int pair = pod->demand.pair;
        if (!w->there[i])
            continue;
        int owner = pod->owner_uid[0] ? find(w, pod->owner_uid) : i;
        if (pod->demand.role == ROLE_XPU && owner >= 0 && !finished(pod) &&
            !pod->deleting && w->had_host[pair])
            cr_assert_not_null(unended(w, pair), "%s is an orphan",
                               pod->demand.name);
    }
}

Test(pair_rules, at_random)
{
    struct world w = {.p = pair_rules_create(), .random = 7, .unseen = -1};
    struct pair_rules_action a;
    for (unsigned step = 0; step < STEPS; step++) {
        w.now_ms += roll(&w, 2000);
        if (roll(&w, 3) == 0)
            happen(&w);
        if (roll(&w, 500) == 0)
            pair_rules_again(w.p, w.now_ms);
        if (pair_rules_next(w.p, w.now_ms, &a))
            pair_rules_report(w.p, &a, carry_out(&w, &a), w.now_ms);
        if (step % 5000 == 0)
            settle(&w);
    }
    settle(&w);
    for (unsigned kind = 0; kind <= PAIR_RULES_TELL; kind++)
        cr_assert_gt(w.done[kind], 100, "%s: %u",
                     pair_rules_kind_name((enum pair_rules_kind)kind),
                     w.done[kind]);
    pair_rules_destroy(w.p);
}
