#include "router/keep/kept.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/refs.h"

static const char *copy(struct arena *a, const char *text)
{
    return text && *text ? arena_strndup(a, text, strlen(text)) : "";
}

static struct proto_bytes copy_bytes(struct arena *a, struct proto_bytes b)
{
    b.data = b.size ? arena_strndup(a, b.data, b.size) : "";
    return b;
}

static size_t size_of(size_t size)
{
    const size_t align = sizeof(max_align_t);
    return size ? (size + align) / align * align : 0; /* with its NUL */
}

/* Thousands are kept: an arena's usual block would be mostly empty. */
static void reserve(struct kept *k, const struct kept *from)
{
    const char *const texts[] = {
        from->remote,  from->namespace,     from->name,       from->uid,
        from->handler, from->log_directory, from->allocation, from->container,
        from->image,   from->log_path};
    size_t size = size_of(from->mounts.size) + size_of(from->ended.size);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        size += texts[i] ? size_of(strlen(texts[i])) : 0;
    arena_reserve(&k->arena, size);
}

static void copy_texts(struct kept *k, const struct kept *from)
{
    struct arena *a = &k->arena;
    k->remote = copy(a, from->remote);
    k->namespace = copy(a, from->namespace);
    k->name = copy(a, from->name);
    k->uid = copy(a, from->uid);
    k->handler = copy(a, from->handler);
    k->log_directory = copy(a, from->log_directory);
    k->allocation = copy(a, from->allocation);
    k->container = copy(a, from->container);
    k->image = copy(a, from->image);
    k->log_path = copy(a, from->log_path);
    k->mounts = copy_bytes(a, from->mounts);
    k->ended = copy_bytes(a, from->ended);
}

struct kept *kept_copy(const struct kept *from)
{
    struct kept *k = xcalloc(1, sizeof *k);
    atomic_init(&k->refs, 1);
    k->kind = from->kind;
    k->state = from->state;
    k->attempt = from->attempt;
    k->hash = from->hash;
    k->made_s = from->made_s;
    k->host_network = from->host_network;
    memcpy(k->id, from->id, sizeof k->id);
    memcpy(k->sandbox_id, from->sandbox_id, sizeof k->sandbox_id);
    reserve(k, from);
    copy_texts(k, from);
    return k;
}

DEFINE_REF(kept_ref, struct kept)

void kept_unref(struct kept *k)
{
    if (!k || !refs_drop(&k->refs))
        return;
    arena_fini(&k->arena);
    free(k);
}

struct kept *kept_with_id(const struct kept *from, const char *id)
{
    struct kept *k = kept_copy(from);
    (void)snprintf(k->id, sizeof k->id, "%s", id);
    k->state = *id ? KEPT_MADE : KEPT_ANNOUNCED;
    return k;
}

struct kept *kept_with_end(const struct kept *from, struct proto_bytes ended)
{
    struct kept *k = kept_copy(from);
    k->ended = copy_bytes(&k->arena, ended);
    return k;
}

void kept_key(const struct kept *k, char ret_key[KEPT_KEY_SIZE])
{
    if (k->kind == KEPT_SANDBOX)
        (void)snprintf(ret_key, KEPT_KEY_SIZE, "%s/%u", k->uid, k->attempt);
    else
        (void)snprintf(ret_key, KEPT_KEY_SIZE, "%s/%s/%u", k->uid, k->container,
                       k->attempt);
}

/* --- checks --------------------------------------------------------------- */

bool kept_id_valid(const char *id)
{
    size_t n = strspn(id, "0123456789abcdef");
    return n >= 1 && n <= KEPT_ID_MAX && id[n] == '\0';
}

/* Letters, digits, '-', '_' and '.', and not "." or "..". */
static bool is_name(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    return n >= 1 && n <= KEPT_NAME_MAX && text[n] == '\0' &&
           strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static bool is_path(const char *text)
{
    if (text[0] != '/' || strlen(text) > KEPT_PATH_MAX)
        return false;
    for (const char *p = text; (p = strstr(p, "/..")); p += 3)
        if (p[3] == '/' || p[3] == '\0')
            return false;
    return true;
}

static int check_names(const struct kept *k, struct error *err)
{
    const struct {
        const char *what, *text;
    } names[] = {{"remote", k->remote},
                 {"namespace", k->namespace},
                 {"name", k->name},
                 {"uid", k->uid},
                 {"container", k->kind == KEPT_CONTAINER ? k->container : "c"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!is_name(names[i].text))
            return error_set(err, EINVAL,
                             "%s: \"%.64s\": 1 to %d letters, digits, '-', "
                             "'_' and '.' are allowed",
                             names[i].what, names[i].text, KEPT_NAME_MAX);
    return 0;
}

static int check_paths(const struct kept *k, struct error *err)
{
    bool sandbox = k->kind == KEPT_SANDBOX;
    const char *path = sandbox ? k->log_directory : k->log_path;
    if (*path && !is_path(path))
        return error_set(err, EINVAL,
                         "%s: \"%.64s\" is no absolute path without \"..\" of "
                         "at most %d bytes",
                         sandbox ? "log_directory" : "log_path", path,
                         KEPT_PATH_MAX);
    if (strlen(k->image) > KEPT_PATH_MAX)
        return error_set(err, EINVAL, "image: has %zu bytes, %d are allowed",
                         strlen(k->image), KEPT_PATH_MAX);
    if (strlen(k->handler) > KEPT_NAME_MAX)
        return error_set(err, EINVAL, "handler: has %zu bytes, %d are allowed",
                         strlen(k->handler), KEPT_NAME_MAX);
    return 0;
}

int kept_check(const struct kept *k, struct error *err)
{
    int e = check_names(k, err);
    if (e == 0)
        e = check_paths(k, err);
    if (e < 0)
        return e;
    if (k->state == KEPT_MADE ? !kept_id_valid(k->id) : *k->id != '\0')
        return error_set(err, EINVAL, "id: \"%.64s\" is none", k->id);
    if (k->kind == KEPT_CONTAINER && !kept_id_valid(k->sandbox_id))
        return error_set(err, EINVAL, "sandbox_id: \"%.64s\" is no id",
                         k->sandbox_id);
    if (strlen(k->allocation) > KEPT_ALLOCATION_MAX)
        return error_set(err, EINVAL,
                         "allocation: has %zu bytes, %d are allowed",
                         strlen(k->allocation), KEPT_ALLOCATION_MAX);
    if (k->mounts.size > KEPT_MOUNTS_MAX)
        return error_set(err, EINVAL, "mounts: have %zu bytes, %d are allowed",
                         k->mounts.size, KEPT_MOUNTS_MAX);
    if (k->ended.size > KEPT_ENDED_MAX)
        return error_set(err, EINVAL, "ended: has %zu bytes, %d are allowed",
                         k->ended.size, KEPT_ENDED_MAX);
    return 0;
}
