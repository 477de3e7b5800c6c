/* Never twice, never forgotten: whatever happens to a call. */
#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/cri/cri_container.h"
#include "tests/lib/router/keeprig.h"

static struct keep *open_new(void)
{
    const struct keep_config config = {.pod_logs = "/var/log/pods"};
    struct keep *k = NULL;
    cr_assert_eq(keep_open(&config, &k, NULL), 0);
    return k;
}

struct made {
    int e;
    char id[KEPT_ID_MAX + 1];
    struct error err;
};

static struct made make(struct keep *k, struct keeprig *r,
                        const struct kept *what)
{
    struct made m = {.id = ""};
    const struct making_calls calls = keeprig_calls(r, k, what);
    m.e = making_run(k, what, &calls, m.id, &m.err);
    return m;
}

static struct made must(struct keep *k, struct keeprig *r,
                        const struct kept *what)
{
    struct made m = make(k, r, what);
    cr_assert_eq(m.e, 0, "%s", m.err.text);
    cr_assert_not_null(keeprig_find(r, m.id));
    cleanup_with(kept) struct kept *found = keep_find(k, m.id);
    cr_assert_not_null(found);
    return m;
}

Test(making, is_made_once_and_written_down)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0"};
    const struct kept s = keeprig_sandbox("u-1", 0);
    struct made a = must(k, &r, &s);
    cr_assert_eq(r.n_looked, 0);
    const struct kept c = keeprig_container("u-1", a.id, "c", 0);
    (void)must(k, &r, &c);
    cr_assert_eq(keeprig_count(&r, "u-1"), 2);
    keeprig_fini(&r);
    keep_close(k);
}

Test(making, a_lost_reply_is_adopted)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0", .lose_reply = true};
    struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(make(k, &r, &s).e, -ETIMEDOUT);
    cr_assert_eq(keep_count(k, "card-0", KEPT_ANNOUNCED), 1);
    (void)must(k, &r, &s);
    cr_assert_eq(r.n_sent, 1, "it is not sent again");
    cr_assert_eq(keeprig_count(&r, "u-1"), 1);
    keeprig_fini(&r);
    keep_close(k);
}

Test(making, a_lost_request_is_sent_again)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0", .lose_request = true};
    struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(make(k, &r, &s).e, -ETIMEDOUT);
    (void)must(k, &r, &s);
    cr_assert_eq(r.n_sent, 2);
    cr_assert_eq(keeprig_count(&r, "u-1"), 1);
    keeprig_fini(&r);
    keep_close(k);
}

Test(making, another_request_replaces_what_nobody_knows)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0", .lose_reply = true};
    struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(make(k, &r, &s).e, -ETIMEDOUT);
    s.hash++;
    (void)must(k, &r, &s);
    cr_assert_eq(r.n_sent, 2);
    cr_assert_eq(r.n_removed, 1);
    cr_assert_eq(keeprig_count(&r, "u-1"), 1);
    keeprig_fini(&r);
    keep_close(k);
}

Test(making, what_was_told_is_told_again)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0"};
    struct kept s = keeprig_sandbox("u-1", 0);
    struct made a = must(k, &r, &s);
    struct made b = must(k, &r, &s);
    cr_assert_str_eq(a.id, b.id);
    cr_assert_eq(r.n_sent, 1);
    keeprig_fini(&r);
    keep_close(k);
}

Test(making, what_runs_or_has_run_is_in_the_way)
{
    static const uint32_t states[] = {CRI_RUNNING, CRI_EXITED};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct keep *k = open_new();
        struct keeprig r = {.name = "card-0"};
        struct kept s = keeprig_sandbox("u-1", 0);
        struct made a = must(k, &r, &s);
        struct kept c = keeprig_container("u-1", a.id, "c", 0);
        struct made b = must(k, &r, &c);
        keeprig_find(&r, b.id)->state = states[i];
        struct made again = make(k, &r, &c);
        cr_assert_eq(again.e, -EEXIST);
        cr_assert(strstr(again.err.text, "reserved"), "%s", again.err.text);
        cr_assert_eq(r.n_removed, 0);
        if (states[i] == CRI_RUNNING) { /* nor is its sandbox */
            s.hash++;
            cr_assert_eq(make(k, &r, &s).e, -EEXIST);
        }
        cr_assert_eq(keeprig_count(&r, "u-1"), 2);
        keeprig_fini(&r);
        keep_close(k);
    }
}

Test(making, what_the_remote_has_lost_is_made_again)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0"};
    struct kept s = keeprig_sandbox("u-1", 0);
    struct made a = must(k, &r, &s);
    keeprig_remove(&r, a.id);
    struct made b = must(k, &r, &s);
    cr_assert_str_neq(a.id, b.id);
    cr_assert_eq(keep_count(k, "card-0", KEPT_MADE), 1);
    keeprig_fini(&r);
    keep_close(k);
}

Test(making, a_strangers_name_makes_room)
{
    struct keep *k = open_new(), *elsewhere = open_new();
    struct keeprig r = {.name = "card-0"};
    struct kept s = keeprig_sandbox("u-1", 0);
    (void)must(elsewhere, &r, &s); /* its seal is not ours */
    (void)must(k, &r, &s);
    cr_assert_eq(r.n_removed, 1);
    cr_assert_eq(keeprig_count(&r, "u-1"), 1);
    keeprig_fini(&r);
    keep_close(k);
    keep_close(elsewhere);
}

Test(making, a_refusal_leaves_nothing)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0", .refuse = true};
    struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(make(k, &r, &s).e, -EACCES);
    cr_assert_eq(keep_count(k, "card-0", KEPT_ANNOUNCED), 0);
    (void)must(k, &r, &s);
    cr_assert_eq(r.n_looked, 0);
    keeprig_fini(&r);
    keep_close(k);
}

Test(making, stays_announced_while_the_remote_is_away)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0", .away = true};
    struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(make(k, &r, &s).e, -ETIMEDOUT);
    cr_assert_eq(make(k, &r, &s).e, -EHOSTDOWN, "it is looked for first");
    r.away = false;
    (void)must(k, &r, &s);
    keeprig_fini(&r);
    keep_close(k);
}

static int lie(void *ctx, char ret_id[KEPT_ID_MAX + 1], bool *ret_unmade,
               struct error *err)
{
    (void)ret_unmade;
    (void)err;
    (void)snprintf(ret_id, KEPT_ID_MAX + 1, "%s", (const char *)ctx);
    return 0;
}

Test(making, a_remote_cannot_name_another_id)
{
    struct keep *k = open_new();
    struct keeprig r = {.name = "card-0"};
    struct kept s = keeprig_sandbox("u-1", 0), t = keeprig_sandbox("u-2", 0);
    struct made a = must(k, &r, &s);
    struct making_calls calls = keeprig_calls(&r, k, &t);
    char id[KEPT_ID_MAX + 1];
    calls.send = lie;
    calls.ctx = a.id;
    t.remote = "card-1";
    cr_assert_eq(making_run(k, &t, &calls, id, NULL), -EEXIST);
    cr_assert_eq(keep_count(k, "card-1", KEPT_MADE), 0);
    keeprig_fini(&r);
    keep_close(k);
}
