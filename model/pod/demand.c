#include "model/pod/demand.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/fabric/fabric.h"
#include "model/pod/demand_private.h"
#include "model/pod/patience.h"

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

/* --- the parts of a demand ------------------------------------------------ */

static int take_identity(const struct pod *pod, struct demand *d,
                         struct error *err)
{
    int rc = 0;
    if (demand_given(pod, POD_NAME))
        rc = demand_take_name(pod, POD_NAME, d->name, sizeof d->name, err);
    else if (d->role != ROLE_NONE)
        rc = error_set(err, EDOM, "%s: missing", pod_text_path(POD_NAME));
    if (rc == 0 && demand_given(pod, POD_NAMESPACE) &&
        pod->text[POD_NAMESPACE].size > 0)
        rc = demand_take_name(pod, POD_NAMESPACE, d->namespace,
                              sizeof d->namespace, err);
    if (rc == 0 && demand_given(pod, POD_UID) && pod->text[POD_UID].size > 0)
        rc = demand_take_name(pod, POD_UID, d->uid, sizeof d->uid, err);
    if (rc == 0 && d->namespace[0] == '\0')
        memcpy(d->namespace, "default", sizeof "default");
    return rc;
}

static int take_role(const struct pod *pod, struct demand *d, struct error *err)
{
    char role[8] = "";
    if (!demand_given(pod, POD_ROLE))
        return 0;
    bool fits = demand_copy_text(&pod->text[POD_ROLE], role, sizeof role);
    for (enum pod_role r = ROLE_HOST; fits && r <= ROLE_SERVICE; r++)
        if (strcmp(role, pod_role_name(r)) == 0)
            d->role = r;
    if (d->role == ROLE_NONE)
        return demand_fail_text(pod, POD_ROLE,
                                "\"host\", \"xpu\" or \"service\"", err);
    return 0;
}

static int take_shapes(const struct pod *pod, struct demand *d,
                       struct error *err)
{
    char raw[6 * SHAPES_TEXT_MAX + 1], allowed[64];
    struct error wrong;
    const struct jtext *t = &pod->text[POD_SHAPES];
    if (!demand_given(pod, POD_SHAPES))
        return 0;
    size_t size = t->size < sizeof raw ? jtext_decode(t, raw) : sizeof raw;
    bool plain = size <= SHAPES_TEXT_MAX;
    for (size_t i = 0; plain && i < size; i++)
        plain = raw[i] >= ' ' && raw[i] <= '~';
    if (!plain) {
        (void)snprintf(allowed, sizeof allowed,
                       "at most %d printable ASCII characters",
                       SHAPES_TEXT_MAX);
        return demand_fail_text(pod, POD_SHAPES, allowed, err);
    }
    if (shapes_parse(raw, d, &wrong) < 0)
        return error_set(err, EDOM, "%s: %s", pod_text_path(POD_SHAPES),
                         wrong.text);
    return 0;
}

/* --- what is said in several places ------------------------------------- */

/* One of the places that say the same thing. */
struct claim {
    const char *path;
    bool given;
    int64_t value;
};

enum unit { UNIT_NUMBER, UNIT_CPU_MILLI, UNIT_RELATION };

static void format_value(enum unit unit, int64_t value, char text[24])
{
    if (unit == UNIT_RELATION)
        (void)snprintf(text, 24, "%s", relation_name((enum relation)value));
    else
        (void)snprintf(text, 24, "%lld%s", (long long)value,
                       unit == UNIT_CPU_MILLI ? "m" : "");
}

/* Those that are given must be the same; `*value` is left alone when none
 * is. */
static int settle(const struct claim *claims, size_t n, enum unit unit,
                  int64_t *value, struct error *err)
{
    const struct claim *first = NULL;
    char a[24], b[24];
    for (size_t i = 0; i < n; i++) {
        if (!claims[i].given)
            continue;
        if (!first)
            first = &claims[i];
        if (claims[i].value == first->value)
            continue;
        format_value(unit, first->value, a);
        format_value(unit, claims[i].value, b);
        return error_set(err, EDOM,
                         "%s: is %s, but %s: is %s; both must be the same",
                         first->path, a, claims[i].path, b);
    }
    if (first)
        *value = first->value;
    return 0;
}

