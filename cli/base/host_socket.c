#include "cli/base/host_socket.h"

#include <string.h>
#include <unistd.h>

#include "cli/base/say.h"
#include "lib/base/mem.h"

enum { TIMEOUT_S = 10 };

int host_socket_open(struct cli *c, struct host_socket *ret_local)
{
    cleanup_free char *base = xasprintf("unix:%s", c->set.socket);
    struct error err = {0};
    if (c->set.socket[0] != '/')
        return cli_usage("--socket: is \"%s\", must be an absolute path",
                         c->set.socket);
    *ret_local = (struct host_socket){
        .cli = c, .answer = {.body = STR_INIT(STR_MAX_DEFAULT)}};
    const struct http_config config = {
        .base = base, .timeout_ms = TIMEOUT_S * 1000, .stop = &ret_local->stop};
    if (http_client_open(&config, &ret_local->http, &err))
        return cli_usage("--socket: %s", err.text);
    return 0;
}

void host_socket_close(struct host_socket *l)
{
    http_client_destroy(l->http);
    str_fini(&l->answer.body);
}

int host_socket_peek(struct cli *c, const char *path, unsigned timeout_ms,
                     cJSON **ret_json)
{
    cleanup_free char *base = xasprintf("unix:%s", c->set.socket);
    struct http_client *http;
    struct error err = {0};
    int r = http_client_create(base, timeout_ms, &http, &err);
    if (r < 0)
        return r;
    r = cli_peek_with(http, path, ret_json);
    http_client_destroy(http);
    return r;
}

static int complain_silent(const struct host_socket *l, const struct error *err)
{
    const char *path = l->cli->set.socket;
    if (access(path, R_OK | W_OK) < 0 && errno == EACCES)
        return cli_fail("%s: only root and the advertiser's own user may use "
                        "it",
                        path);
    if (access(path, F_OK) < 0)
        return cli_fail(
            "%s: %s\n"
            "This asks the advertiser of this host.  Start it with\n"
            "`biga-advertiser --actuate DIR`, or name its "
            "DIR/actuator.sock with\n--socket PATH or BIGA_SOCKET.  Where a "
            "kubelet runs pods (biga-cri), ask the\nextender: biga cards NODE, "
            "biga ps.",
            path, strerror(errno));
    return cli_fail("no answer from %s: %s\n"
                    "Is the advertiser running that has its --actuate folder "
                    "there?",
                    path, err->text);
}

int host_socket_complain(const struct host_socket *l)
{
    return cli_fail_answer("advertiser", &l->answer);
}

static int call(struct host_socket *l, const struct http_request *rq)
{
    struct error err = {0};
    if (http_send(l->http, rq, &l->answer, &err) == 0)
        return 0;
    return complain_silent(l, &err);
}

static int parse(struct host_socket *l, cJSON **ret_json)
{
    struct error err = {0};
    const struct str *body = &l->answer.body;
    if (body->size == 0 ||
        json_parse(str_text(body), body->size, ret_json, &err) == 0)
        return 0;
    return cli_fail("the advertiser's answer is no JSON: %s", err.text);
}

static bool is_success(const struct host_socket *l)
{
    return l->answer.status >= 200 && l->answer.status <= 299;
}

int host_socket_try_request(struct host_socket *l,
                            const struct http_request *request,
                            cJSON **ret_json)
{
    int rc = call(l, request);
    if (rc)
        return rc;
    return is_success(l) ? parse(l, ret_json) : -1;
}

int host_socket_try(struct host_socket *l, const char *method, const char *path,
                    cJSON **ret_json)
{
    const struct http_request rq = {.method = method, .path = path};
    return host_socket_try_request(l, &rq, ret_json);
}

int host_socket_try_text(struct host_socket *l, const char *path,
                         unsigned timeout_s)
{
    const struct http_request rq = {.method = "GET",
                                    .path = path,
                                    .accept = "text/plain",
                                    .timeout_ms = timeout_s * 1000};
    int rc = call(l, &rq);
    if (rc)
        return rc;
    return is_success(l) ? 0 : -1;
}

int host_socket_ask(struct host_socket *l, const char *method, const char *path,
                    const struct str *body, unsigned timeout_s,
                    cJSON **ret_json)
{
    const struct http_request rq = {
        .method = method,
        .path = path,
        .body = body ? str_text(body) : NULL,
        .body_size = body ? body->size : 0,
        .timeout_ms = timeout_s * 1000,
    };
    int rc = call(l, &rq);
    if (rc)
        return rc;
    if (!is_success(l))
        return host_socket_complain(l);
    if (!l->cli->set.json)
        return parse(l, ret_json);
    str_add_n(&l->cli->out, str_text(&l->answer.body), l->answer.body.size);
    return 0;
}

void host_socket_pod_path(const char *pod, const char *rest, struct str *path)
{
    str_add(path, "/v1/pods/");
    cli_add_name(path, pod);
    str_add(path, rest);
}

void host_socket_card_path(const char *card, const char *rest, struct str *path)
{
    str_add(path, "/v1/cards/");
    cli_add_encoded(path, card);
    str_add(path, rest);
}
