#include "extender/admit/guard.h"

#include <string.h>

#include "lib/base/mem.h"

static bool is_given(const char *text)
{
    return text && *text;
}

static int start_tls(struct guard *g, const struct guard_config *config,
                     struct error *err)
{
    const struct {
        const char *name, *value;
    } files[] = {{"--tls-cert", config->tls_cert},
                 {"--tls-key", config->tls_key},
                 {"--client-ca", config->client_ca}};
    const char *given = NULL, *missing = NULL;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (is_given(files[i].value))
            given = files[i].name;
        else
            missing = files[i].name;
    }
    if (!given)
        return 0;
    if (missing)
        return error_set(err, EINVAL,
                         "%s is given without %s: HTTPS needs a certificate, "
                         "its key, and the authority of kube-scheduler's and "
                         "the advertisers' certificates",
                         given, missing);
    const struct tls_config c = {.cert_file = config->tls_cert,
                                 .key_file = config->tls_key,
                                 .client_ca_file = config->client_ca};
    return tls_create(&c, &g->tls, err);
}

static int start_access(struct guard *g, const struct guard_config *config,
                        struct error *err)
{
    struct access_config c = {.metrics = config->metrics};
    if (is_given(config->scheduler_names))
        c.scheduler_names = config->scheduler_names;
    if (is_given(config->token_file)) {
        if (strcmp(config->token_file, "kubernetes") != 0) {
            c.token_file = config->token_file;
        } else if (kube_config_load(config->kubeconfig, &g->kube, err) < 0) {
            return error_wrap(err, "--read-tokens kubernetes");
        }
        c.kube = g->kube;
    }
    return access_create(&c, &g->access, err);
}

int guard_start(struct guard *g, const struct guard_config *config,
                struct error *err)
{
    g->plain_anywhere = config->plain_anywhere;
    int r = start_tls(g, config, err);
    return r < 0 ? r : start_access(g, config, err);
}

void guard_fini(struct guard *g)
{
    access_destroy(g->access);
    kube_config_destroy(g->kube);
    tls_destroy(g->tls);
}

void guard_listener(const struct guard *g, struct httpd_config *config)
{
    config->tls = g->tls;
    config->http2 = g->tls != NULL;
    config->loopback = !g->tls && !g->plain_anywhere;
}

int guard_explain(const char *listener, struct error *err)
{
    if (err->code != EPERM)
        return error_wrap(err, "%s-listen", listener);
    char text[ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", err->text);
    return error_set(err, EINVAL,
                     "%s-listen: %s, and without TLS everybody who reaches it "
                     "could call it: give --tls-cert, --tls-key and "
                     "--client-ca, or say --plain-http anywhere where the "
                     "network is trusted",
                     listener, text);
}
