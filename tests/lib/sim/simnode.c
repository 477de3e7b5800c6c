#include "tests/lib/sim/simnode.h"
#include "extender/run/embedded.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "extender/run/runner.h"
#include "extender/serve/app.h"
#include "lib/base/json.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/world.h"

void simnode_init(struct simnode *n, struct server *server, const char *name)
{
    memset(n, 0, sizeof *n);
    n->server = server;
    (void)snprintf(n->name, sizeof n->name, "%s", name);
}

struct simnode_pod *simnode_find(struct simnode *n, const char *pod)
{
    for (size_t i = 0; i < n->n; i++)
        if (strcmp(n->pods[i].name, pod) == 0)
            return &n->pods[i];
    return NULL;
}

static const char *text(const cJSON *item, const char *name)
{
    const char *t =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, name));
    cr_assert(t, "%s is missing", name);
    return t;
}

static bool truth(const cJSON *item, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, name));
}

static struct simnode_pod *pod_open(struct simnode *n, const cJSON *item)
{
    const char *uid = text(item, "uid");
    for (size_t i = 0; i < n->n; i++)
        if (strcmp(n->pods[i].uid, uid) == 0)
            return &n->pods[i];
    cr_assert_lt(n->n, (size_t)SIMNODE_PODS_MAX);
    struct simnode_pod *p = &n->pods[n->n++];
    *p = (struct simnode_pod){.state = POD_STATE_WANTED};
    (void)snprintf(p->uid, sizeof p->uid, "%s", uid);
    (void)snprintf(p->name, sizeof p->name, "%s", text(item, "name"));
    (void)snprintf(p->place, sizeof p->place, "%s", text(item, "place"));
    (void)snprintf(p->pair, sizeof p->pair, "%s", text(item, "pairKey"));
    p->host = truth(item, "host");
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(item, "spec");
    cleanup_free char *whole = cJSON_PrintUnformatted(spec);
    p->exclusive = strstr(whole, "\"biga.dev/exclusive\":\"true\"") != NULL;
    p->fails = strstr(whole, "\"test/fails\"") != NULL;
    p->ends = strstr(whole, "\"test/ends\"") != NULL;
    p->breaks = strstr(whole, "\"test/breaks\"") != NULL;
    cleanup_free char *env =
        cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(item, "env"));
    (void)snprintf(p->env, sizeof p->env, "%s", env);
    return p;
}

size_t simnode_ask(struct simnode *n, unsigned wait_s)
{
    struct raw_reply reply = {0};
    char path[128];
    (void)snprintf(path, sizeof path,
                   "/v1/nodes/%s/pods?version=%" PRIu64 "&wait=%u", n->name,
                   n->version, wait_s);
    int status = world_call(n->server, SERVER_PUBLISH, "GET", path,
                            (struct jtext){"", 0, false}, &reply);
    cr_assert_eq(status, 200, "%d: %s", status, str_text(&reply.body));
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    cr_assert_eq(json_parse(reply.body.data, reply.body.size, &json, &err), 0,
                 "%s", err.text);
    raw_reply_fini(&reply);
    n->version = (uint64_t)cJSON_GetNumberValue(
        cJSON_GetObjectItemCaseSensitive(json, "version"));
    n->resend = truth(json, "resend");
    for (size_t i = 0; i < n->n; i++)
        n->pods[i].wanted = false;
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(json, "items"), *item;
    cJSON_ArrayForEach(item, items)
    {
        struct simnode_pod *p = pod_open(n, item);
        p->wanted = true;
        p->stop = truth(item, "stop");
    }
    size_t kept = 0;
    for (size_t i = 0; i < n->n; i++) {
        const struct simnode_pod *p = &n->pods[i];
        cr_assert(p->wanted || p->state == POD_STATE_GONE,
                  "%s: pod %s is forgotten, and still is %s", n->name, p->name,
                  pod_state_name(p->state));
        if (p->wanted)
            n->pods[kept++] = *p;
    }
    n->n = kept;
    return kept;
}

/* Is another pod of the pair, a host pod or not, still (or not yet) so? */
static bool pair_lacks(const struct simnode *n, const struct simnode_pod *p,
                       bool ready)
{
    size_t n_others = 0;
    for (size_t i = 0; i < n->n; i++) {
        const struct simnode_pod *o = &n->pods[i];
        if (o == p || o->host == p->host || strcmp(o->pair, p->pair) != 0)
            continue;
        n_others++;
        if (ready ? o->state != POD_STATE_RUNNING : o->state != POD_STATE_GONE)
            return true;
    }
    return ready && n_others == 0; /* a host pod never begins alone */
}

