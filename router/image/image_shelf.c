#include "router/image/image_shelf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/strmap.h"
#include "router/wire/edit.h"
#include "router/wire/fields.h"

enum { LISTED = 1 }; /* the field of both replies that has the items */

struct image {
    char id[IMAGE_ID_MAX + 1];
    char *name; /* its first, or "" */
    uint64_t size;
    int64_t first_ms, used_ms; /* seen first; seen in use, or first */
    bool used, spared, there;
};

struct image_shelf {
    struct image *list;
    size_t n, cap;
};

struct image_shelf *image_shelf_create(void)
{
    return xcalloc(1, sizeof(struct image_shelf));
}

void image_shelf_destroy(struct image_shelf *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free(s->list[i].name);
    free(s->list);
    free(s);
}

/* --- names ------------------------------------------------------------------ */

/* What containers say they have, by any name. */
struct used {
    struct strmap names;
    struct arena arena;
};

static void add_used(struct used *u, struct proto_bytes name)
{
    if (name.size == 0 || name.size > IMAGE_NAME_MAX)
        return;
    const char *text = arena_strndup(&u->arena, name.data, name.size);
    (void)strmap_put(&u->names, text, (void *)(uintptr_t)text);
}

static bool has(const struct used *u, const char *name)
{
    return strmap_get(&u->names, name) != NULL;
}

/* "docker.io/library/busybox:latest" is "busybox", and some in between. */
static bool is_used_as(const struct used *u, const char *name)
{
    static const char *const heads[] = {"", "docker.io/", "docker.io/library/"};
    char bare[IMAGE_NAME_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        size_t size = strlen(heads[i]), left;
        if (strncmp(name, heads[i], size) != 0)
            continue;
        (void)snprintf(bare, sizeof bare, "%s", name + size);
        left = strlen(bare);
        if (has(u, bare))
            return true;
        if (left < 7 || strcmp(bare + left - 7, ":latest") != 0)
            continue;
        bare[left - 7] = '\0';
        if (has(u, bare))
            return true;
    }
    return false;
}

/* "registry.k8s.io/pause:3.9", "docker.io/library/biga-pause:1.0.0". */
static bool is_pause(const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    size_t size = strcspn(last, ":@");
    return size >= 5 && strncmp(last + size - 5, "pause", 5) == 0;
}

/* --- looking ---------------------------------------------------------------- */

static int read_containers(struct proto_bytes reply, struct used *u,
                           struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int more;
    proto_reader_init(&r, reply);
    while ((more = proto_next(&r, &f, err)) > 0) {
        if (f.number != LISTED || f.kind != PROTO_BYTES)
            continue;
        if (fields_check(CRI_Container, f.bytes, err) < 0)
            return -EPROTO;
        add_used(u, edit_bytes(edit_bytes(f.bytes, CRI_Container_image),
                               CRI_ImageSpec_image));
        add_used(u, edit_bytes(f.bytes, CRI_Container_image_ref));
        add_used(u, edit_bytes(f.bytes, CRI_Container_image_id));
    }
    return more;
}

/* An id, or a name: a remote may say anything. */
static bool is_word(struct proto_bytes text, size_t max)
{
    bool ok = text.size > 0 && text.size <= max;
    for (size_t i = 0; ok && i < text.size; i++)
        ok = text.data[i] > ' ' && text.data[i] <= '~';
    return ok;
}

/* NULL: it is one too many. */
static struct image *find(struct image_shelf *s, struct proto_bytes id,
                          int64_t now_ms)
{
    for (size_t i = 0; i < s->n; i++)
        if (proto_equals(id, s->list[i].id))
            return &s->list[i];
    if (s->n == IMAGE_SHELF_MAX)
        return NULL;
    s->list = xgrow(s->list, s->n, &s->cap, sizeof *s->list);
    struct image *i = &s->list[s->n++];
    *i = (struct image){.first_ms = now_ms, .used_ms = now_ms};
    memcpy(i->id, id.data, id.size);
    return i;
}

/* Its tags and digests. */
static void take_names(struct image *i, struct proto_bytes message,
                       const struct used *u)
{
    struct proto_reader r;
    struct proto_field f;
    char name[IMAGE_NAME_MAX + 1];
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0) {
        bool named = f.number == CRI_Image_repo_tags ||
                     f.number == CRI_Image_repo_digests;
        if (!named || !is_word(f.bytes, IMAGE_NAME_MAX))
            continue;
        memcpy(name, f.bytes.data, f.bytes.size);
        name[f.bytes.size] = '\0';
        i->used |= is_used_as(u, name);
        i->spared |= is_pause(name);
        if (!i->name)
            i->name = xstrdup(name);
    }
}

