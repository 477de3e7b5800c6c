#include "router/serve/object.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/jrow.h"
#include "lib/base/jwrite.h"
#include "lib/base/refs.h"

struct object *object_create(struct object *sandbox)
{
    struct object *o = xcalloc(1, sizeof *o);
    atomic_init(&o->refs, 1);
    o->sandbox = sandbox ? object_ref(sandbox) : NULL;
    o->pod = (struct known_sandbox){"", "", "", "", 0, "", false, ""};
    o->log_directory = o->log_key = "";
    o->container = (struct known_container){
        .id = "", .name = "", .user_image = "", .log_path = ""};
    if (sandbox)
        memcpy(o->remote, sandbox->remote, sizeof o->remote);
    return o;
}

const char *object_keep(struct object *o, const char *text)
{
    return text && *text ? arena_strndup(&o->arena, text, strlen(text)) : "";
}

void object_bind(struct object *o, const char *id)
{
    (void)snprintf(o->id, sizeof o->id, "%s", id);
    o->pod.id = o->id;
    o->container.id = o->id;
    o->container.sandbox = o->sandbox ? &o->sandbox->pod : NULL;
}

DEFINE_REF(object_ref, struct object)

void object_unref(struct object *o)
{
    if (!o || !refs_drop(&o->refs))
        return;
    object_unref(o->sandbox);
    arena_fini(&o->arena);
    free(o);
}

struct object *object_pod(struct object *o)
{
    return o->sandbox ? o->sandbox : o;
}

/* --- on disk -----------------------------------------------------------------
 */

static void add_pod(const struct object *o, struct str *out)
{
    const struct known_sandbox *p = &o->pod;
    jwrite_text(out, "remote", o->remote);
    jwrite_text(out, "namespace", p->namespace);
    jwrite_text(out, "name", p->name);
    jwrite_text(out, "uid", p->uid);
    jwrite_uint(out, "attempt", p->attempt);
    jwrite_text(out, "handler", p->handler);
    jwrite_bool(out, "hostNetwork", p->host_network);
    jwrite_text(out, "address", p->address);
    jwrite_text(out, "logs", o->log_directory);
    jwrite_uint(out, "cores", o->cores);
    jwrite_uint(out, "memoryMiB", o->memory_mib);
}

