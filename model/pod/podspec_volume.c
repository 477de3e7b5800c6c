/* The volumes of a pod that reach a card: files whose contents are known, and
 * empty directories. */
#include <string.h>

#include "model/pod/podspec_private.h"

enum { MODE_FILES = 0644, MODE_MAX = 0777, SOURCES_MAX = 64 };

/* A volume being filled. */
struct filling {
    struct reading *x;
    struct podspec_volume *volume;
    size_t cap;
    uint32_t mode;      /* of files that say none */
    const cJSON *items; /* or NULL: all keys */
    const char *path;   /* of the source, for errors */
    bool *found;        /* which of the items were there */
    int e;              /* of the first file that does not fit */
};

static int add_file(struct filling *f, const char *path, uint32_t mode,
                    const char *data, size_t size)
{
    struct podspec_volume *v = f->volume;
    struct reading *x = f->x;
    if (++x->n_files > PODSPEC_FILES_MAX)
        return error_set(x->err, EINVAL,
                         "%s: more than %d files in the pod's volumes", f->path,
                         PODSPEC_FILES_MAX);
    if ((x->files_size += size) > PODSPEC_FILES_SIZE_MAX)
        return error_set(x->err, EFBIG,
                         "%s: with \"%s\" the pod's volumes have %zu bytes, "
                         "the limit is %d: take fewer keys, by items",
                         f->path, path, x->files_size, PODSPEC_FILES_SIZE_MAX);
    for (size_t i = 0; i < v->n_files; i++) {
        const char *other = v->files[i].path;
        size_t a = strlen(path), b = strlen(other), least = a < b ? a : b;
        const char *longer = a < b ? other : path;
        if (strncmp(path, other, least) == 0 &&
            (longer[least] == '\0' || longer[least] == '/'))
            return error_set(x->err, EINVAL,
                             "%s: \"%s\" and \"%s\" of volume %s are in each "
                             "other's way",
                             f->path, other, path, v->name);
    }
    v->files = xgrow(v->files, v->n_files, &f->cap, sizeof *v->files);
    v->files[v->n_files++] = (struct podspec_file){
        .path = xstrdup(path),
        .mode = mode,
        .data = size ? xmemdup(data, size) : NULL,
        .size = size,
    };
    return 0;
}

/* --- keys of ConfigMaps and Secrets ------------------------------------------ */

struct item {
    const char *key, *path;
    uint32_t mode;
};

/* items[i] */
static int read_item(struct filling *f, const cJSON *json, int i,
                     struct item *ret_item)
{
    struct reader r;
    char where[READER_PATH_MAX];
    (void)snprintf(where, sizeof where, "%s.items[%d]", f->path, i);
    reader_init(&r, json, where, f->x->err);
    const struct item item = {
        .key = reader_string(&r, "key", 253),
        .path = reader_string(&r, "path", 4096),
        .mode = (uint32_t)reader_opt_int(&r, "mode", 0, MODE_MAX, f->mode),
    };
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    if (!is_inner_path(item.path) || !is_clean(item.path))
        return member_refuse(&r, "path",
                             "must be relative, without \".\" and \"..\"");
    *ret_item = item;
    return 0;
}

static bool visit_key(void *arg, const char *key, const char *data, size_t size)
{
    struct filling *f = arg;
    bool taken = false;
    int i = 0;
    const cJSON *m;
    if (f->e < 0)
        return false;
    if (!f->items) {
        f->e = is_inner_path(key) && !strchr(key, '/')
                   ? add_file(f, key, f->mode, data, size)
                   : error_set(f->x->err, EINVAL,
                               "%s: key \"%s\" cannot name a file", f->path,
                               key);
        return true;
    }
    cJSON_ArrayForEach(m, f->items)
    {
        struct item item;
        int at = i++;
        f->e = read_item(f, m, at, &item);
        if (f->e == 0 && strcmp(item.key, key) == 0) {
            f->found[at] = taken = true;
            f->e = add_file(f, item.path, item.mode, data, size);
        }
        if (f->e < 0)
            break;
    }
    return taken;
}

