/* One pod, ConfigMap or Secret that was applied, read from its JSON. */
#include <string.h>

#include "extender/pods/applied_private.h"
#include "lib/base/base64.h"
#include "lib/base/json.h"
#include "lib/base/refs.h"
#include "model/pod/prepare.h"

enum { KEY_MAX = 253, ENTRIES_MAX = 4096 };

/* --- pods ----------------------------------------------------------------- */

DEFINE_REF(applied_pod_ref, struct applied_pod)

void applied_pod_unref(struct applied_pod *p)
{
    if (!p || !refs_drop(&p->refs))
        return;
    pod_status_unref(p->status);
    pod_status_unref(p->end);
    applied_pod_unref(p->next);
    free(p->namespace);
    free(p->name);
    free(p->json);
    podspec_refs_free(p->sources, p->n_sources);
    free(p->fault);
    free(p);
}

struct applied_pod *applied_pod_copy(const struct applied_pod *p)
{
    struct applied_pod *n = xcalloc(1, sizeof *n);
    const size_t from = offsetof(struct applied_pod, uid); /* refs move */
    memcpy((char *)n + from, (const char *)p + from, sizeof *n - from);
    atomic_init(&n->refs, 1);
    n->namespace = xstrdup(p->namespace);
    n->name = xstrdup(p->name);
    n->json = xstrndup(p->json, p->size);
    n->sources = xcalloc(n->n_sources + 1, sizeof *n->sources);
    for (size_t i = 0; i < n->n_sources; i++)
        n->sources[i] = (struct podspec_ref){p->sources[i].secret,
                                             xstrdup(p->sources[i].name)};
    n->fault = p->fault ? xstrdup(p->fault) : NULL;
    n->status = pod_status_ref(p->status);
    if (n->end)
        (void)pod_status_ref(n->end);
    if (n->next)
        (void)applied_pod_ref(n->next);
    return n;
}

bool applied_pod_same(const struct applied_pod *a, const struct applied_pod *b)
{
    const char *in_a = strstr(a->json, a->uid), *in_b = strstr(b->json, b->uid);
    size_t uid = APPLIED_UID_SIZE - 1;
    if (!in_a || !in_b || a->size != b->size ||
        in_a - a->json != in_b - b->json)
        return false;
    size_t before = (size_t)(in_a - a->json), after = before + uid;
    return memcmp(a->json, b->json, before) == 0 &&
           memcmp(a->json + after, b->json + after, a->size - after) == 0;
}

static int read_demand(const char *json, size_t size,
                       const struct demand_config *config,
                       struct demand *ret_demand, struct error *err)
{
    struct jscan s;
    struct demand d;
    jscan_init(&s, json, size);
    int e = demand_read(&s, config, &d, err);
    if (e < 0) {
        if (err)
            err->code = EINVAL;
        return -EINVAL;
    }
    if (d.role == ROLE_NONE)
        return error_set(err, EINVAL,
                         "metadata.labels[\"biga.dev/role\"]: is absent, must "
                         "be \"host\", \"xpu\" or \"service\"");
    *ret_demand = d;
    return 0;
}

int applied_pod_create(const char *json, size_t size, const char *uid,
                       const struct demand_config *config,
                       struct applied_pod **ret_pod, struct error *err)
{
    cleanup_with(podspec) struct podspec *spec = NULL;
    struct demand demand;
    struct prepare prepare;
    int e = podspec_parse(json, size, "", NULL, &spec, err);
    if (e == 0)
        e = read_demand(json, size, config, &demand, err);
    if (e == 0)
        e = prepare_read(json, size, &prepare, err);
    if (e == -EDOM || e == -EFBIG)
        e = -EINVAL;
    if (e < 0 && err)
        err->code = -e;
    if (e < 0)
        return e;
    if (strcmp(spec->uid, uid) != 0 || strlen(uid) != APPLIED_UID_SIZE - 1)
        return error_set(err, EINVAL, "metadata.uid: is \"%s\", must be \"%s\"",
                         spec->uid, uid);
    struct applied_pod *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    memcpy(p->uid, uid, APPLIED_UID_SIZE);
    p->namespace = steal(&spec->namespace);
    p->name = steal(&spec->name);
    p->json = xstrndup(json, size);
    p->size = size;
    p->sources = steal(&spec->refs);
    p->n_sources = spec->n_refs;
    spec->n_refs = 0;
    p->demand = demand;
    p->grace_s = spec->grace_s;
    p->ended = POD_STATE_PENDING;
    p->status = pod_status_create(0);
    *ret_pod = p;
    return 0;
}

/* A text of at most `max` bytes; NULL: none. */
static const char *foreign_text(const cJSON *metadata, const char *map,
                                const char *key, size_t max)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(metadata, map);
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, key));
    return text && strlen(text) <= max ? text : NULL;
}

