/* The pods of a bindserver, and what calls do to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/bindserver_private.h"

static struct pod *find(struct bindserver *s, const char *name)
{
    for (size_t i = 0; i < s->n_pods; i++)
        if (s->pods[i].there && strcmp(s->pods[i].name, name) == 0)
            return &s->pods[i];
    return NULL;
}

static void set_target(struct target *t, const char *node,
                       const char *allocation)
{
    (void)snprintf(t->node, sizeof t->node, "%s", node);
    free(t->allocation);
    t->allocation = allocation ? xstrdup(allocation) : NULL;
}

static void pod_fini(struct pod *p)
{
    free(p->bound.allocation);
    free(p->late.allocation);
}

void bindserver_forget_pods(struct bindserver *s)
{
    for (size_t i = 0; i < s->n_pods; i++)
        pod_fini(&s->pods[i]);
}

void bindserver_pod(struct bindserver *s, const char *name, const char *uid)
{
    pthread_mutex_lock(&s->lock);
    struct pod *old = find(s, name);
    if (old)
        old->there = false;
    size_t i = 0;
    while (i < s->n_pods && s->pods[i].there)
        i++;
    if (i == SERVED_PODS_MAX)
        abort();
    s->n_pods += i == s->n_pods;
    struct pod *p = &s->pods[i];
    pod_fini(p);
    *p = (struct pod){.there = true};
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    (void)snprintf(p->uid, sizeof p->uid, "%s", uid);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_delete(struct bindserver *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    struct pod *p = find(s, name);
    if (p) /* else a DELETE was first */
        p->there = false;
    pthread_mutex_unlock(&s->lock);
}