/* What biga.dev/shapes says of the pod's own pair; services have none. */
static const struct pair_shape *own_shape(const struct demand *d)
{
    return d->role == ROLE_SERVICE ? NULL : shapes_find(d, d->pair);
}

/* `of` names what it says: "gpus". */
static struct claim claim_of_shape(const struct demand *d, const char *of,
                                   int64_t value, char path[96])
{
    (void)snprintf(path, 96, "%s, %s of pair %d", pod_text_path(POD_SHAPES), of,
                   (int)d->pair);
    return (struct claim){path, own_shape(d) != NULL, value};
}

/* What this pod asks of cards: by resources, or by annotations of the same
 * names, as a kube-scheduler that Biga did not configure refuses a pod that
 * requests what no node offers. */
struct own {
    const char *path; /* who says it; in `text` or a literal */
    char text[72];
    int64_t value; /* 0: nothing is said */
};

static int take_own(const struct pod *pod, enum pod_resource resource,
                    enum pod_text which, struct own *own, struct error *err)
{
    char text[32], all[96];
    int64_t stated = 0;
    bool given = demand_given(pod, which);
    (void)snprintf(own->text, sizeof own->text, "resources[\"%s\"]",
                   pod_resource_key(resource));
    (void)snprintf(all, sizeof all, "%s over all containers", own->text);
    if (given && (!demand_copy_text(&pod->text[which], text, sizeof text) ||
                  !pod_parse_quantity(text, strlen(text), &stated)))
        return demand_fail_text(pod, which,
                                "a whole number of at most 4294967295, with "
                                "or without one of k, M, G, Ki, Mi, Gi",
                                err);
    const struct claim claims[] = {
        {pod_text_path(which), given, stated},
        {all, pod->take[resource] > 0, pod->take[resource]}};
    own->path = given ? pod_text_path(which) : own->text;
    own->value = 0;
    return settle(claims, ARRAY_LEN(claims), UNIT_NUMBER, &own->value, err);
}

/* Annotation biga.dev/cards and shape speak of the pair, biga.dev/card of this
 * pod. */
static int match_cards(const struct demand *d, const char *pair_path,
                       int64_t pair_cards, const struct own *own,
                       struct error *err)
{
    bool enough = d->role == ROLE_XPU ? own->value <= pair_cards
                                      : own->value == pair_cards;
    const char *must = d->role == ROLE_XPU ? "at least as many" : "as many";
    if (!pair_cards || !own->value || enough)
        return 0;
    if (own->path != own->text)
        return error_set(err, EDOM, "%s: is \"%d\", but %s is %lld; must be %s",
                         pair_path, (int)pair_cards, own->path,
                         (long long)own->value, must);
    return error_set(err, EDOM,
                     "%s: is \"%d\", but the containers ask for %lld of "
                     "resource biga.dev/card; must be %s",
                     pair_path, (int)pair_cards, (long long)own->value, must);
}

static int take_cards(const struct pod *pod, struct demand *d,
                      struct error *err)
{
    char path[96];
    int32_t stated = 0;
    int64_t pair_cards = 0;
    struct own own;
    const struct pair_shape *shape = own_shape(d);
    int rc = take_own(pod, POD_CARD, POD_OWN_CARDS, &own, err);
    if (rc == 0 && own.value > TOPO_CARDS_MAX)
        rc = error_set(err, EDOM, "%s: is %lld%s, must be at most %d", own.path,
                       (long long)own.value,
                       own.path == own.text ? " over all containers" : "",
                       TOPO_CARDS_MAX);
    if (rc == 0 && demand_given(pod, POD_CARDS))
        rc = demand_take_number(pod, POD_CARDS, TOPO_CARDS_MAX, &stated, err);
    const struct claim claims[] = {
        {pod_text_path(POD_CARDS), stated > 0, stated},
        claim_of_shape(d, "cards", shape ? shape->cards : 0, path)};
    if (rc == 0)
        rc = settle(claims, ARRAY_LEN(claims), UNIT_NUMBER, &pair_cards, err);
    if (rc == 0)
        rc = match_cards(d, claims[stated == 0].path, pair_cards, &own, err);
    if (rc < 0)
        return rc;
    if (own.value == 0)
        own.value = pair_cards ? pair_cards : 1;
    d->cards = (uint8_t)own.value;
    d->pair_cards = (uint8_t)(pair_cards ? pair_cards : own.value);
    return 0;
}

