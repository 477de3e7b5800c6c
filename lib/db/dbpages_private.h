/* dbpages_private - reads the frames of an SQLite log, for dbpages.c. */
#ifndef BIGA_LIB_DB_DBPAGES_PRIVATE_H
#define BIGA_LIB_DB_DBPAGES_PRIVATE_H

#include "lib/db/dbpages.h"

enum {
    DBPAGES_MAX = 1 << 24, /* 64 GiB; frames of higher pages are broken */
    LOG_HEADER = 32,
    LOG_MAGIC = 0x377f0682, /* or one more: checksums of big-endian words */
    FRAME_HEADER = 24,
};

/* A frame of the log since its newest restart: the image of one page. */
struct frame {
    uint32_t page; /* from 1 */
    bool sound;    /* as it was written, and committed */
};

/* All frames as they were written, with broken ones; the caller frees them. */
uint32_t dbpages_scan_log(const struct dbpages_source *source, size_t page_size,
                          struct frame **ret_frames);

/* Where a frame begins: its header, then its page. */
static inline uint64_t frame_at(size_t page_size, uint32_t i)
{
    return LOG_HEADER + (uint64_t)i * (FRAME_HEADER + page_size);
}

static inline uint32_t get_u16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t get_u32(const uint8_t *p)
{
    return get_u16(p) << 16 | get_u16(p + 2);
}

#endif
