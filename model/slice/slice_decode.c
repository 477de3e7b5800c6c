/* Reading one ResourceSlice: the object around the devices.  The devices are
 * read by slice_device.c. */
#include "model/slice/slice.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/json.h"
#include "model/slice/slice_private.h"

bool slice_is_label(const char *text, size_t size)
{
    if (size == 0 || size > 63 || text[0] == '-' || text[size - 1] == '-')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!islower((unsigned char)text[i]) &&
            !isdigit((unsigned char)text[i]) && text[i] != '-')
            return false;
    return true;
}

bool slice_is_subdomain(const char *text, size_t size)
{
    for (size_t begin = 0;;) {
        const char *dot = memchr(text + begin, '.', size - begin);
        size_t end = dot ? (size_t)(dot - text) : size;
        if (!slice_is_label(text + begin, end - begin))
            return false;
        if (!dot)
            return true;
        begin = end + 1;
    }
}

/* A member that is exactly one text; the items of a list need not say what
 * they are. */
static void read_fixed(struct reader *r, const char *name, const char *only,
                       bool required)
{
    const char *text = required ? reader_string(r, name, SLICE_BODY_MAX)
                                : reader_opt_string(r, name, SLICE_BODY_MAX);
    if (text && strcmp(text, only) != 0)
        (void)reader_fail(r, name, "is \"%.80s\", must be \"%s\"", text, only);
}

static const char *read_subdomain(struct reader *r, const char *name,
                                  struct arena *arena)
{
    const char *text = reader_string(r, name, SLICE_NAME_MAX);
    if (!text)
        return NULL;
    size_t size = strlen(text);
    if (!slice_is_subdomain(text, size)) {
        (void)reader_fail(r, name,
                          "is \"%.80s\", must be a DNS subdomain (lower-case "
                          "letters, digits, '-' and '.')",
                          text);
        return NULL;
    }
    return arena_strndup(arena, text, size);
}

/* --- metadata ------------------------------------------------------------ */

const char *slice_check_boot_id(const char *text)
{
    size_t size = strlen(text);
    if (size == 0 || size > SLICE_BOOT_ID_MAX)
        return "must have 1 to 63 characters";
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
            return "may have letters, digits, '-', '.' and '_'";
    return NULL;
}

const char *slice_check_hash(const char *text)
{
    size_t size = strspn(text, "0123456789abcdef");
    return size == 16 && text[16] == '\0' ? NULL
                                          : "must be 16 hexadecimal digits";
}

static const char *check_runs(const char *text)
{
    static const char wrong[] =
        "must be \"none\", or \"host\" and ids of cards "
        "with a space before each";
    size_t size = strcspn(text, " ");
    if (strcmp(text, SLICE_RUNS_NONE) == 0)
        return NULL;
    if (strlen(text) > SLICE_RUNS_MAX)
        return "is too long";
    if (size != strlen(SLICE_RUNS_HOST) ||
        strncmp(text, SLICE_RUNS_HOST, size) != 0)
        return wrong;
    while (*(text += size)) {
        size = strcspn(++text, " ");
        if (!slice_is_label(text, size))
            return wrong;
    }
    return NULL;
}

/* Annotation keys have dots and slashes, so the path shows them quoted. */
static int read_annotation(const cJSON *annotations, const char *key,
                           const char *(*check)(const char *),
                           const char **ret_text, struct error *err)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(annotations, key);
    if (!m || cJSON_IsNull(m))
        return 0;
    if (!cJSON_IsString(m))
        return error_set(err, EINVAL,
                         "metadata.annotations[\"%s\"]: must be a string", key);
    const char *why = check(m->valuestring);
    if (why)
        return error_set(err, EINVAL,
                         "metadata.annotations[\"%s\"]: is \"%.80s\", %s", key,
                         m->valuestring, why);
    *ret_text = m->valuestring;
    return 0;
}

static int read_metadata(const cJSON *json, struct slice *s, struct error *err)
{
    struct reader r;
    reader_init(&r, json, "metadata", err);
    s->name = read_subdomain(&r, "name", &s->arena);
    const cJSON *annotations = reader_opt_object(&r, "annotations");
    int status = reader_finish_lenient(&r);
    if (status < 0)
        return status;

    const char *boot_id = NULL, *hash = "", *runs = "";
    status = read_annotation(annotations, SLICE_ANNOTATION_BOOT_ID,
                             slice_check_boot_id, &boot_id, err);
    if (status < 0)
        return status;
    if (!boot_id)
        return error_set(err, EINVAL,
                         "metadata.annotations[\"%s\"]: required member "
                         "missing",
                         SLICE_ANNOTATION_BOOT_ID);
    status = read_annotation(annotations, SLICE_ANNOTATION_HASH,
                             slice_check_hash, &hash, err);
    if (status == 0)
        status = read_annotation(annotations, SLICE_ANNOTATION_RUNS, check_runs,
                                 &runs, err);
    if (status < 0)
        return status;
    memcpy(s->epoch.boot_id, boot_id, strlen(boot_id) + 1);
    s->hash = arena_strndup(&s->arena, hash, strlen(hash));
    s->runs = arena_strndup(&s->arena, runs, strlen(runs));
    return 0;
}

