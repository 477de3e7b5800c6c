/* What hosts have left for pods: kept beside the nodes, heeded by plans. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/keep/writer.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static const struct host_room unknown = {INT64_MAX, INT64_MAX, INT64_MAX};

/* --- kept beside the nodes ---------------------------------------------- */

enum { NAMES = 600, PODS = 40, ROUNDS = 400 };

/* What it should be. */
struct model {
    struct host_room room[NAMES];
    bool there[NAMES];
    int pod_on[PODS]; /* -1: not allocated */
    struct demand pods[PODS];
};

static void name_of(unsigned i, char name[16])
{
    (void)snprintf(name, 16, "n%03u", i);
}

static struct host_room left_of(const struct model *m, unsigned node)
{
    struct host_room left = m->room[node];
    for (unsigned p = 0; p < PODS; p++) {
        const struct demand *d = &m->pods[p];
        if (m->pod_on[p] != (int)node || d->role != ROLE_HOST)
            continue;
        if (left.cpu_milli != INT64_MAX)
            left.cpu_milli -= d->cpu_milli;
        if (left.memory_mib != INT64_MAX)
            left.memory_mib -= d->memory_mib;
        if (left.pods != INT64_MAX)
            left.pods--;
    }
    return left;
}

static void expect_room(struct host_room is, struct host_room should,
                        const char *what, unsigned i)
{
    cr_assert_eq(is.cpu_milli, should.cpu_milli, "%s of %u: %lld CPUs", what, i,
                 (long long)is.cpu_milli);
    cr_assert_eq(is.memory_mib, should.memory_mib, "%s of %u", what, i);
    cr_assert_eq(is.pods, should.pods, "%s of %u", what, i);
}

static void compare(const struct snapshot *s, const struct model *m)
{
    cleanup_free struct host_room *rooms = snapshot_rooms_left(s);
    struct draft *d = draft_create((struct snapshot *)s);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];
        name_of(i, name);
        int32_t index = snapshot_find(s, name, strlen(name));
        cr_assert_eq(index >= 0, m->there[i]);
        expect_room(draft_room(d, name), m->room[i], "room", i);
        if (index < 0)
            continue;
        expect_room(snapshot_room_left(s, (size_t)index), left_of(m, i), "left",
                    i);
        expect_room(rooms ? rooms[index] : unknown, left_of(m, i), "copy", i);
    }
    draft_destroy(d);
}

static struct host_room roll_room(uint64_t *seed)
{
    struct host_room room = unknown;
    if (sim_random(seed) % 4)
        room.cpu_milli = (int64_t)(sim_random(seed) % 9000) - 1000;
    if (sim_random(seed) % 4)
        room.memory_mib = sim_random(seed) % 9000;
    if (sim_random(seed) % 2)
        room.pods = sim_random(seed) % 9;
    return room;
}

static void allocate(struct draft *d, struct model *m, unsigned pod,
                     unsigned node)
{
    char name[16];
    name_of(node, name);
    struct allocation *a = allocation_create(&m->pods[pod], name);
    draft_allocate(d, a);
    m->pod_on[pod] = (int)node;
}

static void step(struct draft *d, struct model *m, uint64_t *seed)
{
    char name[16];
    unsigned i = sim_random(seed) % NAMES, p = sim_random(seed) % PODS;
    name_of(i, name);
    switch (sim_random(seed) % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
        m->room[i] = roll_room(seed);
        draft_set_room(d, name, &m->room[i]);
        break;
    case 4:
        draft_remove_node(d, name);
        m->there[i] = false;
        break;
    case 5: {
        cleanup_with(topo) struct topo *topo = simhost_topo(name, 2);
        simfleet_put(d, topo);
        m->there[i] = true;
        break;
    }
    case 6:
        allocate(d, m, p, i);
        break;
    default:
        (void)draft_release(d, "ns", m->pods[p].name);
        m->pod_on[p] = -1;
    }
}