void bindserver_bind(struct bindserver *s, const char *name, const char *node,
                     const char *allocation)
{
    pthread_mutex_lock(&s->lock);
    set_target(&find(s, name)->bound, node, allocation);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_deleting(struct bindserver *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    find(s, name)->deleting = true;
    pthread_mutex_unlock(&s->lock);
}

bool bindserver_node(struct bindserver *s, const char *name, char ret_node[64],
                     char **ret_allocation)
{
    pthread_mutex_lock(&s->lock);
    const struct pod *p = find(s, name);
    if (p)
        (void)snprintf(ret_node, 64, "%s", p->bound.node);
    if (p && ret_allocation)
        *ret_allocation = xstrdup(p->bound.allocation ? p->bound.allocation
                                                      : "");
    pthread_mutex_unlock(&s->lock);
    return p != NULL;
}

void bindserver_gated(struct bindserver *s, const char *name, const char *uid)
{
    bindserver_pod(s, name, uid);
    pthread_mutex_lock(&s->lock);
    struct pod *p = find(s, name);
    p->gated = p->had_gate = true;
    pthread_mutex_unlock(&s->lock);
}

/* kube-scheduler binds what is open and pinned. */
static void schedule(struct bindserver *s, struct pod *p)
{
    if (s->schedules && !p->gated && p->pin[0] && !p->bound.node[0])
        (void)snprintf(p->bound.node, sizeof p->bound.node, "%s", p->pin);
}

void bindserver_schedules(struct bindserver *s, bool schedules)
{
    pthread_mutex_lock(&s->lock);
    s->schedules = schedules;
    for (size_t i = 0; i < s->n_pods; i++)
        schedule(s, &s->pods[i]);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_open_gate(struct bindserver *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    find(s, name)->gated = false;
    pthread_cond_broadcast(&s->opened);
    pthread_mutex_unlock(&s->lock);
}

/* With the lock. */
static bool read_pin(struct bindserver *s, const char *name, char ret_node[64])
{
    const struct pod *p = find(s, name);
    (void)snprintf(ret_node, 64, "%s", p ? p->pin : "");
    return p && !p->gated;
}

bool bindserver_pin(struct bindserver *s, const char *name, char ret_node[64])
{
    hold_lock(&s->lock);
    return read_pin(s, name, ret_node);
}

void bindserver_await_pin(struct bindserver *s, const char *name,
                          char ret_node[64])
{
    hold_lock(&s->lock);
    while (!read_pin(s, name, ret_node))
        (void)pthread_cond_wait(&s->opened, &s->lock);
}

bool bindserver_is_there(struct bindserver *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    bool there = find(s, name) != NULL;
    pthread_mutex_unlock(&s->lock);
    return there;
}

unsigned bindserver_n_bound(struct bindserver *s)
{
    unsigned most = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_pods; i++)
        if (s->pods[i].n_bound > most)
            most = s->pods[i].n_bound;
    pthread_mutex_unlock(&s->lock);
    return most;
}

/* --- what is asked ------------------------------------------------------ */

void bindserver_reply(struct reply *r, int status, const char *reason,
                      const char *text)
{
    r->status = status;
    str_reset(&r->body);
    str_addf(&r->body,
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
             "\"status\":\"%s\",\"message\":\"%s\",\"reason\":\"%s\","
             "\"code\":%d}",
             status < 300 ? "Success" : "Failure", text, reason, status);
}

static void bind(struct pod *p, const struct request *q, struct reply *r)
{
    if (strcmp(p->uid, q->uid) != 0) {
        bindserver_reply(r, 409, "Conflict", "Precondition failed: UID");
    } else if (p->deleting) {
        bindserver_reply(r, 409, "Conflict", "pod is being deleted");
    } else if (p->bound.node[0]) {
        bindserver_reply(r, 409, "Conflict",
                         "pod is already assigned to a node");
    } else {
        set_target(&p->bound, q->node, q->allocation);
        p->n_bound++;
        bindserver_reply(r, 201, "", "");
    }
}

static bool is_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Affinity and gates of a pod without gates cannot be changed; what says
 * nothing new is no change. */
static void open_gate(struct bindserver *s, struct pod *p,
                      const struct request *q, struct reply *r)
{
    if (strcmp(p->uid, q->uid) != 0) {
        bindserver_reply(r, 422, "Invalid", "metadata.uid: is immutable");
    } else if ((!p->gated && q->node[0] && !is_text(p->pin, q->node)) ||
               (q->unbinds && p->bound.node[0])) {
        bindserver_reply(r, 422, "Invalid",
                         "spec: pod updates may not change fields");
    } else {
        p->n_bound += p->gated && q->opens;
        p->gated = p->gated && !q->opens;
        if (q->opens)
            (void)snprintf(p->pin, sizeof p->pin, "%s", q->node);
        pthread_cond_broadcast(&s->opened);
        char *node = xstrdup(p->bound.node);
        set_target(&p->bound, node, q->allocation);
        free(node);
        schedule(s, p);
        bindserver_reply(r, 200, "", "");
    }
}

/* At once: it runs nowhere. */
static void delete_pod(struct pod *p, const struct request *q, struct reply *r)
{
    if (q->uid[0] && strcmp(p->uid, q->uid) != 0) {
        bindserver_reply(r, 409, "Conflict", "Precondition failed: UID");
        return;
    }
    p->there = q->call == CALL_EVICT; /* takes its time to end */
    p->deleting = true;
    bindserver_reply(r, q->call == CALL_EVICT ? 201 : 200, "", "");
}

void bindserver_carry_out(struct bindserver *s, const struct request *q,
                          struct reply *r)
{
    pthread_mutex_lock(&s->lock);
    struct pod *p = find(s, q->pod);
    if (!p)
        bindserver_reply(r, 404, "NotFound", "pods not found");
    else if (q->call == CALL_BIND)
        bind(p, q, r);
    else if (q->call == CALL_OPEN)
        open_gate(s, p, q, r);
    else
        delete_pod(p, q, r);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_carry_out_later(struct bindserver *s, const struct request *q)
{
    pthread_mutex_lock(&s->lock);
    struct pod *p = find(s, q->pod);
    if (p && strcmp(p->uid, q->uid) == 0)
        set_target(&p->late, q->node, q->allocation);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_carry_out_late(struct bindserver *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    struct pod *p = find(s, name);
    if (p && p->late.node[0] && p->gated) {
        struct reply ignored = {.body = STR_INIT(4096)};
        struct request q = {.opens = true, .allocation = p->late.allocation};
        memcpy(q.uid, p->uid, sizeof q.uid);
        memcpy(q.node, p->late.node, sizeof q.node);
        open_gate(s, p, &q, &ignored);
        str_fini(&ignored.body);
    } else if (p && p->late.node[0] && !p->had_gate && !p->bound.node[0] &&
               !p->deleting) {
        set_target(&p->bound, p->late.node, p->late.allocation);
        p->n_bound++;
    }
    if (p)
        set_target(&p->late, "", NULL);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_show(struct bindserver *s, const struct request *q,
                     struct reply *r)
{
    pthread_mutex_lock(&s->lock);
    const struct pod *p = find(s, q->pod);
    if (!p) {
        bindserver_reply(r, 404, "NotFound", "pods not found");
    } else {
        r->status = 200;
        str_reset(&r->body);
        str_addf(&r->body,
                 "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
                 "\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\"%s",
                 p->name, p->uid,
                 p->deleting ? ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""
                             : "");
        if (p->bound.allocation) {
            str_add(&r->body, ",\"annotations\":{\"x\":\"y\","
                              "\"biga.dev/allocation\":");
            str_add_json(&r->body, p->bound.allocation);
            str_add_c(&r->body, '}');
        }
        str_add(&r->body, "},\"spec\":{\"containers\":[]");
        if (p->bound.node[0])
            str_addf(&r->body, ",\"nodeName\":\"%s\"", p->bound.node);
        if (p->gated)
            str_add(&r->body, ",\"schedulingGates\":[{\"name\":"
                              "\"biga.dev/place\"}]");
        str_add(&r->body, "},\"status\":{}}");
    }
    pthread_mutex_unlock(&s->lock);
}
