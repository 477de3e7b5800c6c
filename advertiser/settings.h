/* settings - what biga-advertiser can be told, in one table. */
#ifndef BIGA_ADVERTISER_SETTINGS_H
#define BIGA_ADVERTISER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/io/conf.h"
#include "model/slice/slice.h"

struct settings {
    const char *topology, *fsroot, *hostfile; /* at most one is set */
    const char *node;
    const char *card_file;
    const char *print; /* NULL: publish */
    const char *server;
    const char *kubeconfig;
    const char *heartbeat_namespace;
    const char *ca, *cert, *key; /* of https:// servers */
    const char *boot_id;
    const char *log_level;
    int64_t heartbeat_ms, interval_ms, timeout_ms;
    bool withdraw;
    int64_t fleet; /* 0: this host alone */
    const char *fleet_shapes, *fleet_prefix;
    bool claims;             /* cards are given by ResourceClaims */
    const char *card_health; /* of a biga-cri; NULL: nobody tells */
    const char *kubelet_dir; /* NULL: no plugin of a kubelet */
    const char *cdi_dir;
    int64_t claim_grace_ms;
    int64_t achieved_ms;       /* 0: what pods have is not looked at */
    const char *pod_resources; /* NULL: as settings_kubelet() says */
    const char *actuate;       /* NULL: nothing is started on cards */
    const char *cluster, *host_runtime, *helper_image, *card_dir, *hooks,
        *devlink;
    const char *allow;          /* as in model/pod/rights.h */
    const char *host_devices;   /* as in advertiser/hostside/host_side.h */
    const char *metrics_listen; /* NULL: nowhere */
    const char *metrics_cert, *metrics_key, *metrics_client_ca;
};

extern const struct conf_program advertiser_program;

/* Is --server a Kubernetes API server? */
bool settings_in_cluster(const struct settings *s);
/* What may only be given together, and what may not. */
int settings_check(const struct settings *s, struct error *err);
/* The / below which there is a /sys of this host, "" for /; NULL: what is
 * described has none. */
const char *settings_sysroot(const struct settings *s);
/* The socket of this host's kubelet that tells what its pods were given; "" when
 * none is to be asked.  The caller frees it. */
char *settings_kubelet(const struct settings *s);
/* As the kernel names this host, in lower case. */
int settings_node(const struct settings *s, char ret_node[SLICE_NAME_MAX + 1],
                  struct error *err);
/* The setting, or what the kernel drew at this boot; checked. */
int settings_boot_id(const struct settings *s,
                     char ret_boot_id[SLICE_BOOT_ID_MAX + 1],
                     struct error *err);

/* Exit codes of the program. */
enum {
    ADVERTISER_OK = 0,
    ADVERTISER_FAILED = 1,
    ADVERTISER_USAGE = 2,
    ADVERTISER_LEFT = 3, /* stopped, but slices may be left */
};

#endif
