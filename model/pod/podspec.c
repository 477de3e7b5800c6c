#include "model/pod/podspec.h"

#include <string.h>

#include "model/pod/podspec_private.h"

enum { GRACE_DEFAULT_S = 30 };

/* --- release -------------------------------------------------------------- */

static void container_fini(struct podspec_container *c)
{
    for (size_t i = 0; i < c->n_env; i++) {
        free(c->env[i].name);
        free(c->env[i].value);
    }
    for (size_t i = 0; i < c->n_mounts; i++) {
        free(c->mounts[i].path);
        free(c->mounts[i].sub_path);
    }
    free(c->env);
    free(c->mounts);
    free(c->name);
    free(c->image);
    free(c->working_dir);
    podspec_texts_free(c->command);
    podspec_texts_free(c->args);
    podspec_texts_free(c->cap_add);
    podspec_texts_free(c->cap_drop);
}

static void volume_fini(struct podspec_volume *v)
{
    for (size_t i = 0; i < v->n_files; i++) {
        free(v->files[i].path);
        free(v->files[i].data);
    }
    free(v->files);
    free(v->name);
}

void podspec_refs_free(struct podspec_ref *refs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(refs[i].name);
    free(refs);
}

void podspec_destroy(struct podspec *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_init; i++)
        container_fini(&p->init[i]);
    for (size_t i = 0; i < p->n_containers; i++)
        container_fini(&p->containers[i]);
    for (size_t i = 0; i < p->n_volumes; i++)
        volume_fini(&p->volumes[i]);
    for (size_t i = 0; p->raw && i < 2 * (size_t)PODSPEC_CONTAINERS_MAX; i++)
        podspec_raw_fini(&p->raw[i]);
    podspec_refs_free(p->refs, p->n_refs);
    free(p->raw);
    free(p->init);
    free(p->containers);
    free(p->volumes);
    free(p->namespace);
    free(p->name);
    free(p->uid);
    free(p);
}

/* --- metadata --------------------------------------------------------------- */

/* An object whose values are texts. */
static int check_map(struct reader *r, const char *name)
{
    const cJSON *map = reader_opt_object(r, name), *m;
    cJSON_ArrayForEach(m, map)
    {
        if (!cJSON_IsString(m))
            return reader_fail(r, name, "\"%.64s\" must be a text", m->string);
    }
    return r->failed ? -EINVAL : 0;
}

