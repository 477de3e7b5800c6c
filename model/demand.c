#include "model/demand.h"

#include <string.h>

#include "model/base/mem.h"
#include "model/pod.h"

enum {
    RAW_MAX = 6 * DEMAND_NAME_MAX, /* every character an escape */
    SHOWN_MAX = 48, /* bytes of a wrong value that an error repeats */
};

const char *pod_role_name(enum pod_role role)
{
    static const char *const names[] = {"", "host", "xpu", "service"};
    return (unsigned)role < ARRAY_LEN(names) ? names[role] : "";
}

void demand_config_default(struct demand_config *config)
{
    static const char *const names[] = {"nvidia.com/gpu", "amd.com/gpu"};
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        memcpy(config->gpu_resources[i], names[i], strlen(names[i]) + 1);
    config->n_gpu_resources = ARRAY_LEN(names);
}

/* --- one text ------------------------------------------------------------ */

static int fail_text(const struct pod *pod, enum pod_text which,
                     const char *allowed, struct error *err)
{
    const struct jtext *t = &pod->text[which];
    size_t shown = t->size < SHOWN_MAX ? t->size : SHOWN_MAX;
    while (shown < t->size && shown > 0 && (t->data[shown] & 0xc0) == 0x80)
        shown--; /* not within a character */
    return error_set(err, EDOM, "%s: is \"%.*s%s\", must be %s",
                     pod_text_path(which), (int)shown, t->data,
                     shown < t->size ? "…" : "", allowed);
}

static bool is_given(const struct pod *pod, enum pod_text which)
{
    return pod->text[which].data != NULL;
}

