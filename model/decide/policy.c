#include "model/decide/policy.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/json.h"
#include "lib/base/refs.h"

DEFINE_REF(policy_ref, struct policy)

void policy_unref(struct policy *p)
{
    if (!p || !refs_drop(&p->refs))
        return;
    free(p->quotas);
    free(p->services);
    free(p->devices);
    free(p);
}

/* --- patterns ----------------------------------------------------------- */

/* Behind the "]" that ends the set whose "[" is at `p`; NULL: none does. */
static const char *set_end(const char *p)
{
    p++;
    p += *p == '!';
    if (*p == ']') /* first, it stands for itself */
        p++;
    p += strcspn(p, "]");
    return *p ? p + 1 : NULL;
}

static bool set_has(const char *p, const char *end, char c)
{
    bool found = false;
    unsigned char wanted = (unsigned char)c;
    p++;
    bool negated = *p == '!';
    p += negated;
    while (p < end - 1) {
        unsigned char low = (unsigned char)*p, high = low;
        if (p + 2 < end - 1 && p[1] == '-') {
            high = (unsigned char)p[2];
            p += 2;
        }
        found |= low <= wanted && wanted <= high;
        p++;
    }
    return found != negated;
}

/* Behind the one character of `p` (no '*') that matches `c`, or NULL. */
static const char *match_one(const char *p, char c)
{
    const char *end = *p == '[' ? set_end(p) : NULL;
    if (end)
        return set_has(p, end, c) ? end : NULL;
    return *p && (*p == '?' || *p == c) ? p + 1 : NULL;
}

