/* run - what `biga run` is asked as the objects that it applies: a Job of
 * Kubernetes whose pods are the host pods of pairs, and a PodTemplate of their
 * xPU pods.  The same in a cluster and without one. */
#ifndef BIGA_CLI_VERB_RUN_H
#define BIGA_CLI_VERB_RUN_H

#include "cli/base/cli.h"

struct run {
    const char *namespace, *name;
    const struct cli_settings *set;
    int64_t pairs, cards; /* cards of each pair */
    char **command;       /* of the host pods; none: their image's */
    int n_command;
};

/* The caller's (cJSON_Delete). */
cJSON *run_job(const struct run *r);
/* NULL: they have no xPU pods. */
cJSON *run_template(const struct run *r);

#endif
