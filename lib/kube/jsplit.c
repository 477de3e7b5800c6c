#include "lib/kube/jsplit.h"

#include <string.h>

/* Where the cursor stands.  Those of the list's own members look at one byte
 * at a time; within a container only strings and brackets count. */
enum {
    BETWEEN,     /* before the list, or between the objects of a stream */
    FIRST_KEY,   /* behind the list's brace: a key, or its end */
    NEXT_KEY,    /* behind a comma */
    IN_KEY,      /* of the list */
    COLON,       /* behind such a key */
    VALUE,       /* before its value */
    ITEMS,       /* before the value of "items" */
    TEXT,        /* in a string that is such a value */
    WORD,        /* in a number, true, false or null */
    CONTAINER,   /* in an object or array that is such a value */
    BEHIND,      /* behind a value: a comma, or the list's end */
    FIRST_ITEM,  /* behind the bracket: an item, or the end of items */
    NEXT_ITEM,   /* behind a comma */
    BEHIND_ITEM, /* a comma, or the end of items */
    OBJECT,      /* in an object that will be handed over */
    DONE,        /* behind the list */
};

void jsplit_init(struct jsplit *s, enum jsplit_kind kind, size_t object_max,
                 jsplit_f *visit, void *ctx)
{
    *s = (struct jsplit){.kind = kind,
                         .object_max = object_max,
                         .visit = visit,
                         .ctx = ctx,
                         .object = STR_INIT(object_max),
                         .rest = STR_INIT(JSPLIT_REST_MAX)};
}

