#include "extender/jobs/job_state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *job_state_name(enum job_state state)
{
    static const char *const names[JOB_STATES] = {
        [JOB_PENDING] = "Pending", [JOB_PLANNED] = "Planned",
        [JOB_RUNNING] = "Running", [JOB_SUCCEEDED] = "Succeeded",
        [JOB_FAILED] = "Failed",
    };
    return (unsigned)state < JOB_STATES ? names[state] : "";
}

void job_reason(const char *reason, const char *message,
                char ret_text[JOB_REASON_MAX])
{
    int n = snprintf(ret_text, JOB_REASON_MAX, "%s%s%s", reason,
                     *reason && *message ? ": " : "", message);
    if (n >= JOB_REASON_MAX) {
        size_t end = JOB_REASON_MAX - sizeof "…";
        while (end > 0 && (ret_text[end] & 0xc0) == 0x80) /* within a letter */
            end--;
        memcpy(ret_text + end, "…", sizeof "…");
    }
    for (char *p = ret_text; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = ' ';
}