/* An xPU pod takes a part of what its pair's shape says; a host pod says the
 * same, or nothing. */
static int match_card_need(struct demand *d, const struct own own[2],
                           struct error *err)
{
    static const char *const of[] = {"cores", "memory-mib"};
    const struct pair_shape *shape = own_shape(d);
    for (unsigned i = 0; shape && i < ARRAY_LEN(of); i++) {
        char path[96];
        int64_t asks = own[i].value;
        uint32_t says = i ? shape->card_memory_mib : shape->card_cores;
        const struct claim claims[] = {claim_of_shape(d, of[i], says, path),
                                       {own[i].path, d->has_card_need, asks}};
        if (d->role == ROLE_XPU && asks <= says)
            continue;
        int rc = settle(claims, ARRAY_LEN(claims), UNIT_NUMBER, &asks, err);
        if (rc < 0)
            return rc;
    }
    if (shape && d->role == ROLE_HOST) {
        d->card_cores = shape->card_cores;
        d->card_memory_mib = shape->card_memory_mib;
        d->has_card_need = shape->has_card_need;
    }
    return 0;
}

static int take_card_need(const struct pod *pod, struct demand *d,
                          struct error *err)
{
    struct own own[2];
    int rc = take_own(pod, POD_CORES, POD_OWN_CORES, &own[0], err);
    if (rc == 0)
        rc = take_own(pod, POD_MEMORY, POD_OWN_MEMORY, &own[1], err);
    for (unsigned i = 0; rc == 0 && i < ARRAY_LEN(own); i++)
        if (own[i].value > UINT32_MAX) /* a sum: no annotation can be that */
            rc = error_set(err, EDOM, "%s: more than %u over all containers",
                           own[i].path, UINT32_MAX);
    if (rc < 0)
        return rc;
    d->card_cores = (uint32_t)own[0].value;
    d->card_memory_mib = (uint32_t)own[1].value;
    d->has_card_need = d->card_cores || d->card_memory_mib;
    return match_card_need(d, own, err);
}

/* By resources, not only by an annotation. */
static bool asks_for_gpus(const struct pod *pod)
{
    for (unsigned i = POD_GPUS; i < POD_RESOURCE_COUNT; i++)
        if (pod->take[i] > 0)
            return true;
    return false;
}

/* The GPUs of the pair's host pod. */
static int take_gpus(const struct pod *pod, struct demand *d, struct error *err)
{
    char path[96];
    int32_t stated = 0;
    int64_t own = 0, gpus = 0;
    bool given = demand_given(pod, POD_PAIR_GPUS);
    const struct pair_shape *shape = own_shape(d);
    for (unsigned i = POD_GPUS; d->role == ROLE_HOST && i < POD_RESOURCE_COUNT;
         i++)
        own += pod->take[i];
    if (own > UINT8_MAX)
        own = UINT8_MAX;
    int rc = given ? demand_take_number(pod, POD_PAIR_GPUS, TOPO_GPUS_MAX,
                                        &stated, err)
                   : 0;
    const struct claim claims[] = {
        {pod_text_path(POD_PAIR_GPUS), given, stated},
        claim_of_shape(d, "gpus", shape ? shape->gpus : 0, path),
        {"sum of GPU resources over all containers", own > 0, own}};
    if (rc == 0)
        rc = settle(claims, ARRAY_LEN(claims), UNIT_NUMBER, &gpus, err);
    if (rc == 0 && d->role != ROLE_SERVICE)
        d->pair_gpus = (uint8_t)gpus;
    if (rc == 0 && d->role == ROLE_HOST)
        d->gpus = (uint8_t)gpus;
    return rc;
}

