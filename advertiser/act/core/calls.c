/* What is answered on the caller's thread, over a connection of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/pod_logs.h"
#include "advertiser/act/core/act_private.h"
#include "advertiser/act/pod/left.h"
#include "lib/base/mem.h"

enum {
    EXEC_MARGIN_MS = 3000,
    EXEC_TIMEOUT_MAX_S = 3600,
};

/* What a call needs to know, of under the lock. */
struct target {
    struct connection c;
    char id[CRI_ID_MAX + 1]; /* of the container */
    char helper[CRI_ID_MAX + 1];
    char uid[64], container[INTENT_NAME_MAX + 1];
    uint32_t attempt; /* of the container */
    bool ended;       /* nothing of it is left there */
    bool answers;
    char why[ACT_MESSAGE_MAX]; /* it does not */
};

static void take_place(struct place *p, struct target *t)
{
    t->c.place = p->what;
    t->answers = p->present && p->what.endpoint[0] && p->health.now != ACT_LOST;
    (void)snprintf(t->why, sizeof t->why, "%s",
                   p->reason[0]           ? p->reason
                   : !p->what.endpoint[0] ? "it has no runtime"
                                          : "");
}

static const struct machine_unit *unit_named(const struct entry *e,
                                             const char *name)
{
    for (size_t i = 0; i < e->m.n_units; i++)
        if (name[0] ? strcmp(e->m.units[i].name, name) == 0
                    : !e->m.units[i].init)
            return &e->m.units[i];
    return NULL;
}

static int find_locked(struct actuator *a, const char *namespace,
                       const char *name, const char *container,
                       struct target *t, struct error *err)
{
    const struct entry *e = entry_by_name(a, namespace, name);
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
    t->attempt = u->noted->attempt;
    t->ended = e->intent->state == ACT_GONE || e->m.cleaned;
    for (size_t i = 0; i < e->m.found.n_containers; i++) {
        const struct machine_container *c = &e->m.found.containers[i];
        if (strcmp(c->name, u->name) == 0 && c->attempt == t->attempt &&
            c->state == CRI_RUNNING)
            memcpy(t->id, c->id, sizeof t->id);
    }
    helper_id(a, t->c.place.name, t->helper);
    return t->answers ? 0
                      : error_set(err, EHOSTUNREACH, "%s does not answer: %s",
                                  t->c.place.name, t->why);
}

static int find(struct actuator *a, const char *namespace, const char *name,
                const char *container, struct target *ret_target,
                struct error *err)
{
    *ret_target = (struct target){0};
    (void)pthread_mutex_lock(&a->lock);
    int e = find_locked(a, namespace, name, container ? container : "",
                        ret_target, err);
    (void)pthread_mutex_unlock(&a->lock);
    return e;
}

int actuator_exec(struct actuator *a, const char *namespace, const char *name,
                  const char *container, const char *const *argv, size_t n_argv,
                  uint32_t timeout_s, struct cri_exec *ret_exec,
                  struct error *err)
{
    struct target t;
    int e = find(a, namespace, name, container, &t, err);
    if (e < 0)
        return e;
    if (!t.id[0])
        return error_set(err, ENOENT,
                         "pod %s/%s: container %s does not run now", namespace,
                         name, t.container);
    if (timeout_s == 0 || timeout_s > EXEC_TIMEOUT_MAX_S)
        timeout_s = EXEC_TIMEOUT_MAX_S;
    e = connection_open(&t.c, err);
    if (e == 0)
        e = cri_exec_sync(t.c.cri, t.id, argv, n_argv, timeout_s,
                          timeout_s * 1000 + EXEC_MARGIN_MS, ret_exec, err);
    connection_close(&t.c);
    return e;
}

/* --- logs --------------------------------------------------------------- */

