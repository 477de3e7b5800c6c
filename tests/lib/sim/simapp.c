#include "tests/lib/sim/simapp.h"
#include "extender/run/embedded.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "extender/keep/store.h"
#include "extender/pods/applied_view.h"
#include "extender/serve/app.h"
#include "extender/state/snapshot.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/sim/world.h"

struct server *simapp_server;
struct simnode simapp_nodes[SIMAPP_NODES];
unsigned simapp_applied;

void simapp_begin(const char *dir)
{
    simapp_server = world_start_in(dir);
    world_publish(simapp_server, SIMAPP_NODES, SIMAPP_CARDS);
    for (unsigned i = 0; i < SIMAPP_NODES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "node%03u", i);
        simnode_init(&simapp_nodes[i], simapp_server, name);
    }
}

void simapp_end(void)
{
    server_stop(simapp_server);
}

/* --- pods ----------------------------------------------------------------- */

static void spec_json(const struct simapp_pod *p, const char *uid,
                      struct str *out)
{
    str_addf(out,
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
             "\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
             "\"labels\":{\"biga.dev/role\":\"%s\"",
             p->name, uid, p->role);
    if (p->job)
        str_addf(out, ",\"biga.dev/job\":\"%s\",\"biga.dev/pair\":\"%d\"",
                 p->job, p->pair);
    str_addf(out, "},\"annotations\":{\"biga.dev/exclusive\":\"%s\"",
             p->shares ? "false" : "true");
    if (p->size)
        str_addf(out, ",\"biga.dev/size\":\"%d\"", p->size);
    str_addf(out,
             "%s}},\"spec\":{\"priority\":%d,\"containers\":[{\"name\":\"c\","
             "\"image\":\"busybox\",\"resources\":{\"requests\":{"
             "\"biga.dev/card\":1",
             p->notes ? p->notes : "", p->priority);
    if (p->cores)
        str_addf(out, ",\"biga.dev/card-cores\":%u", p->cores);
    str_add(out, "}}}]}}");
}

static struct applied_pod *make(const struct simapp_pod *p)
{
    cleanup_str struct str json = STR_INIT(65536);
    struct error err = {0};
    struct applied_pod *pod = NULL;
    char uid[APPLIED_UID_SIZE];
    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u",
                   ++simapp_applied);
    spec_json(p, uid, &json);
    cr_assert_eq(applied_pod_create(json.data, json.size, uid,
                                    &server_app(simapp_server)->demand, &pod,
                                    &err),
                 0, "%s", err.text);
    return pod;
}

int simapp_change(struct pod_change *changes, size_t n)
{
    struct writer_op op = {.kind = WRITER_PODS,
                           .changes = changes,
                           .n_changes = n,
                           .out = STR_INIT(65536)};
    int r = writer_run(server_app(simapp_server)->writer, &op);
    str_fini(&op.out);
    return r;
}

int simapp_apply(const struct simapp_pod *specs, size_t n)
{
    struct pod_change changes[64] = {0};
    cr_assert_leq(n, ARRAY_LEN(changes));
    for (size_t i = 0; i < n; i++)
        changes[i] = (struct pod_change){.kind = APPLIED_APPLY,
                                         .pod = make(&specs[i])};
    int r = simapp_change(changes, n);
    for (size_t i = 0; i < n; i++)
        applied_pod_unref(changes[i].pod);
    return r;
}

int simapp_delete(const char *name)
{
    struct pod_change c = {
        .kind = APPLIED_DELETE, .namespace = "ns", .name = name, .grace_s = -1};
    return simapp_change(&c, 1);
}

int simapp_release(const char *name, const char *part)
{
    struct raw_reply reply = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/allocations/ns/%s", name);
    int status = world_call(simapp_server, SERVER_READ, "DELETE", path,
                            (struct jtext){"", 0, false}, &reply);
    cr_expect(!part || strstr(str_text(&reply.body), part), "%s",
              str_text(&reply.body));
    raw_reply_fini(&reply);
    return status;
}

/* Those that are not gone already with others. */
void simapp_delete_all(char names[][16], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int r = simapp_delete(names[i]);
        cr_assert(r == 0 || r == -ENOENT, "%s: %d", names[i], r);
    }
}

void simapp_expect(const char *name, enum pod_state state, const char *reason,
                   const char *part)
{
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(server_embedded(simapp_server)->store.applied);
    const struct applied_pod *p = pod_set_find(set, "ns", name);
    cr_assert(p, "pod %s is not there", name);
    const struct pod_status *s = p->status;
    enum pod_state shown = pod_state_shown(p, NULL);
    cr_expect_eq(shown, state, "%s is %s: %s: %s", name, pod_state_name(shown),
                 s->reason, s->message);
    cr_expect_str_eq(s->reason, reason, "%s: %s", name, s->message);
    cr_expect(strstr(s->message, part), "%s: \"%s\" lacks \"%s\"", name,
              s->message, part);
}