/* The compute NICs of the pair's host pod. */
static int take_nics(const struct pod *pod, struct demand *d, struct error *err)
{
    char path[96];
    int32_t stated = 0;
    int64_t nics = 0;
    bool given = demand_given(pod, POD_PAIR_NICS);
    const struct pair_shape *shape = own_shape(d);
    int rc = given ? demand_take_number(pod, POD_PAIR_NICS, TOPO_NICS_MAX,
                                        &stated, err)
                   : 0;
    const struct claim claims[] = {
        {pod_text_path(POD_PAIR_NICS), given, stated},
        claim_of_shape(d, "nics", shape ? shape->nics : 0, path)};
    if (rc == 0)
        rc = settle(claims, ARRAY_LEN(claims), UNIT_NUMBER, &nics, err);
    if (rc == 0 && d->role != ROLE_SERVICE)
        d->pair_nics = (uint8_t)nics;
    if (rc == 0 && d->role == ROLE_HOST)
        d->nics = (uint8_t)nics;
    return rc;
}

/* The CPUs of the pair's host pod. */
static int take_cpus(const struct pod *pod, struct demand *d, struct error *err)
{
    char path[96], text[32];
    int64_t stated = 0, cpus = 0;
    int64_t own = d->role == ROLE_HOST ? pod->take[POD_CPU] : 0;
    bool given = demand_given(pod, POD_PAIR_CPUS);
    const struct pair_shape *shape = own_shape(d);
    if (given &&
        (!demand_copy_text(&pod->text[POD_PAIR_CPUS], text, sizeof text) ||
         !pod_parse_cpus(text, strlen(text), &stated)))
        return demand_fail_text(pod, POD_PAIR_CPUS,
                                "CPUs such as 2, 1.5 or 500m", err);
    if (own > UINT32_MAX)
        return error_set(err, EDOM,
                         "resources[\"cpu\"]: more than %u over all "
                         "containers",
                         UINT32_MAX / 1000);
    const struct claim claims[] = {
        {pod_text_path(POD_PAIR_CPUS), given, stated},
        claim_of_shape(d, "cpus", shape ? shape->cpu_milli : 0, path),
        {"resources[\"cpu\"] over all containers", own > 0, own}};
    int rc = settle(claims, ARRAY_LEN(claims), UNIT_CPU_MILLI, &cpus, err);
    if (rc == 0 && d->role != ROLE_SERVICE)
        d->cpu_milli = (uint32_t)cpus;
    return rc;
}

/* What an annotation says in MiB. */
static int take_mib(const struct pod *pod, enum pod_text which, int64_t *mib,
                    struct error *err)
{
    char text[12];
    bool ok = demand_copy_text(&pod->text[which], text, sizeof text);
    size_t n = ok ? strlen(text) : 0;
    ok = n > 0 && strspn(text, "0123456789") == n && (text[0] != '0' || n == 1);
    if (!ok || !pod_parse_quantity(text, n, mib))
        return demand_fail_text(pod, which,
                                "a whole number from 0 to 4294967295", err);
    return 0;
}

/* The memory of the pair's host pod.  Shapes need not speak of it: then it is
 * counted once the pod is there, and not before. */
static int take_memory(const struct pod *pod, struct demand *d,
                       struct error *err)
{
    char path[96];
    int64_t stated = 0, mib = 0;
    int64_t own = d->role == ROLE_HOST ? pod->take[POD_HOST_MEMORY] : 0;
    bool given = demand_given(pod, POD_PAIR_MEMORY);
    const struct pair_shape *shape = own_shape(d);
    uint32_t says = shape ? shape->memory_mib : 0;
    int rc = given ? take_mib(pod, POD_PAIR_MEMORY, &stated, err) : 0;
    own = own / 1024 + (own % 1024 != 0);
    if (rc == 0 && own > UINT32_MAX)
        rc = error_set(err, EDOM,
                       "resources[\"memory\"]: more than %uMi over all "
                       "containers",
                       UINT32_MAX);
    struct claim claims[] = {
        {pod_text_path(POD_PAIR_MEMORY), given, stated},
        claim_of_shape(d, "host-memory-mib", says, path),
        {"resources[\"memory\"] over all containers, in MiB", own > 0, own}};
    claims[1].given &= says > 0;
    if (rc == 0)
        rc = settle(claims, ARRAY_LEN(claims), UNIT_NUMBER, &mib, err);
    if (rc == 0 && d->role != ROLE_SERVICE)
        d->memory_mib = (uint32_t)mib;
    return rc;
}

