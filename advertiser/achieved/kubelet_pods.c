#include "advertiser/achieved/kubelet_pods.h"

#include <stdlib.h>
#include <string.h>

#include "lib/grpc/grpc.h"
#include "lib/io/log.h"

struct kubelet_pods {
    char *node, *endpoint;
    struct grpc *grpc;
    struct given_pods *last; /* NULL: it has never answered */
    struct str reply;
    struct error said; /* what was logged last; code 0: nothing is wrong */
};

int kubelet_pods_create(const char *socket, const char *node,
                        struct kubelet_pods **ret_kubelet, struct error *err)
{
    struct kubelet_pods *k = xcalloc(1, sizeof *k);
    k->node = xstrdup(node);
    k->endpoint = xasprintf("unix://%s", socket);
    str_init(&k->reply, POD_RESOURCES_REPLY_MAX);
    const struct grpc_config config = {.endpoint = k->endpoint,
                                       .reply_max = POD_RESOURCES_REPLY_MAX};
    int r = grpc_create(&config, &k->grpc, err);
    if (r < 0) {
        kubelet_pods_destroy(k);
        return r;
    }
    *ret_kubelet = k;
    return 0;
}

void kubelet_pods_destroy(struct kubelet_pods *k)
{
    if (!k)
        return;
    grpc_destroy(k->grpc);
    given_pods_destroy(k->last);
    str_fini(&k->reply);
    free(k->endpoint);
    free(k->node);
    free(k);
}

void kubelet_pods_cancel(struct kubelet_pods *k)
{
    grpc_cancel(k->grpc);
}

/* One event for as long as it stays so. */
static void note(struct kubelet_pods *k, int r, const struct error *err)
{
    if (r == 0 && k->said.code)
        log_event(LOG_INFO, "kubelet-answers", "node", k->node, NULL);
    if (r < 0 && r != -ECANCELED && k->said.code != -r)
        log_event(k->last ? LOG_WARN : LOG_INFO, "kubelet-not-asked", "node",
                  k->node, "error", err->text, "hint",
                  "what its pods have is not told; where no kubelet runs "
                  "this is as it should be",
                  NULL);
    k->said = r < 0 ? *err : (struct error){0};
}

static int ask(struct kubelet_pods *k, struct given_pods **ret_pods,
               struct error *err)
{
    struct grpc_end end;
    int r = grpc_call(k->grpc, POD_RESOURCES_LIST, NULL, 0, KUBELET_PODS_MS,
                      &k->reply, &end, err);
    if (r < 0)
        return r;
    const struct proto_bytes message = {str_text(&k->reply), k->reply.size};
    return pod_resources_read(message, ret_pods, err);
}

const struct given_pods *kubelet_pods_ask(struct kubelet_pods *k)
{
    struct given_pods *pods = NULL;
    struct error err = {0};
    int r = ask(k, &pods, &err);
    note(k, r, &err);
    if (r == 0) {
        given_pods_destroy(k->last);
        k->last = pods;
    }
    return k->last;
}
