#include "lib/base/jscan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/base/jscan_private.h"
#include "lib/base/utf8.h"

void jscan_init(struct jscan *s, const char *data, size_t size)
{
    memset(s, 0, sizeof *s);
    s->begin = s->p = data;
    s->end = data + size;
}

void jscan_init_kube(struct jscan *s, const char *data, size_t size)
{
    jscan_init(s, data, size);
    s->takes_nul = true;
}

size_t jscan_offset(const struct jscan *s)
{
    return (size_t)(s->p - s->begin);
}

void jscan_fail(struct jscan *s, const char *fault, size_t at)
{
    if (s->fault)
        return;
    s->fault = fault;
    s->fault_at = at;
}

__attribute__((cold, noinline)) static bool fail_here(struct jscan *s,
                                                      const char *fault)
{
    jscan_fail(s, fault, jscan_offset(s));
    return false;
}

static inline void skip_space(struct jscan *s)
{
    const char *p = s->p, *end = s->end;
    if (p<end && * p> ' ')
        return; /* as kube-scheduler writes it */
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    s->p = p;
}

enum jkind jscan_peek(struct jscan *s)
{
    if (s->fault)
        return JKIND_NONE;
    skip_space(s);
    if (s->p == s->end) {
        fail_here(s, "unexpected end of text");
        return JKIND_NONE;
    }
    switch (*s->p) {
    case '{':
        return JKIND_OBJECT;
    case '[':
        return JKIND_ARRAY;
    case '"':
        return JKIND_STRING;
    case 't':
        return JKIND_TRUE;
    case 'f':
        return JKIND_FALSE;
    case 'n':
        return JKIND_NULL;
    case '-':
    case '0' ... '9':
        return JKIND_NUMBER;
    default:
        fail_here(s, "unexpected character");
        return JKIND_NONE;
    }
}

/* --- strings ----------------------------------------------------------- */

/* The first byte in [p, end) that needs a look: quote, backslash, control
 * character or the start of a multi-byte sequence. */
static inline const char *plain_run(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* signed compare: control characters and bytes >= 0x80 are < 0x20 */
        __m128i odd = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
            _mm_cmplt_epi8(v, space));
        int mask = _mm_movemask_epi8(odd);
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
        p += 16;
    }
#endif
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\' || c < 0x20 || c >= 0x80)
            break;
        p++;
    }
    return p;
}

/* The cursor stands on a backslash. */
static bool check_escape(struct jscan *s)
{
    const char *p = s->p + 1;
    if (p == s->end)
        return fail_here(s, "unterminated string");
    if (*p != 'u') {
        if (*p == '\0' || !strchr("\"\\/bfnrt", *p))
            return fail_here(s, "invalid escape in string");
        s->p = p + 1;
        return true;
    }
    int unit = jtext_hex4(p + 1, s->end);
    if (unit < 0)
        return fail_here(s, "invalid \\u escape in string");
    if (unit == 0 && !s->takes_nul)
        return fail_here(s, "NUL in string");
    p += 5;
    if (unit >= 0xdc00 && unit <= 0xdfff)
        return fail_here(s, "lone surrogate in string");
    if (unit >= 0xd800 && unit <= 0xdbff) {
        if (s->end - p < 6 || p[0] != '\\' || p[1] != 'u')
            return fail_here(s, "lone surrogate in string");
        int low = jtext_hex4(p + 2, s->end);
        if (low < 0xdc00 || low > 0xdfff)
            return fail_here(s, "lone surrogate in string");
        p += 6;
    }
    s->p = p;
    return true;
}

/* As scan_string, from where its fast path stopped, at s->p. */
static bool scan_odd_string(struct jscan *s, struct jtext *ret)
{
    for (;;) {
        s->p = plain_run(s->p, s->end);
        if (s->p == s->end)
            return fail_here(s, "unterminated string");
        unsigned char c = (unsigned char)*s->p;
        if (c == '"') {
            ret->size = (size_t)(s->p - ret->data);
            s->p++;
            return true;
        }
        if (c == '\\') {
            ret->escaped = true;
            if (!check_escape(s))
                return false;
        } else if (c < 0x20) {
            return fail_here(s, "control character in string");
        } else {
            size_t n = utf8_sequence(s->p, (size_t)(s->end - s->p));
            if (n == 0)
                return fail_here(s, "invalid UTF-8 in string");
            s->p += n;
        }
    }
}

