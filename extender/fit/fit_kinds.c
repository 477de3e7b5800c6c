#include "extender/fit/fit_kinds.h"

#include <stdio.h>
#include <string.h>

#include "extender/fit/node_match.h"
#include "lib/base/hash.h"

/* --- words -------------------------------------------------------------- */

struct word {
    uint32_t refs;
    char text[];
};

static const char *word_take(struct fit_kinds *k, const char *text)
{
    struct word *w = strmap_get(&k->words, text);
    if (!w) {
        size_t size = strlen(text) + 1;
        w = xmalloc(sizeof *w + size);
        w->refs = 0;
        memcpy(w->text, text, size);
        (void)strmap_put(&k->words, w->text, w);
    }
    w->refs++;
    return w->text;
}

static void word_drop(struct fit_kinds *k, const char *text)
{
    if (text == NODE_MATCH_NAME)
        return;
    struct word *w = strmap_get(&k->words, text);
    if (--w->refs > 0)
        return;
    (void)strmap_remove(&k->words, text);
    free(w);
}

void fit_kinds_fini(struct fit_kinds *k)
{
    strmap_fini(&k->words);
    strmap_fini(&k->kinds);
}

/* --- kinds -------------------------------------------------------------- */

static void kind_free(struct fit_kinds *k, struct fit_kind *kind)
{
    for (size_t i = 0; i < kind->n_labels; i++) {
        word_drop(k, kind->labels[i].key);
        word_drop(k, kind->labels[i].value);
    }
    for (size_t i = 0; i < kind->n_taints; i++) {
        word_drop(k, kind->taints[i].key);
        word_drop(k, kind->taints[i].value);
        word_drop(k, kind->taints[i].effect);
    }
    free((void *)kind->labels);
    free((void *)kind->taints);
    free(kind);
}

/* Equal texts are the same word: what is equal has the same bytes. */
static struct fit_kind *kind_create(struct fit_kinds *k,
                                    const struct node_facts *facts)
{
    struct fit_kind *kind = xcalloc(1, sizeof *kind);
    struct node_label *labels = xcalloc(facts->n_labels + 1, sizeof *labels);
    struct node_taint *taints = xcalloc(facts->n_taints + 1, sizeof *taints);
    for (size_t i = 0; i < facts->n_labels; i++) {
        const struct node_label *l = &facts->labels[i];
        bool is_name = strcmp(l->value, facts->name) == 0;
        labels[i].key = word_take(k, l->key);
        labels[i].value = is_name ? NODE_MATCH_NAME : word_take(k, l->value);
    }
    for (size_t i = 0; i < facts->n_taints; i++) {
        taints[i].key = word_take(k, facts->taints[i].key);
        taints[i].value = word_take(k, facts->taints[i].value);
        taints[i].effect = word_take(k, facts->taints[i].effect);
    }
    kind->refs = 1;
    kind->unschedulable = facts->unschedulable;
    kind->labels = labels;
    kind->n_labels = facts->n_labels;
    kind->taints = taints;
    kind->n_taints = facts->n_taints;
    uint64_t hash =
        hash_mix(hash_bytes(labels, kind->n_labels * sizeof *labels),
                 hash_bytes(taints, kind->n_taints * sizeof *taints) ^
                     kind->unschedulable);
    (void)snprintf(kind->hash, sizeof kind->hash, "%016llx",
                   (unsigned long long)hash);
    return kind;
}

static bool is_same(const struct fit_kind *a, const struct fit_kind *b)
{
    return a->unschedulable == b->unschedulable && a->n_labels == b->n_labels &&
           a->n_taints == b->n_taints &&
           memcmp(a->labels, b->labels, a->n_labels * sizeof *a->labels) == 0 &&
           memcmp(a->taints, b->taints, a->n_taints * sizeof *a->taints) == 0;
}

struct fit_kind *fit_kinds_take(struct fit_kinds *k,
                                const struct node_facts *facts)
{
    struct fit_kind *kind = kind_create(k, facts);
    struct fit_kind *there = strmap_get(&k->kinds, kind->hash);
    if (there && is_same(there, kind)) {
        kind_free(k, kind);
        there->refs++;
        return there;
    }
    kind->shared = !there; /* else two have one hash by chance */
    if (kind->shared)
        (void)strmap_put(&k->kinds, kind->hash, kind);
    return kind;
}

void fit_kinds_drop(struct fit_kinds *k, struct fit_kind *kind)
{
    if (!kind || --kind->refs > 0)
        return;
    if (kind->shared)
        (void)strmap_remove(&k->kinds, kind->hash);
    kind_free(k, kind);
}

/* --- judging ------------------------------------------------------------ */

static bool is_cordoned(const struct fit_kind *kind,
                        const struct pod_needs *needs)
{
    static const struct node_taint cordon = {"node.kubernetes.io/unschedulable",
                                             "", "NoSchedule"};
    return kind->unschedulable && node_match_taints(&cordon, 1, needs);
}

static bool matches(const struct fit_kind *kind, const struct pod_needs *needs,
                    const char *name, bool *ret_by_name)
{
    struct node_match m = {
        .name = name, .labels = kind->labels, .n_labels = kind->n_labels};
    bool does = node_match_labels(&m, needs);
    *ret_by_name = m.asked_name;
    return does;
}

enum fit_kind_answer fit_kind_judge(struct fit_kind *kind, uint64_t question,
                                    const struct pod_needs *needs,
                                    const char *name,
                                    const struct node_taint **ret_taint)
{
    bool ignored;
    bool again = kind->asked == question;
    if (!again) {
        kind->asked = question;
        kind->taint = node_match_taints(kind->taints, kind->n_taints, needs);
        kind->matches = matches(kind, needs, name, &kind->by_name);
    }
    *ret_taint = kind->taint;
    if (is_cordoned(kind, needs))
        return FIT_KIND_UNSCHEDULABLE;
    if (kind->taint)
        return FIT_KIND_TAINT;
    bool fits = again && kind->by_name ? matches(kind, needs, name, &ignored)
                                       : kind->matches;
    return fits ? FIT_KIND_OK : FIT_KIND_LABELS;
}
