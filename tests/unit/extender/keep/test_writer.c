#include <criterion/criterion.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "lib/base/jscan.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/await.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static enum node_status status_of(struct writer *w, const char *node)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t i = snapshot_find(s, node, strlen(node));
    cr_assert_neq(i, NODE_NONE, "%s is not there", node);
    return snapshot_node(s, (size_t)i)->status;
}

static size_t n_allocations(struct writer *w)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    return alloc_index_size(s->allocations);
}

Test(writer, publishes_binds_and_releases)
{
    struct writer *w = sim_writer(NULL);
    struct error err;
    bool created = false;
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_expect_eq(status_of(w, "n1"), NODE_READY);

    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(w, &d, "n1", &created, &err), 0, "%s", err.text);
    cr_expect(created);
    cr_expect_eq(n_allocations(w), 1);
    cr_expect_eq(sim_release(w, "p1"), 0);
    cr_expect_eq(sim_release(w, "p1"), -ENOENT);
    cr_expect_eq(n_allocations(w), 0);
    writer_stop(w);
}

Test(writer, repeats_a_bind_and_refuses_another_node)
{
    struct writer *w = sim_writer(NULL);
    struct error err;
    bool created = true;
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n2", 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    cr_expect_eq(sim_bind(w, &d, "n1", &created, NULL), 0);
    cr_expect_not(created);
    cr_expect_eq(sim_bind(w, &d, "n2", NULL, &err), -EEXIST);
    cr_expect(strstr(err.text, "n1"), "%s", err.text);
    cr_expect_eq(n_allocations(w), 1);
    writer_stop(w);
}

Test(writer, replaces_a_pod_that_was_made_again)
{
    struct writer *w = sim_writer(NULL);
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    d.exclusive = true;
    cr_assert_eq(sim_publish(w, "n1", 1, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    (void)snprintf(d.uid, sizeof d.uid, "another");
    cr_expect_eq(sim_bind(w, &d, "n1", NULL, NULL), 0,
                 "the room of its namesake is free");
    cr_expect_eq(n_allocations(w), 1);

    /* a new one that fits nowhere leaves the old one alone */
    (void)snprintf(d.uid, sizeof d.uid, "third");
    d.cards = d.pair_cards = 2;
    cr_expect_eq(sim_bind(w, &d, "n1", NULL, NULL), -EBUSY);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect(alloc_index_find_uid(s->allocations, "another"));
    writer_stop(w);
}

Test(writer, refuses_what_no_longer_fits_and_says_why)
{
    struct writer *w = sim_writer(NULL);
    struct error err;
    struct demand a = sim_pod("a", ROLE_HOST, "", 0);
    struct demand b = sim_pod("b", ROLE_HOST, "", 0);
    a.exclusive = b.exclusive = true;
    cr_assert_eq(sim_publish(w, "n1", 1, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &a, "n1", NULL, NULL), 0);
    cr_expect_eq(sim_bind(w, &b, "n1", NULL, &err), -EBUSY);
    cr_expect(strstr(err.text, "n1") && strlen(err.text) > 20, "%s", err.text);
    cr_expect_eq(sim_bind(w, &b, "nowhere", NULL, &err), -EBUSY);
    writer_stop(w);
}

Test(writer, keeps_everything_over_a_restart)
{
    char *dir = tmpdir_create();
    struct writer *w = sim_writer(dir);
    struct demand d = sim_pod("p1", ROLE_HOST, "job", 3);
    bool created = true;
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n1", 2, "boot", 2), 0);
    cr_assert_eq(sim_publish(w, "n1", 2, "boot-2", 1), 0);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    writer_stop(w);

    w = sim_writer(dir);
    cr_expect_eq(status_of(w, "n1"), NODE_READY);
    cr_expect_eq(sim_bind(w, &d, "n1", &created, NULL), 0);
    cr_expect_not(created);
    cr_expect_eq(sim_publish(w, "n1", 2, "boot", 9), -ESTALE);
    cr_expect_eq(sim_publish(w, "n1", 4, "boot-2", 1), -ESTALE);
    cr_expect_eq(sim_publish(w, "n1", 4, "boot-2", 2), 0);
    writer_stop(w);
    tmpdir_remove(dir);
}

Test(writer, notices_silence_and_return)
{
    clock_set_fake(1000000);
    struct writer *w = sim_writer(NULL);
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    cleanup_free char *json = sim_slice("n1", 4, "boot", 1, 0);
    char name[SLICE_NAME_MAX + 1];
    uint64_t version = 0;
    slice_name("n1", 0, name);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);

    clock_set_fake(1015000);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_READY);
    clock_set_fake(1015001);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_STALE);
    cr_expect_eq(sim_bind(w, &d, "n1", NULL, NULL), -EBUSY);

    cr_expect(writer_heartbeat(
        w, &(struct slice_cache_body){name, NULL, json, strlen(json)},
        &version));
    cr_expect_gt(version, 0);
    AWAIT(status_of(w, "n1") == NODE_READY);
    cr_expect_eq(status_of(w, "n1"), NODE_READY, "it comes back by itself");
    cr_expect_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);

    json[strlen(json) - 1] = ' ';
    cr_expect_not(writer_heartbeat(
        w, &(struct slice_cache_body){name, NULL, json, strlen(json)},
        &version));
    cr_expect_not(writer_heartbeat(
        w, &(struct slice_cache_body){"other", NULL, json, strlen(json)},
        &version));
    clock_set_fake(-1);
    writer_stop(w);
}