static enum pod_state next_state(const struct simnode *n,
                                 const struct simnode_pod *p)
{
    if (p->stop)
        return p->state == POD_STATE_GONE ? POD_STATE_GONE
               : !p->host && *p->pair && p->state == POD_STATE_RUNNING &&
                       pair_lacks(n, p, false)
                   ? p->state
               : p->state == POD_STATE_STOPPING ? POD_STATE_GONE
                                                : POD_STATE_STOPPING;
    switch (p->state) {
    case POD_STATE_WANTED:
        return POD_STATE_CREATING;
    case POD_STATE_CREATING:
        if (p->host && pair_lacks(n, p, true))
            return p->state;
        return p->fails ? POD_STATE_FAILED : POD_STATE_RUNNING;
    case POD_STATE_RUNNING:
        return p->ends || p->breaks ? POD_STATE_FAILED : POD_STATE_RUNNING;
    default:
        return p->state;
    }
}

bool simnode_step(struct simnode *n)
{
    enum pod_state next[SIMNODE_PODS_MAX];
    bool changed = false;
    for (size_t i = 0; i < n->n; i++)
        next[i] = next_state(n, &n->pods[i]);
    for (size_t i = 0; i < n->n; i++) {
        n->pods[i].changed |= next[i] != n->pods[i].state;
        changed |= n->pods[i].changed;
        n->pods[i].state = next[i];
        n->pods[i].ran |= next[i] == POD_STATE_RUNNING;
    }
    return changed;
}

static void add_pod(const struct simnode_pod *p, struct str *out)
{
    bool failed = p->state == POD_STATE_FAILED;
    str_addf(out,
             "{\"uid\":\"%s\",\"state\":\"%s\",\"ready\":%s,\"ran\":%s,"
             "\"reason\":\"%s\","
             "\"message\":\"%s\",\"attempt\":1,\"address\":\"\","
             "\"containers\":[",
             p->uid, pod_state_name(p->state),
             p->state == POD_STATE_RUNNING && !p->stale ? "true" : "false",
             p->ran ? "true" : "false",
             failed && p->fails                          ? "ImageMissing"
             : failed && p->breaks                       ? "Error"
             : failed                                    ? "Completed"
             : p->stale                                  ? "CardLost"
             : p->host && p->state == POD_STATE_CREATING ? "WaitsForPair"
                                                         : "",
             failed && p->fails ? "no image on the card" : "");
    /* one that was not started has no exit code: the runtime lists it */
    if (!p->bare && (p->state == POD_STATE_RUNNING || failed))
        str_addf(out,
                 "{\"name\":\"c\",\"state\":\"%s\",\"exitCode\":%d,"
                 "\"restarts\":0,\"reason\":\"\"}",
                 failed ? "exited" : "running", failed && p->breaks ? 3 : 0);
    str_add(out, "]}");
}

void simnode_tell(struct simnode *n, bool all)
{
    cleanup_str struct str body = STR_INIT(1 << 20);
    struct raw_reply reply = {0};
    char path[128];
    const char *comma = "";
    str_add(&body, "{\"boot\":\"b1\",\"pods\":[");
    for (size_t i = 0; i < n->n; i++) {
        if (!all && !n->resend && !n->pods[i].changed)
            continue;
        str_add(&body, comma);
        add_pod(&n->pods[i], &body);
        n->pods[i].changed = false;
        comma = ",";
    }
    str_add(&body, "],\"places\":[{\"name\":\"host\",\"health\":\"ready\","
                   "\"reason\":\"\",\"runtime\":\"sim\"}]}");
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/status", n->name);
    int status = world_call(n->server, SERVER_PUBLISH, "POST", path,
                            (struct jtext){body.data, body.size, false},
                            &reply);
    cr_assert_eq(status, 204, "%d: %s", status, str_text(&reply.body));
    raw_reply_fini(&reply);
    n->resend = false;
}

void simnode_settle(struct simnode *nodes, size_t n_nodes)
{
    enum { ROUNDS = 64 };
    struct runner *runner = server_embedded(nodes[0].server)->runner;
    unsigned quiet = 0;
    for (unsigned round = 0; quiet < 2; round++) {
        bool changed = false;
        cr_assert_lt(round, (unsigned)ROUNDS, "it does not settle");
        runner_settle(runner);
        for (size_t i = 0; i < n_nodes; i++) {
            size_t before = nodes[i].n;
            changed |= simnode_ask(&nodes[i], 0) != before;
            changed |= simnode_step(&nodes[i]);
            simnode_tell(&nodes[i], false);
        }
        quiet = changed ? 0 : quiet + 1;
    }
    runner_settle(runner);
}

bool simnode_check(const struct simnode *n, struct str *why)
{
    for (size_t i = 0; i < n->n; i++) {
        const struct simnode_pod *a = &n->pods[i];
        for (size_t k = 0;
             k < n->n && a->exclusive && !a->host && a->state != POD_STATE_GONE;
             k++) {
            const struct simnode_pod *b = &n->pods[k];
            if (b->host || b->state == POD_STATE_GONE ||
                strcmp(a->place, b->place) != 0 ||
                strcmp(a->pair, b->pair) == 0)
                continue;
            str_addf(why, "%s: %s and %s are both on %s", n->name, a->name,
                     b->name, a->place);
            return false;
        }
    }
    return true;
}
