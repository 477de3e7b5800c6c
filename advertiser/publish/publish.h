/* publish - decides what the advertiser of one node sends to a server, and
 * when.
 *
 * Machines without I/O or clock: one names the next request and when it is
 * due; the caller sends it and reports the answer.  There are two kinds, for
 * the two servers there are: the extender's own publish listener
 * (publish_direct.c) and a Kubernetes API server (publish_kube.c). */
#ifndef BIGA_ADVERTISER_PUBLISH_PUBLISH_H
#define BIGA_ADVERTISER_PUBLISH_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "model/slice/slice.h"
#include "model/topo/topo.h"

#define PUBLISH_NEVER INT64_MAX
#define PUBLISH_COLLECTION "/apis/resource.k8s.io/v1/resourceslices"
/* A query, a format: those of one node (a DNS name) and of our driver. */
#define PUBLISH_NODE_SLICES \
    "fieldSelector=spec.nodeName%%3D%s%%2Cspec.driver%%3D" SLICE_DRIVER

enum {
    PUBLISH_PATH_MAX = 640,
    PUBLISH_INSTANCE_MAX = 32,
};

struct publish_config {
    const char *boot_id;    /* borrowed; as slice_decode allows it */
    int64_t heartbeat_ms;   /* direct: from the end of one round to the next;
                             * kube: between two renewals of the Lease */
    int64_t backoff_min_ms; /* after the first failure; then doubled */
    int64_t backoff_max_ms; /* direct: also between tries while superseded */

    /* kube alone */
    const char *instance;     /* of this process, at most PUBLISH_INSTANCE_MAX
                            * letters and digits: differs after a restart */
    const char *namespace;    /* of the heartbeats: a DNS label */
    int64_t check_ms;         /* how often what is there is compared */
    int64_t (*unix_us)(void); /* wall clock, for times that people read */
};

struct publish_request {
    const char *method; /* a constant */
    char path[PUBLISH_PATH_MAX];
    struct str body;  /* empty: none.  The caller's, reused; str_fini */
    bool merge_patch; /* the body is application/merge-patch+json */
};

struct publish_answer {
    long status; /* 0: there was none */
    const char *body;
    size_t body_size;
    const char *error; /* why there was none, or what the body says */
};

/* A change of a slice of the node as a watch shows it, whoever made it. */
struct publish_notice {
    const char *name;    /* "": there was a gap, anything may have changed */
    const char *version; /* its resourceVersion; of one that is gone "" */
    bool gone;
};

/* What every machine begins with, for its caller to read. */
struct publish_machine {
    int64_t due;    /* of the next request; PUBLISH_NEVER when done */
    bool published; /* all slices were accepted at least once */
    bool stopping;
    bool left_slices; /* done, but some may be left on the server */
};

/* One kind of machine.  `m` is what create() returned; one thread at a time
 * uses it. */
struct publish_kind {
    /* `config` must outlive it; a reference to `topo` is taken.  `seed`
     * varies the jitter. */
    void *(*create)(const struct publish_config *config, struct topo *topo,
                    uint64_t seed, int64_t now_ms);
    void (*destroy)(void *m); /* NULL allowed */
    /* The topology as it is now.  Nothing happens when its content is equal;
     * else it is published at once under a higher generation. */
    void (*update)(void *m, struct topo *topo, int64_t now_ms);
    /* NULL: it has no use for notices. */
    void (*notice)(void *m, const struct publish_notice *notice,
                   int64_t now_ms);
    /* Stop: withdraw what was published (unless somebody else took over), or
     * with `withdraw` false leave it to expire. */
    void (*stop)(void *m, bool withdraw, int64_t now_ms);
    /* The request that is due at `now_ms`; false when none is.  Each one has
     * to be answered before the next. */
    bool (*next)(void *m, int64_t now_ms, struct publish_request *ret_request);
    void (*answer)(void *m, int64_t now_ms,
                   const struct publish_answer *answer);
};
extern const struct publish_kind publish_direct, publish_kube;

#endif
