/* kube_config - where the Kubernetes API server is, and who we are there.
 *
 * From a kubeconfig file, or from what a pod finds mounted at
 * /var/run/secrets/kubernetes.io/serviceaccount.  Of a kubeconfig the current
 * context is read: server, tls-server-name, certificate-authority[-data],
 * client-certificate[-data], client-key[-data], token, tokenFile, namespace.
 * exec, auth-provider, username/password, impersonation (as…), proxy-url and
 * insecure-skip-tls-verify are refused with an error that says what to use
 * instead, and so is http to another host than this one. */
#ifndef BIGA_LIB_KUBE_CONFIG_H
#define BIGA_LIB_KUBE_CONFIG_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

/* Texts are owned; NULL: not given.  PEM texts win over files. */
struct kube_config {
    char *server;      /* "https://127.0.0.1:6443" */
    char *server_name; /* to expect in its certificate, if not the host */
    char *ca_pem, *ca_file;
    char *cert_pem, *cert_file; /* ours */
    char *key_pem, *key_file;
    char *token;      /* as it stands in the file */
    char *token_file; /* read again when it changes, as a bound service
                       * account token does every hour */
    char *namespace;  /* never NULL: "default" */
};

/* `path`: a kubeconfig; NULL or "": in a pod (environment
 * KUBERNETES_SERVICE_HOST and _PORT), else $KUBECONFIG (its first file), else
 * ~/.kube/config.  The error names the file and the field. */
int kube_config_load(const char *path, struct kube_config **ret_config,
                     struct error *err);
/* The parsing alone; relative paths of files start at `dir`. */
int kube_config_parse(const char *data, size_t size, const char *dir,
                      struct kube_config **ret_config, struct error *err);
/* In a pod: the API server's `host` and `port`; ca.crt, token and namespace
 * are in `dir`. */
int kube_config_in_pod(const char *host, const char *port, const char *dir,
                       struct kube_config **ret_config, struct error *err);
void kube_config_destroy(struct kube_config *c); /* NULL allowed */
DEFINE_CLEANUP(kube_config, struct kube_config *, kube_config_destroy)

#endif