/* Whatever of it there is, nobody speaks for it. */
Test(writer, notices_the_silence_of_a_node_that_lacks_slices)
{
    char *dir = tmpdir_create();
    clock_set_fake(1000000);
    struct writer *w = sim_writer(dir);
    cr_assert_eq(sim_publish_one(w, "n1", "boot", 1, 0), 0);
    cr_assert_eq(sim_publish_one(w, "n2", "boot", 1, 0), 0);
    clock_set_fake(1015000);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_INCOMPLETE);
    clock_set_fake(1015001);
    cr_assert_eq(sim_publish_one(w, "n2", "boot", 1, 1), 0);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_STALE);
    cr_expect_eq(status_of(w, "n2"), NODE_INCOMPLETE, "it is heard");
    writer_stop(w);

    w = sim_writer(dir);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_STALE, "not by a restart");
    cr_expect_eq(status_of(w, "n2"), NODE_INCOMPLETE);
    for (size_t i = 1; i < SIM_SLICES; i++) {
        cr_assert_eq(sim_publish_one(w, "n1", "boot", 1, i), 0);
        cr_expect_eq(status_of(w, "n1"),
                     i + 1 < SIM_SLICES ? NODE_INCOMPLETE : NODE_READY);
    }
    clock_set_fake(-1);
    writer_stop(w);
    tmpdir_remove(dir);
}

Test(writer, knows_a_repeat_after_a_restart)
{
    char *dir = tmpdir_create();
    struct writer *w = sim_writer(dir);
    cleanup_free char *json = sim_slice("n1", 4, "boot", 1, 0);
    char name[SLICE_NAME_MAX + 1];
    uint64_t version = 0;
    slice_name("n1", 0, name);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    writer_stop(w);
    w = sim_writer(dir);
    cr_expect(writer_heartbeat(
        w, &(struct slice_cache_body){name, NULL, json, strlen(json)},
        &version));
    writer_stop(w);
    tmpdir_remove(dir);
}

/* --- slices as objects ------------------------------------------------- */

static void expect_json(const struct str *text)
{
    struct jscan s;
    jscan_init(&s, text->data, text->size);
    cr_expect(jscan_skip(&s) && jscan_end(&s), "%s", text->data);
}

Test(writer, gives_slices_back_with_a_version_and_a_uid)
{
    struct writer *w = sim_writer(NULL);
    char name[SLICE_NAME_MAX + 1];
    slice_name("n1", 0, name);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    struct writer_op op = {
        .kind = WRITER_GET_SLICE, .name = name, .out = STR_INIT(1 << 20)};
    cr_assert_eq(writer_run(w, &op), 0);
    expect_json(&op.out);
    cr_expect(strstr(op.out.data, "\"metadata\":{\"resourceVersion\":\"1\","
                                  "\"uid\":\""));
    cr_expect(strstr(op.out.data, "\"nodeName\":\"n1\""));

    str_reset(&op.out);
    op.name = "nothing";
    cr_expect_eq(writer_run(w, &op), -ENOENT);
    str_fini(&op.out);
    writer_stop(w);
}

