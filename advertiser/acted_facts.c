#include "advertiser/acted_facts.h"

#include <stdlib.h>
#include <string.h>

#include "lib/io/clock.h"

struct acted_facts {
    struct actuator *actuator;
    struct act_object *objects; /* of the host, as listed last */
    size_t n_objects;
    uint64_t version; /* of the actuator then */
    int64_t due_ms;
};

struct acted_facts *acted_facts_create(struct actuator *actuator)
{
    struct acted_facts *f = xcalloc(1, sizeof *f);
    f->actuator = actuator;
    return f;
}

void acted_facts_destroy(struct acted_facts *f)
{
    if (!f)
        return;
    free(f->objects);
    free(f);
}

/* The containers of the host; those of before while there is nothing new. */
static void list(struct acted_facts *f)
{
    uint64_t version = actuator_version(f->actuator);
    struct act_object *objects = NULL;
    size_t n = 0;
    if (version == f->version && clock_ms() < f->due_ms)
        return;
    /* its health says why it does not answer, and is logged */
    int r = actuator_objects(f->actuator, ACT_HOST, &objects, &n, NULL);
    free(f->objects);
    f->objects = r == 0 ? objects : NULL;
    f->n_objects = r == 0 ? n : 0;
    f->version = version;
    f->due_ms = clock_ms() + ACTED_LIST_MS;
}

void acted_facts_of_host_pod(const struct act_object *objects, size_t n,
                             const struct cgroups *groups,
                             struct pod_facts *pod)
{
    struct fact_indexes cpus = {0}, mems = {0};
    for (size_t i = 0; i < n; i++) {
        const struct act_object *o = &objects[i];
        if (o->sandbox || !o->known || strcmp(o->uid, pod->uid) != 0 ||
            strcmp(o->state, "running") != 0)
            continue;
        const struct cgroup_container *c = cgroups_find(groups, o->id);
        if (!c || !c->known)
            return;
        cpus.known = true;
        index_set_unite(&cpus.set, &c->cpus);
        index_set_unite(&mems.set, &c->mems);
    }
    mems.known = cpus.known && !index_set_holds(&mems.set, &groups->mems);
    pod->cpus = cpus;
    if (mems.known)
        pod->memory = mems;
}

static void add_pod(const struct acted_facts *f, const struct act_pod_status *s,
                    const struct host_seen *seen, struct facts *facts)
{
    struct pod_facts *p = facts_add(facts, s->namespace, s->name, s->uid);
    if (!p)
        return; /* no pod of Kubernetes' is called so */
    if (strcmp(s->place, ACT_HOST) != 0) {
        p->cards.known = true;
        device_places_add_ours(&seen->places, s->place, p);
    } else if (seen->groups) {
        acted_facts_of_host_pod(f->objects, f->n_objects, seen->groups, p);
    }
}

void acted_facts_add(struct acted_facts *f, const char *owner,
                     const struct host_seen *seen, struct facts *facts)
{
    cleanup_free struct act_pod_status *pods = NULL;
    size_t n = actuator_list(f->actuator, &pods);
    bool on_host = false;
    for (size_t i = 0; i < n; i++)
        on_host |= pods[i].state == ACT_RUNNING &&
                   strcmp(pods[i].place, ACT_HOST) == 0;
    if (on_host && seen->groups)
        list(f);
    for (size_t i = 0; i < n; i++)
        if (pods[i].state == ACT_RUNNING && strcmp(pods[i].owner, owner) == 0)
            add_pod(f, &pods[i], seen, facts);
}
