#include "router/stream/stream_word.h"

#include <string.h>
#include <strings.h>

#include "lib/base/base64.h"
#include "lib/base/mem.h"

/* SPDY/3.1, 2.2 and 2.6 */
enum {
    SPDY_SYN_REPLY = 2,
    SPDY_RST_STREAM = 3,
    SPDY_GOAWAY = 7,
    SPDY_FIN = 1,
    SPDY_VERSION = 3,
    ERROR_STREAM = 1, /* the first of a client: client-go opens it first */
};

/* RFC 6455, 5.2 and 7.4 */
enum {
    WS_FIN = 0x80,
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_CLOSE = 8,
    WS_GOING_AWAY = 1001,
    WS_CONTROL_MAX = 125,
    ERROR_CHANNEL = 3,
};

void stream_word_init(struct stream_word *w, const char *upgrade,
                      const char *protocol)
{
    static const struct {
        const char *protocol;
        bool status, base64;
    } known[] = {
        {"v5.channel.k8s.io", true, false},
        {"v4.channel.k8s.io", true, false},
        {"v3.channel.k8s.io", false, false},
        {"v2.channel.k8s.io", false, false},
        {"portforward.k8s.io", false, false},
        {"v4.base64.channel.k8s.io", true, true},
        {"base64.channel.k8s.io", false, true},
    };
    *w = (struct stream_word){.frames = strcasecmp(upgrade, "websocket") == 0
                                            ? STREAM_WORD_WS
                                            : STREAM_WORD_SPDY};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].protocol, protocol) == 0) {
            w->form = known[i].status ? STREAM_WORD_STATUS : STREAM_WORD_PLAIN;
            w->base64 = known[i].base64;
        }
}

/* --- what the remote sends ------------------------------------------------------ */

static uint64_t number(const unsigned char *at, unsigned size)
{
    uint64_t value = 0;
    while (size-- > 0)
        value = value << 8 | *at++;
    return value;
}

/* How many bytes tell all about a frame that begins so. */
static unsigned spdy_need(const struct stream_word *w)
{
    if (w->n_start < 8)
        return 8;
    unsigned type = (unsigned)number(w->start + 2, 2);
    bool named = w->start[0] & 0x80 &&
                 (type == SPDY_SYN_REPLY || type == SPDY_RST_STREAM);
    return named && number(w->start + 5, 3) >= 4 ? 12 : 8;
}

static void spdy_begin(struct stream_word *w)
{
    bool control = w->start[0] & 0x80, fin = w->start[4] & SPDY_FIN;
    unsigned type = (unsigned)number(w->start + 2, 2);
    w->left = number(w->start + 5, 3) - (w->n_start - 8);
    if (!control && number(w->start, 4) == ERROR_STREAM) {
        w->told = true;
        w->open &= !fin;
    }
    if (!control || w->n_start < 12 ||
        (number(w->start + 8, 4) & INT32_MAX) != ERROR_STREAM)
        return;
    w->open = type == SPDY_SYN_REPLY && !fin;
}

static unsigned ws_need(const struct stream_word *w)
{
    if (w->n_start < 2)
        return 2;
    unsigned len = w->start[1] & 0x7f, mask = w->start[1] & 0x80 ? 4 : 0;
    return 2 + mask + (len == 127 ? 8 : len == 126 ? 2 : 0);
}

static void ws_begin(struct stream_word *w)
{
    unsigned code = w->start[0] & 0x0f, len = w->start[1] & 0x7f;
    w->left = len == 127   ? number(w->start + 2, 8)
              : len == 126 ? number(w->start + 2, 2)
                           : len;
    if (code < 8)
        w->fragment = !(w->start[0] & WS_FIN);
    w->ended |= code == WS_CLOSE;
}

static unsigned need(const struct stream_word *w)
{
    return w->frames == STREAM_WORD_WS ? ws_need(w) : spdy_need(w);
}