/* --- spec ---------------------------------------------------------------- */

static int read_pool(const cJSON *json, struct slice *s, struct error *err)
{
    struct reader r;
    reader_init(&r, json, "spec.pool", err);
    s->pool = read_subdomain(&r, "name", &s->arena);
    s->epoch.generation = reader_int(&r, "generation", 1, INT64_C(1) << 53);
    s->pool_count = (size_t)reader_int(&r, "resourceSliceCount", 1,
                                       SLICE_POOL_SLICES_MAX);
    if (s->pool && strcmp(s->pool, s->node) != 0)
        return reader_fail(&r, "name",
                           "is \"%.80s\", must be spec.nodeName (\"%.80s\")",
                           s->pool, s->node);
    return reader_finish_lenient(&r);
}

/* Other ways to say where devices are, which are refused: a slice of Biga
 * belongs to one node. */
static void refuse_elsewhere(struct reader *r, const cJSON *spec)
{
    static const char *const others[] = {
        "nodeSelector", "allNodes", "perDeviceNodeSelection", "sharedCounters"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(spec, others[i]);
        if (m && !cJSON_IsNull(m) && !cJSON_IsFalse(m))
            (void)reader_fail(r, others[i],
                              "must be absent: a slice of " SLICE_DRIVER
                              " lists the devices of one spec.nodeName");
    }
}

static int read_devices(const cJSON *list, struct slice *s, struct error *err)
{
    const cJSON *json;
    size_t n = list ? (size_t)cJSON_GetArraySize(list) : 0;
    s->devices = arena_alloc(&s->arena, (n + 1) * sizeof *s->devices);
    s->distances = arena_alloc(&s->arena, (n + 1) * sizeof *s->distances);
    cJSON_ArrayForEach(json, list)
    {
        int r = slice_read_device(json, s, err);
        if (r == 0)
            r = slice_read_given(json, s, err);
        if (r < 0)
            return r;
        const char *id = s->devices[s->n_devices].d.id;
        for (size_t i = 0; i < s->n_devices; i++)
            if (strcmp(s->devices[i].d.id, id) == 0)
                return error_set(err, EINVAL,
                                 "spec.devices[%zu].name: is \"%s\", as "
                                 "spec.devices[%zu].name is",
                                 s->n_devices, id, i);
        s->n_devices++;
    }
    return 0;
}

static int read_spec(const cJSON *json, struct slice *s, struct error *err)
{
    struct reader r;
    reader_init(&r, json, "spec", err);
    s->node = read_subdomain(&r, "nodeName", &s->arena);
    refuse_elsewhere(&r, json);
    const cJSON *pool = reader_object(&r, "pool");
    const cJSON *devices = reader_opt_array(&r, "devices",
                                            SLICE_DEVICES_READ_MAX);
    int status = reader_finish_lenient(&r);
    if (status < 0)
        return status;
    status = read_pool(pool, s, err);
    return status < 0 ? status : read_devices(devices, s, err);
}

/* Whose slice it is comes first: of another driver's nothing else would be
 * as expected. */
static int read_slice(const cJSON *json, struct slice *s, struct error *err)
{
    struct reader r, spec;
    reader_init(&r, json, "", err);
    read_fixed(&r, "apiVersion", SLICE_API_VERSION, false);
    read_fixed(&r, "kind", "ResourceSlice", false);
    const cJSON *spec_json = reader_object(&r, "spec");
    const cJSON *metadata = reader_object(&r, "metadata");
    int status = reader_finish_lenient(&r);
    if (status < 0)
        return status;
    reader_init(&spec, spec_json, "spec", err);
    read_fixed(&spec, "driver", SLICE_DRIVER, true);
    status = reader_finish_lenient(&spec);
    if (status < 0)
        return status;
    status = read_metadata(metadata, s, err);
    return status < 0 ? status : read_spec(spec_json, s, err);
}

int slice_decode(const char *json, size_t size, struct slice **ret_slice,
                 struct error *err)
{
    if (size > SLICE_BODY_MAX)
        return error_set(err, EINVAL, "has %zu bytes, the limit is %d", size,
                         SLICE_BODY_MAX);
    cleanup_free cJSON *parsed = NULL;
    int r = json_parse_flat(json, size, &parsed, err);
    if (r < 0)
        return r;

    cleanup_with(slice) struct slice *s = xcalloc(1, sizeof *s);
    atomic_init(&s->refs, 1);
    r = read_slice(parsed, s, err);
    if (r < 0)
        return r;
    *ret_slice = steal(&s);
    return 0;
}
