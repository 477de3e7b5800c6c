/* Any bytes as a trace of jobs, in both forms: no crash; what is accepted is
 * within its limits and in order.  And as what pairs ask. */
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

static void read_need(const uint8_t *data, size_t size)
{
    struct replay_job job = {.pairs = 1, .cards = 1};
    struct trace t = {.jobs = &job, .n = 1};
    struct error err = {0};
    cleanup_free char *text = xstrndup((const char *)data, size);
    int rc = trace_need(text, &t, &err);
    if (rc < 0 ? !err.text[0]
               : job.cpu_milli > TRACE_CPU_MAX ||
                     job.memory_mib > TRACE_MEMORY_MAX ||
                     job.card_memory_mib > TRACE_MEMORY_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_need(data, size);
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
