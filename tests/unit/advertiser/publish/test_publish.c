/* Publishing in virtual time against a server that lives in this file. */
#include "advertiser/publish/publish.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/describe/hosts.h"
#include "advertiser/publish/publisher.h"
#include "advertiser/sim/sim_hosts.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "model/topo/topo_builder.h"

enum { STORED_MAX = 64, LOG_MAX = 4096 };

struct server {
    struct {
        char path[PUBLISH_PATH_MAX];
        char *body;
    } stored[STORED_MAX];
    size_t n_stored;
    bool down;          /* no answer at all */
    long status;        /* answer each PUT with it; 0: as it should be */
    unsigned conflicts; /* so many PUTs get a 409 */
    struct {
        int64_t at;
        char method; /* G, P, D */
        char path[PUBLISH_PATH_MAX];
        uint64_t body; /* a cheap sum */
    } log[LOG_MAX];
    size_t n_log;
};

static int64_t now = 1000;

static char **server_find(struct server *s, const char *path)
{
    for (size_t i = 0; i < s->n_stored; i++)
        if (s->stored[i].body && strcmp(s->stored[i].path, path) == 0)
            return &s->stored[i].body;
    return NULL;
}

static size_t server_count(const struct server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_stored; i++)
        n += s->stored[i].body != NULL;
    return n;
}

static void server_clear(struct server *s)
{
    for (size_t i = 0; i < s->n_stored; i++)
        free(s->stored[i].body);
    s->n_stored = 0;
}

static uint64_t sum(const struct str *body)
{
    uint64_t n = body->size;
    for (size_t i = 0; i < body->size; i++)
        n = n * 31 + (unsigned char)body->data[i];
    return n;
}

static long server_put(struct server *s, const struct publish_request *rq)
{
    char **old = server_find(s, rq->path);
    if (s->status)
        return s->status;
    if (s->conflicts > 0) {
        s->conflicts--;
        return 409;
    }
    if (old) {
        free(*old);
        *old = xstrdup(str_text(&rq->body));
        return 200;
    }
    cr_assert_lt(s->n_stored, STORED_MAX);
    (void)snprintf(s->stored[s->n_stored].path, PUBLISH_PATH_MAX, "%s",
                   rq->path);
    s->stored[s->n_stored++].body = xstrdup(str_text(&rq->body));
    return 201;
}

static int server_send(void *ctx, const struct publish_request *rq,
                       struct http_answer *ret_answer, struct error *err)
{
    struct server *s = ctx;
    cr_assert_lt(s->n_log, LOG_MAX);
    s->log[s->n_log].at = now;
    s->log[s->n_log].method = rq->method[0];
    (void)snprintf(s->log[s->n_log].path, PUBLISH_PATH_MAX, "%s", rq->path);
    s->log[s->n_log++].body = sum(&rq->body);
    if (s->down)
        return error_set(err, ECONNREFUSED, "nobody is there");
    char **there = server_find(s, rq->path);
    str_reset(&ret_answer->body);
    if (rq->method[0] == 'P') {
        ret_answer->status = server_put(s, rq);
        return 0;
    }
    ret_answer->status = there ? 200 : 404;
    if (there && rq->method[0] == 'G')
        str_add(&ret_answer->body, *there);
    if (there && rq->method[0] == 'D') {
        free(*there);
        *there = NULL;
    }
    return 0;
}

/* Let time go on until `until`, sending whatever falls due. */
static void run_until(struct publisher *f, int64_t until)
{
    while (publisher_due(f) <= until) {
        if (publisher_due(f) > now)
            now = publisher_due(f);
        cr_assert(publisher_step(f, now));
    }
    now = until;
}

static const struct publish_config config = {
    .boot_id = "boot-1",
    .heartbeat_ms = 5000,
    .backoff_min_ms = 500,
    .backoff_max_ms = 30000,
};

