/* The pods of a bindserver, and what calls do to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/bindserver_private.h"

struct pod *bindserver_find(struct bindserver *s, const char *name)
{
    for (size_t i = 0; i < s->n_pods; i++)
        if (s->pods[i].there && strcmp(s->pods[i].name, name) == 0)
            return &s->pods[i];
    return NULL;
}

void bindserver_set_target(struct target *t, const char *node,
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
    struct pod *old = bindserver_find(s, name);
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
    bindserver_find(s, name)->there = false;
    pthread_mutex_unlock(&s->lock);
}

void bindserver_bind(struct bindserver *s, const char *name, const char *node,
                     const char *allocation)
{
    pthread_mutex_lock(&s->lock);
    bindserver_set_target(&bindserver_find(s, name)->bound, node, allocation);
    pthread_mutex_unlock(&s->lock);
}

void bindserver_deleting(struct bindserver *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    bindserver_find(s, name)->deleting = true;
    pthread_mutex_unlock(&s->lock);
}

bool bindserver_node(struct bindserver *s, const char *name, char ret_node[64],
                     char **ret_allocation)
{
    pthread_mutex_lock(&s->lock);
    const struct pod *p = bindserver_find(s, name);
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
