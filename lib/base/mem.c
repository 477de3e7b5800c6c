#include "lib/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static void *checked(void *p)
{
    if (!p)
        abort();
    return p;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        abort();
    return checked(realloc(old, total ? total : 1));
}

/* Not asked of malloc(), which would take from then on what is as large from
 * its heaps. */
bool mem_left(size_t size)
{
    if (size > SIZE_MAX - TRY_SPARE)
        return false;
    void *probe = mmap(NULL, size + TRY_SPARE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return probe != MAP_FAILED && munmap(probe, size + TRY_SPARE) == 0;
}

void *try_realloc(void *old, size_t old_size, size_t size)
{
    size_t more = size > old_size ? size - old_size : 0;
    if (more >= TRY_LARGE && !mem_left(more))
        return NULL;
    return realloc(old, size ? size : 1);
}

char *xstrdup(const char *text)
{
    return xmemdup(text, strlen(text) + 1);
}

char *xstrndup(const char *text, size_t max)
{
    size_t len = strnlen(text, max);
    char *copy = xmalloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void *xmemdup(const void *data, size_t size)
{
    void *copy = xmalloc(size);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    return text;
}

void *xgrow(void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array ? array : xcalloc(*cap, size);
    size_t next = *cap ? *cap * 2 : 8;
    if (next < *cap)
        abort();
    array = xrealloc(array, next, size);
    *cap = next;
    return array;
}

struct arena_block {
    struct arena_block *next;
    max_align_t data[];
};

enum { ARENA_BLOCK_MIN = 4096 };

static void add_block(struct arena *a, size_t cap)
{
    struct arena_block *b = xmalloc(sizeof *b + cap);
    b->next = a->blocks;
    a->blocks = b;
    a->cap = cap;
    a->used = 0;
}

void arena_reserve(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        abort();
    add_block(a, size);
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = sizeof(max_align_t);
    if (size > SIZE_MAX / 2)
        abort();
    size = (size + align - 1) / align * align;
    if (!a->blocks || a->cap - a->used < size)
        add_block(a, size > ARENA_BLOCK_MIN ? size : ARENA_BLOCK_MIN);
    void *p = (char *)a->blocks->data + a->used;
    a->used += size;
    memset(p, 0, size);
    return p;
}

char *arena_strndup(struct arena *a, const char *text, size_t size)
{
    char *copy = arena_alloc(a, size + 1);
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void arena_fini(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    a->used = a->cap = 0;
}
