/* slice_pattern_private - what a pattern of slices is made of. */
#ifndef BIGA_MODEL_SLICE_SLICE_PATTERN_PRIVATE_H
#define BIGA_MODEL_SLICE_SLICE_PATTERN_PRIVATE_H

#include "model/slice/slice_pattern.h"

/* What differs from slice to slice. */
enum slot {
    SLOT_NAME,
    SLOT_BOOT_ID,
    SLOT_HASH,
    SLOT_NODE,
    SLOT_POOL,
    SLOT_GENERATION,
    SLOT_NODE_TEXT, /* of any device */
    SLOT_OWN,       /* from here on: of the devices, in the topology's order */
};

enum own_text {
    OWN_SERIAL,
    OWN_GUID,
    OWN_FABRIC_PORT,
    OWN_ENDPOINT,
    OWN_COUNT
};

enum { SLICE_GENERATION_DIGITS = 15 }; /* that are read: below 2^53 */

/* A place in the text where another slice may have another value. */
struct hole {
    size_t at, size, slot;
};

struct slice_pattern {
    char *json;
    size_t size;
    struct hole *holes; /* in the order of the text */
    size_t n_holes;
    struct hardware *hardware;
    size_t n_slots;
    uint64_t given;
};

/* How many of the bytes stand for themselves in a JSON text. */
static inline size_t slice_plain_size(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n] >= ' ' && text[n] <= '~' && text[n] != '"' &&
           text[n] != '\\')
        n++;
    return n;
}

static inline size_t slice_digits_size(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

#endif
