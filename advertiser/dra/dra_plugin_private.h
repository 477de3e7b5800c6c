/* What the files of the plugin share: dra_plugin.c has its life and its thread,
 * dra_plugin_calls.c what its servers are asked. */
#ifndef BIGA_ADVERTISER_DRA_DRA_PLUGIN_PRIVATE_H
#define BIGA_ADVERTISER_DRA_DRA_PLUGIN_PRIVATE_H

#include <pthread.h>

#include "advertiser/dra/dra_claims.h"
#include "advertiser/dra/dra_plugin.h"
#include "advertiser/dra/dra_watch.h"
#include "lib/grpcd/grpcd_call.h"
#include "lib/kube/client.h"

enum { DRA_QUEUE_MAX = 64 };

/* A call that waits for its turn. */
struct dra_waiting {
    struct grpcd_call *call;
    bool prepare, shares;
};

struct dra_plugin {
    struct dra_plugin_config config;
    char *registry_dir, *registry_path, *dir, *path, *claims_dir;
    struct dra_watch *watch;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct topo *topo; /* NULL: not told yet; with: */
    bool looked;       /* since claims were restored */
    struct dra_waiting queue[DRA_QUEUE_MAX];
    size_t first, n;
    bool leaving;  /* no server is made any more */
    bool stopping; /* the thread ends */

    /* of the thread alone */
    struct kube_client *client;
    struct dra_claims *claims;
    struct grpcd *server, *registry; /* made by it, set under the lock */
    bool serves;                     /* the server is started */
    int64_t retry_ms, sweep_ms;
    struct error last; /* of opening, logged once */
    struct cardfile *cards;
    struct error unread; /* of its file, logged once */
};

/* What the cards are now, until topo_unref() of `*ret_topo`; a card file that
 * cannot be read says what it said last.  On the plugin's thread. */
void dra_plugin_host(struct dra_plugin *p, struct cdi_host *ret_host,
                     struct topo **ret_topo);
/* Answer a call that had to wait, on the plugin's thread. */
void dra_plugin_answer(struct dra_plugin *p, const struct dra_waiting *w);
/* The servers' route, with a plugin as `ctx`. */
void dra_plugin_route(void *ctx, const struct grpcd_call *call,
                      struct grpcd_route *ret_route);

#endif
