/* pod - what a pod is to the actuator: what is wanted, and its states. */
#ifndef BIGA_ADVERTISER_ACT_POD_POD_H
#define BIGA_ADVERTISER_ACT_POD_POD_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/act/card/card.h"
#include "advertiser/cri/cri.h"

enum { ACT_PODS_MAX = 4096 }; /* of one node */

enum act_state {
    ACT_WANTED,    /* written down, nothing begun */
    ACT_PREPARING, /* the card is configured, files are delivered */
    ACT_PULLING,
    ACT_CREATING, /* sandbox and containers */
    ACT_RUNNING,
    ACT_STOPPING,
    ACT_GONE,   /* nothing of it is left there */
    ACT_FAILED, /* ended, or cannot run; with a reason */
};
enum { ACT_STATES = ACT_FAILED + 1 };
const char *act_state_name(enum act_state state); /* "wanted" … */

/* What is to be: a pod, whole, and where. */
struct act_pod {
    const char *namespace, *name, *uid;
    const char *place;    /* a place's name */
    const char *pair_key; /* pods of one pair on this node share it; "" none */
    bool is_host;         /* the host pod of its pair: begins when the others
                           * are ready, ends before they do */
    bool restarts;        /* a service, or what its restart policy says, is
                           * for the machine to know: from the spec */
    const char *spec;     /* the Pod's JSON */
    size_t spec_size;
    const char *files; /* what its volumes and variables take from elsewhere: a
                        * JSON list of {"kind":"ConfigMap"|"Secret",
                        * "name":"…","data":{"KEY":"base64"}}; NULL none */
    size_t files_size;
    struct cri_pairs env; /* BIGA_… for every container */
    int sriov_vfs;        /* virtual functions its card is to have; -1: as is */
    const char *hook;     /* the operator's hook to run before, "" none */
    const char *owner;    /* who wants it: "extender", "socket"; at most 15
                           * bytes; see actuator_keep() */
    bool held;            /* written down, and not begun before
                           * actuator_begin() */
};

#endif
