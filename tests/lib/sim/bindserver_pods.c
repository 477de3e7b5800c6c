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
    find(s, name)->there = false;
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

void bindserver_carry_out(struct bindserver *s, const struct request *q,
                          struct reply *r)
{
    pthread_mutex_lock(&s->lock);
    struct pod *p = find(s, q->pod);
    if (!p) {
        bindserver_reply(r, 404, "NotFound", "pods not found");
    } else if (strcmp(p->uid, q->uid) != 0) {
        bindserver_reply(r, 409, "Conflict", "Precondition failed: UID");
    } else if (p->deleting) {
        bindserver_reply(r, 409, "Conflict", "pod is being deleted");
    } else if (p->bound.node[0]) {
        bindserver_reply(r, 409, "Conflict", "pod is already assigned to a node");
    } else {
        set_target(&p->bound, q->node, q->allocation);
        p->n_bound++;
        bindserver_reply(r, 201, "", "");
    }
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
    if (p && p->late.node[0] && !p->bound.node[0] && !p->deleting) {
        set_target(&p->bound, p->late.node, p->late.allocation);
        p->n_bound++;
    }
    if (p)
        set_target(&p->late, "", NULL);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_show(struct bindserver *s, const struct request *q, struct reply *r)
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
        str_add(&r->body, "},\"status\":{}}");
    }
    pthread_mutex_unlock(&s->lock);
}