/* Past the opening quote: consume up to and including the closing one.
 * Most strings are plain, so those take the straight way. */
static inline bool scan_string(struct jscan *s, struct jtext *ret)
{
    const char *from = s->p, *p = plain_run(from, s->end);
    ret->data = from;
    ret->escaped = false;
    if (p < s->end && *p == '"') {
        ret->size = (size_t)(p - from);
        s->p = p + 1;
        return true;
    }
    s->p = p;
    return scan_odd_string(s, ret);
}

bool jscan_string(struct jscan *s, struct jtext *ret_text)
{
    struct jtext text;
    /* usually the cursor stands on the quote already, after a peek */
    bool here = !s->fault && s->p < s->end && *s->p == '"';
    if (!here && jscan_peek(s) != JKIND_STRING)
        return fail_here(s, "expected a string");
    s->p++;
    if (!scan_string(s, &text))
        return false;
    *ret_text = text;
    return true;
}

/* --- numbers and words -------------------------------------------------- */

static size_t digits(struct jscan *s)
{
    const char *from = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return (size_t)(s->p - from);
}

static bool scan_exponent(struct jscan *s, int *ret_exponent)
{
    bool negative = false;
    s->p++;
    if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
        negative = *s->p++ == '-';
    const char *from = s->p;
    if (digits(s) == 0)
        return fail_here(s, "digit expected in exponent");
    int value = 0;
    for (const char *q = from; q < s->p && value < 100000; q++)
        value = value * 10 + (*q - '0');
    *ret_exponent = negative ? -value : value;
    return true;
}

/* Near the end of a double's range only its own arithmetic can tell. */
static bool fits_double(const char *data, size_t size)
{
    char text[JSCAN_NUMBER_MAX + 1];
    memcpy(text, data, size);
    text[size] = '\0';
    return isfinite(strtod(text, NULL));
}

/* Consume a number; `*ret_integer` tells whether it has neither fraction
 * nor exponent. */
static bool scan_number(struct jscan *s, bool *ret_integer)
{
    const char *from = s->p;
    int exponent = 0;
    if (*s->p == '-')
        s->p++;
    const char *whole = s->p;
    size_t n_whole = digits(s);
    if (n_whole == 0)
        return fail_here(s, "digit expected in number");
    if (n_whole > 1 && *whole == '0') {
        s->p = whole;
        return fail_here(s, "leading zero in number");
    }
    *ret_integer = true;
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        *ret_integer = false;
        if (digits(s) == 0)
            return fail_here(s, "digit expected after decimal point");
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        *ret_integer = false;
        if (!scan_exponent(s, &exponent))
            return false;
    }
    if (s->p - from > JSCAN_NUMBER_MAX ||
        (n_whole + (size_t)(exponent > 0 ? exponent : 0) > 300 &&
         !fits_double(from, (size_t)(s->p - from)))) {
        s->p = from;
        return fail_here(s, "number out of range");
    }
    return true;
}

bool jscan_int64(struct jscan *s, int64_t *ret_value)
{
    if (jscan_peek(s) != JKIND_NUMBER)
        return fail_here(s, "expected an integer");
    const char *from = s->p;
    bool integer;
    if (!scan_number(s, &integer))
        return false;
    bool negative = *from == '-';
    int64_t value = 0;
    for (const char *q = from + negative; integer && q < s->p; q++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *q - '0', &value))
            integer = false;
    if (!integer || (!negative && value == INT64_MIN)) {
        jscan_fail(s, "expected a 64-bit integer", (size_t)(from - s->begin));
        return false;
    }
    *ret_value = negative ? value : -value;
    return true;
}

