/* Sums of what pods request, against a model that keeps every pod. */
#include "extender/pods/host_requests.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/sim/simstate.h"

enum { HOSTS = 40, PODS = 3000, STEPS = 60000 };

struct pod {
    bool there, seen;
    enum host_requests_source source;
    unsigned host;
    int64_t cpu, memory;
};

struct model {
    struct pod pods[PODS];
    struct host_requests_host hosts[HOSTS];
    bool known[HOSTS], seen[HOSTS];
    struct host_room told[HOSTS]; /* as whoever listens has it */
};

static void uid_of(unsigned i, char uid[40])
{
    if (i % 7 == 0)
        (void)snprintf(uid, 40, "pod-%u", i);
    else
        (void)snprintf(uid, 40, "%08x-89ab-4cde-8f01-%012x", i * 2654435761u,
                       i);
}

static void host_name(unsigned i, char name[16])
{
    (void)snprintf(name, 16, "host-%u", i);
}

static int64_t minus(int64_t has, int64_t taken)
{
    return has == INT64_MAX ? has : has - taken;
}

static struct host_room room_of(const struct model *m, unsigned host)
{
    struct host_requests_host left = m->hosts[host];
    if (!m->known[host])
        return (struct host_room){INT64_MAX, INT64_MAX, INT64_MAX};
    for (unsigned i = 0; i < PODS; i++) {
        const struct pod *p = &m->pods[i];
        if (!p->there || p->host != host)
            continue;
        left.cpu_milli = minus(left.cpu_milli, p->cpu);
        left.memory_kib = minus(left.memory_kib, p->memory);
        left.pods = minus(left.pods, 1);
    }
    int64_t mib = left.memory_kib;
    if (mib != INT64_MAX) {
        mib = left.memory_kib / 1024;
        mib -= left.memory_kib % 1024 < 0;
    }
    return (struct host_room){left.cpu_milli, mib, left.pods};
}

/* What changed is told; then all is known. */
static void compare(struct host_requests *s, struct model *m)
{
    size_t n = host_requests_n_changed(s), n_pods = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name;
        struct host_room room;
        unsigned host;
        host_requests_changed(s, i, &name, &room);
        cr_assert_eq(sscanf(name, "host-%u", &host), 1);
        m->told[host] = room;
    }
    host_requests_settle(s);
    cr_assert_eq(host_requests_n_changed(s), 0);
    for (unsigned i = 0; i < HOSTS; i++) {
        struct host_room should = room_of(m, i);
        cr_assert_eq(m->told[i].cpu_milli, should.cpu_milli, "host %u", i);
        cr_assert_eq(m->told[i].memory_mib, should.memory_mib, "host %u", i);
        cr_assert_eq(m->told[i].pods, should.pods, "host %u", i);
    }
    for (unsigned i = 0; i < PODS; i++)
        n_pods += m->pods[i].there;
    cr_assert_eq(host_requests_n_pods(s), n_pods);
}

static uint64_t seed = 3;

static int64_t amount(uint32_t max)
{
    return sim_random(&seed) % 9 == 0 ? INT64_MAX : sim_random(&seed) % max;
}

static void put(struct host_requests *s, struct model *m, unsigned i)
{
    char uid[40], name[16];
    struct pod *p = &m->pods[i];
    *p = (struct pod){true,
                      true,
                      sim_random(&seed) % 4 == 0,
                      sim_random(&seed) % HOSTS,
                      sim_random(&seed) % 4000,
                      sim_random(&seed) % 4000000};
    if (sim_random(&seed) % 500 == 0)
        p->memory = INT64_C(7) << 40; /* KiB */
    uid_of(i, uid);
    host_name(p->host, name);
    host_requests_put(
        s, p->source,
        &(struct host_requests_pod){uid, name, p->cpu, p->memory});
}

static void drop(struct host_requests *s, struct model *m, unsigned i)
{
    char uid[40];
    enum host_requests_source source = sim_random(&seed) % 4 == 0;
    uid_of(i, uid);
    host_requests_remove(s, source, uid);
    if (m->pods[i].source == source)
        m->pods[i].there = false;
}

static void change_host(struct host_requests *s, struct model *m, unsigned i)
{
    char name[16];
    host_name(i, name);
    m->known[i] = sim_random(&seed) % 4 != 0;
    m->seen[i] = true;
    m->hosts[i] = (struct host_requests_host){amount(200000), amount(200000000),
                                              amount(200)};
    if (m->known[i])
        host_requests_put_host(s, name, &m->hosts[i]);
    else
        host_requests_remove_host(s, name);
}

/* A list of pods, or of hosts, of which some are missing; sometimes it is
 * begun and broken off before. */