Test(rooms, follow_their_nodes)
{
    static struct model now, before;
    uint64_t seed = 7;
    struct snapshot *s = snapshot_create_empty();
    for (unsigned i = 0; i < NAMES; i++)
        now.room[i] = unknown;
    for (unsigned p = 0; p < PODS; p++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", p);
        now.pods[p] = sim_pod(name, p % 4 ? ROLE_HOST : ROLE_XPU, "", 0);
        now.pods[p].cpu_milli = sim_random(&seed) % 900;
        now.pods[p].memory_mib = sim_random(&seed) % 900;
        now.pod_on[p] = -1;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct draft *d = draft_create(s);
        before = now;
        unsigned n = sim_random(&seed) % 60;
        for (unsigned i = 0; i < n; i++) {
            step(d, &now, &seed);
            if (sim_random(&seed) % 50 == 0) {
                struct snapshot *peek = draft_peek(d);
                compare(peek, &now);
                snapshot_unref(peek);
            }
        }
        if (sim_random(&seed) % 20 == 0)
            draft_renew(d);
        if (sim_random(&seed) % 5 == 0) { /* leaves no trace */
            draft_destroy(d);
            now = before;
            compare(s, &now);
            continue;
        }
        struct snapshot *next = draft_commit(d);
        compare(s, &before);
        compare(next, &now);
        snapshot_unref(s);
        s = next;
    }
    snapshot_unref(s);
}

Test(rooms, are_not_kept_when_nobody_tells)
{
    struct snapshot *s = simfleet_create(300, 2);
    cr_assert_null(snapshot_rooms_left(s));
    cr_assert_null(s->rooms[0]);
    cr_assert_null(s->unplaced);
    struct draft *d = draft_create(s);
    struct host_room room = {1000, 1000, 10};
    draft_set_room(d, "node290", &room);
    draft_set_room(d, "elsewhere", &room);
    struct snapshot *next = draft_commit(d);
    cr_assert_null(next->rooms[0]);
    cr_assert_not_null(next->rooms[1]);
    cr_assert_eq(s->pages[1], next->pages[1], "nodes were copied");
    d = draft_create(next);
    draft_set_room(d, "elsewhere", &unknown);
    struct snapshot *last = draft_commit(d);
    cr_assert_null(last->unplaced);
    cr_assert_eq(last->rooms[1], next->rooms[1]);
    snapshot_unref(s);
    snapshot_unref(next);
    snapshot_unref(last);
}

/* --- heeded by plans ---------------------------------------------------- */

enum { HOSTS = 3, CARDS = 4 };
static const char *const hosts[HOSTS] = {"h0", "h1", "h2"};

static void tell(struct writer *w, const char *node, struct host_room room)
{
    struct writer_room one = {node, room};
    struct writer_op op = {.kind = WRITER_ROOMS, .rooms = &one, .n_rooms = 1};
    cr_assert_eq(writer_run(w, &op), 0, "%s", op.error.text);
}

/* Hosts with CPUs for two pairs each. */
static struct writer *start(void)
{
    log_set_level(LOG_ERROR);
    struct writer *w = sim_writer(NULL);
    for (int i = 0; i < HOSTS; i++) {
        if (i == 0) /* before and after it is there */
            tell(w, hosts[i], (struct host_room){2500, INT64_MAX, 100});
        cr_assert_eq(sim_publish(w, hosts[i], CARDS, "boot", 1), 0);
        tell(w, hosts[i], (struct host_room){2500, INT64_MAX, 100});
    }
    return w;
}

static struct demand member(const char *job, int pair, int size, uint32_t cpus)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s-%d", job, pair);
    struct demand d = sim_member(name, ROLE_HOST, job, pair, size);
    d.cpu_milli = cpus;
    return d;
}

