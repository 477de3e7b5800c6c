/* The environment of a container: where its values come from, and "$(NAME)"
 * in them and in command and args. */
#include <string.h>

#include "model/pod/podspec_private.h"

enum {
    VALUE_MAX = 131072, /* bytes: what Linux takes of one argument */
    NAME_MAX_ENV = 512,
};

/* --- what is known of the pod itself --------------------------------------- */

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string,
                  (*(const cJSON *const *)b)->string);
}

/* As Kubernetes writes a map into a file: KEY="VALUE" a line, sorted. */
static void add_map(const cJSON *map, struct str *out)
{
    size_t n = (size_t)cJSON_GetArraySize(map), i = 0;
    cleanup_free const cJSON **list = xcalloc(n + 1, sizeof *list);
    const cJSON *m;
    cJSON_ArrayForEach(m, map)
    {
        list[i++] = m;
    }
    qsort(list, n, sizeof *list, by_key);
    for (i = 0; i < n; i++) {
        str_addf(out, "%s%s=", i ? "\n" : "", list[i]->string);
        str_add_json(out, list[i]->valuestring);
    }
}

/* "labels['x']" → the value of label x, "" when there is none. */
static bool map_value(const cJSON *metadata, const char *path, const char *map,
                      const char **ret_value)
{
    size_t n = strlen(map), size = strlen(path);
    if (strncmp(path, map, n) != 0 || size < n + 5 ||
        strncmp(path + n, "['", 2) != 0 || strcmp(path + size - 2, "']") != 0)
        return false;
    cleanup_free char *key = xstrndup(path + n + 2, size - n - 4);
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(metadata, map);
    const cJSON *m = all ? cJSON_GetObjectItemCaseSensitive(all, key) : NULL;
    *ret_value = m ? m->valuestring : "";
    return true;
}

int podspec_field(struct reading *x, struct reader *r, const char *name,
                  bool whole_maps, char **ret_text)
{
    const cJSON *ref = reader_object(r, name);
    char path[READER_PATH_MAX];
    struct reader field;
    const char *value = NULL;
    if (!ref)
        return -EINVAL;
    reader_path(r, name, -1, path);
    reader_init(&field, ref, path, x->err);
    (void)reader_opt_string(&field, "apiVersion", 16);
    const char *what = reader_string(&field, "fieldPath", 512);
    if (reader_finish_strict(&field) < 0)
        return -EINVAL;
    if (strcmp(what, "metadata.name") == 0)
        value = x->pod->name;
    else if (strcmp(what, "metadata.namespace") == 0)
        value = x->pod->namespace;
    else if (strcmp(what, "metadata.uid") == 0)
        value = x->pod->uid;
    else if (strcmp(what, "spec.nodeName") == 0)
        value = x->node;
    else if (strncmp(what, "metadata.", 9) == 0)
        (void)(map_value(x->metadata, what + 9, "labels", &value) ||
               map_value(x->metadata, what + 9, "annotations", &value));
    if (!value && whole_maps && strncmp(what, "metadata.", 9) == 0 &&
        (strcmp(what + 9, "labels") == 0 ||
         strcmp(what + 9, "annotations") == 0)) {
        struct str text = STR_INIT(PODSPEC_SIZE_MAX);
        add_map(cJSON_GetObjectItemCaseSensitive(x->metadata, what + 9), &text);
        *ret_text = str_steal(&text);
        return 0;
    }
    if (!value)
        return member_refuse(&field, "fieldPath",
                             "must be metadata.name, .namespace, .uid, "
                             ".labels['KEY'], .annotations['KEY'] or "
                             "spec.nodeName; addresses are in "
                             "BIGA_PEER_ADDRESS");
    *ret_text = xstrdup(value);
    return 0;
}

struct visiting {
    const struct podspec_source *source;
    const struct lookup *look;
};

static void visit_one(void *arg, const char *key, const char *data, size_t size)
{
    const struct visiting *v = arg;
    if (v->look->visit(v->look->arg, key, data, size) && v->source->taken)
        v->source->taken(v->source->ctx, v->look->secret, v->look->name, key);
}

