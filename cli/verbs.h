/* verbs - the commands of `biga`: one table feeds the dispatch, the help and
 * the man page. */
#ifndef BIGA_CLI_VERBS_H
#define BIGA_CLI_VERBS_H

#include "cli/base/settings.h"
#include "lib/io/conf.h"

/* Which argument is the name of something in a namespace. */
enum verb_named { NAMED_NONE, NAMED_FIRST, NAMED_LAST };

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

/* The one whose arguments behind its first are another program's. */
#define VERB_PASSES_ON "rsh"

extern const struct verb verbs[];
extern const size_t n_verbs;

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

/* The two that are here. */
verb_f verb_version; /* verbs.c */
verb_f verb_help;    /* verbs_help.c */

#endif