/* Some of the log that `log` names, which goes on from there. */
static int log_of_attempt(struct actuator *a, struct target *t, size_t max,
                          struct act_log *log, struct error *err)
{
    const struct pod_log ask = {.container = t->container,
                                .attempt = log->attempt,
                                .offset = log->next,
                                .max = max};
    int e = t->helper[0] ? connection_open(&t->c, err) : 0;
    const struct pod_access pod = {.place = &t->c.place,
                                   .dirs = &a->dirs,
                                   .uid = t->uid,
                                   .cri = t->c.cri,
                                   .helper = t->helper};
    if (e == 0)
        e = pod_logs_read(&pod, &ask, &log->text, &log->next, err);
    connection_close(&t->c);
    if (e == 0 && log->attempt < t->attempt && log->next == ask.offset) {
        log->attempt++; /* nothing more comes in this one */
        log->next = 0;
    }
    return e;
}

/* Which log is meant, and from where on: a pod that was made again under its
 * name begins with the first. */
static void log_choose(const struct act_log_ask *ask, const struct target *t,
                       struct act_log *log)
{
    log->attempt = t->attempt;
    log->next = ask->offset;
    if (ask->attempt && ask->attempt < t->attempt)
        log->attempt = ask->attempt;
    else if (t->attempt && ask->attempt > t->attempt)
        log->next = 0;
}

static int log_of_kept(struct actuator *a, const struct act_log_ask *ask,
                       const struct target *t, size_t max, struct act_log *log)
{
    struct error ignored; /* how it is without */
    const struct intent_log names = {.namespace = ask->namespace,
                                     .name = ask->name,
                                     .container = ask->container};
    uint64_t offset = log->attempt < t->attempt ? 0 : log->next;
    int e = kept_read(a, &names, offset, max, &log->text, &log->next, &ignored);
    if (e == 0)
        log->attempt = t->attempt;
    return e;
}

int actuator_logs(struct actuator *a, const struct act_log_ask *ask,
                  struct act_log *ret_log, struct error *err)
{
    struct target t;
    struct act_log log = {.text = STR_INIT(ACT_LOG_MAX)};
    size_t max = ask->max;
    if (max == 0 || max > ACT_LOG_MAX)
        max = ACT_LOG_MAX;
    int e = find(a, ask->namespace, ask->name, ask->container, &t, err);
    log_choose(ask, &t, &log);
    if ((e == -ENOENT || t.ended) && log_of_kept(a, ask, &t, max, &log) == 0)
        e = 0;
    else if (e == 0 && t.attempt > 0) /* else nothing was begun yet */
        e = log_of_attempt(a, &t, max, &log, err);
    if (e < 0) {
        str_fini(&log.text);
        return e;
    }
    *ret_log = log;
    return 0;
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
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(sorted[mid]->uid, uid) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < n && strcmp(sorted[low]->uid, uid) == 0; low++)
        sorted[low]->known = sorted[low]->ours;
}

/* A card may list thousands: they are sorted while nobody waits for it. */
static void mark_known(struct actuator *a, const char *place,
                       struct act_object *list, size_t n)
{
    cleanup_free struct act_object **sorted = xcalloc(n + 1, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &list[i];
    qsort(sorted, n, sizeof *sorted, by_uid);
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n_entries; i++) {
        const struct intent *e = a->entries[i]->intent;
        if (e->state != ACT_GONE && strcmp(e->place, place) == 0)
            mark_pod(sorted, n, e->uid);
    }
    (void)pthread_mutex_unlock(&a->lock);
}

int actuator_objects(struct actuator *a, const char *place,
                     struct act_object **ret_objects, size_t *ret_n,
                     struct error *err)
{
    struct target t = {0};
    struct cri_sandboxes sandboxes = {0};
    struct cri_containers containers = {0};
    (void)pthread_mutex_lock(&a->lock);
    struct place *p = place_find(a, place);
    if (p)
        take_place(p, &t);
    (void)pthread_mutex_unlock(&a->lock);
    if (!p)
        return error_set(err, ENOENT, "%s: there is no such place", place);
    if (!t.answers)
        return error_set(err, EHOSTUNREACH, "%s does not answer: %s", place,
                         t.why);
    int e = connection_open(&t.c, err);
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
