/* What is answered on the caller's thread, over a connection of its own; and what
 * calls have come to. */
#include "advertiser/act/core/actuator_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/labels.h"
#include "advertiser/act/core/helper_pod.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"

enum {
    EXEC_MARGIN_MS = 3000,
    EXEC_TIMEOUT_MAX_S = 3600,
};

static LOCKED void take_place(struct place *p, struct call_target *t)
{
    t->c.place = p->desc;
    t->answers = p->present && p->desc.endpoint[0] && p->health.now != ACT_LOST;
    (void)snprintf(t->why, sizeof t->why, "%s",
                   p->reason[0]           ? p->reason
                   : !p->desc.endpoint[0] ? "it has no runtime"
                                          : "");
}

static const struct machine_unit *unit_named(const struct pod_entry *e,
                                             const char *name)
{
    for (size_t i = 0; i < e->m.n_units; i++)
        if (name[0] ? strcmp(e->m.units[i].name, name) == 0
                    : !e->m.units[i].init)
            return &e->m.units[i];
    return NULL;
}

static LOCKED int find_locked(struct actuator *a, const char *namespace,
                              const char *name, const char *container,
                              struct call_target *t, struct error *err)
{
    const struct pod_entry *e = pod_entry_by_name(a, namespace, name);
    struct place *p = e ? place_find(a, e->intent->place) : NULL;
    const struct machine_unit *u = e ? unit_named(e, container) : NULL;
    if (!e)
        return error_set(err, ENOENT, "there is no pod %s/%s on this node",
                         namespace, name);
    if (!u)
        return error_set(err, ENOENT, "pod %s/%s: no container \"%s\"",
                         namespace, name, container);
    if (!p)
        return error_set(err, EHOSTUNREACH, "pod %s/%s: %s is not there",
                         namespace, name, e->intent->place);
    take_place(p, t);
    (void)snprintf(t->uid, sizeof t->uid, "%s", e->intent->uid);
    (void)snprintf(t->container, sizeof t->container, "%s", u->name);
    (void)snprintf(t->sandbox, sizeof t->sandbox, "%s", e->intent->sandbox);
    t->attempt = u->noted->attempt;
    t->ended = e->intent->state == ACT_GONE || e->m.cleaned || e->logs_saved;
    t->exited = e->intent->state == ACT_FAILED;
    for (size_t i = 0; i < e->m.found.n_containers; i++) {
        const struct machine_container *c = &e->m.found.containers[i];
        if (strcmp(c->name, u->name) != 0 || c->attempt != t->attempt)
            continue;
        t->exited = c->state == CRI_EXITED;
        if (c->state == CRI_RUNNING)
            memcpy(t->id, c->id, sizeof t->id);
    }
    helper_id(a, t->c.place.name, t->helper);
    return t->answers ? 0
                      : error_set(err, EHOSTUNREACH, "%s does not answer: %s",
                                  t->c.place.name, t->why);
}

int call_find(struct actuator *a, const char *namespace, const char *name,
              const char *container, struct call_target *ret_target,
              struct error *err)
{
    *ret_target = (struct call_target){0};
    act_lock(a);
    int e = find_locked(a, namespace, name, container ? container : "",
                        ret_target, err);
    act_unlock(a);
    return e;
}

bool call_is_other(const struct call_target *t, const char *uid)
{
    return uid && t->uid[0] && strcmp(uid, t->uid) != 0;
}

int call_find_running(struct actuator *a, const char *namespace,
                      const char *name, const char *container,
                      struct call_target *ret_target, struct error *err)
{
    int e = call_find(a, namespace, name, container, ret_target, err);
    if (e == 0 && !ret_target->id[0])
        e = error_set(err, ENOENT, "pod %s/%s: container %s does not run now",
                      namespace, name, ret_target->container);
    return e;
}

int actuator_exec(struct actuator *a, const char *namespace, const char *name,
                  const char *container, const char *const *argv, size_t n_argv,
                  uint32_t timeout_s, struct cri_exec *ret_exec,
                  struct error *err)
{
    struct call_target t;
    int e = call_find_running(a, namespace, name, container, &t, err);
    if (e < 0)
        return e;
    if (timeout_s == 0 || timeout_s > EXEC_TIMEOUT_MAX_S)
        timeout_s = EXEC_TIMEOUT_MAX_S;
    e = connection_open(&t.c, err);
    if (e == 0)
        e = cri_exec_sync(t.c.cri, t.id, argv, n_argv, timeout_s,
                          timeout_s * 1000 + EXEC_MARGIN_MS, ret_exec, err);
    connection_close(&t.c);
    return e;
}

