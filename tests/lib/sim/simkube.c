#include "tests/lib/sim/simkube.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"

#define NODES "/api/v1/nodes"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/biga-nodes/leases"

struct object {
    char *path;
    cJSON *json;
};

struct simkube {
    void (*changed)(void *ctx);
    void *ctx;
    simkube_watch_f *watch;
    void *watch_ctx;
    struct object *objects;
    size_t n, cap;
    uint64_t versions, uids;
    enum simkube_given given;
    char refuse_method[8], refuse_part[64];
    long refuse_status;
};

struct simkube *simkube_create(void (*changed)(void *ctx), void *ctx)
{
    struct simkube *s = xcalloc(1, sizeof *s);
    s->changed = changed;
    s->ctx = ctx;
    return s;
}

void simkube_destroy(struct simkube *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->objects[i].path);
        cJSON_Delete(s->objects[i].json);
    }
    free(s->objects);
    free(s);
}

void simkube_watch(struct simkube *s, simkube_watch_f *watch, void *ctx)
{
    s->watch = watch;
    s->watch_ctx = ctx;
}

static void notify(struct simkube *s)
{
    if (s->changed)
        s->changed(s->ctx);
}

/* --- objects ------------------------------------------------------------ */

static cJSON *meta_of(cJSON *object)
{
    return cJSON_GetObjectItemCaseSensitive(object, "metadata");
}

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text ? text : "";
}

static void set_text(cJSON *object, const char *name, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    cJSON_AddStringToObject(object, name, text);
}

static void set_version(struct simkube *s, cJSON *object)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, ++s->versions);
    set_text(meta_of(object), "resourceVersion", text);
}

static void tell_watch(struct simkube *s, const struct object *o, bool gone)
{
    const struct publish_notice notice = {
        .name = text_of(meta_of(o->json), "name"),
        .version = gone ? "" : text_of(meta_of(o->json), "resourceVersion"),
        .gone = gone};
    if (s->watch && strstr(o->path, PUBLISH_COLLECTION "/"))
        s->watch(s->watch_ctx, &notice);
}

static void tell(struct simkube *s, const struct object *o)
{
    tell_watch(s, o, false);
    notify(s);
}

static struct object *find(struct simkube *s, const char *path)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->objects[i].path, path) == 0)
            return &s->objects[i];
    return NULL;
}

static void drop(struct simkube *s, struct object *o)
{
    tell_watch(s, o, true);
    free(o->path);
    cJSON_Delete(o->json);
    *o = s->objects[--s->n];
}

static struct object *insert(struct simkube *s, const char *path, cJSON *json)
{
    char uid[24];
    s->objects = xgrow(s->objects, s->n, &s->cap, sizeof *s->objects);
    struct object *o = &s->objects[s->n++];
    *o = (struct object){.path = xstrdup(path), .json = json};
    (void)snprintf(uid, sizeof uid, "uid-%" PRIu64, ++s->uids);
    set_text(meta_of(json), "uid", uid);
    set_version(s, json);
    return o;
}

/* --- answers ------------------------------------------------------------ */

static void answer(struct http_answer *a, long status, const cJSON *json)
{
    a->status = status;
    str_reset(&a->body);
    char *text = cJSON_PrintUnformatted(json);
    str_add(&a->body, text);
    free(text);
}

static void fail(struct http_answer *a, long status, const char *message)
{
    a->status = status;
    str_reset(&a->body);
    str_addf(&a->body, "{\"kind\":\"Status\",\"message\":\"%s\"}", message);
}

/* The items of a list do not say what they are. */
static void list(struct simkube *s, const char *path, struct http_answer *a)
{
    char node[256] = "";
    (void)sscanf(strchr(path, '?'), "?fieldSelector=spec.nodeName%%3D%255[^%%]",
                 node);
    cJSON *all = cJSON_CreateObject();
    cJSON *items = cJSON_AddArrayToObject(all, "items");
    for (size_t i = 0; i < s->n; i++) {
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(s->objects[i].json,
                                                             "spec");
        if (!strstr(s->objects[i].path, PUBLISH_COLLECTION) ||
            strcmp(text_of(spec, "nodeName"), node) != 0)
            continue;
        cJSON *copy = cJSON_Duplicate(s->objects[i].json, true);
        cJSON_DeleteItemFromObjectCaseSensitive(copy, "kind");
        cJSON_DeleteItemFromObjectCaseSensitive(copy, "apiVersion");
        cJSON_AddItemToArray(items, copy);
    }
    answer(a, 200, all);
    cJSON_Delete(all);
}

void simkube_set_given(struct simkube *s, enum simkube_given given)
{
    s->given = given;
}

