#include <errno.h>
#include <strings.h>

#include "bench/replay/cost.h"
#include "lib/base/json.h"

static const char *const tiers[COST_TIERS] = {"node", "leaf", "spine", "core"};

static int read_relation(const cJSON *json, int index, unsigned *seen,
                         struct costs_model *m, struct error *err)
{
    struct reader r;
    enum relation relation = RELATION_SYS;
    char path[READER_PATH_MAX];
    (void)snprintf(path, sizeof path, "relations[%d]", index);
    reader_init(&r, json, path, err);
    const char *name = reader_string(&r, "relation", 16);
    int64_t mb = reader_int(&r, "mb_per_s", 1, 100000000);
    (void)reader_opt_string(&r, "source", 1024);
    int rc = reader_finish_strict(&r);
    if (rc == 0 && relation_parse(name, &relation, err) < 0)
        return error_wrap(err, "%s.relation", path);
    if (rc < 0)
        return rc;
    m->bytes_per_s[relation] = (double)mb * 1e6;
    *seen |= 1u << relation;
    return 0;
}

static int read_tier(const cJSON *json, int index, unsigned *seen,
                     struct costs_model *m, struct error *err)
{
    struct reader r;
    char path[READER_PATH_MAX];
    (void)snprintf(path, sizeof path, "tiers[%d]", index);
    reader_init(&r, json, path, err);
    const char *name = reader_string(&r, "tier", 16);
    int64_t alpha = reader_int(&r, "alpha_ns", 1, 1000000000);
    int64_t percent = reader_int(&r, "percent", 1, 10000);
    (void)reader_opt_string(&r, "source", 1024);
    int rc = reader_finish_strict(&r);
    if (rc < 0)
        return rc;
    for (unsigned t = 0; t < COST_TIERS; t++) {
        if (strcasecmp(name, tiers[t]) != 0)
            continue;
        m->alpha_s[t] = (double)alpha * 1e-9;
        m->factor[t] = (double)percent / 100;
        *seen |= 1u << t;
        return 0;
    }
    return error_set(err, EINVAL,
                     "%s.tier: is \"%s\", must be node, leaf, spine or core",
                     path, name);
}

/* Absent: links are not shared. */
static int read_uplinks(const cJSON *json, struct costs_model *m,
                        struct error *err)
{
    struct reader r;
    if (!json)
        return 0;
    reader_init(&r, json, "uplinks", err);
    int64_t tapered = reader_int(&r, "cards_per_100_links", 1, 1000000);
    int64_t contended = reader_int(&r, "contended_percent", 1, 100);
    (void)reader_opt_string(&r, "source", 1024);
    m->tapered = (double)tapered / 100;
    m->contended = (double)contended / 100;
    return reader_finish_strict(&r);
}

int costs_read(const char *name, const char *text, size_t size,
               struct costs_model *ret_model, struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    struct costs_model m = {0};
    struct reader r;
    unsigned relations = 0, seen_tiers = 0;
    int index = 0;
    const cJSON *x;
    int rc = json_parse(text, size, &json, err);
    if (rc < 0)
        return error_wrap(err, "%s", name);
    reader_init(&r, json, "", err);
    (void)reader_opt_string(&r, "note", 4096);
    const cJSON *list = reader_array(&r, "relations", 64);
    const cJSON *tier_list = reader_array(&r, "tiers", 64);
    const cJSON *uplinks = reader_opt_object(&r, "uplinks");
    rc = reader_finish_strict(&r);
    if (rc == 0)
        rc = read_uplinks(uplinks, &m, err);
    if (rc < 0)
        return error_wrap(err, "%s", name);
    cJSON_ArrayForEach(x, list)
    {
        if (rc == 0)
            rc = read_relation(x, index++, &relations, &m, err);
    }
    index = 0;
    cJSON_ArrayForEach(x, tier_list)
    {
        if (rc == 0)
            rc = read_tier(x, index++, &seen_tiers, &m, err);
    }
    if (rc == 0 && (relations != (1u << RELATION_COUNT) - 1 ||
                    seen_tiers != (1u << COST_TIERS) - 1))
        rc = error_set(err, EINVAL,
                       "must tell of each relation (PIX to SYS) and each tier "
                       "(node, leaf, spine, core)");
    if (rc < 0)
        return error_wrap(err, "%s", name);
    *ret_model = m;
    return 0;
}
