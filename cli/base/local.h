/* local - the advertiser of this host, asked over its unix socket. */
#ifndef BIGA_CLI_BASE_LOCAL_H
#define BIGA_CLI_BASE_LOCAL_H

#include <stdatomic.h>

#include "cli/base/cli.h"

#define LOCAL_SOCKET "/var/lib/biga-advertiser/actuator.sock"

struct local {
    struct cli *cli;
    struct http_client *http;
    struct http_answer answer; /* the last one */
    atomic_bool stop;          /* a call that is under way ends soon */
};
/* An exit code, after saying on stderr what is wrong. */
int local_open(struct cli *c, struct local *ret_local);
void local_close(struct local *l);

/* As cli_get() and cli_post().  `timeout_s` 0: 10. */
int local_ask(struct local *l, const char *method, const char *path,
              const struct str *body, unsigned timeout_s, cJSON **ret_json);
/* The same without a word about a status that is no success: -1, and
 * `l->answer` says which. */
int local_try(struct local *l, const char *method, const char *path,
              cJSON **ret_json);
/* The same of an answer in text/plain, which `l->answer` has. */
int local_try_text(struct local *l, const char *path, unsigned timeout_s);
/* Say on stderr why the last answer is no success; CLI_FAILED. */
int local_complain(const struct local *l);

/* "/v1/pods/NS/NAME" of a pod that may be given without a namespace, with
 * what comes behind. */
void local_pod_path(const char *pod, const char *rest, struct str *path);
/* "/v1/cards/NAME/rest" */
void local_card_path(const char *card, const char *rest, struct str *path);

#endif