void jsplit_fini(struct jsplit *s)
{
    str_fini(&s->object);
    str_fini(&s->rest);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The cursor's last byte, which was counted, is wrong. */
static int fail(struct jsplit *s, const char *what)
{
    return error_set(&s->fault, EINVAL, "%s at byte %llu", what,
                     (unsigned long long)(s->n_bytes - 1));
}

static int too_large(struct jsplit *s)
{
    if (s->state == OBJECT)
        return error_set(
            &s->fault, E2BIG, "the object at byte %llu has more than %zu bytes",
            (unsigned long long)(s->n_bytes - s->object_max), s->object_max);
    return error_set(&s->fault, E2BIG,
                     "the list has more than %d bytes beside its items",
                     JSPLIT_REST_MAX);
}

static int enter(struct jsplit *s, bool object)
{
    if (s->depth >= JSPLIT_DEPTH_MAX)
        return fail(s, "nested too deep");
    uint64_t bit = UINT64_C(1) << s->depth;
    s->in_object = object ? s->in_object | bit : s->in_object & ~bit;
    s->depth++;
    return 0;
}

/* Does `c` close the innermost container? */
static bool closes(const struct jsplit *s, char c)
{
    return (s->in_object >> (s->depth - 1) & 1) == (c == '}');
}

/* Within a string: consume up to its end, or all there is. */
static const char *pass_string(struct jsplit *s, const char *p, const char *end)
{
    if (s->escaped && p < end) {
        s->escaped = false;
        p++;
    }
    while (p < end) {
        char c = *p++;
        if (c == '"') {
            s->in_string = false;
            break;
        }
        if (c != '\\')
            continue;
        if (p == end)
            s->escaped = true;
        else
            p++;
    }
    return p;
}

/* Within containers: consume up to where the depth falls to `floor`, or all
 * there is.  0, or -EINVAL. */
static int pass_container(struct jsplit *s, const char **cursor,
                          const char *end, unsigned floor)
{
    const char *from = *cursor, *p = from;
    uint64_t begun = s->n_bytes;
    int r = 0;
    while (p < end && r == 0) {
        if (s->in_string) {
            p = pass_string(s, p, end);
            continue;
        }
        char c = *p++;
        s->n_bytes = begun + (uint64_t)(p - from);
        if (c == '"') {
            s->in_string = true;
        } else if (c == '{' || c == '[') {
            r = enter(s, c == '{');
        } else if (c == '}' || c == ']') {
            if (!closes(s, c))
                r = fail(s, "bracket that closes none");
            else if (--s->depth == floor)
                break;
        }
    }
    s->n_bytes = begun + (uint64_t)(p - from);
    *cursor = p;
    return r;
}

static int hand_over(struct jsplit *s, const char *data, size_t size)
{
    s->state = s->kind == JSPLIT_LIST ? BEHIND_ITEM : BETWEEN;
    s->n_objects++;
    int r = s->visit(s->ctx, data, size);
    str_reset(&s->object);
    return r ? error_set(&s->fault, r < 0 ? -r : r,
                         "ended by the receiver of the objects")
             : 0;
}

/* As much of the container at the cursor as is there and may be held. */
static int take_container(struct jsplit *s, const char **cursor,
                          const char *end)
{
    struct str *into = s->state == OBJECT ? &s->object : &s->rest;
    unsigned floor = s->kind == JSPLIT_STREAM ? 0 : s->state == OBJECT ? 2 : 1;
    const char *from = *cursor;
    size_t room = into->max - into->size;
    bool cut = (size_t)(end - from) > room;
    int r = pass_container(s, cursor, cut ? from + room : end, floor);
    size_t size = (size_t)(*cursor - from);
    if (r < 0 || s->depth > floor) {
        str_add_n(into, from, size);
        return r == 0 && cut ? too_large(s) : r;
    }
    /* often it is all there, and need not be copied */
    if (s->state == OBJECT && into->size == 0)
        return hand_over(s, from, size);
    str_add_n(into, from, size);
    if (s->state == OBJECT)
        return hand_over(s, into->data, into->size);
    s->state = BEHIND;
    return 0;
}

/* --- the list's own members -------------------------------------------- */

static int begin_value(struct jsplit *s, char c)
{
    if (c == '{' || c == '[') {
        s->state = CONTAINER;
        return enter(s, c == '{');
    }
    if (c == '"')
        s->state = TEXT;
    else if ((c >= '0' && c <= '9') || c == '-' || (c >= 'a' && c <= 'z'))
        s->state = WORD;
    else
        return fail(s, "unexpected character in a list");
    return 0;
}

static int begin_items(struct jsplit *s, char c)
{
    if (s->had_items)
        return fail(s, "second \"items\" of a list");
    s->had_items = true;
    if (c == 'n') { /* null; the reader of the rest checks the word */
        s->state = WORD;
        return 0;
    }
    s->state = FIRST_ITEM;
    return c == '[' ? enter(s, false)
                    : fail(s, "\"items\" of a list is no array");
}

static int begin_key(struct jsplit *s, char c)
{
    if (c != '"')
        return fail(s, "expected a key of a list");
    s->state = IN_KEY;
    s->key_at = s->rest.size; /* the quote was added already */
    return 0;
}

/* Is the key that has just been closed "items"? */
static bool key_is_items(const struct jsplit *s)
{
    static const char items[] = "items\"";
    return s->rest.size - s->key_at == sizeof items - 1 &&
           memcmp(s->rest.data + s->key_at, items, sizeof items - 1) == 0;
}

static int behind_value(struct jsplit *s, char c)
{
    if (c != ',' && c != '}')
        return fail(s, "expected ',' or '}' in a list");
    s->state = c == ',' ? NEXT_KEY : DONE;
    if (c == '}')
        s->depth--;
    return 0;
}

/* One byte of a string among the list's own: true at its end. */
static bool string_ends(struct jsplit *s, char c)
{
    bool plain = !s->escaped;
    s->escaped = plain && c == '\\';
    return plain && c == '"';
}

static int take_member(struct jsplit *s, char c)
{
    switch (s->state) {
    case BETWEEN:
        s->state = FIRST_KEY;
        return c == '{' ? enter(s, true) : fail(s, "expected a list");
    case FIRST_KEY:
        return c == '}' ? behind_value(s, c) : begin_key(s, c);
    case NEXT_KEY:
        return begin_key(s, c);
    case COLON:
        s->state = key_is_items(s) ? ITEMS : VALUE;
        return c == ':' ? 0 : fail(s, "expected ':' in a list");
    case ITEMS:
        return begin_items(s, c);
    case VALUE:
        return begin_value(s, c);
    case BEHIND:
        return behind_value(s, c);
    default: /* DONE */
        return fail(s, "more text behind a list");
    }
}

/* One byte of the list that is not within a container or an item. */
static int take_own(struct jsplit *s, char c)
{
    if (s->rest.size == s->rest.max)
        return too_large(s);
    /* white space behind a key would hide what it is */
    if (is_space(c) && s->state != IN_KEY && s->state != TEXT) {
        if (s->state == WORD)
            s->state = BEHIND;
        if (s->state != COLON)
            str_add_c(&s->rest, c);
        return 0;
    }
    if (s->state == IN_KEY || s->state == TEXT) {
        str_add_c(&s->rest, c);
        if (string_ends(s, c))
            s->state = s->state == IN_KEY ? COLON : BEHIND;
        return 0;
    }
    if (s->state == WORD) {
        if (c != ',' && c != '}') {
            str_add_c(&s->rest, c);
            return 0;
        }
        s->state = BEHIND;
    }
    if (s->state != COLON) {
        str_add_c(&s->rest, c);
        return take_member(s, c);
    }
    int r = take_member(s, c);
    str_add_c(&s->rest, c);
    return r;
}

/* --- between items, and between the objects of a stream ----------------- */

static int begin_object(struct jsplit *s, const char **cursor, char c)
{
    if (c != '{')
        return fail(s, "expected an object");
    s->state = OBJECT;
    --*cursor; /* it belongs to the object */
    s->n_bytes--;
    return 0;
}

static int take_between(struct jsplit *s, const char **cursor)
{
    char c = *(*cursor)++;
    s->n_bytes++;
    if (is_space(c))
        return 0;
    if (s->state == BEHIND_ITEM && c == ',') {
        s->state = NEXT_ITEM;
        return 0;
    }
    if ((s->state == BEHIND_ITEM || s->state == FIRST_ITEM) && c == ']') {
        s->depth--;
        s->state = BEHIND;
        str_add_c(&s->rest, c);
        return s->rest.overflow ? too_large(s) : 0;
    }
    if (s->state == BEHIND_ITEM)
        return fail(s, "expected ',' or ']' in the items of a list");
    return begin_object(s, cursor, c);
}

static int take(struct jsplit *s, const char **cursor, const char *end)
{
    switch (s->state) {
    case OBJECT:
    case CONTAINER:
        return take_container(s, cursor, end);
    case FIRST_ITEM:
    case NEXT_ITEM:
    case BEHIND_ITEM:
        return take_between(s, cursor);
    case BETWEEN:
        if (s->kind == JSPLIT_STREAM)
            return take_between(s, cursor);
        __attribute__((fallthrough));
    default:
        s->n_bytes++;
        return take_own(s, *(*cursor)++);
    }
}

static int failed(const struct jsplit *s, struct error *err)
{
    return error_set(err, s->fault.code, "%s", s->fault.text);
}

int jsplit_feed(struct jsplit *s, const char *data, size_t size,
                struct error *err)
{
    const char *p = data, *end = data + size;
    while (!s->fault.code && p < end)
        (void)take(s, &p, end);
    return s->fault.code ? failed(s, err) : 0;
}

int jsplit_end(struct jsplit *s, struct error *err)
{
    if (s->fault.code)
        return failed(s, err);
    if (s->state != (s->kind == JSPLIT_LIST ? DONE : BETWEEN))
        (void)error_set(&s->fault, EINVAL, "cut off after %llu bytes",
                        (unsigned long long)s->n_bytes);
    return s->fault.code ? failed(s, err) : 0;
}
