#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/replay/trace.h"
#include "lib/base/hash.h"
#include "model/pod/demand.h"

/* --- random numbers ----------------------------------------------------- */

/* SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA 2014. */
uint64_t random_u64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((random_u64(state) >> 32) * n) >> 32);
}

double random_unit(uint64_t *state)
{
    return (double)((random_u64(state) >> 11) + 1) * 0x1p-53;
}

/* --- what is asked ------------------------------------------------------ */

struct size_weight {
    uint32_t size;
    uint32_t weight;
};

struct recipe {
    bool mpi;
    double load, mean_s;
    int64_t jobs;
    struct size_weight sizes[TRACE_SIZES_MAX];
    size_t n_sizes;
};

/* Sizes of single pairs, in cards: the mix of the loss model. */
static const struct recipe poisson = {
    .load = 0.95,
    .mean_s = 3600,
    .jobs = 20000,
    .sizes = {{1, 40}, {2, 25}, {4, 25}, {8, 10}},
    .n_sizes = 4,
};
/* Sizes of whole jobs, in pairs: from a workstation's to a few leaves'. */
static const struct recipe mpi = {
    .mpi = true,
    .load = 0.85,
    .mean_s = 3600,
    .jobs = 1000,
    .sizes = {{2, 12},
              {4, 14},
              {8, 20},
              {16, 18},
              {32, 14},
              {64, 10},
              {128, 7},
              {256, 4},
              {512, 1}},
    .n_sizes = 9,
};

static int spec_error(struct error *err, const char *word, size_t size)
{
    return error_set(err, EINVAL,
                     "--generate: has \"%.*s\"; must be mpi or poisson, then "
                     ":NAME=VALUE,… of load (0.01 to 10), jobs (1 to %d), mean "
                     "(1 to 1000000 s) and sizes=N:WEIGHT,N:WEIGHT,…",
                     (int)(size < 64 ? size : 64), word, TRACE_JOBS_MAX);
}

static bool read_number(const char *text, size_t size, double min, double max,
                        double *ret_value)
{
    char copy[32], *end;
    if (size == 0 || size >= sizeof copy)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    double value = strtod(copy, &end);
    if (*end || !(value >= min) || value > max)
        return false;
    *ret_value = value;
    return true;
}

static bool read_size(const char *text, size_t size, struct recipe *r)
{
    const char *colon = memchr(text, ':', size);
    double n, weight, max = r->mpi ? DEMAND_SIZE_MAX : TOPO_CARDS_MAX;
    if (!colon || r->n_sizes == TRACE_SIZES_MAX)
        return false;
    size_t left = (size_t)(colon - text);
    if (!read_number(text, left, 1, max, &n) || n != floor(n) ||
        !read_number(colon + 1, size - left - 1, 1, 1e6, &weight) ||
        weight != floor(weight))
        return false;
    r->sizes[r->n_sizes++] = (struct size_weight){(uint32_t)n,
                                                  (uint32_t)weight};
    return true;
}

static bool starts(const char *text, size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* One "NAME=VALUE", or a further "N:WEIGHT" of sizes. */
static bool read_part(const char *part, size_t size, bool *in_sizes,
                      struct recipe *r)
{
    double jobs = 0;
    if (*in_sizes && !memchr(part, '=', size))
        return read_size(part, size, r);
    *in_sizes = false;
    if (starts(part, size, "load="))
        return read_number(part + 5, size - 5, 0.01, 10, &r->load);
    if (starts(part, size, "mean="))
        return read_number(part + 5, size - 5, 1, 1e6, &r->mean_s);
    if (starts(part, size, "jobs=") &&
        read_number(part + 5, size - 5, 1, TRACE_JOBS_MAX, &jobs)) {
        r->jobs = (int64_t)jobs;
        return jobs == floor(jobs);
    }
    if (!starts(part, size, "sizes="))
        return false;
    *in_sizes = true;
    r->n_sizes = 0;
    return read_size(part + 6, size - 6, r);
}

static int recipe_read(const char *spec, struct recipe *ret_recipe,
                       struct error *err)
{
    size_t name = strcspn(spec, ":");
    bool in_sizes = false;
    if (name == 7 && memcmp(spec, "poisson", name) == 0)
        *ret_recipe = poisson;
    else if (name == 3 && memcmp(spec, "mpi", name) == 0)
        *ret_recipe = mpi;
    else
        return spec_error(err, spec, strlen(spec));
    const char *part = spec + name;
    while (*part) {
        part++; /* ':' or ',' */
        size_t size = strcspn(part, ",");
        if (!read_part(part, size, &in_sizes, ret_recipe))
            return spec_error(err, part, size);
        part += size;
    }
    return 0;
}

/* --- making it ---------------------------------------------------------- */

static uint32_t draw_size(const struct recipe *r, uint64_t *random)
{
    uint32_t total = 0;
    for (size_t i = 0; i < r->n_sizes; i++)
        total += r->sizes[i].weight;
    uint32_t at = random_below(random, total);
    for (size_t i = 0; i + 1 < r->n_sizes; i++) {
        if (at < r->sizes[i].weight)
            return r->sizes[i].size;
        at -= r->sizes[i].weight;
    }
    return r->sizes[r->n_sizes - 1].size;
}

/* Cards of a pair of a whole job: mostly one, sometimes two or four. */
static uint8_t draw_cards(uint64_t *random)
{
    uint32_t at = random_below(random, 10);
    return at < 7 ? 1 : at < 9 ? 2 : 4;
}

int trace_generate(const char *spec, uint64_t seed, uint64_t n_cards,
                   struct trace *t, struct error *err)
{
    struct recipe r;
    int rc = recipe_read(spec, &r, err);
    if (rc < 0)
        return rc;
    uint64_t random = hash_mix(seed + 1, UINT64_C(0xa0761d6478bd642f));
    double cards = 0;
    t->jobs = xcalloc((size_t)r.jobs, sizeof *t->jobs);
    t->n = t->cap = (size_t)r.jobs;
    for (size_t i = 0; i < t->n; i++) {
        struct replay_job *j = &t->jobs[i];
        uint32_t size = draw_size(&r, &random);
        j->pairs = r.mpi ? size : 1;
        j->cards = r.mpi ? draw_cards(&random) : (uint8_t)size;
        j->duration_us =
            (int64_t)(-log(random_unit(&random)) * r.mean_s * 1e6) + 1;
        cards += (double)j->pairs * j->cards;
    }
    /* so that load * n_cards are asked for at any time */
    double gap_us = cards / (double)t->n * r.mean_s * 1e6 /
                    (r.load * (double)n_cards);
    double now = 0;
    for (size_t i = 0; i < t->n; i++) {
        now += -log(random_unit(&random)) * gap_us;
        t->jobs[i].arrival_us = (int64_t)now;
    }
    return 0;
}