/* --- wishes ------------------------------------------------------------- */

/* `*relation` is left alone when nothing is said. */
static int take_relation(const struct pod *pod, enum pod_text which,
                         enum relation *relation, struct error *err)
{
    char text[16];
    if (!demand_given(pod, which) ||
        (demand_copy_text(&pod->text[which], text, sizeof text) &&
         relation_parse(text, relation, NULL) == 0))
        return 0;
    return demand_fail_text(
        pod, which,
        "\"pix\", \"pxb\", \"phb\", \"node\", \"socket\" or "
        "\"sys\"",
        err);
}

static int take_alignment(const struct pod *pod, struct demand *d,
                          struct error *err)
{
    char path[96];
    enum relation stated = RELATION_SYS, prefer = RELATION_PIX;
    int64_t align = RELATION_SYS;
    const struct pair_shape *shape = own_shape(d);
    int rc = take_relation(pod, POD_ALIGN, &stated, err);
    const struct claim claims[] = {
        {pod_text_path(POD_ALIGN), demand_given(pod, POD_ALIGN), stated},
        claim_of_shape(d, "align", shape ? shape->align : RELATION_SYS, path)};
    if (rc == 0)
        rc = settle(claims, ARRAY_LEN(claims), UNIT_RELATION, &align, err);
    if (rc == 0)
        rc = take_relation(pod, POD_PREFER_ALIGN, &prefer, err);
    d->align = (uint8_t)align;
    d->prefer_align = (uint8_t)prefer;
    return rc;
}

/* `*tier` is left alone when nothing is said. */
static int take_tier(const struct pod *pod, enum pod_text which, int8_t *tier,
                     struct error *err)
{
    char text[16], allowed[80];
    if (!demand_given(pod, which))
        return 0;
    int value = demand_copy_text(&pod->text[which], text, sizeof text)
                    ? fabric_tier_parse(text, NULL)
                    : -1;
    if (value >= 0) {
        *tier = (int8_t)value;
        return 0;
    }
    (void)snprintf(allowed, sizeof allowed,
                   "\"leaf\", \"spine\", \"core\" or \"tier-N\" with N from "
                   "0 to %d",
                   FABRIC_TIERS_MAX - 1);
    return demand_fail_text(pod, which, allowed, err);
}

/* It decides no place: kube_pod.c keeps it. */
static int check_patience(const struct pod *pod, struct error *err)
{
    int64_t ignored;
    char text[32];
    if (!demand_given(pod, POD_CARD_LOST) ||
        (demand_copy_text(&pod->text[POD_CARD_LOST], text, sizeof text) &&
         patience_parse(text, &ignored)))
        return 0;
    return demand_fail_text(
        pod, POD_CARD_LOST,
        "seconds, a time such as \"5m\" or \"1h30m\" of at most "
        "8784h, or \"never\"",
        err);
}

static int take_devices(const struct pod *pod, struct demand *d,
                        struct error *err)
{
    enum { SIZE = 2 * DEVICE_SETS_TEXT_MAX }; /* with spaces beside ',' */
    char text[SIZE + 1];
    struct error why;
    struct device_sets sets;
    if (!demand_given(pod, POD_DEVICES))
        return 0;
    if (!demand_copy_text(&pod->text[POD_DEVICES], text, sizeof text))
        return demand_fail_text(pod, POD_DEVICES,
                                "names of sets with ',' between, of at most "
                                "128 bytes",
                                err);
    if (device_sets_parse(text, ',', &sets, &why) < 0)
        return error_set(err, EDOM, "%s: %s", pod_text_path(POD_DEVICES),
                         why.text);
    memcpy(d->devices.text, sets.text, strlen(sets.text));
    return 0;
}

