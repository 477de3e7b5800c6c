/* job_state - what a job waits for, runs or ended with. */
#ifndef BIGA_EXTENDER_JOBS_JOB_STATE_H
#define BIGA_EXTENDER_JOBS_JOB_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/pod/demand.h"

enum { JOB_REASON_MAX = 400 };

enum job_state {
    JOB_PENDING,
    JOB_PLANNED, /* every pair has its place, and none runs yet */
    JOB_RUNNING, /* a pair does */
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_STATES
};
const char *job_state_name(enum job_state state); /* "Pending" … */

struct job_told {
    char namespace[DEMAND_NAMESPACE_MAX + 1], name[DEMAND_NAME_MAX + 1];
    enum job_state state;    /* PLANNED is for who knows its places to say */
    uint32_t size;           /* pairs, as its pods say */
    uint32_t running, ready; /* pairs of which all pods are so */
    bool gone;               /* its pods are deleted */
    int64_t submitted_s, started_s, ended_s; /* 0: not, or not known */
    char reason[JOB_REASON_MAX];             /* one line; "" none */
    /* whose that is; its source knows more of one that is pending and for
     * which `asks` is set */
    char pod[DEMAND_NAME_MAX + 1];
    bool asks;
    bool gated; /* its gate is closed */
};

/* One line of a reason and a message. */
void job_reason(const char *reason, const char *message,
                char ret_text[JOB_REASON_MAX]);

#endif
