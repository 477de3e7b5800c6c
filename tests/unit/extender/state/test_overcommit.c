/* Pods that have more than their node: the node told of more than it has, and
 * then of what it has. */
#include <criterion/criterion.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "extender/state/overcommit.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

enum { LYING_CORES = 64, CORES = 16 };

static struct node_reports {
    size_t n;
    char text[200]; /* the last one */
} told;

static void on_overfull(void *ctx, const struct allocation *a, const char *text)
{
    (void)ctx;
    told.n++;
    (void)snprintf(told.text, sizeof told.text, "%s: %s", a->demand.name, text);
}

static struct writer *start(enum store_kind kind)
{
    struct writer_config config = {.store = kind, .fresh_ms = 15000};
    struct writer *w = NULL;
    struct error err = {0};
    memset(&told, 0, sizeof told);
    cr_assert_eq(writer_start(&config, &w, &err), 0, "%s", err.text);
    writer_on_overfull(w, on_overfull, NULL);
    return w;
}

/* A simhost of one card, but for its cores. */
static void publish(struct writer *w, int cores, int64_t generation)
{
    char from[32], to[32], name[SLICE_NAME_MAX + 1];
    cleanup_free char *json = sim_slice("n1", 1, "boot", generation, 0);
    cleanup_str struct str lie = STR_INIT(SLICE_BODY_MAX);
    (void)snprintf(from, sizeof from, "{\"value\":\"%d\"}", CORES);
    (void)snprintf(to, sizeof to, "{\"value\":\"%d\"}", cores);
    const char *at = strstr(json, from);
    cr_assert_not_null(at, "%s", json);
    str_add_n(&lie, json, (size_t)(at - json));
    str_addf(&lie, "%s%s", to, at + strlen(from));
    slice_name("n1", 0, name);
    struct writer_op op = {.kind = WRITER_PUT_SLICE,
                           .name = name,
                           .body = str_text(&lie),
                           .body_size = lie.size};
    cr_assert_eq(writer_run(w, &op), 0, "%s", op.error.text);
}

static void bind(struct writer *w, const char *name, uint32_t cores)
{
    struct demand d = sim_need(sim_pod(name, ROLE_XPU, "", 0), cores, 1024);
    struct error err = {0};
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, &err), 0, "%s", err.text);
}

/* What is wrong with a pod now; "" nothing. */
static void assert_says(struct writer *w, const char *pod, const char *text)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_str struct str said = STR_INIT(1000);
    const struct node *node = snapshot_node(s, 0);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", pod);
    cr_assert_not_null(a);
    cr_expect_eq(overcommit_find(node, NULL, a, &said) == OVERCOMMIT_NOT,
                 !*text);
    cr_expect_str_eq(str_text(&said), text);
}

static const enum store_kind kinds[] = {STORE_KUBERNETES, STORE_SQLITE};

/* The lie lets two pods in; the truth has room for one. */
Test(overcommit, what_a_lie_let_in_is_told_when_it_ends)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct writer *w = start(kinds[i]);
        publish(w, LYING_CORES, 1);
        bind(w, "p1", 12);
        bind(w, "p2", 12);
        cr_expect_eq(writer_conflicts(w), 0);
        publish(w, CORES, 2);
        cr_expect_eq(writer_conflicts(w), 2);
        cr_expect_eq(told.n, 2);
        assert_says(w, "p1",
                    "card-0000-12-00 has 16 cores, its pods have more");
        assert_says(w, "p2",
                    "card-0000-12-00 has 16 cores, its pods have more");
        cr_expect(strstr(told.text, ": card-0000-12-00 has 16 cores"), "%s",
                  told.text);

        publish(w, CORES - 1, 3); /* they are known */
        cr_expect_eq(told.n, 2);
        publish(w, 8, 4);
        cr_expect_eq(told.n, 2);
        cr_expect_eq(sim_release(w, "p2"), 0);
        assert_says(w, "p1", "card-0000-12-00 has 8 cores, its pods have more");
        publish(w, CORES, 5);
        assert_says(w, "p1", "");
        publish(w, 8, 6); /* again: it is news */
        cr_expect_eq(told.n, 3);
        writer_stop(w);
    }
}

Test(overcommit, a_card_that_is_gone_is_told)
{
    struct writer *w = start(STORE_SQLITE);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    for (int i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%d", i);
        bind(w, name, 16);
    }
    cr_assert_eq(sim_publish(w, "n1", 3, "boot", 2), 0);
    cr_expect_eq(told.n, 1);
    cr_expect(strstr(told.text, ": card-0000-23-00 is not on node n1"), "%s",
              told.text);
    writer_stop(w);
}

/* Heartbeats and what does not concern cards change nothing. */
Test(overcommit, nothing_is_told_of_what_fits)
{
    struct writer *w = start(STORE_SQLITE);
    publish(w, CORES, 1);
    bind(w, "p1", 8);
    bind(w, "p2", 8);
    for (int64_t g = 2; g < 6; g++)
        publish(w, CORES + (int)(g % 2), g);
    cr_expect_eq(told.n, 0);
    cr_expect_eq(writer_conflicts(w), 0);
    writer_on_overfull(w, NULL, NULL);
    publish(w, 4, 7);
    cr_expect_eq(told.n, 0, "nobody listens any more");
    cr_expect_eq(writer_conflicts(w), 2);
    writer_stop(w);
}
