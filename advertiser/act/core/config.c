/* A pod as the CRI has it. */
#include "advertiser/act/core/config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "advertiser/act/core/pod_table.h"
#include "lib/base/mem.h"

enum {
    CPU_PERIOD_US = 100000,
    CPU_SHARES_MIN = 2, /* what cgroups have as their least */
};

struct cri_pairs config_ours(const struct actuator *a, struct cri_pair list[2])
{
    list[0] = (struct cri_pair){ACT_LABEL_CLUSTER, a->cluster};
    list[1] = (struct cri_pair){ACT_LABEL_NODE, a->node};
    return (struct cri_pairs){list, 2};
}

char *config_pod_dir(const struct actuator *a, const struct pod_entry *e)
{
    return pod_dir_path(&a->dirs, e->intent->place, e->intent->uid);
}

static char *keep(struct arena *arena, char *text)
{
    char *kept = arena_strndup(arena, text, strlen(text));
    free(text);
    return kept;
}

static struct cri_pairs labels(const struct actuator *a,
                               const struct pod_entry *e, uint32_t attempt,
                               const char *container, struct arena *arena)
{
    const struct intent *i = e->intent;
    struct cri_pair list[] = {
        {ACT_LABEL_CLUSTER, a->cluster},
        {ACT_LABEL_NODE, a->node},
        {ACT_LABEL_UID, i->uid},
        {ACT_LABEL_ATTEMPT, keep(arena, xasprintf("%" PRIu32, attempt))},
        {"io.kubernetes.pod.name", i->name},
        {"io.kubernetes.pod.namespace", i->namespace},
        {"io.kubernetes.pod.uid", i->uid},
        {ACT_LABEL_CONTAINER, container},
    };
    struct cri_pair *kept = arena_alloc(arena, sizeof list);
    memcpy(kept, list, sizeof list);
    return (struct cri_pairs){kept, ARRAY_LEN(list) - (container == NULL)};
}

static bool is_privileged(const struct podspec *spec)
{
    bool any = false;
    for (size_t i = 0; i < spec->n_init; i++)
        any |= spec->init[i].privileged;
    for (size_t i = 0; i < spec->n_containers; i++)
        any |= spec->containers[i].privileged;
    return any;
}

/* Without the helper on a card nobody makes the directory of its logs. */
static bool has_logs(const struct actuator *a, const struct pod_entry *e)
{
    return !pod_entry_is_helper(e) &&
           (a->helper_image || strcmp(e->intent->place, ACT_HOST) == 0);
}

void config_sandbox(const struct actuator *a, const struct pod_entry *e,
                    uint32_t attempt, struct config_sandbox *ret_config)
{
    const struct intent *i = e->intent;
    struct arena *arena = &ret_config->arena;
    cleanup_free char *dir = config_pod_dir(a, e);
    *ret_config = (struct config_sandbox){0};
    ret_config->cri = (struct cri_sandbox_config){
        .namespace = i->namespace,
        .name = i->name,
        .uid = i->uid,
        .attempt = attempt,
        .hostname = "",
        .log_directory = has_logs(a, e) ? keep(arena, xasprintf("%s/logs", dir))
                                        : "",
        .labels = labels(a, e, attempt, NULL, arena),
        .runtime_handler = "",
        .cgroup_parent = "",
        .host_network = true,
        .host_pid = e->spec->host_pid,
        .host_ipc = e->spec->host_ipc,
        .privileged = is_privileged(e->spec),
        .run_as_user = -1,
    };
}

void config_sandbox_fini(struct config_sandbox *c)
{
    arena_fini(&c->arena);
}

const struct podspec_container *config_unit(const struct podspec *spec,
                                            size_t unit)
{
    return unit < spec->n_init ? &spec->init[unit]
                               : &spec->containers[unit - spec->n_init];
}

static char *volume_path(const char *dir, const struct pod_entry *e,
                         const struct podspec_mount *m)
{
    const struct podspec_volume *v = &e->spec->volumes[m->volume];
    cleanup_free char *top =
        v->medium == PODSPEC_HUGEPAGES
            ? pod_dir_hugepages(e->intent->uid, v->page, false)
        : v->medium == PODSPEC_MEMORY ? pod_dir_memory(e->intent->uid, false)
                                      : NULL;
    if (top)
        return xasprintf("%s/%s", top, v->name);
    return xasprintf("%s/volumes/%s%s%s", dir, v->name,
                     m->sub_path[0] ? "/" : "", m->sub_path);
}

