#include "extender/why.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

void why_judge(const struct schedule *s, struct why *ret_why)
{
    struct why why = {.n_nodes = s->snapshot->n_nodes};
    cleanup_free int32_t *all = xcalloc(why.n_nodes, sizeof *all);
    uint32_t best[WHY_BEST_MAX];
    struct schedule_reasons known = {0};

    for (size_t i = 0; i < why.n_nodes; i++)
        all[i] = (int32_t)i;
    why.n_best = schedule_best(s, all, why.n_nodes, WHY_BEST_MAX, best,
                               &why.n_fitting);
    for (size_t i = 0; i < why.n_best; i++)
        why.best[i] = (int32_t)best[i];
    for (size_t i = 0; i < why.n_nodes && why.n_fitting < why.n_nodes; i++) {
        enum reason r = schedule_reason(s, (int32_t)i, &known);
        if (r != REASON_NONE && why.count[r]++ == 0)
            why.example[r] = (int32_t)i;
    }
    *ret_why = why;
}

void why_advise(const struct schedule *s, struct why *why)
{
    if (why->n_fitting == 0)
        advise_pod(s, &why->advice);
}

void why_write_pod(const struct demand *d, struct str *out)
{
    str_add(out, "{\"namespace\":");
    str_add_json(out, d->namespace);
    str_add(out, ",\"name\":");
    str_add_json(out, d->name);
    str_add(out, ",\"uid\":");
    str_add_json(out, d->uid);
    str_add(out, ",\"role\":");
    str_add_json(out, pod_role_name(d->role));
    str_add(out, ",\"job\":");
    str_add_json(out, d->job);
    str_addf(out, ",\"pair\":%d}", (int)d->pair);
}

static void write_best(const struct schedule *s, int32_t index, struct str *out)
{
    struct choice choice;
    if (schedule_choose(s, index, &choice) != REASON_NONE)
        return;
    struct allocation *a = schedule_allocation(s, index, &choice);
    allocation_encode(a, out);
    allocation_unref(a);
}

/* The reason that most nodes have and that is not written yet. */
static enum reason next_reason(const struct why *why, const bool *written)
{
    enum reason most = REASON_NONE;
    for (enum reason r = REASON_NONE + 1; r < REASON_COUNT; r++)
        if (!written[r] && why->count[r] &&
            (most == REASON_NONE || why->count[r] > why->count[most]))
            most = r;
    return most;
}

static void write_reason(const struct schedule *s, const struct why *why,
                         enum reason r, struct str *out)
{
    cleanup_str struct str text = STR_INIT(4096);
    int32_t example = why->example[r];
    str_add(out, "{\"reason\":");
    str_add_json(out, reason_word(r));
    str_addf(out,
             ",\"nodes\":%zu,\"preemptable\":%s,\"message\":", why->count[r],
             reason_resolvable(r) ? "true" : "false");
    schedule_brief(s, r, &text);
    str_add_json(out, str_text(&text));
    str_add(out, ",\"example\":");
    str_add_json(out, snapshot_node(s->snapshot, (size_t)example)->name);
    str_reset(&text);
    schedule_explain(s, example, r, &text);
    str_add(out, ",\"detail\":");
    str_add_json(out, str_text(&text));
    str_add_c(out, '}');
}

void why_write(const struct schedule *s, const struct why *why, struct str *out)
{
    bool written[REASON_COUNT] = {false};
    str_addf(out, "\"nodes\":%zu,\"fitting\":%zu,\"best\":[", why->n_nodes,
             why->n_fitting);
    for (size_t i = 0; i < why->n_best; i++) {
        if (i)
            str_add_c(out, ',');
        write_best(s, why->best[i], out);
    }
    str_add(out, "],\"reasons\":[");
    enum reason r;
    for (bool first = true; (r = next_reason(why, written)) != REASON_NONE;
         first = false) {
        if (!first)
            str_add_c(out, ',');
        written[r] = true;
        write_reason(s, why, r, out);
    }
    str_add(out, "],");
    advice_write(s, &why->advice, out);
}

/* The reason of the nodes that are nearest to fitting: they lack only what
 * others hold; else their hardware lacks something; else it is not about
 * them at all. */
static enum reason nearest_reason(const struct why *why)
{
    bool far[REASON_COUNT] = {false}, none[REASON_COUNT] = {false};
    for (enum reason r = REASON_NONE + 1; r < REASON_COUNT; r++)
        far[r] = !reason_resolvable(r);
    enum reason nearest = next_reason(why, far);
    if (nearest != REASON_NONE)
        return nearest;
    none[REASON_NO_CARD] = none[REASON_UNKNOWN_NODE] = true;
    none[REASON_PAIR_ELSEWHERE] = true;
    nearest = next_reason(why, none);
    if (nearest != REASON_NONE)
        return nearest;
    memset(none, 0, sizeof none);
    return next_reason(why, none);
}

void why_summary(const struct schedule *s, const struct why *why,
                 struct str *out)
{
    if (why->n_nodes == 0) {
        str_add(out, "no node has published its topology: start "
                     "biga-advertiser on the nodes");
        return;
    }
    if (why->n_fitting > 0) {
        str_addf(out, "fits %zu of %zu nodes, best %s", why->n_fitting,
                 why->n_nodes,
                 snapshot_node(s->snapshot, (size_t)why->best[0])->name);
        return;
    }
    enum reason r = nearest_reason(why);
    str_addf(out, "fits none of %zu nodes; %zu: ", why->n_nodes, why->count[r]);
    schedule_brief(s, r, out);
    str_addf(out, "; for example node %s: ",
             snapshot_node(s->snapshot, (size_t)why->example[r])->name);
    schedule_explain(s, why->example[r], r, out);
    if (why->advice.n_changes) {
        str_add(out, ". The smallest change: ");
        change_text(s, &why->advice.changes[0], out);
    }
}
