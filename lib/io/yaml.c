#include "lib/io/yaml.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"

enum { INTEGER_MAX_DIGITS = 32, SHOWN = 40 };

struct loader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one at hand */
    unsigned depth;
    struct error *err;
};

/* --- events ------------------------------------------------------------- */

static int fail_at(struct loader *l, const yaml_mark_t *at, const char *what)
{
    return error_set(l->err, EINVAL, "line %zu column %zu: %s", at->line + 1,
                     at->column + 1, what);
}

static int fail_text(struct loader *l, const char *text, const char *why)
{
    const yaml_mark_t *at = &l->event.start_mark;
    return error_set(l->err, EINVAL, "line %zu column %zu: \"%.*s\" %s",
                     at->line + 1, at->column + 1, SHOWN, text, why);
}

/* The next event takes the place of the last. */
static int next_event(struct loader *l)
{
    yaml_event_delete(&l->event);
    if (yaml_parser_parse(&l->parser, &l->event))
        return 0;
    const yaml_parser_t *p = &l->parser;
    if (p->error == YAML_READER_ERROR)
        return error_set(l->err, EINVAL, "byte %zu: %s", p->problem_offset,
                         p->problem ? p->problem : "not UTF-8");
    return fail_at(l, &p->problem_mark, p->problem ? p->problem : "not YAML");
}

/* --- scalars ---------------------------------------------------------------
 *
 * The core schema of YAML 1.2, and kubectl's reader of YAML 1.1.  Where they
 * differ, the text is refused, since either reading may have been meant. */

