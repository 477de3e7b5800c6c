/* Any bytes as a trace of jobs, in both forms: no crash; what is accepted is
 * within its limits and in order. */
#include <stdint.h>
#include <stdlib.h>

#include "bench/replay/trace.h"
#include "model/pod/demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct trace *t)
{
    if (t->n == 0)
        abort();
    for (size_t i = 0; i < t->n; i++) {
        const struct replay_job *j = &t->jobs[i];
        if (j->pairs < 1 || j->pairs > DEMAND_SIZE_MAX || j->cards < 1 ||
            j->cards > TOPO_CARDS_MAX || j->arrival_us < 0 ||
            j->duration_us < 1)
            abort();
        if (i && j->arrival_us < t->jobs[i - 1].arrival_us)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int format = TRACE_AUTO; format <= TRACE_SWF; format++) {
        struct trace t = {0};
        struct error err = {0};
        int rc = trace_read("trace", (const char *)data, size,
                            (enum trace_format)format, &t, &err);
        if (rc == 0)
            look(&t);
        else if (t.jobs || err.text[0] == '\0')
            abort();
        trace_fini(&t);
    }
    return 0;
}
