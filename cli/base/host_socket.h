/* host_socket - the advertiser of this host, asked over its unix socket. */
#ifndef BIGA_CLI_BASE_HOST_SOCKET_H
#define BIGA_CLI_BASE_HOST_SOCKET_H

#include <stdatomic.h>

#include "cli/base/cli.h"

struct host_socket {
    struct cli *cli;
    struct http_client *http;
    struct http_answer answer; /* the last one */
    atomic_bool stop;          /* a call that is under way ends soon */
};
/* An exit code, after saying on stderr what is wrong. */
int host_socket_open(struct cli *c, struct host_socket *ret_local);
void host_socket_close(struct host_socket *l);
/* As cli_peek(), from that socket. */
int host_socket_peek(struct cli *c, const char *path, unsigned timeout_ms,
                     cJSON **ret_json);

/* As cli_get() and cli_post().  `timeout_s` 0: 10. */
int host_socket_ask(struct host_socket *l, const char *method, const char *path,
                    const struct str *body, unsigned timeout_s,
                    cJSON **ret_json);
/* The same without a word about a status that is no success: -1, and
 * `l->answer` says which. */
int host_socket_try(struct host_socket *l, const char *method, const char *path,
                    cJSON **ret_json);
/* The same with a body, or a deadline. */
int host_socket_try_request(struct host_socket *l,
                            const struct http_request *request,
                            cJSON **ret_json);
/* The same of an answer in text/plain, which `l->answer` has. */
int host_socket_try_text(struct host_socket *l, const char *path,
                         unsigned timeout_s);
/* Say on stderr why the last answer is no success; CLI_FAILED. */
int host_socket_complain(const struct host_socket *l);

/* "/v1/pods/NS/NAME" of a pod that may be given without a namespace, with
 * what comes behind. */
void host_socket_pod_path(const char *pod, const char *rest, struct str *path);
/* "/v1/cards/NAME/rest" */
void host_socket_card_path(const char *card, const char *rest,
                           struct str *path);

#endif
