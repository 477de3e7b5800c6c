#include "extender/view/policy_view.h"

#include <inttypes.h>
#include <string.h>

#include "extender/state/scope.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/table.h"

/* --- shares of all nodes ------------------------------------------------ */

struct lacking {
    const struct node *node;
    uint8_t card;
    enum share_state state;
};

/* Where one entry of the policy has its share. */
struct where {
    size_t counts[SHARE_STATES];
    struct lacking lacking[POLICY_LACKING_MAX];
    size_t n_lacking;
};

struct walk {
    const struct policy *policy;
    const struct node *node;
    struct where *where; /* by entry */
};

static void visit_share(void *ctx, const struct usage_share *share)
{
    struct walk *walk = ctx;
    struct where *w = &walk->where[share->service - walk->policy->services];
    w->counts[share->state]++;
    if (share->state != SHARE_HELD && w->n_lacking < POLICY_LACKING_MAX)
        w->lacking[w->n_lacking++] = (struct lacking){walk->node, share->card,
                                                      share->state};
}

/* By entry of the policy, in the caller's array; NULL without a policy. */
static struct where *find_shares(const struct snapshot *s)
{
    if (!s->policy)
        return NULL;
    struct walk walk = {.policy = s->policy};
    walk.where = xcalloc(s->policy->n_services + 1, sizeof *walk.where);
    for (size_t i = 0; i < s->n_nodes && s->policy->n_services; i++) {
        struct usage usage;
        walk.node = snapshot_node(s, i);
        if (!walk.node->topo)
            continue;
        node_usage(walk.node, s->policy, &usage);
        usage_each_share(&usage, visit_share, &walk);
    }
    return walk.where;
}

/* --- JSON --------------------------------------------------------------- */

static void add_limit(struct str *out, const char *key, uint64_t used,
                      uint64_t limit)
{
    jwrite_object(out, key);
    jwrite_uint(out, "used", used);
    if (limit == POLICY_UNLIMITED)
        jwrite_null(out, "limit");
    else
        jwrite_uint(out, "limit", limit);
    jwrite_end_object(out);
}

static void add_quota(const struct snapshot *s, const struct policy_quota *q,
                      struct str *out)
{
    struct namespace_use use;
    snapshot_quota_use(s, q->namespace, &use);
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", q->namespace);
    add_limit(out, "cards", use.cards, q->cards);
    add_limit(out, "cardCores", use.cores, q->cores);
    add_limit(out, "cardMemoryMiB", use.memory_mib, q->memory_mib);
    jwrite_end_object(out);
}

static const char *card_id(const struct node *node, unsigned card)
{
    size_t first = 0;
    (void)topo_count(node->topo, DEVICE_CARD, &first);
    return topo_device(node->topo, first + card)->id;
}

static const char *pattern_text(const char *pattern)
{
    return *pattern ? pattern : "*";
}