static void take_image(struct image_shelf *s, struct proto_bytes message,
                       const struct used *u, int64_t now_ms)
{
    static const char algorithm[] = "sha256:";
    struct proto_bytes id = edit_bytes(message, CRI_Image_id);
    struct image *i = is_word(id, IMAGE_ID_MAX) ? find(s, id, now_ms) : NULL;
    if (!i)
        return;
    size_t head = strncmp(i->id, algorithm, sizeof algorithm - 1) == 0
                      ? sizeof algorithm - 1
                      : 0;
    free(i->name);
    i->name = NULL;
    i->there = true;
    i->size = edit_number(message, CRI_Image_size);
    i->spared = edit_number(message, CRI_Image_pinned) != 0;
    i->used = has(u, i->id) || has(u, i->id + head);
    take_names(i, message, u);
    if (!i->name)
        i->name = xstrdup("");
    if (i->used)
        i->used_ms = now_ms;
}

static void drop_gone(struct image_shelf *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].there)
            s->list[n++] = s->list[i];
        else
            free(s->list[i].name);
    s->n = n;
}

static int check_images(struct proto_bytes reply, struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int more;
    proto_reader_init(&r, reply);
    while ((more = proto_next(&r, &f, err)) > 0)
        if (f.number == LISTED && f.kind == PROTO_BYTES &&
            fields_check(CRI_Image, f.bytes, err) < 0)
            return -EPROTO;
    return more;
}

int image_shelf_see(struct image_shelf *s, const char *spared,
                    struct proto_bytes images, struct proto_bytes containers,
                    int64_t now_ms, struct error *err)
{
    struct used used = {0};
    struct proto_reader r;
    struct proto_field f;
    int e = check_images(images, err);
    if (e == 0)
        e = read_containers(containers, &used, err);
    add_used(&used, (struct proto_bytes){spared, strlen(spared)});
    for (size_t i = 0; e == 0 && i < s->n; i++)
        s->list[i].there = false;
    proto_reader_init(&r, images);
    while (e == 0 && proto_next(&r, &f, NULL) > 0)
        if (f.number == LISTED && f.kind == PROTO_BYTES)
            take_image(s, f.bytes, &used, now_ms);
    if (e == 0)
        drop_gone(s);
    strmap_fini(&used.names);
    arena_fini(&used.arena);
    return e;
}

bool image_shelf_is_used(const struct image_shelf *s, const char *id)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].id, id) == 0)
            return s->list[i].used;
    return false;
}

/* --- what goes -------------------------------------------------------------- */

static int in_order(const void *a, const void *b)
{
    const struct image *x = a, *y = b;
    if (x->used_ms != y->used_ms)
        return x->used_ms < y->used_ms ? -1 : 1;
    if (x->first_ms != y->first_ms)
        return x->first_ms < y->first_ms ? -1 : 1;
    return strcmp(x->id, y->id);
}

/* Bytes that are to be freed. */
static uint64_t goal_of(const struct image_rules *rules,
                        const struct image_disk *disk, bool full)
{
    uint64_t cent = disk->size / 100;
    if (cent == 0 || disk->available > disk->size)
        return full ? UINT64_MAX : 0;
    uint64_t taken = disk->size - disk->available;
    bool too_full = rules->high < 100 && taken >= cent * (uint64_t)rules->high;
    uint64_t may = cent * (uint64_t)rules->low;
    if (!too_full && !full)
        return 0;
    return taken > may ? taken - may : UINT64_MAX;
}

size_t image_shelf_plan(struct image_shelf *s, const struct image_rules *rules,
                        const struct image_disk *disk, bool full,
                        int64_t now_ms, struct image_goes *ret_list, size_t max)
{
    uint64_t goal = goal_of(rules, disk, full), freed = 0;
    size_t n = 0;
    if (s->n)
        qsort(s->list, s->n, sizeof *s->list, in_order);
    for (size_t k = 0; k < s->n && n < max; k++) {
        const struct image *i = &s->list[k];
        bool old = rules->max_age_ms && now_ms - i->used_ms > rules->max_age_ms;
        if (i->used || i->spared || now_ms - i->first_ms < rules->min_age_ms ||
            (!old && freed >= goal))
            continue;
        struct image_goes *goes = &ret_list[n++];
        *goes = (struct image_goes){.size = i->size,
                                    .why = old ? "age" : "disk"};
        (void)snprintf(goes->id, sizeof goes->id, "%s", i->id);
        (void)snprintf(goes->name, sizeof goes->name, "%s", i->name);
        freed += i->size < UINT64_MAX - freed ? i->size : UINT64_MAX - freed;
    }
    return n;
}
