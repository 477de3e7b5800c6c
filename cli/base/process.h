/* process - children of `biga demo`: started beside us, ended by their pid,
 * never left behind (they get SIGTERM when we die, however that happens). */
#ifndef BIGA_CLI_BASE_PROCESS_H
#define BIGA_CLI_BASE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

struct process {
    pid_t pid;        /* 0: not running */
    const char *name; /* "biga-extender", borrowed */
    char *log;        /* path of what it writes; owned */
    int status;       /* of waitpid, once it ended */
};

/* The path of a program beside our own executable, or -ENOENT with the
 * directory that was looked in. */
int process_find(const char *name, char **ret_path, struct error *err);

/* Start argv[0] with its output appended to the file `log`.  `p` must be
 * zero; process_stop() releases it. */
int process_start(struct process *p, char *const argv[], const char *log,
                  struct error *err);
/* Start `sh -c command`, on our terminal: Ctrl-C is for it, too. */
int process_start_shell(struct process *p, const char *command,
                        struct error *err);
/* From now on those that start by a shell find `biga` in their PATH, and it
 * asks that server. */
int process_introduce(const char *server, struct error *err);
/* Reaps it when it has ended. */
bool process_alive(struct process *p);
/* SIGTERM, and SIGKILL when that did not help within 5 s. */
void process_stop(struct process *p);
/* The last lines it wrote. */
void process_tail(const struct process *p, struct str *out);

/* From now on SIGINT, SIGTERM and SIGCHLD are only seen by signal_wait(). */
void signals_hold(void);
/* Wait at most `ms` (-1: for ever) for one of them; 0 when none came. */
int signal_wait(int ms);

#endif
