/* The map against what a remote lists; and both against an oracle, at random:
 * calls, losses, kills, lost databases, removals, lists that are old. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/cri/cri_container.h"
#include "lib/io/clock.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

static struct keep *open_in(const char *dir)
{
    const struct keep_config config = {.dir = dir, .pod_logs = "/var/log/pods"};
    struct keep *k = NULL;
    struct error err = {0};
    cr_assert_eq(keep_open(&config, &k, &err), 0, "%s", err.text);
    return k;
}

static int make(struct keep *k, struct keeprig *r, const struct kept *what,
                char ret_id[KEPT_ID_MAX + 1])
{
    const struct making_calls calls = keeprig_calls(r, k, what);
    return making_run(k, what, &calls, ret_id, NULL);
}

static void must(struct keep *k, struct keeprig *r, const struct kept *what,
                 char ret_id[KEPT_ID_MAX + 1])
{
    cr_assert_eq(make(k, r, what, ret_id), 0);
}

static bool has(struct keep *k, const char *id)
{
    cleanup_with(kept) struct kept *found = keep_find(k, id);
    return found != NULL;
}

/* --- one after the other ----------------------------------------------------- */

Test(reconcile, what_is_gone_is_forgotten)
{
    struct keep *k = open_in(NULL);
    struct keeprig r = {.name = "card-0"};
    char id[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    must(k, &r, &s, id);
    cr_assert_eq(keeprig_see(&r, k).n_gone, 0);
    keeprig_remove(&r, id);
    cr_assert_eq(keeprig_see(&r, k).n_gone, 1);
    cr_assert_not(has(k, id));
    keeprig_fini(&r);
    keep_close(k);
}

Test(reconcile, an_old_list_says_nothing_of_what_came_after)
{
    struct keep *k = open_in(NULL);
    struct keeprig r = {.name = "card-0"};
    struct seen old = {0};
    struct keep_found found;
    char a[KEPT_ID_MAX + 1], b[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    const struct kept t = keeprig_sandbox("u-2", 0);
    must(k, &r, &s, a);
    uint64_t mark = keep_mark(k);
    keeprig_list(&r, &old);
    must(k, &r, &t, b);
    keeprig_remove(&r, a);
    cr_assert_eq(keep_forget(k, a, NULL), 0);
    cr_assert_eq(keep_seen(k, "card-0", mark, &old, &found, NULL), 0);
    cr_assert_eq(found.n_gone + found.n_rebuilt + found.n_strays, 0);
    cr_assert(has(k, b), "it is newer than the list");
    cr_assert_not(has(k, a), "it was removed after the list was begun");
    seen_fini(&old);
    keeprig_fini(&r);
    keep_close(k);
}

Test(reconcile, a_list_that_is_not_whole_forgets_nothing)
{
    struct keep *k = open_in(NULL);
    struct keeprig r = {.name = "card-0"};
    struct seen none = {.partly = true};
    struct keep_found found;
    char id[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    must(k, &r, &s, id);
    cr_assert_eq(keep_seen(k, "card-0", keep_mark(k), &none, &found, NULL), 0);
    cr_assert(has(k, id));
    keeprig_fini(&r);
    keep_close(k);
}

static void lose_file(const char *dir, const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    (void)unlink(path); /* it may not be there */
}

/* `all`: the secret as well. */
static void check_rebuilt(bool all)
{
    char *dir = tmpdir_create();
    struct keep *k = open_in(dir);
    struct keeprig r = {.name = "card-0"};
    char a[KEPT_ID_MAX + 1], b[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    must(k, &r, &s, a);
    const struct kept c = keeprig_container("u-1", a, "c", 0);
    must(k, &r, &c, b);
    keep_close(k);
    lose_file(dir, "keep.db");
    lose_file(dir, "keep.db-wal");
    if (all) {
        lose_file(dir, "keep.db-mark");
        lose_file(dir, "keep.secret");
    }
    k = open_in(dir);
    cr_assert_eq(keeprig_see(&r, k).n_rebuilt, 2);
    cleanup_with(kept) struct kept *back = keep_find(k, b);
    cr_assert_not_null(back);
    cr_assert_str_eq(back->container, "c");
    cr_assert_str_eq(back->sandbox_id, a);
    cr_assert_str_eq(back->log_path, c.log_path);
    cr_assert_eq(back->mounts.size, all ? 0 : c.mounts.size);
    keep_close(k);
    keeprig_fini(&r);
    tmpdir_remove(dir);
}

Test(reconcile, a_lost_database_is_made_again)
{
    check_rebuilt(false);
    check_rebuilt(true);
}

Test(reconcile, an_unsealed_path_leads_nowhere_else)
{
    struct keep *k = open_in(NULL), *elsewhere = open_in(NULL);
    struct keeprig r = {.name = "card-0"};
    char a[KEPT_ID_MAX + 1], b[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    must(elsewhere, &r, &s, a);
    struct kept c = keeprig_container("u-1", a, "c", 0);
    c.log_path = "/etc/shadow";
    must(elsewhere, &r, &c, b);
    cr_assert_eq(keeprig_see(&r, k).n_rebuilt, 2, "its secret is new");
    cleanup_with(kept) struct kept *back = keep_find(k, b);
    cr_assert_str_eq(back->log_path, "");
    keeprig_fini(&r);
    keep_close(k);
    keep_close(elsewhere);
}

Test(reconcile, one_remote_says_nothing_of_another)
{
    struct keep *k = open_in(NULL);
    struct keeprig r = {.name = "card-0"};
    char a[KEPT_ID_MAX + 1], b[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    must(k, &r, &s, a);
    const struct kept c = keeprig_container("u-1", a, "c", 0);
    must(k, &r, &c, b);
    r.name = "card-1"; /* it lists what the other has, seals and all */
    struct keep_found f = keeprig_see(&r, k);
    cr_assert_eq(f.n_strays, 2);
    cr_assert_eq(f.n_rebuilt + f.n_gone + f.n_adopted, 0);
    cleanup_with(kept) struct kept *still = keep_find(k, a);
    cr_assert_str_eq(still->remote, "card-0");
    r.name = "card-0";
    cr_assert_eq(keep_forget(k, a, NULL), 0);
    r.name = "card-1";
    cr_assert_eq(keeprig_see(&r, k).n_strays, 2, "the seal names its remote");
    keeprig_fini(&r);
    keep_close(k);
}

Test(reconcile, an_announced_call_is_forgotten_late)
{
    virtual_begin();
    struct keep *k = open_in(NULL);
    struct keeprig r = {.name = "card-0", .lose_request = true};
    char id[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_lt(make(k, &r, &s, id), 0);
    virtual_take(KEEP_LATE_MS);
    cr_assert_eq(keeprig_see(&r, k).n_gone, 0);
    virtual_take(1);
    cr_assert_eq(keeprig_see(&r, k).n_gone, 1);
    cr_assert_eq(keep_count(k, "card-0", KEPT_ANNOUNCED), 0);
    keeprig_fini(&r);
    keep_close(k);
    virtual_end();
}

/* --- at random ---------------------------------------------------------------- */

enum { N_PODS = 6, N_STEPS = 3000, N_SEEDS = ROUNDS_OF(6) };

/* What the kubelet was told and has not removed. */
struct told {
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
};
struct model {
    uint64_t random;
    char *dir;
    struct keep *k;
    struct keeprig r;
    struct told told[N_PODS];
    bool alone; /* the database was lost, and nothing was listed since */
};

static unsigned pick(struct model *m, unsigned n)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->random >> 33) % n;
}

static void disturb(struct model *m)
{
    m->r.lose_reply = pick(m, 6) == 0;
    m->r.lose_request = pick(m, 6) == 0;
    m->r.refuse = pick(m, 12) == 0;
}

static void uid_of(unsigned pod, char uid[16])
{
    (void)snprintf(uid, 16, "u-%u", pod);
}

static void run_pod(struct model *m, unsigned pod)
{
    struct told *t = &m->told[pod];
    char uid[16], id[KEPT_ID_MAX + 1];
    uid_of(pod, uid);
    disturb(m);
    if (!t->sandbox[0]) {
        struct kept s = keeprig_sandbox(uid, 0);
        s.hash += pick(m, 8) == 0;
        if (make(m->k, &m->r, &s, id) == 0)
            memcpy(t->sandbox, id, sizeof id);
        return;
    }
    if (t->container[0])
        return;
    struct kept c = keeprig_container(uid, t->sandbox, "c", 0);
    c.hash += pick(m, 8) == 0;
    if (make(m->k, &m->r, &c, id) == 0)
        memcpy(t->container, id, sizeof id);
}

static void end_pod(struct model *m, unsigned pod)
{
    struct told *t = &m->told[pod];
    bool whole = pick(m, 2);
    char *id = whole ? t->sandbox : t->container;
    if (!*id)
        return;
    keeprig_remove(&m->r, id);
    if (pick(m, 8) > 0) /* or it is killed in between */
        cr_assert_eq(keep_forget(m->k, id, NULL), 0);
    *id = '\0';
    if (whole)
        t->container[0] = '\0';
}

/* A kill, with or without the loss of a file. */
static void restart(struct model *m)
{
    keep_close(m->k);
    if (pick(m, 4) == 0) {
        lose_file(m->dir, "keep.db");
        lose_file(m->dir, "keep.db-wal");
        m->alone = true;
    }
    m->k = open_in(m->dir);
}

/* What a runtime can have in any case: of each name one. */
static void check_once(struct model *m)
{
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++)
        for (size_t j = i + 1; j < KEEPRIG_OBJECTS; j++) {
            const struct keeprig_object *a = &m->r.objects[i];
            const struct keeprig_object *b = &m->r.objects[j];
            cr_assert_not(a->there && b->there && a->sandbox == b->sandbox &&
                          strcmp(a->uid, b->uid) == 0);
        }
}

/* All that the kubelet was told is known, as what it is, unless the database
 * was lost just now. */
static void check_known(struct model *m)
{
    for (unsigned pod = 0; pod < N_PODS && !m->alone; pod++) {
        const struct told *t = &m->told[pod];
        const char *ids[] = {t->sandbox, t->container};
        char uid[16];
        uid_of(pod, uid);
        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
            if (!*ids[i])
                continue;
            cleanup_with(kept) struct kept *found = keep_find(m->k, ids[i]);
            cr_assert_not_null(found, "%s of %s", ids[i], uid);
            cr_assert_str_eq(found->uid, uid);
            cr_assert_eq(found->kind, i ? KEPT_CONTAINER : KEPT_SANDBOX);
        }
    }
}

/* After a list the map is what is there, no more and no less; announced calls
 * may be left, whose time has not come. */
static void check_agreed(struct model *m)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(m->k);
    size_t n = 0;
    for (size_t i = 0; i < keep_view_count(v); i++) {
        const struct kept *k = keep_view_at(v, i);
        if (k->state != KEPT_MADE)
            continue;
        cr_assert_not_null(keeprig_find(&m->r, k->id), "%s", k->id);
        n++;
    }
    struct keep_found f = keeprig_see(&m->r, m->k);
    cr_assert_eq(f.n_adopted + f.n_rebuilt + f.n_gone, 0, "it is at rest");
    size_t there = 0;
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++)
        there += m->r.objects[i].there;
    cr_assert_eq(there, n + f.n_strays);
}

static void step(struct model *m)
{
    unsigned pod = pick(m, N_PODS);
    switch (pick(m, 12)) {
    case 0:
    case 1:
        end_pod(m, pod);
        break;
    case 2:
        restart(m);
        break;
    case 3:
    case 4:
        (void)keeprig_see(&m->r, m->k);
        (void)keeprig_see(&m->r, m->k); /* what waited for the first */
        m->alone = false;
        check_agreed(m);
        break;
    default:
        run_pod(m, pod);
    }
    check_once(m);
    check_known(m);
}

/* The kubelet asks until all is there. */
static void finish(struct model *m)
{
    for (unsigned i = 0; i < 4; i++)
        (void)keeprig_see(&m->r, m->k);
    m->alone = false;
    for (unsigned pod = 0; pod < N_PODS; pod++)
        for (unsigned i = 0; i < 60 && !m->told[pod].container[0]; i++)
            run_pod(m, pod);
    check_once(m);
    check_known(m);
    for (unsigned pod = 0; pod < N_PODS; pod++)
        cr_assert(m->told[pod].container[0], "pod %u is stuck", pod);
}

Test(reconcile, never_twice_never_forgotten)
{
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct model *m = xcalloc(1, sizeof *m);
        m->random = seed;
        m->r.name = "card-0";
        m->dir = tmpdir_create();
        m->k = open_in(m->dir);
        for (unsigned i = 0; i < N_STEPS; i++)
            step(m);
        finish(m);
        keep_close(m->k);
        keeprig_fini(&m->r);
        tmpdir_remove(m->dir);
        free(m);
    }
}
