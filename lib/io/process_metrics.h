/* process_metrics - what Prometheus' own clients tell of a process, under the
 * same names: process_cpu_seconds_total, process_resident_memory_bytes … */
#ifndef BIGA_LIB_IO_PROCESS_METRICS_H
#define BIGA_LIB_IO_PROCESS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"

/* Of this process, from /proc/self; what cannot be read is left out. */
void process_metrics_write(struct str *out);

/* The metric of that name, such as "biga_extender_build_info", with the label
 * version: 1. */
void process_metrics_build(const char *name, struct str *out);

/* --- for tests ----------------------------------------------------------- */

struct process_facts {
    double cpu_s;     /* user and system */
    double started_s; /* Unix time */
    uint64_t virtual_bytes, resident_bytes;
    uint64_t n_threads;
};
/* From the text of /proc/PID/stat, and when the machine was booted, as Unix
 * time.  False when it is not what proc(5) says. */
bool process_facts_read(const char *stat, double booted_s,
                        struct process_facts *ret_facts);

#endif
