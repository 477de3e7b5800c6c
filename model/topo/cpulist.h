/* cpulist - the logical CPUs of a NUMA node as a text, told so that the
 * threads of one core can be kept together.
 *
 *     0-15                one thread a core
 *     0-15;32-47          core 0 is CPUs 0 and 32, core 1 is 1 and 33, …
 *     0-30:2;1-31:2       core 0 is CPUs 0 and 1, core 1 is 2 and 3, …
 *     0-7,16-23;8-15      cores with two threads first, then those with one
 *
 * A row for the first threads of all cores, one for the second threads, and
 * so on; rows get no longer.  A row is numbers, ranges and ranges with a
 * step, by os index.  Pure. */
#ifndef BIGA_MODEL_TOPO_CPULIST_H
#define BIGA_MODEL_TOPO_CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    CPULIST_CPUS_MAX = 4096,
    CPULIST_ROWS_MAX = 8, /* threads of a core */
    CPULIST_INDEX_MAX = 65535,
    CPULIST_TEXT_MAX = 64, /* of a text attribute */
};

struct cpulist {
    uint16_t n_rows;
    uint16_t n_cpus;
    uint16_t sizes[CPULIST_ROWS_MAX]; /* of the rows, not growing */
    uint16_t cpus[CPULIST_CPUS_MAX];  /* row behind row */
};

/* "" gives an empty list.  -EINVAL names what is wrong: also a CPU that is
 * there twice. */
int cpulist_parse(const char *text, struct cpulist *ret_list,
                  struct error *err);

/* The text of a list; false when it needs more than CPULIST_TEXT_MAX
 * bytes. */
bool cpulist_format(const struct cpulist *list,
                    char ret_text[CPULIST_TEXT_MAX + 1]);

/* Part `i` of `n` (i < n): equal numbers of whole cores, or of single CPUs
 * when there are fewer cores than parts; parts are disjoint.  As numbers and
 * ranges in ascending order, "0-7,32-39".  False, and nothing is written,
 * when there are fewer CPUs than parts. */
bool cpulist_part(const struct cpulist *list, size_t i, size_t n,
                  struct str *out);

#endif
