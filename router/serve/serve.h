/* serve - what every call of CRI does: relayed to the home as it came, or done
 * on a remote, with all rooms below joined.
 *
 * The server's thread (grpcd.h) sees every call first and never waits; calls
 * that are a remote's run on its workers, and calls for one remote end within
 * their deadline whatever it does. */
#ifndef BIGA_ROUTER_SERVE_SERVE_H
#define BIGA_ROUTER_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/pod/rights.h"
#include "router/image/image_shelf.h"

enum {
    SERVE_REMOTES_MAX = 16,
    SERVE_FARS_MAX = 64, /* with those that are not there any more */
};
enum serve_cores { SERVE_CORES_QUOTA, SERVE_CORES_NONE };

/* Copied, texts and all. */
struct serve_config {
    const char *listen, *home; /* paths of unix sockets */
    const char *state;         /* a folder of our own, which is there; NULL: in
                                * memory (tests) */
    const char *kubelet_dir, *pod_logs;
    const char *node, *cluster;
    const char *handler;        /* of the RuntimeClass that is routed */
    const char *remote_handler; /* what remotes are told instead; "" */
    const char *default_remote; /* of pods without an allocation; "" none */
    const char *helper_image, *card_dir; /* on remotes */
    const char *hooks;                   /* "" none */
    struct rights rights;
    const char *const *host_paths;
    size_t n_host_paths;
    enum serve_cores cores;
    bool has_network; /* remotes make networks for pods */
    bool own_dns;     /* they have name servers of their own */
    int64_t timeout_ms, pull_timeout_ms;
    struct image_rules images;   /* when images on remotes go */
    int64_t probe_ms, lost_ms;   /* of remotes; 0: as health.h has it */
    int64_t collect_ms;          /* between looks at images; 0: COLLECT_MS */
    int64_t fresh_ms, status_ms; /* 0: SERVE_FRESH_MS, SERVE_STATUS_MS */
    const struct act_place *places;
    size_t n_places; /* at most SERVE_REMOTES_MAX */
};

struct serve;
/* It listens and serves when this returns; blocks for the disk. */
int serve_start(const struct serve_config *config, struct serve **ret_serve,
                struct error *err);
/* Those are its remotes from now on: new ones are begun, others, and those of
 * which anything else than the name is the same, end, with the calls that they
 * have.  Blocks until these have ended.  -E2BIG: there were more than
 * SERVE_FARS_MAX since the start; then it is as it was.  One thread. */
int serve_set_places(struct serve *s, const struct act_place *places, size_t n,
                     struct error *err);
/* What it counts, as Prometheus reads it. */
void serve_write_metrics(struct serve *s, struct str *out);
/* Now and then: gives back what was needed for a burst of calls. */
void serve_tidy(struct serve *s);
/* Calls have `drain_ms` to end; then streams are cut, with a word, and the
 * rest is UNAVAILABLE.  Pods go on.  NULL allowed. */
void serve_stop(struct serve *s, unsigned drain_ms);

#endif
