/* One container: its image, command, resources, mounts and rights. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "model/pod/podspec_private.h"
#include "model/pod/quantity.h"

enum {
    TEXT_MAX = 131072, /* bytes of one argument */
    IMAGE_MAX = 512,
    PATH_LENGTH_MAX = 4096,
    PORTS_MAX = 256,
    CAPABILITIES_MAX = 64,
    CAPABILITY_LENGTH_MAX = 32,
    MIB_SHIFT = 20,
};

#define CARD_CORES "biga.dev/card-cores"
#define CARD_MIB "biga.dev/card-memory-mib"
#define WHY_LABEL "must be 1 to 63 of a-z, 0-9 and '-', no '-' at an end"

/* A list of texts; the caller owns `*ret_list` even after an error. */
static int read_texts(struct reader *r, const char *name, int max,
                      char ***ret_list, size_t *ret_n)
{
    const cJSON *list = reader_opt_array(r, name, max), *m;
    size_t n = 0;
    *ret_list = xcalloc((size_t)(list ? cJSON_GetArraySize(list) : 0) + 1,
                        sizeof **ret_list);
    cJSON_ArrayForEach(m, list)
    {
        if (!cJSON_IsString(m) || strlen(m->valuestring) > TEXT_MAX)
            return reader_fail(r, name,
                               "element %zu must be a text of at most %d bytes",
                               n, TEXT_MAX);
        (*ret_list)[n++] = xstrdup(m->valuestring);
    }
    *ret_n = n;
    return r->failed ? -EINVAL : 0;
}

/* --- resources -------------------------------------------------------------- */

int64_t podspec_amount_of(struct reader *r, const cJSON *list, const char *what,
                          const char *name)
{
    const cJSON *m = list ? cJSON_GetObjectItemCaseSensitive(list, name) : NULL;
    int64_t milli = 0;
    if (!m || cJSON_IsNull(m) || r->failed)
        return 0;
    cleanup_free char *text = cJSON_IsString(m)   ? xstrdup(m->valuestring)
                              : cJSON_IsNumber(m) ? cJSON_PrintUnformatted(m)
                                                  : NULL;
    if (!text || !quantity_parse(text, strlen(text), &milli))
        (void)reader_fail(r, what,
                          "%s: is \"%.48s\", must be an amount such as 500m, 2 "
                          "or 64Mi",
                          name, text ? text : "no text or number");
    return milli;
}

