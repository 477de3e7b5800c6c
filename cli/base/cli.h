/* cli - what every verb of `biga` is given, and how it asks the server. */
#ifndef BIGA_CLI_BASE_CLI_H
#define BIGA_CLI_BASE_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/base/table.h"
#include "lib/http/http.h"

/* Exit codes; 0 is success. */
enum { CLI_FAILED = 1, CLI_USAGE = 2 };

/* The settings of the command line; see settings.c. */
struct cli_settings {
    const char *server;
    const char *ca, *cert, *key, *token_file; /* how to be let in there */
    bool json; /* print JSON: also where another form is made of it */
    const char *output, *selector, *sort_by; /* NULL or "": not given */
    bool all_namespaces, watch;
    bool once;
    const char *then;
    const char *namespace; /* "": all, or "default" for one job */
    bool hostfile, pod_hostfile, dpu_hostfile, rankfile, ucx, nccl, urom;
    bool applied;
    const char *at, *since, *until, *reason;
    int64_t limit;
    const char *check;
    bool dot, svg;
    int64_t grace; /* -1: not given */
    const char *socket, *container;
    const char *job;
    bool follow;
    int64_t limit_bytes, exec_timeout;
    int64_t tail; /* -1: all */
    bool previous, timestamps;
    bool interactive, tty;
    const char *address;
    const char *bfb, *sha256, *expect;
    const char *timeout; /* see settings_seconds() */
    const char *wait_for;
    bool wait, rm;
    bool force;
    bool evict;
    int64_t hosts, pairs;
    const char *scheduler_listen, *publish_listen, *read_listen;
    /* run */
    int64_t card_cores, card_memory_mib, gpus, nics;
    const char *card, *cpus, *gpu_resource, *image, *xpu_image, *xpu_command;
    const char *align, *prefer_align, *within, *prefer_within;
    bool dry_run;
};

/* What -o says; those from JSON on are made of the server's JSON. */
enum output_form {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_JSON,
    OUTPUT_YAML,
    OUTPUT_NAME,
};

struct cli {
    struct cli_settings set;
    enum output_form form;
    const char *kind; /* of what the command shows: "node"; NULL: none */
    struct listing_seen *seen; /* of a list that is watched; NULL: it is not */
    bool nothing;              /* the list that was shown is empty */
    long status;               /* of the server's last answer; 0: none came */
    char **words;      /* the command line, without the program; NULL at its
                        * end */
    const bool *given; /* of the settings: on the command line; NULL: none */
    int n_behind;      /* arguments behind a "--"; -1: there is none */
    char *name;        /* of cli_qualify() */
    bool colours;
    struct str out; /* what goes to stdout when the verb is done */
};

/* Run with the arguments after the verb; returns the exit code. */
typedef int verb_f(struct cli *c, int argc, char **argv);

/* Ask the server.  On success 0 and, when `ret_json` is not NULL, the answer
 * (the caller's; cJSON_Delete).  With --json the answer's own bytes go to
 * `c->out` and `*ret_json` stays NULL: the verb is then done.  Otherwise an
 * exit code, after saying on stderr what is wrong and what to do. */
int cli_get(struct cli *c, const char *path, cJSON **ret_json);
/* The same, but that the server knows of nothing there (404) is 0, too, with
 * `*ret_json` NULL. */
int cli_get_known(struct cli *c, const char *path, cJSON **ret_json);
/* The answer's own bytes, whatever they are, go to `c->out`. */
int cli_get_text(struct cli *c, const char *path);
int cli_post(struct cli *c, const char *path, const struct str *body,
             cJSON **ret_json);

int cli_delete(struct cli *c, const char *path, cJSON **ret_json);

/* A client of the server, let in as the settings say; `stop` as that of
 * struct http_config.  -errno: what is given cannot be used. */
int cli_connect(const struct cli *c, unsigned timeout_ms,
                const atomic_bool *stop, struct http_client **ret_client,
                struct error *err);
/* What lets us in alone, "Bearer …" or nothing. */
enum {
    CLI_TOKEN_MAX = 16 << 10,
    CLI_AUTHORIZATION_MAX = CLI_TOKEN_MAX + 16,
};
int cli_authorization(const struct cli *c, struct str *out, struct error *err);
/* Say on stderr what is wrong with an answer, or that none came; CLI_FAILED. */
int cli_complain(const struct http_answer *answer);
int cli_complain_unreachable(const struct cli *c, const struct error *err);

/* GET what is only good to have, within a time: nothing is said, and c->status
 * stays.  0 and the answer, or -errno. */
int cli_peek(struct cli *c, const char *path, unsigned timeout_ms,
             cJSON **ret_json);
int cli_peek_with(struct http_client *http, const char *path, cJSON **ret_json);

/* All of a file, or of stdin ("-"), up to 16 MiB; else an exit code, after
 * saying on stderr what is wrong. */
int cli_read_input(const char *name, struct str *ret_text);

/* Append `text` percent-encoded for use in a query or a path segment. */
void cli_add_encoded(struct str *path, const char *text);
/* Append "&key=text", so encoded; nothing when there is no text (NULL). */
void cli_add_query(struct str *path, const char *key, const char *text);

/* Members of an answer; absent or of another type: "", -1, false, NULL. */
const char *json_text(const cJSON *object, const char *name);
double json_number(const cJSON *object, const char *name);
bool json_true(const cJSON *object, const char *name);
const cJSON *json_list(const cJSON *object, const char *name);
/* Has any of the list such a text, or such a list that is not empty? */
bool cli_any(const cJSON *list, const char *name);

/* That of --namespace; NULL: all. */
const char *cli_namespace(const struct cli *c);
/* Make "NS/NAME" of a name that may be given without a namespace: that of
 * --namespace, else "default".  A CLI_USAGE, after saying so on stderr, when
 * the command line names two.  The text is the cli's. */
int cli_qualify(struct cli *c, const char *what, char **arg);
/* The same without --namespace. */
void cli_pod_key(const char *arg, struct str *ret_key);
/* Append "NS/NAME" of such a name, percent-encoded. */
void cli_add_name(struct str *path, const char *name);

/* A row for each of the list. */
void cli_add_rows(struct table *t, const cJSON *list,
                  void (*add)(struct table *t, const cJSON *each));
/* The table, or, when it has no row, what says so. */
void cli_write_rows(struct cli *c, const struct table *t, const char *none);
/* The table after an empty line; nothing when it has no row. */
void cli_write_section(struct cli *c, const struct table *t);

/* A cell with the PCI addresses (or else the ids) of devices, or with names. */
void cli_add_devices(struct table *t, const cJSON *list);
/* A cell with a whole number; a negative one is not known. */
void cli_add_known(struct table *t, double number);

/* How close the cards of an allocation, or of a pair, are; "-": to nothing. */
const char *cli_relation(const cJSON *of);
/* The style of a relation's name: green, yellow, red. */
enum table_style relation_style(const char *relation);

#endif
