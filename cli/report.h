/* report - what the demo shows at the end: which pair got what, what a
 * scheduler that does not know the topology would have given, and a picture.
 * Pure. */
#ifndef BIGA_CLI_REPORT_H
#define BIGA_CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/firstfit.h"
#include "cli/host.h"

/* What one pair of the job got. */
struct pair_result {
    struct placement at; /* of the host pod, and its relation */
    int numa;            /* of the host pod, -1 unknown */
    bool followed;       /* its xPU pod is on the same node and card */
};

struct report {
    const struct host *hosts;
    size_t n_hosts, n_pairs;
    struct pair_result *pairs;
    struct placement *blind; /* by first fit */
    enum relation *possible; /* the best that there are, best first */
    size_t n_possible;
    struct placement *services; /* host and card alone */
    size_t n_services, services_cap;
};

/* Read the job's pairs from the answer of /v1/allocations and work out the
 * yardsticks.  `hosts` stays the caller's. */
void report_init(struct report *r, const struct host *hosts, size_t n_hosts,
                 size_t n_pairs, const cJSON *allocations);
void report_fini(struct report *r);

void report_pairs(const struct report *r, bool colours, struct str *out);
/* How many of the pairs are aligned, here and there. */
void report_summary(const struct report *r, struct str *out);
/* The host with most of the pairs, with who is on which card. */
void report_picture(const struct report *r, bool colours, struct str *out);

/* Every pair is placed, its xPU pod on its card, and the relations are as
 * good as they can be; else says what is not. */
bool report_check(const struct report *r, struct str *out);

#endif
