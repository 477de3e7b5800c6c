#include "advertiser/publish/sender.h"

#include <stdlib.h>

#include "lib/kube/client.h"

struct sender {
    struct http_client *http; /* one of them is NULL */
    struct kube_client *kube;
};

int sender_create(const struct sender_config *config,
                  struct sender **ret_sender, struct error *err)
{
    cleanup_with(sender) struct sender *s = xcalloc(1, sizeof *s);
    int r = config->kube
                ? kube_client_create(config->kube, config->http.timeout_ms,
                                     &s->kube, err)
                : http_client_open(&config->http, &s->http, err);
    if (r < 0)
        return r;
    *ret_sender = steal(&s);
    return 0;
}

void sender_destroy(struct sender *s)
{
    if (!s)
        return;
    http_client_destroy(s->http);
    kube_client_destroy(s->kube);
    free(s);
}

int sender_send(void *sender, const struct publish_request *request,
                struct http_answer *ret_answer, struct error *err)
{
    const struct sender *s = sender;
    const struct str *body = &request->body;
    const char *data = body->size ? body->data : NULL;
    if (s->http) {
        int called = http_call(s->http, request->method, request->path, data,
                               body->size, NULL, ret_answer, err);
        /* the next try shows the certificate as it then is */
        if (called == 0 &&
            (ret_answer->status == 401 || ret_answer->status == 403))
            http_client_reconnect(s->http);
        return called;
    }
    const struct kube_request rq = {
        .method = request->method,
        .path = request->path,
        .type = request->merge_patch ? KUBE_MERGE_PATCH : KUBE_JSON,
        .body = data,
        .body_size = body->size,
    };
    int r = kube_call(s->kube, &rq, ret_answer, err);
    return ret_answer->status != 0 ? 0 : r; /* any answer is one */
}
