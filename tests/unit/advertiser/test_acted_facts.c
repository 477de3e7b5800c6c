/* What pods have that the actuator runs: on a card, and on the host. */
#include "advertiser/acted_facts.h"

#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/describe/hostfile.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

TestSuite(acted_facts, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

static const char host[] = "package 0\n"
                           "  numa 0 cpus=4 cpu-list=0-3 memory=16GiB\n"
                           "    root 0000:00\n"
                           "      bridge 0000:00:01.0\n"
                           "        card 0000:17:00.0 id=15b3:a2dc\n";

static struct actrig r;
static struct topo *topo;
static struct device_uuids uuids;
static struct cgroup_container container;
static struct cgroups groups = {.containers = &container};

/* One pod at that place. */
static struct acted_facts *begin(const char *place)
{
    struct error err = {0};
    cr_assert_eq(hostfile_read(host, strlen(host), "h", &topo, &err), 0, "%s",
                 err.text);
    actrig_init(&r, 1);
    (void)snprintf(r.places[0].name, sizeof r.places[0].name, "%s", place);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", place), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    return acted_facts_create(r.a);
}

static void end(struct acted_facts *f)
{
    acted_facts_destroy(f);
    actrig_fini(&r);
    topo_unref(topo);
}

static void expect(struct acted_facts *f, const char *owner, const char *wanted)
{
    const struct host_seen seen = {.places = {topo, "/nonexistent", &uuids},
                                   .groups = &groups};
    struct facts facts = {0};
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    acted_facts_add(f, owner, &seen, &facts);
    (void)facts_write(&facts, topo, &out); /* it has room */
    cleanup_free char *whole = xasprintf("{\"node\":\"h\",\"pods\":[%s]}",
                                         wanted);
    cr_expect_str_eq(str_text(&out), whole);
    facts_fini(&facts);
}

/* Whose the pods of the rig are. */
static char *owner_of(const char *name)
{
    struct act_pod_status s;
    cr_assert_eq(actuator_find(r.a, "lab", name, &s), 0);
    return xstrdup(s.owner);
}

#define POD "{\"namespace\":\"lab\",\"name\":\"x\",\"uid\":\"x\""

Test(acted_facts, of_a_pod_on_a_card_that_card_is_told)
{
    struct acted_facts *f = begin("card-0000-17-00");
    cleanup_free char *owner = owner_of("x");
    expect(f, owner, POD ",\"cards\":[\"0000:17:00.0\"]}");
    expect(f, "another", "");
    cr_assert_eq(actuator_unwant(r.a, "x", 0, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    expect(f, owner, "");
    end(f);
}

Test(acted_facts, of_a_host_pod_the_cpus_of_its_containers_are_told)
{
    struct acted_facts *f = begin("host");
    cleanup_free char *owner = owner_of("x");
    struct act_object *objects = NULL;
    size_t n = 0;
    struct error err = {0};
    groups.mems.words[0] = 3;
    expect(f, owner, POD "}");
    cr_assert_eq(actuator_objects(r.a, "host", &objects, &n, &err), 0, "%s",
                 err.text);
    for (size_t i = 0; i < n; i++)
        if (!objects[i].sandbox)
            (void)snprintf(container.id, sizeof container.id, "%s",
                           objects[i].id);
    cr_assert(*container.id);
    free(objects);
    container.cpus.words[0] = 6;
    container.mems.words[0] = 1;
    groups.n = 1;
    expect(f, owner, POD "}"); /* it cannot be read */
    container.known = true;
    expect(f, owner, POD ",\"cpus\":\"1-2\",\"numa\":[0],\"memoryNuma\":[0]}");
    groups.mems.words[0] = 1; /* it may use all that the host has */
    expect(f, owner, POD ",\"cpus\":\"1-2\",\"numa\":[0]}");
    end(f);
}