Test(writer, lists_slices_page_by_page)
{
    struct writer *w = sim_writer(NULL);
    for (int i = 0; i < 5; i++) {
        char node[8];
        (void)snprintf(node, sizeof node, "n%d", i);
        cr_assert_eq(sim_publish(w, node, 2, "boot", 1), 0);
    }
    char after[SLICE_NAME_MAX + 1] = "";
    size_t n = 0, pages = 0;
    for (bool more = true; more; pages++) {
        struct writer_op op = {.kind = WRITER_LIST_SLICES,
                               .after = after,
                               .limit = 2,
                               .out = STR_INIT(1 << 20)};
        cr_assert_eq(writer_run(w, &op), 0);
        expect_json(&op.out);
        n += op.n_out;
        more = op.more;
        memcpy(after, op.last, sizeof after);
        str_fini(&op.out);
    }
    cr_expect_eq(n, 5);
    cr_expect_eq(pages, 3);

    struct writer_op op = {
        .kind = WRITER_LIST_SLICES, .node = "n3", .out = STR_INIT(1 << 20)};
    cr_assert_eq(writer_run(w, &op), 0);
    cr_expect_eq(op.n_out, 1);
    cr_expect_not(op.more);
    str_fini(&op.out);
    writer_stop(w);
}

Test(writer, refuses_slices_that_are_wrong)
{
    struct writer *w = sim_writer(NULL);
    cleanup_free char *json = sim_slice("n1", 2, "boot", 1, 0);
    struct writer_op op = {.kind = WRITER_PUT_SLICE,
                           .name = "another-name",
                           .body = json,
                           .body_size = strlen(json)};
    cr_expect_eq(writer_run(w, &op), -EINVAL);
    cr_expect(strstr(op.error.text, "metadata.name"), "%s", op.error.text);
    op.body = "{}";
    op.body_size = 2;
    cr_expect_eq(writer_run(w, &op), -EINVAL);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect_eq(s->n_nodes, 0);
    writer_stop(w);
}

Test(writer, removes_a_node_with_its_last_slice)
{
    struct writer *w = sim_writer(NULL);
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    char name[SLICE_NAME_MAX + 1];
    slice_name("n1", 0, name);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    struct writer_op op = {.kind = WRITER_DELETE_SLICE, .name = name};
    cr_expect_eq(writer_run(w, &op), 0);
    cr_expect_eq(writer_run(w, &op), -ENOENT);
    cr_expect_eq(n_allocations(w), 1, "what was promised stays promised");

    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect_eq(snapshot_node(s, 0)->n_allocations, 1, "and counts again");
    writer_stop(w);
}

/* --- many at once ------------------------------------------------------ */

enum { MANY = 64 };
static _Atomic int n_done;

static void count_done(struct writer_op *op)
{
    (void)op;
    n_done++;
}

Test(writer, takes_many_binds_in_one_batch)
{
    static struct demand pods[MANY];
    static struct writer_op ops[MANY];
    struct writer *w = sim_writer(NULL);
    cr_assert_eq(sim_publish(w, "n1", 16, "boot", 1), 0);
    n_done = 0;
    for (int i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%d", i);
        pods[i] = sim_pod(name, ROLE_HOST, "", 0);
        pods[i].exclusive = true;
        ops[i] = (struct writer_op){.kind = WRITER_BIND,
                                    .node = "n1",
                                    .demand = &pods[i],
                                    .out = STR_INIT(1 << 20),
                                    .done = count_done};
        writer_post(w, &ops[i]);
    }
    AWAIT(n_done >= MANY);
    cr_assert_eq(n_done, MANY);
    int bound = 0;
    for (int i = 0; i < MANY; i++) {
        cr_expect(ops[i].result == 0 || ops[i].result == -EBUSY);
        bound += ops[i].result == 0;
        str_fini(&ops[i].out);
    }
    cr_expect_eq(bound, 16, "as many as there are cards: %d", bound);
    cleanup_str struct str why = STR_INIT(4096);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect(sim_check(s, &why), "%s", str_text(&why));
    writer_stop(w);
}

