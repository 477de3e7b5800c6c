/* The attributes and capacities of one device, as DRA allows them. */
#include "model/slice/slice_private.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const value_members[] = {
    [VALUE_TEXT] = "string", [VALUE_INT] = "int", [VALUE_BOOL] = "bool"};

int slice_fail(const struct slice_values *v, const char *map, const char *name,
               const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return error_set(v->err, EINVAL, "spec.devices[%zu].%s[\"%.100s\"]%s",
                     v->index, map, name, text);
}

/* A C identifier of at most 32 characters, with a domain of at most 63
 * before it or none. */
static bool is_qualified_name(const char *name)
{
    const char *slash = strchr(name, '/');
    const char *id = slash ? slash + 1 : name;
    if (slash && ((size_t)(slash - name) > SLICE_DOMAIN_MAX ||
                  !slice_is_subdomain(name, (size_t)(slash - name))))
        return false;
    size_t size = strlen(id);
    if (size == 0 || size > SLICE_IDENTIFIER_MAX ||
        isdigit((unsigned char)id[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)id[i]) && id[i] != '_')
            return false;
    return true;
}

static const char *json_kind(const cJSON *json)
{
    return cJSON_IsString(json)   ? "string"
           : cJSON_IsNumber(json) ? "int"
           : cJSON_IsBool(json)   ? "bool"
                                  : NULL;
}

static const char *const types[] = {"string", "int",     "bool",  "version",
                                    "ints",   "strings", "bools", "versions"};

static bool is_type(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(name, types[i]) == 0)
            return true;
    return false;
}

/* The one member that holds an attribute's value; NULL and an error when
 * there is none, or several, or it is wrong. */
static const cJSON *read_value(const struct slice_values *v, const cJSON *json)
{
    const cJSON *found = NULL, *only = json->child;
    if (cJSON_IsObject(json) && only && !only->next && !cJSON_IsNull(only))
        found = is_type(only->string) ? only : NULL;
    else if (cJSON_IsObject(json))
        for (size_t i = 0; i < ARRAY_LEN(types); i++) {
            const cJSON *m = cJSON_GetObjectItemCaseSensitive(json, types[i]);
            if (!m || cJSON_IsNull(m))
                continue;
            if (found) {
                (void)slice_fail(v, "attributes", json->string,
                                 ": has both %s and %s, must have one value",
                                 found->string, types[i]);
                return NULL;
            }
            found = m;
        }
    if (!found) {
        (void)slice_fail(v, "attributes", json->string,
                         ": must have one of int, bool, string or version");
        return NULL;
    }
    bool list = found->string[strlen(found->string) - 1] == 's';
    const char *want = strcmp(found->string, "version") == 0 ? "string"
                                                             : found->string;
    const char *have = json_kind(found);
    if (list ? !cJSON_IsArray(found) : !have || strcmp(have, want) != 0) {
        (void)slice_fail(v, "attributes", json->string,
                         ".%s: has the wrong type", found->string);
        return NULL;
    }
    if (cJSON_IsString(found) && strlen(found->valuestring) > SLICE_TEXT_MAX) {
        (void)slice_fail(v, "attributes", json->string,
                         ".%s: has %zu bytes, the limit is %d", found->string,
                         strlen(found->valuestring), SLICE_TEXT_MAX);
        return NULL;
    }
    return found;
}

/* Which attribute of Biga a name is, and which part of a list; false: none. */
static bool find_attribute(const char *name, enum attribute_id *ret_id,
                           unsigned *ret_part)
{
    const size_t tell = strlen(SLICE_DOMAIN); /* the byte behind it */
    if (strlen(name) <= tell)
        return false; /* all of ours are longer */
    for (enum attribute_id id = 0; id < ATTRIBUTE_COUNT; id++) {
        const struct attribute *a = &slice_attributes[id];
        if (name[tell] != a->name[tell])
            continue;
        size_t size = strlen(a->name);
        if (strncmp(name, a->name, size) != 0)
            continue;
        unsigned part = 1;
        if (name[size] != '\0') {
            char *end;
            unsigned long n = strtoul(name + size, &end, 10);
            if (!isdigit((unsigned char)name[size]) || name[size] == '0' ||
                *end != '\0' || n < 2 || n > a->parts)
                continue;
            part = (unsigned)n;
        }
        *ret_id = id;
        *ret_part = part;
        return true;
    }
    return false;
}

