/* settings - what biga-cri can be told, in one table. */
#ifndef BIGA_ROUTER_SETTINGS_H
#define BIGA_ROUTER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/io/conf.h"

enum {
    ROUTER_NODE_MAX = 253,
    ROUTER_SOCKET_MAX = 107, /* bytes of a unix socket's path, by Linux */
    ROUTER_HANDLER_MAX = 63, /* as Kubernetes has it: a DNS label */
};

struct router_settings {
    const char *listen; /* "unix:///PATH" */
    const char *home;   /* the same: the runtime of the kubelet's machine */
    const char *state;  /* a folder of our own */
    const char *kubelet_dir, *pod_logs; /* the kubelet's own folders */
    const char *node, *cluster;
    const char *handler;         /* of the RuntimeClass whose pods are routed */
    const char *remote_handler;  /* what the remote's runtime is told; "" its
                                 * default */
    const char *card_file;       /* the remotes: cards … */
    const char *remote;          /* … or one other machine, tcp://HOST:PORT */
    const char *ca, *cert, *key; /* for that one; all three */
    bool plaintext;              /* it is spoken to without TLS, for a lab */
    const char *default_remote;  /* of pods without an allocation; NULL: they
                                  * are refused */
    const char *helper_image, *card_dir, *hooks;
    const char *allow;          /* as in model/pod/rights.h */
    const char *host_paths;     /* PREFIX,… that pods may mount of a remote */
    const char *cores;          /* "quota" or "none" */
    const char *network;        /* "node" or "pod" */
    const char *dns;            /* the same */
    const char *metrics_listen; /* ADDRESS:PORT; NULL: nowhere */
    const char *log_level;
    int64_t timeout_ms, pull_timeout_ms;
    int64_t image_gc_high, image_gc_low; /* per cent */
    int64_t image_min_age_ms, image_max_age_ms;
};

extern const struct conf_program router_program;

/* What may only be given together, and what each must look like. */
int router_settings_check(const struct router_settings *s, struct error *err);
/* The setting, or the host's name in lower case; checked. */
int router_settings_node(const struct router_settings *s,
                         char ret_node[ROUTER_NODE_MAX + 1], struct error *err);
/* The path in "unix:///PATH"; of a checked setting. */
const char *router_settings_path(const char *url);

/* Exit codes of the program. */
enum {
    ROUTER_OK = 0,
    ROUTER_FAILED = 1,
    ROUTER_USAGE = 2,
};

#endif
