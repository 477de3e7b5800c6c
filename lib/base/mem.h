/* mem - allocation that cannot fail, locals that release themselves, and
 * an arena for what lives as long as one request.
 *
 * Running out of memory ends the process (abort): therefore every input of
 * Biga has a cap, and every buffer a maximum.  What a client makes large is
 * asked for by try_realloc(), and refused when it cannot be had. */
#ifndef BIGA_LIB_BASE_MEM_H
#define BIGA_LIB_BASE_MEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *old, size_t n, size_t size)
    __attribute__((returns_nonnull)); /* n * size bytes, overflow-checked */
/* From `old_size` bytes to `size`, or NULL, and `old` is as it was: there is
 * no memory, or so little would be left of it that others, who cannot do
 * without, ran out of it next. */
enum {
    TRY_LARGE = 256 << 10, /* what grows by less is given all there is */
    TRY_SPARE = 16 << 20,  /* bytes that are left to others */
};
void *try_realloc(void *old, size_t old_size, size_t size);
/* Would so much be had now, and the rest be left? */
bool mem_left(size_t size);
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t max)
    __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *data, size_t size) __attribute__((returns_nonnull));
char *xasprintf(const char *fmt, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* Make room for one more element in a growing array: `array` has `*cap`
 * elements of `size` bytes, `n` of them in use.  Returns the (possibly
 * moved) array and updates `*cap`. */
void *xgrow(void *array, size_t n, size_t *cap, size_t size)
    __attribute__((returns_nonnull));

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Give away what a cleanup_* local holds: evaluates to the pointer and
 * leaves NULL behind. */
#define steal(ptr)                   \
    ({                               \
        __typeof__(ptr) p_ = (ptr);  \
        __typeof__(*p_) held_ = *p_; \
        *p_ = NULL;                  \
        held_;                       \
    })

static inline void cleanup_free_p(void *p)
{
    free(*(void **)p);
}
static inline void cleanup_fd_p(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* a read-only or failed descriptor */
}
static inline void cleanup_file_p(FILE **f)
{
    if (*f)
        (void)fclose(*f); /* only read from */
}
#define cleanup_free __attribute__((__cleanup__(cleanup_free_p)))
#define cleanup_fd __attribute__((__cleanup__(cleanup_fd_p), __unused__))
#define cleanup_file __attribute__((__cleanup__(cleanup_file_p)))

static inline pthread_mutex_t *hold_lock_p(pthread_mutex_t *lock)
{
    (void)pthread_mutex_lock(lock); /* cannot fail when it is used rightly */
    return lock;
}
static inline void cleanup_lock_p(pthread_mutex_t **lock)
{
    (void)pthread_mutex_unlock(*lock);
}
/* Lock a mutex until the end of the block.  A result that is returned is
 * evaluated before it is unlocked; what was declared earlier is released
 * after that. */
#define hold_lock(lock)                                      \
    __attribute__((__cleanup__(cleanup_lock_p), __unused__)) \
    pthread_mutex_t *held_lock_ = hold_lock_p(lock)

/* Define `name_cleanup` and use it as `cleanup(name)` for a type whose
 * destructor takes the pointer: DEFINE_CLEANUP(topo, struct topo *,
 * topo_unref) then `cleanup_with(topo) struct topo *t = NULL;` */
#define DEFINE_CLEANUP(name, type, destroy)      \
    static inline void name##_cleanup_p(type *p) \
    {                                            \
        if (*p)                                  \
            destroy(*p);                         \
    }
#define cleanup_with(name) __attribute__((__cleanup__(name##_cleanup_p)))

/* A bump allocator: everything is freed at once. */
struct arena {
    struct arena_block *blocks;
    size_t used, cap; /* of the newest block */
};
void *arena_alloc(struct arena *a, size_t size)
    __attribute__((returns_nonnull)); /* zeroed, aligned for any type */
/* The first block has room for just that. */
void arena_reserve(struct arena *a, size_t size);
char *arena_strndup(struct arena *a, const char *text, size_t size)
    __attribute__((returns_nonnull));
void arena_fini(struct arena *a);

#endif