/* A whole number, and not more than there may be; 0 of what is none. */
static int32_t foreign_number(const cJSON *metadata, const char *map,
                              const char *key, int32_t max)
{
    const char *text = foreign_text(metadata, map, key, DEMAND_NAME_MAX);
    int32_t n = 0;
    for (; text && *text; text++) {
        if (*text < '0' || *text > '9')
            return 0;
        n = n > max / 10 ? max : n * 10 + (*text - '0');
    }
    return n < max ? n : max;
}

/* Whose it is, at least: the others of its pair or job do not begin without
 * it. */
static void foreign_demand(const struct applied_pod_names *names,
                           const char *json, size_t size,
                           struct demand *ret_demand)
{
    struct demand d = {.role = ROLE_NONE, .size = 1};
    cleanup_with(json) cJSON *tree = NULL;
    struct error ignored;
    memcpy(d.uid, names->uid, APPLIED_UID_SIZE);
    (void)snprintf(d.namespace, sizeof d.namespace, "%s", names->namespace);
    (void)snprintf(d.name, sizeof d.name, "%s", names->name);
    (void)json_parse(json, size, &tree, &ignored); /* NULL has no members */
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
    const char *job = foreign_text(metadata, "labels", "biga.dev/job",
                                   DEMAND_NAME_MAX);
    int32_t n = foreign_number(metadata, "annotations", "biga.dev/size",
                               DEMAND_SIZE_MAX);
    if (job)
        (void)snprintf(d.job, sizeof d.job, "%s", job);
    d.pair = foreign_number(metadata, "labels", "biga.dev/pair",
                            DEMAND_PAIR_MAX);
    d.size = n > 0 ? n : 1;
    *ret_demand = d;
}

struct applied_pod *
applied_pod_create_foreign(const struct applied_pod_names *names,
                           const char *json, size_t size,
                           const struct demand_config *config, const char *why)
{
    struct error ignored; /* `why` says enough */
    struct demand d;
    if (strlen(names->uid) != APPLIED_UID_SIZE - 1 ||
        strlen(names->namespace) > DEMAND_NAMESPACE_MAX ||
        strlen(names->name) > DEMAND_NAME_MAX)
        return NULL;
    if (read_demand(json, size, config, &d, &ignored) < 0 ||
        strcmp(d.uid, names->uid) != 0 || strcmp(d.name, names->name) != 0 ||
        strcmp(d.namespace, names->namespace) != 0)
        foreign_demand(names, json, size, &d);
    struct applied_pod *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    memcpy(p->uid, names->uid, APPLIED_UID_SIZE);
    p->namespace = xstrdup(names->namespace);
    p->name = xstrdup(names->name);
    p->json = xstrndup(json, size);
    p->size = size;
    p->demand = d;
    p->ended = POD_STATE_PENDING;
    p->status = pod_status_create(0);
    p->fault = xstrdup(why);
    return p;
}

/* --- ConfigMaps and Secrets -------------------------------------------------- */

DEFINE_REF(applied_config_ref, struct applied_config)

void applied_config_unref(struct applied_config *c)
{
    if (!c || !refs_drop(&c->refs))
        return;
    for (size_t i = 0; i < c->n_entries; i++) {
        free(c->entries[i].key);
        free(c->entries[i].data);
    }
    free(c->entries);
    free(c->namespace);
    free(c->name);
    free(c->json);
    free(c);
}

static bool is_key(const char *key)
{
    size_t n = strlen(key);
    return n > 0 && n <= KEY_MAX && strcmp(key, ".") != 0 &&
           strncmp(key, "..", 2) != 0 &&
           strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                       "0123456789-._") == n;
}

/* Entries being gathered. */
struct gather {
    struct applied_config *c;
    struct reader *r;
    size_t cap, size; /* bytes of all data together */
};

/* Takes `data` over. */
static int put_entry(struct gather *g, const char *member, const char *key,
                     struct str *data)
{
    struct applied_config *c = g->c;
    struct config_entry entry = {.size = data->size};
    size_t i = 0;
    entry.data = str_steal(data);
    while (i < c->n_entries && strcmp(c->entries[i].key, key) != 0)
        i++;
    if (i < c->n_entries) {
        if (strcmp(member, "stringData") != 0) {
            free(entry.data);
            return reader_fail(g->r, member, "\"%.64s\" is given twice", key);
        }
        g->size -= c->entries[i].size;
        free(c->entries[i].data); /* stringData comes last, and counts */
        c->entries[i].data = entry.data;
        c->entries[i].size = entry.size;
    } else {
        c->entries = xgrow(c->entries, i, &g->cap, sizeof *c->entries);
        entry.key = xstrdup(key);
        c->entries[c->n_entries++] = entry;
    }
    if ((g->size += entry.size) > PODSPEC_FILES_SIZE_MAX)
        return reader_fail(g->r, NULL, "holds more than %d bytes",
                           PODSPEC_FILES_SIZE_MAX);
    return 0;
}

