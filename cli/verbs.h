/* verbs - the commands of `biga`: one table feeds the dispatch, the help and
 * the man page. */
#ifndef BIGA_CLI_VERBS_H
#define BIGA_CLI_VERBS_H

#include "cli/base/settings.h"
#include "lib/io/conf.h"

/* Which argument is the name of something in a namespace. */
enum verb_named { NAMED_NONE, NAMED_FIRST };

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

/* Where a command stands in the help. */
enum verb_group {
    GROUP_LOOK,
    GROUP_JOBS,
    GROUP_ACT,
    GROUP_HOST,
    GROUP_DEVELOP,
    N_GROUPS,
};

enum { VERB_LISTS_MAX = 3 };

/* What is to be told of a command besides, in the order of the table. */
struct verb_about {
    const char *name;
    enum verb_group group;
    const char *brief; /* its line on the first screen; NULL: its name alone */
    const char *kind;  /* of what it shows, for -o name: "node"; "": none */
    const char *takes; /* what its arguments are, in their order, as
                        * complete.h knows them: "node"; "": anything */
    const struct listing *lists[VERB_LISTS_MAX]; /* whose columns it shows */
    const char *examples; /* lines: a command line and "# what it does" */
    const char *see;      /* other commands, with a space between */
};
extern const struct verb_about verbs_about[];
extern const size_t n_verbs_about;
/* Never NULL: one that nothing is told of has empty texts. */
const struct verb_about *verb_about(const char *name);

/* Those that do what -w says themselves. */
#define VERB_WATCHES "events history"

/* The one that shows what no change tells of. */
#define VERB_UNTOLD "top"

/* The one whose arguments behind its first are another program's. */
#define VERB_PASSES_ON "rsh"

extern const struct verb verbs[];
extern const size_t n_verbs;

/* NULL when there is none. */
const struct verb *verb_find(const char *name);
/* The verb that was probably meant, or NULL. */
const struct verb *verb_suggest(const char *word);
/* CLI_USAGE, after saying that there is none, and which was meant. */
int verb_complain(const char *word);
/* All verbs in their groups, as the first screen has them. */
void verbs_describe(struct str *out);
/* What the columns of a list mean, a line or more for each. */
void verb_describe_columns(const struct listing *l, struct str *out);
/* Its examples, each a line behind `indent`. */
void verb_describe_examples(const struct verb_about *a, const char *indent,
                            struct str *out);

/* The settings, and the manual with all verbs, whose texts it holds. */
struct cli_manual {
    struct conf_program program;
    struct str commands, columns, examples;
    const char *extra[9];
};
void cli_manual_init(struct cli_manual *ret_manual); /* and stays where it is */
void cli_manual_fini(struct cli_manual *m);
#define cleanup_manual __attribute__((__cleanup__(cli_manual_fini)))

/* Those that are here. */
verb_f verb_version;    /* verbs.c */
verb_f verb_help;       /* verbs_help.c */
verb_f verb_completion; /* verbs_completion.c */

#endif
