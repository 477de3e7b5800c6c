#include "bench/replay/measure.h"

#include <math.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "model/decide/bits.h"

enum { MEMO_SLOTS = 1 << 16 };

void measure_init(struct measure *m, const struct replay_config *config,
                  struct replay_result *r)
{
    const struct fabric *fabric = config->fleet->idle->fabric;
    *m = (struct measure){.config = config, .r = r};
    uplinks_init(&m->uplinks, config->fleet, config->costs);
    m->leaf_room = xcalloc(fabric_n_domains(fabric) + 1, sizeof *m->leaf_room);
    m->memo_key = xcalloc(MEMO_SLOTS, sizeof *m->memo_key);
    m->memo_room = xcalloc(MEMO_SLOTS, sizeof *m->memo_room);
    m->decisions = xcalloc(DECISIONS_MAX, sizeof *m->decisions);
}

void measure_fini(struct measure *m)
{
    free(m->places);
    free(m->leaves);
    uplinks_fini(&m->uplinks);
    free(m->leaf_room);
    free(m->memo_key);
    free(m->memo_room);
    free(m->decisions);
}

/* --- jobs --------------------------------------------------------------- */

/* A node of unknown place is a leaf by itself. */
static int32_t leaf_of(const struct measure *m, int32_t node)
{
    int32_t leaf = snapshot_leaf(m->config->fleet->idle, (size_t)node);
    return leaf == FABRIC_NONE ? -2 - node : leaf;
}

static bool rate(const struct measure *m, const struct spot *spot,
                 uint8_t *ret_relation)
{
    const struct host_kind *kind = fleet_kind(m->config->fleet,
                                              (size_t)spot->node);
    struct choice choice;
    kind_rate(kind, spot->cards, spot->gpus, &choice);
    struct demand pair = {.role = ROLE_HOST,
                          .align = RELATION_SYS,
                          .prefer_align = RELATION_PIX,
                          .cards = (uint8_t)count_bits(spot->cards),
                          .gpus = (uint8_t)count_bits(spot->gpus)};
    *ret_relation = choice.relation;
    return decide_is_aligned(kind->shape, &pair, &choice);
}

static void measure_pair(struct measure *m, const struct spot *spot,
                         uint8_t *ret_relation)
{
    struct replay_result *r = m->r;
    const struct host_kind *kind = fleet_kind(m->config->fleet,
                                              (size_t)spot->node);
    unsigned cards = count_bits(spot->cards);
    unsigned numas = kind_numas(kind, spot->cards, spot->gpus);
    bool aligned = rate(m, spot, ret_relation);
    r->pairs++;
    r->by_relation[*ret_relation]++;
    r->aligned += aligned;
    r->wide += cards >= 2;
    r->wide_aligned += cards >= 2 && aligned;
    r->narrow += cards >= 2 && cards <= 4;
    r->narrow_apart += cards >= 2 && cards <= 4 && count_bits(numas) > 1;
}

