#include "tests/lib/http/openapi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/io/yaml.h"

static const char *const methods[] = {"get", "put", "post", "delete", "patch"};

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text(const cJSON *x)
{
    return cJSON_IsString(x) ? x->valuestring : "";
}

cJSON *openapi_read(const char *yaml)
{
    cJSON *json = NULL;
    struct error err = {0};
    if (yaml_parse(yaml, strlen(yaml), &json, &err) == 0)
        return json;
    fprintf(stderr, "openapi: %s\n", err.text);
    abort();
}

const cJSON *openapi_resolve(const cJSON *document, const cJSON *x)
{
    for (const cJSON *ref; (ref = member(x, "$ref"));) {
        cleanup_free char *path = xstrdup(text(ref));
        char *rest = path, *step = strsep(&rest, "/"); /* "#" */
        x = document;
        while ((step = strsep(&rest, "/")))
            x = member(x, step);
        if (!x) {
            fprintf(stderr, "openapi: %s: nothing is there\n", text(ref));
            abort();
        }
    }
    return x;
}

bool openapi_operation(const cJSON *document, size_t n,
                       struct operation *ret_operation)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, member(document, "paths"))
    {
        for (size_t m = 0; m < ARRAY_LEN(methods); m++) {
            const cJSON *json = member(item, methods[m]);
            if (!json || n-- > 0)
                continue;
            *ret_operation = (struct operation){document, item->string,
                                                methods[m], item, json};
            return true;
        }
    }
    return false;
}

const cJSON *openapi_parameter(const struct operation *op, size_t n)
{
    const cJSON *lists[] = {member(op->item, "parameters"),
                            member(op->json, "parameters")};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        size_t size = (size_t)cJSON_GetArraySize(lists[i]);
        if (n < size)
            return openapi_resolve(op->document,
                                   cJSON_GetArrayItem(lists[i], (int)n));
        n -= size;
    }
    return NULL;
}

const cJSON *openapi_constraint(const struct operation *op,
                                const cJSON *parameter, const char *name)
{
    return member(openapi_resolve(op->document, member(parameter, "schema")),
                  name);
}

/* --- schemas --------------------------------------------------------------- */

struct check {
    const cJSON *document;
    struct str *why;
};

static bool fail(const struct check *c, const char *path, const char *what,
                 const char *detail)
{
    if (c->why && !c->why->size)
        str_addf(c->why, "%s: %s%s", *path ? path : "the body", what, detail);
    return false;
}

static bool is_type(const char *type, const cJSON *v)
{
    return strcmp(type, "object") == 0    ? cJSON_IsObject(v)
           : strcmp(type, "array") == 0   ? cJSON_IsArray(v)
           : strcmp(type, "string") == 0  ? cJSON_IsString(v)
           : strcmp(type, "boolean") == 0 ? cJSON_IsBool(v)
           : strcmp(type, "number") == 0  ? cJSON_IsNumber(v)
           : strcmp(type, "integer") == 0
               ? cJSON_IsNumber(v) && floor(v->valuedouble) == v->valuedouble
               : false;
}

/* The schema of a member, also in the parts of an allOf. */
static const cJSON *find_property(const struct check *c, const cJSON *schema,
                                  const char *name)
{
    const cJSON *part, *s = openapi_resolve(c->document, schema);
    const cJSON *found = member(member(s, "properties"), name);
    if (found)
        return found;
    cJSON_ArrayForEach(part, member(s, "allOf"))
    {
        if ((found = find_property(c, part, name)))
            return found;
    }
    return NULL;
}

/* Does it describe members at all? */
static bool has_properties(const struct check *c, const cJSON *schema)
{
    const cJSON *part, *s = openapi_resolve(c->document, schema);
    if (member(s, "properties"))
        return true;
    cJSON_ArrayForEach(part, member(s, "allOf"))
    {
        if (has_properties(c, part))
            return true;
    }
    return false;
}

static bool fits(const struct check *c, const cJSON *schema, const cJSON *v,
                 const char *path);

static bool fits_members(const struct check *c, const cJSON *s, const cJSON *v,
                         const char *path)
{
    const cJSON *m, *more = member(s, "additionalProperties");
    bool described = has_properties(c, s);
    cJSON_ArrayForEach(m, v)
    {
        const cJSON *sub = find_property(c, s, m->string);
        cleanup_free char *at = xasprintf("%s.%s", path, m->string);
        if (!sub && cJSON_IsObject(more))
            sub = more;
        if (sub ? !fits(c, sub, m, at)
                : described && !cJSON_IsTrue(more) &&
                      !fail(c, at, "is not described", ""))
            return false;
    }
    return true;
}