bool simapp_has(const char *name)
{
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(server_embedded(simapp_server)->store.applied);
    return pod_set_find(set, "ns", name) != NULL;
}

size_t simapp_allocations(void)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(server_app(simapp_server)->writer);
    return alloc_index_size(s->allocations);
}

void simapp_settle(void)
{
    cleanup_str struct str why = STR_INIT(4096);
    simnode_settle(simapp_nodes, SIMAPP_NODES);
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        cr_assert(simnode_check(&simapp_nodes[i], &why), "%s", str_text(&why));
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(server_app(simapp_server)->writer);
    cr_assert(sim_check(s, &why), "%s", str_text(&why));
}

struct simnode_pod *simapp_find(const char *name)
{
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        if (simnode_find(&simapp_nodes[i], name))
            return simnode_find(&simapp_nodes[i], name);
    return NULL;
}

struct runner *simapp_runner(void)
{
    return server_embedded(simapp_server)->runner;
}

size_t simapp_job(struct simapp_pod *specs, char names[][16], const char *job,
                  int size)
{
    size_t n = 0;
    for (int pair = 0; pair < size; pair++)
        for (unsigned x = 0; x < 2; x++, n++) {
            (void)snprintf(names[n], 16, "%s-%s%d", job, x ? "x" : "h", pair);
            specs[n] = (struct simapp_pod){.name = names[n],
                                           .role = x ? "xpu" : "host",
                                           .job = job,
                                           .pair = pair,
                                           .size = size};
        }
    return n;
}

void simapp_begin_again(const char *dir)
{
    simapp_server = world_start_in(dir);
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        simapp_nodes[i].server = simapp_server;
}

void simapp_restart(const char *dir)
{
    server_stop(simapp_server);
    simapp_begin_again(dir);
}

/* What is to be stored instead. */
struct edit {
    const char *old, *new;
    struct store *store;
    struct store_pod rows[64];
    char *texts[64];
    size_t n;
};

static int edit_pod(void *ctx, const struct store_pod *row)
{
    struct edit *e = ctx;
    const char *at = strstr(row->json, e->old);
    if (!at || row->ended || row->deleting || e->n == ARRAY_LEN(e->rows))
        return 0;
    struct store_pod *r = &e->rows[e->n];
    char **text = &e->texts[e->n++];
    *text = xasprintf("%.*s%s%s", (int)(at - row->json), row->json, e->new,
                      at + strlen(e->old));
    *r = (struct store_pod){.namespace = xstrdup(row->namespace),
                            .name = xstrdup(row->name),
                            .uid = xstrdup(row->uid),
                            .number = row->number,
                            .grace_s = row->grace_s,
                            .json = *text,
                            .size = strlen(*text)};
    return 0;
}

void simapp_restart_edited(const char *dir, const char *old, const char *new)
{
    struct edit e = {.old = old, .new = new};
    struct error err = {0};
    server_stop(simapp_server);
    cr_assert_eq(store_open(STORE_SQLITE, dir, &e.store, &err), 0, "%s",
                 err.text);
    cr_assert_eq(store_each_pod(e.store, edit_pod, &e, &err), 0, "%s",
                 err.text);
    cr_assert_gt(e.n, (size_t)0, "no pod has %s", old);
    cr_assert_eq(store_begin(e.store, &err), 0, "%s", err.text);
    for (size_t i = 0; i < e.n; i++) {
        cr_assert_eq(store_put_pod(e.store, &e.rows[i], &err), 0, "%s",
                     err.text);
        free((char *)e.rows[i].namespace);
        free((char *)e.rows[i].name);
        free((char *)e.rows[i].uid);
        free(e.texts[i]);
    }
    cr_assert_eq(store_commit(e.store, &err), 0, "%s", err.text);
    store_close(e.store);
    simapp_begin_again(dir);
}

void simapp_expect_shown(const char *path, const char *part)
{
    struct raw_reply reply = {0};
    int status = world_call(simapp_server, SERVER_READ, "GET", path,
                            (struct jtext){"", 0, false}, &reply);
    cr_expect_eq(status, 200, "%s: %d: %s", path, status,
                 str_text(&reply.body));
    cr_expect(strstr(str_text(&reply.body), part), "%s lacks %s: %s", path,
              part, str_text(&reply.body));
    raw_reply_fini(&reply);
}