/* --- streams ------------------------------------------------------------ */

static int find_stream(struct actuator *a, const struct act_stream_ask *ask,
                       struct call_target *t, struct error *err)
{
    /* the ports of a pod are its sandbox's */
    int e = ask->kind == ACT_FORWARD
                ? call_find(a, ask->namespace, ask->name, "", t, err)
                : call_find_running(a, ask->namespace, ask->name,
                                    ask->container, t, err);
    if (e < 0)
        return e;
    if (call_is_other(t, ask->uid))
        return error_set(err, ENOENT, CALL_OTHER, ask->namespace, ask->name,
                         ask->uid);
    if (ask->host_only && !card_is_host(&t->c.place))
        return error_set(err, ENOTSUP,
                         "pod %s/%s is on %s: only commands in host pods are "
                         "streamed",
                         ask->namespace, ask->name, t->c.place.name);
    if (ask->kind == ACT_FORWARD && !t->sandbox[0])
        return error_set(err, ENOENT, "pod %s/%s does not run now",
                         ask->namespace, ask->name);
    return 0;
}

static int ask_runtime(const struct act_stream_ask *ask,
                       const struct call_target *t, char *url,
                       struct error *err)
{
    switch (ask->kind) {
    case ACT_EXEC:
        return cri_exec_url(t->c.cri, t->id, &ask->cmd, CALL_LIST_MS, url, err);
    case ACT_ATTACH:
        return cri_attach_url(t->c.cri, t->id, &ask->cmd.streams, CALL_LIST_MS,
                              url, err);
    case ACT_FORWARD:
        return cri_forward_url(t->c.cri, t->sandbox, &ask->ports, CALL_LIST_MS,
                               url, err);
    }
    return error_set(err, EINVAL, "there is no such stream");
}

int actuator_stream(struct actuator *a, const struct act_stream_ask *ask,
                    struct act_stream *ret_stream, struct error *err)
{
    struct call_target t;
    int e = find_stream(a, ask, &t, err);
    if (e == 0)
        e = connection_open(&t.c, err);
    if (e < 0)
        return e;
    e = ask_runtime(ask, &t, ret_stream->url, err);
    connection_close(&t.c);
    ret_stream->place = t.c.place;
    return e;
}

/* --- objects ------------------------------------------------------------ */

static void put(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text ? text : "");
}

static void put_labels(const struct actuator *a, const struct cri_pair *list,
                       size_t n, struct act_object *o)
{
    o->ours = strcmp(label_find(list, n, ACT_LABEL_CLUSTER), a->cluster) == 0 &&
              strcmp(label_find(list, n, ACT_LABEL_NODE), a->node) == 0;
    put(o->uid, sizeof o->uid, label_find(list, n, ACT_LABEL_UID));
    if (!o->uid[0])
        put(o->uid, sizeof o->uid,
            label_find(list, n, "io.kubernetes.pod.uid"));
    put(o->namespace, sizeof o->namespace,
        label_find(list, n, "io.kubernetes.pod.namespace"));
    put(o->pod, sizeof o->pod, label_find(list, n, "io.kubernetes.pod.name"));
}

static void object_of_sandbox(const struct actuator *a,
                              const struct cri_sandbox *s, struct act_object *o)
{
    *o = (struct act_object){.sandbox = true, .attempt = s->attempt};
    put_labels(a, s->labels, s->n_labels, o);
    memcpy(o->id, s->id, sizeof o->id);
    put(o->namespace, sizeof o->namespace, s->namespace);
    put(o->pod, sizeof o->pod, s->name);
    put(o->state, sizeof o->state, s->ready ? "ready" : "notready");
}

static void object_of_container(const struct actuator *a,
                                const struct cri_container *c,
                                struct act_object *o)
{
    static const char *const states[] = {"created", "running", "exited",
                                         "unknown"};
    *o = (struct act_object){.attempt = c->attempt};
    put_labels(a, c->labels, c->n_labels, o);
    memcpy(o->id, c->id, sizeof o->id);
    memcpy(o->sandbox_id, c->sandbox_id, sizeof o->sandbox_id);
    put(o->container, sizeof o->container, c->name);
    put(o->state, sizeof o->state,
        (size_t)c->state < ARRAY_LEN(states) ? states[c->state] : "unknown");
}

