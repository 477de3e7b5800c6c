/* The registry of nodes against a model that keeps every pod. */
#include "extender/fit/fit_nodes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/lib/podtext.h"
#include "tests/lib/sim/simstate.h"

enum { NODES = 20, PODS = 400, STEPS = 30000 };

struct pod {
    int node; /* -1: none */
    bool assumed, listed;
    enum fit_source source;
    int cpu, gpu; /* pieces */
    unsigned port;
};

struct machine {
    bool known, listed, cordoned, tainted;
    int cpu, gpu, pods, zone;
};

struct model {
    struct pod pods[PODS];
    struct machine nodes[NODES];
};

static uint64_t seed = 14;

static unsigned any(unsigned n)
{
    return sim_random(&seed) % n;
}

static void node_name(unsigned i, char name[16])
{
    (void)snprintf(name, 16, "node-%u", i);
}

static void uid_of(unsigned i, char uid[40])
{
    (void)snprintf(uid, 40, "%08x-89ab-4cde-8f01-%012x", i * 2654435761u, i);
}

/* --- what is told ------------------------------------------------------- */

static void put_node(struct fit_nodes *r, struct model *m, unsigned i)
{
    char name[16];
    struct machine *n = &m->nodes[i];
    struct error err = {0};
    node_name(i, name);
    cleanup_free char *text = xasprintf(
        "{'metadata':{'name':'%s','labels':{'zone':'z%d',"
        "'kubernetes.io/hostname':'%s'}},'spec':{'unschedulable':%s%s},"
        "'status':{'allocatable':{'cpu':'%d','pods':'%d','x/gpu':'%d'}}}",
        name, n->zone, name, n->cordoned ? "true" : "false",
        n->tainted ? ",'taints':[{'key':'k','value':'v',"
                     "'effect':'NoSchedule'}]"
                   : "",
        n->cpu, n->pods, n->gpu);
    cleanup_free char *json = pod_quoted(text);
    cr_assert_eq(fit_nodes_put(r, json, strlen(json), &err), 0, "%s", err.text);
    n->known = n->listed = true;
}

static char *pod_json(const struct pod *p)
{
    cleanup_free char *text =
        xasprintf("{'spec':{'containers':[{'resources':{'requests':{'cpu':'%d',"
                  "'x/gpu':'%d'}},'ports':[{'hostPort':%u}]}]}}",
                  p->cpu, p->gpu, p->port);
    return pod_quoted(text);
}

static void put_pod(struct fit_nodes *r, struct model *m, unsigned i,
                    bool finished)
{
    char uid[40], name[16] = "";
    struct pod *p = &m->pods[i], old = *p;
    int to = any(4) ? (int)any(NODES) : -1;
    enum fit_source source = any(2) ? FIT_ROLES : FIT_OTHERS;
    bool bound = to >= 0 && !finished;
    if (bound)
        *p = (struct pod){.node = to,
                          .source = source,
                          .cpu = (int)any(4),
                          .gpu = (int)any(2),
                          .port = any(4) ? 0 : 1 + any(3)};
    p->listed = p->listed || p->source == source || bound;
    uid_of(i, uid);
    if (to >= 0)
        node_name((unsigned)to, name);
    cleanup_free char *json = pod_json(p);
    const struct fit_pod is = {uid, name, finished, json, strlen(json)};
    cr_assert_eq(fit_nodes_put_pod(r, source, &is, NULL), 0);
    if (!bound && old.source == source && (!old.assumed || finished))
        *p = (struct pod){.node = -1};
}

static void gone_pod(struct fit_nodes *r, struct model *m, unsigned i)
{
    char uid[40];
    enum fit_source source = any(2) ? FIT_ROLES : FIT_OTHERS;
    uid_of(i, uid);
    fit_nodes_gone_pod(r, source, uid);
    if (m->pods[i].source == source)
        m->pods[i] = (struct pod){.node = -1};
}

static void assume(struct fit_nodes *r, struct model *m, unsigned i)
{
    char uid[40], name[16];
    struct pod *p = &m->pods[i];
    struct pod next = {.node = (int)any(NODES),
                       .assumed = true,
                       .listed = true,
                       .source = FIT_ROLES,
                       .cpu = (int)any(4)};
    cleanup_free char *json = pod_json(&next);
    cleanup_with(pod_needs) struct pod_needs *needs = NULL;
    cr_assert_eq(pod_needs_read(json, strlen(json), &needs, NULL), 0);
    uid_of(i, uid);
    node_name((unsigned)next.node, name);
    fit_nodes_assume(r, uid, name, needs);
    if (p->node < 0 || p->assumed)
        *p = next;
}