static bool word(struct jscan *s, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(s->end - s->p) < len || memcmp(s->p, text, len) != 0)
        return fail_here(s, "unexpected character");
    s->p += len;
    return true;
}

bool jscan_bool(struct jscan *s, bool *ret_value)
{
    enum jkind kind = jscan_peek(s);
    if (kind != JKIND_TRUE && kind != JKIND_FALSE)
        return fail_here(s, "expected true or false");
    if (!word(s, kind == JKIND_TRUE ? "true" : "false"))
        return false;
    *ret_value = kind == JKIND_TRUE;
    return true;
}

bool jscan_null(struct jscan *s)
{
    return jscan_peek(s) == JKIND_NULL && word(s, "null");
}

/* --- containers --------------------------------------------------------- */

static bool enter(struct jscan *s, bool object)
{
    if (s->depth >= JSCAN_DEPTH_MAX)
        return fail_here(s, "nested too deep");
    uint64_t bit = UINT64_C(1) << s->depth;
    s->started &= ~bit;
    if (object)
        s->in_object |= bit;
    else
        s->in_object &= ~bit;
    s->depth++;
    s->p++;
    return true;
}

bool jscan_object(struct jscan *s)
{
    if (jscan_peek(s) != JKIND_OBJECT)
        return fail_here(s, "expected an object");
    return enter(s, true);
}

bool jscan_array(struct jscan *s)
{
    if (jscan_peek(s) != JKIND_ARRAY)
        return fail_here(s, "expected an array");
    return enter(s, false);
}

/* Move to the next member or element: false at `close` (consumed). */
static inline bool advance(struct jscan *s, char close)
{
    if (s->fault)
        return false;
    skip_space(s);
    if (s->p == s->end)
        return fail_here(s, "unexpected end of text");
    uint64_t bit = UINT64_C(1) << (s->depth - 1);
    if (*s->p == close) {
        s->p++;
        s->depth--;
        return false;
    }
    if (s->started & bit) {
        if (*s->p != ',')
            return fail_here(s, close == '}' ? "expected ',' or '}'"
                                             : "expected ',' or ']'");
        s->p++;
        skip_space(s);
    }
    s->started |= bit;
    return true;
}

bool jscan_member(struct jscan *s, struct jtext *ret_key)
{
    struct jtext key;
    if (!advance(s, '}'))
        return false;
    if (s->p == s->end || *s->p != '"')
        return fail_here(s, "expected a key");
    s->p++;
    if (!scan_string(s, &key))
        return false;
    skip_space(s);
    if (s->p == s->end || *s->p != ':')
        return fail_here(s, "expected ':'");
    s->p++;
    *ret_key = key;
    return true;
}

bool jscan_element(struct jscan *s)
{
    /* the next of many strings, written without white space */
    const char *p = s->p;
    if (!s->fault && s->end - p > 2 && p[0] == ',' && p[1] == '"' &&
        s->started >> (s->depth - 1) & 1) {
        s->p = p + 1;
        return true;
    }
    return advance(s, ']') && jscan_peek(s) != JKIND_NONE;
}

#ifdef __SSE2__
/* Which of the 64 bytes at `p` are quotes, and whether any needs a closer
 * look (backslash, control character, part of a multi-byte sequence). */
static inline uint64_t quotes_of(const char *p, bool *ret_odd)
{
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);
    __m128i odd = _mm_setzero_si128();
    uint64_t quotes = 0;
    for (unsigned i = 0; i < 4; i++) {
        __m128i v =
            _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        uint64_t bits = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, quote));
        quotes |= bits << 16 * i;
        odd = _mm_or_si128(odd, _mm_or_si128(_mm_cmpeq_epi8(v, slash),
                                             _mm_cmplt_epi8(v, space)));
    }
    *ret_odd = _mm_movemask_epi8(odd) != 0;
    return quotes;
}
#endif

