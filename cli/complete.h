/* complete - what may come next on the command line, for shells. */
#ifndef BIGA_CLI_COMPLETE_H
#define BIGA_CLI_COMPLETE_H

#include "cli/base/cli.h"
#include "lib/io/conf.h"

/* What the scripts of `biga completion` run:
 *
 *     biga __complete WORD… BEGUN
 *
 * A line for each word that may stand in the place of BEGUN and begins with it:
 * the word, a tab, and what it is; names of nodes, pods and the like are asked
 * of the server, for 1.5 s at most. The last line is ":files" when it is a file
 * that may stand there, else ":". */
#define COMPLETE_COMMAND "__complete"

/* Append these lines. `words` are those behind it; the last is BEGUN. */
void complete(struct cli *c, const struct conf_program *program, int n,
              char **words, struct str *out);

/* The lines of names alone, for an argument that is a word of verb_about's
 * `takes`: node, card, place, pod, job, host-card and host-pod are names; file,
 * command, shell, card-command, top-kind and deletable (biga delete [KIND] NAME)
 * are what they say.
 * "job|pod" are names with their kinds, "job/lab/ring"; with a "+" behind it, a
 * word is of all further arguments, too. */
void complete_argument(struct cli *c, const char *takes, const char *begun,
                       struct str *out);

#endif