Test(writer, refuses_a_directory_in_use)
{
    char *dir = tmpdir_create();
    struct writer *w = sim_writer(dir), *other = NULL;
    struct writer_config config = {.state_dir = dir, .fresh_ms = 15000};
    struct error err = {0};
    cr_expect_eq(writer_start(&config, &other, &err), -EBUSY);
    cr_expect(strstr(err.text, dir), "%s", err.text);
    writer_stop(w);
    tmpdir_remove(dir);
}

Test(writer, sweeps_out_what_simulations_leave_behind)
{
    struct writer *w = sim_writer(NULL);
    cr_assert_eq(sim_publish(w, "n1", 1, "boot", 1), 0);
    struct snapshot *s = writer_snapshot(w);
    struct node_state state = snapshot_node(s, 0)->state;
    for (uint32_t i = 0; i < 70000; i++) {
        state.free_cores[1] = i; /* as pods on drafts of this snapshot do */
        (void)state_intern_intern(s->states, &state);
    }
    snapshot_unref(s);
    writer_sweep(w);
    s = writer_snapshot(w);
    cr_expect_lt(state_intern_count(s->states), 10);
    snapshot_unref(s);
    writer_stop(w);
}

/* A node of 16 cards of which one is of an architecture of its own. */
static void put_odd_node(struct writer *w, int generation)
{
    cleanup_str struct str json = STR_INIT(64 << 10);
    str_addf(
        &json,
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
        "\"metadata\":{\"name\":\"odd-0\",\"annotations\":{"
        "\"biga.dev/boot-id\":\"b\"}},\"spec\":{\"driver\":"
        "\"xpu.biga.dev\",\"nodeName\":\"odd\",\"pool\":{\"name\":\"odd\","
        "\"generation\":%d,\"resourceSliceCount\":1},\"devices\":[",
        generation);
    for (int i = 0; i < 16; i++)
        str_addf(&json,
                 "%s{\"name\":\"card-%d\",\"attributes\":{\"biga.dev/kind\":{"
                 "\"string\":\"card\"},\"resource.kubernetes.io/pciBusID\":{"
                 "\"string\":\"0000:%02x:00.0\"},\"biga.dev/arch\":{\"string\":"
                 "\"a%d\"}}}",
                 i ? "," : "", i, i + 1, i ? 0 : generation);
    str_add(&json, "]}}");
    struct writer_op op = {.kind = WRITER_PUT_SLICE,
                           .name = "odd-0",
                           .body = json.data,
                           .body_size = json.size};
    cr_assert_eq(writer_run(w, &op), 0, "%s", op.error.text);
}

Test(writer, keeps_few_shapes_of_a_node_that_is_ever_another)
{
    struct writer *w = sim_writer(NULL);
    char name[16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(sim_publish(w, name, 1, "boot", 1), 0);
    }
    size_t most = 0;
    for (int generation = 1; generation <= 200; generation++) {
        put_odd_node(w, generation);
        cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
        size_t now = state_intern_shape_bytes(s->states);
        most = now > most ? now : most;
    }
    cr_expect_gt(most, 1 << 20);
    cr_expect_lt(most, 20 << 20, "%zu bytes", most);
    writer_stop(w);
}

Test(writer, a_silent_node_is_silent_after_a_restart)
{
    char *dir = tmpdir_create();
    clock_set_fake(1000000);
    struct writer *w = sim_writer(dir);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n2", 4, "boot", 1), 0);
    clock_set_fake(1015001);
    cr_assert_eq(sim_publish(w, "n2", 4, "boot", 2), 0);
    writer_sweep(w);
    cr_assert_eq(status_of(w, "n1"), NODE_STALE);
    writer_stop(w);

    w = sim_writer(dir);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_STALE);
    cr_expect_eq(status_of(w, "n2"), NODE_READY);
    cleanup_free char *json = sim_slice("n1", 4, "boot", 1, 0);
    char name[SLICE_NAME_MAX + 1];
    uint64_t version;
    slice_name("n1", 0, name);
    cr_expect(writer_heartbeat(
        w, &(struct slice_cache_body){name, NULL, json, strlen(json)},
        &version));
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_READY);
    writer_stop(w);

    w = sim_writer(dir);
    cr_expect_eq(status_of(w, "n1"), NODE_READY, "it was heard");
    clock_set_fake(-1);
    writer_stop(w);
    tmpdir_remove(dir);
}