static int compare_i32(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static enum cost_tier widest_tier(const struct measure *m, size_t n)
{
    const struct fabric *fabric = m->config->fleet->idle->fabric;
    enum cost_tier widest = COST_NODE;
    for (size_t i = 1; i < n; i++) {
        enum cost_tier t = cost_tier(fabric, &m->places[0], &m->places[i]);
        widest = t > widest ? t : widest;
    }
    return widest;
}

static double cost_of(const struct measure *m, size_t n)
{
    const struct replay_config *c = m->config;
    struct cost_net net = uplinks_net(&m->uplinks);
    return cost_job(c->costs, c->profile, &net, m->places, n);
}

/* By how much the job takes longer than if all links were its own. */
static double held_up(const struct measure *m, size_t n, double shared_s)
{
    const struct replay_config *c = m->config;
    struct cost_net alone = {.fabric = c->fleet->idle->fabric};
    if (!m->uplinks.links || widest_tier(m, n) <= COST_LEAF)
        return 0;
    return shared_s / cost_job(c->costs, c->profile, &alone, m->places, n) - 1;
}

/* After what was promised of the same job: `places` is that. */
static void measure_given(struct measure *m, const struct spot *given, size_t n,
                          size_t number)
{
    struct replay_result *r = m->r;
    bool changed = false;
    for (size_t i = 0; i < n; i++) {
        uint8_t promised = m->places[i].relation;
        uint8_t *relation = &m->places[i].relation;
        r->achieved_aligned += rate(m, &given[i], relation);
        r->achieved_by_relation[*relation]++;
        r->farther += *relation > promised;
        r->nearer += *relation < promised;
        r->promised_bandwidth += m->config->costs->bytes_per_s[promised];
        r->achieved_bandwidth += m->config->costs->bytes_per_s[*relation];
        changed |= *relation != promised;
    }
    r->achieved_comm_s[number] = changed ? cost_of(m, n) : r->comm_s[number];
}

static void measure_gang(struct measure *m, size_t n)
{
    size_t leaves = 0;
    m->r->gangs++;
    m->r->by_tier[widest_tier(m, n)]++;
    for (size_t i = 1; i < n; i++)
        m->r->crossings += m->leaves[i] != m->leaves[i - 1];
    qsort(m->leaves, n, sizeof *m->leaves, compare_i32);
    for (size_t i = 0; i < n; i++)
        leaves += i == 0 || m->leaves[i] != m->leaves[i - 1];
    m->r->leaves += leaves;
}

void measure_job(struct measure *m, const struct replay_job *job, size_t number,
                 const struct spot *spots, const struct spot *given)
{
    size_t n = job->pairs;
    if (n > m->places_cap) {
        m->places = xrealloc(m->places, n, sizeof *m->places);
        m->leaves = xrealloc(m->leaves, n, sizeof *m->leaves);
        m->places_cap = n;
    }
    for (size_t i = 0; i < n; i++) {
        m->places[i].node = spots[i].node;
        m->places[i].leaf = snapshot_leaf(m->config->fleet->idle,
                                          (size_t)spots[i].node);
        m->leaves[i] = leaf_of(m, spots[i].node);
        measure_pair(m, &spots[i], &m->places[i].relation);
    }
    if (n > 1)
        measure_gang(m, n);
    m->r->comm_s[number] = cost_of(m, n);
    if (n > 1)
        m->r->held_up += held_up(m, n, m->r->comm_s[number]);
    measure_given(m, given, n, number);
    uplinks_start(&m->uplinks, spots, job->pairs);
}

void measure_job_end(struct measure *m, const struct spot *spots, uint32_t n)
{
    uplinks_end(&m->uplinks, spots, n);
}

static double mean_ratio(const double *s, const double *base_s, size_t n)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] <= 0 || base_s[i] <= 0)
            continue;
        sum += s[i] / base_s[i];
        count++;
    }
    return count > 0 ? sum / count : 0;
}

double replay_comm_ratio(const struct replay_result *r,
                         const struct replay_result *base, size_t n)
{
    return mean_ratio(r->comm_s, base->comm_s, n);
}

double replay_achieved_ratio(const struct replay_result *r, size_t n)
{
    return mean_ratio(r->achieved_comm_s, r->comm_s, n);
}

double replay_bandwidth_ratio(const struct replay_result *r)
{
    return r->pairs ? r->achieved_bandwidth / r->promised_bandwidth : 0;
}

/* --- what still has room ------------------------------------------------ */

/* On one node: aligned pairs of one card, and whether one that takes the
 * whole host would be aligned. */
static uint64_t room_of(const struct measure *m, const struct host_kind *kind,
                        const struct node_state *state)
{
    uint32_t aligned = 0, whole = 0;
    struct demand pair = {.role = ROLE_HOST,
                          .size = 1,
                          .align = RELATION_SYS,
                          .prefer_align = RELATION_PIX,
                          .exclusive = true,
                          .cards = 1,
                          .pair_cards = 1,
                          .gpus = m->config->want_gpus,
                          .pair_gpus = m->config->want_gpus};
    (void)plan_room(state, &pair, TOPO_CARDS_MAX, &aligned);
    pair.cards = pair.pair_cards = (uint8_t)count_bits(kind->cards);
    if (m->config->want_gpus && kind->shape->n_gpus < pair.cards)
        pair.cards = pair.pair_cards = kind->shape->n_gpus;
    pair.gpus = pair.pair_gpus = m->config->want_gpus ? pair.cards : 0;
    if (pair.cards)
        (void)plan_room(state, &pair, 1, &whole);
    return (uint64_t)whole << 32 | aligned;
}

