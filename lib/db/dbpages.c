/* The formats are those of https://www.sqlite.org/fileformat2.html. */
#include "lib/db/dbpages.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/db/dbpages_private.h"

enum {
    PAGE_MIN = 512,
    PAGE_MAX = 65536,
    PAGE_DEFAULT = 4096,
    FILE_HEADER = 100, /* before the first page's own */
    LEAF_HEADER = 8,
    LEAF_OF_TABLE = 0x0d,
};

struct pages {
    const struct dbpages_source *source;
    size_t page_size;
    uint32_t n_pages; /* in the file */
    uint32_t n_max;   /* the last one that is anywhere */
    struct frame *frames;
    uint32_t n_frames;
    uint32_t *newest; /* of each page: the frame, from 1, of its newest sound
                       * image; 0: it is in the file */
    bool *is_free;
    uint8_t *leaf;   /* the page at hand */
    uint64_t budget; /* overflow pages that may still be read */
    dbpages_row_f *visit;
    void *ctx;
    struct dbpages_found found;
};

/* --- where images are ----------------------------------------------------- */

static bool read_frame_page(const struct pages *p, uint32_t i, uint8_t *buf)
{
    return p->source->read(p->source->ctx, DBPAGES_LOG,
                           frame_at(p->page_size, i) + FRAME_HEADER, buf,
                           p->page_size);
}

/* The newest sound image of a page, from 1. */
static bool read_page(const struct pages *p, uint32_t page, uint8_t *buf)
{
    if (page == 0 || page > p->n_max)
        return false;
    if (p->newest[page])
        return read_frame_page(p, p->newest[page] - 1, buf);
    return page <= p->n_pages &&
           p->source->read(p->source->ctx, DBPAGES_MAIN,
                           (uint64_t)(page - 1) * p->page_size, buf,
                           p->page_size);
}

/* --- what there is --------------------------------------------------------- */

static bool is_page_size(uint32_t size)
{
    return size >= PAGE_MIN && size <= PAGE_MAX && (size & (size - 1)) == 0;
}

/* In the database's header, or else in the log's. */
static size_t find_page_size(const struct dbpages_source *s)
{
    uint8_t head[LOG_HEADER] = {0};
    uint32_t size = 0;
    if (s->size[DBPAGES_MAIN] >= sizeof head &&
        s->read(s->ctx, DBPAGES_MAIN, 0, head, sizeof head) &&
        memcmp(head, "SQLite format 3", 16) == 0)
        size = get_u16(head + 16) == 1 ? PAGE_MAX : get_u16(head + 16);
    if (!is_page_size(size) && s->size[DBPAGES_LOG] >= sizeof head &&
        s->read(s->ctx, DBPAGES_LOG, 0, head, sizeof head) &&
        (get_u32(head) | 1) == LOG_MAGIC + 1)
        size = get_u32(head + 8);
    return is_page_size(size) ? size : PAGE_DEFAULT;
}

/* Deleted rows are still to be read in pages that are free.  One that was
 * written after the list was, as far as we have it, is in use again. */
static void set_free(struct pages *p, uint32_t page)
{
    if (page <= p->n_max && p->newest[page] <= p->newest[1])
        p->is_free[page] = true;
}

static void find_free(struct pages *p, uint8_t *buf)
{
    uint32_t left = p->n_max;
    uint32_t trunk = read_page(p, 1, buf) ? get_u32(buf + 32) : 0;
    while (trunk && left-- > 0 && read_page(p, trunk, buf)) {
        uint32_t n = get_u32(buf + 4);
        set_free(p, trunk);
        for (uint32_t i = 0; i < n && i < p->page_size / 4 - 2; i++)
            set_free(p, get_u32(buf + 8 + (size_t)4 * i));
        trunk = get_u32(buf);
    }
}

static void pages_init(struct pages *p)
{
    p->page_size = find_page_size(p->source);
    uint64_t n = p->source->size[DBPAGES_MAIN] / p->page_size;
    p->n_pages = n < DBPAGES_MAX ? (uint32_t)n : DBPAGES_MAX;
    p->n_max = p->n_pages;
    p->found.pages = p->n_pages;
    p->n_frames = dbpages_scan_log(p->source, p->page_size, &p->frames);
    p->found.frames = p->n_frames;
    for (uint32_t i = 0; i < p->n_frames; i++) {
        const struct frame *f = &p->frames[i];
        p->found.broken += !f->sound;
        if (f->sound && f->page > p->n_max)
            p->n_max = f->page;
    }
    p->budget = 2 * ((uint64_t)p->n_pages + p->n_frames);
    p->newest = xcalloc((size_t)p->n_max + 2, sizeof *p->newest);
    p->is_free = xcalloc((size_t)p->n_max + 2, sizeof *p->is_free);
    p->leaf = xmalloc(p->page_size);
    for (uint32_t i = 0; i < p->n_frames; i++) {
        if (p->frames[i].sound)
            p->newest[p->frames[i].page] = i + 1;
    }
    find_free(p, p->leaf);
}

static void pages_fini(struct pages *p)
{
    free(p->frames);
    free(p->newest);
    free(p->is_free);
    free(p->leaf);
}

/* --- rows ------------------------------------------------------------------ */

/* A number of 1 to 9 bytes; 0 when it is cut off. */
static size_t get_varint(const uint8_t *p, size_t size, uint64_t *ret_value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < size && i < 8; i++) {
        v = v << 7 | (p[i] & 0x7f);
        if (!(p[i] & 0x80)) {
            *ret_value = v;
            return i + 1;
        }
    }
    if (size < 9)
        return 0;
    *ret_value = v << 8 | p[8];
    return 9;
}