/* The decoded text into `dst`; false when it has no room. */
static bool copy_text(const struct jtext *t, char *dst, size_t dst_size)
{
    char raw[RAW_MAX + 1];
    if (t->size > RAW_MAX)
        return false;
    size_t size = jtext_decode(t, raw);
    if (size >= dst_size)
        return false;
    memcpy(dst, raw, size + 1);
    return true;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

/* The charset of object names and label values alike. */
static bool is_name(const char *text)
{
    size_t n = strlen(text);
    if (n == 0 || !is_alnum(text[0]) || !is_alnum(text[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_alnum(text[i]) && !strchr("-_.", text[i]))
            return false;
    return true;
}

/* A name of at most dst_size - 1 bytes. */
static int take_name(const struct pod *pod, enum pod_text which, char *dst,
                     size_t dst_size, struct error *err)
{
    char name[DEMAND_NAME_MAX + 1], allowed[96];
    if (copy_text(&pod->text[which], name, dst_size) && is_name(name)) {
        memcpy(dst, name, strlen(name) + 1);
        return 0;
    }
    (void)snprintf(allowed, sizeof allowed,
                   "1 to %zu letters, digits, '-', '_' or '.', the first and "
                   "last a letter or digit",
                   dst_size - 1);
    return fail_text(pod, which, allowed, err);
}

/* A whole number min … max, without sign or leading zeros. */
static int take_number(const struct pod *pod, enum pod_text which, int32_t max,
                       int32_t *value, struct error *err)
{
    int32_t min = which == POD_SIZE || which == POD_CARDS;
    char text[12], allowed[64];
    int64_t parsed = 0;
    bool ok = copy_text(&pod->text[which], text, sizeof text) &&
              text[0] != '\0' && (text[0] != '0' || text[1] == '\0');
    for (const char *p = text; ok && *p; p++) {
        ok = *p >= '0' && *p <= '9';
        parsed = parsed * 10 + (*p - '0');
    }
    if (ok && parsed >= min && parsed <= max) {
        *value = (int32_t)parsed;
        return 0;
    }
    (void)snprintf(allowed, sizeof allowed, "a whole number from %d to %d",
                   (int)min, (int)max);
    return fail_text(pod, which, allowed, err);
}

/* --- the parts of a demand ------------------------------------------------ */

static int take_identity(const struct pod *pod, struct demand *d,
                         struct error *err)
{
    int rc = 0;
    if (is_given(pod, POD_NAME))
        rc = take_name(pod, POD_NAME, d->name, sizeof d->name, err);
    else if (d->role != ROLE_NONE)
        rc = error_set(err, EDOM, "%s: missing", pod_text_path(POD_NAME));
    if (rc == 0 && is_given(pod, POD_NAMESPACE) &&
        pod->text[POD_NAMESPACE].size > 0)
        rc = take_name(pod, POD_NAMESPACE, d->namespace, sizeof d->namespace,
                       err);
    if (rc == 0 && is_given(pod, POD_UID) && pod->text[POD_UID].size > 0)
        rc = take_name(pod, POD_UID, d->uid, sizeof d->uid, err);
    if (rc == 0 && d->namespace[0] == '\0')
        memcpy(d->namespace, "default", sizeof "default");
    return rc;
}

static int take_role(const struct pod *pod, struct demand *d, struct error *err)
{
    char role[8] = "";
    if (!is_given(pod, POD_ROLE))
        return 0;
    bool fits = copy_text(&pod->text[POD_ROLE], role, sizeof role);
    for (enum pod_role r = ROLE_HOST; fits && r <= ROLE_SERVICE; r++)
        if (strcmp(role, pod_role_name(r)) == 0)
            d->role = r;
    if (d->role == ROLE_NONE)
        return fail_text(pod, POD_ROLE, "\"host\", \"xpu\" or \"service\"",
                         err);
    return 0;
}

static int take_job(const struct pod *pod, struct demand *d, struct error *err)
{
    static const enum pod_text jobs[] = {POD_JOB, POD_GROUP, POD_JOB_NAME};
    static const enum pod_text pairs[] = {POD_PAIR, POD_INDEX_ANNOTATION,
                                          POD_INDEX_LABEL};
    int rc = 0;
    d->size = 1;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        if (is_given(pod, jobs[i])) {
            rc = take_name(pod, jobs[i], d->job, sizeof d->job, err);
            break;
        }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(pairs); i++)
        if (is_given(pod, pairs[i])) {
            rc = take_number(pod, pairs[i], DEMAND_PAIR_MAX, &d->pair, err);
            break;
        }
    if (rc == 0 && is_given(pod, POD_SIZE))
        rc = take_number(pod, POD_SIZE, DEMAND_SIZE_MAX, &d->size, err);
    return rc;
}

/* The annotation speaks of the pair, the resource of this pod. */
static int take_cards(const struct pod *pod, struct demand *d,
                      struct error *err)
{
    int32_t pair_cards = 0;
    int64_t own = pod->take[POD_CARD];
    if (own > TOPO_CARDS_MAX)
        return error_set(err, EDOM,
                         "resources[\"biga.dev/card\"]: is %lld over all "
                         "containers, must be at most %d",
                         (long long)own, TOPO_CARDS_MAX);
    if (is_given(pod, POD_CARDS)) {
        int rc = take_number(pod, POD_CARDS, TOPO_CARDS_MAX, &pair_cards, err);
        if (rc < 0)
            return rc;
        if (own > pair_cards ||
            (own && own < pair_cards && d->role != ROLE_XPU))
            return error_set(
                err, EDOM,
                "%s: is \"%d\", but the containers ask for %lld "
                "of resource biga.dev/card; must be %s",
                pod_text_path(POD_CARDS), (int)pair_cards, (long long)own,
                d->role == ROLE_XPU ? "at least as many" : "as many");
    }
    if (own == 0)
        own = pair_cards ? pair_cards : 1;
    d->cards = (uint8_t)own;
    d->pair_cards = (uint8_t)(pair_cards ? pair_cards : own);
    return 0;
}

static int take_card_need(const struct pod *pod, struct demand *d,
                          struct error *err)
{
    if (pod->take[POD_CORES] > UINT32_MAX || pod->take[POD_MEMORY] > UINT32_MAX)
        return error_set(err, EDOM,
                         "resources[\"biga.dev/%s\"]: more than %u over all "
                         "containers",
                         pod->take[POD_CORES] > UINT32_MAX ? "card-cores"
                                                           : "card-memory-mib",
                         UINT32_MAX);
    d->card_cores = (uint32_t)pod->take[POD_CORES];
    d->card_memory_mib = (uint32_t)pod->take[POD_MEMORY];
    d->has_card_need = d->card_cores || d->card_memory_mib;
    if (d->role == ROLE_HOST) {
        int64_t gpus = 0;
        for (unsigned i = POD_GPUS; i < POD_RESOURCE_COUNT; i++)
            gpus += pod->take[i];
        d->gpus = (uint8_t)(gpus < UINT8_MAX ? gpus : UINT8_MAX);
        d->pair_gpus = d->gpus;
    }
    return 0;
}

static int take_wishes(const struct pod *pod, struct demand *d,
                       struct error *err)
{
    char text[DEMAND_ARCH_MAX + 1];
    enum relation align = RELATION_SYS;
    if (is_given(pod, POD_ALIGN) &&
        (!copy_text(&pod->text[POD_ALIGN], text, sizeof text) ||
         relation_parse(text, &align, NULL) < 0))
        return fail_text(pod, POD_ALIGN,
                         "\"pix\", \"pxb\", \"phb\", \"node\", \"socket\" or "
                         "\"sys\"",
                         err);
    d->align = (uint8_t)align;
    if (is_given(pod, POD_EXCLUSIVE)) {
        bool fits = copy_text(&pod->text[POD_EXCLUSIVE], text, sizeof text);
        d->exclusive = fits && strcmp(text, "true") == 0;
        if (!d->exclusive && (!fits || strcmp(text, "false") != 0))
            return fail_text(pod, POD_EXCLUSIVE, "\"true\" or \"false\"", err);
    }
    if (is_given(pod, POD_ARCH)) {
        bool ok = copy_text(&pod->text[POD_ARCH], text, sizeof text) &&
                  is_name(text);
        if (!ok)
            return fail_text(pod, POD_ARCH,
                             "an architecture such as \"arm64\", of at most "
                             "15 letters, digits, '-', '_' or '.'",
                             err);
        memcpy(d->arch, text, strlen(text) + 1);
    }
    return 0;
}

/* All of the demand but the role, which is known. */
static int take_demand(const struct pod *pod, struct demand *d,
                       struct error *err)
{
    int rc = take_identity(pod, d, err);
    if (rc < 0)
        return rc;
    d->priority = pod->priority;
    if (pod->bad.code)
        return error_set(err, EDOM, "%s", pod->bad.text);
    rc = take_job(pod, d, err);
    if (rc == 0)
        rc = take_cards(pod, d, err);
    if (rc == 0)
        rc = take_card_need(pod, d, err);
    if (rc == 0)
        rc = take_wishes(pod, d, err);
    return rc;
}

int demand_read(struct jscan *s, const struct demand_config *config,
                struct demand *ret_demand, struct error *err)
{
    struct pod pod;
    struct demand d;
    int rc = pod_read(s, config, &pod, err);
    if (rc < 0)
        return rc;
    memset(&d, 0, sizeof d); /* demands compare and store as bytes */
    d.within = d.prefer_within = DEMAND_ANYWHERE;
    rc = take_role(&pod, &d, err);
    if (rc == 0 && d.role != ROLE_NONE)
        rc = take_demand(&pod, &d, err);
    if (rc < 0) {
        memset(&d, 0, sizeof d);
        d.within = d.prefer_within = DEMAND_ANYWHERE;
    }
    if (d.role == ROLE_NONE)
        (void)take_identity(&pod, &d, NULL); /* to name it, if it is sound */
    *ret_demand = d;
    return rc;
}

void demand_pair_key(const struct demand *demand,
                     char ret_key[DEMAND_PAIR_KEY_MAX])
{
    if (demand->job[0] && demand->role != ROLE_SERVICE)
        (void)snprintf(ret_key, DEMAND_PAIR_KEY_MAX, "%s/%s/%d",
                       demand->namespace, demand->job, (int)demand->pair);
    else
        (void)snprintf(ret_key, DEMAND_PAIR_KEY_MAX, "%s/%s", demand->namespace,
                       demand->name);
}

/* --- pairs of a job ------------------------------------------------------- */

static const struct pair_shape *shape_of_rank(const struct demand *pod,
                                              int32_t rank)
{
    for (unsigned i = 0; i < pod->n_shapes; i++)
        if (rank >= pod->shapes[i].first && rank <= pod->shapes[i].last)
            return &pod->shapes[i];
    return NULL;
}

void demand_pair(const struct demand *pod, int32_t rank,
                 struct demand *ret_pair)
{
    struct demand pair = *pod;
    const struct pair_shape *shape = shape_of_rank(pod, rank);
    pair.role = ROLE_HOST;
    pair.pair = rank;
    pair.cards = pair.pair_cards = pod->pair_cards;
    pair.gpus = pair.pair_gpus = pod->pair_gpus;
    if (shape && rank != pod->pair) {
        pair.cards = pair.pair_cards = shape->cards;
        pair.gpus = pair.pair_gpus = shape->gpus;
        pair.align = shape->align;
        pair.has_card_need = shape->has_card_need;
        pair.card_cores = shape->card_cores;
        pair.card_memory_mib = shape->card_memory_mib;
        pair.cpu_milli = shape->cpu_milli;
    }
    *ret_pair = pair;
}

bool demand_is_planned(const struct demand *pod)
{
    if (pod->role != ROLE_HOST && pod->role != ROLE_XPU)
        return false;
    return (pod->job[0] && pod->size > 1) || pod->cards != pod->pair_cards ||
           pod->gpus != pod->pair_gpus;
}
