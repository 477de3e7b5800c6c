/* conf - one table of settings per program.
 *
 * The table feeds the command line, --help, the configuration file, the
 * environment and the documentation.  Precedence: command line, then
 * environment, then file, then default. */
#ifndef BIGA_LIB_IO_CONF_H
#define BIGA_LIB_IO_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/error.h"

enum conf_type {
    CONF_TEXT,     /* const char * */
    CONF_FLAG,     /* bool; on the command line --name or --name=false */
    CONF_INT,      /* int64_t, min…max */
    CONF_DURATION, /* int64_t milliseconds; "15s", "500ms", "2m"; min…max */
    CONF_CHOICE,   /* const char *, one of `choices` ("a|b|c") */
    CONF_LIST,     /* const char *, comma-separated; repeatable */
};

struct conf_setting {
    const char *name; /* "scheduler-listen": --scheduler-listen, the file's
                          * key, and $BIGA_SCHEDULER_LISTEN */
    char letter;      /* short option, 0 for none */
    enum conf_type type;
    size_t offset;         /* of the member in the program's struct */
    const char *otherwise; /* default, as text; NULL: none */
    int64_t min, max;
    const char *choices;
    const char *metavar; /* "ADDRESS:PORT" */
    const char *help;    /* one sentence, or more; no line breaks */
};

struct conf_program {
    const char *name;    /* "biga-extender" */
    const char *summary; /* one line */
    const char *usage;   /* "[OPTION]…", or "COMMAND [ARG]…" */
    const char *text;    /* paragraphs for the man page, "\n\n" between; one
                           * that starts with a space is set as it stands */
    const struct conf_setting *settings;
    size_t n_settings;
    const char *const *extra; /* further man page sections: heading, text,
                               * heading, text …, NULL; may be NULL */
    const char *passes_on;    /* NULL, or the command whose arguments from the
                            * second on are for another program: nothing there
                            * is an option */
    bool *given; /* NULL, or for each setting: whether conf_read() has found it
                  * on the command line */
};

/* Every program also understands --help, --version, --config FILE and
 * --print-docs man|markdown|completion (for the build).  Those are handled
 * here: then 1 is returned and the program exits 0.  On success 0, `target`
 * filled and `*ret_rest` the index of the first argument that is no option;
 * options may follow such arguments (argv is reordered) up to a "--".
 *
 * What was to be printed and could not be written is an error, too.
 *
 * On a wrong setting -EINVAL: the error names where it came from
 * ("--state", "$BIGA_STATE", "FILE:12: state"), the value, and what is
 * allowed.  A wrong value is an error even where another source overrides
 * it; an empty environment variable counts as unset.  The file has lines
 * "name = value" and lines that start with '#'; it is at most 64 KiB, and an
 * unknown name or one that is set twice (but for lists) is an error.  Texts
 * are copies that live until conf_fini. */
int conf_read(const struct conf_program *program, int argc, char **argv,
              void *target, int *ret_rest, struct error *err);

/* The same with nothing but a file's content and the defaults; `origin` is
 * what error texts call it.  Returns 0 or -EINVAL. */
int conf_read_text(const struct conf_program *program, const char *origin,
                   const char *data, size_t size, void *target,
                   struct error *err);

/* What a setting needs to do anything: who sets it meant it to. */
struct conf_need {
    const char *setting;
    bool met;
    const char *text; /* "needs --actuate", "cannot be combined with --fleet" */
};

/* 0, or -EINVAL for the first setting that is other than its default while
 * what it needs is not met: "--hooks: needs --actuate".  What a variable says
 * is let be: it may be meant for another program of Biga's. */
int conf_check_needs(const struct conf_program *program, const void *target,
                     const struct conf_need *needs, size_t n,
                     struct error *err);

void conf_fini(const struct conf_program *program, void *target);

void conf_print_help(const struct conf_program *program, FILE *out);
/* The settings alone, as the help has them. */
void conf_print_options(const struct conf_program *program, FILE *out);
void conf_print_man(const struct conf_program *program, FILE *out);
void conf_print_markdown(const struct conf_program *program, FILE *out);
/* For bash's programmable completion. */
void conf_print_completion(const struct conf_program *program, FILE *out);

#endif
