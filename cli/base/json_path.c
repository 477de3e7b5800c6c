#include "cli/base/json_path.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "lib/base/mem.h"

enum { INDEX_DIGITS = 6 };

/* One step: ".name" or "[3]". */
struct step {
    const char *name;
    size_t size;
    int index; /* -1: by name */
};

/* The step at `p`; returns what follows, NULL when there is none. */
static const char *read_step(const char *p, struct step *ret_step)
{
    *ret_step = (struct step){.name = p + 1, .index = -1};
    if (*p == '.') {
        ret_step->size = strcspn(p + 1, ".[]{} ");
        return ret_step->size ? p + 1 + ret_step->size : NULL;
    }
    size_t n = *p == '[' ? strspn(p + 1, "0123456789") : 0;
    if (n == 0 || n > INDEX_DIGITS || p[1 + n] != ']')
        return NULL;
    ret_step->index = 0;
    for (size_t i = 1; i <= n; i++)
        ret_step->index = ret_step->index * 10 + (p[i] - '0');
    return p + 2 + n;
}

static bool is_end(const char *p, bool braces)
{
    return braces ? strcmp(p, "}") == 0 : !*p;
}

int json_path_check(const char *path, struct error *err)
{
    bool braces = *path == '{';
    const char *p = path + braces;
    struct step step;
    if (strlen(path) > JSON_PATH_MAX)
        return error_set(err, EINVAL, "has over %d bytes", JSON_PATH_MAX);
    do {
        const char *next = read_step(p, &step);
        if (!next)
            return error_set(err, EINVAL,
                             "\"%.80s\": byte %zu: a path must be as "
                             ".cards.idle or .pods[0].name",
                             path, (size_t)(p - path) + 1);
        p = next;
    } while (!is_end(p, braces));
    return 0;
}

const cJSON *json_path_find(const cJSON *json, const char *path)
{
    const char *p = path + (*path == '{');
    struct step step;
    while (json && *p && *p != '}') {
        if (!(p = read_step(p, &step)))
            return NULL;
        if (step.index >= 0) {
            json = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, step.index)
                                       : NULL;
            continue;
        }
        cleanup_free char *name = xstrndup(step.name, step.size);
        json = cJSON_GetObjectItemCaseSensitive(json, name);
    }
    return json;
}

bool json_scalar(const cJSON *json, struct str *out)
{
    if (cJSON_IsString(json))
        str_add(out, json->valuestring);
    else if (cJSON_IsBool(json))
        str_add(out, cJSON_IsTrue(json) ? "true" : "false");
    else if (cJSON_IsNumber(json))
        str_addf(out,
                 trunc(json->valuedouble) == json->valuedouble ? "%.0f"
                                                               : "%.10g",
                 json->valuedouble);
    else
        return false;
    return true;
}
