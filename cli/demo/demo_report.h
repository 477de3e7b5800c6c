/* demo_report - what the demo shows at the end: which pair got what, what a
 * scheduler that does not know the topology would have given, and a picture.
 * Pure. */
#ifndef BIGA_CLI_DEMO_DEMO_REPORT_H
#define BIGA_CLI_DEMO_DEMO_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/demo/firstfit.h"
#include "cli/verb/host.h"

/* What one pair of the job got. */
struct pair_result {
    struct placement at; /* of the host pod, and its relation */
    int numa;            /* of the host pod, -1 unknown */
    bool followed;       /* its xPU pod is on the same node and card */
};

struct demo_report {
    const struct host *hosts;
    size_t n_hosts, n_pairs;
    struct pair_result *pairs;
    struct placement *blind; /* by first fit */
    enum relation *possible; /* the best that there are, best first */
    size_t n_possible;
    size_t n_services;
    bool **taken; /* by other jobs: by host, then device */
    size_t n_tenants;
};

/* Read the job's pairs from the answer of /v1/allocations and work out the
 * yardsticks.  `hosts` stays the caller's. */
void demo_report_init(struct demo_report *r, const struct host *hosts,
                      size_t n_hosts, size_t n_pairs, const cJSON *allocations);
void demo_report_fini(struct demo_report *r);

void demo_report_pairs(const struct demo_report *r, bool colours,
                       struct str *out);
/* How many of the pairs are aligned, and how far they are spread over the
 * fabric, here and there. */
void demo_report_summary(const struct demo_report *r, struct str *out);
/* The host with most of the pairs, with who is on which card. */
void demo_report_picture(const struct demo_report *r, const cJSON *allocations,
                         bool colours, struct str *out);

/* Leaf by leaf, which pairs are on which host, here and there. */
void demo_report_leaves(const struct demo_report *r, bool colours,
                        struct str *out);

/* Every pair is placed, its xPU pod on its card, as many pairs are aligned
 * (PXB or better) as can be, and, when all are, on the fewest leaves; else
 * says what is not. */
bool demo_report_check(const struct demo_report *r, struct str *out);
/* Does the server (`job`: its answer of /v1/jobs/NS/NAME) count leaves and
 * crossings as we do?  Else says so. */
bool demo_report_agrees(const struct demo_report *r, const cJSON *job,
                        struct str *out);

#endif
