#include "extender/leader/eviction.h"

#include "lib/base/jwrite.h"

enum { PATH_MAX_BYTES = 2048, BODY_MAX_BYTES = 8192 };

void eviction_write(const struct eviction *e, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "policy/v1");
    jwrite_text(out, "kind", "Eviction");
    jwrite_object(out, "metadata");
    jwrite_text(out, "name", e->name);
    jwrite_text(out, "namespace", e->namespace);
    jwrite_end_object(out);
    jwrite_object(out, "deleteOptions");
    jwrite_object(out, "preconditions");
    jwrite_text(out, "uid", e->uid);
    jwrite_end_object(out);
    jwrite_end_object(out);
    jwrite_end_object(out);
}

int eviction_post(struct kube_client *client, const struct eviction *e,
                  unsigned timeout_ms, struct http_answer *answer,
                  struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX_BYTES);
    kube_path_object(&path, "/api/v1", e->namespace, "pods", e->name);
    str_add(&path, "/eviction");
    eviction_write(e, &body);
    const struct kube_request request = {.method = "POST",
                                         .path = str_text(&path),
                                         .type = KUBE_JSON,
                                         .body = body.data,
                                         .body_size = body.size,
                                         .timeout_ms = timeout_ms};
    return kube_call(client, &request, answer, err);
}
