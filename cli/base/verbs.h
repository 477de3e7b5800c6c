/* verbs - the commands of `biga`: one table feeds the dispatch, the help and
 * the man page. */
#ifndef BIGA_CLI_BASE_VERBS_H
#define BIGA_CLI_BASE_VERBS_H

#include "cli/base/cli.h"
#include "lib/io/conf.h"

/* Run with the arguments after the verb; returns the exit code. */
typedef int verb_f(struct cli *c, int argc, char **argv);

/* Which argument is the name of something in a namespace. */
enum verb_named { NAMED_NONE, NAMED_FIRST, NAMED_LAST };

/* What every command takes that asks the extender, or this host's
 * advertiser. */
#define VERB_ASK "server ca cert key token-file"
#define VERB_LOCAL "socket"

struct verb {
    const char *name;
    const char *args; /* "NODE", "" */
    const char *help;
    int args_min, args_max;
    verb_f *run;
    const char *options; /* names of the settings that it takes, with a space
                          * between */
    enum verb_named named;
};

extern const struct verb verbs[];
extern const size_t n_verbs;

/* Is a setting among those, as in a verb's options? */
bool options_have(const char *options, const char *name);
/* 0 when nothing else was given on the command line; else CLI_USAGE, after
 * saying on stderr what `what` ("card logs") takes. */
int options_check(const struct cli *c, const char *what, const char *options);

/* NULL when there is none. */
const struct verb *verb_find(const char *name);
/* The verb that was probably meant, or NULL. */
const struct verb *verb_suggest(const char *word);
/* All verbs with their arguments and help, one a line. */
void verbs_describe(struct str *out);

/* The table of settings and the manual, with all verbs; `commands` and
 * `extra` hold its texts. */
enum { CLI_EXTRA = 3 };
void cli_program(struct conf_program *ret_program, struct str *commands,
                 const char *extra[CLI_EXTRA]);
/* As cli_program() has them. */
const struct conf_setting *cli_settings_table(size_t *ret_n);

/* Tables that several verbs show: a "no card" line, or false, when there is
 * nothing to show. */
void cards_render(struct cli *c, const cJSON *list);
bool allocations_render(struct cli *c, const cJSON *list);
/* Leaf by leaf, the nodes and which ranks are on them. */
void leaves_draw(const cJSON *pairs, struct str *out);

/* The functions of the table, by file. */
verb_f verb_nodes, verb_node;   /* nodes.c */
verb_f verb_cards;              /* cards.c */
verb_f verb_topo, verb_matrix;  /* topo.c */
verb_f verb_fabric;             /* fabric.c */
verb_f verb_allocations;        /* allocations.c */
verb_f verb_jobs, verb_job;     /* jobs.c */
verb_f verb_policy;             /* policy.c */
verb_f verb_cluster;            /* cluster.c */
verb_f verb_why, verb_simulate; /* why.c */
verb_f verb_apply, verb_delete, verb_release, verb_trust, verb_ps; /* apply.c */
verb_f verb_demo;                                                  /* demo.c */
verb_f verb_replay;          /* replay.c */
verb_f verb_card, verb_pods; /* onhost.c */
verb_f verb_logs, verb_exec; /* logs.c */
verb_f verb_version;         /* verbs.c */
verb_f verb_help;            /* help.c */

#endif