static int keep_value(struct slice_values *v, const char *name,
                      const cJSON *value)
{
    enum attribute_id id;
    unsigned part;
    if (!find_attribute(name, &id, &part)) {
        if (strncmp(name, SLICE_DOMAIN, strlen(SLICE_DOMAIN)) == 0)
            return slice_fail(v, "attributes", name,
                              ": no such attribute in schema/slice.md");
        return 0; /* somebody else's */
    }
    const struct attribute *a = &slice_attributes[id];
    if (strcmp(value->string, value_members[a->type]) != 0)
        return slice_fail(v, "attributes", name, ": is of type %s, must be %s",
                          value->string, value_members[a->type]);
    v->present[id] = true;
    if (a->type == VALUE_TEXT) {
        v->parts[id][part - 1] = value->valuestring;
    } else if (a->type == VALUE_BOOL) {
        v->number[id] = cJSON_IsTrue(value);
    } else {
        double d = value->valuedouble;
        int max = id == ATTRIBUTE_NUMA ? INT16_MAX : INT32_MAX;
        if (!(d >= 0 && d <= max) || d != (double)(int64_t)d)
            return slice_fail(v, "attributes", name,
                              ".int: is %.17g, must be an integer from 0 to %d",
                              d, max);
        v->number[id] = (int64_t)d;
    }
    return 0;
}

static int collect_attributes(struct slice_values *v, const cJSON *attributes)
{
    const cJSON *json;
    cJSON_ArrayForEach(json, attributes)
    {
        if (!is_qualified_name(json->string))
            return slice_fail(
                v, "attributes", json->string,
                ": must be a C identifier of at most %d characters, "
                "after a domain of at most %d and '/' or alone",
                SLICE_IDENTIFIER_MAX, SLICE_DOMAIN_MAX);
        const cJSON *value = read_value(v, json);
        if (!value)
            return -EINVAL;
        int r = keep_value(v, json->string, value);
        if (r < 0)
            return r;
    }
    return 0;
}

static int keep_capacity(struct slice_values *v, const char *name,
                         const char *quantity)
{
    for (enum capacity_id id = 0; id < CAPACITY_COUNT; id++)
        if (strcmp(name, slice_capacities[id].name) == 0) {
            v->capacity[id] = quantity;
            return 0;
        }
    if (strncmp(name, SLICE_DOMAIN, strlen(SLICE_DOMAIN)) == 0)
        return slice_fail(v, "capacity", name,
                          ": no such capacity in schema/slice.md");
    return 0;
}

static int collect_capacity(struct slice_values *v, const cJSON *capacity)
{
    const cJSON *json;
    cJSON_ArrayForEach(json, capacity)
    {
        if (!is_qualified_name(json->string))
            return slice_fail(
                v, "capacity", json->string,
                ": must be a C identifier of at most %d characters, "
                "after a domain of at most %d and '/' or alone",
                SLICE_IDENTIFIER_MAX, SLICE_DOMAIN_MAX);
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, "value");
        if (!cJSON_IsObject(json) || !cJSON_IsString(value))
            return slice_fail(
                v, "capacity", json->string,
                ".value: must be a string like \"16\" or \"32Gi\"");
        int r = keep_capacity(v, json->string, value->valuestring);
        if (r < 0)
            return r;
    }
    return 0;
}

int slice_collect(struct slice_values *v, const cJSON *attributes,
                  const cJSON *capacity)
{
    int r = collect_attributes(v, attributes);
    return r < 0 ? r : collect_capacity(v, capacity);
}
