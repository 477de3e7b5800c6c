/* What fit_nodes.c, fit_nodes_pods.c and fit_nodes_judge.c share. */
#ifndef BIGA_EXTENDER_FIT_FIT_NODES_PRIVATE_H
#define BIGA_EXTENDER_FIT_FIT_NODES_PRIVATE_H

#include <pthread.h>

#include "extender/fit/fit_kinds.h"
#include "extender/fit/fit_nodes.h"
#include "extender/fit/fit_takes.h"
#include "lib/base/idmap.h"

/* Of one resource; what is taken wraps, as kube-scheduler's does. */
struct fit_room {
    uint32_t resource;
    int64_t has;
    uint64_t taken;
};

/* One that is known, or has pods. */
struct fit_node {
    char *name;            /* NULL: free */
    struct fit_kind *kind; /* NULL: it is not known */
    struct fit_room *rooms;
    size_t n_rooms, rooms_cap;
    int64_t pods_has, pods;
    struct fit_take **ports; /* of the pods that have some */
    size_t n_ports, ports_cap;
    bool lap;
};

struct fit_nodes {
    pthread_mutex_t lock; /* guards what follows */
    struct fit_kinds kinds;
    struct fit_takes takes;
    bool by_class[FIT_RESOURCES_MAX + 1];
    struct fit_node *nodes;
    size_t n_nodes, nodes_cap;
    uint32_t *free_nodes;
    size_t n_free, free_cap;
    struct strmap by_name; /* number + 1 of the node, by its name */
    struct idmap pods;     /* struct record, by uid */
    size_t n_assumed;
    bool lap[2], nodes_lap; /* turned when a list begins */
    uint64_t version, question;
};

/* All of these with the lock. */

/* NULL: nothing is known of it, and nobody is there. */
struct fit_node *fit_nodes_find(const struct fit_nodes *r, const char *name);
/* Its number; a new one when it is neither.  All nodes may move. */
uint32_t fit_nodes_need(struct fit_nodes *r, const char *name);
/* If nothing is known of it any more, and nobody is on it. */
void fit_nodes_drop(struct fit_nodes *r, uint32_t number);

/* What it has and what is taken of a resource; NULL: neither. */
struct fit_room *fit_nodes_find_room(const struct fit_node *n,
                                     uint32_t resource);
struct fit_room *fit_nodes_need_room(struct fit_node *n, uint32_t resource);

/* What a pod takes, off its node until it is laid back; nothing may change in
 * between.  One that is not on that node is left alone. */
void fit_nodes_lift(struct fit_nodes *r, struct fit_node *n, const char *uid);
void fit_nodes_lay_back(struct fit_nodes *r, struct fit_node *n,
                        const char *uid);

/* At the end: nodes are not charged less. */
void fit_nodes_drop_pods(struct fit_nodes *r);

#endif
