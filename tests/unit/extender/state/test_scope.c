#include "extender/state/scope.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/state/overcommit.h"
#include "extender/state/snapshot.h"
#include "extender/state/usage.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static const char *const names[] = {"team-a", "team-b"};

Test(scope, sees_its_namespaces_alone)
{
    cleanup_with(scope) struct scope *s = scope_create(names, 2);
    cleanup_with(scope) struct scope *one = scope_create(names, 1);
    cleanup_str struct str text = STR_INIT(64);
    cr_expect(scope_sees(s, "team-a") && scope_sees(s, "team-b"));
    cr_expect_not(scope_sees(s, "team"));
    cr_expect_not(scope_sees(s, "team-ab"));
    cr_expect_not(scope_sees(s, ""));
    cr_expect(scope_sees_object(s, "team-b/pod"));
    cr_expect_not(scope_sees_object(s, "team-c/team-a"));
    cr_expect(scope_sees(NULL, "any") && scope_sees_object(NULL, "any/pod"));
    cr_expect_neq(scope_hash(s), scope_hash(one));
    cr_expect_eq(scope_hash(NULL), 0);
    scope_write(s, &text);
    cr_expect_str_eq(str_text(&text), "team-a, team-b");
}

static void bind_as(struct writer *w, const char *namespace, struct demand d,
                    const char *node)
{
    (void)snprintf(d.namespace, sizeof d.namespace, "%s", namespace);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s-%s", namespace, d.name);
    cr_assert_eq(sim_bind(w, &d, node, NULL, NULL), 0);
}

static void bind(struct writer *w, const char *namespace, const char *name,
                 const char *node)
{
    bind_as(w, namespace, sim_need(sim_pod(name, ROLE_XPU, name, 0), 1, 64),
            node);
}

/* How many of a node are without a name. */
static size_t hidden(const struct node *n)
{
    size_t found = 0;
    for (size_t i = 0; i < n->n_allocations; i++) {
        const struct demand *d = &n->allocations[i]->demand;
        bool is_hidden = strcmp(d->namespace, SCOPE_HIDDEN_NAMESPACE) == 0;
        cr_expect_eq(is_hidden, strcmp(d->name, SCOPE_HIDDEN_NAME) == 0);
        cr_expect(!is_hidden || (!*d->job && !*d->uid));
        found += is_hidden;
    }
    return found;
}

