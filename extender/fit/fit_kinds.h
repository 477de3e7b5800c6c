/* fit_kinds - kinds of nodes: those that say the same (labels, taints, whether
 * they are cordoned) are one, and judged once.  A label whose value is the
 * node's own name is of its kind, too.  Texts are kept once.
 *
 * Not thread-safe. */
#ifndef BIGA_EXTENDER_FIT_FIT_KINDS_H
#define BIGA_EXTENDER_FIT_FIT_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/fit/node_facts.h"
#include "extender/fit/pod_needs.h"
#include "lib/base/strmap.h"

struct fit_kinds {
    struct strmap words; /* struct word, by its text */
    struct strmap kinds; /* struct fit_kind, by its hash as text */
};
void fit_kinds_fini(struct fit_kinds *k); /* when all were dropped */

struct fit_kind {
    uint32_t refs;
    bool unschedulable, shared;
    char hash[17];
    const struct node_label *labels; /* by key; NODE_MATCH_NAME: the name */
    size_t n_labels;
    const struct node_taint *taints;
    size_t n_taints;
    /* What was found last, of the question `asked`. */
    uint64_t asked;
    const struct node_taint *taint;
    bool matches, by_name; /* by_name: of its labels, ask for each node */
};
/* The kind of a node, for one holder more. */
struct fit_kind *fit_kinds_take(struct fit_kinds *k,
                                const struct node_facts *facts);
void fit_kinds_drop(struct fit_kinds *k, struct fit_kind *kind);

/* What keeps these pods off nodes of that kind; questions about the same needs
 * may have the same number, which is above 0. */
enum fit_kind_answer {
    FIT_KIND_OK,
    FIT_KIND_UNSCHEDULABLE,
    FIT_KIND_TAINT,
    FIT_KIND_LABELS,
};
enum fit_kind_answer fit_kind_judge(struct fit_kind *kind, uint64_t question,
                                    const struct pod_needs *needs,
                                    const char *name,
                                    const struct node_taint **ret_taint);

#endif