/* As the API server does before it compares and stores. */
static void treat_given(struct simkube *s, cJSON *object)
{
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(object, "spec");
    cJSON *device, *inner, *taint;
    char time[40];
    (void)snprintf(time, sizeof time, "2026-01-01T00:00:%02uZ",
                   (unsigned)(s->versions % 60));
    cJSON_ArrayForEach(device,
                       cJSON_GetObjectItemCaseSensitive(spec, "devices"))
    {
        if (s->given == SIMKUBE_CUTS) {
            cJSON_DeleteItemFromObjectCaseSensitive(device, "taints");
            cJSON_DeleteItemFromObjectCaseSensitive(device,
                                                    "allowMultipleAllocations");
            cJSON_ArrayForEach(
                inner, cJSON_GetObjectItemCaseSensitive(device, "capacity"))
                cJSON_DeleteItemFromObjectCaseSensitive(inner, "requestPolicy");
        }
        cJSON_ArrayForEach(
            taint, cJSON_GetObjectItemCaseSensitive(
                       device, "taints")) if (!*text_of(taint, "timeAdded"))
            cJSON_AddStringToObject(taint, "timeAdded", time);
    }
}

static void post(struct simkube *s, const char *path, cJSON *json,
                 struct http_answer *a)
{
    treat_given(s, json);
    cleanup_free char *whole = xasprintf("%s/%s", path,
                                         text_of(meta_of(json), "name"));
    if (find(s, whole) || *text_of(meta_of(json), "resourceVersion")) {
        fail(a, 409, "AlreadyExists");
        cJSON_Delete(json);
        return;
    }
    const struct object *o = insert(s, whole, json);
    answer(a, 201, o->json);
    tell(s, o);
}

static bool fits(cJSON *wanted, cJSON *there, const char *name)
{
    const char *text = text_of(wanted, name);
    return !*text || strcmp(text, text_of(there, name)) == 0;
}

static void put(struct simkube *s, const char *path, cJSON *json,
                struct http_answer *a)
{
    struct object *o = find(s, path);
    cJSON *meta = meta_of(json);
    if (!o || !fits(meta, meta_of(o->json), "uid") ||
        !fits(meta, meta_of(o->json), "resourceVersion")) {
        fail(a, o ? 409 : 404, o ? "Conflict" : "not found");
        cJSON_Delete(json);
        return;
    }
    set_text(meta, "uid", text_of(meta_of(o->json), "uid"));
    treat_given(s, json);
    if (cJSON_Compare(o->json, json, true)) { /* a write that changes nothing */
        cJSON_Delete(json);
        answer(a, 200, o->json);
        return;
    }
    cJSON_Delete(o->json);
    o->json = json;
    set_version(s, json);
    answer(a, 200, json);
    tell(s, o);
}

static void delete_(struct simkube *s, const char *path, cJSON *options,
                    struct http_answer *a)
{
    struct object *o = find(s, path);
    cJSON *pre = cJSON_GetObjectItemCaseSensitive(options, "preconditions");
    bool right = o && fits(pre, meta_of(o->json), "resourceVersion");
    cJSON_Delete(options);
    if (!right) {
        fail(a, o ? 409 : 404, o ? "Conflict" : "not found");
        return;
    }
    drop(s, o);
    fail(a, 200, "Success");
    notify(s);
}

/* Annotations only. */
static void patch(struct simkube *s, const char *path, cJSON *change,
                  struct http_answer *a)
{
    struct object *o = find(s, path);
    if (!o || !fits(meta_of(change), meta_of(o->json), "uid")) {
        fail(a, o ? 409 : 404, o ? "Conflict" : "not found");
        cJSON_Delete(change);
        return;
    }
    cJSON *meta = meta_of(o->json);
    cJSON *there = cJSON_GetObjectItemCaseSensitive(meta, "annotations");
    if (!there)
        there = cJSON_AddObjectToObject(meta, "annotations");
    const cJSON *item;
    cJSON_ArrayForEach(
        item, cJSON_GetObjectItemCaseSensitive(meta_of(change), "annotations"))
        set_text(there, item->string, item->valuestring);
    cJSON_Delete(change);
    set_version(s, o->json);
    answer(a, 200, o->json);
    notify(s);
}

void simkube_call(struct simkube *s, const struct publish_request *rq,
                  struct http_answer *a)
{
    struct error err;
    cJSON *body = NULL;
    if (s->refuse_status && strstr(rq->path, s->refuse_part) &&
        (!*s->refuse_method || strcmp(s->refuse_method, rq->method) == 0)) {
        fail(a, s->refuse_status, "refused");
        return;
    }
    if (rq->body.size > 0 &&
        json_parse(rq->body.data, rq->body.size, &body, &err) < 0) {
        fail(a, 400, "no JSON");
        return;
    }
    if (strcmp(rq->method, "POST") == 0) {
        post(s, rq->path, body, a);
    } else if (strcmp(rq->method, "PUT") == 0) {
        put(s, rq->path, body, a);
    } else if (strcmp(rq->method, "DELETE") == 0) {
        delete_(s, rq->path, body, a);
    } else if (strcmp(rq->method, "PATCH") == 0) {
        patch(s, rq->path, body, a);
    } else if (strchr(rq->path, '?')) {
        list(s, rq->path, a);
    } else {
        const struct object *o = find(s, rq->path);
        if (o)
            answer(a, 200, o->json);
        else
            fail(a, 404, "not found");
    }
}