bool policy_glob(const char *pattern, const char *text)
{
    /* only the last '*' can have to take more: no recursion, and no more
     * steps than pattern times text */
    const char *star = NULL, *from = NULL;
    while (*text) {
        const char *next = *pattern == '*' ? NULL : match_one(pattern, *text);
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (next) {
            pattern = next;
            text++;
        } else if (star) {
            pattern = star;
            text = ++from;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool selects(const char *pattern, const char *text)
{
    return !*pattern || policy_glob(pattern, text);
}

bool policy_selects(const struct policy_service *service, const char *node,
                    const struct device *card)
{
    char pci[PCI_ADDR_TEXT_MAX] = "";
    if (!selects(service->nodes, node) ||
        !selects(service->models, card->model))
        return false;
    if (card->has_pci)
        pci_addr_format(&card->pci, pci);
    return selects(service->pci, pci);
}

static bool is_of(const struct policy_service *service,
                  const struct demand *pod)
{
    return pod->role == ROLE_SERVICE && strcmp(service->name, pod->job) == 0 &&
           strcmp(service->namespace, pod->namespace) == 0;
}

bool policy_has_share(const struct policy *p, const struct demand *pod)
{
    for (size_t i = 0; p && i < p->n_services; i++)
        if (is_of(&p->services[i], pod))
            return true;
    return false;
}

const struct policy_service *policy_find_share(const struct policy *p,
                                               const struct demand *service,
                                               const char *node,
                                               const struct device *card)
{
    for (size_t i = 0; p && i < p->n_services; i++) {
        const struct policy_service *s = &p->services[i];
        if (is_of(s, service) && policy_selects(s, node, card))
            return s;
    }
    return NULL;
}

/* --- reading ------------------------------------------------------------ */

static void read_namespace(struct reader *r, char *ret_namespace)
{
    const char *text = reader_string(r, "namespace", DEMAND_NAMESPACE_MAX);
    if (!text)
        return;
    size_t size = strlen(text);
    if (size == 0 ||
        strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") < size ||
        text[0] == '-' || text[size - 1] == '-')
        reader_fail(r, "namespace",
                    "is \"%s\", must be a namespace: a to z, 0 to 9 and -, "
                    "no - at either end",
                    text);
    memcpy(ret_namespace, text, size + 1);
}

static uint64_t read_limit(struct reader *r, const char *name)
{
    int64_t n = reader_opt_int(r, name, 0, INT64_C(1) << 53, -1);
    return n < 0 ? POLICY_UNLIMITED : (uint64_t)n;
}

static int read_quota(const cJSON *json, const char *path,
                      struct policy_quota *quota, struct error *err)
{
    struct reader r;
    reader_init(&r, json, path, err);
    read_namespace(&r, quota->namespace);
    quota->cards = read_limit(&r, "cards");
    quota->cores = read_limit(&r, "cardCores");
    quota->memory_mib = read_limit(&r, "cardMemoryMiB");
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    if (quota->cards == POLICY_UNLIMITED && quota->cores == POLICY_UNLIMITED &&
        quota->memory_mib == POLICY_UNLIMITED)
        return reader_fail(&r, NULL,
                           "must limit at least one of cards, cardCores and "
                           "cardMemoryMiB");
    return 0;
}

static void read_pattern(struct reader *r, const char *name, char *ret_pattern)
{
    const char *text = reader_opt_string(r, name, POLICY_PATTERN_MAX);
    if (!text)
        return;
    for (const char *p = text; *p;) {
        const char *end = *p == '[' ? set_end(p) : p + 1;
        if (!end) {
            reader_fail(r, name,
                        "is \"%s\", must be a pattern: a [ without its ]",
                        text);
            return;
        }
        p = end;
    }
    if (strcmp(text, "*") != 0) /* which is all, as "" is */
        memcpy(ret_pattern, text, strlen(text) + 1);
}

static void lower(char *text)
{
    for (; *text; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
}

static int read_service(const cJSON *json, const char *path,
                        struct policy_service *service, struct error *err)
{
    struct reader r;
    reader_init(&r, json, path, err);
    read_namespace(&r, service->namespace);
    const char *name = reader_string(&r, "name", DEMAND_NAME_MAX);
    if (name && (!*name || strchr(name, '/')))
        reader_fail(&r, "name",
                    "is \"%s\", must be what the pods' label biga.dev/job "
                    "says",
                    name);
    if (name)
        memcpy(service->name, name, strlen(name) + 1);
    read_pattern(&r, "nodes", service->nodes);
    read_pattern(&r, "models", service->models);
    read_pattern(&r, "pci", service->pci);
    lower(service->pci); /* as addresses are written */
    service->cores = (uint32_t)reader_opt_int(&r, "cores", 0, POLICY_CORES_MAX,
                                              0);
    service->memory_mib = (uint32_t)reader_opt_int(&r, "memoryMiB", 0,
                                                   POLICY_MEMORY_MIB_MAX, 0);
    service->priority = (int32_t)reader_opt_int(
        &r, "priority", -POLICY_PRIORITY_MAX, POLICY_PRIORITY_MAX, 0);
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    if (service->cores == 0 && service->memory_mib == 0)
        return reader_fail(&r, NULL,
                           "must have a share: cores, memoryMiB or both");
    return 0;
}

/* --- order and doubles -------------------------------------------------- */

static int compare_quotas(const void *a, const void *b)
{
    const struct policy_quota *x = a, *y = b;
    return strcmp(x->namespace, y->namespace);
}

/* The order of services but for their priority: equal ones say the same
 * thing twice. */
static int compare_selections(const struct policy_service *a,
                              const struct policy_service *b)
{
    int order = strcmp(a->namespace, b->namespace);
    if (order == 0)
        order = strcmp(a->name, b->name);
    if (order == 0)
        order = strcmp(a->nodes, b->nodes);
    if (order == 0)
        order = strcmp(a->models, b->models);
    return order ? order : strcmp(a->pci, b->pci);
}

static int compare_services(const void *a, const void *b)
{
    const struct policy_service *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return compare_selections(x, y);
}

static int read_quotas(struct reader *top, const cJSON *json, struct policy *p)
{
    char path[READER_PATH_MAX];
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        reader_path(top, "quotas", (int)p->n_quotas, path);
        if (read_quota(item, path, &p->quotas[p->n_quotas], top->err) < 0)
            return -EINVAL;
        p->n_quotas++;
    }
    qsort(p->quotas, p->n_quotas, sizeof *p->quotas, compare_quotas);
    for (size_t i = 1; i < p->n_quotas; i++)
        if (strcmp(p->quotas[i].namespace, p->quotas[i - 1].namespace) == 0)
            return reader_fail(top, "quotas",
                               "namespace \"%s\" has more than one quota",
                               p->quotas[i].namespace);
    return 0;
}

static int compare_devices(const void *a, const void *b)
{
    const struct policy_devices *x = a, *y = b;
    return strcmp(x->namespace, y->namespace);
}

static int read_sets(struct reader *r, const cJSON *list,
                     struct policy_devices *d)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, list)
    {
        const char *name = cJSON_GetStringValue(m);
        if (!name || !device_sets_add(&d->sets, name, strlen(name)))
            return reader_fail(r, "sets",
                               "has \"%.48s\", must be at most %d names of "
                               "sets of devices: each 1 to %d of a-z, 0-9 and "
                               "'-', no '-' at an end, together at most %d "
                               "bytes with a space between",
                               name ? name : "no text", DEVICE_SETS_MAX,
                               DEVICE_SET_NAME_MAX, DEVICE_SETS_TEXT_MAX);
    }
    return 0;
}

static int read_devices(struct reader *top, const cJSON *json, struct policy *p)
{
    char path[READER_PATH_MAX];
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        struct reader r;
        struct policy_devices *d = &p->devices[p->n_devices];
        reader_path(top, "devices", (int)p->n_devices, path);
        reader_init(&r, item, path, top->err);
        read_namespace(&r, d->namespace);
        const cJSON *sets = reader_array(&r, "sets", DEVICE_SETS_MAX);
        if (reader_finish_strict(&r) < 0 || read_sets(&r, sets, d) < 0)
            return -EINVAL;
        p->n_devices++;
    }
    qsort(p->devices, p->n_devices, sizeof *p->devices, compare_devices);
    for (size_t i = 1; i < p->n_devices; i++)
        if (compare_devices(&p->devices[i - 1], &p->devices[i]) == 0)
            return reader_fail(top, "devices",
                               "namespace \"%s\" is there more than once",
                               p->devices[i].namespace);
    return 0;
}