static uint64_t room_known(struct measure *m, const struct snapshot *s,
                           size_t node)
{
    const struct host_kind *kind = fleet_kind(m->config->fleet, node);
    const struct node_state *state = &snapshot_node(s, node)->state;
    uint64_t key =
        (uint64_t)(node % m->config->fleet->n_kinds + 1) << 32 |
        (uint64_t)(state->usable & ~(unsigned)(state->closed | state->shared))
            << 16 |
        state->gpus_used;
    size_t slot = hash_bytes(&key, sizeof key) % MEMO_SLOTS;
    if (m->memo_key[slot] != key) {
        m->memo_room[slot] = room_of(m, kind, state);
        m->memo_key[slot] = key;
    }
    return m->memo_room[slot];
}

void measure_room(struct measure *m, const struct snapshot *s,
                  struct replay_sample *ret_sample)
{
    size_t n_domains = fabric_n_domains(s->fabric);
    struct replay_sample *sample = ret_sample;
    memset(m->leaf_room, 0, n_domains * sizeof *m->leaf_room);
    sample->pairs = sample->jobs = sample->hosts = 0;
    for (size_t i = 0; i < s->n_nodes; i++) {
        uint64_t room = room_known(m, s, i);
        int32_t leaf = snapshot_leaf(s, i);
        sample->pairs += (uint32_t)room;
        sample->hosts += (uint32_t)(room >> 32);
        if (leaf == FABRIC_NONE)
            sample->jobs += (uint32_t)room / UNIT_PAIRS;
        else
            m->leaf_room[leaf] += (uint32_t)room;
    }
    for (size_t i = 0; i < n_domains; i++)
        sample->jobs += m->leaf_room[i] / UNIT_PAIRS;
}

void replay_mean_sample(const struct replay_result *r, double *ret_pairs,
                        double *ret_jobs, double *ret_hosts)
{
    double n = r->n_samples ? (double)r->n_samples : 1;
    *ret_pairs = *ret_jobs = *ret_hosts = 0;
    for (size_t i = 0; i < r->n_samples; i++) {
        *ret_pairs += r->samples[i].pairs / n;
        *ret_jobs += r->samples[i].jobs / n;
        *ret_hosts += r->samples[i].hosts / n;
    }
}

/* --- quantiles ---------------------------------------------------------- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void measure_waits(struct replay_result *r, int64_t *waits, size_t n)
{
    if (n == 0)
        return;
    qsort(waits, n, sizeof *waits, compare_i64);
    r->wait_p50_us = waits[(n - 1) / 2];
    r->wait_p99_us = waits[(n - 1) * 99 / 100];
    for (size_t i = 0; i < n; i++)
        r->wait_mean_us += (double)waits[i] / (double)n;
}

/* The first DECISIONS_MAX are kept. */
void measure_decision(struct measure *m, int64_t ns)
{
    if (m->r->n_decisions < DECISIONS_MAX)
        m->decisions[m->r->n_decisions] = ns < UINT32_MAX ? (uint32_t)ns
                                                          : UINT32_MAX;
    m->r->n_decisions++;
}

void measure_decisions(struct measure *m)
{
    size_t n = m->r->n_decisions < DECISIONS_MAX ? m->r->n_decisions
                                                 : DECISIONS_MAX;
    if (n == 0)
        return;
    qsort(m->decisions, n, sizeof *m->decisions, compare_u32);
    m->r->decide_p50_us = m->decisions[(n - 1) / 2] / 1e3;
    m->r->decide_p99_us = m->decisions[(n - 1) * 99 / 100] / 1e3;
}
