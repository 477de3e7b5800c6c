/* slots - an array of elements in order: one is put in, or taken out.  Whoever
 * has the array sees to its room, and counts. */
#ifndef BIGA_LIB_BASE_SLOTS_H
#define BIGA_LIB_BASE_SLOTS_H

#include <stddef.h>
#include <string.h>

/* `n` is how many there are before, `size` that of an element. */
static inline void slots_insert(void *array, size_t n, size_t size, size_t at,
                                const void *element)
{
    char *place = (char *)array + at * size;
    memmove(place + size, place, (n - at) * size);
    memcpy(place, element, size);
}

static inline void slots_remove(void *array, size_t n, size_t size, size_t at)
{
    char *place = (char *)array + at * size;
    memmove(place, place + size, (n - at - 1) * size);
}

#endif
