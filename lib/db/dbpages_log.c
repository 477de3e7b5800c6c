/* The frames of a log, judged one by one.  A frame's checksum goes on from that
 * of the frame before, which is stored there: where that one is broken this
 * one can be checked all the same. */
#include <string.h>

#include "lib/base/mem.h"
#include "lib/db/dbpages_private.h"

static bool read_log(const struct dbpages_source *source, uint64_t at,
                     void *buf, size_t size)
{
    return source->read(source->ctx, DBPAGES_LOG, at, buf, size);
}

struct sum {
    uint32_t a, b;
};

/* SQLite's: over words of four bytes, two at a time. */
static struct sum sum_of(struct sum s, const uint8_t *data, size_t size,
                         bool big)
{
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint32_t x = get_u32(data + i), y = get_u32(data + i + 4);
        if (!big) {
            x = __builtin_bswap32(x);
            y = __builtin_bswap32(y);
        }
        s.a += x + s.b;
        s.b += y + s.a;
    }
    return s;
}

static struct sum sum_stored(const uint8_t *p)
{
    return (struct sum){get_u32(p), get_u32(p + 4)};
}

static bool sum_equal(struct sum a, struct sum b)
{
    return a.a == b.a && a.b == b.b;
}

/* Reads the frames in their order. */
struct scan {
    const struct dbpages_source *source;
    size_t page_size;
    uint8_t salts[8]; /* of the newest round */
    bool big;
    struct sum seed;    /* of the frame before, as far as is known */
    struct sum instead; /* the log's header, if its own sum is wrong */
    uint8_t head[FRAME_HEADER], *page;
};

static struct sum scan_sum(const struct scan *s, struct sum seed)
{
    return sum_of(sum_of(seed, s->head, 8, s->big), s->page, s->page_size,
                  s->big);
}

static bool scan_read(struct scan *s, uint32_t i)
{
    memset(s->head, 0, sizeof s->head);
    return read_log(s->source, frame_at(s->page_size, i), s->head,
                    FRAME_HEADER) &&
           read_log(s->source, frame_at(s->page_size, i) + FRAME_HEADER,
                    s->page, s->page_size);
}

/* Of a frame whose sum is not `sum`: is that because the sum that is stored is
 * damaged?  Then the next one goes on from what it should be. */
static bool next_confirms(struct scan *s, uint32_t i, struct sum sum)
{
    return scan_read(s, i + 1) &&
           sum_equal(scan_sum(s, sum), sum_stored(s->head + 16));
}

/* Whether frame `i` is as it was written, whatever its salts. */
static bool scan_frame(struct scan *s, uint32_t i, uint32_t *ret_page,
                       uint32_t *ret_commit, bool *ret_salts)
{
    bool there = scan_read(s, i);
    struct sum stored = sum_stored(s->head + 16), sum = scan_sum(s, s->seed);
    *ret_page = get_u32(s->head);
    *ret_commit = get_u32(s->head + 4);
    *ret_salts = there && memcmp(s->head + 8, s->salts, 8) == 0;
    if (there && i == 0 && !sum_equal(sum, stored))
        sum = scan_sum(s, s->instead);
    bool sound = there && sum_equal(sum, stored);
    s->seed = stored;
    if (there && !sound && next_confirms(s, i, sum)) {
        sound = true;
        s->seed = sum;
    }
    return sound;
}

/* The salts of the newest round are in the header, and in each of its frames:
 * of a damaged header the first that are no zeros, of a frame that is there. */
static void scan_begin(struct scan *s, uint32_t n)
{
    static const uint8_t none[sizeof s->salts];
    uint8_t head[LOG_HEADER] = {0};
    (void)read_log(s->source, 0, head, sizeof head); /* or zeros */
    /* what is not SQLite's is damaged: as this machine would write it */
    s->big = get_u32(head) == LOG_MAGIC + 1;
    s->seed = sum_stored(head + 24);
    s->instead = sum_of((struct sum){0}, head, 24, s->big);
    memcpy(s->salts, head + 16, sizeof none);
    if ((get_u32(head) | 1) == LOG_MAGIC + 1 && sum_equal(s->seed, s->instead))
        return;
    memset(s->salts, 0, sizeof none);
    for (uint32_t i = 0; i < n && memcmp(s->salts, none, sizeof none) == 0; i++)
        if (scan_read(s, i))
            memcpy(s->salts, s->head + 8, sizeof none);
}

uint32_t dbpages_scan_log(const struct dbpages_source *source, size_t page_size,
                          struct frame **ret_frames)
{
    uint64_t size = source->size[DBPAGES_LOG];
    uint64_t most = size < LOG_HEADER
                        ? 0
                        : (size - LOG_HEADER) / (FRAME_HEADER + page_size);
    uint32_t n = most < DBPAGES_MAX ? (uint32_t)most : DBPAGES_MAX;
    cleanup_free uint8_t *page = xmalloc(page_size);
    struct frame *frames = xcalloc((size_t)n + 1, sizeof *frames);
    struct scan s = {.source = source, .page_size = page_size, .page = page};
    uint32_t n_frames = 0, committed = 0; /* up to the last sound commit */
    bool within = true; /* the frame before is of this round */
    scan_begin(&s, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t commit;
        bool salts;
        struct frame *f = &frames[i];
        f->sound = scan_frame(&s, i, &f->page, &commit, &salts);
        within = salts || (within && f->sound);
        if (within)
            n_frames = i + 1; /* those between are of it, too */
        if (within && f->sound && commit)
            committed = i + 1;
    }
    for (uint32_t i = 0; i < n_frames; i++) {
        struct frame *f = &frames[i];
        f->sound = f->sound && i < committed && f->page &&
                   f->page <= DBPAGES_MAX;
    }
    *ret_frames = frames;
    return n_frames;
}
