#include "advertiser/act/pod/files.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/json.h"

/* base64_decode() wants room for whole groups of three */
enum { FILE_SIZE_MAX = PODSPEC_FILES_SIZE_MAX + 2 };

static int check_item(const cJSON *item, int at, struct error *err)
{
    const char *kind =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "kind"));
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(item, "data");
    const cJSON *value;
    if (!kind ||
        (strcmp(kind, "ConfigMap") != 0 && strcmp(kind, "Secret") != 0))
        return error_set(err, EINVAL,
                         "files[%d].kind: neither ConfigMap nor Secret", at);
    if (!cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name")))
        return error_set(err, EINVAL, "files[%d].name: no text", at);
    cJSON_ArrayForEach(value, data)
    {
        const char *text = cJSON_GetStringValue(value);
        cleanup_str struct str bytes = STR_INIT(FILE_SIZE_MAX);
        if (!text || !base64_decode(text, strlen(text), &bytes) ||
            bytes.size > PODSPEC_FILES_SIZE_MAX)
            return error_set(err, EINVAL,
                             "files[%d].data.%s: not base64 of at most %d "
                             "bytes",
                             at, value->string ? value->string : "",
                             PODSPEC_FILES_SIZE_MAX);
    }
    return 0;
}

int files_init(struct files *f, const char *text, size_t size,
               struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *item;
    int at = 0;
    *f = (struct files){0};
    if (size == 0)
        return 0;
    int e = json_parse(text, size, &json, err);
    if (e == 0 && !cJSON_IsArray(json))
        e = error_set(err, EINVAL, "files: not a list");
    cJSON_ArrayForEach(item, json) if (e == 0) e = check_item(item, at++, err);
    if (e == 0)
        f->json = steal(&json);
    return e;
}

void files_fini(struct files *f)
{
    cJSON_Delete(f->json);
    f->json = NULL;
}

static bool is(const cJSON *item, const char *member, const char *text)
{
    const char *value =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, member));
    return value && strcmp(value, text) == 0;
}

static int each(void *ctx, bool secret, const char *namespace, const char *name,
                void (*visit)(void *arg, const char *key, const char *data,
                              size_t size),
                void *arg)
{
    const struct files *f = ctx;
    const cJSON *item, *value;
    (void)namespace; /* they are all of the pod's */
    cJSON_ArrayForEach(item, f->json)
    {
        if (!is(item, "kind", secret ? "Secret" : "ConfigMap") ||
            !is(item, "name", name))
            continue;
        cJSON_ArrayForEach(value,
                           cJSON_GetObjectItemCaseSensitive(item, "data"))
        {
            const char *text = cJSON_GetStringValue(value);
            cleanup_str struct str bytes = STR_INIT(FILE_SIZE_MAX);
            if (text && base64_decode(text, strlen(text), &bytes))
                visit(arg, value->string, str_text(&bytes), bytes.size);
        }
        return 0;
    }
    return -ENOENT;
}

struct podspec_source files_source(struct files *f)
{
    return (struct podspec_source){.each = each, .ctx = f};
}