/* The texts of one member, as they are or as base64. */
static int gather_member(struct gather *g, const char *member, bool encoded)
{
    const cJSON *list = reader_opt_object(g->r, member), *m;
    if (list && cJSON_GetArraySize(list) > ENTRIES_MAX)
        return reader_fail(g->r, member, "has more than %d entries",
                           ENTRIES_MAX);
    cJSON_ArrayForEach(m, list)
    {
        /* base64 is decoded by threes, its end too */
        cleanup_str struct str data = STR_INIT(PODSPEC_FILES_SIZE_MAX + 3);
        if (!is_key(m->string))
            return reader_fail(g->r, member,
                               "key \"%.64s\" must be 1 to %d letters, digits, "
                               "'-', '_' and '.', and not begin with \"..\"",
                               m->string, KEY_MAX);
        if (!cJSON_IsString(m))
            return reader_fail(g->r, member, "\"%.64s\" must be a text",
                               m->string);
        bool good = true;
        if (encoded)
            good = base64_decode(m->valuestring, strlen(m->valuestring), &data);
        else
            str_add(&data, m->valuestring);
        if (data.overflow)
            return reader_fail(g->r, member, "\"%.64s\" has more than %d bytes",
                               m->string, PODSPEC_FILES_SIZE_MAX);
        if (!good)
            return reader_fail(g->r, member, "\"%.64s\" is no base64",
                               m->string);
        int e = put_entry(g, member, m->string, &data);
        if (e < 0)
            return e;
    }
    return g->r->failed ? -EINVAL : 0;
}

static int by_key(const void *a, const void *b)
{
    const struct config_entry *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static int read_kind(struct reader *r, bool *ret_secret)
{
    const char *version = reader_string(r, "apiVersion", 253);
    const char *kind = reader_string(r, "kind", 253);
    if (r->failed)
        return -EINVAL;
    *ret_secret = strcmp(kind, "Secret") == 0;
    if (!*ret_secret && strcmp(kind, "ConfigMap") != 0)
        return reader_fail(r, "kind",
                           "is \"%.64s\", must be \"ConfigMap\" or \"Secret\"",
                           kind);
    if (strcmp(version, "v1") != 0)
        return reader_fail(r, "apiVersion", "is \"%.64s\", must be \"v1\"",
                           version);
    return 0;
}

/* The characters of names in Kubernetes; they stand in paths of the API. */
static bool is_name(const char *name)
{
    static const char ends[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strlen(name);
    return n > 0 && strchr(ends, name[0]) && strchr(ends, name[n - 1]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == n;
}

static int read_names(struct reader *r, struct applied_config *c)
{
    struct reader meta;
    const cJSON *json = reader_object(r, "metadata");
    if (!json)
        return -EINVAL;
    reader_init(&meta, json, "metadata", r->err);
    const char *name = reader_string(&meta, "name", 253);
    const char *namespace = reader_opt_string(&meta, "namespace", 63);
    if (meta.failed)
        return -EINVAL;
    if (!namespace || !*namespace)
    namespace = "default";
    if (!is_name(name))
        return reader_fail(&meta, "name",
                           "is \"%.64s\", must be of a-z, 0-9, '-' and '.', a "
                           "letter or digit at both ends",
                           name);
    if (!is_name(namespace) || strchr(namespace, '.'))
        return reader_fail(&meta, "namespace",
                           "is \"%.64s\", must be of a-z, 0-9 and '-', a "
                           "letter or digit at both ends",
                           namespace);
    c->name = xstrdup(name);
    c->namespace = xstrdup(namespace);
    return 0;
}

int applied_config_create(const char *json, size_t size,
                          struct applied_config **ret_config, struct error *err)
{
    cleanup_with(json) cJSON *doc = NULL;
    struct reader r;
    bool secret = false;
    int e = json_parse(json, size, &doc, err);
    if (e < 0)
        return e;
    reader_init(&r, doc, "", err);
    e = r.failed ? -EINVAL : read_kind(&r, &secret);
    if (e < 0)
        return e;
    cleanup_with(applied_config) struct applied_config *c = xcalloc(1,
                                                                    sizeof *c);
    struct gather g = {.c = c, .r = &r};
    atomic_init(&c->refs, 1);
    c->secret = secret;
    e = read_names(&r, c);
    if (e == 0)
        e = gather_member(&g, "data", secret);
    if (e == 0)
        e = secret ? gather_member(&g, "stringData", false)
                   : gather_member(&g, "binaryData", true);
    c->immutable = reader_opt_bool(&r, "immutable", false);
    if (secret)
        (void)reader_opt_string(&r, "type", 253);
    if (e < 0 || reader_finish_strict(&r) < 0)
        return -EINVAL;
    if (c->n_entries)
        qsort(c->entries, c->n_entries, sizeof *c->entries, by_key);
    c->json = xstrndup(json, size);
    c->size = size;
    *ret_config = steal(&c);
    return 0;
}