/* A node with so many NICs. */
static struct topo *make_topo(const char *node, unsigned n_nics)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(node);
    for (unsigned i = 0; i < n_nics; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "nic-%u", i);
        topo_builder_add(
            b,
            &(struct device){
                .kind = DEVICE_NIC, .id = id, .numa = -1, .package = -1},
            NULL);
    }
    struct topo *topo;
    struct error err;
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    return topo;
}

static struct publisher *fleet_of_one(struct server *s, unsigned n_nics,
                                      const struct publish_config *c)
{
    cleanup_with(topo) struct topo *topo = make_topo("h", n_nics);
    struct publisher *f = publisher_create(&publish_direct, c, server_send, s);
    log_set_level((enum log_level)(LOG_ERROR + 1));
    publisher_add(f, topo, now);
    return f;
}

static void update(struct publisher *f, unsigned n_nics)
{
    cleanup_with(topo) struct topo *topo = make_topo("h", n_nics);
    publisher_update(f, 0, topo, now);
}

/* What was sent since `from`, as "GPPD". */
static const char *sent(const struct server *s, size_t from)
{
    static char text[LOG_MAX + 1];
    size_t n = 0;
    for (size_t i = from; i < s->n_log; i++)
        text[n++] = s->log[i].method;
    text[n] = '\0';
    return text;
}

static int64_t generation_of(struct server *s, const char *name)
{
    char path[PUBLISH_PATH_MAX];
    cleanup_with(slice) struct slice *slice = NULL;
    struct error err;
    (void)snprintf(path, sizeof path,
                   "/apis/resource.k8s.io/v1/resourceslices/%s", name);
    char **body = server_find(s, path);
    if (!body)
        return 0;
    cr_assert_eq(slice_decode(*body, strlen(*body), &slice, &err), 0, "%s",
                 err.text);
    return slice_get_epoch(slice)->generation;
}

Test(publish, start_then_heartbeats_of_equal_bytes)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 3, &config);
    int64_t start = now;
    run_until(f, start + 14999);
    cr_assert_str_eq(sent(&s, 0), "GPPP");
    for (size_t i = 2; i < 4; i++) {
        cr_assert_eq(s.log[i].at, start + (int64_t)(i - 1) * 5000);
        cr_assert_eq(s.log[i].body, s.log[1].body);
        cr_assert_str_eq(s.log[i].path, s.log[1].path);
    }
    cr_assert_eq(generation_of(&s, "h-xpu.biga.dev-0"), 1);
    cr_assert_eq(publisher_n_published(f), 1);
    publisher_destroy(f);
    server_clear(&s);
}

Test(publish, change_is_published_at_once_one_generation_up)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 3, &config);
    run_until(f, now + 1000);
    size_t before = s.n_log;
    update(f, 3); /* the same: nothing */
    run_until(f, now + 1000);
    cr_assert_eq(s.n_log, before);
    update(f, 4);
    run_until(f, now);
    cr_assert_str_eq(sent(&s, before), "P");
    cr_assert_eq(generation_of(&s, "h-xpu.biga.dev-0"), 2);
    publisher_destroy(f);
    server_clear(&s);
}

Test(publish, restart_keeps_or_raises_the_generation)
{
    struct server s = {0};
    const struct {
        unsigned n_nics;
        const char *boot_id;
        int64_t generation;
    } starts[] = {{3, "boot-1", 1}, {3, "boot-1", 1}, {4, "boot-1", 2},
                  {4, "boot-1", 2}, {3, "boot-1", 3}, {3, "boot-2", 1}};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        struct publish_config c = config;
        c.boot_id = starts[i].boot_id;
        struct publisher *f = fleet_of_one(&s, starts[i].n_nics, &c);
        run_until(f, now + 100);
        cr_expect_eq(generation_of(&s, "h-xpu.biga.dev-0"),
                     starts[i].generation, "start %zu", i);
        publisher_stop(f, false, now);
        cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
        publisher_destroy(f); /* a kill: nothing is withdrawn */
    }
    server_clear(&s);
}

