#include "extender/state/scope.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/state/snapshot.h"
#include "lib/base/mem.h"
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

static void bind(struct writer *w, const char *namespace, const char *name,
                 const char *node)
{
    struct demand d = sim_need(sim_pod(name, ROLE_XPU, name, 0), 1, 64);
    (void)snprintf(d.namespace, sizeof d.namespace, "%s", namespace);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s-%s", namespace, name);
    cr_assert_eq(sim_bind(w, &d, node, NULL, NULL), 0);
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
    cleanup_with(snapshot) struct snapshot *seen = snapshot_scoped(s, scope);
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