static int note_ref(struct reading *x, const struct lookup *look)
{
    struct podspec *p = x->pod;
    for (size_t i = 0; i < p->n_refs; i++)
        if (p->refs[i].secret == look->secret &&
            strcmp(p->refs[i].name, look->name) == 0)
            return 0;
    if (p->n_refs == PODSPEC_REFS_MAX)
        return error_set(x->err, EFBIG,
                         "%s: is \"%s\": the pod takes from more than %d "
                         "ConfigMaps and Secrets",
                         look->path, look->name, PODSPEC_REFS_MAX);
    p->refs = xgrow(p->refs, p->n_refs, &x->refs_cap, sizeof *p->refs);
    p->refs[p->n_refs++] = (struct podspec_ref){look->secret,
                                                xstrdup(look->name)};
    return 0;
}

int podspec_lookup(struct reading *x, const struct lookup *look)
{
    if (note_ref(x, look) < 0)
        return -EFBIG;
    if (!x->source || !x->source->each)
        return 0;
    struct visiting v = {x->source, look};
    int e = x->source->each(x->source->ctx, look->secret, x->pod->namespace,
                            look->name, visit_one, &v);
    if (e == 0 || look->optional)
        return 0;
    return error_set(x->err, ENOENT,
                     "%s: is \"%s\": namespace %s has no %s of that name: "
                     "apply it",
                     look->path, look->name, x->pod->namespace,
                     look->secret ? "Secret" : "ConfigMap");
}

/* --- the variables ----------------------------------------------------------- */

static void put(struct podspec_raw *raw, struct raw_env env)
{
    for (size_t i = 0; i < raw->n_env; i++) {
        if (strcmp(raw->env[i].name, env.name) != 0)
            continue;
        free(raw->env[i].name);
        free(raw->env[i].value);
        raw->env[i] = env;
        return;
    }
    raw->env = xgrow(raw->env, raw->n_env, &raw->env_cap, sizeof *raw->env);
    raw->env[raw->n_env++] = env;
}

static bool is_env_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_ENV)
        return false;
    for (; *name; name++)
        if (*name <= ' ' || *name > '~' || *name == '=')
            return false;
    return true;
}

/* One value, or all, of a ConfigMap or Secret. */
struct taking {
    const char *key;    /* NULL: all */
    const char *prefix; /* of all */
    struct podspec_raw *raw;
    char *value; /* of the key; NULL not there */
    bool has_nul, too_many;
};

static bool take(void *arg, const char *key, const char *data, size_t size)
{
    struct taking *t = arg;
    if (t->key && strcmp(t->key, key) != 0)
        return false;
    if (memchr(data, '\0', size) || size > VALUE_MAX) {
        t->has_nul = t->key != NULL; /* of all, only those that can be */
        return t->has_nul;
    }
    if (t->key) {
        free(t->value);
        t->value = xstrndup(data, size);
        return true;
    }
    cleanup_free char *name = xasprintf("%s%s", t->prefix, key);
    if (!is_env_name(name))
        return false;
    t->too_many |= t->raw->n_env == PODSPEC_ENV_MAX;
    if (!t->too_many)
        put(t->raw, (struct raw_env){.name = steal(&name),
                                     .value = xstrndup(data, size)});
    return true;
}

/* envFrom[i] */
static int read_from(struct reading *x, const cJSON *json, const char *path,
                     struct podspec_raw *raw)
{
    struct reader r, ref;
    char where[READER_PATH_MAX];
    reader_init(&r, json, path, x->err);
    const char *prefix = reader_opt_string(&r, "prefix", 253);
    const cJSON *map = reader_opt_object(&r, "configMapRef");
    const cJSON *secret = reader_opt_object(&r, "secretRef");
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    if (!map == !secret)
        return reader_fail(&r, NULL,
                           "must have one of configMapRef and secretRef");
    reader_path(&r, map ? "configMapRef" : "secretRef", -1, where);
    reader_init(&ref, map ? map : secret, where, x->err);
    const char *name = reader_string(&ref, "name", 253);
    bool optional = reader_opt_bool(&ref, "optional", false);
    if (reader_finish_strict(&ref) < 0)
        return -EINVAL;
    reader_path(&ref, "name", -1, where);
    struct taking t = {.prefix = prefix ? prefix : "", .raw = raw};
    const struct lookup look = {secret != NULL, optional, name,
                                where,          take,     &t};
    int e = podspec_lookup(x, &look);
    if (e == 0 && t.too_many)
        e = reader_fail(&r, NULL, "makes more than %d variables",
                        PODSPEC_ENV_MAX);
    return e;
}

