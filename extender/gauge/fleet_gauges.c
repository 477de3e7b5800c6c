#include "extender/gauge/fleet_gauges.h"

#include "extender/app/app_metrics.h"
#include "lib/base/mem.h"

/* --- in the table ----------------------------------------------------------- */

static void set_nodes(struct metrics *m, const struct fleet_counts *c)
{
    for (unsigned i = 0; i < NODE_STATUSES; i++) {
        const char *status = node_status_name((enum node_status)i);
        metrics_set(m, APP_NODES, &status, (int64_t)c->nodes[i]);
    }
    for (unsigned i = 0; i < CARD_STATES; i++) {
        const char *state = card_state_name((enum card_state)i);
        metrics_set(m, APP_CARDS, &state, (int64_t)c->cards[i]);
    }
    metrics_set(m, APP_FOREIGN_CLAIMS, NULL, (int64_t)c->claims);
}

static void set_achieved(struct metrics *m, const struct fleet_counts *c)
{
    for (unsigned i = 0; i < ACHIEVED_STATES; i++) {
        const char *state = achieved_state_name((enum achieved_state)i);
        metrics_set(m, APP_ACHIEVED, &state, (int64_t)c->achieved[i]);
    }
    for (unsigned p = 0; p < RELATION_COUNT; p++)
        for (unsigned r = 0; r <= RELATION_COUNT; r++) {
            const struct achieved x = {.relation = (enum relation)r};
            const char *labels[] = {relation_name((enum relation)p),
                                    achieved_word(&x)};
            metrics_set(m, APP_ALIGNMENT, labels, (int64_t)c->alignment[p][r]);
        }
}

void fleet_gauges_set(struct metrics *m, const struct snapshot *s,
                      const struct fleet_counts *counts)
{
    set_nodes(m, counts);
    set_achieved(m, counts);
    metrics_set(m, APP_ALLOCATIONS, NULL,
                (int64_t)alloc_index_size(s->allocations));
    metrics_set(m, APP_SNAPSHOT, NULL, (int64_t)s->number);
}

void fleet_gauges_plans(struct metrics *m, struct plans *plans)
{
    struct plans_counts counts;
    plans_count(plans, &counts);
    metrics_set(m, APP_PLANS, NULL, (int64_t)counts.planned);
    for (unsigned i = PLAN_LACK_ROOM; i < PLAN_LACKS; i++) {
        const char *reason = plan_lack_name((enum plan_lack)i);
        metrics_set(m, APP_PLANS_REFUSED, &reason, (int64_t)counts.refused[i]);
    }
}

/* --- beyond the table ------------------------------------------------------- */

#define GAUGE(...) METRIC_FAMILY(GAUGE, __VA_ARGS__)

static const struct metric_family relations =
    GAUGE("biga_allocation_relations",
          "Bound pods by the relation of their cards to GPU or NUMA node.",
          "relation");
static const struct metric_family leaf_cards =
    GAUGE("biga_leaf_cards",
          "Cards below a leaf switch, by whether a pair is on them.", "leaf",
          "state");
static const struct metric_family leaf_cores =
    GAUGE("biga_leaf_card_cores",
          "Cores of cards below a leaf switch that are free.", "leaf");
static const struct metric_family quota_used =
    GAUGE("biga_quota_used", "What a namespace with a quota has.", "namespace",
          "resource");
static const struct metric_family quota_limit =
    GAUGE("biga_quota_limit", "What the quota of a namespace allows.",
          "namespace", "resource");

static void write_relations(const struct fleet_counts *c, struct str *out)
{
    metrics_write_head(&relations, out);
    for (unsigned r = 0; r < RELATION_COUNT; r++) {
        const char *name = relation_name((enum relation)r);
        metrics_write_sample(&relations, &name, (int64_t)c->relations[r], out);
    }
}

static void write_leaves(const struct snapshot *s, const struct fleet_counts *c,
                         struct str *out)
{
    size_t shown = 0;
    cleanup_str struct str cores = STR_INIT(STR_MAX_DEFAULT);
    metrics_write_head(&leaf_cards, out);
    metrics_write_head(&leaf_cores, &cores);
    for (size_t i = 0; i < c->n_leaves && shown < FLEET_GAUGES_LEAVES_MAX;
         i++) {
        const struct fabric_domain *d = fabric_domain(s->fabric, (int32_t)i);
        const struct fleet_leaf *leaf = &c->leaves[i];
        if (d->tier)
            continue;
        shown++;
        metrics_write_sample(&leaf_cards, (const char *[]){d->name, "idle"},
                             leaf->idle, out);
        metrics_write_sample(&leaf_cards, (const char *[]){d->name, "other"},
                             leaf->cards - leaf->idle, out);
        metrics_write_sample(&leaf_cores, &d->name, leaf->cores, &cores);
    }
    str_add_n(out, cores.data, cores.size);
}

struct amount {
    const char *resource;
    uint64_t used, limit;
};

static void write_quotas(const struct snapshot *s, struct str *out)
{
    const struct policy *p = s->policy;
    cleanup_str struct str limits = STR_INIT(STR_MAX_DEFAULT);
    metrics_write_head(&quota_used, out);
    metrics_write_head(&quota_limit, &limits);
    for (size_t i = 0; p && i < p->n_quotas; i++) {
        const struct policy_quota *q = &p->quotas[i];
        struct namespace_use use;
        snapshot_quota_use(s, q->namespace, &use);
        const struct amount amounts[] = {
            {"cards", use.cards, q->cards},
            {"card-cores", use.cores, q->cores},
            {"card-memory-mib", use.memory_mib, q->memory_mib}};
        for (size_t k = 0; k < ARRAY_LEN(amounts); k++) {
            const char *labels[] = {q->namespace, amounts[k].resource};
            metrics_write_sample(&quota_used, labels, (int64_t)amounts[k].used,
                                 out);
            if (amounts[k].limit != POLICY_UNLIMITED)
                metrics_write_sample(&quota_limit, labels,
                                     (int64_t)amounts[k].limit, &limits);
        }
    }
    str_add_n(out, limits.data, limits.size);
}

void fleet_gauges_write(const struct snapshot *s,
                        const struct fleet_counts *counts, struct str *out)
{
    write_relations(counts, out);
    write_leaves(s, counts, out);
    write_quotas(s, out);
}