static void add_mounts(const struct object *o, struct str *out)
{
    jwrite_array(out, "mounts");
    for (size_t i = 0; i < o->n_mounts; i++) {
        jwrite_object(out, NULL);
        jwrite_text(out, "container", o->mounts[i].container_path);
        jwrite_text(out, "host", o->mounts[i].host_path);
        jwrite_bool(out, "readOnly", o->mounts[i].read_only);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

static void add_container(const struct object *o, struct str *out)
{
    const struct known_container *c = &o->container;
    cleanup_str struct str told = STR_INIT(OBJECT_SIZE_MAX);
    base64_add(&told, c->mounts.data, c->mounts.size);
    jwrite_text(out, "sandbox", o->sandbox->id);
    jwrite_text(out, "name", c->name);
    jwrite_uint(out, "attempt", c->attempt);
    jwrite_text(out, "image", c->user_image);
    jwrite_text(out, "log", c->log_path);
    jwrite_text(out, "key", o->log_key);
    jwrite_text(out, "told", str_text(&told));
    add_mounts(o, out);
}

void object_encode(const struct object *o, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "id", o->id);
    jwrite_uint(out, "hash",
                o->hash >> 11); /* of JSON's numbers 53 bits hold */
    if (o->sandbox)
        add_container(o, out);
    else
        add_pod(o, out);
    jwrite_end_object(out);
}

enum { MOUNTS_MAX = MOUNT_MAX };

struct kept_mount {
    struct jtext container, host;
    bool read_only;
};

struct kept {
    struct jtext id, sandbox, remote, namespace, name, uid, handler, address;
    struct jtext logs, image, log, key, told;
    int64_t hash, attempt, cores, memory_mib;
    bool host_network;
    struct kept_mount mounts[MOUNTS_MAX];
    size_t n_mounts;
};

static void read_host_network(struct jscan *s, void *to)
{
    (void)jscan_bool(s, to);
}

static const struct jrow mount_rows[] = {
    JROW("container", JROW_STRICT, jrow_text, struct kept_mount, container),
    JROW("host", JROW_STRICT, jrow_text, struct kept_mount, host),
    JROW_CALL_TO("readOnly", JROW_STRICT, JKIND_NONE, read_host_network,
                 struct kept_mount, read_only),
    JROW_END,
};

static void read_mount(struct jscan *s, void *to)
{
    struct kept *k = to;
    struct kept_mount m = {0};
    if (k->n_mounts == MOUNTS_MAX)
        jscan_fail(s, "too many mounts", jscan_offset(s));
    else if (jrow_read(s, JROW_STRICT, mount_rows, &m))
        k->mounts[k->n_mounts++] = m;
}

#define TEXT(word, member) \
    JROW(word, JROW_STRICT, jrow_text, struct kept, member)
#define NUMBER(word, member) \
    JROW(word, JROW_STRICT, jrow_int64, struct kept, member)

static const struct jrow rows[] = {
    TEXT("id", id),
    TEXT("sandbox", sandbox),
    TEXT("remote", remote),
    TEXT("namespace", namespace),
    TEXT("name", name),
    TEXT("uid", uid),
    TEXT("handler", handler),
    TEXT("address", address),
    TEXT("logs", logs),
    TEXT("image", image),
    TEXT("log", log),
    TEXT("key", key),
    TEXT("told", told),
    NUMBER("hash", hash),
    NUMBER("attempt", attempt),
    NUMBER("cores", cores),
    NUMBER("memoryMiB", memory_mib),
    JROW_CALL_TO("hostNetwork", JROW_STRICT, JKIND_NONE, read_host_network,
                 struct kept, host_network),
    JROW_EACH("mounts", JROW_STRICT, read_mount),
    JROW_END,
};

static const char *keep(struct object *o, const struct jtext *text)
{
    if (text->size == 0)
        return "";
    char *copy = arena_alloc(&o->arena, text->size + 1);
    (void)jtext_decode(text, copy);
    return copy;
}

static struct object *pod_of(const struct kept *k)
{
    struct object *o = object_create(NULL);
    o->pod = (struct known_sandbox){
        .namespace = keep(o, &k->namespace),
        .name = keep(o, &k->name),
        .uid = keep(o, &k->uid),
        .attempt = (uint32_t)k->attempt,
        .handler = keep(o, &k->handler),
        .host_network = k->host_network,
        .address = keep(o, &k->address),
    };
    (void)snprintf(o->remote, sizeof o->remote, "%s", keep(o, &k->remote));
    o->log_directory = keep(o, &k->logs);
    o->cores = (uint32_t)k->cores;
    o->memory_mib = (uint32_t)k->memory_mib;
    return o;
}

static bool take_told(struct object *o, const struct kept *k)
{
    cleanup_str struct str told = STR_INIT(OBJECT_SIZE_MAX);
    if (!base64_decode(k->told.data ? k->told.data : "", k->told.size, &told))
        return false;
    o->container.mounts.data = arena_strndup(&o->arena, str_text(&told),
                                             told.size);
    o->container.mounts.size = told.size;
    return true;
}

static struct object *container_of(const struct kept *k, struct object *sandbox)
{
    struct object *o = object_create(sandbox);
    o->container.name = keep(o, &k->name);
    o->container.attempt = (uint32_t)k->attempt;
    o->container.user_image = keep(o, &k->image);
    o->container.log_path = keep(o, &k->log);
    o->log_key = keep(o, &k->key);
    o->n_mounts = k->n_mounts;
    o->mounts = arena_alloc(&o->arena, (k->n_mounts + 1) * sizeof *o->mounts);
    for (size_t i = 0; i < k->n_mounts; i++) {
        o->mounts[i].container_path = keep(o, &k->mounts[i].container);
        o->mounts[i].host_path = keep(o, &k->mounts[i].host);
        o->mounts[i].read_only = k->mounts[i].read_only;
    }
    return o;
}

int object_decode(const char *json, size_t size, object_find_f *find, void *ctx,
                  struct object **ret_object, struct error *err)
{
    cleanup_free struct kept *k = xcalloc(1, sizeof *k);
    cleanup_with(object) struct object *o = NULL;
    struct jscan s;
    jscan_init(&s, json, size);
    int r = jrow_parse(&s, JROW_STRICT, rows, k, err);
    if (r < 0)
        return r;
    char id[FROM_REMOTE_ID_SIZE + 1], sandbox_id[FROM_REMOTE_ID_SIZE + 1];
    if (k->id.size >= sizeof id || k->sandbox.size >= sizeof sandbox_id)
        return error_set(err, EINVAL, "id: is longer than %d bytes",
                         FROM_REMOTE_ID_SIZE);
    id[0] = sandbox_id[0] = '\0';
    if (k->id.size)
        (void)jtext_decode(&k->id, id);
    if (k->sandbox.size)
        (void)jtext_decode(&k->sandbox, sandbox_id);
    struct object *sandbox = k->sandbox.size ? find(ctx, sandbox_id) : NULL;
    if (k->sandbox.size && !sandbox)
        return error_set(err, ENOENT, "sandbox: there is no %s", sandbox_id);
    o = sandbox ? container_of(k, sandbox) : pod_of(k);
    if (sandbox && !take_told(o, k))
        return error_set(err, EINVAL, "told: is no base64");
    o->hash = (uint64_t)k->hash << 11;
    object_bind(o, id);
    *ret_object = steal(&o);
    return 0;
}