Test(publish, pool_of_several_slices_shrinks)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 150, &config);
    run_until(f, now + 5000);
    cr_assert_str_eq(sent(&s, 0), "GPPPPPP");
    cr_assert_eq(server_count(&s), 3);
    size_t before = s.n_log;
    update(f, 100);
    run_until(f, now);
    cr_assert_str_eq(sent(&s, before), "PPD");
    cr_assert_eq(server_count(&s), 2);
    cr_assert_eq(generation_of(&s, "h-xpu.biga.dev-1"), 2);
    publisher_destroy(f);

    /* a restart finds what an earlier, bigger pool left */
    f = fleet_of_one(&s, 3, &config);
    before = s.n_log;
    run_until(f, now);
    cr_assert_str_eq(sent(&s, before), "GPD");
    cr_assert_eq(server_count(&s), 1);
    publisher_destroy(f);
    server_clear(&s);
}

/* A change may come before the round of the last one has ended. */
Test(publish, change_in_the_middle_of_a_round)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 150, &config);
    cr_assert(publisher_step(f, now)); /* GET */
    cr_assert(publisher_step(f, now)); /* PUT 0 */
    update(f, 65);
    run_until(f, now);
    cr_assert_str_eq(sent(&s, 0), "GPPPD");
    cr_assert_eq(generation_of(&s, "h-xpu.biga.dev-0"), 2);
    cr_assert_eq(generation_of(&s, "h-xpu.biga.dev-1"), 2);
    publisher_destroy(f);
    server_clear(&s);
}

Test(publish, heartbeat_restores_what_the_server_lost)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 150, &config);
    run_until(f, now + 1000);
    server_clear(&s);
    run_until(f, now + 5000);
    cr_assert_eq(server_count(&s), 3);
    cr_assert_eq(generation_of(&s, "h-xpu.biga.dev-2"), 1);
    publisher_destroy(f);
    server_clear(&s);
}

static void assert_back_off(const struct server *s, size_t from)
{
    int64_t wait = 500;
    for (size_t i = from + 1; i < s->n_log; i++) {
        int64_t gap = s->log[i].at - s->log[i - 1].at;
        cr_expect(gap >= wait / 2 && gap <= wait, "try %zu: %lld of %lld", i,
                  (long long)gap, (long long)wait);
        wait = wait * 2 < 30000 ? wait * 2 : 30000;
    }
}

Test(publish, outage_is_survived_with_back_off_and_jitter)
{
    struct server s = {.down = true};
    struct publisher *f = fleet_of_one(&s, 3, &config);
    run_until(f, now + 600000);
    cr_assert_gt(s.n_log, 20);
    assert_back_off(&s, 0);
    s.down = false;
    run_until(f, now + 30000);
    cr_assert_eq(server_count(&s), 1);

    size_t before = s.n_log;
    s.down = true;
    run_until(f, now + 300000);
    assert_back_off(&s, before);
    s.down = false;
    run_until(f, now + 30000);
    before = s.n_log;
    run_until(f, now + 10000); /* the usual pace again */
    cr_assert_str_eq(sent(&s, before), "PP");
    publisher_destroy(f);
    server_clear(&s);
}

/* Neither a server error nor a refusal of our content ends it. */
Test(publish, errors_are_tried_again)
{
    static const long statuses[] = {500, 503, 507, 400, 413, 404, 302, 429};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct server s = {.status = statuses[i]};
        struct publisher *f = fleet_of_one(&s, 3, &config);
        run_until(f, now + 100000);
        cr_assert_gt(s.n_log, 5);
        assert_back_off(&s, 1);
        s.status = 0;
        run_until(f, now + 30000);
        cr_assert_eq(server_count(&s), 1);
        publisher_destroy(f);
        server_clear(&s);
    }
}