static int plan(struct writer *w, const struct demand *pod,
                const char **ret_node, struct plan_refusal *ret_refusal)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_with(plan) struct plan *plan = NULL;
    int r = job_plan(NULL, s, pod, NULL, 0, NODE_NONE, &plan, ret_refusal);
    for (int i = 0; r == 0 && i < HOSTS; i++) {
        const struct plan_place *place = &plan->places[job_rank(pod)];
        if (place->node == snapshot_find(s, hosts[i], strlen(hosts[i])))
            *ret_node = hosts[i];
    }
    return r;
}

static int64_t cpus_left(struct writer *w, const char *node)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t i = snapshot_find(s, node, strlen(node));
    return snapshot_room_left(s, (size_t)i).cpu_milli;
}

Test(rooms, limit_a_plan)
{
    struct writer *w = start();
    struct plan_refusal no;
    const char *node;
    struct demand d = member("j", 0, 7, 1000);
    cr_assert_eq(plan(w, &d, &node, &no), -EBUSY);
    cr_assert_eq(no.lack, PLAN_LACK_ROOM);
    cr_assert_eq(no.room, 6);
    cr_assert_eq(no.asked, 7);
    cr_assert(no.hosts, "cards there are for 12");
    d = member("j", 0, 13, 0);
    cr_assert_eq(plan(w, &d, &node, &no), -EBUSY);
    cr_assert(!no.hosts, "not even cards");
    d = member("j", 0, 12, 0);
    cr_assert_eq(plan(w, &d, &node, &no), 0, "who asks no CPUs needs none");
    tell(w, "h1", (struct host_room){4000, 4000, 4});
    d = member("j", 0, 8, 1000);
    cr_assert_eq(plan(w, &d, &node, &no), 0);
    tell(w, "h1", (struct host_room){4000, 4000, 3});
    cr_assert_eq(plan(w, &d, &node, &no), -EBUSY);
    tell(w, "h1", unknown);
    cr_assert_eq(plan(w, &d, &node, &no), 0);
    writer_stop(w);
}

Test(rooms, are_used_up_by_allocations_and_held_places)
{
    struct writer *w = start();
    struct plan_refusal no;
    const char *node = NULL;
    int64_t sum = 0;
    for (int i = 0; i < 6; i++) { /* each bind is decided around the others */
        struct demand d = member("j", i, 6, 1000);
        cr_assert_eq(plan(w, &d, &node, &no), 0, "pair %d", i);
        cr_assert_eq(sim_bind(w, &d, node, NULL, NULL), 0, "pair %d", i);
        sum = 0;
        for (int k = 0; k < HOSTS; k++)
            sum += cpus_left(w, hosts[k]);
        cr_assert_eq(sum, HOSTS * 500, "bound or held, all are charged once");
    }
    struct demand other = member("k", 0, 2, 600);
    cr_assert_eq(plan(w, &other, &node, &no), -EBUSY);
    cr_assert_eq(no.room, 0);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_str struct str text = STR_INIT(1000);
    struct schedule sc;
    struct choice ignored;
    schedule_init_job(&sc, s, &other, &no);
    cr_assert_eq(schedule_choose(&sc, 0, &ignored), REASON_HOST_ROOM);
    schedule_explain(&sc, 0, REASON_HOST_ROOM, &text);
    cr_assert_str_eq(str_text(&text), "host has 0.5 CPUs left for pods, the "
                                      "pair here needs 0.6");
    other = member("k", 0, 2, 500);
    cr_assert_eq(plan(w, &other, &node, &no), 0);
    cr_assert_eq(sim_release(w, "j-3"), 0);
    other = member("k", 0, 2, 800);
    cr_assert_eq(plan(w, &other, &node, &no), -EBUSY);
    cr_assert_eq(no.room, 1);
    cr_assert_eq(sim_release(w, "j-4"), 0);
    cr_assert_eq(plan(w, &other, &node, &no), 0);
    writer_stop(w);
}