static bool fits_items(const struct check *c, const cJSON *items,
                       const cJSON *v, const char *path)
{
    const cJSON *x;
    int i = 0;
    cJSON_ArrayForEach(x, v)
    {
        cleanup_free char *at = xasprintf("%s[%d]", path, i++);
        if (items && !fits(c, items, x, at))
            return false;
    }
    return true;
}

static bool fits_choice(const struct check *c, const cJSON *choices,
                        const cJSON *v, const char *path)
{
    const struct check quiet = {c->document, NULL};
    const cJSON *x;
    unsigned n = 0;
    cJSON_ArrayForEach(x, choices)
    {
        n += fits(&quiet, x, v, path);
    }
    return n == 1 || fail(c, path, "is not just one of oneOf", "");
}

static bool is_allowed(const cJSON *list, const cJSON *v)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        if (cJSON_Compare(x, v, true))
            return true;
    }
    return false;
}

/* All but the members: of a schema, or of a part of it. */
static bool fits_self(const struct check *c, const cJSON *s, const cJSON *v,
                      const char *path)
{
    const cJSON *x, *type = member(s, "type"), *list = member(s, "enum");
    const cJSON *least = member(s, "minimum"), *most = member(s, "maximum");
    if (type && !is_type(text(type), v))
        return fail(c, path, "is no ", text(type));
    if (list && !is_allowed(list, v))
        return fail(c, path, "is not of its enum: ", text(v));
    if (cJSON_IsNumber(v) && ((least && v->valuedouble < least->valuedouble) ||
                              (most && v->valuedouble > most->valuedouble)))
        return fail(c, path, "is out of range", "");
    cJSON_ArrayForEach(x, member(s, "required"))
    {
        if (cJSON_IsObject(v) && !member(v, text(x)))
            return fail(c, path, "lacks ", text(x));
    }
    cJSON_ArrayForEach(x, member(s, "allOf"))
    {
        if (!fits_self(c, openapi_resolve(c->document, x), v, path))
            return false;
    }
    return true;
}

static bool fits(const struct check *c, const cJSON *schema, const cJSON *v,
                 const char *path)
{
    const cJSON *s = openapi_resolve(c->document, schema);
    const cJSON *one = member(s, "oneOf");
    if (cJSON_IsNull(v) && cJSON_IsTrue(member(s, "nullable")))
        return true;
    if (one)
        return fits_choice(c, one, v, path);
    if (!fits_self(c, s, v, path))
        return false;
    if (cJSON_IsObject(v))
        return fits_members(c, s, v, path);
    return !cJSON_IsArray(v) || fits_items(c, member(s, "items"), v, path);
}

/* --- answers --------------------------------------------------------------- */

static bool fits_body(const struct operation *op, const cJSON *content,
                      const struct raw_reply *reply, struct str *why)
{
    char type[128];
    const struct check c = {op->document, why};
    (void)raw_header(reply, "Content-Type", type, sizeof type);
    type[strcspn(type, ";")] = '\0';
    const cJSON *media = member(content, type);
    if (!media)
        return fail(&c, "Content-Type", "is not described: ", type);
    if (strcmp(type, "application/json") != 0)
        return true;
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    if (json_parse(str_text(&reply->body), reply->body.size, &json, &err) < 0)
        return fail(&c, "", "is no JSON: ", err.text);
    return fits(&c, member(media, "schema"), json, "");
}

bool openapi_answers(const struct operation *op, const struct raw_reply *reply,
                     struct str *why)
{
    char status[16], etag[128];
    const struct check c = {op->document, why};
    str_reset(why);
    (void)snprintf(status, sizeof status, "%d", reply->status);
    const cJSON *answer = openapi_resolve(
        op->document, member(member(op->json, "responses"), status));
    if (!answer)
        return fail(&c, status, "is not described: ", str_text(&reply->body));
    const cJSON *content = member(answer, "content");
    if (*raw_header(reply, "ETag", etag, sizeof etag) && reply->status == 200 &&
        !member(member(answer, "headers"), "ETag"))
        return fail(&c, status, "ETag is not described", "");
    if (reply->body.size == 0)
        return !content || fail(&c, status, "has no body", "");
    return content ? fits_body(op, content, reply, why)
                   : fail(&c, status, "its body is not described", "");
}