static bool is_one_of(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(text, list) is_one_of(text, list, ARRAY_LEN(list))

static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
static const char *const trues[] = {"true", "True", "TRUE"};
static const char *const falses[] = {"false", "False", "FALSE"};
static const char *const doubtful[] = {
    "y",     "Y",     "yes",   "Yes",   "YES",  "n",     "N",
    "no",    "No",    "NO",    "on",    "On",   "ON",    "off",
    "Off",   "OFF",   ".inf",  ".Inf",  ".INF", "+.inf", "+.Inf",
    "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN",  ".NAN",
};

static int base_of(char letter)
{
    switch (letter | 32) {
    case 'x':
        return 16;
    case 'o':
        return 8;
    case 'b':
        return 2;
    default:
        return 0;
    }
}

static const char *skip_digits(const char *p, int base)
{
    for (;; p++) {
        bool digit = *p >= '0' && *p < '0' + (base < 10 ? base : 10);
        bool letter = base == 16 && (*p | 32) >= 'a' && (*p | 32) <= 'f';
        if (!digit && !letter)
            return p;
    }
}

enum number { NUMBER_NONE, NUMBER_INTEGER, NUMBER_DECIMAL, NUMBER_DOUBTFUL };

static bool is_decimal(const char *p)
{
    const char *q = skip_digits(p, 10);
    bool digits = q > p;
    if (*q == '.') {
        const char *fraction = q + 1;
        q = skip_digits(fraction, 10);
        digits |= q > fraction;
    }
    if (digits && (*q == 'e' || *q == 'E')) {
        const char *exponent = q + 1 + (q[1] == '+' || q[1] == '-');
        q = skip_digits(exponent, 10);
        digits = q > exponent;
    }
    return digits && !*q;
}

/* Without underscores. */
static enum number bare_kind(const char *text)
{
    const char *p = text + (*text == '+' || *text == '-'), *q;
    int base = *p == '0' ? base_of(p[1]) : 0;
    if (base) {
        q = skip_digits(p + 2, base);
        if (q == p + 2 || *q)
            return NUMBER_NONE;
        bool core = p == text && (p[1] == 'x' || p[1] == 'o');
        return core ? NUMBER_INTEGER : NUMBER_DOUBTFUL;
    }
    q = skip_digits(p, 10);
    if (q > p && !*q) /* 017: fifteen or seventeen? */
        return *p == '0' && p[1] ? NUMBER_DOUBTFUL : NUMBER_INTEGER;
    return is_decimal(p) ? NUMBER_DECIMAL : NUMBER_NONE;
}

static enum number number_kind(const char *text)
{
    if (!*text || !strchr("+-.0123456789", *text))
        return NUMBER_NONE;
    if (!strchr(text, '_'))
        return bare_kind(text);
    cleanup_free char *bare = xstrdup(text);
    char *end = bare;
    for (const char *p = text; *p; p++)
        if (*p != '_')
            *end++ = *p;
    *end = '\0';
    return bare_kind(bare) == NUMBER_NONE ? NUMBER_NONE : NUMBER_DOUBTFUL;
}

static int make_number(struct loader *l, const char *text, enum number kind,
                       cJSON **ret_json)
{
    double value;
    const char *digits = text + (*text == '+');
    bool octal = kind == NUMBER_INTEGER && digits[0] == '0' && digits[1] == 'o';
    if (octal)
        value = strlen(digits) < INTEGER_MAX_DIGITS
                    ? (double)strtoull(digits + 2, NULL, 8)
                    : HUGE_VAL;
    else
        value = strtod(digits, NULL);
    if (kind == NUMBER_INTEGER && fabs(value) >= 9007199254740992.0)
        return fail_text(l, text,
                         "has more digits than are kept exactly: quote it if "
                         "it is text");
    if (!isfinite(value))
        return fail_text(l, text, "is too large a number");
    *ret_json = cJSON_CreateNumber(value);
    return 0;
}

static int make_plain(struct loader *l, const char *text, cJSON **ret_json)
{
    if (IS_ONE_OF(text, doubtful))
        return fail_text(l, text,
                         "is read as text by some and not by others: quote "
                         "it, or write true or false");
    enum number kind = number_kind(text);
    if (kind == NUMBER_DOUBTFUL)
        return fail_text(l, text,
                         "is read as different numbers or as text: quote it, "
                         "or write it in decimal");
    if (kind != NUMBER_NONE)
        return make_number(l, text, kind, ret_json);
    *ret_json = IS_ONE_OF(text, nulls)    ? cJSON_CreateNull()
                : IS_ONE_OF(text, trues)  ? cJSON_CreateTrue()
                : IS_ONE_OF(text, falses) ? cJSON_CreateFalse()
                                          : cJSON_CreateString(text);
    return 0;
}

static int make_scalar(struct loader *l, cJSON **ret_json)
{
    const char *text = (const char *)l->event.data.scalar.value;
    if (strlen(text) != l->event.data.scalar.length)
        return fail_at(l, &l->event.start_mark, "text with a NUL character");
    if (l->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return make_plain(l, text, ret_json);
    *ret_json = cJSON_CreateString(text);
    return 0;
}

/* --- collections -------------------------------------------------------- */

static int make_value(struct loader *l, cJSON **ret_json);

static int make_sequence(struct loader *l, cJSON **ret_json)
{
    cleanup_with(json) cJSON *array = cJSON_CreateArray();
    for (;;) {
        cJSON *item = NULL;
        int r = next_event(l);
        if (r < 0)
            return r;
        if (l->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if ((r = make_value(l, &item)) < 0)
            return r;
        cJSON_AddItemToArray(array, item);
    }
    *ret_json = steal(&array);
    return 0;
}

/* The keys of the open mapping, with their positions. */
struct keys {
    struct key {
        char *text;
        size_t line, column;
    } * list;
    size_t n, cap;
};

static void keys_destroy(struct keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        free(keys->list[i].text);
    free(keys->list);
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    if (order == 0)
        order = x->line != y->line ? (x->line < y->line ? -1 : 1)
                                   : (x->column < y->column ? -1 : 1);
    return order;
}

static int check_equal(struct loader *l, struct keys *keys)
{
    if (keys->n > 1)
        qsort(keys->list, keys->n, sizeof *keys->list, compare_keys);
    for (size_t i = 1; i < keys->n; i++) {
        const struct key *k = &keys->list[i];
        if (strcmp(k->text, k[-1].text) == 0)
            return error_set(l->err, EINVAL,
                             "line %zu column %zu: key \"%.*s\" stands here "
                             "again: it is in line %zu already",
                             k->line + 1, k->column + 1, SHOWN, k->text,
                             k[-1].line + 1);
    }
    return 0;
}

static int take_key(struct loader *l, struct keys *keys)
{
    const yaml_event_t *e = &l->event;
    cleanup_with(json) cJSON *json = NULL;
    if (e->type != YAML_SCALAR_EVENT)
        return fail_at(l, &e->start_mark, "a key must be a text");
    yaml_mark_t at = e->start_mark;
    int r = make_value(l, &json);
    if (r < 0)
        return r;
    const char *text = cJSON_GetStringValue(json);
    if (!text)
        return fail_at(l, &at, "a key must be a text: quote it");
    if (strcmp(text, "<<") == 0 &&
        e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return fail_at(l, &at, "merging (<<) is not supported: write it out");
    if (keys->n >= JSON_MEMBERS_MAX)
        return fail_at(l, &at, "too many keys in one mapping");
    keys->list = xgrow(keys->list, keys->n, &keys->cap, sizeof *keys->list);
    keys->list[keys->n++] = (struct key){xstrdup(text), at.line, at.column};
    return 0;
}

static int make_mapping(struct loader *l, cJSON **ret_json)
{
    cleanup_with(json) cJSON *object = cJSON_CreateObject();
    __attribute__((__cleanup__(keys_destroy))) struct keys keys = {0};
    for (;;) {
        cJSON *item = NULL;
        int r = next_event(l);
        if (r < 0)
            return r;
        if (l->event.type == YAML_MAPPING_END_EVENT)
            break;
        if ((r = take_key(l, &keys)) < 0 || (r = next_event(l)) < 0 ||
            (r = make_value(l, &item)) < 0)
            return r;
        cJSON_AddItemToObject(object, keys.list[keys.n - 1].text, item);
    }
    int r = check_equal(l, &keys);
    if (r < 0)
        return r;
    *ret_json = steal(&object);
    return 0;
}

/* --- values and documents ----------------------------------------------- */

static int check_plain_form(struct loader *l)
{
    const yaml_event_t *e = &l->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (e->type == YAML_ALIAS_EVENT)
        return fail_at(l, &e->start_mark,
                       "aliases are not supported: write it out");
    if (e->type == YAML_SCALAR_EVENT) {
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
    } else if (e->type == YAML_SEQUENCE_START_EVENT) {
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
    } else if (e->type == YAML_MAPPING_START_EVENT) {
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
    }
    if (anchor)
        return fail_at(l, &e->start_mark, "anchors are not supported");
    if (tag)
        return fail_at(l, &e->start_mark,
                       "tags are not supported: quote what is text");
    return 0;
}

/* The value that begins with the event at hand.  Recursion ends at
 * YAML_DEPTH_MAX. */
static int make_value(struct loader *l, cJSON **ret_json)
{
    int r = check_plain_form(l);
    if (r < 0)
        return r;
    if (l->event.type == YAML_SCALAR_EVENT)
        return make_scalar(l, ret_json);
    if (l->depth == YAML_DEPTH_MAX)
        return error_set(l->err, EINVAL,
                         "line %zu column %zu: nested deeper "
                         "than %d levels",
                         l->event.start_mark.line + 1,
                         l->event.start_mark.column + 1, YAML_DEPTH_MAX);
    l->depth++;
    r = l->event.type == YAML_SEQUENCE_START_EVENT ? make_sequence(l, ret_json)
                                                   : make_mapping(l, ret_json);
    l->depth--;
    return r;
}

/* At DOCUMENT-START. `*ret_json` stays NULL for an empty one. */
static int make_document(struct loader *l, cJSON **ret_json)
{
    cleanup_with(json) cJSON *json = NULL;
    int r = next_event(l);
    if (r < 0 || (r = make_value(l, &json)) < 0 || (r = next_event(l)) < 0)
        return r; /* the last: DOCUMENT-END */
    if (!cJSON_IsNull(json))
        *ret_json = steal(&json);
    return 0;
}

static int load(struct loader *l, yaml_document_f *visit, void *ctx)
{
    for (unsigned n = 0;;) {
        cJSON *json = NULL;
        int r = next_event(l); /* the first: STREAM-START */
        if (r < 0 || l->event.type == YAML_STREAM_END_EVENT)
            return r;
        if (l->event.type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (++n > YAML_DOCUMENTS_MAX)
            return error_set(l->err, EINVAL, "line %zu: more than %d documents",
                             l->event.start_mark.line + 1, YAML_DOCUMENTS_MAX);
        if ((r = make_document(l, &json)) < 0)
            return r;
        if (json && (r = visit(ctx, json)) != 0)
            return r;
    }
}

int yaml_each(const char *data, size_t size, yaml_document_f *visit, void *ctx,
              struct error *err)
{
    struct loader l = {.err = err};
    if (size > YAML_SIZE_MAX)
        return error_set(err, EINVAL, "%zu bytes, the limit is %d", size,
                         YAML_SIZE_MAX);
    if (!yaml_parser_initialize(&l.parser))
        abort(); /* out of memory, as x*alloc does */
    yaml_parser_set_encoding(&l.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)data, size);
    int r = load(&l, visit, ctx);
    yaml_event_delete(&l.event);
    yaml_parser_delete(&l.parser);
    return r;
}

struct only {
    cJSON *json;
    bool more;
};

static int take_only(void *ctx, cJSON *json)
{
    struct only *only = ctx;
    if (only->json) {
        cJSON_Delete(json);
        only->more = true;
        return -EINVAL;
    }
    only->json = json;
    return 0;
}

int yaml_parse(const char *data, size_t size, cJSON **ret_json,
               struct error *err)
{
    struct only only = {0};
    int r = yaml_each(data, size, take_only, &only, err);
    if (only.more)
        r = error_set(err, EINVAL, "more than one document (---)");
    else if (r == 0 && !only.json)
        r = error_set(err, EINVAL, "nothing in it");
    if (r < 0) {
        cJSON_Delete(only.json);
        return r;
    }
    *ret_json = only.json;
    return 0;
}
