#include "lib/stream/spdy_frame.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"

enum {
    CONTROL = 0x80, /* in the first byte of a head */
    VERSION = 3,
    LAST = 0x01, /* a flag */
    SYN_STREAM = 1,
    SYN_REPLY = 2,
    RST_STREAM = 3,
    PING = 6,
    GOAWAY = 7,
    OPEN_FIXED = 10, /* bytes of SYN_STREAM before its headers */
    HEADERS_MAX = 4 << 10,
};

static void add_be(struct str *out, uint64_t value, size_t n)
{
    while (n--)
        str_add_c(out, (char)(value >> (8 * n) & 0xff));
}

static uint32_t read_be(const unsigned char *at, size_t n)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | at[i];
    return value;
}

/* --- what is sent ---------------------------------------------------------- */

static void add_head(struct str *out, int type, int flags, size_t size)
{
    add_be(out, CONTROL << 8 | VERSION, 2);
    add_be(out, (uint64_t)type, 2);
    add_be(out, (uint64_t)flags, 1);
    add_be(out, size, 3);
}

/* RFC 1951, 3.2.4: neither byte of the length needs a code. */
static void add_stored(struct str *out, const char *data, size_t size)
{
    str_add_c(out, 0);
    str_add_c(out, (char)(size & 0xff));
    str_add_c(out, (char)(size >> 8));
    str_add_c(out, (char)(~size & 0xff));
    str_add_c(out, (char)(~size >> 8 & 0xff));
    str_add_n(out, data, size);
}

static void add_text(struct str *out, const char *text)
{
    add_be(out, strlen(text), 4);
    str_add(out, text);
}

void spdy_open(struct spdy_writer *w, uint32_t id,
               const struct spdy_header *headers, size_t n, struct str *out)
{
    /* zlib's head that names a dictionary, and the one of SPDY/3 */
    static const char zlib[] = "\x78\xbb\xe3\xc6\xa7\xc2";
    cleanup_str struct str plain = STR_INIT(HEADERS_MAX);
    cleanup_str struct str block = STR_INIT(2 * HEADERS_MAX);
    add_be(&plain, n, 4);
    for (size_t i = 0; i < n; i++) {
        add_text(&plain, headers[i].name);
        add_text(&plain, headers[i].value);
    }
    assert(!plain.overflow);
    if (!w->began)
        str_add_n(&block, zlib, sizeof zlib - 1);
    w->began = true;
    add_stored(&block, plain.data, plain.size);
    add_stored(&block, "", 0); /* a reader gives out what it has */
    add_head(out, SYN_STREAM, 0, OPEN_FIXED + block.size);
    add_be(out, id, 4);
    add_be(out, 0, OPEN_FIXED - 4); /* of no other, of no priority */
    str_add_n(out, block.data, block.size);
}

void spdy_data(uint32_t id, const char *data, size_t size, bool last,
               struct str *out)
{
    assert(size <= SPDY_DATA_MAX);
    add_be(out, id, 4);
    add_be(out, last ? LAST : 0, 1);
    add_be(out, size, 3);
    str_add_n(out, data, size);
}

void spdy_pong(uint32_t id, struct str *out)
{
    add_head(out, PING, 0, 4);
    add_be(out, id, 4);
}

/* --- what comes ------------------------------------------------------------ */

static int check_head(const struct spdy_reader *r, struct error *err)
{
    const unsigned char *h = r->head;
    if (!(h[0] & CONTROL))
        return 0;
    uint32_t version = read_be(h, 2) & INT16_MAX;
    if (version != VERSION)
        return error_set(err, EPROTO,
                         "a frame of SPDY is of version %u, must be %d",
                         version, VERSION);
    if (r->left > SPDY_CONTROL_MAX)
        return error_set(err, EPROTO,
                         "a control frame of SPDY has %u bytes, the limit is "
                         "%d",
                         r->left, SPDY_CONTROL_MAX);
    return 0;
}

static void say_control(const struct spdy_reader *r, struct spdy_piece *piece)
{
    static const enum spdy_kind kinds[] = {
        [SYN_REPLY] = SPDY_REPLY,
        [RST_STREAM] = SPDY_RESET,
        [PING] = SPDY_PING,
        [GOAWAY] = SPDY_GOAWAY,
    };
    uint32_t type = read_be(r->head + 2, 2);
    enum spdy_kind kind = type < ARRAY_LEN(kinds) ? kinds[type] : SPDY_NOTHING;
    if (kind != SPDY_NOTHING && r->n_body < 4)
        return; /* it says nothing about whom */
    piece->kind = kind;
    piece->stream = read_be(r->body, 4) & INT32_MAX;
    if (kind == SPDY_PING)
        piece->stream = read_be(r->body, 4);
    piece->last = kind == SPDY_REPLY && r->head[4] & LAST;
}

/* The head is there; how many bytes behind it are taken. */
static size_t take_body(struct spdy_reader *r, const char *data, size_t size,
                        struct spdy_piece *piece)
{
    size_t n = size < r->left ? size : r->left;
    r->left -= (uint32_t)n;
    if (!(r->head[0] & CONTROL)) {
        *piece = (struct spdy_piece){
            .kind = SPDY_DATA,
            .stream = read_be(r->head, 4),
            .data = data,
            .size = n,
            .last = r->left == 0 && r->head[4] & LAST,
        };
    } else {
        for (size_t i = 0; i < n && r->n_body < sizeof r->body; i++)
            r->body[r->n_body++] = (unsigned char)data[i];
        if (r->left == 0)
            say_control(r, piece);
    }
    if (r->left == 0)
        r->n_head = r->n_body = 0;
    return n;
}

ssize_t spdy_read(struct spdy_reader *r, const char *data, size_t size,
                  struct spdy_piece *ret_piece, struct error *err)
{
    size_t at = 0;
    *ret_piece = (struct spdy_piece){0};
    if (r->n_head < SPDY_HEAD) {
        while (at < size && r->n_head < SPDY_HEAD)
            r->head[r->n_head++] = (unsigned char)data[at++];
        if (r->n_head < SPDY_HEAD)
            return (ssize_t)at;
        r->left = read_be(r->head + 5, 3);
        int e = check_head(r, err);
        if (e < 0)
            return e;
        if (r->left > 0)
            return (ssize_t)at;
    }
    return (ssize_t)(at + take_body(r, data + at, size - at, ret_piece));
}
