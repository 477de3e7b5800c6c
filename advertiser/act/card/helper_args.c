#include "advertiser/act/card/helper_args.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"

enum { PIECE = 73728 }; /* bytes; 98304 characters of base64 */

static void add_n(struct helper_args *p, const char *text, size_t size)
{
    p->argv = xgrow(p->argv, p->n, &p->cap, sizeof *p->argv);
    p->argv[p->n++] = arena_strndup(&p->arena, text, size);
}

void helper_args_add(struct helper_args *p, const char *text)
{
    add_n(p, text, strlen(text));
}

void helper_args_init(struct helper_args *p, const char *word, const char *dir)
{
    *p = (struct helper_args){0};
    helper_args_add(p, "/biga-card");
    helper_args_add(p, word);
    helper_args_add(p, dir);
}

void helper_args_fini(struct helper_args *p)
{
    free(p->argv);
    arena_fini(&p->arena);
}

size_t helper_args_contents(const struct podspec *spec)
{
    size_t size = 0;
    for (size_t i = 0; i < spec->n_volumes; i++)
        for (size_t k = 0; k < spec->volumes[i].n_files; k++)
            size += spec->volumes[i].files[k].size;
    return size;
}

bool helper_args_has(const struct podspec *spec, enum podspec_medium medium)
{
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (spec->volumes[i].medium == medium)
            return true;
    return false;
}

int helper_args_pad(const struct str *out, const struct str *err_text,
                    size_t size, struct helper_args_pad *ret_pad,
                    struct error *err)
{
    static const char hex[] = "0123456789abcdef";
    const char *id = strstr(str_text(err_text), "pad=");
    if (!id || strspn(id + 4, hex) != HELPER_ARGS_PAD_ID_SIZE - 1)
        return error_set(err, EPROTO, "biga-card: no id of a pad in \"%.200s\"",
                         str_text(err_text));
    if (out->size != size)
        return error_set(err, EPROTO,
                         "biga-card: a pad of %zu bytes instead of %zu",
                         out->size, size);
    struct helper_args_pad pad = {.bytes = str_text(out), .size = size};
    memcpy(pad.id, id + 4, HELPER_ARGS_PAD_ID_SIZE - 1);
    *ret_pad = pad;
    return 0;
}

static void add_folder(struct helper_args *p, const char *above,
                       const struct podspec_volume *v)
{
    cleanup_free char *name = xasprintf("%s%s", above, v->name);
    helper_args_add(p, name);
    helper_args_add(p, v->kind == PODSPEC_EMPTY ? "d777" : "d755");
    helper_args_add(p, "0");
}

/* `size` bytes under the pad's, whose first one is `pad`. */
static void add_piece(struct helper_args *p, const char *data, const char *pad,
                      size_t size)
{
    cleanup_free char *hidden = xmalloc(PIECE);
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    for (size_t i = 0; i < size; i++)
        hidden[i] = (char)(data[i] ^ pad[i]);
    base64_add(&text, hidden, size);
    add_n(p, str_text(&text), text.size);
}

size_t helper_args_pieces(size_t size)
{
    return (size + PIECE - 1) / PIECE;
}

void helper_args_add_pieces(struct helper_args *p, const char *data,
                            size_t size, const char *pad)
{
    for (size_t at = 0; at < size; at += PIECE)
        add_piece(p, data + at, pad + at,
                  size - at < PIECE ? size - at : PIECE);
}

static void add_file(struct helper_args *p, const struct podspec_volume *v,
                     const struct podspec_file *f, const char *pad)
{
    cleanup_free char *name = xasprintf("volumes/%s/%s", v->name, f->path);
    cleanup_free char *mode = xasprintf("%o", f->mode & 0777U);
    cleanup_free char *n = xasprintf("%zu", helper_args_pieces(f->size));
    helper_args_add(p, name);
    helper_args_add(p, mode);
    helper_args_add(p, n);
    helper_args_add_pieces(p, f->data, f->size, pad);
}

void helper_args_files(struct helper_args *p, const struct podspec *spec,
                       const struct helper_args_pad *pad)
{
    const char *at = pad ? pad->bytes : NULL;
    helper_args_add(p, pad ? pad->id : "-");
    for (size_t i = 0; i < spec->n_volumes; i++) {
        const struct podspec_volume *v = &spec->volumes[i];
        if (v->medium != PODSPEC_DISK)
            continue;
        add_folder(p, "volumes/", v);
        for (size_t k = 0; k < v->n_files; k++) {
            add_file(p, v, &v->files[k], at);
            if (at)
                at += v->files[k].size;
        }
    }
}

void helper_args_memory(struct helper_args *p, const struct podspec *spec)
{
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (spec->volumes[i].medium == PODSPEC_MEMORY)
            add_folder(p, "", &spec->volumes[i]);
}

void helper_args_hugepages(struct helper_args *p, const struct podspec *spec,
                           uint64_t page)
{
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (spec->volumes[i].medium == PODSPEC_HUGEPAGES &&
            spec->volumes[i].page == page)
            add_folder(p, "", &spec->volumes[i]);
}