/* --- the others --------------------------------------------------------- */

void simkube_refuse(struct simkube *s, const char *method, const char *part,
                    long status)
{
    (void)snprintf(s->refuse_method, sizeof s->refuse_method, "%s", method);
    (void)snprintf(s->refuse_part, sizeof s->refuse_part, "%s", part);
    s->refuse_status = status;
}

void simkube_add_node(struct simkube *s, const char *name)
{
    cleanup_free char *path = xasprintf(NODES "/%s", name);
    cJSON *json = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(json, "metadata");
    cJSON_AddStringToObject(meta, "name", name);
    (void)insert(s, path, json);
    notify(s);
}

void simkube_delete(struct simkube *s, const char *part)
{
    for (size_t i = s->n; i-- > 0;) {
        if (!strstr(s->objects[i].path, part))
            continue;
        drop(s, &s->objects[i]);
        notify(s);
    }
}

static bool has_owner(const struct simkube *s, cJSON *object)
{
    const cJSON *owners = cJSON_GetObjectItemCaseSensitive(meta_of(object),
                                                           "ownerReferences");
    const char *uid = text_of(cJSON_GetArrayItem(owners, 0), "uid");
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(text_of(meta_of(s->objects[i].json), "uid"), uid) == 0)
            return true;
    return !*uid;
}

void simkube_collect(struct simkube *s)
{
    for (size_t i = s->n; i-- > 0;) {
        if (has_owner(s, s->objects[i].json))
            continue;
        drop(s, &s->objects[i]);
        notify(s);
    }
}

static struct object *find_part(struct simkube *s, const char *part, size_t n)
{
    for (size_t i = 0; i < s->n; i++)
        if (strstr(s->objects[i].path, part) && n-- == 0)
            return &s->objects[i];
    return NULL;
}

cJSON *simkube_find(struct simkube *s, const char *part, size_t n)
{
    struct object *o = find_part(s, part, n);
    return o ? o->json : NULL;
}

void simkube_touch(struct simkube *s, const char *part, size_t n)
{
    struct object *o = find_part(s, part, n);
    set_version(s, o->json);
    tell(s, o);
}

size_t simkube_count(const struct simkube *s, const char *part)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += strstr(s->objects[i].path, part) != NULL;
    return n;
}

/* --- a reader ----------------------------------------------------------- */

static int64_t generation_of(const cJSON *object, const char *node)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(object, "spec");
    const cJSON *pool = cJSON_GetObjectItemCaseSensitive(spec, "pool");
    if (strcmp(text_of(pool, "name"), node) != 0)
        return 0;
    return (int64_t)cJSON_GetNumberValue(
        cJSON_GetObjectItemCaseSensitive(pool, "generation"));
}

static enum simkube_pool judge(struct slice **slices, size_t n,
                               char ret_hash[17])
{
    cleanup_with(topo) struct topo *topo = NULL;
    for (size_t i = 0; i < n; i++)
        if (slice_get_pool_count(slices[i]) !=
                slice_get_pool_count(slices[0]) ||
            slice_get_pool_count(slices[i]) < n)
            return SIMKUBE_MIXED;
    if (n == 0 || slice_get_pool_count(slices[0]) > n)
        return SIMKUBE_NONE;
    if (slice_join(slices, n, &topo, NULL) < 0)
        return SIMKUBE_MIXED;
    slice_content_hash(topo, ret_hash);
    return SIMKUBE_WHOLE;
}

enum simkube_pool simkube_pool(struct simkube *s, const char *node,
                               char ret_hash[17], int64_t *ret_generation)
{
    struct slice *slices[64];
    size_t n = 0;
    int64_t highest = 0;
    for (size_t i = 0; i < s->n; i++)
        if (generation_of(s->objects[i].json, node) > highest)
            highest = generation_of(s->objects[i].json, node);
    bool unread = false;
    for (size_t i = 0; i < s->n && n < ARRAY_LEN(slices); i++) {
        struct object *o = &s->objects[i];
        if (highest == 0 || generation_of(o->json, node) != highest)
            continue;
        char *text = cJSON_PrintUnformatted(o->json);
        int r = slice_decode(text, strlen(text), &slices[n], NULL);
        free(text);
        if (r < 0)
            unread = true;
        else
            n++;
    }
    *ret_generation = highest;
    enum simkube_pool pool = unread ? SIMKUBE_MIXED
                                    : judge(slices, n, ret_hash);
    for (size_t i = 0; i < n; i++)
        slice_unref(slices[i]);
    return pool;
}