static uint32_t cut32(int64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* What a container may use, all in thousandths.  On a card what counts is what
 * the pod has of it, biga.dev/card-…; where it does not say, and on a host, cpu
 * and memory. */
struct amounts {
    int64_t limit, request, memory; /* of cpu, of memory */
    int64_t cores, mib;             /* biga.dev/card-… */
};

static void set_amounts(const struct reading *x, struct amounts a,
                        struct podspec_container *c)
{
    if (!a.cores)
        a.cores = x->own_cores;
    if (!a.mib)
        a.mib = x->own_mib;
    if (!x->is_host && a.cores)
        a.limit = a.request = a.cores;
    a.memory = a.memory / 1000 + (a.memory % 1000 != 0);
    if (!x->is_host && a.mib)
        a.memory = a.mib / 1000 > INT64_MAX >> MIB_SHIFT
                       ? INT64_MAX
                       : (a.mib / 1000) << MIB_SHIFT;
    c->cpu_limit_milli = cut32(a.limit);
    c->cpu_request_milli = cut32(a.request ? a.request : a.limit);
    c->memory_limit = (uint64_t)a.memory;
}

static int read_resources(struct reading *x, const cJSON *json,
                          const char *path, struct podspec_container *c)
{
    struct reader r;
    if (!members_begin(&r, json, path, &resource_rules, x->err))
        return -EINVAL;
    const cJSON *limits = reader_opt_object(&r, "limits");
    const cJSON *requests = reader_opt_object(&r, "requests");
    struct amounts a = {
        .limit = podspec_amount_of(&r, limits, "limits", "cpu"),
        .request = podspec_amount_of(&r, requests, "requests", "cpu"),
        .memory = podspec_amount_of(&r, limits, "limits", "memory"),
        .cores = podspec_amount_of(&r, limits, "limits", CARD_CORES),
        .mib = podspec_amount_of(&r, limits, "limits", CARD_MIB),
    };
    if (!a.cores)
        a.cores = podspec_amount_of(&r, requests, "requests", CARD_CORES);
    if (!a.mib)
        a.mib = podspec_amount_of(&r, requests, "requests", CARD_MIB);
    podspec_read_hugepages(x, &r, limits, requests, c);
    if (r.failed)
        return -EINVAL;
    if (a.limit && a.request > a.limit)
        return reader_fail(&r, "requests",
                           "cpu: is %" PRId64 "m, above its limit of %" PRId64
                           "m",
                           a.request, a.limit);
    set_amounts(x, a, c);
    return 0;
}

static int64_t own_amount(const struct reading *x, const char *name)
{
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(x->metadata,
                                                          "annotations");
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(notes, name);
    int64_t milli = 0;
    if (!cJSON_IsString(m) ||
        !quantity_parse(m->valuestring, strlen(m->valuestring), &milli))
        return 0; /* demand.h says what is wrong with it */
    return milli;
}

void podspec_read_own_amounts(struct reading *x)
{
    x->own_cores = own_amount(x, CARD_CORES);
    x->own_mib = own_amount(x, CARD_MIB);
}

/* --- security -------------------------------------------------------------- */

int podspec_read_profiles(struct reader *r, struct error *err)
{
    static const char *const names[] = {"seccompProfile", "appArmorProfile"};
    static const char *const types[] = {"Unconfined"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct reader profile;
        char path[READER_PATH_MAX];
        const cJSON *json = reader_opt_object(r, names[i]);
        if (r->failed)
            return -EINVAL;
        if (!json)
            continue;
        reader_path(r, names[i], -1, path);
        reader_init(&profile, json, path, err);
        (void)member_choice(&profile, "type", types, 1, 0);
        if (reader_finish_strict(&profile) < 0)
            return -EINVAL;
    }
    return 0;
}

static int read_capability_list(struct reader *r, const char *name,
                                char ***ret_list)
{
    size_t n = 0;
    podspec_texts_free(*ret_list);
    *ret_list = NULL;
    int e = read_texts(r, name, CAPABILITIES_MAX, ret_list, &n);
    for (size_t i = 0; e == 0 && i < n; i++) {
        char *text = (*ret_list)[i];
        size_t size = strlen(text);
        if (strncmp(text, "CAP_", 4) == 0)
            memmove(text, text + 4, (size -= 4) + 1);
        if (size == 0 || size > CAPABILITY_LENGTH_MAX ||
            strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != size)
            e = reader_fail(
                r, name, "element %zu is \"%.48s\", must be as \"NET_ADMIN\"",
                i, text);
    }
    return e;
}

static int read_capabilities(struct reading *x, struct reader *security,
                             struct podspec_container *c)
{
    struct reader r;
    char path[READER_PATH_MAX];
    const cJSON *json = reader_opt_object(security, "capabilities");
    if (security->failed)
        return -EINVAL;
    if (!json)
        return 0;
    reader_path(security, "capabilities", -1, path);
    reader_init(&r, json, path, x->err);
    int e = read_capability_list(&r, "add", &c->cap_add);
    if (e == 0)
        e = read_capability_list(&r, "drop", &c->cap_drop);
    return e == 0 ? reader_finish_strict(&r) : e;
}

static int read_security(struct reading *x, const cJSON *json, const char *path,
                         struct podspec_container *c)
{
    static const char *const mounts[] = {"Default"};
    struct reader r;
    if (!members_begin(&r, json, path, &security_rules, x->err))
        return -EINVAL;
    c->run_as_user = reader_opt_int(&r, "runAsUser", 0, INT32_MAX,
                                    c->run_as_user);
    c->run_as_group = reader_opt_int(&r, "runAsGroup", 0, INT32_MAX,
                                     c->run_as_group);
    c->run_as_non_root = reader_opt_bool(&r, "runAsNonRoot",
                                         c->run_as_non_root);
    c->read_only_root = reader_opt_bool(&r, "readOnlyRootFilesystem", false);
    c->privileged = reader_opt_bool(&r, "privileged", false);
    c->no_new_privileges = !reader_opt_bool(&r, "allowPrivilegeEscalation",
                                            true);
    (void)member_choice(&r, "procMount", mounts, 1, 0);
    if (r.failed || podspec_read_profiles(&r, x->err) < 0)
        return -EINVAL;
    if (c->privileged && c->no_new_privileges)
        return member_refuse(&r, "allowPrivilegeEscalation",
                             "a privileged container may");
    return read_capabilities(x, &r, c);
}

/* --- mounts, ports -------------------------------------------------------------- */

/* Does the volume have the file, or a directory with files? */
static bool has_path(const struct podspec_volume *v, const char *path)
{
    size_t size = strlen(path);
    for (size_t i = 0; i < v->n_files; i++)
        if (strncmp(v->files[i].path, path, size) == 0 &&
            (v->files[i].path[size] == '\0' || v->files[i].path[size] == '/'))
            return true;
    return false;
}

static int check_mount(struct reading *x, struct reader *r,
                       const struct podspec_mount *m)
{
    static const char *const nones[] = {"None"};
    static const char *const off[] = {"Disabled"};
    const struct podspec_volume *v = &x->pod->volumes[m->volume];
    (void)member_choice(r, "mountPropagation", nones, 1, 0);
    (void)member_choice(r, "recursiveReadOnly", off, 1, 0);
    if (r->failed)
        return -EINVAL;
    if (m->path[0] != '/' || strchr(m->path, ':') || !is_clean(m->path) ||
        !is_inner_path(m->path + 1))
        return member_refuse(r, "mountPath",
                             "must be absolute, not the root, without ':', "
                             "\".\", \"..\" and control characters");
    if (*m->sub_path && (!is_inner_path(m->sub_path) || !is_clean(m->sub_path)))
        return member_refuse(r, "subPath",
                             "must be relative, without \".\" and \"..\"");
    if (*m->sub_path && v->kind == PODSPEC_EMPTY)
        return member_refuse(r, "subPath",
                             "an emptyDir has none: a container could make it "
                             "a link to anywhere");
    if (*m->sub_path && v->kind == PODSPEC_FILES && x->source &&
        !has_path(v, m->sub_path))
        return member_refuse(r, "subPath", "its volume has no such file");
    return 0;
}

/* The size without a '/' at the end. */
static size_t trimmed(const char *path)
{
    size_t size = strlen(path);
    return size > 1 && path[size - 1] == '/' ? size - 1 : size;
}

static int read_mount(struct reading *x, const cJSON *json, const char *path,
                      struct podspec_container *c)
{
    struct reader r;
    if (!members_begin(&r, json, path, &mount_rules, x->err))
        return -EINVAL;
    const char *name = reader_string(&r, "name", 253);
    const char *where = reader_string(&r, "mountPath", PATH_LENGTH_MAX);
    const char *sub = reader_opt_string(&r, "subPath", PATH_LENGTH_MAX);
    bool read_only = reader_opt_bool(&r, "readOnly", false);
    size_t volume = 0;
    if (r.failed)
        return -EINVAL;
    while (volume < x->pod->n_volumes &&
           strcmp(x->pod->volumes[volume].name, name) != 0)
        volume++;
    if (volume == x->pod->n_volumes)
        return member_refuse(&r, "name", "spec.volumes has none of that name");
    struct podspec_mount *m = &c->mounts[c->n_mounts++];
    *m = (struct podspec_mount){.volume = volume,
                                .path = xstrndup(where, trimmed(where)),
                                .sub_path = xstrdup(sub ? sub : ""),
                                .read_only = read_only};
    for (struct podspec_mount *o = c->mounts; o < m; o++)
        if (strcmp(o->path, m->path) == 0)
            return member_refuse(&r, "mountPath", "is mounted on twice");
    return check_mount(x, &r, m);
}

static int read_mounts(struct reading *x, struct reader *r,
                       struct podspec_container *c)
{
    const cJSON *list = reader_opt_array(r, "volumeMounts",
                                         PODSPEC_VOLUMES_MAX);
    const cJSON *m;
    int i = 0;
    if (r->failed)
        return -EINVAL;
    c->mounts = xcalloc((size_t)(list ? cJSON_GetArraySize(list) : 0) + 1,
                        sizeof *c->mounts);
    cJSON_ArrayForEach(m, list)
    {
        char path[READER_PATH_MAX];
        reader_path(r, "volumeMounts", i++, path);
        int e = read_mount(x, m, path, c);
        if (e < 0)
            return e;
    }
    return 0;
}

/* The pod has the network of its place: ports need not be opened, and are not
 * translated. */
static int check_ports(struct reading *x, struct reader *r)
{
    const cJSON *list = reader_opt_array(r, "ports", PORTS_MAX), *m;
    int i = 0;
    cJSON_ArrayForEach(m, list)
    {
        char path[READER_PATH_MAX];
        struct reader port;
        reader_path(r, "ports", i++, path);
        if (!members_begin(&port, m, path, &port_rules, x->err))
            return -EINVAL;
        int64_t inner = reader_int(&port, "containerPort", 1, 65535);
        int64_t outer = reader_opt_int(&port, "hostPort", 0, 65535, 0);
        if (port.failed)
            return -EINVAL;
        if (outer && outer != inner)
            return member_refuse(&port, "hostPort",
                                 "must be as containerPort: pods have the "
                                 "network of their card, nothing is "
                                 "translated");
    }
    return r->failed ? -EINVAL : 0;
}

/* --- the container ------------------------------------------------------------- */

static enum podspec_pull default_pull(const char *image)
{
    const char *slash = strrchr(image, '/');
    const char *tag = strchr(slash ? slash : image, ':');
    bool newest = !strchr(image, '@') && (!tag || strcmp(tag, ":latest") == 0);
    return newest ? PODSPEC_PULL_ALWAYS : PODSPEC_PULL_IF_NOT_PRESENT;
}

static int read_image(struct reader *r, struct podspec_container *c)
{
    static const char *const pulls[] = {
        [PODSPEC_PULL_IF_NOT_PRESENT] = "IfNotPresent",
        [PODSPEC_PULL_ALWAYS] = "Always",
        [PODSPEC_PULL_NEVER] = "Never",
    };
    const char *image = reader_string(r, "image", IMAGE_MAX);
    if (r->failed)
        return -EINVAL;
    if (!is_clean(image) || strchr(image, ' '))
        return member_refuse(r, "image", "must have no blanks");
    c->image = xstrdup(image);
    int pull = member_choice(r, "imagePullPolicy", pulls, ARRAY_LEN(pulls),
                             (int)default_pull(image));
    if (pull < 0)
        return -EINVAL;
    c->pull = (enum podspec_pull)pull;
    return 0;
}

static int check_user(struct reader *r, const struct podspec_container *c)
{
    if (c->run_as_non_root && c->run_as_user == 0)
        return reader_fail(r, "securityContext",
                           "runAsNonRoot is true, but runAsUser is 0");
    return 0;
}

static int read_container(struct reading *x, const cJSON *json,
                          const char *path, struct podspec_container *c,
                          struct podspec_raw *raw)
{
    struct reader r;
    char where[READER_PATH_MAX];
    c->run_as_user = x->run_as_user;
    c->run_as_group = x->run_as_group;
    c->run_as_non_root = x->run_as_non_root;
    if (!members_begin(&r, json, path, &container_rules, x->err))
        return -EINVAL;
    const char *name = reader_string(&r, "name", 253);
    if (r.failed)
        return -EINVAL;
    if (!is_dns_label(name, 63))
        return member_refuse(&r, "name", WHY_LABEL);
    c->name = xstrdup(name);
    int e = read_image(&r, c);
    if (e == 0)
        e = read_texts(&r, "command", PODSPEC_ARGS_MAX, &raw->command,
                       &c->n_command);
    if (e == 0)
        e = read_texts(&r, "args", PODSPEC_ARGS_MAX, &raw->args, &c->n_args);
    const char *dir = reader_opt_string(&r, "workingDir", PATH_LENGTH_MAX);
    c->working_dir = xstrdup(dir ? dir : "");
    const cJSON *resources = reader_opt_object(&r, "resources");
    const cJSON *security = reader_opt_object(&r, "securityContext");
    if (e < 0 || r.failed)
        return -EINVAL;
    reader_path(&r, "resources", -1, where);
    set_amounts(x, (struct amounts){0}, c);
    if (resources && (e = read_resources(x, resources, where, c)) < 0)
        return e;
    reader_path(&r, "securityContext", -1, where);
    if (security && (e = read_security(x, security, where, c)) < 0)
        return e;
    if ((e = check_user(&r, c)) < 0 || (e = check_ports(x, &r)) < 0 ||
        (e = read_mounts(x, &r, c)) < 0 ||
        (e = podspec_read_env(x, json, path, raw)) < 0)
        return e;
    podspec_expand(c, raw);
    return 0;
}

static bool has_container(const struct podspec *p, const char *name,
                          const struct podspec_container *but)
{
    for (size_t i = 0; i < p->n_init; i++)
        if (&p->init[i] != but && strcmp(p->init[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < p->n_containers; i++)
        if (&p->containers[i] != but &&
            strcmp(p->containers[i].name, name) == 0)
            return true;
    return false;
}

int podspec_read_containers(struct reading *x, const cJSON *list,
                            const char *path, bool init)
{
    struct podspec *p = x->pod;
    struct podspec_container *all =
        xcalloc((size_t)(list ? cJSON_GetArraySize(list) : 0) + 1, sizeof *all);
    size_t *n = init ? &p->n_init : &p->n_containers;
    const cJSON *m;
    if (init)
        p->init = all;
    else
        p->containers = all;
    cJSON_ArrayForEach(m, list)
    {
        char where[READER_PATH_MAX];
        size_t at = (*n)++;
        (void)snprintf(where, sizeof where, "%s[%zu]", path, at);
        int e = read_container(
            x, m, where, &all[at],
            &p->raw[at + (init ? 0 : (size_t)PODSPEC_CONTAINERS_MAX)]);
        if (e < 0)
            return e;
        if (has_container(p, all[at].name, &all[at]))
            return error_set(x->err, EINVAL,
                             "%s.name: is \"%s\": another container has that "
                             "name",
                             where, all[at].name);
    }
    return 0;
}