/* The size of a column of that serial type; SIZE_MAX: this project's rows have
 * no such column. */
static size_t value_size(uint64_t type)
{
    static const uint8_t sizes[] = {0, 1, 2, 3, 4, 6, 8};
    if (type < ARRAY_LEN(sizes))
        return sizes[type];
    if (type == 8 || type == 9)
        return 0;
    return type >= 12 && type <= 13 + 2 * (uint64_t)DBPAGES_ROW_MAX
               ? (size_t)(type - 12) / 2
               : SIZE_MAX;
}

static void get_value(uint64_t type, const uint8_t *data, size_t size,
                      struct dbpages_value *v)
{
    *v = (struct dbpages_value){.type = DBPAGES_NULL};
    if (type >= 12) {
        v->type = type % 2 ? DBPAGES_TEXT : DBPAGES_BLOB;
        v->data = (const char *)data;
        v->size = size;
    } else if (type) {
        uint64_t number = type == 9;
        if (size && data[0] & 0x80)
            number = UINT64_MAX;
        for (size_t i = 0; i < size; i++)
            number = number << 8 | data[i];
        v->type = DBPAGES_INT;
        v->number = (int64_t)number;
    }
}

/* A record: the types of its columns, then their values. */
static int visit_record(struct pages *p, const uint8_t *data, size_t size)
{
    struct dbpages_value values[DBPAGES_COLUMNS_MAX];
    struct dbpages_row row = {.values = values};
    uint64_t head, type;
    size_t at = get_varint(data, size, &head);
    if (at == 0 || head > size)
        return 0;
    for (size_t body = (size_t)head; at < head; row.n++) {
        size_t n = get_varint(data + at, (size_t)head - at, &type);
        size_t taken = n ? value_size(type) : SIZE_MAX;
        if (taken > size - body || row.n == DBPAGES_COLUMNS_MAX)
            return 0;
        get_value(type, data + body, taken, &values[row.n]);
        at += n;
        body += taken;
    }
    if (row.n == 0)
        return 0;
    p->found.rows++;
    return p->visit(p->ctx, &row);
}

/* The rest of a row, from overflow pages: each names the next one. */
static bool read_overflow(struct pages *p, uint32_t page, uint8_t *to,
                          size_t size)
{
    cleanup_free uint8_t *buf = xmalloc(p->page_size);
    while (size > 0) {
        size_t n = size < p->page_size - 4 ? size : p->page_size - 4;
        if (p->budget == 0 || !read_page(p, page, buf))
            return false;
        p->budget--;
        memcpy(to, buf + 4, n);
        to += n;
        size -= n;
        page = get_u32(buf);
    }
    return true;
}

/* The cell at an offset of the leaf: size, row id, record. */
static int visit_cell(struct pages *p, size_t at)
{
    uint64_t size, rowid;
    size_t n = get_varint(p->leaf + at, p->page_size - at, &size);
    at += n;
    n = n ? get_varint(p->leaf + at, p->page_size - at, &rowid) : 0;
    at += n; /* the row id is of no use */
    if (n == 0 || size > DBPAGES_ROW_MAX)
        return 0;
    size_t usable = p->page_size, local = (size_t)size;
    if (local > usable - 35) {
        size_t least = (usable - 12) * 32 / 255 - 23;
        local = least + (local - least) % (usable - 4);
        if (local > usable - 35)
            local = least;
    }
    size_t pointer = local < size ? 4 : 0;
    /* an overflow page for each part: more than there are is no row */
    if (local + pointer > usable - at ||
        (size - local) / (usable - 4) > p->budget)
        return 0;
    if (!pointer)
        return visit_record(p, p->leaf + at, local);
    cleanup_free uint8_t *whole = xmalloc((size_t)size);
    memcpy(whole, p->leaf + at, local);
    if (!read_overflow(p, get_u32(p->leaf + at + local), whole + local,
                       (size_t)size - local))
        return 0;
    return visit_record(p, whole, (size_t)size);
}

/* The rows of the image that is in `leaf`. */
static int visit_leaf(struct pages *p, uint32_t page)
{
    size_t head = page == 1 ? FILE_HEADER : 0;
    if (p->leaf[head] != LEAF_OF_TABLE)
        return 0;
    size_t n = get_u16(p->leaf + head + 3);
    for (size_t i = 0; i < n; i++) {
        size_t pointer = head + LEAF_HEADER + 2 * i;
        if (pointer + 2 > p->page_size)
            break;
        size_t at = get_u16(p->leaf + pointer);
        int e = at < p->page_size ? visit_cell(p, at) : 0;
        if (e != 0)
            return e;
    }
    return 0;
}

int dbpages_each(const struct dbpages_source *source, dbpages_row_f *visit,
                 void *ctx, struct dbpages_found *ret_found)
{
    struct pages p = {.source = source, .visit = visit, .ctx = ctx};
    int e = 0;
    pages_init(&p);
    for (uint32_t page = 1; page <= p.n_pages && e == 0; page++)
        if (!p.newest[page] && !p.is_free[page] && read_page(&p, page, p.leaf))
            e = visit_leaf(&p, page);
    for (uint32_t i = 0; i < p.n_frames && e == 0; i++) {
        const struct frame *f = &p.frames[i];
        bool wanted = !f->sound ||
                      (p.newest[f->page] == i + 1 && !p.is_free[f->page]);
        if (wanted && read_frame_page(&p, i, p.leaf))
            e = visit_leaf(&p, f->page);
    }
    *ret_found = p.found;
    pages_fini(&p);
    return e;
}