static void relist(struct host_requests *s, struct model *m)
{
    enum host_requests_source source = sim_random(&seed) % 2;
    if (sim_random(&seed) % 2) {
        host_requests_list_hosts(s);
        if (sim_random(&seed) % 3 == 0)
            host_requests_list_hosts(s);
        memset(m->seen, 0, sizeof m->seen);
        for (unsigned i = 0; i < HOSTS; i++)
            if (sim_random(&seed) % 5)
                change_host(s, m, i);
        host_requests_listed_hosts(s);
        for (unsigned i = 0; i < HOSTS; i++)
            m->known[i] = m->known[i] && m->seen[i];
        return;
    }
    host_requests_list(s, source);
    if (sim_random(&seed) % 3 == 0) {
        put(s, m, sim_random(&seed) % PODS);
        host_requests_list(s, source);
    }
    for (unsigned i = 0; i < PODS; i++)
        m->pods[i].seen = m->pods[i].source != source;
    unsigned n = sim_random(&seed) % PODS;
    for (unsigned i = 0; i < n; i++)
        put(s, m, sim_random(&seed) % PODS);
    host_requests_listed(s, source);
    for (unsigned i = 0; i < PODS; i++)
        m->pods[i].there = m->pods[i].there && m->pods[i].seen;
}

Test(host_requests, are_those_of_the_pods, .timeout = 180)
{
    static struct model m;
    struct host_requests *s = host_requests_create();
    for (unsigned i = 0; i < HOSTS; i++)
        m.told[i] = (struct host_room){INT64_MAX, INT64_MAX, INT64_MAX};
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned what = sim_random(&seed) % 100;
        unsigned i = sim_random(&seed) % PODS;
        if (what < 50)
            put(s, &m, i);
        else if (what < 97)
            drop(s, &m, i);
        else
            change_host(s, &m, sim_random(&seed) % HOSTS);
        if (sim_random(&seed) % 1000 == 0)
            relist(s, &m);
        if (sim_random(&seed) % 200 == 0)
            compare(s, &m);
    }
    host_requests_list(s, HOST_REQUESTS_OTHERS);
    host_requests_listed(s, HOST_REQUESTS_OTHERS);
    host_requests_list(s, HOST_REQUESTS_ROLES);
    host_requests_listed(s, HOST_REQUESTS_ROLES);
    for (unsigned i = 0; i < PODS; i++)
        m.pods[i].there = false;
    compare(s, &m);
    host_requests_destroy(s);
}

Test(host_requests, tell_only_what_changed)
{
    struct host_requests *s = host_requests_create();
    struct host_requests_pod pod = {"u", "h", 1000, 2048};
    const char *name;
    struct host_room room;
    host_requests_put(s, HOST_REQUESTS_OTHERS, &pod);
    cr_assert_eq(host_requests_n_changed(s), 0, "of a host that nobody knows");
    host_requests_put_host(s, "h",
                           &(struct host_requests_host){4000, 8192, 10});
    cr_assert_eq(host_requests_n_changed(s), 1);
    host_requests_changed(s, 0, &name, &room);
    cr_assert_str_eq(name, "h");
    cr_assert_eq(room.cpu_milli, 3000);
    cr_assert_eq(room.memory_mib, 6);
    cr_assert_eq(room.pods, 9);
    host_requests_settle(s);
    host_requests_put(s, HOST_REQUESTS_OTHERS, &pod);
    host_requests_put_host(s, "h",
                           &(struct host_requests_host){4000, 8192, 10});
    cr_assert_eq(host_requests_n_changed(s), 0, "as before");
    host_requests_put(s, HOST_REQUESTS_ROLES, &pod);
    host_requests_remove(s, HOST_REQUESTS_OTHERS, "u");
    cr_assert_eq(host_requests_n_changed(s), 0, "another speaks of it now");
    host_requests_remove(s, HOST_REQUESTS_ROLES, "u");
    cr_assert_eq(host_requests_n_changed(s), 1);
    host_requests_destroy(s);
}

Test(host_requests, of_many_pods_are_small)
{
    enum { MANY = 100000, LIMIT = 16 << 20 };
    struct host_requests *s = host_requests_create();
    size_t most = 0;
    for (unsigned i = 0; i < MANY; i++) {
        char uid[40], name[16];
        (void)snprintf(uid, sizeof uid, "%08x-89ab-4cde-8f01-%012x",
                       i * 2654435761u, i);
        host_name(i % 5000, name);
        host_requests_put(s, HOST_REQUESTS_OTHERS,
                          &(struct host_requests_pod){uid, name, 100, 1024});
        most = host_requests_size(s) > most ? host_requests_size(s) : most;
    }
    cr_log_info("%zu bytes for %d pods on 5000 hosts", most, MANY);
    cr_assert_lt(most, LIMIT);
    host_requests_destroy(s);
}