Test(publish, jitter_differs_between_nodes)
{
    struct server a = {.down = true}, b = {.down = true};
    struct publisher *f = fleet_of_one(&a, 3, &config);
    struct publisher *g = publisher_create(&publish_direct, &config,
                                           server_send, &b);
    cleanup_with(topo) struct topo *topo = make_topo("other", 3);
    int64_t start = now;
    publisher_add(g, topo, start);
    run_until(f, start + 20000);
    now = start;
    run_until(g, start + 20000);
    bool differ = a.n_log != b.n_log;
    for (size_t i = 0; i < a.n_log && !differ; i++)
        differ = a.log[i].at != b.log[i].at;
    cr_assert(differ);
    publisher_destroy(f);
    publisher_destroy(g);
}

Test(publish, conflict_at_the_start_is_gone_above_once)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 3, &config);
    run_until(f, now);
    update(f, 4);
    run_until(f, now); /* generation 2 is there */
    publisher_destroy(f);

    /* between our GET and our PUT somebody raised it to 2 */
    struct server t = {.conflicts = 1};
    f = fleet_of_one(&t, 3, &config);
    cr_assert(publisher_step(f, now)); /* GET: nothing there */
    (void)snprintf(t.stored[0].path, PUBLISH_PATH_MAX, "%s", s.stored[0].path);
    t.stored[0].body = s.stored[0].body;
    t.n_stored = 1;
    s.n_stored = 0;
    run_until(f, now);
    cr_assert_str_eq(sent(&t, 0), "GPGP");
    cr_assert_eq(generation_of(&t, "h-xpu.biga.dev-0"), 3);
    publisher_destroy(f);
    server_clear(&t);
}

Test(publish, second_conflict_means_superseded)
{
    struct server s = {.status = 409};
    struct publisher *f = fleet_of_one(&s, 3, &config);
    run_until(f, now);
    cr_assert_str_eq(sent(&s, 0), "GPGP");
    run_until(f, now + 300000); /* slowly, and nothing but PUT */
    cr_assert_geq(s.n_log, 4 + 10);
    cr_assert_leq(s.n_log, 4 + 20);
    for (size_t i = 4; i < s.n_log; i++)
        cr_assert_eq(s.log[i].method, 'P');
    cr_assert_eq(publisher_n_published(f), 0);
    /* who was superseded withdraws nothing */
    size_t before = s.n_log;
    publisher_stop(f, true, now);
    cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
    cr_assert_eq(s.n_log, before);
    publisher_destroy(f);
}

Test(publish, superseded_later_does_not_take_over)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 3, &config);
    run_until(f, now + 1000);
    s.status = 409;
    size_t before = s.n_log;
    run_until(f, now + 60000);
    for (size_t i = before; i < s.n_log; i++)
        cr_assert_eq(s.log[i].body, s.log[1].body, "the same generation");
    update(f, 4); /* a change takes nothing over either */
    before = s.n_log;
    run_until(f, now + 10);
    cr_assert_eq(s.n_log, before);
    /* the other one has gone, and the server forgot it */
    s.status = 0;
    server_clear(&s);
    run_until(f, now + 30000);
    cr_assert_eq(server_count(&s), 1);
    before = s.n_log;
    run_until(f, now + 10000);
    cr_assert_str_eq(sent(&s, before), "PP");
    publisher_destroy(f);
    server_clear(&s);
}

Test(publish, clean_stop_withdraws_the_first_slice_last)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 150, &config);
    run_until(f, now + 1000);
    size_t before = s.n_log;
    publisher_stop(f, true, now);
    run_until(f, now);
    cr_assert_str_eq(sent(&s, before), "DDD");
    cr_assert_str_eq(strrchr(s.log[s.n_log - 1].path, '/') + 1,
                     "h-xpu.biga.dev-0");
    cr_assert_eq(server_count(&s), 0);
    cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
    cr_assert_not(publisher_left_slices(f));
    publisher_destroy(f);
    server_clear(&s);
}