static void add_mounts(const struct actuator *a, const struct pod_entry *e,
                       const struct podspec_container *c, struct arena *arena,
                       struct cri_container_config *config)
{
    struct cri_mount *list = arena_alloc(arena,
                                         (c->n_mounts + 4) * sizeof *list);
    cleanup_free char *dir = config_pod_dir(a, e);
    size_t n = 0;
    for (size_t i = 0; i < c->n_mounts; i++) {
        const struct podspec_mount *m = &c->mounts[i];
        list[n++] = (struct cri_mount){
            .container_path = m->path,
            .host_path = keep(arena, volume_path(dir, e, m)),
            .read_only = m->read_only ||
                         e->spec->volumes[m->volume].kind == PODSPEC_FILES,
        };
    }
    /* a runtime makes what is to be mounted, and so the directory of logs,
     * which it does not make for itself; a call of the helper takes longer */
    if (has_logs(a, e) && strcmp(e->intent->place, ACT_HOST) != 0)
        list[n++] = (struct cri_mount){
            .container_path = "/var/log/biga",
            .host_path = keep(arena, xasprintf("%s/logs", dir)),
            .read_only = true,
        };
    if (pod_entry_is_helper(e)) {
        list[n++] = (struct cri_mount){.container_path = a->dirs.card,
                                       .host_path = a->dirs.card};
        list[n++] = (struct cri_mount){.container_path = ACT_MEMORY_HELPER,
                                       .host_path = ACT_MEMORY_DIR};
        /* file systems below it can be written: folders of huge pages */
        list[n++] = (struct cri_mount){.container_path = ACT_DEV_HELPER,
                                       .host_path = "/dev",
                                       .read_only = true};
    }
    config->mounts = list;
    config->n_mounts = n;
}

static void add_env(const struct podspec_container *c, struct arena *arena,
                    struct cri_container_config *config)
{
    struct cri_pair *list = arena_alloc(arena, (c->n_env + 1) * sizeof *list);
    for (size_t i = 0; i < c->n_env; i++)
        list[i] = (struct cri_pair){c->env[i].name, c->env[i].value};
    config->env = (struct cri_pairs){list, c->n_env};
}

static int64_t shares(const struct podspec_container *c)
{
    int64_t n = (int64_t)c->cpu_request_milli * 1024 / 1000;
    return c->cpu_request_milli == 0 ? 0
           : n < CPU_SHARES_MIN      ? CPU_SHARES_MIN
                                     : n;
}

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

void config_container(const struct actuator *a, const struct pod_entry *e,
                      size_t unit, uint32_t attempt,
                      struct config_sandbox *within,
                      struct cri_container_config *ret_config)
{
    const struct podspec_container *c = config_unit(e->spec, unit);
    struct arena *arena = &within->arena;
    *ret_config = (struct cri_container_config){
        .name = c->name,
        .image = c->image,
        .attempt = attempt,
        .command = (const char *const *)c->command,
        .args = (const char *const *)c->args,
        .n_command = c->n_command,
        .n_args = c->n_args,
        .working_dir = c->working_dir ? c->working_dir : "",
        .labels = labels(a, e, attempt, c->name, arena),
        .log_path = has_logs(a, e)
                        ? keep(arena, pod_dir_log_name(c->name, attempt))
                        : "",
        .cpu_period = c->cpu_limit_milli ? CPU_PERIOD_US : 0,
        .cpu_quota = (int64_t)c->cpu_limit_milli * CPU_PERIOD_US / 1000,
        .cpu_shares = shares(c),
        .memory_limit = (int64_t)c->memory_limit,
        .cpuset_cpus = "",
        .cpuset_mems = "",
        .run_as_user = c->run_as_user,
        .run_as_group = c->run_as_group,
        .read_only_root = c->read_only_root,
        .no_new_privileges = c->no_new_privileges,
        .privileged = c->privileged,
        .cap_add = (const char *const *)c->cap_add,
        .cap_drop = (const char *const *)c->cap_drop,
        .n_cap_add = count(c->cap_add),
        .n_cap_drop = count(c->cap_drop),
    };
    add_env(c, arena, ret_config);
    add_mounts(a, e, c, arena, ret_config);
}

static bool is_open_peer(const struct cri_pair *v)
{
    return strcmp(v->key, "BIGA_PEER_ADDRESS") == 0 && !v->value[0];
}

bool config_wants_peer(const struct cri_container_config *config)
{
    for (size_t i = 0; i < config->env.n; i++)
        if (is_open_peer(&config->env.list[i]))
            return true;
    return false;
}

void config_set_peer(struct cri_container_config *config, const char *address,
                     struct config_sandbox *within)
{
    struct cri_pairs *env = &config->env;
    struct cri_pair *list = arena_alloc(&within->arena,
                                        (env->n + 1) * sizeof *list);
    for (size_t i = 0; i < env->n; i++) {
        list[i] = env->list[i];
        if (is_open_peer(&list[i]))
            list[i].value = arena_strndup(&within->arena, address,
                                          strlen(address));
    }
    env->list = list;
}
