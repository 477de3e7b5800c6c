#include "extender/leader/pod_condition.h"

#include <errno.h>

#include "lib/base/jwrite.h"
#include "lib/io/clock.h"

enum { PATH_MAX_BYTES = 2048, BODY_MAX_BYTES = 8192 };

static void write_body(const struct pod_condition *c, struct str *body)
{
    char since[CLOCK_UTC_MAX];
    clock_format_utc(c->since_s, since);
    str_add(body, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{");
    jwrite_text(body, "name", c->name);
    jwrite_text(body, "namespace", c->namespace);
    jwrite_text(body, "uid", c->uid);
    str_add(body, "},\"status\":{\"conditions\":[{");
    jwrite_text(body, "type", c->type);
    jwrite_text(body, "status", c->is_true ? "True" : "False");
    jwrite_text(body, "reason", c->reason);
    jwrite_text(body, "lastTransitionTime", since);
    jwrite_text(body, "message", c->message);
    str_add(body, "}]}}");
}

int pod_condition_apply(struct kube_client *client,
                        const struct pod_condition *c, unsigned timeout_ms,
                        struct http_answer *answer, struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX_BYTES);
    kube_path_object(&path, "/api/v1", c->namespace, "pods", c->name);
    str_addf(&path, "/status?fieldManager=%s&force=true", c->manager);
    write_body(c, &body);
    const struct kube_request request = {.method = "PATCH",
                                         .path = str_text(&path),
                                         .type = KUBE_APPLY,
                                         .body = body.data,
                                         .body_size = body.size,
                                         .timeout_ms = timeout_ms};
    int r = kube_call(client, &request, answer, err);
    /* with a uid, an apply to a pod that is gone, or another one, conflicts */
    return r == -EBUSY ? -ENOENT : r;
}
