#include "lib/kube/client.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/io/clock.h"
#include "lib/kube/access.h"

struct kube_client {
    const struct kube_config *config;
    struct kube_access *access;
    struct http_client *http;
    unsigned timeout_ms;
    unsigned retry_ms;
    char reason[64]; /* of the last refusal's Status */
};

int kube_client_create(const struct kube_config *config, unsigned timeout_ms,
                       struct kube_client **ret_client, struct error *err)
{
    cleanup_with(kube_client) struct kube_client *c = xcalloc(1, sizeof *c);
    struct http_config http;
    c->config = config;
    c->timeout_ms = timeout_ms ? timeout_ms : KUBE_TIMEOUT_MS;
    int r = kube_access_create(config, &c->access, err);
    if (r < 0)
        return r;
    kube_access_http(config, c->timeout_ms, KUBE_ANSWER_MAX, &http);
    r = http_client_open(&http, &c->http, err);
    if (r < 0)
        return r;
    http_client_set_authorization(c->http,
                                  kube_access_authorization(c->access));
    *ret_client = steal(&c);
    return 0;
}

void kube_client_destroy(struct kube_client *c)
{
    if (!c)
        return;
    http_client_destroy(c->http);
    kube_access_destroy(c->access);
    free(c);
}

/* A connection stays what its certificates were when it began. */
static void look_at_files(struct kube_client *c)
{
    unsigned news = kube_access_poll(c->access, clock_ms());
    if (news & KUBE_ACCESS_TOKEN)
        http_client_set_authorization(c->http,
                                      kube_access_authorization(c->access));
    if (news & KUBE_ACCESS_FILES)
        http_client_reconnect(c->http);
}

static const char *const content_types[] = {
    [KUBE_JSON] = "application/json",
    [KUBE_MERGE_PATCH] = "application/merge-patch+json",
    [KUBE_APPLY] = "application/apply-patch+yaml",
    [KUBE_JSON_PATCH] = "application/json-patch+json",
    [KUBE_STRATEGIC_PATCH] = "application/strategic-merge-patch+json",
};

/* The members of a Status that we act on; the rest of the body may be
 * anything. */
static void read_status(struct kube_client *c, const struct http_answer *a)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error ignored; /* a proxy's page is no Status */
    if (a->body.size == 0 ||
        json_parse(a->body.data, a->body.size, &json, &ignored) < 0)
        return;
    const char *reason =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "reason"));
    (void)snprintf(c->reason, sizeof c->reason, "%s", reason ? reason : "");
    if (c->retry_ms)
        return;
    const cJSON *after = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(json, "details"), "retryAfterSeconds");
    if (cJSON_IsNumber(after) && after->valuedouble > 0 &&
        after->valuedouble <= 3600)
        c->retry_ms = (unsigned)(after->valuedouble * 1000);
}

static int errno_of_status(const struct kube_client *c, long status)
{
    switch (status) {
    case 404:
        return ENOENT;
    case 409:
        return kube_client_reason_is(c, "AlreadyExists") ? EEXIST : EBUSY;
    case 401:
    case 403:
        return EACCES;
    case 400:
    case 422:
        return EINVAL;
    case 410:
        return ESTALE;
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return EAGAIN;
    default:
        return EPROTO;
    }
}

/* There was no answer, or not a whole one. */
static int fail_silent(struct kube_client *c, int r, struct error *err)
{
    int code = r == -EINVAL                  ? EINVAL /* no such URL */
               : http_client_unsent(c->http) ? ECONNREFUSED
               : r == -ETIMEDOUT             ? ETIMEDOUT
                                             : EIO;
    if (err)
        err->code = code;
    return -code;
}

int kube_call(struct kube_client *c, const struct kube_request *request,
              struct http_answer *ret_answer, struct error *err)
{
    const struct http_request http = {
        .method = request->method,
        .path = request->path,
        .content_type = content_types[request->type],
        .body = request->body,
        .body_size = request->body_size,
        .timeout_ms = request->timeout_ms,
    };
    c->retry_ms = 0;
    c->reason[0] = '\0';
    look_at_files(c);
    int r = http_send(c->http, &http, ret_answer, err);
    if (r < 0) {
        ret_answer->status = 0;
        return fail_silent(c, r, err);
    }
    if (ret_answer->status >= 200 && ret_answer->status < 300)
        return 0;
    cleanup_str struct str text = STR_INIT(ERROR_TEXT_MAX);
    c->retry_ms = http_client_retry_ms(c->http);
    read_status(c, ret_answer);
    http_answer_error(ret_answer, &text);
    return error_set(err, errno_of_status(c, ret_answer->status),
                     "%s %.200s: status %ld: %s", request->method,
                     request->path, ret_answer->status, str_text(&text));
}

bool kube_client_resent(const struct kube_client *c)
{
    return http_client_resent(c->http);
}

unsigned kube_client_retry_ms(const struct kube_client *c)
{
    return c->retry_ms;
}

bool kube_client_reason_is(const struct kube_client *c, const char *reason)
{
    return strcmp(c->reason, reason) == 0;
}

void kube_path_add(struct str *path, const char *segment)
{
    static const char hex[] = "0123456789ABCDEF";
    for (const unsigned char *p = (const unsigned char *)segment; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr("-_~", *p) != NULL ||
                     /* "." and ".." would be taken for steps */
                     (*p == '.' && segment[strspn(segment, ".")] != '\0');
        if (plain)
            str_add_c(path, (char)*p);
        else
            str_add_n(path, (const char[]){'%', hex[*p >> 4], hex[*p & 15]}, 3);
    }
}

void kube_path_object(struct str *path, const char *group,
                      const char *namespace, const char *kind, const char *name)
{
    str_addf(path, "%s/namespaces/", group);
    kube_path_add(path, namespace);
    str_addf(path, "/%s", kind);
    if (!name)
        return;
    str_add_c(path, '/');
    kube_path_add(path, name);
}