static int check_items(struct filling *f, bool optional)
{
    int i = 0;
    const cJSON *m;
    cJSON_ArrayForEach(m, f->items)
    {
        struct item item;
        int at = i++, e = read_item(f, m, at, &item);
        if (e < 0)
            return e;
        if (!f->found[at] && !optional && f->x->source)
            return error_set(f->x->err, ENOENT,
                             "%s.items[%d].key: is \"%s\": there is no such "
                             "key",
                             f->path, at, item.key);
    }
    return 0;
}

/* A configMap or secret, of a volume or of a projection; its name is in
 * member `name`. */
static int fill_keys(struct filling *f, const cJSON *json, const char *name,
                     bool secret, bool has_mode)
{
    struct reader r;
    char where[READER_PATH_MAX];
    bool found[SOURCES_MAX] = {false};
    reader_init(&r, json, f->path, f->x->err);
    const char *of = reader_string(&r, name, 253);
    bool optional = reader_opt_bool(&r, "optional", false);
    f->items = reader_opt_array(&r, "items", SOURCES_MAX);
    if (has_mode)
        f->mode = (uint32_t)reader_opt_int(&r, "defaultMode", 0, MODE_MAX,
                                           MODE_FILES);
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    if (f->items && !f->items->child)
        f->items = NULL;
    f->found = found;
    reader_path(&r, name, -1, where);
    const struct lookup look = {secret, optional, of, where, visit_key, f};
    int e = podspec_lookup(f->x, &look);
    if (e == 0)
        e = f->e;
    return e == 0 ? check_items(f, optional) : e;
}

/* --- downwardAPI ---------------------------------------------------------------- */

static int fill_fields(struct filling *f, const cJSON *json, bool has_mode)
{
    struct reader r;
    const cJSON *m;
    int i = 0;
    reader_init(&r, json, f->path, f->x->err);
    const cJSON *items = reader_opt_array(&r, "items", SOURCES_MAX);
    if (has_mode)
        f->mode = (uint32_t)reader_opt_int(&r, "defaultMode", 0, MODE_MAX,
                                           MODE_FILES);
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    cJSON_ArrayForEach(m, items)
    {
        cleanup_free char *text = NULL;
        char where[READER_PATH_MAX];
        struct reader item;
        reader_path(&r, "items", i++, where);
        reader_init(&item, m, where, f->x->err);
        const char *path = reader_string(&item, "path", 4096);
        uint32_t mode = (uint32_t)reader_opt_int(&item, "mode", 0, MODE_MAX,
                                                 f->mode);
        if (reader_opt_object(&item, "resourceFieldRef"))
            return member_refuse(&item, "resourceFieldRef",
                                 "only a fieldRef is known before a pod runs");
        int e = item.failed
                    ? -EINVAL
                    : podspec_field(f->x, &item, "fieldRef", true, &text);
        if (e < 0 || (e = reader_finish_strict(&item)) < 0)
            return e;
        if (!is_inner_path(path) || !is_clean(path))
            return member_refuse(&item, "path",
                                 "must be relative, without \".\" and \"..\"");
        e = add_file(f, path, mode, text, strlen(text));
        if (e < 0)
            return e;
    }
    return 0;
}

/* --- projected -------------------------------------------------------------------- */

static int fill_source(struct filling *f, const cJSON *json, const char *path)
{
    struct reader r;
    char where[READER_PATH_MAX];
    if (!members_begin(&r, json, path, &projection_rules, f->x->err))
        return -EINVAL;
    const cJSON *map = reader_opt_object(&r, "configMap");
    const cJSON *secret = reader_opt_object(&r, "secret");
    const cJSON *fields = reader_opt_object(&r, "downwardAPI");
    if (r.failed)
        return -EINVAL;
    if (!!map + !!secret + !!fields != 1)
        return reader_fail(&r, NULL,
                           "must have one of configMap, secret and "
                           "downwardAPI");
    reader_path(&r,
                map      ? "configMap"
                : secret ? "secret"
                         : "downwardAPI",
                -1, where);
    f->path = where;
    return fields ? fill_fields(f, fields, false)
                  : fill_keys(f, map ? map : secret, "name", secret != NULL,
                              false);
}