static void forget(struct fit_nodes *r, struct model *m, unsigned i)
{
    char uid[40];
    uid_of(i, uid);
    fit_nodes_forget(r, uid);
    if (m->pods[i].assumed)
        m->pods[i] = (struct pod){.node = -1};
}

/* A list of some, begun anew now and then. */
static void relist_pods(struct fit_nodes *r, struct model *m)
{
    enum fit_source source = any(2) ? FIT_ROLES : FIT_OTHERS;
    fit_nodes_list_pods(r, source);
    for (unsigned i = 0; i < PODS; i++)
        m->pods[i].listed = m->pods[i].source != source;
    for (unsigned i = 0; i < PODS / 2; i++)
        put_pod(r, m, any(PODS), false);
    fit_nodes_listed_pods(r, source);
    for (unsigned i = 0; i < PODS; i++)
        if (m->pods[i].source == source && !m->pods[i].listed)
            m->pods[i] = (struct pod){.node = -1};
}

static void change_node(struct fit_nodes *r, struct model *m, unsigned i)
{
    char name[16];
    struct machine *n = &m->nodes[i];
    node_name(i, name);
    if (any(5) == 0) {
        fit_nodes_gone(r, name);
        n->known = false;
        return;
    }
    n->cordoned = any(8) == 0;
    n->tainted = any(4) == 0;
    n->cpu = (int)any(60);
    n->gpu = (int)any(12);
    n->pods = (int)any(40);
    n->zone = (int)any(2);
    put_node(r, m, i);
}

static void relist_nodes(struct fit_nodes *r, struct model *m)
{
    fit_nodes_list(r);
    for (unsigned i = 0; i < NODES; i++)
        m->nodes[i].listed = false;
    for (unsigned i = 0; i < NODES; i++)
        if (m->nodes[i].known && any(4))
            put_node(r, m, i);
    fit_nodes_listed(r);
    for (unsigned i = 0; i < NODES; i++)
        m->nodes[i].known = m->nodes[i].known && m->nodes[i].listed;
}

/* --- what is asked ------------------------------------------------------ */

struct asked {
    int cpu, gpu, zone; /* zone -1: any */
    bool tolerates, by_name;
    unsigned port;
};

static struct pod_needs *needs_of(const struct asked *a)
{
    cleanup_free char *zone = a->zone < 0 ? xstrdup("")
                                          : xasprintf("'zone':'z%d'", a->zone);
    cleanup_free char *text = xasprintf(
        "{'spec':{'nodeSelector':{%s%s%s},'containers':[{'resources':"
        "{'requests':{'cpu':'%d','x/gpu':'%d'}},'ports':[{'hostPort':%u}]}]"
        "%s}}",
        zone, *zone && a->by_name ? "," : "",
        a->by_name ? "'kubernetes.io/hostname':'node-3'" : "", a->cpu, a->gpu,
        a->port, a->tolerates ? ",'tolerations':[{'operator':'Exists'}]" : "");
    cleanup_free char *json = pod_quoted(text);
    struct pod_needs *needs = NULL;
    struct error err = {0};
    cr_assert_eq(pod_needs_read(json, strlen(json), &needs, &err), 0, "%s",
                 err.text);
    return needs;
}