/* One more byte of a frame's start. */
static void start_add(struct stream_word *w, unsigned char byte)
{
    w->start[w->n_start++] = byte;
    if (w->n_start < need(w))
        return;
    if (w->frames == STREAM_WORD_WS)
        ws_begin(w);
    else
        spdy_begin(w);
    w->n_start = 0;
}

void stream_word_pass(struct stream_word *w, const void *data, size_t size)
{
    const unsigned char *at = data, *end = at + size;
    while (at < end && w->frames != STREAM_WORD_NONE) {
        uint64_t n = (size_t)(end - at);
        if (w->left == 0) {
            start_add(w, *at++);
            continue;
        }
        n = n < w->left ? n : w->left;
        at += n;
        w->left -= n;
    }
}

/* --- what we say ------------------------------------------------------------------ */

static void add_number(struct str *out, uint64_t value, unsigned size)
{
    while (size-- > 0)
        str_add_c(out, (char)(unsigned char)(value >> 8 * size));
}

/* The text for people, in the form that the protocol has for it. */
static void form(const struct stream_word *w, const char *text, struct str *out)
{
    if (w->form == STREAM_WORD_PLAIN) {
        str_add(out, text);
        return;
    }
    stream_status_add(503, text, out);
}

static void spdy_say(const struct stream_word *w, const struct str *said,
                     struct str *out)
{
    if (w->open && said->size > 0) {
        add_number(out, ERROR_STREAM, 4);
        add_number(out, SPDY_FIN, 1);
        add_number(out, said->size, 3);
        str_add_n(out, said->data, said->size);
    }
    add_number(out, 0x8000 | SPDY_VERSION, 2);
    add_number(out, SPDY_GOAWAY, 2);
    add_number(out, 8, 4); /* no flags; the length */
    add_number(out, ERROR_STREAM, 4);
    add_number(out, 0, 4);
}

static void ws_message(const struct stream_word *w, const struct str *said,
                       struct str *out)
{
    cleanup_str struct str body = STR_INIT(STREAM_WORD_MAX);
    str_add_c(&body, (char)(w->base64 ? '0' + ERROR_CHANNEL : ERROR_CHANNEL));
    if (w->base64)
        base64_add(&body, said->data, said->size);
    else
        str_add_n(&body, said->data, said->size);
    add_number(out, WS_FIN | (w->base64 ? WS_TEXT : WS_BINARY), 1);
    add_number(out, body.size <= WS_CONTROL_MAX ? body.size : 126, 1);
    if (body.size > WS_CONTROL_MAX)
        add_number(out, body.size, 2);
    str_add_n(out, body.data, body.size);
}

static void ws_say(const struct stream_word *w, const char *text,
                   const struct str *said, struct str *out)
{
    size_t len = strnlen(text, WS_CONTROL_MAX - 2);
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--; /* not within a character of UTF-8 */
    if (!w->fragment && said->size > 0)
        ws_message(w, said, out);
    add_number(out, WS_FIN | WS_CLOSE, 1);
    add_number(out, len + 2, 1);
    add_number(out, WS_GOING_AWAY, 2);
    str_add_n(out, text, len);
}

bool stream_word_is_owed(const struct stream_word *w)
{
    return w->frames == STREAM_WORD_SPDY ? w->open && !w->told
           : w->frames == STREAM_WORD_WS ? !w->ended && !w->fragment
                                         : false;
}

void stream_word_say(const struct stream_word *w, const char *text,
                     struct str *out)
{
    cleanup_str struct str said = STR_INIT(STREAM_WORD_MAX);
    char brief[STREAM_STATUS_TEXT + 1];
    if (w->ended || w->left > 0 || w->n_start > 0)
        return;
    (void)snprintf(brief, sizeof brief, "%s", text);
    if (w->form != STREAM_WORD_MUTE)
        form(w, brief, &said);
    if (w->frames == STREAM_WORD_SPDY)
        spdy_say(w, &said, out);
    else if (w->frames == STREAM_WORD_WS)
        ws_say(w, brief, &said, out);
}