Test(publish, stop_during_an_outage_ends_and_says_so)
{
    struct server s = {0};
    struct publisher *f = fleet_of_one(&s, 150, &config);
    run_until(f, now + 1000);
    s.down = true;
    publisher_stop(f, true, now);
    run_until(f, now);
    cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
    cr_assert(publisher_left_slices(f));
    publisher_destroy(f);
    server_clear(&s);
}

/* Before anything was accepted there is nothing of ours to delete. */
Test(publish, stop_before_the_first_answer_sends_nothing)
{
    struct server s = {.down = true};
    struct publisher *f = fleet_of_one(&s, 3, &config);
    run_until(f, now + 1000);
    size_t before = s.n_log;
    publisher_stop(f, true, now);
    cr_assert_eq(publisher_due(f), PUBLISH_NEVER);
    cr_assert_eq(s.n_log, before);
    publisher_destroy(f);
}

/* --- many nodes --------------------------------------------------------- */

Test(fleet, publishes_all_and_keeps_them_alive)
{
    struct server s = {0};
    struct publisher *f = publisher_create(&publish_direct, &config,
                                           server_send, &s);
    log_set_level((enum log_level)(LOG_ERROR + 1));
    for (size_t i = 0; i < 21; i++) {
        cleanup_with(topo) struct topo *topo = NULL;
        struct error err;
        cr_assert_eq(sim_hosts_topo("lab", "", i, 21, &topo, &err), 0, "%s",
                     err.text);
        publisher_add(f, topo, now);
    }
    run_until(f, now + 4999);
    cr_assert_eq(s.n_log, 42);
    cr_assert_eq(publisher_n_published(f), 21);
    cr_assert_eq(server_count(&s), 21);
    run_until(f, now + 10000);
    cr_assert_eq(s.n_log, 42 + 2 * 21);
    publisher_stop(f, true, now);
    run_until(f, now);
    cr_assert_eq(server_count(&s), 0);
    publisher_destroy(f);
    server_clear(&s);
}

/* An outage is tried by one of them, not by all. */
Test(fleet, one_connection_backs_off_once)
{
    struct server s = {0};
    struct publisher *f = publisher_create(&publish_direct, &config,
                                           server_send, &s);
    log_set_level((enum log_level)(LOG_ERROR + 1));
    for (size_t i = 0; i < 50; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "n%zu", i);
        cleanup_with(topo) struct topo *topo = make_topo(name, 1);
        publisher_add(f, topo, now);
    }
    run_until(f, now + 1000);
    cr_assert_eq(publisher_n_published(f), 50);
    s.down = true;
    size_t before = s.n_log;
    run_until(f, now + 120000);
    cr_assert_leq(s.n_log - before, 20);
    assert_back_off(&s, before);
    s.down = false;
    before = s.n_log;
    run_until(f, now + 30000);
    cr_assert_geq(s.n_log - before, 50);
    publisher_destroy(f);
    server_clear(&s);
}

Test(fleet, hosts_differ_by_name_and_serial)
{
    cleanup_with(topo) struct topo *a = NULL;
    cleanup_with(topo) struct topo *b = NULL;
    struct topo *none;
    struct error err;
    const char *shape = host_shapes[0].name;
    cr_assert_eq(sim_hosts_topo("r1-", shape, 0, 120, &a, &err), 0);
    cr_assert_eq(sim_hosts_topo("r1-", shape, 1, 120, &b, &err), 0);
    cr_assert_str_eq(topo_node(a), "r1-001");
    cr_assert_str_eq(topo_node(b), "r1-002");
    cr_assert_gt(topo_count(a, DEVICE_CARD, NULL), 0);
    cr_assert_str_neq(topo_identity(a, topo_device(a, 0)).serial,
                      topo_identity(b, topo_device(b, 0)).serial);

    cr_assert_eq(sim_hosts_topo("h", "no-such", 0, 1, &none, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "no-such"));
    cr_assert_not_null(strstr(err.text, shape), "says what there is");
    cr_assert_eq(sim_hosts_topo("-h", shape, 0, 1, &none, &err), -EINVAL);
}