static int fill_projected(struct filling *f, const cJSON *json,
                          const char *path)
{
    struct reader r;
    const cJSON *m;
    int i = 0;
    reader_init(&r, json, path, f->x->err);
    const cJSON *sources = reader_opt_array(&r, "sources", SOURCES_MAX);
    f->mode = (uint32_t)reader_opt_int(&r, "defaultMode", 0, MODE_MAX,
                                       MODE_FILES);
    if (reader_finish_strict(&r) < 0)
        return -EINVAL;
    cJSON_ArrayForEach(m, sources)
    {
        char where[READER_PATH_MAX];
        reader_path(&r, "sources", i++, where);
        int e = fill_source(f, m, where);
        if (e < 0)
            return e;
    }
    return 0;
}

/* --- volumes ------------------------------------------------------------------------ */

static int read_empty(struct reading *x, const cJSON *json, const char *path,
                      struct podspec_volume *v)
{
    struct reader r;
    reader_init(&r, json, path, x->err);
    const char *medium = reader_opt_string(&r, "medium", 64);
    if (medium && strcmp(medium, "Memory") == 0)
        v->medium = PODSPEC_MEMORY;
    else if (medium && podspec_hugepages_medium(medium, &v->page))
        v->medium = PODSPEC_HUGEPAGES;
    else if (medium && *medium)
        return member_refuse(&r, "medium",
                             "must be \"Memory\", \"HugePages\", or "
                             "\"HugePages-SIZE\" as in HugePages-2Mi");
    if (cJSON_GetObjectItemCaseSensitive(json, "sizeLimit"))
        r.seen[r.n_seen++] = "sizeLimit"; /* nobody watches it */
    return reader_finish_strict(&r);
}

static int read_volume(struct reading *x, const cJSON *json, const char *path,
                       struct podspec_volume *v)
{
    static const char *const kinds[] = {"configMap", "secret", "projected",
                                        "downwardAPI", "emptyDir"};
    struct filling f = {.x = x, .volume = v, .mode = MODE_FILES};
    const cJSON *found = NULL;
    char where[READER_PATH_MAX];
    struct reader r;
    size_t kind = 0;
    unsigned n = 0;
    if (!members_begin(&r, json, path, &volume_rules, x->err))
        return -EINVAL;
    const char *name = reader_string(&r, "name", 253);
    if (r.failed)
        return -EINVAL;
    if (!is_dns_label(name, 63))
        return member_refuse(&r, "name",
                             "must be 1 to 63 of a-z, 0-9 and '-', no '-' at "
                             "an end");
    v->name = xstrdup(name);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const cJSON *m = reader_opt_object(&r, kinds[i]);
        if (m) {
            found = m;
            kind = i;
            n++;
        }
    }
    if (r.failed)
        return -EINVAL;
    if (n != 1)
        return reader_fail(&r, NULL,
                           "must have one of configMap, secret, projected, "
                           "downwardAPI and emptyDir");
    v->kind = kind == 4 ? PODSPEC_EMPTY : PODSPEC_FILES;
    reader_path(&r, kinds[kind], -1, where);
    f.path = where;
    switch (kind) {
    case 0:
        return fill_keys(&f, found, "name", false, true);
    case 1:
        return fill_keys(&f, found, "secretName", true, true);
    case 2:
        return fill_projected(&f, found, where);
    case 3:
        return fill_fields(&f, found, true);
    default:
        return read_empty(x, found, where, v);
    }
}

int podspec_read_volumes(struct reading *x, const cJSON *list)
{
    struct podspec *p = x->pod;
    const cJSON *m;
    if (!list)
        return 0;
    p->volumes = xcalloc((size_t)cJSON_GetArraySize(list) + 1,
                         sizeof *p->volumes);
    cJSON_ArrayForEach(m, list)
    {
        char path[READER_PATH_MAX];
        size_t at = p->n_volumes++;
        (void)snprintf(path, sizeof path, "spec.volumes[%zu]", at);
        int e = read_volume(x, m, path, &p->volumes[at]);
        if (e < 0)
            return e;
        for (size_t i = 0; i < at; i++)
            if (strcmp(p->volumes[i].name, p->volumes[at].name) == 0)
                return error_set(x->err, EINVAL,
                                 "%s.name: is \"%s\": another volume has that "
                                 "name",
                                 path, p->volumes[at].name);
    }
    return 0;
}