static bool is_uid(const char *uid)
{
    static const char ends[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(uid);
    return n == 0 ||
           (n <= 63 && strchr(ends, uid[0]) && strchr(ends, uid[n - 1]) &&
            strspn(uid, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n);
}

/* NULL: it has none.  All of them are texts. */
static const char *annotation(const cJSON *metadata, const char *key)
{
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(metadata,
                                                          "annotations");
    const cJSON *m = notes ? cJSON_GetObjectItemCaseSensitive(notes, key)
                           : NULL;
    return m ? m->valuestring : NULL;
}

/* A host pod says what its xPU pods ask for. */
static int read_devices(struct reading *x, const cJSON *metadata)
{
    struct error why;
    const char *m = annotation(metadata, DEVICE_SETS_KEY);
    const char *exclusive = annotation(metadata, "biga.dev/exclusive");
    x->pod->exclusive = exclusive && strcmp(exclusive, "true") == 0;
    if (!m || x->is_host ||
        device_sets_parse(m, ',', &x->pod->devices, &why) == 0)
        return 0;
    return error_set(x->err, EINVAL, "metadata.annotations[\"%s\"]: %s",
                     DEVICE_SETS_KEY, why.text);
}

static int read_metadata(struct reading *x, const cJSON *json)
{
    struct podspec *p = x->pod;
    struct reader r;
    reader_init(&r, json, "metadata", x->err);
    const char *name = reader_string(&r, "name", 253);
    const char *namespace = reader_opt_string(&r, "namespace", 63);
    const char *uid = reader_opt_string(&r, "uid", 63);
    if (r.failed || check_map(&r, "labels") < 0 ||
        check_map(&r, "annotations") < 0)
        return -EINVAL;
    if (!is_dns_name(name, 253))
        return member_refuse(&r, "name",
                             "must be up to 253 of a-z, 0-9, '-' and '.', a "
                             "letter or digit at both ends of each part");
    if (!namespace || !*namespace)
    namespace = "default";
    if (!is_dns_label(namespace, 63))
        return member_refuse(&r, "namespace",
                             "must be up to 63 of a-z, 0-9 and '-', no '-' at "
                             "an end");
    if (uid && !is_uid(uid))
        return member_refuse(&r, "uid",
                             "must be up to 63 letters, digits, '-', '_' and "
                             "'.', a letter or digit at both ends");
    p->name = xstrdup(name);
    p->namespace = xstrdup(namespace);
    p->uid = xstrdup(uid ? uid : "");
    x->metadata = json;
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(json, "labels");
    const cJSON *role =
        labels ? cJSON_GetObjectItemCaseSensitive(labels, "biga.dev/role")
               : NULL;
    x->is_host = role && strcmp(role->valuestring, "host") == 0;
    return read_devices(x, json);
}

/* --- the pod -------------------------------------------------------------------- */

static int read_pod_security(struct reading *x, const cJSON *json)
{
    struct reader r;
    if (!members_begin(&r, json, "spec.securityContext", &pod_security_rules,
                       x->err))
        return -EINVAL;
    x->run_as_user = reader_opt_int(&r, "runAsUser", 0, INT32_MAX, -1);
    x->run_as_group = reader_opt_int(&r, "runAsGroup", 0, INT32_MAX, -1);
    x->run_as_non_root = reader_opt_bool(&r, "runAsNonRoot", false);
    return r.failed ? -EINVAL : podspec_read_profiles(&r, x->err);
}

/* Members that may only state what holds on a card anyway. */
static int check_givens(struct reading *x, struct reader *r)
{
    static const char *const policies[] = {"Default", "ClusterFirst",
                                           "ClusterFirstWithHostNet"};
    static const char *const systems[] = {"linux"};
    static const char *const classes[] = {"xpu"}; /* how a kubelet calls us */
    const cJSON *os = reader_opt_object(r, "os");
    (void)member_choice(r, "dnsPolicy", policies, ARRAY_LEN(policies), 0);
    (void)member_choice(r, "runtimeClassName", classes, 1, 0);
    if (!reader_opt_bool(r, "hostUsers", true) && !r->failed)
        return member_refuse(r, "hostUsers",
                             "user namespaces are not asked of runtimes");
    if (os && !r->failed) {
        struct reader name;
        reader_init(&name, os, "spec.os", x->err);
        (void)member_choice(&name, "name", systems, 1, 0);
        return reader_finish_strict(&name);
    }
    return r->failed ? -EINVAL : 0;
}

static int read_spec(struct reading *x, const cJSON *json)
{
    static const char *const restarts[] = {
        [PODSPEC_RESTART_ALWAYS] = "Always",
        [PODSPEC_RESTART_ON_FAILURE] = "OnFailure",
        [PODSPEC_RESTART_NEVER] = "Never",
    };
    struct podspec *p = x->pod;
    struct reader r;
    int e = 0;
    if (!members_begin(&r, json, "spec", &pod_spec_rules, x->err))
        return -EINVAL;
    int restart = member_choice(&r, "restartPolicy", restarts,
                                ARRAY_LEN(restarts), PODSPEC_RESTART_ALWAYS);
    p->grace_s = (uint32_t)reader_opt_int(&r, "terminationGracePeriodSeconds",
                                          0, PODSPEC_GRACE_S_MAX,
                                          GRACE_DEFAULT_S);
    p->host_pid = reader_opt_bool(&r, "hostPID", false);
    p->host_ipc = reader_opt_bool(&r, "hostIPC", false);
    const cJSON *security = reader_opt_object(&r, "securityContext");
    const cJSON *volumes = reader_opt_array(&r, "volumes", PODSPEC_VOLUMES_MAX);
    const cJSON *init = reader_opt_array(&r, "initContainers",
                                         PODSPEC_CONTAINERS_MAX);
    const cJSON *containers = reader_array(&r, "containers",
                                           PODSPEC_CONTAINERS_MAX);
    if (r.failed)
        return -EINVAL;
    p->restart = (enum podspec_restart)restart;
    if (!containers->child)
        return reader_fail(&r, "containers", "must have at least one");
    if ((e = check_givens(x, &r)) < 0)
        return e;
    if (security && (e = read_pod_security(x, security)) < 0)
        return e;
    if ((e = podspec_read_volumes(x, volumes)) < 0)
        return e;
    if (cJSON_GetArraySize(containers) == 1)
        podspec_read_own_amounts(x);
    e = podspec_read_containers(x, init, "spec.initContainers", true);
    if (e == 0)
        e = podspec_read_containers(x, containers, "spec.containers", false);
    return e < 0 ? e : podspec_settle_hugepages(x);
}

static int check_kind(struct reader *r)
{
    const char *version = reader_opt_string(r, "apiVersion", 253);
    const char *kind = reader_opt_string(r, "kind", 253);
    if (version && strcmp(version, "v1") != 0)
        return member_refuse(r, "apiVersion", "must be \"v1\"");
    if (kind && strcmp(kind, "Pod") != 0)
        return member_refuse(r, "kind", "must be \"Pod\"");
    return r->failed ? -EINVAL : 0;
}

int podspec_parse(const char *json, size_t size, const char *node,
                  const struct podspec_source *source,
                  struct podspec **ret_spec, struct error *err)
{
    cleanup_with(json) cJSON *doc = NULL;
    cleanup_with(podspec) struct podspec *p = NULL;
    struct reader r;
    if (size > PODSPEC_SIZE_MAX)
        return error_set(err, EINVAL, "the pod has %zu bytes, the limit is %d",
                         size, PODSPEC_SIZE_MAX);
    int e = json_parse(json, size, &doc, err);
    if (e < 0)
        return e;
    p = xcalloc(1, sizeof *p);
    p->raw = xcalloc(2 * (size_t)PODSPEC_CONTAINERS_MAX, sizeof *p->raw);
    struct reading x = {.pod = p,
                        .node = node,
                        .source = source,
                        .run_as_user = -1,
                        .run_as_group = -1,
                        .err = err};
    if (!members_begin(&r, doc, "", &pod_rules, err) || check_kind(&r) < 0)
        return -EINVAL;
    const cJSON *metadata = reader_object(&r, "metadata");
    const cJSON *spec = reader_object(&r, "spec");
    if (r.failed)
        return -EINVAL;
    e = read_metadata(&x, metadata);
    if (e == 0)
        e = read_spec(&x, spec);
    if (e < 0)
        return e;
    *ret_spec = steal(&p);
    return 0;
}