/* With the cursor on the comma of `,"`: read strings for as long as they are
 * plain and nothing but that stands between them, 64 bytes at a time.  Leaves
 * the cursor behind the last one; returns how many. */
static size_t plain_strings(struct jscan *s, struct jtext *ret, size_t max)
{
    size_t n = 0;
#ifdef __SSE2__
    const char *start = s->p + 2; /* of the string that is being read */
    /* two bytes more than a block: what follows its last quote */
    for (const char *p = start; s->end - p >= 66; p += 64) {
        bool odd;
        uint64_t quotes = quotes_of(p, &odd);
        if (odd)
            break;
        if (start > p) /* its opening quote is no closing one */
            quotes &= ~UINT64_C(0) << (start - p);
        while (quotes) {
            const char *close = p + __builtin_ctzll(quotes);
            ret[n++] = (struct jtext){start, (size_t)(close - start), false};
            s->p = close + 1;
            if (n == max || close[1] != ',' || close[2] != '"')
                return n;
            start = close + 3;
            /* past itself and the next opening quote */
            quotes &= start - p < 64 ? ~UINT64_C(0) << (start - p) : 0;
        }
    }
#else
    (void)s, (void)ret, (void)max;
#endif
    return n;
}

/* The common case, `"plain",` with nothing between, stays in this loop. */
size_t jscan_strings(struct jscan *s, struct jtext *ret, size_t max)
{
    size_t n = 0;
    while (n < max && jscan_element(s)) {
        if (!jscan_string(s, &ret[n]))
            break;
        n++;
        while (n < max && s->end - s->p > 2 && s->p[0] == ',' &&
               s->p[1] == '"') {
            size_t plain = plain_strings(s, ret + n, max - n);
            n += plain;
            if (plain)
                continue;
            s->p += 2;
            if (!scan_string(s, &ret[n]))
                return n;
            n++;
        }
    }
    return n;
}

static bool skip_scalar(struct jscan *s, enum jkind kind)
{
    struct jtext text;
    bool ignored;
    switch (kind) {
    case JKIND_STRING:
        s->p++;
        return scan_string(s, &text);
    case JKIND_NUMBER:
        return scan_number(s, &ignored);
    case JKIND_NULL:
        return word(s, "null");
    case JKIND_TRUE:
    case JKIND_FALSE:
        return jscan_bool(s, &ignored);
    default:
        return false;
    }
}

bool jscan_skip(struct jscan *s)
{
    unsigned floor = s->depth;
    struct jtext key;
    do {
        enum jkind kind = jscan_peek(s);
        if (kind == JKIND_OBJECT || kind == JKIND_ARRAY) {
            if (!enter(s, kind == JKIND_OBJECT))
                return false;
        } else if (!skip_scalar(s, kind)) {
            return false;
        }
        /* to the next value of the innermost container still open */
        while (s->depth > floor) {
            bool object = s->in_object & UINT64_C(1) << (s->depth - 1);
            if (object ? jscan_member(s, &key) : jscan_element(s))
                break;
            if (s->fault)
                return false;
        }
    } while (s->depth > floor);
    return true;
}

bool jscan_raw(struct jscan *s, struct jtext *ret_bytes)
{
    if (jscan_peek(s) == JKIND_NONE)
        return false;
    const char *from = s->p;
    if (!jscan_skip(s))
        return false;
    *ret_bytes = (struct jtext){from, (size_t)(s->p - from), false};
    return true;
}

bool jscan_end(struct jscan *s)
{
    if (s->fault)
        return false;
    skip_space(s);
    return s->p == s->end || fail_here(s, "trailing garbage");
}

/* --- faults ---------------------------------------------------- */

int jscan_error(const struct jscan *s, struct error *err)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < s->fault_at && s->begin + i < s->end; i++) {
        if (s->begin[i] == '\n') {
            line++;
            column = 1;
        } else {
            column++;
        }
    }
    return error_set(err, EINVAL, "%s at line %zu column %zu (byte %zu)",
                     s->fault ? s->fault : "malformed JSON", line, column,
                     s->fault_at);
}
