/* server - the whole extender in one piece: writer, memory, metrics and the
 * three listeners, started in order and stopped in reverse. */
#ifndef BIGA_EXTENDER_SERVER_H
#define BIGA_EXTENDER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/keep/store.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/pod/demand.h"

enum server_listener {
    SERVER_SCHEDULER,
    SERVER_PUBLISH,
    SERVER_READ,
    SERVER_LISTENERS
};

struct server_config {
    const char *listen[SERVER_LISTENERS]; /* "127.0.0.1:0" */
    enum store_kind store;
    const char *state_dir; /* of STORE_SQLITE; NULL: in memory */
    /* of STORE_KUBERNETES: what cluster_config says */
    const char *kubeconfig; /* NULL: as kube_config_load() finds it */
    const char *namespace, *heartbeats, *identity;
    bool elect, events, claims, dpus;
    /* HTTPS on all listeners; NULL: plain HTTP, on loopback alone unless
     * `plain_anywhere` */
    const char *tls_cert, *tls_key, *client_ca;
    bool plain_anywhere;
    const char *scheduler_names; /* of access_config */
    const char *token_file;      /* the same; "kubernetes": the API server */
    const char *policy;          /* file; NULL: no policy */
    const char *fabric;          /* files, comma-separated, or NULL */
    const char *fabric_labels;   /* of fabric_labels_parse, or NULL */
    const char *history_dir;     /* NULL: below state_dir, if there is one */
    int64_t history_days, history_mib; /* 0: the defaults */
    int64_t max_candidates;
    int64_t fresh_ms, sweep_ms;
    int64_t lease_ms;    /* 0: the default */
    int64_t card_lost_s; /* of STORE_KUBERNETES: what cluster_config says */
    int64_t connections, request_ms;
    struct demand_config demand;
};

struct server;
/* Listening when it returns 0. */
int server_start(const struct server_config *config, struct server **ret,
                 struct error *err);
void server_stop(struct server *s); /* NULL allowed */
DEFINE_CLEANUP(server, struct server *, server_stop)

/* 0: there is no such listener (STORE_KUBERNETES has none for publishing). */
uint16_t server_port(const struct server *s, enum server_listener which);
/* For tests and simulations: the parts inside. */
struct app *server_app(struct server *s);
struct embedded *server_embedded(struct server *s); /* NULL: in a cluster */

#endif
