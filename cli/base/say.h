/* say - what biga says to a person: a line of its output, or on stderr what is
 * wrong. */
#ifndef BIGA_CLI_BASE_SAY_H
#define BIGA_CLI_BASE_SAY_H

#include "cli/base/cli.h"

/* "biga: " and the text; CLI_FAILED, or CLI_USAGE. */
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* CLI_USAGE: `word` stands where one of these should; the last is NULL. */
int cli_usage_word(const char *what, const char *word,
                   const char *const *words);
/* "; did you mean X?" of the word that was probably meant, or nothing. */
void cli_add_meant(struct str *text, const char *word,
                   const char *const *words);
/* The same of the status of an answer, and of what that says. */
int cli_fail_answer(const char *who, const struct http_answer *answer);

/* A line of the output, in which all that is hidden becomes '?'. */
void cli_line(struct cli *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