static int read_services(struct reader *top, const cJSON *json,
                         struct policy *p)
{
    char path[READER_PATH_MAX];
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        reader_path(top, "services", (int)p->n_services, path);
        struct policy_service *service = &p->services[p->n_services];
        if (read_service(item, path, service, top->err) < 0)
            return -EINVAL;
        for (size_t i = 0; i < p->n_services; i++)
            if (compare_selections(&p->services[i], service) == 0)
                return reader_fail(top, "services",
                                   "[%zu] and [%zu] are both service \"%s/%s\" "
                                   "on the same cards",
                                   i, p->n_services, service->namespace,
                                   service->name);
        p->n_services++;
    }
    qsort(p->services, p->n_services, sizeof *p->services, compare_services);
    return 0;
}

static uint64_t hash_policy(const struct policy *p)
{
    uint64_t h = hash_mix(p->n_quotas + 1, p->n_services + 1);
    /* all are zeroed before they are filled, padding included */
    h = hash_mix(h ^ hash_bytes(p->quotas, p->n_quotas * sizeof *p->quotas),
                 UINT64_C(0x9e3779b97f4a7c15));
    if (p->n_devices) /* a file without them has the hash that it had */
        h = hash_mix(
            h ^ hash_bytes(p->devices, p->n_devices * sizeof *p->devices),
            UINT64_C(0xff51afd7ed558ccd));
    return hash_mix(
        h ^ hash_bytes(p->services, p->n_services * sizeof *p->services),
        UINT64_C(0xd6e8feb86659fd93));
}

static int read_policy(const cJSON *json, struct policy *p, struct error *err)
{
    struct reader r;
    reader_init(&r, json, "", err);
    const cJSON *quotas = reader_opt_array(&r, "quotas", POLICY_QUOTAS_MAX);
    const cJSON *services = reader_opt_array(&r, "services",
                                             POLICY_SERVICES_MAX);
    const cJSON *devices = reader_opt_array(&r, "devices", POLICY_DEVICES_MAX);
    p->devices = xcalloc(devices ? (size_t)cJSON_GetArraySize(devices) + 1 : 1,
                         sizeof *p->devices);
    p->quotas = xcalloc(quotas ? (size_t)cJSON_GetArraySize(quotas) + 1 : 1,
                        sizeof *p->quotas);
    p->services = xcalloc(services ? (size_t)cJSON_GetArraySize(services) + 1
                                   : 1,
                          sizeof *p->services);
    if (reader_finish_strict(&r) < 0 || read_quotas(&r, quotas, p) < 0 ||
        read_devices(&r, devices, p) < 0)
        return -EINVAL;
    return read_services(&r, services, p);
}

int policy_read(const char *text, size_t size, struct policy **ret_policy,
                struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    cleanup_with(policy) struct policy *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    if (size > POLICY_TEXT_MAX)
        return error_set(err, EINVAL, "has %zu bytes, at most %d are allowed",
                         size, POLICY_TEXT_MAX);
    int r = json_parse(text, size, &json, err);
    if (r == 0)
        r = read_policy(json, p, err);
    if (r < 0)
        return r;
    p->hash = hash_policy(p);
    *ret_policy = steal(&p);
    return 0;
}

const struct policy_quota *policy_find_quota(const struct policy *p,
                                             const char *namespace)
{
    size_t low = 0, high = p ? p->n_quotas : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(p->quotas[middle].namespace, namespace);
        if (order == 0)
            return &p->quotas[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *policy_find_devices(const struct policy *p, const char *namespace)
{
    struct policy_devices key = {.namespace = ""};
    (void)snprintf(key.namespace, sizeof key.namespace, "%s", namespace);
    const struct policy_devices *found =
        p ? bsearch(&key, p->devices, p->n_devices, sizeof key, compare_devices)
          : NULL;
    return found ? found->sets.text : "";
}