static int take_wishes(const struct pod *pod, struct demand *d,
                       struct error *err)
{
    char text[DEMAND_ARCH_MAX + 1];
    if (demand_given(pod, POD_EXCLUSIVE)) {
        bool fits = demand_copy_text(&pod->text[POD_EXCLUSIVE], text,
                                     sizeof text);
        d->exclusive = fits && strcmp(text, "true") == 0;
        if (!d->exclusive && (!fits || strcmp(text, "false") != 0))
            return demand_fail_text(pod, POD_EXCLUSIVE, "\"true\" or \"false\"",
                                    err);
    }
    if (demand_given(pod, POD_ARCH)) {
        bool ok = demand_copy_text(&pod->text[POD_ARCH], text, sizeof text) &&
                  demand_is_name(text);
        if (!ok)
            return demand_fail_text(
                pod, POD_ARCH,
                "an architecture such as \"arm64\", of at most "
                "15 letters, digits, '-', '_' or '.'",
                err);
        memcpy(d->arch, text, strlen(text) + 1);
    }
    int rc = take_devices(pod, d, err);
    return rc < 0 ? rc : check_patience(pod, err);
}

/* All of the demand but the role, which is known. */
static int take_demand(const struct pod *pod, struct demand *d,
                       struct error *err)
{
    int rc = take_identity(pod, d, err);
    if (rc < 0)
        return rc;
    d->priority = pod->priority;
    d->rights = d->role == ROLE_HOST ? 0 : pod->rights;
    if (pod->bad.code)
        return error_set(err, EDOM, "%s", pod->bad.text);
    if ((rc = demand_take_job(pod, d, err)) < 0 ||
        (rc = take_shapes(pod, d, err)) < 0 ||
        (rc = take_cards(pod, d, err)) < 0 ||
        (rc = take_card_need(pod, d, err)) < 0 ||
        (rc = take_gpus(pod, d, err)) < 0 ||
        (rc = take_nics(pod, d, err)) < 0 ||
        (rc = take_cpus(pod, d, err)) < 0 ||
        (rc = take_memory(pod, d, err)) < 0 ||
        (rc = take_alignment(pod, d, err)) < 0 ||
        (rc = take_tier(pod, POD_WITHIN, &d->within, err)) < 0 ||
        (rc = take_tier(pod, POD_PREFER_WITHIN, &d->prefer_within, err)) < 0)
        return rc;
    return take_wishes(pod, d, err);
}

int demand_read(struct jscan *s, const struct demand_config *config,
                struct demand *ret_demand, struct error *err)
{
    struct pod pod;
    struct demand d;
    int rc = pod_read(s, config->gpu_resources, config->n_gpu_resources, &pod,
                      err);
    if (rc < 0)
        return rc;
    memset(&d, 0, sizeof d); /* demands compare and store as bytes */
    d.within = d.prefer_within = DEMAND_ANYWHERE;
    rc = take_role(&pod, &d, err);
    if (rc == 0 && d.role != ROLE_NONE)
        rc = take_demand(&pod, &d, err);
    d.gpus_by_plugin = config->device_plugins && d.gpus > 0 &&
                       asks_for_gpus(&pod);
    d.every_gpu = d.gpus_by_plugin && config->every_gpu;
    if (rc < 0) {
        memset(&d, 0, sizeof d);
        d.within = d.prefer_within = DEMAND_ANYWHERE;
    }
    if (d.role == ROLE_NONE)
        (void)take_identity(&pod, &d, NULL); /* to name it, if it is sound */
    *ret_demand = d;
    return rc;
}

static char *put_text(char *to, const char *text)
{
    size_t size = strlen(text);
    memcpy(to, text, size);
    return to + size;
}

/* There is room for the longest of each part.  Not formatted: a large job has
 * a key for each of its pairs. */
void demand_pair_key(const struct demand *demand,
                     char ret_key[DEMAND_PAIR_KEY_MAX])
{
    bool member = demand->job[0] && demand->role != ROLE_SERVICE;
    char *to = put_text(ret_key, demand->namespace);
    *to++ = '/';
    to = put_text(to, member ? demand->job : demand->name);
    if (member) {
        *to++ = '/';
        to += str_digits((uint32_t)demand->pair, to);
    }
    *to = '\0';
}
