/* output - the form in which an answer is printed: -o.  A command prints a
 * table, or the server's JSON (then set.json is true); the other forms are made
 * of that JSON. */
#ifndef BIGA_CLI_BASE_OUTPUT_H
#define BIGA_CLI_BASE_OUTPUT_H

#include "cli/base/cli.h"

/* What -o and --json say, or CLI_USAGE when they say two things. */
int output_choose(struct cli *c);

/* Make what was asked for of the JSON in `c->out`: YAML, or names of things,
 * which are of c->kind when they do not say it themselves.  An exit code. */
int output_finish(struct cli *c);

/* Append "NAMESPACE/NAME", "NODE/PCI-ADDRESS" or "NAME", what an object of the
 * server is called; false for one without a name. */
bool output_name(const cJSON *object, struct str *out);

#endif