/* valueFrom.configMapKeyRef and secretKeyRef; `*ret_value` may stay NULL. */
static int read_key_ref(struct reading *x, struct reader *from,
                        const char *name, char **ret_value)
{
    struct reader r;
    char path[READER_PATH_MAX], at_name[READER_PATH_MAX];
    reader_path(from, name, -1, path);
    reader_init(&r, reader_object(from, name), path, x->err);
    const char *of = reader_string(&r, "name", 253);
    const char *key = reader_string(&r, "key", 253);
    bool optional = reader_opt_bool(&r, "optional", false);
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    reader_path(&r, "name", -1, at_name);
    struct taking t = {.key = key};
    const struct lookup look = {
        strcmp(name, "secretKeyRef") == 0, optional, of, at_name, take, &t};
    int e = podspec_lookup(x, &look);
    *ret_value = t.value;
    if (e < 0 || t.value)
        return e;
    if (t.has_nul)
        return reader_fail(&r, "key",
                           "is \"%s\": what it holds cannot be the value of a "
                           "variable: it has a NUL byte, or more than %d bytes",
                           key, VALUE_MAX);
    if (optional)
        return 0;
    if (x->source && x->source->each)
        return error_set(x->err, ENOENT,
                         "%s.key: is \"%s\": %s \"%s\" has none", path, key,
                         look.secret ? "Secret" : "ConfigMap", of);
    *ret_value = xstrdup(""); /* not known before it runs */
    return 0;
}

static int read_value_from(struct reading *x, struct reader *env,
                           char **ret_value)
{
    static const char *const refs[] = {"configMapKeyRef", "secretKeyRef",
                                       "fieldRef"};
    const cJSON *json = reader_object(env, "valueFrom"), *m;
    char path[READER_PATH_MAX];
    struct reader r;
    size_t found = 0, n = 0;
    if (!json)
        return -EINVAL;
    reader_path(env, "valueFrom", -1, path);
    reader_init(&r, json, path, x->err);
    cJSON_ArrayForEach(m, json)
    {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(refs); i++)
            if (strcmp(m->string, refs[i]) == 0 && !cJSON_IsNull(m)) {
                found = i;
                known = true;
                n++;
            }
        if (!known && !cJSON_IsNull(m))
            return member_refuse(&r, m->string,
                                 "only configMapKeyRef, secretKeyRef and "
                                 "fieldRef are known before a pod runs");
    }
    if (n != 1)
        return reader_fail(&r, NULL,
                           "must have one of configMapKeyRef, secretKeyRef and "
                           "fieldRef");
    if (found == 2)
        return podspec_field(x, &r, refs[found], false, ret_value);
    return read_key_ref(x, &r, refs[found], ret_value);
}

/* env[i] */
static int read_one(struct reading *x, const cJSON *json, const char *path,
                    struct podspec_raw *raw)
{
    struct reader r;
    char *value = NULL;
    if (!members_begin(&r, json, path, &env_rules, x->err))
        return -EINVAL;
    const char *name = reader_string(&r, "name", NAME_MAX_ENV);
    const char *text = reader_opt_string(&r, "value", VALUE_MAX);
    const cJSON *from = reader_opt_object(&r, "valueFrom");
    if (r.failed)
        return -EINVAL;
    if (!is_env_name(name))
        return member_refuse(&r, "name", "must be printable ASCII without '='");
    if (text && *text && from)
        return reader_fail(&r, NULL, "has value and valueFrom");
    int e = from ? read_value_from(x, &r, &value) : 0;
    if (e < 0 || (from && !value))
        return e;
    put(raw, (struct raw_env){.name = xstrdup(name),
                              .value = from ? value : xstrdup(text ? text : ""),
                              .expand = !from,
                              .shown = true});
    return 0;
}

int podspec_read_env(struct reading *x, const cJSON *container,
                     const char *path, struct podspec_raw *raw)
{
    struct reader r;
    int i = 0, e = 0;
    const cJSON *m;
    reader_init(&r, container, path, x->err);
    const cJSON *from = reader_opt_array(&r, "envFrom", PODSPEC_ENV_MAX);
    const cJSON *env = reader_opt_array(&r, "env", PODSPEC_ENV_MAX);
    if (r.failed)
        return -EINVAL;
    cJSON_ArrayForEach(m, from)
    {
        char where[READER_PATH_MAX];
        reader_path(&r, "envFrom", i++, where);
        if ((e = read_from(x, m, where, raw)) < 0)
            return e;
    }
    i = 0;
    cJSON_ArrayForEach(m, env)
    {
        char where[READER_PATH_MAX];
        reader_path(&r, "env", i++, where);
        if ((e = read_one(x, m, where, raw)) < 0)
            return e;
    }
    if (raw->n_env > PODSPEC_ENV_MAX)
        return reader_fail(&r, "env",
                           "makes, with envFrom, %zu variables; at most %d",
                           raw->n_env, PODSPEC_ENV_MAX);
    return 0;
}

