#include "advertiser/act/core/host_devices.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "advertiser/act/core/pod_table.h"
#include "lib/base/mem.h"

static_assert((int)INTENT_FUNCTIONS_MAX + 1 == (int)HOST_SIDE_FUNCTIONS_MAX,
              "what is chosen has room where it is written down");

/* Of what its node was told, not of what the pod says. */
static const char *told(const struct intent *i, const char *key)
{
    for (size_t k = 0; k < i->n_env; k++)
        if (strcmp(i->env[k].key, key) == 0)
            return i->env[k].value;
    return "";
}

static struct host_side_given given_of(const struct pod_entry *e)
{
    return (struct host_side_given){
        .cards = told(e->intent, "BIGA_CARD_PCI"),
        .nics = told(e->intent, "BIGA_NIC_PCI"),
        .gpus = told(e->intent, "BIGA_GPU_PCI"),
        .exclusive = e->spec->exclusive,
        .functions = e->intent->functions,
    };
}

/* --- functions of its own -------------------------------------------------- */

/* Also one that may run: it is not known yet what an earlier run of this
 * program started. */
static LOCKED bool has_functions(const struct pod_entry *e)
{
    const struct machine *m = &e->m;
    return e->intent->functions[0] && e->intent->state != ACT_GONE &&
           (!pod_entry_is_over(e) || machine_found_lives(&m->found) ||
            !m->listed);
}

/* What others have. */
static LOCKED void list_taken(const struct place *at, const struct pod_entry *e,
                              struct str *out)
{
    for (size_t i = 0; i < at->a->n_entries; i++) {
        const struct pod_entry *other = at->a->entries[i];
        if (other != e && pod_entry_is_on(other, at) && has_functions(other))
            str_addf(out, "%s%s", out->size ? "," : "",
                     other->intent->functions);
    }
}

/* What it is to have is written down, unless another has been given one of them
 * meanwhile. */
static bool take(struct place *at, struct pod_entry *e, const char *functions,
                 const char *taken, bool *ret_changed)
{
    cleanup_str struct str now =
        STR_INIT(ACT_PODS_MAX * (HOST_SIDE_FUNCTIONS_MAX + 1));
    act_lock(at->a);
    list_taken(at, e, &now);
    bool same = strcmp(str_text(&now), taken) == 0;
    *ret_changed = same && strcmp(e->intent->functions, functions) != 0;
    if (*ret_changed)
        memcpy(e->intent->functions, functions, strlen(functions) + 1);
    act_unlock(at->a);
    return same;
}

/* /sys is read without the lock. */
static void choose(struct place *at, struct pod_entry *e,
                   const struct host_side *host, struct str *taken,
                   char ret_functions[HOST_SIDE_FUNCTIONS_MAX])
{
    const struct host_side_given given = given_of(e);
    str_reset(taken);
    act_lock(at->a);
    list_taken(at, e, taken);
    act_unlock(at->a);
    host_side_choose(host, &given, str_text(taken), ret_functions);
}

static int take_functions(struct place *at, struct pod_entry *e,
                          const struct host_side *host, struct error *err)
{
    char functions[HOST_SIDE_FUNCTIONS_MAX];
    cleanup_str struct str taken =
        STR_INIT(ACT_PODS_MAX * (HOST_SIDE_FUNCTIONS_MAX + 1));
    char before[HOST_SIDE_FUNCTIONS_MAX];
    bool changed;
    memcpy(before, e->intent->functions, sizeof before);
    do
        choose(at, e, host, &taken, functions);
    while (!take(at, e, functions, str_text(&taken), &changed));
    int r = changed ? pod_entry_save(at->a, e, err) : 0;
    if (r < 0) {
        act_lock(at->a);
        memcpy(e->intent->functions, before, sizeof before);
        act_unlock(at->a);
    }
    return r;
}

/* NULL: the host's devices are not known, or the place is a card. */
static struct host_side *host_of(struct place *at, const struct pod_entry *e)
{
    struct host_side *host = NULL;
    act_lock(at->a);
    if (card_is_host(&at->desc) && at->a->host && e->spec)
        host = host_side_ref(at->a->host);
    act_unlock(at->a);
    return host;
}

void host_devices_await(struct place *at, struct pod_entry *e,
                        struct machine_result *r, struct error *err)
{
    cleanup_with(host_side) struct host_side *host = host_of(at, e);
    cleanup_str struct str taken =
        STR_INIT(ACT_PODS_MAX * (HOST_SIDE_FUNCTIONS_MAX + 1));
    char functions[HOST_SIDE_FUNCTIONS_MAX];
    if (!host)
        return;
    choose(at, e, host, &taken, functions);
    if (strcmp(functions, e->intent->functions) == 0)
        return;
    act_lock(at->a);
    bool known = at->swept && at->n_spared_running == 0 &&
                 !orphans_run(&at->orphans);
    act_unlock(at->a);
    if (known)
        return;
    r->e = error_set(err, EBUSY,
                     "pods that are not written down may have virtual "
                     "functions of its cards");
    r->reason = "DevicesInUse";
    r->waits = true;
}

/* --- what a container gets ------------------------------------------------- */

static void set_devices(const struct device_nodes *n, struct arena *arena,
                        struct cri_container_config *config)
{
    const char **list = arena_alloc(arena, (n->n + 1) * sizeof *list);
    for (size_t i = 0; i < n->n; i++)
        list[i] = arena_strndup(arena, n->nodes[i].path,
                                strlen(n->nodes[i].path));
    config->devices = list;
    config->n_devices = n->n;
}

static struct cri_pair *find_env(struct cri_pair *list, size_t n,
                                 const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return &list[i];
    return NULL;
}

/* What the pod itself says stays. */
static void set_names(const struct pod_entry *e, const struct device_nodes *n,
                      struct arena *arena, struct cri_container_config *config)
{
    const struct cri_pair found[] = {
        {"BIGA_RDMA_DEVICE", str_text(&n->rdma)},
        {"BIGA_CARD_INTERFACES", str_text(&n->interfaces)},
        {"BIGA_CARD_VFS", str_text(&n->vfs)},
    };
    struct cri_pairs *env = &config->env;
    struct cri_pair *list =
        arena_alloc(arena, (env->n + ARRAY_LEN(found)) * sizeof *list);
    size_t size = env->n;
    if (size > 0)
        memcpy(list, env->list, size * sizeof *list);
    for (size_t i = 0; i < ARRAY_LEN(found); i++) {
        struct cri_pair *there = find_env(list, size, found[i].key);
        const char *value = arena_strndup(arena, found[i].value,
                                          strlen(found[i].value));
        if (!there && *value)
            list[size++] = (struct cri_pair){found[i].key, value};
        else if (there &&
                 strcmp(there->value, told(e->intent, found[i].key)) == 0)
            there->value = value;
    }
    env->list = list;
    env->n = size;
}

int host_devices_find(struct place *at, struct pod_entry *e,
                      struct config_sandbox *within,
                      struct cri_container_config *config, struct error *err)
{
    cleanup_with(host_side) struct host_side *host = host_of(at, e);
    int r = host ? take_functions(at, e, host, err) : 0;
    if (r < 0 || !host)
        return r;
    cleanup_free struct device_nodes *n = xcalloc(1, sizeof *n);
    const struct host_side_given given = given_of(e);
    device_nodes_init(n);
    if (host_side_look(host, &given, n)) {
        set_devices(n, &within->arena, config);
        if (*given.cards)
            set_names(e, n, &within->arena, config);
    }
    device_nodes_fini(n);
    return 0;
}