static int list_all(struct cri *cri, struct cri_sandboxes *sandboxes,
                    struct cri_containers *containers, struct error *err)
{
    const struct cri_pairs any = {0};
    int e = cri_list_sandboxes(cri, any, CALL_LIST_MS, sandboxes, err);
    return e < 0 ? e
                 : cri_list_containers(cri, any, CALL_LIST_MS, containers, err);
}

static int by_uid(const void *a, const void *b)
{
    const struct act_object *const *x = a, *const *y = b;
    return strcmp((*x)->uid, (*y)->uid);
}

/* Those of a pod that is to be there. */
static void mark_pod(struct act_object **sorted, size_t n, const char *uid)
{
    size_t at = lower_bound(n, i, strcmp(sorted[i]->uid, uid) < 0);
    for (; at < n && strcmp(sorted[at]->uid, uid) == 0; at++)
        sorted[at]->known = sorted[at]->ours;
}

/* A card may list thousands: they are sorted while nobody waits for it. */
static void mark_known(struct actuator *a, const char *place,
                       struct act_object *list, size_t n)
{
    cleanup_free struct act_object **sorted = xcalloc(n + 1, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &list[i];
    qsort(sorted, n, sizeof *sorted, by_uid);
    act_lock(a);
    for (size_t i = 0; i < a->n_entries; i++) {
        const struct intent *e = a->entries[i]->intent;
        if (e->state != ACT_GONE && strcmp(e->place, place) == 0)
            mark_pod(sorted, n, e->uid);
    }
    act_unlock(a);
}

int actuator_describe(struct actuator *a, const char *place,
                      struct act_place *ret_place, struct error *err)
{
    struct call_target t = {0};
    act_lock(a);
    struct place *p = place_find(a, place);
    if (p)
        take_place(p, &t);
    act_unlock(a);
    if (!p)
        return error_set(err, ENOENT, "%s: there is no such place", place);
    if (!t.answers)
        return error_set(err, EHOSTUNREACH, "%s does not answer: %s", place,
                         t.why);
    *ret_place = t.c.place;
    return 0;
}

int actuator_objects(struct actuator *a, const char *place,
                     struct act_object **ret_objects, size_t *ret_n,
                     struct error *err)
{
    struct call_target t = {0};
    struct cri_sandboxes sandboxes = {0};
    struct cri_containers containers = {0};
    int e = actuator_describe(a, place, &t.c.place, err);
    if (e < 0)
        return e;
    e = connection_open(&t.c, err);
    if (e == 0)
        e = list_all(t.c.cri, &sandboxes, &containers, err);
    connection_close(&t.c);
    if (e == 0) {
        size_t n = 0;
        struct act_object *list = xcalloc(sandboxes.n + containers.n + 1,
                                          sizeof *list);
        for (size_t i = 0; i < sandboxes.n; i++)
            object_of_sandbox(a, &sandboxes.list[i], &list[n++]);
        for (size_t i = 0; i < containers.n; i++)
            object_of_container(a, &containers.list[i], &list[n++]);
        mark_known(a, place, list, n);
        *ret_objects = list;
        *ret_n = n;
    }
    cri_sandboxes_fini(&sandboxes);
    cri_containers_fini(&containers);
    return e;
}

/* --- what is counted ------------------------------------------------------ */

size_t actuator_calls(struct actuator *a, struct act_place_calls **ret_places)
{
    act_lock(a);
    size_t n = a->n_places;
    struct act_place_calls *list = xcalloc(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        struct place *p = a->places[i];
        (void)snprintf(list[i].name, sizeof list[i].name, "%s",
                       p->desc.pci[0] ? p->desc.pci : p->desc.name);
        for (unsigned k = 0; k < GRPC_OUTCOMES; k++)
            list[i].ended[k] = atomic_load(&p->counts.ended[k]);
    }
    act_unlock(a);
    *ret_places = list;
    return n;
}

void actuator_count_pods(struct actuator *a, size_t ret_states[ACT_STATES])
{
    memset(ret_states, 0, ACT_STATES * sizeof *ret_states);
    act_lock(a);
    for (size_t i = 0; i < a->n_entries; i++)
        ret_states[a->entries[i]->intent->state] +=
            !pod_entry_is_helper(a->entries[i]);
    act_unlock(a);
}