static const char *expected(const struct model *m, const struct asked *a,
                            unsigned node, int64_t *ret_room)
{
    const struct machine *n = &m->nodes[node];
    int cpu = n->cpu, gpu = n->gpu, pods = n->pods;
    bool port = false;
    for (unsigned i = 0; i < PODS; i++) {
        const struct pod *p = &m->pods[i];
        if (p->node != (int)node)
            continue;
        cpu -= p->cpu;
        gpu -= p->gpu;
        pods--;
        port = port || (p->port && p->port == a->port);
    }
    *ret_room = 0;
    if (!n->known)
        return "node(s) were not there";
    if (n->cordoned && !a->tolerates)
        return "node(s) were unschedulable";
    if (n->tainted && !a->tolerates)
        return "node(s) had untolerated taint(s) {k: v}";
    if ((a->zone >= 0 && a->zone != n->zone) || (a->by_name && node != 3))
        return "node(s) didn't match Pod's node affinity/selector";
    if (port)
        return "node(s) didn't have free ports for the requested pod ports";
    bool no_cpu = a->cpu && a->cpu > cpu, no_gpu = a->gpu && a->gpu > gpu;
    if (pods <= 0)
        return no_cpu   ? no_gpu ? "Too many pods, Insufficient cpu, "
                                   "Insufficient x/gpu"
                                 : "Too many pods, Insufficient cpu"
               : no_gpu ? "Too many pods, Insufficient x/gpu"
                        : "Too many pods";
    if (no_cpu || no_gpu)
        return !no_gpu  ? "Insufficient cpu"
               : no_cpu ? "Insufficient cpu, Insufficient x/gpu"
                        : "Insufficient x/gpu";
    *ret_room = pods;
    if (a->cpu && cpu / a->cpu < *ret_room)
        *ret_room = cpu / a->cpu;
    if (a->gpu && gpu / a->gpu < *ret_room)
        *ret_room = gpu / a->gpu;
    if (a->port)
        *ret_room = 1;
    return "";
}

/* With some of its pods gone, and as before once that was asked. */
static void compare_without(struct fit_nodes *r, const struct model *m,
                            const struct asked *a,
                            const struct pod_needs *needs)
{
    static struct model less;
    char uids[PODS / 8][40], name[16];
    const char *all[PODS / 8];
    unsigned node = any(NODES), n = 0;
    int64_t ignored;
    struct fit_verdict v;
    less = *m;
    for (unsigned i = any(8); i < PODS && n < ARRAY_LEN(all); i += 8) {
        less.pods[i].node = -1;
        uid_of(i, uids[n]);
        all[n] = uids[n];
        n++;
    }
    node_name(node, name);
    (void)fit_nodes_judge_without(r, needs, name, &(struct fit_without){all, n},
                                  &v);
    cr_assert_str_eq(v.text, expected(&less, a, node, &ignored));
}

static void compare(struct fit_nodes *r, const struct model *m)
{
    const struct asked a = {.cpu = (int)any(5),
                            .gpu = (int)any(3),
                            .zone = (int)any(3) - 1,
                            .tolerates = any(2),
                            .by_name = any(6) == 0,
                            .port = any(3)};
    cleanup_with(pod_needs) struct pod_needs *needs = needs_of(&a);
    char names[NODES][16];
    const char *all[NODES];
    enum fit_reason reasons[NODES];
    for (unsigned i = 0; i < NODES; i++) {
        node_name(i, names[i]);
        all[i] = names[i];
    }
    compare_without(r, m, &a, needs);
    size_t n_ok = fit_nodes_judge_all(r, needs, all, NODES, reasons);
    for (unsigned i = 0; i < NODES; i++) {
        struct fit_verdict v;
        int64_t room;
        const char *want = expected(m, &a, i, &room);
        enum fit_reason reason = fit_nodes_judge(r, needs, all[i], &v);
        cr_assert_str_eq(v.text, want, "%s: %s, not %s", all[i], v.text, want);
        cr_assert_eq(reason == FIT_OK, !*want);
        cr_assert_eq(reasons[i], reason);
        cr_assert_eq(v.reason, reason);
        cr_assert_eq(fit_nodes_room(r, needs, all[i]), room);
        n_ok -= reason == FIT_OK;
    }
    cr_assert_eq(n_ok, 0);
    size_t n_assumed = 0;
    for (unsigned i = 0; i < PODS; i++)
        n_assumed += m->pods[i].assumed;
    cr_assert_eq(fit_nodes_n_assumed(r), n_assumed);
}

Test(fit_nodes, judges_as_the_pods_are, .timeout = 180)
{
    static struct model m;
    struct fit_nodes *r = fit_nodes_create();
    for (unsigned i = 0; i < PODS; i++)
        m.pods[i].node = -1;
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned what = any(100), i = any(PODS);
        if (what < 40)
            put_pod(r, &m, i, any(6) == 0);
        else if (what < 65)
            gone_pod(r, &m, i);
        else if (what < 75)
            assume(r, &m, i);
        else if (what < 85)
            forget(r, &m, i);
        else
            change_node(r, &m, any(NODES));
        if (any(500) == 0)
            relist_pods(r, &m);
        if (any(500) == 0)
            relist_nodes(r, &m);
        if (any(20) == 0)
            compare(r, &m);
    }
    fit_nodes_destroy(r);
}