Test(scope, of_a_snapshot_hides_what_others_have)
{
    struct writer *w = sim_writer(NULL);
    cr_assert_eq(sim_publish(w, "n0", 2, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n1", 2, "boot", 1), 0);
    bind(w, "team-a", "mine", "n0");
    bind(w, "team-c", "theirs", "n0");
    bind(w, "team-a", "alone", "n1");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_with(scope) struct scope *scope = scope_create(names, 1);
    cleanup_with(snapshot) struct snapshot *seen = snapshot_scoped(s, scope,
                                                                   NULL);
    cr_expect_eq(alloc_index_size(seen->allocations), 2);
    cr_expect_not_null(alloc_index_find(seen->allocations, "team-a", "mine"));
    cr_expect_null(alloc_index_find(seen->allocations, "team-c", "theirs"));
    cr_expect_eq(snapshot_node(seen, 0)->n_allocations, 2);
    cr_expect_eq(hidden(snapshot_node(seen, 0)), 1);
    cr_expect_eq(snapshot_node(seen, 1), snapshot_node(s, 1),
                 "what has nothing to hide is not copied");
    cr_expect_eq(snapshot_state(seen, 0), snapshot_state(s, 0));
    cr_expect_eq(snapshot_whole(seen), s);
    cr_expect_eq(snapshot_whole(s), s);
    cr_expect_eq(hidden(snapshot_node(s, 0)), 0, "it is unchanged");
    cr_expect_eq(alloc_index_size(s->allocations), 3);
    writer_stop(w);
}

static enum share_state share_of(const struct snapshot *s,
                                 const struct policy *policy)
{
    struct usage_share shares[POLICY_SERVICES_MAX];
    struct usage usage;
    node_usage(snapshot_node(s, 0), policy, &usage);
    cr_assert_eq(usage_shares(&usage, 0, shares), 1);
    return shares[0].state;
}

/* A service that is not seen has its share all the same, and nobody has more
 * than there is because of it. */
Test(scope, of_a_snapshot_counts_what_it_hides)
{
    static const char text[] = "{\"services\":[{\"namespace\":\"team-c\","
                               "\"name\":\"svc\",\"cores\":12}]}";
    cleanup_with(policy) struct policy *policy = NULL;
    struct error err = {0};
    struct writer *w = sim_writer(NULL);
    cr_assert_eq(policy_read(text, strlen(text), &policy, &err), 0);
    cr_assert_eq(sim_publish(w, "n0", 1, "boot", 1), 0);
    bind(w, "team-a", "mine", "n0");
    bind_as(w, "team-c",
            sim_need(sim_pod("svc-0", ROLE_SERVICE, "svc", 0), 12, 64), "n0");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_with(scope) struct scope *scope = scope_create(names, 1);
    cleanup_with(snapshot) struct snapshot *seen = snapshot_scoped(s, scope,
                                                                   NULL);
    const struct allocation *mine = alloc_index_find(seen->allocations,
                                                     "team-a", "mine");
    cr_assert_not_null(mine);
    cr_expect_eq(hidden(snapshot_node(seen, 0)), 1);
    cr_expect_eq(share_of(s, policy), SHARE_HELD);
    cr_expect_eq(share_of(seen, policy), SHARE_HELD);
    cr_expect_eq(overcommit_find(snapshot_node(seen, 0), policy, mine, NULL),
                 OVERCOMMIT_NOT);
    writer_stop(w);
}

/* --- one after the other ----------------------------------------------------- */

enum { NODES = 600, PODS = 900, ROUNDS = 60 };

/* A pod comes or leaves, or a node does. */
static void change(struct draft *d, uint64_t *random)
{
    static const char *const namespaces[] = {"team-a", "team-b", "team-c"};
    char node[16], name[16];
    unsigned pod = sim_random(random) % PODS;
    (void)snprintf(node, sizeof node, "node%03u", sim_random(random) % NODES);
    (void)snprintf(name, sizeof name, "p%u", pod);
    struct demand p = sim_pod(name, ROLE_HOST, "job", 0);
    (void)snprintf(p.namespace, sizeof p.namespace, "%s", namespaces[pod % 3]);
    switch (sim_random(random) % 8) {
    case 0:
        draft_remove_node(d, node);
        return;
    case 1:
    case 2: {
        cleanup_with(topo) struct topo *topo = simhost_topo(node, 1);
        simfleet_put(d, topo);
        return;
    }
    case 3:
        (void)draft_release(d, p.namespace, p.name);
        return;
    default:
        draft_allocate(d, allocation_create(&p, node));
    }
}

static void expect_same(const struct snapshot *a, const struct snapshot *b)
{
    size_t n, m;
    cleanup_free const struct allocation **x = alloc_index_list(a->allocations,
                                                                &n);
    cleanup_free const struct allocation **y = alloc_index_list(b->allocations,
                                                                &m);
    cr_assert_eq(n, m);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(x[i], y[i]);
    cr_assert_eq(a->n_nodes, b->n_nodes);
    for (size_t i = 0; i < a->n_nodes; i++) {
        const struct node *p = snapshot_node(a, i), *q = snapshot_node(b, i);
        cr_assert_eq(node_whole(p), node_whole(q));
        cr_assert_eq(snapshot_state(a, i), snapshot_state(b, i));
        cr_assert_eq(p->n_allocations, q->n_allocations);
        cr_assert_eq(hidden(p), hidden(q));
        for (size_t k = 0; k < p->n_allocations; k++)
            cr_assert_eq(
                allocation_compare_pod(p->allocations[k], q->allocations[k]),
                0);
    }
}

/* Versions of nodes that were hidden already are not copied again. */
static size_t expect_reused(const struct snapshot *seen,
                            const struct snapshot *last)
{
    size_t n = 0;
    for (size_t i = 0; i < seen->n_nodes; i++) {
        const struct node *is = snapshot_node(seen, i);
        int32_t at = snapshot_find(last, is->name, strlen(is->name));
        if (!is->whole || at < 0 ||
            snapshot_node(last, (size_t)at)->whole != is->whole)
            continue;
        cr_assert_eq(snapshot_node(last, (size_t)at), is, "%s", is->name);
        n++;
    }
    return n;
}

Test(scope, of_the_next_snapshot_is_made_of_the_last)
{
    uint64_t random = 3;
    size_t reused = 0;
    cleanup_with(scope) struct scope *scope = scope_create(names, 1);
    struct snapshot *s = simfleet_create(NODES, 1);
    struct snapshot *last = snapshot_scoped(s, scope, NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct draft *d = draft_create(s);
        for (unsigned k = sim_random(&random) % 20; k > 0; k--)
            change(d, &random);
        snapshot_unref(s);
        s = draft_commit(d);
        struct snapshot *seen = snapshot_scoped(s, scope, last);
        cleanup_with(snapshot) struct snapshot *anew = snapshot_scoped(s, scope,
                                                                       NULL);
        expect_same(seen, anew);
        reused += expect_reused(seen, last);
        snapshot_unref(last);
        last = seen;
    }
    cr_expect_gt(reused, 0);
    snapshot_unref(last);
    snapshot_unref(s);
}