/* --- "$(NAME)" ----------------------------------------------------------------- */

/* The variables that a text may name: the first `n`. */
struct scope {
    const struct podspec_container *c;
    const struct podspec_raw *raw;
    size_t n;
    bool all; /* also those of envFrom */
};

static const char *find_value(const struct scope *scope, const char *name,
                              size_t size)
{
    for (size_t i = scope->n; i-- > 0;) {
        const struct podspec_env *e = &scope->c->env[i];
        if ((scope->all || scope->raw->env[i].shown) &&
            strncmp(e->name, name, size) == 0 && e->name[size] == '\0')
            return e->value;
    }
    return NULL;
}

/* "$(NAME)" of a variable; "$$" is a "$"; what is not known stays as it is. */
static char *expand(const char *text, const struct scope *scope)
{
    struct str out = STR_INIT(PODSPEC_SIZE_MAX);
    for (const char *p = text; *p; p++) {
        const char *end = p[0] == '$' && p[1] == '(' ? strchr(p, ')') : NULL;
        const char *value =
            end ? find_value(scope, p + 2, (size_t)(end - p) - 2) : NULL;
        if (value) {
            str_add(&out, value);
            p = end;
        } else if (end) { /* as it is, whatever is in it */
            str_add_n(&out, p, (size_t)(end - p) + 1);
            p = end;
        } else {
            str_add_c(&out, *p);
            p += p[0] == '$' && p[1] == '$';
        }
    }
    return str_steal(&out);
}

void podspec_texts_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

static char **expand_list(char *const *list, size_t n,
                          const struct scope *scope)
{
    char **all = xcalloc(n + 1, sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = expand(list[i], scope);
    return all;
}

static void env_free(struct podspec_container *c)
{
    for (size_t i = 0; i < c->n_env; i++) {
        free(c->env[i].name);
        free(c->env[i].value);
    }
    free(c->env);
    c->env = NULL;
    c->n_env = 0;
}

void podspec_expand(struct podspec_container *c, const struct podspec_raw *raw)
{
    struct scope scope = {.c = c, .raw = raw};
    env_free(c);
    podspec_texts_free(c->command);
    podspec_texts_free(c->args);
    c->env = xcalloc(raw->n_env + 1, sizeof *c->env);
    for (; scope.n < raw->n_env; scope.n++) {
        const struct raw_env *e = &raw->env[scope.n];
        c->env[scope.n] = (struct podspec_env){
            .name = xstrdup(e->name),
            .value = e->expand ? expand(e->value, &scope) : xstrdup(e->value),
        };
        c->n_env = scope.n + 1;
    }
    scope.all = true;
    c->command = expand_list(raw->command, c->n_command, &scope);
    c->args = expand_list(raw->args, c->n_args, &scope);
}

void podspec_raw_fini(struct podspec_raw *raw)
{
    for (size_t i = 0; i < raw->n_env; i++) {
        free(raw->env[i].name);
        free(raw->env[i].value);
    }
    free(raw->env);
    podspec_texts_free(raw->command);
    podspec_texts_free(raw->args);
}

static void set_env(struct podspec_container *c, struct podspec_raw *raw,
                    const char *name, const char *value)
{
    for (size_t i = 0; i < raw->n_env; i++)
        if (strcmp(raw->env[i].name, name) == 0)
            return;
    raw->env = xgrow(raw->env, raw->n_env, &raw->env_cap, sizeof *raw->env);
    memmove(raw->env + 1, raw->env, raw->n_env * sizeof *raw->env);
    raw->env[0] = (struct raw_env){
        .name = xstrdup(name), .value = xstrdup(value), .shown = true};
    raw->n_env++;
    podspec_expand(c, raw);
}

void podspec_set_env(struct podspec *p, const char *name, const char *value)
{
    for (size_t i = 0; i < p->n_init; i++)
        set_env(&p->init[i], &p->raw[i], name, value);
    for (size_t i = 0; i < p->n_containers; i++)
        set_env(&p->containers[i], &p->raw[PODSPEC_CONTAINERS_MAX + i], name,
                value);
}
