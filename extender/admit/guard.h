/* guard - what stands before the listeners: their certificates, and who may
 * call them (access.h). */
#ifndef BIGA_EXTENDER_ADMIT_GUARD_H
#define BIGA_EXTENDER_ADMIT_GUARD_H

#include "extender/admit/access.h"
#include "lib/base/error.h"
#include "lib/http/httpd.h"
#include "lib/kube/config.h"

struct guard {
    struct tls *tls; /* NULL: plain HTTP */
    bool plain_anywhere;
    struct kube_config *kube; /* NULL: the API server reviews no tokens */
    struct access *access;
};

/* Texts may be NULL or empty: not given. */
struct guard_config {
    const char *tls_cert, *tls_key, *client_ca; /* files: all three or none */
    bool plain_anywhere;         /* without TLS: not on loopback alone */
    const char *scheduler_names; /* of access_config */
    const char *token_file;      /* the same; "kubernetes": the API server */
    const char *kubeconfig;      /* for that; NULL: kube_config_load() looks */
    struct metrics *metrics;     /* or NULL */
};
/* Reads the files; the error names the setting or the file. */
int guard_start(struct guard *g, const struct guard_config *config,
                struct error *err);
void guard_fini(struct guard *g); /* after the listeners; may be zeroed */
/* Sets TLS, HTTP/2 and whether only loopback is listened on. */
void guard_listener(const struct guard *g, struct httpd_config *config);
/* Complete the error of httpd_start(): says what to do. */
int guard_explain(const char *listener, struct error *err);

#endif