static void add_service(const struct policy_service *service,
                        const struct where *where, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", service->namespace);
    jwrite_text(out, "name", service->name);
    jwrite_text(out, "nodes", pattern_text(service->nodes));
    jwrite_text(out, "models", pattern_text(service->models));
    jwrite_text(out, "pci", pattern_text(service->pci));
    jwrite_uint(out, "cores", service->cores);
    jwrite_uint(out, "memoryMiB", service->memory_mib);
    jwrite_int(out, "priority", service->priority);
    jwrite_object(out, "shares");
    for (size_t i = 0; i < SHARE_STATES; i++)
        jwrite_uint(out, share_state_name((enum share_state)i),
                    where->counts[i]);
    jwrite_end_object(out);
    jwrite_array(out, "lacking");
    for (size_t i = 0; i < where->n_lacking; i++) {
        const struct lacking *l = &where->lacking[i];
        jwrite_object(out, NULL);
        jwrite_text(out, "node", l->node->name);
        jwrite_text(out, "card", card_id(l->node, l->card));
        jwrite_text(out, "state", share_state_name(l->state));
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
}

static void add_devices(const struct policy_devices *d, struct str *out)
{
    char name[DEVICE_SET_NAME_MAX + 1];
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", d->namespace);
    jwrite_array(out, "sets");
    for (const char *at = d->sets.text; *at;) {
        at = device_sets_next(at, name);
        jwrite_text(out, NULL, name);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
}

void policy_view(const struct snapshot *s, struct str *out)
{
    const struct policy *p = s->policy;
    cleanup_free struct where *where = find_shares(s);
    char hash[17] = "";
    if (p)
        (void)snprintf(hash, sizeof hash, "%016" PRIx64, p->hash);
    jwrite_text_or_null(out, "hash", p ? hash : NULL);
    jwrite_array(out, "quotas");
    for (size_t i = 0, n = 0; p && i < p->n_quotas; i++) {
        if (!scope_sees(s->scope, p->quotas[i].namespace))
            continue;
        if (n++)
            str_add(out, ",\n");
        add_quota(s, &p->quotas[i], out);
    }
    jwrite_end_array(out);
    jwrite_array(out, "services");
    for (size_t i = 0; p && i < p->n_services; i++) {
        if (i)
            str_add(out, ",\n");
        add_service(&p->services[i], &where[i], out);
    }
    jwrite_end_array(out);
    jwrite_array(out, "devices");
    for (size_t i = 0, n = 0; p && i < p->n_devices; i++) {
        if (!scope_sees(s->scope, p->devices[i].namespace))
            continue;
        if (n++)
            str_add(out, ",\n");
        add_devices(&p->devices[i], out);
    }
    str_add_c(out, ']');
}

void policy_view_card(const struct node *node, const struct policy *policy,
                      size_t card, struct str *out)
{
    struct usage_share shares[POLICY_SERVICES_MAX];
    struct usage usage;
    size_t n = 0;
    if (policy && policy->n_services && node->topo) {
        node_usage(node, policy, &usage);
        n = usage_shares(&usage, (unsigned)card, shares);
    }
    jwrite_array(out, NULL);
    for (size_t i = 0; i < n; i++) {
        const struct policy_service *service = shares[i].service;
        jwrite_object(out, NULL);
        jwrite_text(out, "namespace", service->namespace);
        jwrite_text(out, "name", service->name);
        jwrite_uint(out, "cores", service->cores);
        jwrite_uint(out, "memoryMiB", service->memory_mib);
        jwrite_text(out, "state", share_state_name(shares[i].state));
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

/* --- tables ------------------------------------------------------------- */

static void add_cell(struct table *t, uint64_t used, uint64_t limit)
{
    if (limit == POLICY_UNLIMITED)
        table_addf(t, "%" PRIu64, used);
    else
        table_addf(t, "%" PRIu64 "/%" PRIu64, used, limit);
}

static void write_quotas(const struct snapshot *s, struct str *out)
{
    static const char *const heads[] = {"NAMESPACE", "CARDS", "CORES",
                                        "MEMORY-MIB", NULL};
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < s->policy->n_quotas; i++) {
        const struct policy_quota *q = &s->policy->quotas[i];
        struct namespace_use use;
        if (!scope_sees(s->scope, q->namespace))
            continue;
        snapshot_quota_use(s, q->namespace, &use);
        table_add(&t, q->namespace);
        add_cell(&t, use.cards, q->cards);
        add_cell(&t, use.cores, q->cores);
        add_cell(&t, use.memory_mib, q->memory_mib);
    }
    table_write_text(&t, out);
    table_fini(&t);
}

static void write_services(const struct snapshot *s, struct str *out)
{
    static const char *const heads[] = {
        "SERVICE",  "NODES", "MODELS", "PCI",   "CORES", "MEMORY-MIB",
        "PRIORITY", "HELD",  "SHORT",  "NEVER", NULL};
    cleanup_free struct where *where = find_shares(s);
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < s->policy->n_services; i++) {
        const struct policy_service *service = &s->policy->services[i];
        table_addf(&t, "%s/%s", service->namespace, service->name);
        table_add(&t, pattern_text(service->nodes));
        table_add(&t, pattern_text(service->models));
        table_add(&t, pattern_text(service->pci));
        table_addf(&t, "%" PRIu32, service->cores);
        table_addf(&t, "%" PRIu32, service->memory_mib);
        table_addf(&t, "%" PRId32, service->priority);
        for (size_t state = 0; state < SHARE_STATES; state++)
            table_addf(&t, "%zu", where[i].counts[state]);
    }
    table_write_text(&t, out);
    table_fini(&t);
}

static void write_devices(const struct snapshot *s, struct str *out)
{
    const struct policy *p = s->policy;
    static const char *const heads[] = {"NAMESPACE", "DEVICES", NULL};
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < p->n_devices; i++) {
        if (!scope_sees(s->scope, p->devices[i].namespace))
            continue;
        table_add(&t, p->devices[i].namespace);
        table_add(&t, p->devices[i].sets.text);
    }
    table_write_text(&t, out);
    table_fini(&t);
}

void policy_view_text(const struct snapshot *s, struct str *out)
{
    if (!s->policy) {
        str_add(out,
                "no policy: no quotas, no shares of services, no devices\n");
        return;
    }
    if (s->policy->n_quotas)
        write_quotas(s, out);
    if (s->policy->n_quotas && s->policy->n_services)
        str_add_c(out, '\n');
    if (s->policy->n_services)
        write_services(s, out);
    if (s->policy->n_devices && (s->policy->n_quotas || s->policy->n_services))
        str_add_c(out, '\n');
    if (s->policy->n_devices)
        write_devices(s, out);
    if (!s->policy->n_quotas && !s->policy->n_services && !s->policy->n_devices)
        str_add(out, "the policy has no quotas, services and devices\n");
}
